package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

func newMerge(env *Env, c *cobra.Command) action {
	out := c.Flags().StringP("output", "o", "", "The run `DIRECTORY` to make")
	dataset := c.Flags().String("dataset", "", "The `FILE` of the cases, if it is not where the runs had it")
	format := formatFlag(c)
	full := c.Flags().Bool("full", false, "Print every table with counts and intervals, not one screen")
	return func(ctx context.Context, args []string) error {
		if *out == "" {
			return &settings.Problem{Where: "-o", What: "there is no telling where to",
				Hint: "name a directory that does not exist yet"}
		}
		var readers []*results.Reader
		var runs []*results.Run
		for _, dir := range args {
			r, err := results.OpenReader(env.path(dir))
			if err != nil {
				return err
			}
			defer r.Close()
			readers, runs = append(readers, r), append(runs, r.Run())
		}
		run, err := harness.MergedRun(args, runs)
		if err != nil {
			return err
		}
		plan, err := harness.PlanOf(ctx, args[0], run, *dataset, env.catalog(false, remote.Caps{}))
		if err != nil {
			return err
		}
		return merge(env, func(j *results.Journal) (harness.Merged, error) {
			return harness.Merge(ctx, plan, args, readers, j)
		}, run, *out, *format, *full)
	}
}

// merge writes the merged run beside its place and moves it there when it is
// whole, so that a merge that was killed leaves nothing that looks like a run.
func merge(env *Env, copyRows func(*results.Journal) (harness.Merged, error), run *results.Run, out,
	format string, full bool) (err error) {
	dir := filepath.Clean(env.path(out))
	if st, err := os.Lstat(dir); err == nil && (!st.IsDir() || os.Remove(dir) != nil) { // an empty directory may go
		return &settings.Problem{Where: out, What: "is there already", Hint: "choose another directory with -o"}
	}
	work := dir + ".merging"
	if _, err := os.Lstat(work); err == nil {
		return &settings.Problem{Where: work, What: "is left from a merge that was killed, or belongs to one that goes on",
			Hint: "remove it if no other merge is running"}
	}
	defer func() {
		if err != nil && !errors.As(err, new(told)) {
			os.RemoveAll(work)
		}
	}()
	j, err := results.Create(work, run, results.Options{})
	if err != nil {
		return err
	}
	m, err := copyRows(j)
	if err != nil {
		j.Close()
		return err
	}
	figures := summary.New(run, summaryOptions(0))
	whole := m.Trials == run.Planned
	if whole {
		_, err = j.Finish(func(e *results.Entry) error { figures.Add(e); return nil })
	} else if err = j.Close(); err == nil {
		err = readRun(work, figures.AddAll)
	}
	if err == nil {
		err = os.Rename(work, dir)
	}
	if err != nil {
		return fmt.Errorf("merging into %s: %w", out, err)
	}
	s := figures.Summary()
	s.Duplicates = &m.Duplicates
	c, err := harness.RecordedConfig(run)
	if err != nil {
		return fmt.Errorf("merging into %s: %w", out, err)
	}
	c.Out, c.Format, c.Full = out, format, full
	ended := printRun(env, c, s)
	if m.Duplicates > 0 {
		env.say("%d rows were there twice and are counted once", m.Duplicates)
	}
	if m.Conflicts > 0 {
		env.say("in %d of them something else happened than in the row that is kept; the first run named wins", m.Conflicts)
	}
	if !whole {
		said := []string{fmt.Sprintf("%d of %d trials are missing", run.Planned-m.Trials, run.Planned)}
		if len(m.Absent) > 0 {
			said = append(said, "no run is shard "+strings.Join(m.Absent, ", "))
		}
		said = append(append(said, m.Unfinished...), "run them with: "+c.Again(out))
		return env.end(errInconclusive, "%s", strings.Join(said, "; "))
	}
	return ended
}
