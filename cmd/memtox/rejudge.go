package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results"

	"github.com/memtox/memtox/internal/settings"
)

// judgeFlags are how a command reaches a judge.
type judgeFlags struct {
	judge, baseURL, keyFile string
	concurrency             int
}

func (f *judgeFlags) register(c *cobra.Command, fallback string) {
	fs := c.Flags()
	fs.StringVar(&f.judge, "judge", fallback, "`JUDGE`: llm:MODEL, with MODEL as in memtox run --model")
	fs.StringVar(&f.baseURL, "base-url", "", "Where the judge's server is: a `URL`, for openai: up to and with /v1")
	fs.StringVar(&f.keyFile, "key-file", "", "A `FILE` that holds the API key of that server and nothing else; else "+
		"the environment")
	fs.IntVar(&f.concurrency, "concurrency", 0, "How many questions are under way at once; 0 is 16")
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

func newRejudge(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "rejudge RUN", Short: "Judge the stored transcripts of a run with a language model",
		Long: `Read the transcripts of a finished run, ask a language model what the
deterministic judge leaves open, and write a new run directory: the same rows with
the judged columns filled. The agent is not called again, and the digest is that of
the run. The new run.json names the run and the judge; compare, gate and report read
it like any other. A rejudge that was stopped goes on when it is started again with
the same -o.`,
		Example: "  memtox rejudge runs/small --judge llm:openai:gpt-oss-120b --base-url http://localhost:8000/v1 -o " +
			"runs/small-judged\n  memtox compare runs/small runs/small-judged",
		Args: oneArg("a run directory"),
	}
	var f judgeFlags
	f.register(c, "")
	out := c.Flags().StringP("output", "o", "", "The run `DIRECTORY` to make; under runs/ if none is named")
	format := c.Flags().String("format", "table", strings.Join(formats, ", "))
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := choice("--format", *format, formats); err != nil {
			return err
		}
		if f.judge == "" {
			return &settings.Problem{Where: "--judge", What: "no judge is named",
				Hint: "for instance --judge llm:openai:NAME --base-url http://localhost:8000/v1"}
		}
		return rejudge(cmd.Context(), env, args[0], *out, *format, f)
	}
	return c
}

func rejudge(ctx context.Context, env *Env, name, out, format string, f judgeFlags) error {
	conf, err := f.config()
	if err != nil {
		return err
	}
	from, err := results.OpenReader(env.path(name))
	if err != nil {
		return err
	}
	defer from.Close()
	started := env.Now()
	id := runID(conf, started)
	x, err := harness.PrepareRejudge(ctx, name, from, conf, id, versionString(), started,
		env.catalog(false, remote.Caps{}))
	if err != nil {
		return err
	}
	defer x.Close()
	if out == "" {
		out = filepath.Join("runs", id)
	}
	c := x.Config
	c.Out, c.Format = out, format
	dir := env.path(out)
	journal, err := openRejudged(dir, out, x)
	if errors.Is(err, results.ErrFinished) {
		return printFinished(env, dir, c)
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
		return unfinished(env, journal, progress, err, fmt.Sprintf("memtox rejudge %s --judge %s -o %s", inert.Shell(name),
			inert.Shell(f.judge), inert.Shell(out)))
	}
	return finish(env, journal, c, progress)
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
	troubles, all, most := j.Troubles(), 0, ""
	for _, why := range slices.Sorted(maps.Keys(troubles)) {
		all += troubles[why]
		if most == "" || troubles[why] > troubles[most] {
			most = why
		}
	}
	if all > 0 {
		fmt.Fprintf(e.Stderr, "memtox: the judge gave no verdict %d times; the most frequent reason (%d times): %s\n", all,
			troubles[most], inert.Text(most))
	}
}
