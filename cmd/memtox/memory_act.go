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
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

// change verifies the store, does something to it in the operator's name, prints what
// was done and seals that.
func (m *memoryCommand) change(ctx context.Context, key, form string,
	do func(*store.History, *store.Curator) (any, error)) error {
	st, err := m.open(ctx, true)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := m.look(ctx, st); err != nil {
		return err
	}
	done, err := do(st, store.NewCurator(st, m.operator(), m.env.Now))
	if err != nil {
		return err
	}
	return errors.Join(m.print(done, form, done), m.seal(ctx, st, key))
}

func whyFlag(c *cobra.Command) *string {
	return c.Flags().String("why", "", "The reason, for the journal; never the content")
}

func protectFlag(c *cobra.Command, what string) *[]string {
	return c.Flags().StringArray("protect", nil, "Never "+what+" records whose key matches this `glob`; may be given "+
		"several times")
}

func newRollback(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback [SNAPSHOT]",
		Short: "Bring the store back to a snapshot or a time",
		Long: `Bring the store back to a snapshot, or with --to to a time. The journal keeps
everything: records that came later are retired, all others are again as they were,
in the state that they had then, and a snapshot is taken before. Records that no
session could see and that are seen again are listed.`,
		Example: "  memtox memory rollback before-update --store memory.db --why 'poisoned batch'\n  memtox memory " +
			"rollback --to 2026-03-01T09:00:00Z --store memory.db",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().Changed("to") {
				return nil
			}
			if len(args) == 1 && cmd.Flags().Changed("to") {
				return &settings.Problem{Where: "--to", What: "a snapshot is named too", Hint: "name one of them"}
			}
			return oneArg("a snapshot, or --to TIME")(cmd, args)
		},
	}
	m.flags(c, true)
	key, why := keyFlag(c), whyFlag(c)
	to := c.Flags().String("to", "", "The `time` to go back to, as 2026-03-01T09:00:00Z")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		var point store.Point
		if *to != "" {
			var err error
			if point.System, err = instantFlag("--to", *to); err != nil {
				return err
			}
		}
		return m.change(ctx, *key, "changed", func(st *store.History, by *store.Curator) (any, error) {
			if len(args) == 1 {
				s, err := st.FindSnapshot(ctx, args[0])
				if err != nil {
					return nil, err
				}
				point.Seq = s.Seq
			}
			return by.Rollback(ctx, point, *why)
		})
	}
	return c
}

func newUndo(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "undo ENTRY",
		Short: "Take one act back, and nothing else that came since",
		Long: `Take back one act, named by its first entry of the journal: incident and retire print
it, timeline lists it. A record that has changed since is kept as it is, and said. An undo can be undone;
a forgetting cannot.`,
		Example: "  memtox memory undo 17 --store memory.db --why 'false alarm'",
		Args:    oneArg("the number of an entry of the journal"),
	}
	m.flags(c, true)
	key, why := keyFlag(c), whyFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		entry, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil {
			return &settings.Problem{What: fmt.Sprintf("%q is no entry of the journal", args[0]),
				Hint: "memtox memory timeline lists them by number"}
		}
		return m.change(cmd.Context(), *key, "acted", func(_ *store.History, by *store.Curator) (any, error) {
			return by.Undo(cmd.Context(), entry, *why)
		})
	}
	return c
}

func newRetire(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "retire KEY",
		Short: "Retire the records under a key, or under all that match a glob",
		Long: `Retire the records under a key, or under all keys that match: "*" stands for any run
of characters, "?" for one. They held until now, no session sees them any more, and
their history stays: undo and rollback bring them back.`,
		Example: "  memtox memory retire 'notes/*' --before 2026-03-01T09:00:00Z --protect 'notes/accounts*' --store " +
			"memory.db",
		Args: oneArg("a key, or a glob of keys"),
	}
	m.flags(c, true)
	key, why, protect := keyFlag(c), whyFlag(c), protectFlag(c, "retire")
	before := c.Flags().String("before", "", "Only those written before this `time`, as 2026-03-01T09:00:00Z")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		var until time.Time
		if *before != "" {
			var err error
			if until, err = instantFlag("--before", *before); err != nil {
				return err
			}
		}
		named := store.Globs(args)
		rule := store.Retirement{Protected: *protect, If: func(r memory.Record) (bool, error) {
			return named(r.Key) && (until.IsZero() || r.Created.Before(until)), nil
		}}
		return m.change(cmd.Context(), *key, "acted", func(_ *store.History, by *store.Curator) (any, error) {
			return by.RetireIf(cmd.Context(), rule, *why)
		})
	}
	return c
}

func newForget(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "forget ID…",
		Short: "Erase records for good, and leave a tombstone",
		Long: `Erase the content of records for good, in every version: nothing brings it back. What
is left is a tombstone with salted digests, which nobody can guess the content from.
The receipt, which --format json prints and -o writes, has the salts, and is the only
thing that can ever show what was erased; give it to whom the content belonged.`,
		Example: "  memtox memory forget r17 --store memory.db --why 'ada asked for it' -o r17.receipt",
		Args:    someArgs("the ids of records"),
	}
	m.flags(c, true)
	key, why := keyFlag(c), whyFlag(c)
	out := c.Flags().StringP("output", "o", "", "Write the receipt to this `file`")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return m.change(cmd.Context(), *key, "forgotten", func(_ *store.History, by *store.Curator) (any, error) {
			receipt, err := by.Forget(cmd.Context(), *why, args...)
			if err != nil || *out == "" {
				return receipt, err
			}
			data, err := json.Marshal(receipt)
			return receipt, errors.Join(err, m.write(*out, data))
		})
	}
	return c
}
