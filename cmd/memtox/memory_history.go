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
		seen := ""
		if t.Appearance.Snapshots > 0 {
			seen = fmt.Sprintf("in %d of %d", t.Appearance.Snapshots, len(r.Snapshots()))
		}
		return m.print(t, "trace", struct {
			seal.Trace
			Last  seal.Change
			Seen  string
			Reach int
		}{t, t.Changes[len(t.Changes)-1], seen, *reach})
	}
	return c
}

func noRecord(id string) error {
	return &settings.Problem{What: fmt.Sprintf("record %q: the store has never had it", id)}
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
		Example: "  memtox memory cohort https://pages.example/a --store memory.db\n  memtox memory cohort EXTERNAL_TOOL " +
			"--attr class --store memory.db",
		Args: oneArg("the value of an attribute"),
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
		err = m.print(members, "cohort", map[string]any{"Members": members, "Attr": *attr, "Value": args[0]})
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
		err = m.print(map[string]any{"hits": hits, "more": more}, "search",
			map[string]any{"Hits": hits, "More": more, "Limit": *limit})
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
		Example: "  memtox memory timeline --store memory.db\n  memtox memory timeline https://pages.example/a --store " +
			"memory.db --snapshots",
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
			return &settings.Problem{Where: "--attr", What: "an attribute without a value",
				Hint: "memtox memory timeline VALUE --attr " + *attr}
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
		err = m.print(map[string]any{"events": events, "more": more}, "timeline",
			map[string]any{"Events": events, "More": more, "Limit": *limit})
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
		err = m.print(list, "snapshots", list)
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
		out := struct {
			From        string            `json:"from"`
			To          string            `json:"to"`
			Differences []seal.Difference `json:"differences"`
		}{two[0].ID, two[1].ID, list}
		return m.print(out, "diff", out)
	}
	return c
}
