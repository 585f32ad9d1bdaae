// Package keyword scans memory for threat patterns: prompt injection,
// exfiltration, invisible and bidirectional Unicode, terminal escapes. It is the
// defense that agent products ship.
//
// It scans twice. A write with a pattern is blocked, with the pattern as the
// reason. A stored record with a pattern, however it came there, is shown as a
// placeholder that names the pattern; the record itself stays as it is, so that
// its owner can look at it and remove it.
//
// Patterns are data (lexicon.yaml), in two scopes: relaxed for those that honest
// text hardly has, strict for those that a memory can do without. Case, white
// space, look-alike letters and invisible characters make no difference. Beside
// the patterns it reads directives by their form (directive.go). What neither
// tells anybody to do something nor has trigger words passes, and most warnings that
// quote an attack do not: that is the nature of this defense.
package keyword

import (
	"context"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/internal/text"
)

// Register adds the defense keyword.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:     "keyword",
		Screens:  []defenses.Place{defenses.Write, defenses.Read},
		Argument: "strict|relaxed",
		Idea:     "threat patterns by scope: blocked at write, replaced by a placeholder at read",
		Tunables: []defenses.Tunable{{Key: "scope", About: "relaxed or strict",
			Argument: func(v string) string { return v }}},
		Cost: "no model calls; some 5 µs a write and a recalled record of 300 bytes, 9 µs where Unicode must be folded, " +
			"a tenth of a µs for a record that was recalled before; no state",
	}, func(argument string, _ defenses.Env) (defenses.Defense, error) {
		switch Scope(argument) {
		case "", Strict:
			return New(Strict), nil
		case Relaxed:
			return New(Relaxed), nil
		}
		return nil, settings.Unknown("", "scope", argument, []string{string(Strict), string(Relaxed)})
	})
}

// New returns the defense with a scope.
func New(scope Scope) defenses.Defense {
	stored := text.New[[]Hit](memoBytes)
	return defenses.Func(func(context.Context, memory.View) (memory.Gate, error) {
		return &gate{scanner: Scanner{Scope: scope}, stored: stored}, nil
	})
}

// memoBytes bounds what is kept of texts that were scanned, and rememberedBytes each of
// them.
const (
	memoBytes       = 4 << 20
	rememberedBytes = 16 << 10
)

// Message says that a content with the pattern was refused, fit for whoever
// wanted to store it.
func (t *Threat) Message() string {
	return "Content blocked: matched " + t.Family + " pattern '" + t.ID + "'. Rephrase the entry."
}

// Placeholder stands in the prompt for a content with threat patterns, of which
// ids are those. It says nothing that depends on when or how often it is shown.
func Placeholder(ids []string) string {
	return "[BLOCKED: entry contained threat pattern(s): " + strings.Join(ids, ", ") +
		". The stored entry is unchanged: review it, then rewrite or remove it.]"
}

// Hit is one pattern with its first place in the content, in bytes.
type Hit struct {
	Threat     *Threat // never changes
	Start, End int
}

// Finding is the hit as a verdict reports it.
func (h *Hit) Finding() memory.Finding {
	return memory.Finding{Check: h.Threat.ID, Note: h.Threat.Message(), Start: h.Start, End: h.End}
}

// Scanner scans contents, one after the other, and keeps its buffers between
// them. It belongs to one goroutine.
type Scanner struct {
	Scope Scope

	hits    []Hit
	matches []text.Match
	text    text.Text
	reading reading
}

// Scan returns the patterns in the content, whose oddities are odd ([text.Scan]).
// The result is good until the next scan.
func (s *Scanner) Scan(content string, odd text.Oddities) []Hit {
	s.text.Reset(content, odd)
	return s.ScanText(&s.text)
}

// ScanText is Scan of a text that other lexicons look at too.
func (s *Scanner) ScanText(x *text.Text) []Hit {
	t := compiled()
	s.hits = s.hits[:0]
	s.matches = t.words.FindIn(s.matches[:0], x)
	for _, m := range s.matches {
		if threat := &t.threats[m.Entry]; in(*threat, s.Scope) && !(t.warns[m.Entry] && warns(x.Original, m)) {
			s.hits = append(s.hits, Hit{threat, m.Start, m.End})
		}
	}
	quick, mapped := x.Quick()
	for kind, at := range s.reading.directives(quick) {
		if threat := &directiveThreats[kind]; at.end > 0 && in(*threat, s.Scope) {
			if !mapped {
				at.start, at.end = x.Back(at.start, at.end)
			}
			s.hits = append(s.hits, Hit{threat, at.start, at.end})
		}
	}
	if x.Odd.Has(oddCharacters) {
		for kind, at := range characters(x.Original) {
			if threat := &characterThreats[kind]; at.end > 0 && in(*threat, s.Scope) {
				s.hits = append(s.hits, Hit{threat, at.start, at.end})
			}
		}
	}
	return s.hits
}

// findings are the hits as a verdict reports them.
func findings(hits []Hit) []memory.Finding {
	out := make([]memory.Finding, len(hits))
	for i := range hits {
		out[i] = hits[i].Finding()
	}
	return out
}

func (s *Scanner) scan(content string) []Hit { return s.Scan(content, text.Scan(content)) }

type gate struct {
	memory.Open
	scanner Scanner
	stored  *text.Memo[[]Hit] // of what is recalled, for all trials of a run
}

// scanStored scans what stands in a store, and is read again and again.
func (g *gate) scanStored(content string) []Hit {
	if len(content) > rememberedBytes {
		return g.scanner.scan(content)
	}
	return g.stored.Get(content, func(s string) ([]Hit, int) {
		hits := slices.Clone(g.scanner.scan(s))
		return hits, 24 * len(hits)
	})
}

// Write blocks content with a pattern. The key counts too: an index of entries
// or skills shows it. A removal is let through, or nobody could remove what was
// found.
func (g *gate) Write(_ context.Context, p memory.Proposal) (memory.Verdict, error) {
	if p.Op == memory.Remove {
		return memory.Verdict{}, nil
	}
	if len(g.scanner.scan(p.Record.Text)) == 0 && len(g.scanner.scan(p.Record.Key)) == 0 {
		return memory.Verdict{}, nil
	}
	return memory.Verdict{Action: memory.Block, Findings: findings(g.scanner.hits)}, nil
}

// Read shows a placeholder for content with a pattern. A record that already
// reads like a placeholder is scanned like any other. A key cannot be replaced,
// so a record whose key has a pattern is not shown at all.
func (g *gate) Read(_ context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	for i := range cs {
		r := &cs[i].Record
		if hits := g.scanStored(r.Key); len(hits) > 0 {
			out[i].Action, out[i].Findings = memory.Quarantine, findings(hits)
		} else if hits := g.scanStored(r.Text); len(hits) > 0 {
			var ids []string
			for _, h := range hits {
				ids = append(ids, h.Threat.ID)
			}
			out[i].Verdict = memory.Verdict{Action: memory.Redact, Text: Placeholder(ids), Findings: findings(hits)}
		}
	}
	return out, nil
}
