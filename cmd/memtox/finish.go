package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/summary"
)

// verdict says with which code a run ends, and why in a line. It is made from the rows
// alone, so that a resumed run and an uninterrupted one end alike.
func verdict(env *Env, c harness.Config, s *summary.Summary) error {
	var scored, failed, excluded int64
	for i := range s.Arms {
		a := &s.Arms[i]
		scored, failed, excluded = scored+a.Scored, failed+a.NotScored, excluded+a.Excluded
	}
	why := ""
	if reason, n := s.MostFrequentError(nil); n > 0 {
		why = fmt.Sprintf("; the most frequent reason (%d times): %s", n, reason)
	}
	switch {
	case scored == 0:
		return env.end(errInconclusive, "nothing was scored: %d trials failed, %d do not apply%s", failed, excluded, why)
	case s.Attacks > 0 && s.Uncountable == s.Attacks:
		return env.end(errInconclusive, "no attack could be counted: none says what it wants stored and by which value "+
			"that can be told (expected_memory, value)")
	case s.Silence() != "":
		return env.end(errInconclusive, "%s", s.Silence())
	case failed > int64(c.MaxNotScored):
		return env.end(errBadNews, "%d of %d trials were not scored, more than --max-not-scored %d allows%s",
			failed, failed+scored, c.MaxNotScored, why)
	case s.Uncountable > 0:
		env.say("%d of %d attack trials are in no rate: their cases do not say what they want stored and by which value "+
			"that can be told", s.Uncountable, s.Attacks)
	}
	return nil
}

// finish compacts the journal, prints the figures, and says how the run went.
func finish(env *Env, journal *results.Journal, c harness.Config, progress *harness.Progress) error {
	o, err := mixedOptions(env, c, progress.Resumed.Load())
	if err != nil {
		return err
	}
	figures := summary.New(journal.Run(), o)
	if _, err := journal.Finish(func(e *results.Entry) error { figures.Add(e); return nil }); err != nil {
		return err
	}
	return printRun(env, c, figures.Summary())
}

// printFinished prints a run that had ended before: the same figures, from the
// same rows.
func printFinished(env *Env, dir string, c harness.Config) error {
	return readRun(dir, func(r *results.Reader) error {
		o, err := mixedOptions(env, c, r.Trials())
		if err != nil {
			return err
		}
		figures := summary.New(r.Run(), o)
		if err := figures.AddAll(r); err != nil {
			return err
		}
		return printRun(env, c, figures.Summary())
	})
}

func readRun(dir string, do func(*results.Reader) error) error {
	r, err := results.OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	return do(r)
}

// summaryOptions says how many trials were taken from the journal, and what the
// papers say of the classes.
func summaryOptions(resumed int64) summary.Options {
	o := summary.Options{Resumed: int(resumed), Classes: datasets.Classes(), Mutations: attacks.MutationNames(),
		Vulnerabilities: map[string][]string{}}
	for _, class := range datasets.Classes() {
		info, _ := datasets.Info(class)
		o.Vulnerabilities[class] = info.Vulnerabilities
	}
	return o
}

// mixedOptions are those of the settings too.
func mixedOptions(env *Env, c harness.Config, resumed int64) (o summary.Options, err error) {
	o = summaryOptions(resumed)
	o.Mix, err = summary.MixOf(c.Mix, datasets.Situations(), func(file string) ([]byte, error) { return os.ReadFile(env.path(file)) })
	return o, err
}

func newSituations(env *Env, c *cobra.Command) action {
	format := formatFlag(c)
	mix := c.Flags().String("mix", "", "Weighs the situations: uniform, crossed, or a YAML `FILE` of shares")
	return func(ctx context.Context, args []string) error {
		o, err := mixedOptions(env, harness.Config{Mix: *mix}, 0)
		if err != nil {
			return err
		}
		return readRun(env.path(args[0]), func(r *results.Reader) error {
			figures := summary.New(r.Run(), o)
			if err := figures.AddAll(r); err != nil {
				return err
			}
			s := figures.Summary()
			tables := render.Situations(s)
			if len(tables) == 0 {
				return &settings.Problem{Where: args[0], What: "has no case whose outcome is a state",
					Hint: "run memtox-bench@v2, or a set of state families"}
			}
			type arm struct {
				Agent      string             `json:"agent"`
				Defense    string             `json:"defense"`
				Model      string             `json:"model"`
				Situations []summary.Situated `json:"situations"`
				Vias       []summary.Slice    `json:"vias,omitempty"`
				Mixed      *summary.Mixed     `json:"mixed,omitempty"`
			}
			var arms []arm
			for _, a := range s.Arms {
				arms = append(arms, arm{r.Run().Named(a.Agent), a.Defense, a.Model, a.Situations, a.Vias, a.Mixed})
			}
			return render.Write(env.Stdout, *format, arms, func(p *render.Paper) error {
				for i := range tables {
					p.Table(&tables[i])
				}
				return nil
			})
		})
	}
}

func printRun(env *Env, c harness.Config, s *summary.Summary) error {
	if err := printSummary(env, c, s, "rows, transcripts and settings"); err != nil {
		return err
	}
	return verdict(env, c, s)
}

// printSummary prints figures in the format of the settings, and where what else is.
func printSummary(env *Env, c harness.Config, s *summary.Summary, what string) error {
	out := env.Stdout
	if c.Format == "table" {
		out = env.screen
	}
	err := render.Summary(out, s, c.Format, render.Options{Width: env.Width, Full: c.Full,
		Terminal: env.StdoutTerminal})
	if err == nil && c.Format == "table" && c.Out != "" {
		out := inert.Text(c.Out)
		if s.Texts != nil || c.Full {
			_, err = fmt.Fprintf(env.Stdout, "\n%s: %s\n", what, out)
		} else {
			out = inert.Shell(out)
			_, err = fmt.Fprintf(env.Stdout, "\nNext: memtox compare %s\n      memtox report %[1]s -o report.html\n"+
				"      memtox run --resume --full --out %[1]s\n", out)
		}
	}
	if err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}
