package guard

import (
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/contradiction"
	"github.com/memtox/memtox/defenses/signed"
	"github.com/memtox/memtox/internal/text"
)

// contradictions finds external claims against what trusted records say. The
// user's own later statement is a correction, and the agent's a revision: notes,
// not conflicts.
func contradictions(g *gate, s *subject) {
	if g.conflicts == nil {
		return
	}
	p := s.Proposal
	p.Record.Text = readable(p.Record.Text)
	v, err := g.conflicts.Write(g.ctx, p)
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

// readable is the beginning of a content, whole characters of it. Whatever the part for
// facts is shown is cut alike. A text that ends early may assert something else: what
// was learned from one form is not forgotten by the other.
func readable(s string) string { return text.Cut(s, maxRead) }

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
