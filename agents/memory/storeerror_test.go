package memory_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/memtox/memtox/agents/memory"
)

// broken is a store whose calls fail from the nth on.
type broken struct {
	memory.Store
	left int
}

var errDisk = errors.New("the disk is full")

func (b *broken) fails() bool { b.left--; return b.left < 0 }

func (b *broken) Get(ctx context.Context, id string) (memory.Record, bool, error) {
	if b.fails() {
		return memory.Record{}, false, errDisk
	}
	return b.Store.Get(ctx, id)
}

func (b *broken) ByKey(ctx context.Context, store, key string) (memory.Record, bool, error) {
	if b.fails() {
		return memory.Record{}, false, errDisk
	}
	return b.Store.ByKey(ctx, store, key)
}

func (b *broken) Visible(ctx context.Context, stores ...string) ([]memory.Record, error) {
	if b.fails() {
		return nil, errDisk
	}
	return b.Store.Visible(ctx, stores...)
}

func (b *broken) Each(ctx context.Context, yield func(*memory.Record) bool) error {
	if b.fails() {
		return errDisk
	}
	return b.Store.Each(ctx, yield)
}

func (b *broken) Len(ctx context.Context) (int, error) {
	if b.fails() {
		return 0, errDisk
	}
	return b.Store.Len(ctx)
}

func (b *broken) Used(ctx context.Context, store string) (int, error) {
	if b.fails() {
		return 0, errDisk
	}
	return b.Store.Used(ctx, store)
}

func (b *broken) NextID(ctx context.Context) (string, error) {
	if b.fails() {
		return "", errDisk
	}
	return b.Store.NextID(ctx)
}

func (b *broken) Last(ctx context.Context) (uint64, error) {
	if b.fails() {
		return 0, errDisk
	}
	return 0, nil
}

func (b *broken) CommitLater(ctx context.Context, batch *memory.Batch) (memory.Committed, error) {
	return b.Commit(ctx, batch)
}

func (b *broken) Sync(context.Context) error { return nil }

func (b *broken) Changes(context.Context, uint64, uint64) iter.Seq2[memory.Change, error] {
	return func(func(memory.Change, error) bool) {}
}

func (b *broken) Commit(ctx context.Context, batch *memory.Batch) (memory.Committed, error) {
	if b.fails() {
		return memory.Committed{}, errDisk
	}
	return b.Store.Commit(ctx, batch)
}

// looking is a gate that looks into the store before it answers.
type looking struct {
	memory.Open
	view      memory.View
	committed int
}

func (g *looking) look() {
	g.view.Len()
	g.view.Get("r1")
	g.view.ByKey("memory", "k")
	g.view.Each(func(memory.Record) bool { return true })
}

func (g *looking) Input(context.Context, memory.Segment) (memory.Verdict, error) {
	g.look()
	return memory.Verdict{}, nil
}

func (g *looking) Write(context.Context, memory.Proposal) (memory.Verdict, error) {
	g.look()
	return memory.Verdict{}, nil
}

func (g *looking) Read(_ context.Context, _ memory.Query, c []memory.Candidate) ([]memory.Decision, error) {
	g.look()
	return make([]memory.Decision, len(c)), nil
}

func (g *looking) Act(context.Context, memory.Call) (memory.Verdict, error) {
	g.look()
	return memory.Verdict{}, nil
}

func (g *looking) Committed(memory.Change) { g.committed++ }

// Wherever the store fails, the trial gets its error: never a verdict, an empty recall
// or a record that is not there. And whatever the gate was told of is there.
func TestErrorsOfTheStoreAreErrorsOfTheTrial(t *testing.T) {
	run := func(n int) (calls int, err error) {
		b := &broken{memory.NewStore(), n}
		m := newMemory(memory.Options{Store: b})
		g := &looking{view: m.View()}
		m.Guard(g)
		defer func() {
			calls = n - b.left
			if err == nil {
				err = m.Err()
			}
			held := 0
			b.Store.Each(ctx, func(r *memory.Record) bool {
				if r.State != memory.Retired {
					held++
				}
				return true
			})
			if err != nil && g.committed < held {
				t.Errorf("call %d failed: the store holds %d records, the gate was told of %d changes", n+1, held, g.committed)
			}
		}()
		if err := m.Seed(ctx, []memory.Record{{Store: "memory", Text: "The user has a dog."}}); err != nil {
			return 0, err
		}
		if _, err := m.Take(ctx, fromUser, 1, "I like tea. Call Ana."); err != nil {
			return 0, err
		}
		for _, d := range []memory.Draft{
			add("I like tea."),
			{Route: memory.RouteMemoryTool, Store: "memory", Op: memory.Replace, Old: "tea", Text: "I like green tea."},
			{Route: memory.RouteMemoryTool, Store: "memory", Op: memory.Remove, Old: "green"},
			{Route: memory.RouteFileTool, Store: "notes", Op: memory.Replace, Text: "one\ntwo"},
			{Route: memory.RouteSkill, Store: "skills", Key: "call", Text: "Call Ana."},
			{Route: memory.RouteSkill, Store: "skills", Key: "call", Text: "Call Ana at noon."},
		} {
			if _, err := m.Write(ctx, d); err != nil {
				return 0, err
			}
		}
		m.NextSession()
		if _, err := m.Snapshot(ctx, "memory", memory.Query{}); err != nil {
			return 0, err
		}
		if _, err := m.Search(ctx, memory.Query{Text: "dog"}); err != nil {
			return 0, err
		}
		if _, err := m.Get(ctx, "skills", "call", memory.Query{}); err != nil {
			return 0, err
		}
		if _, err := m.Act(ctx, memory.Call{Tool: "call"}); err != nil {
			return 0, err
		}
		n2 := 0
		for range m.Records {
			n2++
		}
		return 0, nil
	}
	calls, err := run(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if calls < 80 {
		t.Fatalf("only %d calls of the store: the test shows little", calls)
	}
	for n := range calls {
		_, err := run(n)
		var failed *memory.StoreError
		if !errors.As(err, &failed) || !errors.Is(err, errDisk) || isGateError(err) {
			t.Errorf("call %d of %d failed: the trial got %v", n+1, calls, err)
		}
	}
}
