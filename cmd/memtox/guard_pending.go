package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/defenses/signed"
	"github.com/memtox/memtox/internal/settings"
)

func guardKeyFlag(c *cobra.Command) *string {
	return c.Flags().String("key", "", "`FILE` with the key that signs (STORE.guard-key if left out)")
}

// signing reads the key of the guard that serves the store.
func (m *memoryCommand) signing(key string) (*signed.Keyring, error) {
	name := cmp.Or(key, m.name+".guard-key")
	return serve.ReadKeys(m.env.path(name), name, time.Time{})
}

func newGuardPending(m *memoryCommand, c *cobra.Command) action {
	key := guardKeyFlag(c)
	return func(ctx context.Context, _ []string) error {
		keys, err := m.signing(*key)
		switch {
		case err != nil && *key != "":
			return err
		case err != nil: // what waits can be seen without it
			keys = signed.Fresh()
			m.env.say("what was approved is not listed: %v", err)
		}
		waits, stands, err := pending.New(m.store, pending.Options{Keys: keys, Now: m.env.Now}).Entries(ctx)
		if err != nil {
			return err
		}
		return m.print(map[string]any{"pending": waits, "standing": stands}, "pending", struct {
			Waits, Stands []pending.Entry
			Page          string
		}{waits, stands, serve.ReadAddress(m.env.path(m.name))})
	}
}

func newGuardApprove(m *memoryCommand, c *cobra.Command) action {
	key := guardKeyFlag(c)
	var d pending.Decision
	c.Flags().BoolVar(&d.Anyway, "anyway", false, "Approve a replacement although another record has come in between")
	c.Flags().BoolVar(&d.Source, "source", false, "Approve its source too: what that says goes the same way from now on")
	policyFlag(c)
	must(c.Flags().MarkHidden("policy")) // an approval never hung on it
	return m.decide(c, &d, func(ctx context.Context, id string) (pending.Entry, error) {
		keys, err := m.signing(*key)
		if err != nil {
			return pending.Entry{}, err
		}
		return pending.New(m.store, pending.Options{Keys: keys, Now: m.env.Now}).Approve(ctx, id, d)
	})
}

func newGuardReject(m *memoryCommand, c *cobra.Command) action {
	var d pending.Decision
	return m.decide(c, &d, func(ctx context.Context, id string) (pending.Entry, error) {
		return pending.New(m.store, pending.Options{Keys: signed.Fresh(), Now: m.env.Now}).Reject(ctx, id, d)
	})
}

// decide decides about what waits and prints what became of it.
func (m *memoryCommand) decide(c *cobra.Command, d *pending.Decision,
	f func(ctx context.Context, id string) (pending.Entry, error)) action {
	c.Flags().StringVar(&d.By, "by", "", "In whose `NAME` it is decided (the user of the system if left out)")
	c.Flags().StringVar(&d.Why, "why", "", "The `REASON`, which stays in the log")
	return func(ctx context.Context, args []string) error {
		if strings.TrimSpace(d.Why) == "" {
			return &settings.Problem{Where: "--why", What: "it is missing", Hint: "say why: the log keeps it"}
		}
		d.By = cmp.Or(d.By, m.operator())
		e, err := f(ctx, args[0])
		switch {
		case errors.Is(err, memory.ErrNotFound), errors.Is(err, memory.ErrMovedOn), errors.Is(err, store.ErrDecided):
			return &settings.Problem{Where: m.name, Err: err, Hint: "`memtox guard pending` lists what waits"}
		case errors.Is(err, store.ErrTorn):
			return &settings.Problem{Where: m.name, Err: err,
				Hint: "--key names the key that the server signs with; else somebody has changed it: reject it"}
		case errors.Is(err, pending.ErrNoSource):
			return &settings.Problem{Where: "--source", Err: err, Hint: "approve it alone"}
		case err != nil:
			return fmt.Errorf("deciding: %w", err)
		}
		return m.print(e, "decided", e)
	}
}
