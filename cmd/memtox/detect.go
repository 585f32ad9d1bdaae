package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

var detectKeys = []string{"dataset", "defense", "class", "split", "limit", "seed", "mutate", "concurrency",
	"max_not_scored", "out", "format", "embeddings"}

// latencySample is how many texts are timed for each further size of the store.
const latencySample = 1000

func newDetect(env *Env, c *cobra.Command) action {
	flags := c.Flags()
	f := newRunFlags(c, func(k settings.Key) bool { return slices.Contains(detectKeys, k.Name) },
		map[string]string{"out": "Keep rows here, as a run does (compare, gate and export read them)"})
	for _, sf := range f.flags {
		if sf.key.Name == "defense" {
			sf.fallback = strings.Join(detectDefenses, ",")
			flags.Lookup("defense").DefValue = sf.fallback
		}
	}
	origin := flags.String("origin", "", "Where texts that name no origin come from: "+
		strings.Join(datasets.Origins(), ", "))
	gate := flags.String("gate", "", "The gate at which texts are shown: write, input or read (default: the first that "+
		"a defense screens)")
	stored := flags.String("stored", "0", "How many ordinary memories are stored: `N,...`; at the first the texts are "+
		"classified, at the others latency is measured on up to 1,000 of them")
	must(c.RegisterFlagCompletionFunc("origin", completeList(datasets.Origins)))
	must(c.RegisterFlagCompletionFunc("gate", cobra.FixedCompletions([]string{"write", "input", "read"},
		cobra.ShellCompDirectiveNoFileComp)))
	return func(ctx context.Context, _ []string) error {
		sizes, err := storeSizes(*stored)
		if err != nil {
			return err
		}
		base := harness.DefaultConfig()
		base.Defenses = slices.Clone(detectDefenses)
		conf, err := f.config(env, &base)
		if err != nil {
			return err
		}
		return detect(ctx, env, conf, harness.DetectOptions{Origin: *origin, Gate: *gate, Stored: sizes[0]},
			sizes[1:])
	}
}

// detectDefenses are the defenses of `memtox detect` without --defense.
var detectDefenses = []string{"keyword", "provenance", "contradiction", "anomaly", "guard"}

func storeSizes(list string) ([]int, error) {
	var out []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 0 {
			return nil, &settings.Problem{Where: "--stored", What: fmt.Sprintf("%q is not a whole number of memories", s),
				Hint: "for instance 0,1000"}
		}
		out = append(out, n)
	}
	return out, nil
}

func detect(ctx context.Context, env *Env, c harness.Config, o harness.DetectOptions, further []int) error {
	if c.Out != "" {
		switch _, err := results.ReadRun(env.path(c.Out)); {
		case err == nil:
			return &settings.Problem{Where: "--out", What: c.Out + " holds a run already", Hint: "choose another directory"}
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	var figures *summary.Aggregator
	var mu sync.Mutex
	o.Observe = func(e *results.Entry, sizes []int) {
		mu.Lock()
		defer mu.Unlock()
		figures.Add(e, sizes...)
	}
	defer bounded(env)()
	x, err := harness.PrepareDetect(ctx, c, o, env.catalog(false, remote.Caps{}))
	if err != nil {
		return err
	}
	defer x.Close()
	begin(env, x.Warnings)
	started := env.Now()
	record := x.Record(c.RunID(started), versionString(), started)
	figures = summary.New(record, summary.Options{Gates: x.TextGates()})
	sink := harness.SinkOf(func(results.Finished) error { return nil })
	var journal *results.Journal
	if c.Out != "" {
		if journal, err = results.Create(env.path(c.Out), record, results.Options{SyncEvery: c.Fsync}); err != nil {
			return err
		}
		sink = journal
	}
	progress := new(harness.Progress)
	stopped, err := work(ctx, env, x.Waiting, x.Run, sink, progress)
	if journal != nil {
		if err != nil || stopped {
			err = errors.Join(err, journal.Close())
		} else if _, e := journal.Finish(func(*results.Entry) error { return nil }); e != nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	if stopped {
		return env.end(errInconclusive, "stopped after %d of %d trials: nothing can be said", progress.Done(), x.Plan.Len())
	}
	s := figures.Summary()
	s.Texts.Stored = o.Stored
	s.Texts.Origin.Given = o.Origin
	s.Texts.Origin.Without, s.Texts.Texts = x.WithoutOrigin()
	if journal == nil {
		s.RunID = ""
	}
	for _, n := range further {
		by, err := x.StoreLatency(ctx, n, latencySample)
		if err != nil {
			return err
		}
		for i := range s.Arms {
			if l, ok := by[s.Arms[i].Defense]; ok {
				t := s.Arms[i].Texts
				t.ByStore = append(t.ByStore, summary.StoreLatency{Stored: n, Latency: l})
			}
		}
	}
	if err := printSummary(env, c, s, "rows and settings"); err != nil {
		return err
	}
	return detectVerdict(env, c, s)
}

func detectVerdict(env *Env, c harness.Config, s *summary.Summary) error {
	var scored, failed, most int64
	why := "" // of the defense that failed most
	for i := range s.Arms {
		d := &s.Arms[i]
		reason, n := s.MostFrequentError(d)
		if n > most {
			most, why = n, fmt.Sprintf("; the most frequent reason (%s, %d times): %s", d.Defense, n, reason)
		}
		if d.Scored == 0 {
			env.say("nothing was scored under %s", d.Defense)
		}
		scored += d.Scored
		failed += d.NotScored
	}
	switch {
	case scored == 0:
		if most > 0 {
			env.say("all %d trials ended in an error%s", failed, why)
		}
		return told{errInconclusive}
	case failed > int64(c.MaxNotScored):
		return env.end(errBadNews, "%d of %d trials ended in an error, more than --max-not-scored %d allows%s",
			failed, failed+scored, c.MaxNotScored, why)
	}
	return nil
}
