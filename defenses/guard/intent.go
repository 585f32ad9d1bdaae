package guard

import (
	"slices"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/provenance"
)

// lowTrustWrite finds records of little trust that bear on a high-risk intent or
// state a standing rule.
func lowTrustWrite(g *gate, s *subject) {
	r := &s.Record
	if s.Op == memory.Remove || !g.policy.wants(HighRiskCheck) && !g.policy.wants(StandingRuleCheck) || !g.policy.low(r, g.policy.HighRisk.WriteFloor) {
		return
	}
	terms := g.terms.Terms(&s.layers()[0].Text)
	if len(terms) == 0 {
		return
	}
	for _, t := range terms {
		f := found(StandingRuleCheck, Medium, provenance.StandingRule, "a source of little trust states how to behave")
		if t.Intent != "" {
			if !slices.Contains(g.policy.HighRisk.Intents, string(t.Intent)) {
				continue
			}
			f = found(HighRiskCheck, Medium, lowTrust+string(t.Intent)+"_intent",
				"a source of little trust bears on this intent")
		}
		f.Start, f.End = t.Start, t.End
		s.add(f)
	}
}

const (
	lowTrust   = "low_trust_source_for_"
	notAllowed = "intent_not_allowed_for_"
	trusted    = "trusted_source_for_"
)

// intents are the high-risk intents of a query, as far as the policy knows them.
func (g *gate) intents(query string) []provenance.Intent { return g.known(provenance.Intents(query)) }

// known keeps the intents that the policy names.
func (g *gate) known(in []provenance.Intent) []provenance.Intent {
	return slices.DeleteFunc(in, func(i provenance.Intent) bool {
		return !slices.Contains(g.policy.HighRisk.Intents, string(i))
	})
}

// lowTrustRead finds recalled records that must not govern the intents of the
// query. Records that may carry the reason why.
func lowTrustRead(g *gate, r *memory.Record, high []provenance.Intent, out []Finding) []Finding {
	if len(high) == 0 {
		return append(out, note(LowTrustCheck, "no_high_risk_intent", "the query shows no high-risk intent"))
	}
	low := g.policy.low(r, g.policy.HighRisk.TrustFloor)
	for _, in := range high {
		f := note(LowTrustCheck, trusted+string(in)+"_intent", "the record's source may govern this intent")
		switch {
		case low:
			f = found(LowTrustCheck, High, lowTrust+string(in)+"_intent",
				"the record's source is not trusted to govern this intent")
		case r.Intents != nil && !slices.Contains(r.Intents, string(in)):
			f = found(LowTrustCheck, High, notAllowed+string(in)+"_intent", "the record may not govern this intent")
		}
		out = append(out, f)
	}
	return out
}

func intentsNamed(name string) []provenance.Intent {
	return []provenance.Intent{provenance.Intent(name)}
}
