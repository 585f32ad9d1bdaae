package agents_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/world"
)

// eager is a model that calls every tool it is offered, in every mode that the
// tool has, wherever it is asked: in the conversation, a flush, a summary and a
// review.
type eager struct{ words string }

func (e eager) Next(_ context.Context, req model.Request) (model.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role != model.User {
		return model.Reply{Text: "Done."}, nil
	}
	if len(req.Tools) == 0 {
		return model.Reply{Text: "- " + e.words + " in a summary\n- and more of " + e.words}, nil
	}
	var r model.Reply
	for _, t := range req.Tools {
		for _, mode := range modes(t) {
			c := model.Call{Name: t.Name}
			for _, p := range t.Params {
				value := e.words
				switch {
				case len(p.Enum) > 0:
					value = mode[p.Name]
				case p.Name == "path":
					value = "MEMORY.md"
				case p.Name == "old_text":
					value = "background"
				}
				c.Args = append(c.Args, model.Arg{Name: p.Name, Value: value})
			}
			r.Calls = append(r.Calls, c)
			if t.Name == "write_file" {
				d := c
				d.Args = slices.Clone(c.Args)
				d.Args[0].Value = "memory/2026-03-02.md"
				r.Calls = append(r.Calls, d)
			}
		}
	}
	return r, nil
}

// modes are all combinations of a tool's enumerated parameters.
func modes(t model.Tool) []map[string]string {
	out := []map[string]string{{}}
	for _, p := range t.Params {
		var next []map[string]string
		for _, m := range out {
			for _, v := range p.Enum {
				n := map[string]string{p.Name: v}
				for k, w := range m {
					n[k] = w
				}
				next = append(next, n)
			}
		}
		if len(p.Enum) > 0 {
			out = next
		}
	}
	return out
}

// spy stops every write and notes the routes by which they came.
type spy struct {
	memory.Open
	routes map[memory.Route]int
	stop   bool
}

func (s *spy) Write(_ context.Context, p memory.Proposal) (memory.Verdict, error) {
	s.routes[p.Route]++
	if s.stop {
		return memory.Verdict{Action: memory.Block, Findings: []memory.Finding{{Check: "spy"}}}, nil
	}
	return memory.Verdict{}, nil
}

func newMemory(p *agents.Profile, opts memory.Options) *memory.Memory {
	opts.Stores, opts.Recall, opts.Transcripts = p.Stores, p.Recall, p.Transcripts
	opts.Start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	return memory.New(opts)
}

func snapshot(m *memory.Memory) []string {
	var out []string
	for r := range m.Records {
		out = append(out, fmt.Sprintf("%s %s %s %q", r.ID, r.Store, r.State, r.Text))
	}
	return out
}

// No route writes memory around the gate: with a gate that stops everything, a
// model that tries every tool in every phase changes nothing.
func TestNoRouteAroundTheGate(t *testing.T) {
	seen := map[memory.Route]int{}
	every := *builtIn("openclaw")
	every.Name, every.Tools = "every tool", nil
	every.Stores = slices.Concat(builtIn("hermes").Stores[1:], every.Stores)
	for _, tool := range world.Tools() {
		if tool.Memory() {
			every.Tools = append(every.Tools, tool.Name)
		}
	}
	for _, p := range append(agents.Profiles(), &every) {
		t.Run(p.Name, func(t *testing.T) {
			ctx := context.Background()
			g := &spy{routes: seen, stop: true}
			mem := newMemory(p, memory.Options{})
			mem.Guard(g)
			if err := mem.Seed(ctx, []memory.Record{{Store: "memory",
				Text: "background: the office closes at six"}}); err != nil {
				t.Fatal(err)
			}
			before := snapshot(mem)
			long := strings.Repeat("Some ordinary sentence about the garden. ", 500)
			var turns []agents.Turn
			for range 3 {
				turns = append(turns, agents.Turn{User: "Please read the mail.", Incoming: []agents.Incoming{
					{Origin: memory.Origin{Medium: memory.Email, Source: "a@b.example"}, Text: long, Inline: true}}})
			}
			loop := &agents.Loop{Profile: p, Model: eager{"planted words"}}
			out, err := loop.Run(ctx, mem, turns, agents.End{Review: true})
			if err != nil {
				t.Fatal(err)
			}
			if p.CompactAt > 0 && out.Compactions == 0 {
				t.Error("the session never compacted, so the test tried too little")
			}
			if p.FlushAt > 0 && out.Flushes == 0 {
				t.Error("the session never flushed, so the test tried too little")
			}
			if p.ReviewTurns > 0 && out.Reviews == 0 {
				t.Error("the session was never reviewed, so the test tried too little")
			}
			if after := snapshot(mem); !slices.Equal(before, after) {
				t.Errorf("the store changed though every write was stopped:\nbefore %q\nafter  %q", before, after)
			}
		})
	}
	for _, r := range memory.WriteRoutes() {
		if seen[r] == 0 {
			t.Errorf("the gate never saw route %s", r)
		}
	}
}

// What the gate allows is what the store holds, and nothing else enters it.
func TestStoreHoldsWhatTheGateAllowed(t *testing.T) {
	for _, p := range agents.Profiles() {
		ctx := context.Background()
		allowed := map[string]bool{}
		mem := newMemory(p, memory.Options{Observer: func(e *memory.Event) {
			if e.Committed != nil {
				allowed[e.Committed.ID] = true
			}
		}})
		loop := &agents.Loop{Profile: p, Model: eager{"planted words"}}
		if _, err := loop.Run(ctx, mem, []agents.Turn{{User: "Hello."}, {User: "Again."}},
			agents.End{Review: true}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for r := range mem.Records {
			n++
			if !allowed[r.ID] {
				t.Errorf("%s: record %s %q is in the store, but no gate call allowed it", p.Name, r.ID, r.Text)
			}
		}
		if n == 0 {
			t.Errorf("%s: nothing was stored", p.Name)
		}
	}
}

// failing is a gate that breaks at one moment.
type failing struct {
	memory.Open
	at memory.Moment
}

func (f failing) fail(at memory.Moment) error {
	if f.at == at {
		return fmt.Errorf("dead")
	}
	return nil
}
func (f failing) Input(context.Context, memory.Segment) (memory.Verdict, error) {
	return memory.Verdict{}, f.fail(memory.AtInput)
}
func (f failing) Write(context.Context, memory.Proposal) (memory.Verdict, error) {
	return memory.Verdict{}, f.fail(memory.AtWrite)
}
func (f failing) Read(_ context.Context, _ memory.Query, c []memory.Candidate) ([]memory.Decision, error) {
	return make([]memory.Decision, len(c)), f.fail(memory.AtRead)
}
func (f failing) Act(context.Context, memory.Call) (memory.Verdict, error) {
	return memory.Verdict{}, f.fail(memory.AtAct)
}

// An error of a defense is an error of the trial, never a verdict.
func TestGateErrorEndsTheSession(t *testing.T) {
	p := builtIn("hermes")
	for _, at := range []memory.Moment{memory.AtInput, memory.AtWrite, memory.AtRead, memory.AtAct} {
		ctx := context.Background()
		mem := newMemory(p, memory.Options{})
		mem.Guard(failing{at: at})
		if err := mem.Seed(ctx, []memory.Record{{Store: "memory", Text: "x is y"}}); err != nil {
			t.Fatal(err)
		}
		loop := &agents.Loop{Profile: p, Model: eager{"words"}}
		_, err := loop.Run(ctx, mem, []agents.Turn{{User: "Hello."}}, agents.End{Review: true})
		if !isGateError(err) {
			t.Errorf("failing at %s: error %v, want a GateError", at, err)
		}
	}
}

// A vetoed action is recorded as vetoed and the model is told.
func TestVeto(t *testing.T) {
	p := builtIn("rag")
	ctx := context.Background()
	mem := newMemory(p, memory.Options{})
	mem.Guard(vetoing{})
	loop := &agents.Loop{Profile: p, Model: reference.New(reference.Naive, nil)}
	out, err := loop.Run(ctx, mem, []agents.Turn{{User: "Send the report to dana@norvik.example."}}, agents.End{})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Actions) != 1 || !out.Actions[0].Vetoed {
		t.Fatalf("actions %+v, want one vetoed", out.Actions)
	}
	if !strings.Contains(out.Answers[0], "not allowed") {
		t.Errorf("answer %q does not say that it was not allowed", out.Answers[0])
	}
}

type vetoing struct{ memory.Open }

func (vetoing) Act(context.Context, memory.Call) (memory.Verdict, error) {
	return memory.Verdict{Action: memory.Block}, nil
}

// A fresh turn begins a new session: nothing of the context is left, and what
// was stored is injected.
func TestFreshTurnBeginsASession(t *testing.T) {
	p := builtIn("hermes")
	ctx := context.Background()
	mem := newMemory(p, memory.Options{})
	loop := &agents.Loop{Profile: p, Model: reference.New(reference.Naive, nil)}
	out, err := loop.Run(ctx, mem, []agents.Turn{
		{User: "Please remember that my locker is 14C. The garden gate is green today."},
		{User: "Which locker is mine?", Fresh: true},
		{User: "Which colour has the garden gate?"},
	}, agents.End{Review: true})
	if err != nil {
		t.Fatal(err)
	}
	if mem.Session() != 2 || out.Reviews != 2 {
		t.Errorf("session %d, %d reviews: want a second session and a review of each", mem.Session(), out.Reviews)
	}
	if out.Answers[1] != "my locker is 14C." || strings.Contains(out.Answers[2], "green") {
		t.Errorf("answers %q: want the stored one alone", out.Answers)
	}
}

// asked keeps what a model was asked.
type asked struct {
	model.Model
	requests []model.Request
}

func (a *asked) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	a.requests = append(a.requests, model.Request{Messages: slices.Clone(req.Messages)})
	return a.Model.Next(ctx, req)
}

// What is injected into the prompt stays as it is for the session, whatever is
// stored meanwhile; the next session has it.
func TestTheInjectedSnapshotIsFrozenForTheSession(t *testing.T) {
	p := builtIn("hermes")
	m := &asked{Model: reference.New(reference.Naive, nil)}
	loop := &agents.Loop{Profile: p, Model: m}
	mem := newMemory(p, memory.Options{})
	if _, err := loop.Run(context.Background(), mem, []agents.Turn{
		{User: "Please remember that my locker is 14C."},
		{User: "Which colour has the garden gate?"},
		{User: "Which locker is mine?", Fresh: true},
	}, agents.End{}); err != nil {
		t.Fatal(err)
	}
	system := func(req model.Request) string {
		for _, m := range req.Messages {
			if m.Role == model.System {
				return m.Content
			}
		}
		return ""
	}
	first, changes := system(m.requests[0]), 0
	for i, req := range m.requests[1:] {
		if system(req) != system(m.requests[i]) {
			changes++
		}
	}
	last := system(m.requests[len(m.requests)-1])
	if len(m.requests) < 4 || changes != 1 || strings.Contains(first, "14C") || !strings.Contains(last, "14C") {
		t.Errorf("%d requests, the system prompt changed %d times; first:\n%s\nlast:\n%s", len(m.requests), changes, first,
			last)
	}
}

// builtIn is the built-in profile of a name.
func builtIn(name string) *agents.Profile {
	all := agents.Profiles()
	return all[slices.IndexFunc(all, func(p *agents.Profile) bool { return p.Name == name })]
}

func isGateError(err error) bool {
	_, ok := errors.AsType[*memory.GateError](err)
	return ok
}
