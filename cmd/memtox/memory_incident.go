package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

func newIncident(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "incident [ID…]",
		Short: "Answer an incident: pinpoint, quarantine, isolate, list what to derive again",
		Long: `Answer an incident in four steps. Pinpoint: when the first bad record came, from
where, and which snapshot is the last one before. Quarantine: no session sees the bad
records any more, and what they replaced is back. Isolate: the same for every record
that derives from one, over any number of steps. Re-derive: a list of those records,
with what is left to derive them from.

Bad are the records that are named; with --since everything external that came then
or later; with --cohort all that the same sources ever wrote, or may have. --dry-run says what
would be done. Nothing is lost: the report has the entries of the journal that undo
both acts, and a snapshot is taken before each.`,
		Example: "  memtox memory incident r17 --store memory.db --why 'reported by ada' --dry-run\n  memtox memory " +
			"incident --since 2026-03-01T09:00:00Z --store memory.db --format json",
	}
	m.flags(c, true)
	key, why, protect := keyFlag(c), whyFlag(c), protectFlag(c, "withhold")
	since := c.Flags().String("since", "", "Suspect everything external from this `time` on, as 2026-03-01T09:00:00Z")
	cohort := c.Flags().Bool("cohort", false, "Suspect all that the same sources ever wrote")
	dry := c.Flags().Bool("dry-run", false, "Say what would be done, and do nothing")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		s := seal.Suspects{IDs: args, Cohort: *cohort, Protected: *protect, Why: *why, DryRun: *dry}
		if *since != "" {
			var err error
			if s.Since, err = instantFlag("--since", *since); err != nil {
				return err
			}
		}
		if len(args) == 0 && *since == "" {
			return &settings.Problem{What: "nothing is suspected", Hint: "name records, or --since TIME"}
		}
		st, err := m.open(ctx, !*dry)
		if err != nil {
			return err
		}
		defer st.Close()
		i, err := seal.Respond(ctx, st, store.NewCurator(st, m.operator(), m.env.Now), m.operator(), m.env.Now(), s)
		if i == nil {
			return err
		}
		// What was done before something failed has to be told.
		err = errors.Join(err, m.print(i, "incident", i))
		if !*dry {
			err = errors.Join(err, m.seal(ctx, st, *key))
		}
		return err
	}
	return c
}
