package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

func newPlan(env *Env, c *cobra.Command) action {
	f := newRunFlags(c, func(s settings.Key) bool { return s.Name != "out" }, nil)
	latency := c.Flags().Duration("latency", 2*time.Second, "How long a server is assumed to take for an answer")
	pilot := c.Flags().Int("pilot", 0, "Run `N` trials with the model itself first, which costs what they cost")
	return func(ctx context.Context, _ []string) error {
		conf, err := f.config(env, nil)
		if err != nil {
			return err
		}
		if *pilot < 0 || *latency < 0 {
			return &settings.Problem{Where: "--pilot, --latency", What: "below 0", Hint: "give a number of trials, a duration"}
		}
		e, err := conf.Estimate(ctx, env.catalog(false, remote.Caps{}),
			harness.EstimateOptions{SecondsPerCall: latency.Seconds(), Pilot: *pilot})
		if err != nil {
			return err
		}
		if conf.Format == "json" {
			return printJSON(env, e)
		}
		return printForm(env, "estimate", "", e)
	}
}
