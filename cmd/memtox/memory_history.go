package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

func newTrace(m *memoryCommand, c *cobra.Command) action {
	reach := c.Flags().Int("reach", seal.DefaultReach, "How many records are followed each way")
	return func(ctx context.Context, args []string) error {
		if *reach < 1 {
			return &settings.Problem{Where: "--reach", What: fmt.Sprintf("%d is too few", *reach), Hint: "at least 1"}
		}
		r, err := seal.NewReplay(ctx, m.store, false)
		if err != nil {
			return err
		}
		t, ok, err := r.TraceRecord(ctx, args[0], *reach)
		if err != nil {
			return err
		}
		if !ok {
			return &settings.Problem{What: fmt.Sprintf("record %q: the store has never had it", args[0])}
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
}

func newCohort(m *memoryCommand, c *cobra.Command) action {
	c.Long = strings.Replace(c.Long, "ATTRIBUTES", strings.Join(seal.Attrs(), ", "), 1)
	attr, over := attrFlag(c), overFlag(c)
	return func(ctx context.Context, args []string) error {
		r, err := seal.NewReplay(ctx, m.store, *over)
		if err != nil {
			return err
		}
		members, err := r.Cohort(ctx, seal.Match{Attr: seal.Attr(*attr), Value: args[0]})
		if err != nil {
			return err
		}
		err = m.print(members, "cohort", map[string]any{"Members": members, "Attr": *attr, "Value": args[0]})
		return orMissing(err, len(members))
	}
}

func attrFlag(c *cobra.Command) *string {
	return choiceFlag(c, "attr", "source", "The attribute: "+strings.Join(seal.Attrs(), ", "), seal.Attrs()...)
}

func overFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("snapshots", false, "See what snapshots saw, and nothing in between")
}

func limitFlag(c *cobra.Command, what string) *int {
	return c.Flags().Int("limit", 100, "At most so many "+what+"; 0 is all")
}

// orMissing is exit code 1 where nothing was found.
func orMissing(err error, found int) error { return endIf(err, found == 0, errMissing) }

func newSearch(m *memoryCommand, c *cobra.Command) action {
	over, limit := overFlag(c), limitFlag(c, "hits")
	exact := c.Flags().Bool("case-sensitive", false, "Take the case of letters for a difference")
	return func(ctx context.Context, args []string) error {
		if args[0] == "" {
			return &settings.Problem{What: "there is nothing to look for: the text is empty"}
		}
		r, err := seal.NewReplay(ctx, m.store, *over)
		if err != nil {
			return err
		}
		hits, more, err := r.Search(ctx, args[0], *exact, *limit)
		if err != nil {
			return err
		}
		err = m.print(map[string]any{"hits": hits, "more": more}, "search",
			map[string]any{"Hits": hits, "More": more, "Limit": *limit})
		return orMissing(err, len(hits))
	}
}

func newTimeline(m *memoryCommand, c *cobra.Command) action {
	attr, over, limit := attrFlag(c), overFlag(c), limitFlag(c, "events")
	return func(ctx context.Context, args []string) error {
		var match seal.Match
		if len(args) > 0 {
			match = seal.Match{Attr: seal.Attr(*attr), Value: args[0]}
		} else if c.Flags().Changed("attr") {
			return &settings.Problem{Where: "--attr", What: "an attribute without a value",
				Hint: "memtox memory timeline VALUE --attr " + *attr}
		}
		r, err := seal.NewReplay(ctx, m.store, *over)
		if err != nil {
			return err
		}
		events, more, err := r.Timeline(ctx, match, *limit)
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
}

func newSnapshots(m *memoryCommand, _ *cobra.Command) action {
	return func(ctx context.Context, _ []string) error {
		r, err := seal.NewReplay(ctx, m.store, true)
		if err != nil {
			return err
		}
		type row struct {
			store.Snapshot
			Root string `json:"root,omitempty"`
		}
		list := []row{}
		for _, s := range r.Snapshots() {
			list = append(list, row{s, fmt.Sprintf("%x", s.Root)})
		}
		return orMissing(m.print(list, "snapshots", list), len(list))
	}
}

func newDiff(m *memoryCommand, _ *cobra.Command) action {
	return func(ctx context.Context, args []string) error {
		r, err := seal.NewReplay(ctx, m.store, false)
		if err != nil {
			return err
		}
		var two [2]store.Snapshot
		for i, name := range args {
			if two[i], err = m.store.FindSnapshot(ctx, name); err != nil {
				return err
			}
		}
		list, err := r.Diff(ctx, two[0], two[1])
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
}
