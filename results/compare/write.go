package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// mostChanged bounds how many changed cases a table lists; the JSON has all.
const mostChanged = 20

// Write writes the report as table, json or markdown.
func (r *Report) Write(w io.Writer, format string) error {
	transcripts := &library{tables: r.tables, readers: map[int]*results.Reader{}}
	defer transcripts.close()
	if format == "json" {
		if err := transcripts.add(r.Declared.Comparisons); err != nil {
			return err
		}
	}
	return render.Write(w, format, r, func(p *render.Paper) error { return r.say(p, transcripts) })
}

func (r *Report) say(p *render.Paper, transcripts *library) error {
	for i, run := range r.Runs {
		name := run.Name
		if len(r.Runs) > 1 {
			name = fmt.Sprintf("run %s: %s", runLetter(i), run.Name)
		}
		p.Item("%s: %s", name, run.About())
	}
	if n := len(r.Declared.Comparisons); n > 0 {
		p.Heading(3, "Declared comparisons: paired by case and epoch, p values Holm-adjusted over %s", plural(n, "comparison"))
		p.Table(r.grid(r.Declared, false))
	}
	if len(r.Questions) > 0 {
		p.Heading(3, "Questions that were not due, per 100 trials: not tested, the interval says what there is to say")
		p.Table(r.questions())
	}
	if r.Exploratory != nil {
		p.Heading(3, "Exploratory, by %s: p values adjusted by Benjamini–Hochberg over %s; they suggest, they do not decide",
			strings.Join(r.By, ", "), plural(len(r.Exploratory.Comparisons), "comparison"))
		p.Table(r.grid(*r.Exploratory, true))
	}
	if len(r.Latency) > 0 {
		p.Heading(3, "Latency, microseconds: not tested, the interval says what there is to say")
		p.Table(r.latencies())
	}
	p.Gap()
	r.footer(p)
	for i := range r.Declared.Comparisons {
		if err := r.changed(p, &r.Declared.Comparisons[i], transcripts); err != nil {
			return err
		}
	}
	return nil
}

// About says of what set and model the run is.
func (i RunInfo) About() string {
	model := i.Model
	if i.Model == NoModel {
		model = "none (texts, no agent)"
	} else if !i.LLM {
		model += ", which is not an LLM"
	}
	return fmt.Sprintf("%s, split %s, model %s, %d trials", i.Dataset, i.Split, model, i.Trials)
}

func runLetter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprint(i + 1)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r *Report) side(s Side) string {
	if len(r.Runs) == 1 {
		return s.Defense
	}
	return s.Defense + " in " + runLetter(s.Run)
}

// grid has a row a comparison.
func (r *Report) grid(f Family, sliced bool) *render.Table {
	cs := f.Comparisons
	clustered := slices.ContainsFunc(cs, func(c Comparison) bool { return c.Test.Method != c.McNemar.Method })
	withPrevented := slices.ContainsFunc(cs, func(c Comparison) bool { return c.Prevented != nil })
	g := &render.Table{Header: []string{"agent", "arm", "against"}}
	if sliced {
		g.Header = append(g.Header, "slice")
	}
	g.Header = append(g.Header, "metric", "rate", "rate against", "difference", "only arm", "only against", "p adjusted",
		"test")
	if clustered {
		g.Header = append(g.Header, "McNemar p")
	}
	if withPrevented {
		g.Header = append(g.Header, "prevented")
	}
	for i := range cs {
		c := &cs[i]
		row := []string{c.Agent, r.side(c.A), r.side(c.B)}
		if sliced {
			row = append(row, c.Slice.Name)
		}
		pv := render.NotMeasured
		if c.Adjusted != nil {
			pv = pValue(*c.Adjusted)
		}
		row = append(row, c.Metric, render.Share(c.RateA), render.Share(c.RateB), points(c.Difference),
			fmt.Sprint(c.Pairs.OnlyA), fmt.Sprint(c.Pairs.OnlyB), pv, testName(c.Test.Method))
		if clustered {
			row = append(row, pValue(c.McNemar.P))
		}
		if withPrevented {
			row = append(row, c.Prevented.text())
		}
		g.Add(row...)
	}
	return g
}

// points gives a difference of rates in percentage points.
func points(e stats.Estimate) string {
	v, ok := e.Value()
	if !ok {
		return render.NotMeasured
	}
	return fmt.Sprintf("%+.1f [%+.1f, %+.1f]", 100*v+0, 100*e.Lo+0, 100*e.Hi+0)
}

func pValue(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// tests are the methods by which differences are tested, with what a reader must know.
var tests = []struct{ method, name, text string }{
	{"mcnemar-exact", "McNemar", "the exact test on the cases that tell the arms apart (only arm, only against)."},
	{"cluster-sign-flip", "sign flip", "the paired test that swaps the arms in whole template families, for cases of one " +
		"family are alike; McNemar's exact test where every family has one case. McNemar p, which is not adjusted, takes " +
		"cases as independent."},
}

func testName(method string) string {
	for _, t := range tests {
		if t.method == method {
			return t.name
		}
	}
	return method
}

func (v *Prevented) text() string {
	switch {
	case v == nil:
		return ""
	case !v.Headroom:
		return "no headroom"
	}
	lo := "unbounded"
	if v.Lo != nil {
		lo = render.Percent(*v.Lo) + "%"
	}
	return fmt.Sprintf("%s%% [%s, %s%%]", render.Percent(*v.Value), lo, render.Percent(*v.Hi))
}

func (r *Report) latencies() *render.Table {
	g := &render.Table{Header: []string{"agent", "arm", "against", "metric", "arm µs", "against µs", "difference µs"}}
	micro := func(v *float64) string {
		if v == nil {
			return render.NotMeasured
		}
		return fmt.Sprintf("%.3g", *v)
	}
	for _, c := range r.Latency {
		d := render.NotMeasured
		if v, ok := c.Difference.Value(); ok {
			d = fmt.Sprintf("%+.3g [%s, %s]", v, end(c.Difference.Lo), end(c.Difference.Hi))
		}
		g.Add(c.Agent, r.side(c.A), r.side(c.B), c.Name, micro(c.ValueA), micro(c.ValueB), d)
	}
	return g
}

func (r *Report) questions() *render.Table {
	g := &render.Table{Header: []string{"agent", "arm", "against", "trials", "per 100", "per 100 against", "difference"}}
	for _, c := range r.Questions {
		v, _ := c.Difference.Value()
		g.Add(c.Agent, r.side(c.A), r.side(c.B), c.Label, fmt.Sprintf("%.1f", *c.ValueA), fmt.Sprintf("%.1f", *c.ValueB),
			fmt.Sprintf("%+.1f [%+.1f, %+.1f]", v+0, c.Difference.Lo+0, c.Difference.Hi+0))
	}
	return g
}

// end gives an end of an interval that may be without bound.
func end(v float64) string {
	if math.IsInf(v, 0) {
		return "unbounded"
	}
	return fmt.Sprintf("%+.3g", v)
}

func (r *Report) footer(p *render.Paper) {
	all := r.Declared.Comparisons
	if r.Exploratory != nil {
		all = slices.Concat(all, r.Exploratory.Comparisons)
	}
	used := map[string]bool{}
	for _, c := range all {
		used[c.Difference.Method], used[c.Test.Method] = true, true
	}
	var intervals []string
	for _, m := range []struct{ method, text string }{
		{"newcombe-paired", "Newcombe's for pairs"}, {"paired-clustered-t", "paired, clustered by template family"},
		{"paired-cluster-bootstrap", "bootstrap of template families, paired"},
	} {
		if used[m.method] {
			intervals = append(intervals, m.text)
		}
	}
	if len(all) > 0 {
		p.Item("difference: rate of arm − rate of against in percentage points on the same cases, with a %g%% interval (%s).",
			100*r.Level, strings.Join(intervals, "; "))
	}
	for _, t := range tests {
		if used[t.method] {
			p.Item("%s: %s", t.name, t.text)
		}
	}
	if slices.ContainsFunc(all, func(c Comparison) bool { return c.Prevented != nil }) {
		p.Item("prevented: 1 − rate/undefended rate; no headroom where the undefended attack never landed.")
	}
	if slices.ContainsFunc(r.Runs, func(i RunInfo) bool { return !i.LLM && i.Model != NoModel }) {
		p.Item("the reference model is not an LLM: differences tell defenses apart, they say nothing about how often a " +
			"real model is poisoned.")
	}
	for i := range r.Declared.Comparisons {
		if c := &r.Declared.Comparisons[i]; c.Dropped.total() > 0 {
			p.Item("dropped from %s: %s", r.name(c), c.Dropped)
		}
	}
	var seen []string
	for i := range r.Declared.Comparisons {
		for _, w := range r.Declared.Comparisons[i].Warnings {
			if !slices.Contains(seen, w) {
				seen = append(seen, w)
				p.Item("note, %s: %s", r.name(&r.Declared.Comparisons[i]), w)
			}
		}
	}
	for _, n := range r.Notes {
		p.Item("%s", n)
	}
}

// String says what was dropped.
func (d Dropped) String() string {
	var out []string
	for _, c := range []struct {
		n    int
		what string
	}{{d.OnlyA, "cases only in the arm"}, {d.OnlyB, "cases only in the one it is compared with"},
		{d.NotScored, "not scored in one of them"}, {d.OneSided, "where the question arose in one only"}} {
		if c.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(out, ", ")
}

// name says which comparison it is.
func (r *Report) name(c *Comparison) string {
	return fmt.Sprintf("%s, %s against %s, %s", c.Agent, r.side(c.A), r.side(c.B), c.Metric)
}

// changed lists the cases whose outcome differs, with what happened in them.
func (r *Report) changed(p *render.Paper, c *Comparison, transcripts *library) error {
	if len(c.Changed) == 0 {
		return nil
	}
	p.Heading(3, "%s: %s changed", r.name(c), plural(len(c.Changed), "case"))
	for _, k := range c.Changed[:min(len(c.Changed), mostChanged)] {
		name := k.Case
		if k.Epoch > 0 {
			name += fmt.Sprintf(" epoch %d", k.Epoch)
		}
		p.Item("%s (%s): %s %s with %s, %s with %s", name, cmp.Or(k.Class, k.Label), c.Metric, yes(k.B), r.side(c.B),
			yes(k.A), r.side(c.A))
		for _, side := range []struct {
			s     Side
			trial string
		}{{c.B, k.TrialB}, {c.A, k.TrialA}} {
			_, t, err := transcripts.get(side.s.Run, side.trial)
			if err != nil {
				return err
			}
			sayTranscript(p, r.side(side.s), t)
		}
	}
	if more := len(c.Changed) - mostChanged; more > 0 {
		p.Say("… and %d more; --format json has them all", more)
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
