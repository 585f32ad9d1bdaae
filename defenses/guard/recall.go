package guard

import (
	"context"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/provenance"
	"github.com/memtox/memtox/defenses/signed"
)

// The order in which a recall shows what it may show: what may act, then what is
// only told, then what waits for a decision, each with its stale records last.
const (
	rankTrusted = 2 * iota
	rankTold
	rankStaged
	stale = 1
)

func (g *gate) Read(ctx context.Context, q memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.Principal == "" {
		q.Principal = g.view.Principal()
	}
	out := make([]memory.Decision, len(cs))
	high := g.intents(q.Text)
	told := 0
	for i := range cs {
		began := g.begin()
		out[i] = g.read(q, &cs[i].Record, high)
		// Candidates come in the order of relevance, so that the best are kept.
		if d := &out[i]; d.Action <= memory.Redact && d.Rank >= rankTold && q.K > 0 && g.policy.Retrieval.MaxExternal > 0 &&
			g.policy.Mode != Warn {
			if told++; told > g.policy.Retrieval.MaxExternal {
				g.overCap(d, &cs[i].Record)
			}
		}
		g.subject.Record = cs[i].Record
		g.emit(ctx, Event{Gate: memory.AtRead, Route: q.Route}, out[i].Action, began)
	}
	return out, nil
}

// read decides about one candidate. What one check stops is not shown to the
// next.
func (g *gate) read(q memory.Query, r *memory.Record, high []provenance.Intent) memory.Decision {
	s := &g.subject
	s.key, s.class, s.findings = keys{raw: r.Key}, leastClass(r), s.findings[:0]
	var d memory.Decision
	stopped := func() bool {
		d.Action = max(d.Action, s.action())
		return d.Action > memory.Redact
	}
	if r.Principal != q.Principal && r.Principal != everybody {
		s.add(found(PrincipalCheck, Critical, "foreign_principal", "the record belongs to another principal"))
		g.settle(0)
	}
	if !stopped() && q.Route != memory.RouteTranscript { // past turns have never been signed
		if why := g.signer.Verify(r); why != "" {
			n := len(s.findings)
			s.add(found(SignatureCheck, Critical, why, signed.Note(why)))
			g.settle(n)
		}
	}
	if !stopped() {
		d.Text = g.scanRead(r)
	}
	st := g.standing(r)
	if q.Route == memory.RouteTranscript && st.class == memory.Agent {
		// An answer repeats what the agent had read, and nobody noted what that was.
		st.lower("")
	}
	if !stopped() {
		n := len(s.findings)
		s.findings = lowTrustRead(g, r, high, s.findings)
		g.settle(n)
		stopped()
	}
	d.Findings = s.reasons()
	if g.policy.Mode == Warn {
		return memory.Decision{Verdict: memory.Verdict{Findings: d.Findings}}
	}
	if d.Action > memory.Redact {
		d.Text = ""
		return d
	}
	d.Scope = st.scope
	d.Attribute = g.told(r, &st, high)
	if d.Action != memory.Redact {
		d.Text = ""
	}
	d.Rank = g.rank(r, &st)
	return d
}

// rank orders what is shown: by authority first, then by age, so that no flood of
// external records can push a trusted one out.
func (g *gate) rank(r *memory.Record, s *standing) int {
	rank := rankTrusted
	switch {
	case s.scope > memory.ContextOnly:
		return rank
	case r.State == memory.Staged:
		rank = rankStaged
	default:
		rank = rankTold
	}
	if after := g.policy.Retrieval.StaleAfter; after > 0 && g.view.Now().Sub(r.Created) > after {
		rank += stale
	}
	return rank
}

// overCap leaves a record out of a recall that holds enough from outside.
func (g *gate) overCap(d *memory.Decision, r *memory.Record) {
	s := &g.subject
	s.key, s.class, s.findings = keys{raw: r.Key}, leastClass(r), s.findings[:0]
	s.add(found(CapCheck, Low, "external_cap", "the recall holds as many external records as it may"))
	g.settle(0)
	if a := s.action(); a > memory.Allow {
		d.Action, d.Text, d.Attribute = a, "", false
	}
	d.Findings = append(d.Findings[:len(d.Findings):len(d.Findings)], s.findings[0].Finding)
}
