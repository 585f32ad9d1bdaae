package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// judgeFlags are how a command reaches a judge.
type judgeFlags struct {
	judge, baseURL, keyFile string
	concurrency             int
}

func newJudgeFlags(c *cobra.Command, judge string) *judgeFlags {
	f := &judgeFlags{}
	fs := c.Flags()
	fs.StringVar(&f.judge, "judge", judge, "The `JUDGE`: llm:MODEL, with MODEL as in memtox run --model")
	fs.StringVar(&f.baseURL, "base-url", "", "Where the judge's server is: a `URL`, for openai: up to and with /v1")
	fs.StringVar(&f.keyFile, "key-file", "", "A `FILE` that holds the API key of that server and nothing else; else "+
		"the environment")
	fs.IntVar(&f.concurrency, "concurrency", 0, "How many questions are under way at once; 0 is 16")
	return f
}

// config are the settings that the flags change.
func (f *judgeFlags) config() (harness.Config, error) {
	c := harness.DefaultConfig()
	if f.concurrency < 0 || f.concurrency > 4096 {
		return c, &settings.Problem{Where: "--concurrency", What: fmt.Sprintf("%d is out of range", f.concurrency),
			Hint: "0 to 4096"}
	}
	c.Judge, c.JudgeBaseURL, c.JudgeKeyFile, c.Concurrency = f.judge, f.baseURL, f.keyFile, f.concurrency
	return c, nil
}

func newRejudge(env *Env, c *cobra.Command) action {
	f := newJudgeFlags(c, "")
	out := c.Flags().StringP("output", "o", "", "The run `DIRECTORY` to make; under runs/ if none is named")
	format := formatFlag(c)
	return func(ctx context.Context, args []string) error {
		if f.judge == "" {
			return &settings.Problem{Where: "--judge", What: "no judge is named",
				Hint: "for instance --judge llm:openai:NAME --base-url http://localhost:8000/v1"}
		}
		conf, err := f.config()
		if err != nil {
			return err
		}
		from, err := results.OpenReader(env.path(args[0]))
		if err != nil {
			return err
		}
		defer from.Close()
		started := env.Now()
		id := conf.RunID(started)
		x, err := harness.PrepareRejudge(ctx, args[0], from, conf, id, versionString(), started,
			env.catalog(false, remote.Caps{}))
		if err != nil {
			return err
		}
		defer x.Close()
		conf = x.Config
		conf.Out, conf.Format = cmp.Or(*out, filepath.Join("runs", id)), *format
		dir := env.path(conf.Out)
		journal, err := openRejudged(dir, conf.Out, x)
		if errors.Is(err, results.ErrFinished) {
			return printFinished(env, dir, conf)
		}
		if err != nil {
			return err
		}
		if err := x.Reader.Keep(dir); err != nil {
			journal.Close()
			return err
		}
		defer env.tellTroubles(x.Reader)
		progress := new(harness.Progress)
		nothing := func(time.Duration) []remote.Pending { return nil }
		if stopped, err := work(ctx, env, nothing, x.Judge, journal, progress); err != nil || stopped {
			return unfinished(env, journal, progress, err, fmt.Sprintf("memtox rejudge %s --judge %s -o %s",
				inert.Shell(args[0]), inert.Shell(f.judge), inert.Shell(conf.Out)))
		}
		return finish(env, journal, conf, progress)
	}
}

// openRejudged begins a run directory, or goes on with one that the same rejudge
// left.
func openRejudged(dir, out string, x *harness.Rejudging) (*results.Journal, error) {
	earlier, err := results.ReadRun(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return results.Create(dir, x.Run, results.Options{})
	}
	if err != nil {
		return nil, err
	}
	if earlier.Rejudged == nil || *earlier.Rejudged != *x.Run.Rejudged {
		return nil, &settings.Problem{Where: out, What: "holds another run", Hint: "choose another directory with -o"}
	}
	return results.Resume(dir, results.Options{})
}

// tellTroubles says how many questions the judge gave no verdict on, and why.
func (e *Env) tellTroubles(j *score.ModelJudge) {
	troubles, all := j.Troubles(), 0
	for _, n := range troubles {
		all += n
	}
	for _, why := range frequent(1, troubles) {
		e.say("the judge gave no verdict %d times; the most frequent reason (%d times): %s", all, troubles[why], why)
	}
}

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
