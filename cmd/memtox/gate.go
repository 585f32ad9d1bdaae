package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/gate"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

type gateFlags struct {
	gate.Options
	require, margins            []string
	file, baseline, newBaseline string
	dataset                     string // that the file's limits were chosen on
	datasetAt                   string
	confidenceGiven             bool
	format                      *string
	junit, sarif, digest        string
	init                        bool
}

func newGate(env *Env, c *cobra.Command) action {
	f := &gateFlags{Options: gate.Options{Margins: map[string]float64{}}}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&f.require, "require", nil, "A `limit`: [agent/]defense[/class].metric <= number, or >=")
	fs.StringVarP(&f.file, "file", "f", "", "A file of requirements: YAML with dataset, confidence, require, arms and margin")
	fs.StringVar(&f.baseline, "baseline", "", "The baseline: a `file` of --write-baseline, or a run directory")
	fs.StringArrayVar(&f.margins, "margin", nil, "How much worse than the baseline is too much: a `share` for "+
		strings.Join(gate.BaselineMetrics(), ", ")+", or metric=share")
	fs.BoolVar(&f.Exact, "exact", false, "Every case must end as in the baseline")
	fs.Float64Var(&f.Confidence, "confidence", gate.DefaultConfidence, "One-sided confidence of the bounds")
	fs.Uint64Var(&f.Seed, "seed", 1, "Seed of resampling")
	f.format = choiceFlag(c, "format", "table", "What to print: "+strings.Join(gate.Formats(), ", "), gate.Formats()...)
	fs.StringVar(&f.junit, "junit", "", "Write JUnit XML to `FILE` too")
	fs.StringVar(&f.sarif, "sarif", "", "Write SARIF 2.1.0 to `FILE` too")
	fs.StringVar(&f.digest, "markdown", "", "Write Markdown to `FILE` too")
	fs.BoolVar(&f.init, "init", false, "Write limits that the run meets to the file of -f, gate.yaml where there is none; "+
		"nothing is judged")
	fs.StringVar(&f.newBaseline, "write-baseline", "", "Write the run as a baseline to `FILE`; nothing is judged")
	return func(_ context.Context, args []string) error {
		f.confidenceGiven = fs.Changed("confidence")
		return f.run(env, args[0])
	}
}

func (f *gateFlags) run(env *Env, dir string) error {
	if f.init {
		return f.writeSample(env, dir)
	}
	if f.newBaseline != "" {
		return f.writeBaseline(env, dir)
	}
	if err := f.requirements(env); err != nil {
		return err
	}
	if f.baseline == "" { // else what is wrong is known once it is loaded
		if err := f.Check(); err != nil {
			return err
		}
	}
	t, err := env.loadTable(dir, compare.LoadOptions{Latencies: f.WantsLatency()})
	if err != nil {
		return err
	}
	if f.baseline != "" {
		if f.Baseline, err = gate.LoadBaseline(env.path(f.baseline)); err != nil {
			return err
		}
		f.Baseline.Name = f.baseline
	}
	// A name alone is the version that `run` takes for it, as everywhere.
	ran, meant := t.Run.Dataset, datasets.Full(f.dataset)
	if meant != "" && meant != ran.Name && meant != ran.Name+"@"+ran.Version {
		return &settings.Problem{Where: f.datasetAt,
			What: fmt.Sprintf("these limits were chosen on %s, and %s ran %s@%s", meant, dir, ran.Name, ran.Version),
			Hint: "its figures mean something else: run that set, or choose the limits anew and name this one"}
	}
	r, err := gate.Evaluate(t, f.Options)
	if err != nil {
		return err
	}
	return f.write(env, dir, r)
}

// requirements gathers those of the file and of the flags, which add up.
func (f *gateFlags) requirements(env *Env) error {
	if f.file != "" {
		data, err := env.read("-f", f.file)
		if errors.Is(err, fs.ErrNotExist) {
			return &settings.Problem{Where: "-f", What: "there is no " + f.file, Hint: "memtox gate --init RUN writes one"}
		} else if err != nil {
			return err
		}
		n, err := settings.Parse(f.file, data)
		if err == nil {
			err = f.load(n)
		}
		if err != nil {
			return err
		}
	}
	for _, text := range f.require {
		if err := f.limit(text, "--require"); err != nil {
			return err
		}
	}
	for _, text := range f.margins {
		metric, number, named := strings.Cut(text, "=")
		if !named {
			number = text
		}
		v, err := share(number)
		if err != nil {
			return &settings.Problem{Where: "--margin", What: fmt.Sprintf("%q is no margin", text),
				Hint: "0.02, 2% or end_to_end=0.02"}
		}
		if named {
			f.Margins[strings.TrimSpace(metric)] = v
			continue
		}
		for _, m := range gate.BaselineMetrics() {
			if _, given := f.Margins[m]; !given {
				f.Margins[m] = v
			}
		}
	}
	return nil
}

func (f *gateFlags) limit(text, where string) error {
	r, err := gate.Parse(text, where)
	f.Require = append(f.Require, r)
	return err
}

// share reads 0.02 or 2%.
func share(s string) (float64, error) {
	s = strings.TrimSpace(s)
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	return v, err
}

// load takes the requirements of gate.yaml.
func (f *gateFlags) load(n settings.Node) error {
	return n.Each(func(e settings.Entry) error {
		switch e.Key {
		case "dataset":
			text, _, err := e.Value.Scalar()
			f.dataset, f.datasetAt = text, e.Value.Place()
			return err
		case "confidence":
			v, err := shareOf(e.Key, e.Value)
			if !f.confidenceGiven { // a flag wins over the file
				f.Confidence = v
			}
			return err
		case "require":
			return f.limits(e.Value, "")
		case "arms":
			return e.Value.Each(func(arm settings.Entry) error { return f.limits(arm.Value, arm.Key+".") })
		case "margin":
			return e.Value.Each(func(m settings.Entry) (err error) {
				if rate, ok := metric.Find(m.Key); !ok || rate.PerRecord {
					return settings.Unknown(m.At.Place(), "metric", m.Key, metric.Names((*metric.Metric).PerTrial))
				}
				f.Margins[m.Key], err = shareOf("margin of "+m.Key, m.Value)
				return err
			})
		}
		return settings.Unknown(e.At.Place(), "key", e.Key, []string{"dataset", "confidence", "require", "arms", "margin"})
	})
}

func (f *gateFlags) limits(list settings.Node, prefix string) error {
	items, err := list.Items()
	for _, i := range items {
		text, _, err := i.Scalar()
		if err == nil {
			err = f.limit(prefix+text, i.Place())
		}
		if err != nil {
			return err
		}
	}
	return err
}

// shareOf reads a share; what is how an error calls it.
func shareOf(what string, n settings.Node) (float64, error) {
	text, _, err := n.Scalar()
	if err != nil {
		return 0, err
	}
	v, err := share(text)
	if err != nil {
		return 0, n.Errorf("%s: %q is no share", what, text)
	}
	return v, nil
}

func (f *gateFlags) writeBaseline(env *Env, dir string) error {
	if len(f.require) > 0 || f.file != "" || f.baseline != "" {
		return &settings.Problem{Where: "--write-baseline", What: "it writes the run as a baseline and judges nothing",
			Hint: "judge the run in a command of its own"}
	}
	var n int64
	err := env.output(f.newBaseline, func(w io.Writer) (err error) {
		n, err = gate.WriteBaseline(w, env.path(dir))
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stderr, "memtox: %d trials written to %s\n", n, f.newBaseline)
	return err
}

// writeSample writes a file of limits that the run meets.
func (f *gateFlags) writeSample(env *Env, dir string) error {
	if len(f.require) > 0 || f.baseline != "" || f.newBaseline != "" || f.junit+f.sarif+f.digest != "" {
		return &settings.Problem{Where: "--init", What: "it writes a file of limits and judges nothing",
			Hint: "give it the run, and -f where the file is not to be gate.yaml; judge the run in a command of its own"}
	}
	if err := (&gate.Options{Confidence: f.Confidence, Baseline: &compare.Table{}, Exact: true}).Check(); err != nil {
		return err
	}
	file := cmp.Or(f.file, "gate.yaml")
	if st, err := os.Stat(env.path(file)); file != "-" && err == nil && st.Size() > 0 {
		return &settings.Problem{Where: "--init", What: file + " is there already", Hint: "name another with -f"}
	}
	t, err := env.loadTable(dir, compare.LoadOptions{})
	if err != nil {
		return err
	}
	var n int
	err = env.output(file, func(w io.Writer) (err error) {
		n, err = gate.Sample(w, t, f.Confidence, "memtox gate --init "+dir)
		return err
	})
	if err == nil && file != "-" {
		env.say("%d limits written to %s; hold a run to them: memtox gate %s -f %s", n, file, dir, file)
	}
	return err
}

// write prints the result where it is wanted. Files come first, so that a CI job
// has them however the gate ends.
func (f *gateFlags) write(env *Env, dir string, r *gate.Result) error {
	place := cmp.Or(f.file, filepath.ToSlash(filepath.Join(dir, "run.json")))
	as := func(format string) func(io.Writer) error {
		return func(w io.Writer) error { return r.Write(w, format, versionString(), place) }
	}
	outs := []struct{ file, format string }{{f.junit, "junit"}, {f.sarif, "sarif"}, {f.digest, "markdown"},
		{"-", *f.format}}
	if env.Getenv("GITHUB_ACTIONS") == "true" && *f.format == "table" {
		outs = append(outs, struct{ file, format string }{"-", "github"})
	}
	for _, out := range outs {
		if out.file == "" {
			continue
		}
		if err := env.output(out.file, as(out.format)); err != nil {
			return fmt.Errorf("writing the result of the gate: %w", err)
		}
	}
	if summary := env.Getenv("GITHUB_STEP_SUMMARY"); summary != "" {
		if err := appendTo(env.path(summary), as("markdown")); err != nil {
			// The summary is an extra: the verdict stands without it.
			env.say("the summary of the job could not be written: %v", err)
		}
	}
	switch r.Outcome {
	case stats.Fail:
		return told{errBadNews}
	case stats.Inconclusive:
		return told{errInconclusive}
	}
	return nil
}

// appendTo adds to a file, which need not exist.
func appendTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
