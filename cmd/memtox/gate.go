package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/gate"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// gateFlags are the flags of `memtox gate`.
type gateFlags struct {
	require, margins             []string
	file, baseline, newBaseline  string
	exact                        bool
	confidence                   float64
	confidenceGiven              bool
	seed                         uint64
	format, junit, sarif, digest string
}

func newGate(env *Env) *cobra.Command {
	f := &gateFlags{}
	c := &cobra.Command{
		Use:   "gate RUN",
		Short: "Decide whether a run is good enough, for CI",
		Long: `Hold a run against limits, a baseline, or both.

A limit is '[agent/]defense[/class].metric <= number', or >=; without an agent it
holds for every agent that has the defense. Metrics have the names of the JSON of a
run. A limit of a latency is a multiple of the run's calibration loop (<= 40), or a
time where you ask for one (<= 40us). A file of limits (-f gate.yaml):

  confidence: 0.95
  require:
    - guard.end_to_end <= 0.05
  arms:
    hermes/guard:
      - tpr >= 0.9
      - utility >= 0.95
  margin:
    end_to_end: 0.02

Nothing is judged by a point estimate. A check passes where its one-sided bound
meets the limit, fails where the other bound breaks it, and is inconclusive
between the two. A run that meets every requirement goes red in at most 5% of
cases, one that breaks a requirement goes green in at most 5%.

A baseline (a run directory, or a file of --write-baseline) is used only with
--baseline: with --margin the run must not be worse by that much, paired where the
cases match; with --exact every case must end as in the baseline.

Exit code 0 is pass, 1 fail, 4 inconclusive. In GitHub Actions annotations and a
summary of the job are written too.`,
		Example: `  memtox gate runs/small --require 'guard.end_to_end <= 0.05' --require 'guard.utility >= 0.9'
  memtox gate runs/small -f gate.yaml --junit gate.xml --sarif gate.sarif
  memtox gate runs/small --write-baseline baseline.parquet
  memtox gate runs/new --baseline baseline.parquet --margin 0.02
  memtox gate runs/new --baseline baseline.parquet --exact`,
		Args: oneArg("a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.confidenceGiven = cmd.Flags().Changed("confidence")
			return f.run(env, args[0])
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&f.require, "require", nil, "A `limit`: [agent/]defense[/class].metric <= number, or >=")
	fs.StringVarP(&f.file, "file", "f", "", "A file of requirements: YAML with confidence, require, arms and margin")
	fs.StringVar(&f.baseline, "baseline", "", "The baseline: a `file` of --write-baseline, or a run directory")
	fs.StringArrayVar(&f.margins, "margin", nil, "How much worse than the baseline is too much: a `share` for "+
		strings.Join(gate.BaselineMetrics(), ", ")+", or metric=share")
	fs.BoolVar(&f.exact, "exact", false, "Every case must end as in the baseline")
	fs.Float64Var(&f.confidence, "confidence", gate.DefaultConfidence, "One-sided confidence of the bounds")
	fs.Uint64Var(&f.seed, "seed", 1, "Seed of resampling")
	fs.StringVar(&f.format, "format", "table", "What to print: "+strings.Join(gate.Formats(), ", "))
	fs.StringVar(&f.junit, "junit", "", "Write JUnit XML to `FILE` too")
	fs.StringVar(&f.sarif, "sarif", "", "Write SARIF 2.1.0 to `FILE` too")
	fs.StringVar(&f.digest, "markdown", "", "Write Markdown to `FILE` too")
	fs.StringVar(&f.newBaseline, "write-baseline", "", "Write the run as a baseline to `FILE`; nothing is judged")
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(gate.Formats(),
		cobra.ShellCompDirectiveNoFileComp)))
	return c
}

func (f *gateFlags) run(env *Env, dir string) error {
	if err := choice("--format", f.format, gate.Formats()); err != nil {
		return err
	}
	if f.newBaseline != "" {
		return f.writeBaseline(env, dir)
	}
	o, err := f.options(env)
	if err != nil {
		return err
	}
	if f.baseline == "" { // else what is wrong is known once it is loaded
		if err := o.Check(); err != nil {
			return err
		}
	}
	t, err := env.loadTable(dir, compare.LoadOptions{Latencies: o.WantsLatency()})
	if err != nil {
		return err
	}
	if f.baseline != "" {
		if o.Baseline, err = gate.LoadBaseline(env.path(f.baseline)); err != nil {
			return err
		}
		o.Baseline.Name = f.baseline
	}
	r, err := gate.Evaluate(t, o)
	if err != nil {
		return err
	}
	return f.write(env, dir, r)
}

// options gathers the requirements of the file and of the flags.
func (f *gateFlags) options(env *Env) (gate.Options, error) {
	o := gate.Options{Exact: f.exact, Confidence: f.confidence, Seed: f.seed, Margins: map[string]float64{}}
	if f.file != "" {
		data, err := env.readFile(f.file)
		if err != nil {
			return o, &settings.Problem{Where: "-f", Err: withoutPath(err), What: f.file}
		}
		if err := f.load(&o, data); err != nil {
			return o, err
		}
	}
	for _, text := range f.require {
		r, err := gate.Parse(text, "--require")
		if err != nil {
			return o, err
		}
		o.Require = append(o.Require, r)
	}
	for _, text := range f.margins {
		metric, number, named := strings.Cut(text, "=")
		if !named {
			number = text
		}
		v, err := share(number)
		if err != nil {
			return o, &settings.Problem{Where: "--margin", What: fmt.Sprintf("%q is no margin", text),
				Hint: "0.02, 2% or end_to_end=0.02"}
		}
		if named {
			o.Margins[strings.TrimSpace(metric)] = v
			continue
		}
		for _, m := range gate.BaselineMetrics() {
			if _, given := o.Margins[m]; !given {
				o.Margins[m] = v
			}
		}
	}
	return o, nil
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

// load reads gate.yaml. Limits of it and of the flags add up.
func (f *gateFlags) load(o *gate.Options, data []byte) error {
	n, err := settings.Parse(f.file, data)
	if err != nil {
		return err
	}
	return f.entries(o, n)
}

func (f *gateFlags) entries(o *gate.Options, n settings.Node) error {
	entries, err := n.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Key {
		case "confidence":
			text, _, err := e.Value.Scalar()
			if err != nil {
				return err
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return e.Value.Errorf("confidence: %q is no number", text)
			}
			if !f.confidenceGiven { // a flag wins over the file
				o.Confidence = v
			}
		case "require":
			if err := limits(o, e.Value, ""); err != nil {
				return err
			}
		case "arms":
			arms, err := e.Value.Entries()
			if err != nil {
				return err
			}
			for _, a := range arms {
				if err := limits(o, a.Value, a.Key+"."); err != nil {
					return err
				}
			}
		case "margin":
			margins, err := e.Value.Entries()
			if err != nil {
				return err
			}
			for _, m := range margins {
				text, _, err := m.Value.Scalar()
				if err != nil {
					return err
				}
				v, err := share(text)
				if err != nil {
					return m.Value.Errorf("margin of %s: %q is no share", m.Key, text)
				}
				if rate, ok := metric.Find(m.Key); !ok || rate.PerRecord {
					return settings.Unknown(m.At.Place(), "metric", m.Key, metric.Names((*metric.Metric).PerTrial))
				}
				o.Margins[m.Key] = v
			}
		default:
			return settings.Unknown(e.At.Place(), "key", e.Key, []string{"confidence", "require", "arms", "margin"})
		}
	}
	return nil
}

// limits reads a list of requirements.
func limits(o *gate.Options, list settings.Node, prefix string) error {
	items, err := list.Items()
	if err != nil {
		return err
	}
	for _, i := range items {
		text, _, err := i.Scalar()
		if err != nil {
			return err
		}
		r, err := gate.Parse(prefix+text, i.Place())
		if err != nil {
			return err
		}
		o.Require = append(o.Require, r)
	}
	return nil
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

// write prints the result where it is wanted. Files come first, so that a CI job
// has them however the gate ends.
func (f *gateFlags) write(env *Env, dir string, r *gate.Result) error {
	place := filepath.ToSlash(filepath.Join(dir, "run.json"))
	if f.file != "" {
		place = f.file
	}
	for _, out := range []struct{ file, format string }{{f.junit, "junit"}, {f.sarif, "sarif"}, {f.digest, "markdown"},
		{"-", f.format}} {
		if out.file == "" {
			continue
		}
		if err := env.output(out.file, func(w io.Writer) error {
			return r.Write(w, out.format, versionString(),
				place)
		}); err != nil {
			return fmt.Errorf("writing the result of the gate: %w", err)
		}
	}
	if env.Getenv("GITHUB_ACTIONS") == "true" && f.format == "table" {
		if err := r.Write(env.Stdout, "github", versionString(), place); err != nil {
			return fmt.Errorf("writing annotations: %w", err)
		}
	}
	if summary := env.Getenv("GITHUB_STEP_SUMMARY"); summary != "" {
		if err := appendTo(env.path(summary), func(w io.Writer) error {
			return r.Write(w, "markdown", versionString(),
				place)
		}); err != nil {
			// The summary is an extra: the verdict stands without it.
			fmt.Fprintf(env.Stderr, "memtox: the summary of the job could not be written: %v\n", err)
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
	err = write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
