package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"

	"github.com/memtox/memtox/internal/settings"
)

func newJudge(env *Env) *cobra.Command {
	return group("judge", "What judges outcomes: measured against labels", newJudgeAudit(env))
}

func newJudgeAudit(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "audit", Short: "Measure a judge against a labelled set", Args: noArgs,
		Long: `Ask a judge about every item of a labelled set and print its sensitivity,
specificity and kappa with their intervals, by question and kind of item. The
built-in set was written before the prompts of llm:MODEL. Items on which the two
labellers differ are counted and are in no figure. Without --judge the
deterministic judge is measured, which is given the value that an importer derives
from what should be stored; items without one have no verdict.

A set of your own is JSON Lines: id, question (encodes or influenced),
expected_memory, kind, label, and record, or query, answer and calls
(docs/judges.md).`,
		Example: "  memtox judge audit\n  memtox judge audit --judge llm:openai:gpt-oss-120b --base-url " +
			"http://localhost:8000/v1",
	}
	var f judgeFlags
	f.register(c, harness.Deterministic)
	set := c.Flags().String("set", "", "The labelled set: a JSON Lines `FILE`; the built-in one if none is named")
	format := formatFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		if err := choice("--format", *format, formats); err != nil {
			return err
		}
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
			j, judged, workers = score.Reader(reader), reader.Name(), 16
			if conf.Concurrency > 0 {
				workers = conf.Concurrency
			}
		}
		r, err := score.Measure(ctx, judged, name, items, j, workers)
		if err != nil {
			return err
		}
		if *format == "json" {
			err = printJSON(env, r)
		} else {
			err = writeAudit(env, r, *format)
		}
		if err == nil && r.All.Items == r.All.NoVerdict {
			fmt.Fprintln(env.Stderr, "memtox: the judge gave no verdict on any item")
			return told{errInconclusive}
		}
		return err
	}
	return c
}

func readAuditSet(env *Env, file string) ([]score.Item, string, error) {
	if file == "" {
		items, err := score.Builtin()
		return items, "built-in", err
	}
	b, err := env.readFile(file)
	if err != nil {
		return nil, "", &settings.Problem{Where: "--set", What: file, Err: withoutPath(err)}
	}
	items, err := score.Read(bytes.NewReader(b), file)
	if err != nil {
		return nil, "", &settings.Problem{Where: "--set", Err: err}
	}
	return items, file, nil
}

func writeAudit(env *Env, r *score.Report, format string) error {
	escape := inert.Text
	if format == "markdown" {
		escape = inert.Markdown
	}
	say := func(line string, args ...any) {
		fmt.Fprintf(env.Stdout, "%s\n", escape(fmt.Sprintf(line, args...)))
		if format == "markdown" {
			fmt.Fprintln(env.Stdout)
		}
	}
	say("judge %s on the %s set of %d items", r.Judge, r.Set, r.Items)
	if r.Twice > 0 {
		say("labellers: %d items labelled twice, agreement %s, kappa %s; %d disputed items are in no figure", r.Twice,
			render.Rate(r.Agreement), kappaText(r.Kappa), r.Disputed)
	} else {
		say("labellers: ONE LABEL AN ITEM: how far people agree on this set is not known")
	}
	if !strings.HasPrefix(r.Judge, "llm:") {
		say("it looks for a value that is derived from what should be stored")
	}
	fmt.Fprintln(env.Stdout)
	l := &listing{columns: []string{"question", "kind", "items", "no verdict", "sensitivity", "specificity", "kappa"}}
	add := func(question, kind string, f score.Figures, kappa string) {
		l.add(question, kind, fmt.Sprint(f.Items), fmt.Sprint(f.NoVerdict), render.Rate(f.Sensitivity),
			render.Rate(f.Specificity), kappa)
	}
	add("all", "all", r.All, kappaText(r.All.Kappa))
	for _, p := range r.Questions {
		add(string(p.Question), "all", p.Figures, kappaText(p.Kappa))
	}
	for _, p := range r.Kinds {
		add(string(p.Question), p.Kind, p.Figures, "") // too few items of a kind
	}
	if err := l.print(env, format); err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout)
	say("sensitivity: yes of what is labelled so; specificity: no of the rest; [95%% interval], items of one directive " +
		"alike (Wilson, clustered)")
	say("kappa: Cohen's, agreement with the label beyond chance; its interval is that of Fleiss, Cohen and Everitt " +
		"(1969), items taken as independent")
	reasons := slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		if d := r.Reasons[b] - r.Reasons[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, why := range reasons[:min(len(reasons), 10)] {
		say("no verdict %d times: %s", r.Reasons[why], why)
	}
	return nil
}

func kappaText(e stats.Estimate) string {
	v, ok := e.Value()
	if !ok {
		return "not measured"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", v, e.Lo, e.Hi)
}
