package harness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// Rejudging scores the stored transcripts of a finished run anew with a language
// model. The agent is not called.
type Rejudging struct {
	Config Config // of the run, with the judge
	Run    *results.Run
	Reader *score.ModelJudge

	from *results.Reader
	name string // of the run, in messages
	plan *Experiment
}

// PrepareRejudge resolves what the run was made of and the judge. c holds the judge
// and how its server is reached; everything else is the run's. name says in messages
// which run it is.
func PrepareRejudge(ctx context.Context, name string, from *results.Reader, c Config, id, version string,
	started time.Time, cat Catalog) (*Rejudging, error) {
	run := from.Run()
	own, err := RecordedConfig(run)
	if err != nil {
		return nil, &settings.Problem{Where: name, Err: err}
	}
	if !from.Finished() {
		return nil, &settings.Problem{Where: name, What: "the run is not finished", Hint: "finish it with " + own.Again(name)}
	}
	kind, _, _ := strings.Cut(own.Model, ":")
	if at := own.BaseURL; at != "" && c.JudgeBaseURL == "" && strings.HasPrefix(c.Judge, "llm:"+kind+":") {
		return nil, &settings.Problem{Where: "--base-url",
			What: "the run had its model at " + shown(at) + ", and where the judge is only this command line says",
			Hint: "if it is there, add --base-url " + inert.Shell(at)}
	}
	recorded := own
	own = own.harmless()
	for _, s := range Settings().Keys {
		if s.Reach == Bounds { // no flag says another one: that of the run is better than none
			s.Copy(&own, &recorded)
		}
	}
	own.Judge, own.JudgeBaseURL, own.JudgeKeyFile = c.Judge, c.JudgeBaseURL, c.JudgeKeyFile
	if c.Concurrency > 0 {
		own.Concurrency = c.Concurrency
	}
	own.Record, own.Replay = c.Record, c.Replay
	x := &Rejudging{Config: own, from: from, name: name}
	if x.Reader, err = own.Reader(ctx, cat); err != nil {
		return nil, err
	}
	if x.Reader == nil {
		return nil, &settings.Problem{Where: "--judge", What: "names no model",
			Hint: "the deterministic judge has judged the run already; name one such as llm:openai:NAME"}
	}
	if x.plan, err = PlanOf(ctx, name, run, "", cat); err != nil {
		_ = x.Close()
		return nil, err
	}
	r := *run
	r.ID, r.Version, r.Started = id, version, started.UTC().Truncate(time.Second)
	r.Rejudged = &results.Rejudged{RunID: run.ID, Judge: x.Reader.Name()}
	r.Settings = maps.Clone(run.Settings)
	r.Settings["judge"], r.Settings["judge_base_url"], r.Settings["judge_key_file"] = own.Judge, own.JudgeBaseURL,
		own.JudgeKeyFile
	resolved := map[string]any{}
	if m, ok := run.Settings[resolvedKey].(map[string]any); ok {
		resolved = maps.Clone(m)
	}
	resolved["judge"] = x.Reader.Name()
	r.Settings[resolvedKey] = resolved
	x.Run = &r
	return x, nil
}

func (x *Rejudging) Close() error { return x.Reader.Close() }

// Judge judges every trial that the sink does not hold yet and hands it over. Like
// [Experiment.Run] it begins no further trial once stop is closed or ctx has ended.
func (x *Rejudging) Judge(ctx context.Context, sink Sink, progress *Progress, stop <-chan struct{}) error {
	progress.Planned.Store(x.from.Trials())
	var unread error
	unjudged := func(t *results.Trial) bool {
		if sink.Done(t.ID) {
			progress.Resumed.Add(1)
			return false
		}
		return true
	}
	left := func(yield func(results.Finished) bool) {
		for f, err := range x.plan.finished(context.WithoutCancel(ctx), x.name, x.from, unjudged) {
			if unread = err; err != nil || !yield(f) {
				return
			}
		}
	}
	err := Pool(ctx, cmp.Or(x.Config.Concurrency, remoteWorkers), stop, left, func(ctx context.Context, _ int, f results.Finished) error {
		if err := x.one(ctx, &f); err != nil {
			return err
		}
		return Hand(sink, []results.Finished{f}, progress)
	})
	return cmp.Or(err, unread)
}

func (x *Rejudging) one(ctx context.Context, f *results.Finished) error {
	t := f.Trial
	t.Judge, t.JudgedWritten, t.JudgedInfluenced, t.JudgeCalls, t.JudgeTokens, t.JudgeUnanswered = "", nil, nil, 0, 0, 0
	var left *results.Transcript
	if len(f.Transcript) > 0 {
		var err error
		if left, err = results.ParseTranscript(f.Transcript); err != nil {
			return fmt.Errorf("reading the transcript of trial %s: %w", t.ID, err)
		}
		if len(left.Judge) > 0 { // of a run that had a judge
			left.Judge = nil
			f.Transcript = left.Append(nil)
		}
	}
	if t.Label != results.Attack || t.Status == results.Excluded {
		return nil
	}
	p := x.plan.Plan
	s := score.NewSubject(&p.Set.Cases[p.at(t.Index).Case])
	if !s.NeedsReader() {
		return nil
	}
	t.Judge = x.Reader.Name()
	if t.Status != results.Scored {
		return nil
	}
	if left == nil {
		return &settings.Problem{Where: "trial " + t.ID, What: "has no transcript to judge",
			Hint: "run it with transcripts: all"}
	}
	evidence, err := s.Evidence(left)
	if err != nil {
		return err
	}
	verdicts, err := x.Reader.Score(ctx, t, evidence)
	if err == nil && len(verdicts) > 0 {
		left.Judge = verdicts
		f.Transcript = left.Append(nil)
	}
	return err
}
