package guard

import (
	"cmp"
	"context"
	"regexp"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/provenance"
	"github.com/memtox/memtox/defenses/signed"
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
		if d := &out[i]; d.Action <= memory.Redact && d.Scope <= memory.ContextOnly && q.K > 0 &&
			g.policy.Retrieval.MaxExternal > 0 && g.policy.Mode != Warn {
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
	if !stopped() && st.class < memory.User && !r.Asked && st.why != raisedApproved && g.policy.wants(WithheldCheck) {
		g.screen(&d, r)
	}
	if q.Route == memory.RouteTranscript && st.class == memory.Agent {
		// An answer repeats what the agent had read, and nobody noted what that was.
		st.lower("")
	}
	if !stopped() && g.policy.wants(LowTrustCheck) {
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
	d.Attribute = st.why == loweredStaged || st.why == loweredShared ||
		(g.policy.Authority.Attribute == Outside || !r.Asked && question.MatchString(cmp.Or(q.Said, q.Text))) && st.scope <= memory.ContextOnly
	if after := g.policy.Retrieval.StaleAfter; after > 0 && st.scope <= memory.ContextOnly &&
		g.view.Now().Sub(r.Created) > after {
		d.Rank = 1
	}
	if d.Action != memory.Redact {
		d.Text = ""
	}
	return d
}

// question is a request that asks for an answer and for nothing to be done. No call will
// show what the answer rests on, so that what outsiders say is told with its source.
var question = regexp.MustCompile(`(?i)^\s*(who|whom|whose|what|which|when|where|why|how)\b[^?]*\?\s*$`)

// screen takes out of a record what its source has no say in. A record of nothing else is
// not shown.
func (g *gate) screen(d *memory.Decision, r *memory.Record) {
	s, shown := &g.subject, r.Text
	if d.Action == memory.Redact {
		shown = d.Text
	}
	n := len(s.findings)
	rest := g.withhold(shown)
	if g.settle(n); s.action() <= memory.Allow || len(s.findings) == n {
		return
	}
	d.Action, d.Text = memory.Redact, rest
	if rest == "" {
		d.Action = memory.Quarantine
	}
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
