package main

import (
	"errors"
	"fmt"
	"strings"

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
		Example: "  memtox memory incident r17 --store memory.db --why 'reported by ada' --dry-run\n  memtox memory incident --since 2026-03-01T09:00:00Z --store memory.db --format json",
	}
	m.flags(c, true)
	key := keyFlag(c)
	since := c.Flags().String("since", "", "Suspect everything external from this `time` on, as 2026-03-01T09:00:00Z")
	cohort := c.Flags().Bool("cohort", false, "Suspect all that the same sources ever wrote")
	protect := c.Flags().StringArray("protect", nil, "Never withhold records whose key matches this `glob`; may be given several times")
	why := c.Flags().String("why", "", "The reason, for the journal; never the content")
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
		err = errors.Join(err, m.print(i, func(p *page) error { printIncident(p, i); return nil }))
		if !*dry {
			err = errors.Join(err, m.seal(ctx, st, *key))
		}
		return err
	}
	return c
}

func printIncident(p *page, i *seal.Incident) {
	at := &i.Pinpoint
	verb := ""
	if i.DryRun {
		verb = " (dry run: nothing was changed)"
	}
	p.line("incident of %s, answered by %s%s", instant(at.Began.At), i.By, verb)
	safe := "there is no safe state: it began with the first entry of the journal"
	if at.Safe.Seq > 0 {
		safe = fmt.Sprintf("entry %d, %s: sessions could see %d records", at.Safe.Seq, instant(at.Safe.At), at.Records)
	}
	p.fields("why", i.Why, "began", fmt.Sprintf("entry %d, %s", at.Began.Seq, instant(at.Began.At)), "safe state", safe, "snapshot", at.Snapshot)
	var rows [][]string
	for _, b := range at.Bad {
		rows = append(rows, []string{b.Record, number(b.First.Seq), instant(b.First.At), b.Route.String(), b.State.String(), origin(b.Origin), b.Because, shown(b.Preview)})
	}
	p.table("1. pinpoint", "nothing", []string{"record", "entry", "first", "route", "was", "origin", "because", "text"}, rows)
	rows = nil
	for _, s := range at.Sources {
		rows = append(rows, []string{s.Source, s.Class.String(), number(s.Bad), number(s.All)})
	}
	p.table("sources", "unknown", []string{"source", "class", "bad records", "all it ever wrote"}, rows)
	p.line("")
	p.line("2. quarantine")
	printAct(p, &i.Quarantine, i.DryRun)
	p.line("")
	p.line("3. isolate")
	printAct(p, &i.Isolate, i.DryRun)
	rows = nil
	for _, d := range i.Rederive {
		var left []string
		for _, l := range d.Remains {
			what := l.Record
			if what == "" {
				what = fmt.Sprintf("segment %d (%s)", l.Segment, origin(l.Origin))
			}
			left = append(left, what)
		}
		if left == nil {
			left = []string{"nothing"}
		}
		rows = append(rows, []string{d.Record, number(d.Depth), strings.Join(d.Touches, ", "), d.State.String(), strings.Join(left, ", "), shown(d.Preview)})
	}
	p.table("4. re-derive", "no record's lineage touches a bad one", []string{"record", "steps", "touches", "state", "derive from", "text"}, rows)
}

func printAct(p *page, a *seal.Act, dry bool) {
	list := func(what string, ids []string) {
		if len(ids) > 0 {
			p.line("  %s: %s", what, strings.Join(ids, " "))
		}
	}
	withheld := "withheld"
	if dry {
		withheld = "to be withheld"
	}
	list(withheld, a.Records)
	list("out of sight already", a.Already)
	list("protected, for a person to decide", a.Kept)
	list("seen again", a.Restored)
	if a.Seq > 0 {
		p.line("  entry %d of the journal, behind snapshot %s", a.Seq, a.Snapshot)
	}
	if len(a.Records)+len(a.Already)+len(a.Kept) == 0 {
		p.line("  nothing")
	}
}
