package main

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

func newJudgeAudit(env *Env, c *cobra.Command) action {
	f := newJudgeFlags(c, harness.Deterministic)
	set := c.Flags().String("set", "", "The labelled set: a JSON Lines `FILE`; the built-in one if none is named")
	format := formatFlag(c)
	return func(ctx context.Context, _ []string) error {
		conf, err := f.config()
		if err != nil {
			return err
		}
		items, name, err := readAuditSet(env, *set)
		if err != nil {
			return err
		}
		j, judged, workers := score.Rater(score.Deterministic), harness.Deterministic, 1
		reader, err := conf.Reader(ctx, env.catalog(false, remote.Caps{}))
		if err != nil {
			return err
		}
		if reader != nil {
			defer reader.Close()
			j, judged, workers = score.Reader(reader), reader.Name(), cmp.Or(conf.Concurrency, 16)
		}
		r, err := score.Measure(ctx, judged, name, items, j, workers)
		if err != nil {
			return err
		}
		err = show(env, *format, "audit", r, struct {
			*score.Report
			Reads bool // what a record or an answer says, where the other looks for a value
		}{r, strings.HasPrefix(r.Judge, "llm:")})
		if err == nil && r.All.Items == r.All.NoVerdict {
			return env.end(errInconclusive, "the judge gave no verdict on any item")
		}
		return err
	}
}

func readAuditSet(env *Env, file string) ([]score.Item, string, error) {
	if file == "" {
		items, err := score.Builtin()
		return items, "built-in", err
	}
	b, err := env.read("--set", file)
	if err != nil {
		return nil, "", err
	}
	items, err := score.Read(bytes.NewReader(b), file)
	return items, file, settings.Placed("--set", err)
}
