package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

func newTrace(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace ID",
		Short: "Follow a record: what it was, what it derives from, what derives from it",
		Long: `Follow a record: every version of it, the records and segments that it derives
from, and every record that derives from it, over any number of steps. Lineage is
that of all versions: a record that once derived from another is shown.`,
		Example: "  memtox memory trace r17 --store memory.db\n  memtox memory trace r17 --store memory.db --format json",
		Args:    oneArg("the id of a record"),
	}
	m.flags(c, true)
	m.uncheckedFlag(c)
	reach := c.Flags().Int("reach", seal.DefaultReach, "How many records are followed each way")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *reach < 1 {
			return &settings.Problem{Where: "--reach", What: fmt.Sprintf("%d is too few", *reach), Hint: "at least 1"}
		}
		st, r, err := m.replay(cmd.Context(), false)
		if err != nil {
			return err
		}
		defer st.Close()
		t, ok, err := r.TraceRecord(cmd.Context(), args[0], *reach)
		if err != nil {
			return err
		}
		if !ok {
			return noRecord(args[0])
		}
		return m.print(t, func(p *page) error {
			rec := &t.Record
			last := t.Changes[len(t.Changes)-1]
			p.line("record %s, %s", rec.ID, state(rec.State, last.Forgotten, last.Damaged))
			snapshots := ""
			if t.Appearance.Snapshots > 0 {
				snapshots = fmt.Sprintf("in %d of %d", t.Appearance.Snapshots, len(r.Snapshots()))
			}
			p.fields("key", rec.Key, "store", rec.Store, "principal", rec.Principal, "origin", origin(rec.Origin), "scope", rec.Scope.String(), "signed by", rec.SignedBy,
				"since", instant(t.Changes[0].At), "snapshots", snapshots, "text", shown(last.Preview))
			var rows [][]string
			for _, ch := range t.Changes {
				rows = append(rows, []string{number(ch.Seq), instant(ch.At), ch.Cause.String(), ch.Route.String(), ch.By, state(ch.State, ch.Forgotten, ch.Damaged), strings.Join(ch.New, ", "), shown(ch.Preview), shown(ch.Why)})
			}
			p.table("history", "", []string{"entry", "time", "cause", "route", "by", "state", "new", "text", "why"}, rows)
			p.table("derives from", "nothing", nodeColumns, nodeRows(t.Back))
			p.table("what derives from it", "nothing", nodeColumns, nodeRows(t.Forward))
			if t.More {
				p.line("")
				p.line("There is more: --reach %d cut it.", *reach)
			}
			return nil
		})
	}
	return c
}

func noRecord(id string) error {
	return &settings.Problem{What: fmt.Sprintf("record %q: the store has never had it", id)}
}

var nodeColumns = []string{"steps", "what", "via", "relation", "origin", "state", "text"}

func nodeRows(nodes []seal.Node) (rows [][]string) {
	for _, n := range nodes {
		what, st := n.Record, state(n.State, n.Forgotten, n.Damaged)
		switch {
		case n.Segment != 0 && n.Record == "":
			what, st = fmt.Sprintf("segment %d", n.Segment), ""
		case n.Missing:
			st = "not in the store"
		}
		rows = append(rows, []string{number(n.Depth), what, n.Via, n.Relation, origin(n.Origin), st, shown(n.Preview)})
	}
	return rows
}

func newCohort(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "cohort VALUE",
		Short: "List every record that ever had a value of an attribute",
		Long: `List every record that ever had a value of an attribute, in the order in which
they had it first: what else did this source write? A record has every source that
its lineage names too, for where its words stand in several it may be from any of
them. The attributes are
` + strings.Join(seal.Attrs(), ", ") + `.`,
		Example: "  memtox memory cohort https://pages.example/a --store memory.db\n  memtox memory cohort EXTERNAL_TOOL --attr class --store memory.db",
		Args:    oneArg("the value of an attribute"),
	}
	m.flags(c, true)
	m.uncheckedFlag(c)
	attr, over := m.matchFlags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := choice("--attr", *attr, seal.Attrs()); err != nil {
			return err
		}
		st, r, err := m.replay(cmd.Context(), *over)
		if err != nil {
			return err
		}
		defer st.Close()
		members, err := r.Cohort(cmd.Context(), seal.Match{Attr: seal.Attr(*attr), Value: args[0]})
		if err != nil {
			return err
		}
		err = m.print(members, func(p *page) error {
			var rows [][]string
			for _, x := range members {
				rows = append(rows, []string{x.Record, number(x.First.Seq), instant(x.First.At), x.First.Snapshot, x.State.String(), shown(x.Preview)})
			}
			p.table("", "no record ever had "+*attr+" "+args[0], []string{"record", "entry", "first", "snapshot", "state", "text"}, rows)
			return nil
		})
		return orMissing(err, len(members))
	}
	return c
}

// matchFlags adds the flags of a command that is about an attribute.
func (m *memoryCommand) matchFlags(c *cobra.Command) (attr *string, over *bool) {
	attr = c.Flags().String("attr", "source", "The attribute: "+strings.Join(seal.Attrs(), ", "))
	must(c.RegisterFlagCompletionFunc("attr", cobra.FixedCompletions(seal.Attrs(), cobra.ShellCompDirectiveNoFileComp)))
	return attr, overFlag(c)
}

func overFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("snapshots", false, "See what snapshots saw, and nothing in between")
}

func limitFlag(c *cobra.Command, what string) *int {
	return c.Flags().Int("limit", 100, "At most so many "+what+"; 0 is all")
}

// orMissing is exit code 1 where nothing was found.
func orMissing(err error, found int) error {
	if err == nil && found == 0 {
		return told{errMissing}
	}
	return err
}

func newSearch(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find a text in everything that was ever stored",
		Long: `Find a text in every version of every record, whatever its state, with the
snapshots that show it; with --snapshots once for each of them. Versions as they
were when they were retired are left out.`,
		Example: "  memtox memory search 'attacker@evil.example' --store memory.db",
		Args:    oneArg("the text to look for"),
	}
	m.flags(c, true)
	m.uncheckedFlag(c)
	over, limit := overFlag(c), limitFlag(c, "hits")
	exact := c.Flags().Bool("case-sensitive", false, "Take the case of letters for a difference")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if args[0] == "" {
			return &settings.Problem{What: "there is nothing to look for: the text is empty"}
		}
		st, r, err := m.replay(cmd.Context(), *over)
		if err != nil {
			return err
		}
		defer st.Close()
		hits, more, err := r.Search(cmd.Context(), args[0], *exact, *limit)
		if err != nil {
			return err
		}
		err = m.print(struct {
			Hits []seal.Hit `json:"hits"`
			More bool       `json:"more"`
		}{hits, more}, func(p *page) error {
			var rows [][]string
			for _, h := range hits {
				shows := h.From
				if h.To != h.From {
					shows += "–" + h.To
				}
				if h.Snapshot != "" {
					shows = h.Snapshot
				}
				rows = append(rows, []string{h.Record, number(h.Seq), instant(h.At), instant(h.Until), shows, h.State.String(), shown(h.Preview)})
			}
			p.table("", "no version holds it", []string{"record", "entry", "from", "until", "snapshots", "state", "text"}, rows)
			if more {
				p.line("")
				p.line("There are more: --limit %d cut them.", *limit)
			}
			return nil
		})
		return orMissing(err, len(hits))
	}
	return c
}

func newTimeline(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "timeline [VALUE]",
		Short: "List what happened, to all records or to those with a value of an attribute",
		Long: `List what happened to all records, or to those with a value of an attribute: they
appear, mutate (another content), are relabelled (the same content under another
origin, lineage, principal, scope or signature), restated (another state), and
disappear (retired, or no longer with that value). The newest are listed, oldest
first.`,
		Example: "  memtox memory timeline --store memory.db\n  memtox memory timeline https://pages.example/a --store memory.db --snapshots",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("a value")(cmd, args)
		},
	}
	m.flags(c, true)
	m.uncheckedFlag(c)
	attr, over := m.matchFlags(c)
	limit := limitFlag(c, "events")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		var match seal.Match
		if err := choice("--attr", *attr, seal.Attrs()); err != nil {
			return err
		}
		if len(args) > 0 {
			match = seal.Match{Attr: seal.Attr(*attr), Value: args[0]}
		} else if cmd.Flags().Changed("attr") {
			return &settings.Problem{Where: "--attr", What: "an attribute without a value", Hint: "memtox memory timeline VALUE --attr " + *attr}
		}
		st, r, err := m.replay(cmd.Context(), *over)
		if err != nil {
			return err
		}
		defer st.Close()
		events, more, err := r.Timeline(cmd.Context(), match, *limit)
		if err != nil {
			return err
		}
		if events == nil {
			events = []seal.Event{}
		}
		err = m.print(struct {
			Events []seal.Event `json:"events"`
			More   bool         `json:"more"`
		}{events, more}, func(p *page) error {
			if more {
				p.line("There are older ones: --limit %d cut them.", *limit)
			}
			var rows [][]string
			for _, e := range events {
				st := e.State.String()
				if e.Type == seal.Disappear {
					st = ""
				}
				rows = append(rows, []string{instant(e.At), number(e.Seq), e.Snapshot, e.Record, e.Type, st, e.Cause.String(), e.By, shown(e.Preview), shown(e.Why)})
			}
			p.table("", "nothing happened", []string{"time", "entry", "snapshot", "record", "what", "state", "cause", "by", "text", "why"}, rows)
			return nil
		})
		return orMissing(err, len(events))
	}
	return c
}

func newSnapshots(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use: "snapshots", Short: "List the snapshots",
		Long:    "List the snapshots, oldest first, with the root of those that are sealed.",
		Example: "  memtox memory snapshots --store memory.db", Args: noArgs,
	}
	m.flags(c, true)
	m.uncheckedFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		st, r, err := m.replay(cmd.Context(), true)
		if err != nil {
			return err
		}
		defer st.Close()
		snaps := r.Snapshots()
		type row struct {
			store.Snapshot
			Root string `json:"root,omitempty"`
		}
		list := []row{}
		for _, s := range snaps {
			list = append(list, row{s, fmt.Sprintf("%x", s.Root)})
		}
		err = m.print(list, func(p *page) error {
			var rows [][]string
			for _, s := range list {
				root := "not sealed"
				if s.Root != "" {
					root = s.Root[:min(16, len(s.Root))] + "…"
				}
				rows = append(rows, []string{s.ID, s.Name, s.Reason, s.By, instant(s.At), number(s.Seq), root})
			}
			p.table("", "there is none", []string{"snapshot", "name", "reason", "by", "time", "entry", "root"}, rows)
			return nil
		})
		return orMissing(err, len(list))
	}
	return c
}

func newDiff(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "diff S1 S2",
		Short: "List the records in which two snapshots differ",
		Long: `List the records in which two snapshots differ, in the order in which they
changed. Snapshots are named by id or by name.`,
		Example: "  memtox memory diff s1 s2 --store memory.db",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &settings.Problem{What: cmd.CommandPath() + " needs two snapshots", Hint: "usage: " + cmd.UseLine()}
			}
			return nil
		},
	}
	m.flags(c, true)
	m.uncheckedFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		st, r, err := m.replay(cmd.Context(), false)
		if err != nil {
			return err
		}
		defer st.Close()
		var two [2]store.Snapshot
		for i, name := range args {
			if two[i], err = st.FindSnapshot(cmd.Context(), name); err != nil {
				return err
			}
		}
		list, err := r.Diff(cmd.Context(), two[0], two[1])
		if err != nil {
			return err
		}
		return m.print(struct {
			From        string            `json:"from"`
			To          string            `json:"to"`
			Differences []seal.Difference `json:"differences"`
		}{two[0].ID, two[1].ID, list}, func(p *page) error {
			var rows [][]string
			for _, d := range list {
				var was, is string
				if d.From != nil {
					was = shown(d.From.Preview)
				}
				if d.To != nil {
					is = shown(d.To.Preview)
				}
				rows = append(rows, []string{d.Record, d.Type, strings.Join(d.New, ", "), was, is})
			}
			p.table("", fmt.Sprintf("%s and %s show the same records", two[0].ID, two[1].ID), []string{"record", "what", "fields", two[0].ID, two[1].ID}, rows)
			return nil
		})
	}
	return c
}
