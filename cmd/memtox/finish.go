package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/summary"
	"github.com/memtox/memtox/results/sweep"
)

// tally counts the rows of a run by status. It is made from the rows alone, so
// that a resumed run and an uninterrupted one end alike.
type tally struct {
	scored, failed, excluded int64
	attacks, uncountable     int64            // scored attack trials; those that name no value to look for
	reasons                  map[string]int64 // of those that failed
	sweep                    *sweep.Collector // nil where nothing is swept
}

func (t *tally) add(e *results.Entry) {
	if t.sweep != nil {
		t.sweep.Add(e)
	}
	switch e.Trial.Status {
	case results.Scored:
		t.scored++
		if e.Trial.Label == string(datasets.Attack) {
			t.attacks++
			if !e.Trial.ExpectsASR && e.Trial.JudgedWritten == nil {
				t.uncountable++
			}
		}
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
func (t *tally) verdict(env *Env, c harness.Config, s *summary.Summary) error {
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
		fmt.Fprintf(env.Stderr, "memtox: nothing was scored: %d trials failed, %d do not apply%s\n", t.failed, t.excluded, inert.Text(reason))
		return told{errInconclusive}
	case t.attacks > 0 && t.uncountable == t.attacks:
		fmt.Fprintf(env.Stderr, "memtox: no attack could be counted: none says what it wants stored and by which value that can be told (expected_memory, value)\n")
		return told{errInconclusive}
	case s.Silence() != "":
		fmt.Fprintf(env.Stderr, "memtox: %s\n", s.Silence())
		return told{errInconclusive}
	case t.failed > int64(c.MaxNotScored):
		fmt.Fprintf(env.Stderr, "memtox: %d of %d trials were not scored, more than --max-not-scored %d allows%s\n", t.failed, t.failed+t.scored, c.MaxNotScored, inert.Text(reason))
		return told{errBadNews}
	case t.uncountable > 0:
		fmt.Fprintf(env.Stderr, "memtox: %d of %d attack trials are in no rate: their cases do not say what they want stored and by which value that can be told\n", t.uncountable, t.attacks)
	}
	return nil
}

// finish compacts the journal, prints the figures, and says how the run went.
func finish(env *Env, journal *results.Journal, c harness.Config, progress *harness.Progress) error {
	var t tally
	figures := summary.New(journal.Run(), summaryOptions(progress.Resumed.Load()))
	t.sweep = sweep.New(journal.Run(), summaryOptions(0))
	if _, err := journal.Finish(func(e *results.Entry) error {
		t.add(e)
		figures.Add(e)
		return nil
	}); err != nil {
		return err
	}
	return t.print(env, c, figures.Summary())
}

// printFinished prints a run that had ended before: the same figures, from the
// same rows.
func printFinished(env *Env, dir string, c harness.Config) error {
	r, err := results.OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	var t tally
	figures := summary.New(r.Run(), summaryOptions(r.Trials()))
	t.sweep = sweep.New(r.Run(), summaryOptions(0))
	if err := eachEntry(r, figures, &t); err != nil {
		return err
	}
	return t.print(env, c, figures.Summary())
}

// eachEntry counts every row of a run.
func eachEntry(r *results.Reader, figures *summary.Aggregator, t *tally) error {
	for e, err := range r.Entries(results.Everything) {
		if err != nil {
			return err
		}
		t.add(e)
		figures.Add(e)
	}
	return nil
}

// summaryOptions says how many trials were taken from the journal, and what the
// papers say of the classes.
func summaryOptions(resumed int64) summary.Options {
	o := summary.Options{Resumed: int(resumed), Classes: datasets.Classes(), Mutations: attacks.MutationNames(), Vulnerabilities: map[string][]string{}}
	for _, class := range datasets.Classes() {
		info, _ := datasets.Info(class)
		o.Vulnerabilities[class] = info.Vulnerabilities
	}
	return o
}

func (t *tally) print(env *Env, c harness.Config, s *summary.Summary) error {
	var err error
	var sweeps []sweep.Sweep
	if t.sweep != nil {
		sweeps = t.sweep.Sweeps()
	}
	switch c.Format {
	case "json":
		if len(sweeps) > 0 {
			s.Sweeps = sweeps
		}
		err = render.JSON(env.Stdout, s)
	case "markdown":
		if err = render.Markdown(env.Stdout, s); err == nil {
			err = printSweeps(env, sweeps, c.Format)
		}
	default:
		err = render.Table(env.screen, s, render.Options{Width: env.Width, Terminal: env.StdoutTerminal})
		if err == nil {
			err = printSweeps(env, sweeps, c.Format)
		}
		if err == nil {
			_, err = fmt.Fprintf(env.Stdout, "\nrows, transcripts and settings: %s\n", inert.Text(c.Out))
		}
	}
	if err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return t.verdict(env, c, s)
}

// printSweeps prints the points of every sweep by split, and which one is chosen.
func printSweeps(env *Env, sweeps []sweep.Sweep, format string) error {
	for i := range sweeps {
		sw := &sweeps[i]
		title := fmt.Sprintf("%s on %s: %s.", sw.Name, sw.Agent, sw.Why)
		if format == "markdown" {
			title = "### " + inert.Markdown(title) + "\n"
		} else {
			title = inert.Text(title)
		}
		if _, err := fmt.Fprintf(env.Stdout, "\n%s\n", title); err != nil {
			return err
		}
		l := &listing{columns: []string{"defense", "split", "TPR", "FPR", "end to end", "utility"}}
		for k := range sw.Points {
			for _, split := range sw.Splits() {
				p := sw.Points[k].Of(split)
				l.add(sw.Points[k].Defense, split, rateText(p.TPR), rateText(p.FPR), rateText(p.EndToEnd), rateText(p.Utility))
			}
		}
		if err := l.print(env, format); err != nil {
			return err
		}
	}
	return nil
}
