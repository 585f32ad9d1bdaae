package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

func newRun(env *Env, c *cobra.Command) action {
	f := newRunFlags(c, func(settings.Key) bool { return true }, nil)
	fs := c.Flags()
	resume := fs.Bool("resume", false, "Go on with the run in --out; start it if there is none, print it again if it is "+
		"finished")
	ablate := fs.String("ablate", "", "Run a `DEFENSE` whole and with each of its layers left out, beside none: guard, "+
		"guard:strict, guard:policy.yaml")
	schema := fs.Bool("schema", false, "Print the JSON Schema of an experiment file")
	return func(ctx context.Context, _ []string) error {
		if *schema {
			_, err := env.Stdout.Write(harness.Schema())
			return err
		}
		return f.run(ctx, env, *resume, *ablate)
	}
}

// ablated are the arms that show what each layer of a defense is worth.
func ablated(spec string) ([]string, error) {
	s, err := defenses.Parse(spec)
	if err != nil {
		return nil, err
	}
	for _, info := range builtin.New().Infos() {
		if info.Name != s.Kind || info.Without == nil {
			continue
		}
		arms := []string{"none", spec}
		for _, layer := range info.Layers {
			left := s
			left.Name, left.Argument = s.Kind+"-no-"+layer, info.Without(s.Argument, layer)
			arms = append(arms, left.String())
		}
		return arms, nil
	}
	return nil, &settings.Problem{What: fmt.Sprintf("%q has no layers that can be left out", s.Kind), Hint: "guard has"}
}

// withoutPath takes the path out of an error whose place says it already.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (f *runFlags) run(ctx context.Context, env *Env, resume bool, ablate string) error {
	c, err := f.config(env, nil)
	if err != nil {
		return err
	}
	if ablate != "" {
		if c.Defenses, err = ablated(ablate); err != nil {
			return settings.Placed("--ablate", err)
		}
	}
	out := c.Out
	if resume && out == "" {
		return &settings.Problem{Where: "--resume", What: "there is no telling which run",
			Hint: "name its directory with --out"}
	}
	var earlier *results.Run
	if out != "" {
		switch earlier, err = results.ReadRun(env.path(out)); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil && resume:
			return err
		case err == nil && !resume:
			return &settings.Problem{Where: out, What: "holds a run already",
				Hint: "go on with --resume, or choose another directory with --out"}
		}
	}
	local := func(base harness.Config) (harness.Config, error) { return f.config(env, &base) }
	var used remote.Caps
	if earlier != nil {
		recorded, err := harness.ResumableConfig(out, earlier)
		if err != nil {
			return err
		}
		if _, err := results.ReadManifest(env.path(out)); !errors.Is(err, fs.ErrNotExist) {
			return f.finished(env, out, recorded, err)
		}
		if c, err = harness.Adopt(out, recorded, local); err != nil {
			return err
		}
		if used, err = spent(env.path(out), c); err != nil {
			return err
		}
	}
	if _, err := mixedOptions(env, c, 0); err != nil {
		return err // before anything runs, and not when all has
	}
	defer bounded(env)()
	x, err := harness.Prepare(ctx, c, env.catalog(resume, used))
	if err != nil {
		return err
	}
	defer x.Close()
	begin(env, append(x.Warnings, env.doubts(c.Dataset, x.Plan.Set)...))
	started := env.Now()
	id := c.RunID(started)
	if c.Out == "" {
		c.Out = filepath.Join("runs", id)
	}
	dir := env.path(c.Out)
	options := results.Options{SyncEvery: c.Fsync, Disk: env.Disk}

	var journal *results.Journal
	if earlier == nil {
		journal, err = results.Create(dir, x.Record(id, versionString(), started), options)
	} else {
		if err := x.SameRun(c.Out, earlier); err != nil {
			return err
		}
		journal, err = results.Resume(dir, options)
		if errors.Is(err, results.ErrFinished) {
			return printFinished(env, dir, c)
		}
		if err == nil {
			err = readRun(dir, func(r *results.Reader) error { return x.CheckAll(ctx, c.Out, r) })
			if err != nil {
				journal.Close()
			}
		}
	}
	if err != nil {
		return err
	}
	if x.Reader != nil {
		if err := x.Reader.Keep(dir); err != nil {
			journal.Close()
			return err
		}
		defer env.tellTroubles(x.Reader)
	}
	progress := new(harness.Progress)
	do := x.Run
	if c.Queue != "" || c.Listen != "" {
		spread, end, err := env.spread(ctx, x, journal, dir, c)
		if err != nil {
			journal.Close()
			return err
		}
		defer end()
		do = spread
	}
	if stopped, err := work(ctx, env, x.Waiting, do, journal, progress); err != nil || stopped {
		return unfinished(env, journal, progress, err, c.Again(c.Out))
	}
	if c.Listen == "" {
		os.RemoveAll(filepath.Join(dir, queueDir)) // of an earlier part of the run: all trials are here
	}
	if pace := x.Pace(); len(pace) > 0 {
		journal.Pace = pace
	}
	return finish(env, journal, c, progress)
}

// finished prints a run that has ended. Of what its settings name nothing is
// started, asked or even read. damaged is what became of reading its manifest.
func (f *runFlags) finished(env *Env, out string, recorded harness.Config, damaged error) error {
	if damaged != nil {
		return damaged
	}
	c, err := f.config(env, &recorded)
	if err != nil {
		return err
	}
	if err := harness.SameSettings(out, recorded, c); err != nil {
		return err
	}
	return printFinished(env, env.path(out), c)
}

// spent is what the finished trials of an interrupted run have used of its caps.
func spent(dir string, c harness.Config) (s remote.Caps, err error) {
	if c.MaxRequests == 0 && c.MaxTokens == 0 && c.MaxCost == 0 {
		return s, nil
	}
	price := remote.Price{Prompt: c.PricePrompt, Completion: c.PriceCompletion}
	err = readRun(dir, func(r *results.Reader) error {
		for e, err := range r.Entries(results.TrialsOnly) {
			if err != nil {
				return err
			}
			t := &e.Trial
			s.Calls += int64(t.ModelCalls + t.Retries)
			s.Tokens += t.PromptTokens + t.CompletionTokens
			s.Cost += price.Cost(int(t.PromptTokens), int(t.CompletionTokens))
		}
		return nil
	})
	return s, err
}

// doubted is how many cases of a set a run looks at before it begins.
const doubted = 1000

// doubts say what a set of the user's lacks, as far as its first cases tell it each by
// itself: a run of it may show nothing.
func (e *Env) doubts(name string, set *datasets.Set) []string {
	if set.Builtin {
		return nil
	}
	some := *set
	some.Cases = some.Cases[:min(len(some.Cases), doubted)]
	found, err := attacks.ValidateCases(e.setPath(name), &some)
	if err != nil || len(found.Problems) == 0 {
		return nil // what cannot be read is said elsewhere
	}
	first := found.Problems[0]
	for _, p := range found.Problems {
		if first.Warning && !p.Warning {
			first = p
		}
	}
	n := found.Errors()
	return []string{fmt.Sprintf("the set has %s and %s: %s; see memtox datasets validate %s", many(n, "error"),
		many(len(found.Problems)-n, "warning"), first.Error.Error(), inert.Shell(name))}
}

// bounded bounds the memory of a run until the returned function is called: it makes
// much short-lived garbage beside a small live heap, and uses what room there is. Whoever
// sets the collector's own variables decides alone.
func bounded(env *Env) (end func()) {
	if env.Getenv("GOGC") != "" || env.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	limit, percent := debug.SetMemoryLimit(room), debug.SetGCPercent(300)
	return func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(percent) }
}

// room is from where on the collector works harder.
const room = 190 << 20

// begin tells what is to be known before a run whose set is loaded. A bounded run gets
// twice the room that the set takes, so that a large one does not keep the collector busy.
func begin(env *Env, warnings []string) {
	for _, w := range warnings {
		env.say("%s", w)
	}
	if debug.SetMemoryLimit(-1) == room {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetMemoryLimit(max(room, 2*int64(live[0].Value.Uint64())+64<<20))
	}
}

// runTrials runs what the sink lacks: in this process, or by workers elsewhere.
type runTrials = func(ctx context.Context, sink harness.Sink, progress *harness.Progress, stop <-chan struct{}) error

// work runs the trials while it watches for interrupts and shows the progress.
func work(ctx context.Context, env *Env, waiting func(time.Duration) []remote.Pending, do runTrials, sink harness.Sink,
	progress *harness.Progress) (stopped bool, err error) {
	ctx, stop, release := env.stoppable(ctx, "trials")
	defer release()
	done := showProgress(env, progress, waiting)
	err = do(ctx, sink, progress, stop)
	done()
	return progress.Done() < progress.Planned.Load(), err
}

// unfinished closes the journal of a run that did not come to its end, and says with
// which command it goes on.
func unfinished(env *Env, journal *results.Journal, progress *harness.Progress, err error, again string) error {
	if e := journal.Close(); err == nil {
		err = e
	}
	if err != nil {
		if kind, _ := remote.KindOf(err); kind == remote.GivenUp {
			return fmt.Errorf("%w; once that is mended, go on with: %s", err, again)
		}
		return fmt.Errorf("%w; go on with: %s", err, again)
	}
	return env.end(errInconclusive, "stopped after %d of %d trials; go on with: %s",
		progress.Done(), progress.Planned.Load(), again)
}
