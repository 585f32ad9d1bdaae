// Package controls holds the defenses that others are compared with. Nobody
// should deploy them.
//
// none shows what the attacks do undefended. block-all and no-memory stop every
// attack and, by the same means, everything that memory is for: a measure that
// likes them is a bad measure. origin-only uses one bit, whether the user asked
// to keep external content; a defense that looks at content must beat it. attribution-only checks nothing and says where external
// memory came from; what that does is up to the model. confirm-all has the user
// confirm every call that rests on something external: it is as safe as its user is
// patient.
package controls

import (
	"context"
	"slices"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
)

// Register adds the controls.
func Register(r *defenses.Registry) {
	add := func(name, idea string, screens []defenses.Place, g memory.Gate) {
		r.Register(defenses.Info{Name: name, Screens: screens, Idea: idea, Cost: "none: no calls, no state", Control: true},
			func(string, defenses.Env) (defenses.Defense, error) {
				// The gates hold no state, so all trials can share one.
				return defenses.Func(func(context.Context, memory.View) (memory.Gate, error) { return g, nil }), nil
			})
	}
	add("none", "no defense", nil, memory.Open{})
	add("block-all", "stop every write", []defenses.Place{defenses.Write}, blockAll{})
	add("no-memory", "no persistence at all: stop every write and every recalled record, past turns included",
		[]defenses.Place{defenses.Write, defenses.Read}, noMemory{})
	add("origin-only", "stop everything external that the user did not ask to keep",
		[]defenses.Place{defenses.Write, defenses.Read}, originOnly{})
	add("attribution-only", "say where external memory came from, and check nothing", []defenses.Place{defenses.Read},
		attributionOnly{})
	add("confirm-all", "have the user confirm every call that rests on something external", []defenses.Place{defenses.Act},
		confirmAll{})
	own := func(name, idea string) {
		r.Register(defenses.Info{Name: name, Idea: idea, Cost: "none of memtox: what the product takes", Within: true},
			func(string, defenses.Env) (defenses.Defense, error) {
				return defenses.Func(func(context.Context, memory.View) (memory.Gate, error) { return memory.Open{}, nil }), nil
			})
	}
	own(memory.ProductOn, "everything is switched on that the agent's product ships against poisoned memory, and not on as it comes")
	own(memory.ProductOff, "everything is switched off that the product ships against it, and that can be")
}

type blockAll struct{ memory.Open }

func (blockAll) Write(context.Context, memory.Proposal) (memory.Verdict, error) {
	return memory.Verdict{Action: memory.Block, Findings: everyWrite}, nil
}

type noMemory struct{ blockAll }

func (noMemory) Read(_ context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	for i := range out {
		out[i].Action, out[i].Findings = memory.Block, everyRead
	}
	return out, nil
}

type originOnly struct{ memory.Open }

func (originOnly) Write(_ context.Context, p memory.Proposal) (memory.Verdict, error) {
	if unasked(&p.Record) {
		return memory.Verdict{Action: memory.Block, Findings: external}, nil
	}
	return memory.Verdict{}, nil
}

// Read stops what reached a session without a write, above all past turns.
func (originOnly) Read(_ context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	for i := range cs {
		if unasked(&cs[i].Record) {
			out[i].Action, out[i].Findings = memory.Block, external
		}
	}
	return out, nil
}

type attributionOnly struct{ memory.Open }

func (attributionOnly) Read(_ context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	for i := range cs {
		out[i].Attribute = cs[i].Record.Origin.Class == memory.External
	}
	return out, nil
}

type confirmAll struct{ memory.Open }

func (confirmAll) Act(_ context.Context, c memory.Call) (memory.Verdict, error) {
	for _, a := range c.Args {
		if slices.ContainsFunc(a.Lineage, func(l memory.Link) bool { return l.Origin.Class == memory.External }) {
			return memory.Verdict{Action: memory.Defer, Findings: restsOnExternal}, nil
		}
	}
	return memory.Verdict{}, nil
}

func unasked(r *memory.Record) bool { return r.Origin.Class == memory.External && !r.Asked }

// The findings never change, so that a decision costs nothing.
var (
	everyWrite      = []memory.Finding{{Check: "every_write", Note: "this control stops every write"}}
	everyRead       = []memory.Finding{{Check: "every_read", Note: "this control shows no stored record"}}
	restsOnExternal = []memory.Finding{{Check: "rests_on_external", Note: "an argument comes from external content"}}
	external        = []memory.Finding{{Check: "external_unasked", Note: "external content that the user did not ask to keep"}}
)
