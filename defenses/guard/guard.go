// Package guard is the full guard: other defenses composed, and one rule of its
// own.
//
// Its parts, in the order in which they are asked:
//
//   - signed verifies that a recalled record is what the agent wrote;
//   - keyword blocks threat patterns, in scope strict;
//   - provenance keeps records of little trust from governing high-risk intents;
//   - contradiction stops external claims against what trusted records say;
//   - authority, in this package, bounds what external records may do.
//
// The rule of authority: what came from outside may be told, not obeyed. External
// content is stored with the scope CONTEXT_ONLY and shown with its source. A tool
// call is vetoed where a recalled external record fills an argument that decides
// what the call does to the world: destination, recipient, command, credential or
// amount. A value that the user gives in this session is the user's, whatever
// memory says; and what the user asked to keep may fill an argument, unless the
// call shows a high-risk intent.
package guard

import (
	"context"
	"fmt"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/contradiction"
	"github.com/memtox/memtox/defenses/keyword"
	"github.com/memtox/memtox/defenses/provenance"
	"github.com/memtox/memtox/defenses/signed"
)

// Register adds the defense guard.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:    "guard",
		Screens: []defenses.Place{defenses.Write, defenses.Read, defenses.Act},
		Idea:    "signatures, scan, provenance and contradiction composed, and external records are told with their source, not obeyed",
		Cost:    "no model calls; the sum of its parts, about 15 µs a write and 1 µs a recalled record; state: one key, and the known facts",
	}, func(string, defenses.Env) (defenses.Defense, error) { return New() })
}

// New returns the defense.
func New() (defenses.Defense, error) {
	facts, err := contradiction.New()
	if err != nil {
		return nil, fmt.Errorf("making its part contradiction: %w", err)
	}
	both := []defenses.Place{defenses.Write, defenses.Read}
	return defenses.Chain(
		defenses.Part{Name: "signed", Defense: signed.New(), Screens: both},
		defenses.Part{Name: "keyword", Defense: keyword.New(keyword.Strict), Screens: both},
		defenses.Part{Name: "provenance", Defense: provenance.New(), Screens: both},
		defenses.Part{Name: "contradiction", Defense: facts, Screens: []defenses.Place{defenses.Write}},
		defenses.Part{Name: "authority", Defense: defenses.Func(openAuthority), Screens: []defenses.Place{defenses.Write, defenses.Read, defenses.Act}},
	), nil
}

// FillsPrefix begins the check of a veto; the argument's role follows.
const FillsPrefix = "external_memory_fills_"

func openAuthority(_ context.Context, v memory.View) (memory.Gate, error) {
	return &authority{view: v}, nil
}

type authority struct {
	memory.Open
	view memory.View
}

// Write narrows the scope of external content; it stops nothing.
func (g *authority) Write(_ context.Context, p memory.Proposal) (memory.Verdict, error) {
	if p.Op != memory.Remove && p.Record.Origin.Class == memory.External {
		return memory.Verdict{Scope: memory.ContextOnly}, nil
	}
	return memory.Verdict{}, nil
}

// Read attributes external records to their source.
func (g *authority) Read(_ context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	for i := range cs {
		if cs[i].Record.Origin.Class == memory.External {
			out[i] = memory.Decision{Attribute: true, Scope: memory.ContextOnly}
		}
	}
	return out, nil
}

// Act vetoes a call in which external memory decides.
func (g *authority) Act(_ context.Context, c memory.Call) (memory.Verdict, error) {
	var v memory.Verdict
	highRisk := -1 // not yet known
	for _, a := range c.Args {
		if !decides(a.Role) {
			continue
		}
		for _, l := range a.Lineage {
			if l.Record == "" || l.Origin.Class != memory.External {
				continue
			}
			if r, ok := g.view.Get(l.Record); ok && r.Asked {
				if highRisk < 0 {
					highRisk = len(provenance.CallIntents(c))
				}
				if highRisk == 0 {
					continue
				}
			}
			v.Action = memory.Block
			v.Findings = append(v.Findings, memory.Finding{Check: FillsPrefix + string(a.Role),
				Note: fmt.Sprintf("argument %q of %q comes from record %q, which %q brought", a.Name, c.Tool, l.Record, l.Origin.Source)})
		}
	}
	return v, nil
}

// decides reports whether an argument of this role decides what a call does to
// the world.
func decides(r memory.Role) bool {
	switch r {
	case memory.Destination, memory.Recipient, memory.Command, memory.Credential, memory.Amount:
		return true
	}
	return false
}
