package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/text"
)

// gate asks the guard about one trial. The guard's state of a trial lives in one
// connection: when that is lost, so is the trial.
type gate struct {
	guard *guard
	peer  peer
	ops   map[string]bool
	view  memory.View
	ctx   context.Context // the trial's
	trial uint64
	pass  string // without it nobody can ask about the trial

	told    map[string]bool // records that the guard knows to be stored
	waiting []func(context.Context) (*Answer, error)
	err     error // the trial is lost
	said    bool  // a call returned err
}

// lose keeps the first error of the trial. The next call of any gate returns it,
// or else Close: a change that the guard could not be told of must not pass
// unseen.
func (g *gate) lose(err error) {
	if g.err == nil {
		g.err = fmt.Errorf("%s: %w", g.guard.spec, err)
	}
}

// broken loses the trial and returns why.
func (g *gate) broken(err error) error {
	g.lose(err)
	return g.ready()
}

// ready returns the error by which the trial was lost.
func (g *gate) ready() error {
	g.said = g.said || g.err != nil
	return g.err
}

// prepare fills what every request of the trial has.
func (g *gate) prepare(op string, q *Request) {
	now := g.view.Now()
	q.Op, q.Trial, q.Now, q.Pass = op, g.trial, &now, g.pass
}

// tell sends what needs no answer at once. The answer is collected with the next
// question's.
func (g *gate) tell(ctx context.Context, op string, q *Request) {
	if !g.ops[op] || g.err != nil {
		return
	}
	g.prepare(op, q)
	ctx, cancel := g.guard.within(ctx)
	defer cancel()
	await, err := g.peer.send(ctx, q)
	if err != nil {
		g.lose(fmt.Errorf("%s: %w", op, err))
		return
	}
	g.waiting = append(g.waiting, func(ctx context.Context) (*Answer, error) {
		a, err := answered(await(ctx))
		if err != nil {
			err = fmt.Errorf("%s: %w", op, err)
		}
		return a, err
	})
}

// ask asks the guard and books the time.
func (g *gate) ask(ctx context.Context, op string, q *Request) (*Answer, error) {
	if err := g.ready(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	g.around(ctx)
	g.prepare(op, q)
	began := time.Now()
	a, err := g.guard.ask(ctx, g.peer, q)
	took := time.Since(began)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, g.broken(err)
	}
	if a.TookUS < 0 {
		return nil, g.broken(fmt.Errorf("the answer's took_us is negative: %g", a.TookUS))
	}
	own := time.Duration(min(a.TookUS, float64(took/time.Microsecond)) * float64(time.Microsecond))
	// Guards work in order, so what was told before is answered by now, mostly.
	done, cancel := context.WithCancel(ctx)
	cancel()
	var late []func(context.Context) (*Answer, error)
	for _, await := range g.waiting {
		b, err := await(done)
		switch {
		case errors.Is(err, context.Canceled):
			late = append(late, await)
		case err != nil:
			return nil, g.broken(err)
		default:
			own += time.Duration(max(0, b.TookUS) * float64(time.Microsecond))
		}
	}
	g.waiting = late
	if a.TookUS > 0 {
		memory.AddWire(ctx, took-own)
	}
	g.guard.mu.Lock()
	g.guard.failures = 0 // it does its work
	g.guard.mu.Unlock()
	return a, nil
}

// around tells the guard of records that came into the store beside the gate.
func (g *gate) around(ctx context.Context) {
	if g.told == nil || g.view.Len() == len(g.told) {
		return
	}
	for r := range g.view.Each {
		if !g.told[r.ID] {
			g.told[r.ID] = true
			g.tell(ctx, Committed, &Request{Change: memory.Add.String(), Principal: r.Principal, Record: RecordOf(&r),
				Around: true})
		}
	}
}

func (g *gate) Input(ctx context.Context, s memory.Segment) (memory.Verdict, error) {
	return g.judge(ctx, Input, &Request{Principal: g.view.Principal(), Segment: s.ID, Turn: s.Turn,
		Record: RecordOf(&memory.Record{Text: s.Text, Origin: s.Origin})})
}

// judge asks for a verdict. What the guard does not want to be asked is let through.
func (g *gate) judge(ctx context.Context, op string, q *Request) (memory.Verdict, error) {
	if !g.ops[op] {
		return memory.Verdict{}, g.ready()
	}
	a, err := g.ask(ctx, op, q)
	if err != nil {
		return memory.Verdict{}, err
	}
	v, err := a.verdict()
	if err != nil {
		return memory.Verdict{}, g.broken(err)
	}
	return v, nil
}

func (g *gate) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	return g.judge(ctx, Write, &Request{Route: p.Route, Change: p.Op.String(), Principal: p.Record.Principal,
		Record: RecordOf(&p.Record), Prior: RecordOf(p.Prior)})
}

func (g *gate) Read(ctx context.Context, q memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	if !g.ops[Read] || len(cs) == 0 {
		return out, g.ready()
	}
	r := &Request{Route: q.Route, Query: q.Text, Said: q.Said, Principal: q.Principal, K: q.K, Candidates: make([]Candidate, len(cs))}
	for i := range cs {
		r.Candidates[i] = Candidate{*RecordOf(&cs[i].Record), cs[i].Score}
	}
	a, err := g.ask(ctx, Read, r)
	if err != nil {
		return nil, err
	}
	if len(a.Decisions) != len(cs) {
		return nil, g.broken(fmt.Errorf("it was asked to read %d candidates and gave %d decisions: answer one a "+
			"candidate, in their order", len(cs), len(a.Decisions)))
	}
	for i := range a.Decisions {
		if out[i], err = a.Decisions[i].decision(); err != nil {
			return nil, g.broken(fmt.Errorf("decision %d: %w", i+1, err))
		}
	}
	return out, nil
}

func (g *gate) Act(ctx context.Context, c memory.Call) (memory.Verdict, error) {
	q := &Request{Tool: c.Tool, Query: c.Query.Text, QueryRoute: c.Query.Route, Principal: c.Query.Principal, K: c.Query.K}
	for _, a := range c.Args {
		q.Args = append(q.Args, Arg(a))
	}
	return g.judge(ctx, Act, q)
}

func (g *gate) Seed(ctx context.Context, rs []memory.Record) ([]memory.Record, error) {
	if !g.ops[Seed] || g.err != nil {
		return rs, g.ready()
	}
	q := &Request{Principal: g.view.Principal()}
	for i := range rs {
		q.Records = append(q.Records, *RecordOf(&rs[i]))
	}
	a, err := g.ask(ctx, Seed, q)
	if err != nil {
		return nil, err
	}
	if len(a.Records) != len(rs) {
		return nil, g.broken(fmt.Errorf("%d records were seeded and %d came back: answer one a record, in their order",
			len(rs), len(a.Records)))
	}
	out := make([]memory.Record, len(rs))
	for i, r := range rs {
		j := &a.Records[i]
		if j.Action != "" && j.Action != memory.Allow.String() {
			return nil, g.broken(fmt.Errorf("record %d of the seed: it says %s: only its owner seeds what it would not store (%s)",
				i+1, text.Clip(j.Action, 40), OwnerVariable))
		}
		if len(j.Signature) > maxSignature || len(j.SignedBy) > maxCheck {
			return nil, g.broken(fmt.Errorf("record %d: its signature is longer than %d bytes, or its signed_by than %d", i+1,
				maxSignature, maxCheck))
		}
		r.Scope, r.Signature, r.SignedBy = j.Scope, j.Signature, j.SignedBy
		out[i] = r
	}
	return out, nil
}

func (g *gate) Committed(c memory.Change) {
	if !g.ops[Committed] {
		return
	}
	g.told[c.Record.ID] = true
	g.tell(g.ctx, Committed, &Request{Route: c.Route, Change: c.Op.String(), Principal: c.Record.Principal,
		Record: RecordOf(&c.Record), Prior: RecordOf(c.Prior)})
}

// Close ends the trial. It asks one last question, so that whatever the guard
// still had to say about the trial (a second answer, its death) is known before
// the trial counts.
func (g *gate) Close() error {
	if g.ctx.Err() != nil { // interrupted: the trial is run again
		return nil
	}
	switch {
	case g.said:
		return nil
	case g.err != nil:
		return g.err
	}
	op, q := Hello, &Request{Op: Hello, Protocol: Protocol}
	if g.ops[Close] {
		op, q = Close, new(Request)
		g.prepare(op, q)
	}
	if _, err := g.guard.ask(g.ctx, g.peer, q); err != nil {
		if g.ctx.Err() != nil {
			return nil
		}
		return g.broken(fmt.Errorf("at the end of the trial: %w", err))
	}
	ctx, cancel := g.guard.within(g.ctx)
	defer cancel()
	for _, await := range g.waiting {
		if _, err := await(ctx); err != nil {
			return g.broken(err)
		}
	}
	return nil
}

var _ defenses.Remote = (*guard)(nil)

// Answered implements [memory.Gate]. The protocol does not carry it.
func (g *gate) Answered(memory.Call, bool) {}
