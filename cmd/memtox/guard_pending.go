package main

import (
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

func newGuardPending(env *Env) *cobra.Command {
	m := &memoryCommand{env: env}
	c := &cobra.Command{
		Use: "pending", Short: "List what waits for a person's decision", Args: noArgs,
		Long: `List the records of a store that the guard let wait, oldest first: what they say, where
it comes from, and why they wait. Staged ones are told to sessions with their source, held ones
are not shown.`,
		Example: "  memtox guard pending --store memory.db",
	}
	m.flags(c, true)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		st, err := m.openGuarded(ctx, false)
		if err != nil {
			return err
		}
		vs, err := store.NewCurator(st, m.operator(), env.Now).Pending(ctx)
		if err = errors.Join(err, st.Close()); err != nil {
			return err
		}
		list := []waiting{}
		for i := range vs {
			list = append(list, waitingOf(&vs[i].Record, vs[i].By, vs[i].Why))
		}
		return m.print(map[string]any{"pending": list}, "pending", list)
	}
	return c
}

func (m *memoryCommand) openGuarded(ctx context.Context, changes bool) (*store.History, error) {
	st, err := m.open(ctx, changes)
	if errors.Is(err, store.ErrForeign) || errors.Is(err, store.ErrNewer) {
		return nil, &settings.Problem{Where: "--store", Err: err}
	}
	return st, err
}

func newGuardApprove(env *Env) *cobra.Command {
	m := &memoryCommand{env: env}
	c := &cobra.Command{
		Use: "approve ID", Short: "Let a record go live that waits, or is quarantined", Args: oneArg("the id of a record"),
		Long: `Approve a record: it goes live with the authority to act, signed so, and takes the place of
what it was to replace. Its origin stays what it is. The log of the store keeps who
approved it and why.`,
		Example: "  memtox guard approve r17 --store memory.db --why 'checked with the supplier by phone'",
	}
	m.flags(c, true)
	by, why := decider(c)
	key := c.Flags().String("key", "", "`FILE` with the key that signs (STORE.guard-key if left out)")
	anyway := c.Flags().Bool("anyway", false, "Approve a replacement although another record has come in between")
	policy := policyFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return m.decide(cmd.Context(), *by, *why, args[0],
			func(ctx context.Context, st *store.History, who string) (memory.Record, error) {
				p, err := env.policy(*policy)
				if err != nil {
					return memory.Record{}, err
				}
				if *key == "" {
					*key = m.store + ".guard-key"
				}
				keys, err := serve.ReadKeys(env.path(*key), *key, time.Time{})
				if err != nil {
					return memory.Record{}, err
				}
				g, err := guard.New(guard.Options{Policy: p, Keys: keys, Agent: serve.Agent})
				if err != nil {
					return memory.Record{}, err
				}
				mem := memory.New(memory.Options{Stores: serve.Specs(), Store: st, Clock: env.Now})
				gate, err := g.Open(ctx, mem.View())
				if err != nil {
					return memory.Record{}, err
				}
				a, ok := gate.(interface {
					Approve(memory.Record) memory.Record
				})
				if !ok {
					return memory.Record{}, errors.New("this guard cannot approve")
				}
				return store.NewCurator(st, who, env.Now).Approve(ctx, args[0], store.Approval{Why: *why, Anyway: *anyway,
					Amend: func(r *memory.Record) error { *r = a.Approve(*r); return nil }})
			})
	}
	return c
}

func newGuardReject(env *Env) *cobra.Command {
	m := &memoryCommand{env: env}
	c := &cobra.Command{
		Use: "reject ID", Short: "Turn a record down that waits, or is quarantined", Args: oneArg("the id of a record"),
		Long: "Reject a record: it is retired and counts as never having held. The log of the store keeps\nwho " +
			"rejected it and why, and its history keeps what it said.",
		Example: "  memtox guard reject r18 --store memory.db --why 'nobody knows this account'",
	}
	m.flags(c, true)
	by, why := decider(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return m.decide(cmd.Context(), *by, *why, args[0],
			func(ctx context.Context, st *store.History, who string) (memory.Record, error) {
				return store.NewCurator(st, who, env.Now).Reject(ctx, args[0], *why)
			})
	}
	return c
}

// decider adds who decides and why.
func decider(c *cobra.Command) (by, why *string) {
	return c.Flags().String("by", "", "In whose `NAME` it is decided (the user of the system if left out)"),
		c.Flags().String("why", "", "The `REASON`, which stays in the log")
}

// decide decides about a record of the store and prints what became of it.
func (m *memoryCommand) decide(ctx context.Context, by, why, id string,
	f func(context.Context, *store.History, string) (memory.Record, error)) error {
	ctx, stop := m.env.interruptible(ctx)
	defer stop()
	if why == "" {
		return &settings.Problem{Where: "--why", What: "it is missing", Hint: "say why: the log keeps it"}
	}
	if by == "" {
		by = m.operator()
	}
	st, err := m.openGuarded(ctx, true)
	if err != nil {
		return err
	}
	r, err := f(ctx, st, by)
	if err = errors.Join(err, st.Close()); err != nil {
		if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrMovedOn) || errors.Is(err, store.ErrDecided) {
			return &settings.Problem{Where: m.store, Err: err, Hint: "`memtox guard pending` lists what waits"}
		}
		return fmt.Errorf("deciding about a record: %w", err)
	}
	w := waitingOf(&r, by, why)
	return m.print(w, "decided", w)
}
