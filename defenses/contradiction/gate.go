package contradiction

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/text"
)

// Checks of findings. A conflict's check is Check, a colon and the slot's name.
const (
	Check = "contradiction"
	// Correction marks a user's (or the operator's) own new value: it is
	// allowed and takes the place of the old one.
	Correction = "correction"
	// Revision marks a claim of the agent's own, derived from nothing external,
	// against a trusted fact: it is allowed, and the fact stays.
	Revision = "agent_revision"
)

// Register adds the defense contradiction.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:    "contradiction",
		Screens: []defenses.Place{defenses.Write},
		Idea:    "values and what they are of, against what trusted records say; users may correct themselves",
		Cost: "no model calls; about 10 µs a write of 300 bytes at 10,000 records as at a million, and 15 µs a sentence that " +
			"no trial has read yet; state: about 150 bytes a known fact",
	}, func(string, defenses.Env) (defenses.Defense, error) { return New() })
}

// New returns the defense. Facts come from each trial's own records.
func New() (defenses.Defense, error) {
	facts := text.New[[]claim](memoBytes)
	return defenses.Func(func(_ context.Context, v memory.View) (memory.Gate, error) {
		g := &gate{known: base{}, facts: facts}
		if v != nil && v.Len() > 0 { // a store that was there before this session
			v.Each(func(r memory.Record) bool {
				g.learn(&r)
				return true
			})
		}
		return g, nil
	}), nil
}

type gate struct {
	memory.Open
	known base
	facts *text.Memo[[]claim] // of texts, for all trials of a run
}

// Write implements [memory.Gate].
func (g *gate) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return memory.Verdict{}, err
	}
	if p.Op == memory.Remove {
		return memory.Verdict{}, nil
	}
	claims, fromKey := g.read(&p.Record)
	var v memory.Verdict
	for i := range claims {
		c := &claims[i]
		k := g.known.conflict(&c.fact)
		if k == nil {
			continue
		}
		check := Correction
		switch {
		case p.Record.Origin.Class == memory.External:
			check = Check
			v.Action = memory.Quarantine
		case p.Record.Origin.Class == memory.Agent && k.class > memory.Agent:
			check = Revision
		}
		if f := finding(check, c, k, fromKey); len(v.Findings) < 8 && !slices.Contains(v.Findings, f) {
			v.Findings = append(v.Findings, f)
		}
	}
	return v, nil
}

// finding names the slot and quotes both values, made harmless and short.
func finding(check string, c *claim, k *known, fromKey bool) memory.Finding {
	fd := memory.Finding{
		Check: check + ":" + c.slot,
		Note: "record " + quote(k.record, false) + " says " + quote(k.shown, k.negated) + ", this says " +
			quote(c.shown, c.negated),
	}
	if !fromKey {
		fd.Start, fd.End = c.start, c.end
	}
	return fd
}

// quote spells a value from memory so that it is inert wherever it is shown.
func quote(s string, negated bool) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	if s = strconv.QuoteToASCII(s); negated {
		s = "not " + s
	}
	return s
}

// read returns what a record claims, and whether that comes from its key and its
// text together, so that the values have no place in the text: where the key names a
// slot ("billing_contact") and not a file, and the text is its value.
func (g *gate) read(r *memory.Record) (claims []claim, fromKey bool) {
	claims = g.facts.Get(r.Text, sized)
	if len(claims) > 0 || len(r.Text) > 120 || len(r.Key) < 3 || len(r.Key) > 64 || strings.Contains(r.Text, "\n") ||
		strings.ContainsAny(r.Key, "/#\n\\") || strings.HasSuffix(r.Key, ".md") {
		return claims, false
	}
	return g.facts.Get(r.Key+": "+r.Text, sized), true
}

// memoBytes bounds what is kept of texts that were read.
const memoBytes = 8 << 20

// sized reads a text and says about how many bytes its claims take.
func sized(s string) ([]claim, int) {
	claims := read(s)
	return claims, 400 * len(claims)
}

// trusted reports whether a record's facts are known facts: the user's, the
// operator's, or the agent's own from these. A record's origin is the least
// trusted one of its lineage, so nothing derived from external content passes.
func trusted(r *memory.Record) bool {
	return r.Origin.Class != memory.External && r.State == memory.Live
}

func (g *gate) learn(r *memory.Record) {
	if !trusted(r) {
		return
	}
	claims, _ := g.read(r)
	for i := range claims {
		g.known.learn(&claims[i].fact, r)
	}
}

func (g *gate) forget(r *memory.Record) {
	claims, _ := g.read(r)
	for i := range claims {
		g.known.forget(&claims[i].fact, r.ID)
	}
}

// Committed implements [memory.Gate]: what is known follows what is stored.
func (g *gate) Committed(c memory.Change) {
	if c.Prior != nil {
		g.forget(c.Prior)
	}
	if c.Op == memory.Remove {
		g.forget(&c.Record)
		return
	}
	g.learn(&c.Record)
}
