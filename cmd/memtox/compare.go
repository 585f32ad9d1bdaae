package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
)

func newCompare(env *Env, c *cobra.Command) action {
	var o compare.Options
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&o.Metrics, "metric", nil, "Rates or latencies, by their names in the JSON of a run; end_to_end and "+
		"utility, or harm, done_benign, wrong and excess_per_100 where outcomes are states, if none is named")
	fs.BoolVar(&o.Latency, "latency", false, "Compare the latencies of writes and reads too")
	fs.StringVar(&o.Against, "against", "", "Within a run, the `defense` that the others are compared with (none if "+
		"not given)")
	fs.BoolVar(&o.AllPairs, "all-pairs", false, "Within a run, compare every two arms of an agent")
	fs.StringSliceVar(&o.Agents, "agent", nil, "Only these agents")
	fs.StringSliceVar(&o.Defenses, "defense", nil, "Only these defenses")
	fs.StringSliceVar(&o.By, "by", nil, "Exploratory comparisons within "+strings.Join(compare.SliceNames(), ", "))
	show := choiceFlag(c, "show", "", "changed: list the cases whose outcome differs, with their transcripts", "changed")
	fs.Float64Var(&o.Level, "level", 0.95, "Confidence level of the intervals")
	fs.Uint64Var(&o.Seed, "seed", 1, "Seed of resampling")
	format := formatFlag(c)
	for name, names := range map[string]func() []string{
		"metric":  func() []string { return append(metricNames((*metric.Metric).Comparable), metric.ExcessPer100) },
		"agent":   agentNames,
		"defense": defenseNames,
		"against": defenseNames,
		"by":      compare.SliceNames,
	} {
		must(c.RegisterFlagCompletionFunc(name, completeList(names)))
	}
	return func(_ context.Context, args []string) error {
		o.Changed = *show == "changed"
		if err := o.Check(); err != nil {
			return err
		}
		var tables []*compare.Table
		for _, dir := range args {
			label, dir := env.labelled(dir)
			t, err := env.loadTable(dir, compare.LoadOptions{Latencies: o.WantsLatency()})
			if err != nil {
				return err
			}
			t.Name = label
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
			return env.end(errInconclusive, "nothing could be compared: no case was scored in both arms of any comparison")
		}
		return nil
	}
}

// labelled takes NAME=DIR apart: what the report calls a run, and where it is.
func (e *Env) labelled(arg string) (label, dir string) {
	label, dir, ok := strings.Cut(arg, "=")
	if _, err := os.Stat(e.path(arg)); !ok || label == "" || err == nil {
		return arg, arg
	}
	return label, dir
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
