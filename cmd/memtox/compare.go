package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/render"
)

func newCompare(env *Env) *cobra.Command {
	var o compare.Options
	c := &cobra.Command{
		Use:   "compare RUN [RUN …]",
		Short: "Compare the arms of a run, or runs with each other",
		Long: `Compare arms on the same cases, paired by case and epoch.

With one run every arm is compared with the undefended one of the same agent
(--against names another, --all-pairs takes every two). With several, each arm is
compared with the same arm of the first run; runs of different cases are refused,
and what is in one run only is counted and said.

Each comparison has a difference with its interval, the cases that tell the arms
apart, and a p value that is Holm-adjusted over all comparisons of the command:
the family is what you ask for. Slices (--by) are exploratory and are adjusted
apart, by Benjamini-Hochberg. RSR is not compared: what was written differs from
arm to arm; compare end_to_end. A run that goes on, or was killed, is read as far
as it goes.`,
		Example: `  memtox compare runs/small
  memtox compare runs/small --against keyword --metric end_to_end,utility
  memtox compare runs/small --by class --format markdown
  memtox compare runs/before runs/after --show changed`,
		Args: someArgs("a run directory"),
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&o.Metrics, "metric", nil, "Rates or latencies, by their names in the JSON of a run; end_to_end "+
		"and the latencies of writes and reads if none is named")
	fs.StringVar(&o.Against, "against", "", "Within a run, the `defense` that the others are compared with (none if "+
		"not given)")
	fs.BoolVar(&o.AllPairs, "all-pairs", false, "Within a run, compare every two arms of an agent")
	fs.StringSliceVar(&o.Agents, "agent", nil, "Only these agents")
	fs.StringSliceVar(&o.Defenses, "defense", nil, "Only these defenses")
	fs.StringSliceVar(&o.By, "by", nil, "Exploratory comparisons within "+strings.Join(compare.SliceNames(), ", "))
	show := fs.String("show", "", "changed: list the cases whose outcome differs, with their transcripts")
	fs.Float64Var(&o.Level, "level", 0.95, "Confidence level of the intervals")
	fs.Uint64Var(&o.Seed, "seed", 1, "Seed of resampling")
	format := formatFlag(c)
	for name, names := range map[string]func() []string{
		"metric":  func() []string { return metricNames((*metric.Metric).Comparable) },
		"agent":   func() []string { return harness.Catalog{Profiles: agents.Profiles()}.AgentNames() },
		"defense": func() []string { return builtin.New().Names() },
		"against": func() []string { return builtin.New().Names() },
		"by":      compare.SliceNames,
		"show":    func() []string { return []string{"changed"} },
	} {
		must(c.RegisterFlagCompletionFunc(name, completeList(names)))
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := choice("--format", *format, render.Formats()); err != nil {
			return err
		}
		if *show != "" {
			if err := choice("--show", *show, []string{"changed"}); err != nil {
				return err
			}
		}
		o.Changed = *show == "changed"
		if err := o.Check(); err != nil {
			return err
		}
		var tables []*compare.Table
		for _, dir := range args {
			t, err := env.loadTable(dir, compare.LoadOptions{Latencies: o.WantsLatency()})
			if err != nil {
				return err
			}
			tables = append(tables, t)
		}
		r, err := compare.Compare(tables, o)
		if err != nil {
			return err
		}
		if err := r.Write(env.Stdout, *format); err != nil {
			return fmt.Errorf("printing the comparison: %w", err)
		}
		if !r.Measured() {
			fmt.Fprintln(env.Stderr, "memtox: nothing could be compared: no case was scored in both arms of any comparison")
			return told{errInconclusive}
		}
		return nil
	}
	return c
}

// loadTable loads a run directory of the user's and keeps the name that the user
// gave it.
func (e *Env) loadTable(dir string, o compare.LoadOptions) (*compare.Table, error) {
	t, err := compare.Load(e.path(dir), o)
	if err != nil {
		return nil, err
	}
	t.Name = dir
	return t, nil
}

// metricNames lists rates that pass, and latencies.
func metricNames(pass func(*metric.Metric) bool) []string {
	out := metric.Names(pass)
	for _, l := range metric.Latencies() {
		out = append(out, l.String())
	}
	return out
}
