package defenses

import (
	"context"
	"fmt"
	"slices"

	"github.com/memtox/memtox/agents/memory"
)

// Part is one defense of a chain.
type Part struct {
	Name    string // for errors
	Defense Defense
	Screens []Place // the gates that it screens
}

// Chain composes defenses, which are asked in their order.
//
// The strictest verdict wins. Redactions compose: each defense sees the text as
// the one before left it. Findings add up, the scope is the narrowest that any
// of them sets, the score the highest. The first block ends the questions, and a
// recalled record that one defense stops is not shown to the next. Ranks add;
// attribution by any of them counts.
//
// Every part is told of every commit, so none needs to know what the others
// answered. Records are signed once all verdicts are in. Where several parts
// sign, their signatures are stored in one and taken apart again before a part
// sees the record.
//
// A record that one part redacts and another defers is deferred and held: a
// staged record would show the content that the redaction removes.
func Chain(parts ...Part) Defense { return &chain{parts: parts} }

type chain struct{ parts []Part }

func (c *chain) screens() []Place {
	var out []Place
	for _, p := range c.parts {
		for _, at := range p.Screens {
			if !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	slices.Sort(out)
	return out
}

// at places every part: a chain as a whole has no opinion of its own.
func (c *chain) at(place Place) (Defense, error) {
	moved := make([]Part, len(c.parts))
	for i, p := range c.parts {
		if _, already := p.Defense.(*placed); already {
			return nil, fmt.Errorf("its part %s is placed already: place either the parts or the whole chain", p.Name)
		}
		d, err := At(p.Defense, place, p.Screens)
		if err != nil {
			return nil, fmt.Errorf("its part %s: %w", p.Name, err)
		}
		moved[i] = Part{p.Name, d, []Place{place}}
	}
	return &chain{moved}, nil
}

func (c *chain) Open(ctx context.Context, view memory.View) (memory.Gate, error) {
	g := &chainGate{parts: make([]chainPart, len(c.parts))}
	for i, p := range c.parts {
		gate, err := p.Defense.Open(ctx, view)
		if err != nil {
			for _, opened := range g.parts[:i] {
				_ = closeGate(opened.gate)
			}
			return nil, fmt.Errorf("opening defense %s: %w", p.Name, err)
		}
		g.parts[i] = chainPart{name: p.Name, gate: gate}
		g.parts[i].signer, _ = gate.(Signer)
	}
	return g, nil
}

type chainPart struct {
	name   string
	gate   memory.Gate
	signer Signer
}

func (p *chainPart) failed(at Place, err error) error {
	return fmt.Errorf("defense %s at the %s gate: %w", p.name, at, err)
}

type chainGate struct {
	parts []chainPart
	marks []signature // scratch: one a part
}

// ask asks the parts one after the other until one blocks.
func (g *chainGate) ask(at Place, ask func(int, *chainPart) (memory.Verdict, error)) (out memory.Verdict, err error) {
	for i := range g.parts {
		p := &g.parts[i]
		v, err := ask(i, p)
		if err != nil {
			return out, p.failed(at, err)
		}
		if mergeVerdict(&out, v); out.Action == memory.Block {
			break
		}
	}
	return out, nil
}

func (g *chainGate) Input(ctx context.Context, s memory.Segment) (memory.Verdict, error) {
	return g.ask(Input, func(_ int, p *chainPart) (memory.Verdict, error) {
		v, err := p.gate.Input(ctx, s)
		if v.Action == memory.Redact {
			s.Text = v.Text
		}
		return v, err
	})
}

func (g *chainGate) Act(ctx context.Context, c memory.Call) (memory.Verdict, error) {
	return g.ask(Act, func(_ int, p *chainPart) (memory.Verdict, error) { return p.gate.Act(ctx, c) })
}

func (g *chainGate) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	g.marks = g.marks[:0]
	final, redacted := p.Record, false
	out, err := g.ask(Write, func(i int, part *chainPart) (memory.Verdict, error) {
		q := memory.Proposal{Op: p.Op, Route: p.Route, Record: own(final, i), Prior: owned(p.Prior, i)}
		v, err := part.gate.Write(ctx, q)
		if v.Action == memory.Redact {
			final.Text, redacted = v.Text, true
		}
		// A signer signs the final record below; what another defense signed is
		// taken over as it is.
		if part.signer == nil && len(v.Signature) > 0 {
			g.marks = append(g.marks, signature{i, v.SignedBy, v.Signature})
		}
		return v, err
	})
	if err != nil || out.Action == memory.Block || p.Op == memory.Remove {
		return out, err
	}
	switch {
	case out.Action == memory.Quarantine:
		final.Text = p.Record.Text // what is kept for review is kept as it came
	case redacted && out.Action == memory.Defer:
		out.Text = final.Text // what is staged is the redacted content
	}
	final.Scope = out.Scope
	g.sign(final)
	out.Signature, out.SignedBy = joinSignatures(g.marks)
	return out, nil
}

// Sign implements [Signer] for chains within chains.
func (g *chainGate) Sign(r memory.Record) ([]byte, string) {
	g.marks = g.marks[:0]
	g.sign(r)
	return joinSignatures(g.marks)
}

func (g *chainGate) sign(r memory.Record) {
	for i := range g.parts {
		if s := g.parts[i].signer; s != nil {
			if sig, by := s.Sign(r); len(sig) > 0 {
				g.marks = append(g.marks, signature{i, by, sig})
			}
		}
	}
}

func (g *chainGate) Read(ctx context.Context, q memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	at := make([]int, len(cs)) // where each candidate that is still shown stands in out
	shown := make([]memory.Candidate, len(cs))
	for i := range cs {
		at[i], shown[i] = i, cs[i]
	}
	asked := make([]memory.Candidate, 0, len(cs))
	for i := range g.parts {
		p := &g.parts[i]
		asked = asked[:0]
		for _, c := range shown {
			c.Record = own(c.Record, i)
			asked = append(asked, c)
		}
		ds, err := p.gate.Read(ctx, q, asked)
		if err != nil {
			return nil, p.failed(Read, err)
		}
		if len(ds) != len(asked) {
			return nil, p.failed(Read, fmt.Errorf("%d candidates went in, %d decisions came back", len(asked), len(ds)))
		}
		kept := 0
		for j, d := range ds {
			mergeDecision(&out[at[j]], d)
			if d.Action > memory.Redact { // the prompt will not hold it
				continue
			}
			c := shown[j]
			if d.Action == memory.Redact {
				c.Record.Text = d.Text
			}
			shown[kept], at[kept] = c, at[j]
			kept++
		}
		shown, at = shown[:kept], at[:kept]
	}
	return out, nil
}

func (g *chainGate) Seed(ctx context.Context, rs []memory.Record) ([]memory.Record, error) {
	if len(g.parts) == 0 {
		return rs, nil
	}
	final := slices.Clone(rs)
	marks := make([][]signature, len(rs))
	for i := range g.parts {
		p := &g.parts[i]
		in := slices.Clone(final)
		for j := range in {
			in[j] = own(rs[j], i)
			in[j].Text, in[j].Scope = final[j].Text, final[j].Scope
		}
		amended, err := p.gate.Seed(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("defense %s, seeding: %w", p.name, err)
		}
		if len(amended) != len(rs) {
			return nil, fmt.Errorf("defense %s, seeding: %d records went in, %d came back", p.name, len(rs), len(amended))
		}
		for j, r := range amended {
			if len(r.Signature) > 0 && p.signer == nil {
				marks[j] = append(marks[j], signature{i, r.SignedBy, r.Signature})
			}
			r.Signature, r.SignedBy = nil, ""
			final[j] = r
		}
	}
	for j := range final {
		g.marks = append(g.marks[:0], marks[j]...)
		g.sign(final[j])
		final[j].Signature, final[j].SignedBy = joinSignatures(g.marks)
	}
	return final, nil
}

// Answered tells every part.
func (g *chainGate) Answered(c memory.Call, agreed bool) {
	for i := range g.parts {
		g.parts[i].gate.Answered(c, agreed)
	}
}

func (g *chainGate) Committed(c memory.Change) {
	for i := range g.parts {
		g.parts[i].gate.Committed(memory.Change{Op: c.Op, Route: c.Route, Record: own(c.Record, i), Prior: owned(c.Prior, i)})
	}
}

// mergeVerdict adds a part's verdict to what the parts before it answered.
func mergeVerdict(out *memory.Verdict, v memory.Verdict) {
	if v.Action == memory.Redact {
		out.Text = v.Text
	}
	out.Held = out.Held || v.Action == memory.Defer && v.Held
	out.Action = max(out.Action, v.Action)
	out.Scope = narrower(out.Scope, v.Scope)
	out.Findings = join(out.Findings, v.Findings)
	if v.HasScore && (!out.HasScore || v.Score > out.Score) {
		out.Score, out.HasScore = v.Score, true
	}
	// A part that could not judge leaves no doubt once another one stopped it.
	out.Unsure = (out.Unsure || v.Unsure) && !out.Action.Stops()
	if out.Action != memory.Redact && out.Action != memory.Defer {
		out.Text = ""
	}
}

func mergeDecision(out *memory.Decision, d memory.Decision) {
	mergeVerdict(&out.Verdict, d.Verdict)
	out.Rank += d.Rank
	out.Attribute = out.Attribute || d.Attribute
	if out.Action != memory.Redact {
		out.Text = ""
	}
}

// join appends findings without writing into either list: defenses may hand out
// lists that they share.
func join(a, b []memory.Finding) []memory.Finding {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	return slices.Concat(a, b)
}

// narrower returns the scope with less authority; unset is no opinion.
func narrower(a, b memory.Scope) memory.Scope {
	if a == memory.ScopeUnset || b != memory.ScopeUnset && b < a {
		return b
	}
	return a
}
