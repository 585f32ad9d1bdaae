package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

// waiting is a record that waits for a decision, or was decided.
type waiting struct {
	ID        string    `json:"id"`
	Key       string    `json:"key"`
	State     string    `json:"state"`
	Content   string    `json:"content"`
	Class     string    `json:"source_class"`
	Source    string    `json:"source,omitempty"`
	Principal string    `json:"principal"`
	Replaces  string    `json:"replaces,omitempty"` // what it is to take the place of
	Created   time.Time `json:"created"`
	By        string    `json:"by"`  // who wrote it, or decided
	Why       string    `json:"why"` // what the guard found, or why it was decided so
}

func waitingOf(r *memory.Record, by, why string) waiting {
	return waiting{ID: r.ID, Key: r.Key, State: r.State.String(), Content: r.Text, Class: r.Origin.Class.String(),
		Source:    r.Origin.Source,
		Principal: r.Principal, Replaces: r.Parent, Created: r.Created, By: by, Why: why}
}

func newGuardPending(m *memoryCommand, _ *cobra.Command) action {
	return func(ctx context.Context, _ []string) error {
		vs, err := m.curator().Pending(ctx)
		if err != nil {
			return err
		}
		list := []waiting{}
		for i := range vs {
			list = append(list, waitingOf(&vs[i].Record, vs[i].By, vs[i].Why))
		}
		return m.print(map[string]any{"pending": list}, "pending", list)
	}
}

func newGuardApprove(m *memoryCommand, c *cobra.Command) action {
	key := c.Flags().String("key", "", "`FILE` with the key that signs (STORE.guard-key if left out)")
	anyway := c.Flags().Bool("anyway", false, "Approve a replacement although another record has come in between")
	policy := policyFlag(c)
	return m.decide(c, func(ctx context.Context, by *store.Curator, id, why string) (r memory.Record, err error) {
		if !c.Flags().Changed("policy") {
			*policy = "memory" // as guard serve --mcp has it
		}
		p, err := m.env.policy(*policy)
		if err != nil {
			return r, err
		}
		name := cmp.Or(*key, m.name+".guard-key")
		keys, err := serve.ReadKeys(m.env.path(name), name, time.Time{})
		if err != nil {
			return r, err
		}
		g, err := guard.New(guard.Options{Policy: p, Keys: keys, Agent: serve.Agent})
		if err != nil {
			return r, err
		}
		mem := memory.New(memory.Options{Stores: serve.Specs(), Store: m.store, Clock: m.env.Now})
		gate, err := g.Open(ctx, mem.View())
		if err != nil {
			return r, err
		}
		a, ok := gate.(interface {
			Approve(memory.Record) memory.Record
		})
		if !ok {
			return r, errors.New("this guard cannot approve")
		}
		return by.Approve(ctx, id, store.Approval{Why: why, Anyway: *anyway,
			Amend: func(r *memory.Record) error { *r = a.Approve(*r); return nil }})
	})
}

func newGuardReject(m *memoryCommand, c *cobra.Command) action {
	return m.decide(c, func(ctx context.Context, by *store.Curator, id, why string) (memory.Record, error) {
		return by.Reject(ctx, id, why)
	})
}

// decide decides about a record of the store and prints what became of it.
func (m *memoryCommand) decide(c *cobra.Command,
	f func(ctx context.Context, by *store.Curator, id, why string) (memory.Record, error)) action {
	by := c.Flags().String("by", "", "In whose `NAME` it is decided (the user of the system if left out)")
	why := c.Flags().String("why", "", "The `REASON`, which stays in the log")
	return func(ctx context.Context, args []string) error {
		if *why == "" {
			return &settings.Problem{Where: "--why", What: "it is missing", Hint: "say why: the log keeps it"}
		}
		who := cmp.Or(*by, m.operator())
		r, err := f(ctx, store.NewCurator(m.store, who, m.env.Now), args[0], *why)
		switch {
		case errors.Is(err, memory.ErrNotFound), errors.Is(err, memory.ErrMovedOn), errors.Is(err, store.ErrDecided):
			return &settings.Problem{Where: m.name, Err: err, Hint: "`memtox guard pending` lists what waits"}
		case err != nil:
			return fmt.Errorf("deciding about a record: %w", err)
		}
		w := waitingOf(&r, who, *why)
		return m.print(w, "decided", w)
	}
}
