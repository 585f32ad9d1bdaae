package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results"
)

// tally counts the rows of a run by status. It is made from the rows alone, so
// that a resumed run and an uninterrupted one end alike.
type tally struct {
	scored, failed, excluded int64
	reasons                  map[string]int64 // of those that failed
}

func (t *tally) add(e *results.Entry) {
	switch e.Trial.Status {
	case results.Scored:
		t.scored++
	case results.Excluded:
		t.excluded++
	default:
		t.failed++
		const most = 1000 // reasons may quote anything; memory stays bounded
		if t.reasons == nil {
			t.reasons = map[string]int64{}
		}
		if _, known := t.reasons[e.Trial.Reason]; known || len(t.reasons) < most {
			t.reasons[e.Trial.Reason]++
		}
	}
}

// verdict says with which code a run ends, and why in a line.
func (t *tally) verdict(env *Env, c harness.Config) error {
	reason := ""
	for _, r := range slices.Sorted(maps.Keys(t.reasons)) {
		if reason == "" || t.reasons[r] > t.reasons[reason] {
			reason = r
		}
	}
	if reason != "" {
		reason = fmt.Sprintf("; the most frequent reason (%d times): %s", t.reasons[reason], reason)
	}
	switch {
	case t.scored == 0:
		fmt.Fprintf(env.Stderr, "memtox: nothing was scored: %d trials failed, %d do not apply%s\n", t.failed, t.excluded, inert(reason))
		return told{errInconclusive}
	case t.failed > int64(c.MaxNotScored):
		fmt.Fprintf(env.Stderr, "memtox: %d of %d trials were not scored, more than --max-not-scored %d allows%s\n", t.failed, t.failed+t.scored, c.MaxNotScored, inert(reason))
		return told{errBadNews}
	}
	return nil
}

// finish compacts the journal, prints the figures, and says how the run went.
func finish(env *Env, journal *results.Journal, c harness.Config, progress *harness.Progress) error {
	var t tally
	if _, err := journal.Finish(func(e *results.Entry) error { t.add(e); return nil }); err != nil {
		return err
	}
	return t.print(env, c, journal.Run(), progress.Resumed.Load())
}

// printFinished prints a run that had ended before.
func printFinished(env *Env, dir string, c harness.Config) error {
	r, err := results.OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	var t tally
	for e, err := range r.Entries(results.Everything) {
		if err != nil {
			return err
		}
		t.add(e)
	}
	return t.print(env, c, r.Run(), t.scored+t.failed+t.excluded)
}

func (t *tally) print(env *Env, c harness.Config, run *results.Run, resumed int64) error {
	if _, err := fmt.Fprintf(env.Stdout, "%s in %s: %d trials scored, %d not scored, %d do not apply, %d resumed\n", run.ID, inert(c.Out), t.scored, t.failed, t.excluded, resumed); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return t.verdict(env, c)
}
