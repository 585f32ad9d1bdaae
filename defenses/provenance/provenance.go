// Package provenance is the intent-aware gate of a published sandbox: memory of
// little trust cannot govern a high-risk intent, however relevant it is.
//
// Relevance says that a text is about the query, not that it may decide. At the
// read gate the defense reads the intent off the query; where it is payment,
// identity, deployment or security, records below the floor of trust are
// quarantined with low_trust_source_for_<intent>_intent, and the rest is shown.
// Every decision, the allowed ones too, carries its reason.
//
// At the write gate a record below the lower write floor (external content, that
// is) is quarantined if it bears on a high-risk intent, and deferred and held if
// it states a standing rule: how to behave from now on rather than what is so.
// Both are kept for review. What the user asked to keep is let through here; it
// still cannot govern a high-risk intent when it is recalled, for somebody's page
// does not become the user's word by being saved.
//
// Trust is a matter of the origin, which the harness sets, and of the score that
// a structured record brings. The gate does not look for signs of an attack, so it
// also holds back honest external content about payments and the like.
package provenance

import (
	"context"
	"slices"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/text"
)

// Register adds the defense provenance.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:    "provenance",
		Screens: []defenses.Place{defenses.Write, defenses.Read},
		Idea:    "low-trust records cannot govern high-risk intents; quarantined and logged, not lost",
		Cost:    "no model calls; under 1 µs a write and a recalled record, some µs for a flagged one; no state",
	}, func(string, defenses.Env) (defenses.Defense, error) { return New(), nil })
}

// StandingRule is the check of a low-trust record that states a standing rule.
const StandingRule = "low_trust_standing_rule"

// The other checks end in the intent and "_intent".
const (
	lowTrust   = "low_trust_source_for_"
	notAllowed = "intent_not_allowed_for_"
	trusted    = "trusted_source_for_"
)

// New returns the defense.
func New() defenses.Defense {
	return defenses.Func(func(context.Context, memory.View) (memory.Gate, error) { return &gate{policy: compiled()}, nil })
}

type gate struct {
	memory.Open
	policy  *policy
	matches []text.Match
}

func (g *gate) Write(_ context.Context, p memory.Proposal) (memory.Verdict, error) {
	r := &p.Record
	if p.Op == memory.Remove || !g.policy.low(r, g.policy.WriteFloor) {
		return memory.Verdict{}, nil
	}
	g.matches = g.policy.terms.Find(g.matches[:0], r.Text, text.Scan(r.Text))
	if len(g.matches) == 0 {
		return memory.Verdict{}, nil
	}
	if r.Asked {
		return memory.Verdict{Findings: asked}, nil
	}
	v := memory.Verdict{Action: memory.Defer, Held: true}
	for _, m := range g.matches {
		f := memory.Finding{Check: StandingRule, Note: "a source of little trust states how to behave", Start: m.Start,
			End: m.End}
		if m.Entry < standingRule {
			v.Action, v.Held = memory.Quarantine, false
			f.Check, f.Note = lowTrust+string(intents[m.Entry])+"_intent", "a source of little trust bears on this intent"
		}
		v.Findings = append(v.Findings, f)
	}
	return v, nil
}

func (g *gate) Read(_ context.Context, q memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	high := Intents(q.Text)
	if len(high) == 0 {
		for i := range out {
			out[i].Findings = noIntent
		}
		return out, nil
	}
	// All low records have the same reasons, and so have all trusted ones.
	low := reasons(lowTrust, high, "the record's source is not trusted to govern this intent")
	fine := reasons(trusted, high, "the record's source may govern this intent")
	for i := range cs {
		r := &cs[i].Record
		switch {
		case g.policy.low(r, g.policy.Floor):
			out[i].Action, out[i].Findings = memory.Quarantine, low
		case r.Intents != nil && len(missing(r.Intents, high)) > 0:
			out[i].Action = memory.Quarantine
			out[i].Findings = reasons(notAllowed, missing(r.Intents, high), "the record may not govern this intent")
		default:
			out[i].Findings = fine
		}
	}
	return out, nil
}

func reasons(prefix string, high []Intent, note string) []memory.Finding {
	out := make([]memory.Finding, len(high))
	for i, in := range high {
		out[i] = memory.Finding{Check: prefix + string(in) + "_intent", Note: note}
	}
	return out
}

func missing(own []string, high []Intent) []Intent {
	return slices.DeleteFunc(slices.Clone(high), func(in Intent) bool { return slices.Contains(own, string(in)) })
}

// These never change, so that a plain decision costs nothing.
var (
	noIntent = []memory.Finding{{Check: "no_high_risk_intent", Note: "the query shows no high-risk intent"}}
	asked    = []memory.Finding{{Check: "asked_by_user",
		Note: "a source of little trust, kept because the user asked for it"}}
)
