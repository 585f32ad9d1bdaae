package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

// change verifies the store, does something to it in the operator's name, prints what
// was done and seals that.
func (m *memoryCommand) change(ctx context.Context, key, form string, do func(*store.Curator) (any, error)) error {
	if err := m.look(ctx); err != nil {
		return err
	}
	done, err := do(m.curator())
	if err != nil {
		return err
	}
	return errors.Join(m.print(done, form, done), m.seal(ctx, key))
}

func whyFlag(c *cobra.Command) *string {
	return c.Flags().String("why", "", "The reason, for the journal; never the content")
}

func protectFlag(c *cobra.Command, what string) *[]string {
	return c.Flags().StringArray("protect", nil, "Never "+what+" records whose key matches this `glob`; may be given "+
		"several times")
}

// timeFlag adds a flag that takes a time; help ends with what of it. The zero time is none.
func timeFlag(c *cobra.Command, name, help string) *time.Time {
	t := new(time.Time)
	c.Flags().Func(name, help+", as 2026-03-01T09:00:00Z", func(s string) (err error) {
		if *t, err = time.Parse(time.RFC3339, s); err != nil {
			return &settings.Problem{Where: "--" + name, What: fmt.Sprintf("%q is no time", s),
				Hint: "write it as 2026-03-01T09:00:00Z"}
		}
		return nil
	})
	return t
}

func newRollback(m *memoryCommand, c *cobra.Command) action {
	key, why := keyFlag(c), whyFlag(c)
	to := timeFlag(c, "to", "The `time` to go back to")
	return func(ctx context.Context, args []string) error {
		point := store.Point{System: *to}
		switch {
		case len(args) == 0 && to.IsZero():
			return &settings.Problem{What: "memtox memory rollback needs a snapshot, or --to TIME", Hint: "usage: " + c.UseLine()}
		case len(args) == 1 && !to.IsZero():
			return &settings.Problem{Where: "--to", What: "a snapshot is named too", Hint: "name one of them"}
		case len(args) == 1:
			s, err := m.store.FindSnapshot(ctx, args[0])
			if err != nil {
				return err
			}
			point.Seq = s.Seq
		}
		return m.change(ctx, *key, "changed", func(by *store.Curator) (any, error) { return by.Rollback(ctx, point, *why) })
	}
}

func newUndo(m *memoryCommand, c *cobra.Command) action {
	key, why := keyFlag(c), whyFlag(c)
	return func(ctx context.Context, args []string) error {
		entry, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil {
			return &settings.Problem{What: fmt.Sprintf("%q is no entry of the journal", args[0]),
				Hint: "memtox memory timeline lists them by number"}
		}
		return m.change(ctx, *key, "acted", func(by *store.Curator) (any, error) { return by.Undo(ctx, entry, *why) })
	}
}

func newRetire(m *memoryCommand, c *cobra.Command) action {
	key, why, protect := keyFlag(c), whyFlag(c), protectFlag(c, "retire")
	before := timeFlag(c, "before", "Only those written before this `time`")
	return func(ctx context.Context, args []string) error {
		named := store.Globs(args)
		rule := store.Retirement{Protected: *protect, If: func(r memory.Record) (bool, error) {
			return named(r.Key) && (before.IsZero() || r.Created.Before(*before)), nil
		}}
		var out store.Outcome
		err := m.change(ctx, *key, "acted", func(by *store.Curator) (_ any, err error) {
			out, err = by.RetireIf(ctx, rule, *why)
			return out, err
		})
		if err == nil && len(out.Changed) == 0 {
			return m.env.end(errMissing, "nothing is retired: no other record has a key that matches %q", args[0])
		}
		return err
	}
}

func newForget(m *memoryCommand, c *cobra.Command) action {
	key, why := keyFlag(c), whyFlag(c)
	out := c.Flags().StringP("output", "o", "", "Write the receipt to this `file`")
	return func(ctx context.Context, args []string) error {
		return m.change(ctx, *key, "forgotten", func(by *store.Curator) (any, error) {
			receipt, err := by.Forget(ctx, *why, args...)
			if err != nil || *out == "" {
				return receipt, err
			}
			data, err := json.Marshal(receipt)
			return receipt, errors.Join(err, m.write(*out, data))
		})
	}
}

func newIncident(m *memoryCommand, c *cobra.Command) action {
	key, why, protect := keyFlag(c), whyFlag(c), protectFlag(c, "withhold")
	since := timeFlag(c, "since", "Suspect everything external from this `time` on")
	cohort := c.Flags().Bool("cohort", false, "Suspect all that the same sources ever wrote")
	m.readOnly = c.Flags().Bool("dry-run", false, "Say what would be done, and do nothing")
	return func(ctx context.Context, args []string) error {
		if len(args) == 0 && since.IsZero() {
			return &settings.Problem{What: "nothing is suspected", Hint: "name records, or --since TIME"}
		}
		i, err := seal.Respond(ctx, m.store, m.curator(), m.operator(), m.env.Now(), seal.Suspects{IDs: args, Since: *since,
			Cohort: *cohort, Protected: *protect, Why: *why, DryRun: *m.readOnly})
		if i == nil {
			return err
		}
		// What was done before something failed has to be told.
		err = errors.Join(err, m.print(i, "incident", i))
		if !*m.readOnly {
			err = errors.Join(err, m.seal(ctx, *key))
		}
		return err
	}
}
