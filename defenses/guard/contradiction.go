package guard

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/contradiction"
	"github.com/memtox/memtox/defenses/signed"
)

// contradictions finds external claims against what trusted records say. The
// user's own later statement is a correction, and the agent's a revision: notes,
// not conflicts.
func contradictions(g *gate, s *subject) {
	p := s.Proposal
	p.Record.Text = readable(p.Record.Text)
	v, err := g.facts.Write(g.ctx, p)
	if err != nil {
		g.err = err
		return
	}
	for _, f := range v.Findings {
		severity := Info
		if v.Action != memory.Allow && strings.HasPrefix(f.Check, contradiction.Check+":") {
			severity = High
		}
		s.add(Finding{Finding: f, On: ContradictionCheck, Severity: severity})
	}
}

// maxRead bounds what is read of a content for what it asserts, in bytes. The
// presets refuse longer contents.
const maxRead = 64 << 10

// readable is the beginning of a content, whole characters of it.
func readable(s string) string {
	if len(s) <= maxRead {
		return s
	}
	n := maxRead
	for n > maxRead-4 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Whatever the part for facts is shown is cut alike. A text that ends early may assert
// something else: what was learned from one form is not forgotten by the other.

// readableAll is records as the part for facts reads them.
func readableAll(rs []memory.Record) []memory.Record {
	for i := range rs {
		if len(rs[i].Text) <= maxRead {
			continue
		}
		rs = slices.Clone(rs)
		for ; i < len(rs); i++ {
			rs[i].Text = readable(rs[i].Text)
		}
		break
	}
	return rs
}

// readableView is a view as the part for facts reads it: what was signed.
type readableView struct {
	memory.View
	signer *signed.Signer
}

func (v readableView) Each(yield func(memory.Record) bool) {
	v.View.Each(func(r memory.Record) bool {
		if v.signer.Verify(&r) != "" {
			return true
		}
		r.Text = readable(r.Text)
		return yield(r)
	})
}
