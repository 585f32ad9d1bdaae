package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// Formats are the formats that a report can be written in.
func Formats() []string { return []string{"table", "json", "markdown"} }

// mostChanged bounds how many changed cases a table lists; the JSON has all.
const mostChanged = 20

// Write writes the report as table, json or markdown.
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return r.writeJSON(w)
	case "table", "markdown":
		var b bytes.Buffer
		p := printer{w: &b, markdown: format == "markdown"}
		p.report(r)
		if p.err != nil {
			return p.err
		}
		_, err := w.Write(b.Bytes())
		return err
	}
	return usage(fmt.Sprintf("unknown format %q", format), "one of "+strings.Join(Formats(), ", "))
}

type comparisonJSON struct {
	Metric     string         `json:"metric"`
	Slice      *Slice         `json:"slice,omitempty"`
	Agent      string         `json:"agent"`
	A          Side           `json:"a"`
	B          Side           `json:"b"`
	RateA      stats.Rate     `json:"rate_a"`
	RateB      stats.Rate     `json:"rate_b"`
	Difference stats.Estimate `json:"difference"`
	Interval   string         `json:"interval"`
	Pairs      map[string]int `json:"pairs"`
	Test       stats.Test     `json:"test"`
	McNemar    stats.Test     `json:"mcnemar"`
	Adjusted   *float64       `json:"p_adjusted"`
	Prevented  *Prevented     `json:"prevented,omitempty"`
	Dropped    Dropped        `json:"dropped"`
	Changed    []changedJSON  `json:"changed,omitempty"`
	Warnings   []string       `json:"warnings,omitempty"`
}

type changedJSON struct {
	Change
	TranscriptA json.RawMessage `json:"transcript_a,omitempty"`
	TranscriptB json.RawMessage `json:"transcript_b,omitempty"`
}

func (r *Report) writeJSON(w io.Writer) error {
	type family struct {
		Adjustment  string           `json:"adjustment"`
		Comparisons []comparisonJSON `json:"comparisons"`
	}
	out := struct {
		Runs        []RunInfo           `json:"runs"`
		Metrics     []string            `json:"metrics"`
		Level       float64             `json:"level"`
		Declared    family              `json:"declared"`
		Exploratory *family             `json:"exploratory,omitempty"`
		Latency     []LatencyComparison `json:"latency_us,omitempty"`
		Notes       []string            `json:"notes"`
	}{r.Runs, r.Metrics, r.Level, family{"holm", []comparisonJSON{}}, nil, r.Latency, append([]string{}, r.Notes...)}
	transcripts := r.transcripts()
	defer transcripts.close()
	convert := func(cs []Comparison) ([]comparisonJSON, error) {
		var list []comparisonJSON
		for i := range cs {
			c := &cs[i]
			j := comparisonJSON{Metric: c.Metric, Agent: c.Agent, A: c.A, B: c.B, RateA: c.RateA, RateB: c.RateB,
				Difference: c.Difference, Interval: c.Difference.Method,
				Pairs: map[string]int{"both": c.Pairs.Both, "only_a": c.Pairs.OnlyA, "only_b": c.Pairs.OnlyB,
					"neither": c.Pairs.Neither},
				Test: c.Test, McNemar: c.McNemar, Prevented: c.Prevented, Dropped: c.Dropped, Warnings: c.warnings()}
			if c.Slice.By != "" {
				j.Slice = &c.Slice
			}
			if c.Test.Measured {
				j.Adjusted = &c.Adjusted
			}
			for _, k := range c.Changed {
				x := changedJSON{Change: k}
				var err error
				if x.TranscriptA, _, err = transcripts.get(c.A.Run, k.TrialA); err == nil {
					x.TranscriptB, _, err = transcripts.get(c.B.Run, k.TrialB)
				}
				if err != nil {
					return nil, err
				}
				j.Changed = append(j.Changed, x)
			}
			list = append(list, j)
		}
		return list, nil
	}
	var err error
	if out.Declared.Comparisons, err = convert(r.Declared); err != nil {
		return err
	}
	if len(r.By) > 0 {
		out.Exploratory = &family{Adjustment: "benjamini-hochberg"}
		if out.Exploratory.Comparisons, err = convert(r.Exploratory); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the comparison: %w", err)
	}
	_, err = w.Write(append(inert.JSON(b), '\n'))
	return err
}

// warnings are those that qualify the comparison, without repeats.
func (c *Comparison) warnings() []string {
	var out []string
	for _, ws := range [][]stats.Warning{c.Difference.Warnings, c.Test.Warnings} {
		for _, w := range ws {
			if !slices.Contains(out, w.Text) {
				out = append(out, w.Text)
			}
		}
	}
	return out
}

// printer writes the two formats for people.
type printer struct {
	w        io.Writer
	markdown bool
	err      error
}

func (p *printer) say(format string, args ...any) {
	if p.err != nil {
		return
	}
	s := fmt.Sprintf(format, args...)
	if p.markdown {
		s = inert.Markdown(s)
	} else {
		s = inert.Text(s)
	}
	_, p.err = io.WriteString(p.w, s+"\n")
}

func (p *printer) gap() {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, "\n")
	}
}

func (p *printer) heading(format string, args ...any) {
	if p.markdown && p.err == nil {
		_, p.err = io.WriteString(p.w, "### ")
	}
	p.say(format, args...)
	p.gap()
}

func (p *printer) grid(g *render.Table) {
	if p.err != nil {
		return
	}
	if p.markdown {
		p.err = g.Markdown(p.w)
	} else {
		p.err = g.Text(p.w)
	}
	p.gap()
}

func (p *printer) item(format string, args ...any) {
	if p.markdown && p.err == nil {
		_, p.err = io.WriteString(p.w, "- ")
	}
	p.say(format, args...)
}

func (p *printer) report(r *Report) {
	for i, run := range r.Runs {
		model := run.Model
		if run.Model == NoModel {
			model = "none (texts, no agent)"
		} else if !run.LLM {
			model += ", which is not an LLM"
		}
		name := run.Name
		if len(r.Runs) > 1 {
			name = fmt.Sprintf("run %s: %s", runLetter(i), run.Name)
		}
		p.item("%s: %s, split %s, model %s, %d trials", name, run.Dataset, run.Split, model, run.Trials)
	}
	p.gap()
	if len(r.Declared) > 0 {
		p.heading("Declared comparisons: paired by case and epoch, p values Holm-adjusted over %s",
			plural(len(r.Declared), "comparison"))
		p.comparisons(r, r.Declared, false)
	}
	if len(r.By) > 0 {
		p.heading("Exploratory, by %s: p values adjusted by Benjamini–Hochberg over %s; they suggest, they do not decide",
			strings.Join(r.By, ", "), plural(len(r.Exploratory), "comparison"))
		p.comparisons(r, r.Exploratory, true)
	}
	if len(r.Latency) > 0 {
		p.latency(r)
	}
	p.footer(r)
	p.changed(r)
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

func (p *printer) comparisons(r *Report, cs []Comparison, sliced bool) {
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
		if c.Test.Measured {
			pv = pValue(c.Adjusted)
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
	p.grid(g)
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

func testName(method string) string {
	switch method {
	case "mcnemar-exact":
		return "McNemar"
	case "cluster-sign-flip":
		return "sign flip"
	}
	return method
}

func (v *Prevented) text() string {
	switch {
	case v == nil:
		return ""
	case !v.Headroom:
		return "no headroom"
	case math.IsInf(v.Lo, 0):
		return fmt.Sprintf("%s%% [unbounded, %s%%]", render.Percent(v.Value), render.Percent(v.Hi))
	}
	return fmt.Sprintf("%s%% [%s%%, %s%%]", render.Percent(v.Value), render.Percent(v.Lo), render.Percent(v.Hi))
}

func (p *printer) latency(r *Report) {
	p.heading("Latency, microseconds: not tested, the interval says what there is to say")
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
	p.grid(g)
}

// end gives an end of an interval that may be without bound.
func end(v float64) string {
	if math.IsInf(v, 0) {
		return "unbounded"
	}
	return fmt.Sprintf("%+.3g", v)
}

func (p *printer) footer(r *Report) {
	all := slices.Concat(r.Declared, r.Exploratory)
	uses := func(method string) bool {
		return slices.ContainsFunc(all, func(c Comparison) bool { return c.Difference.Method == method })
	}
	tests := func(method string) bool {
		return slices.ContainsFunc(all, func(c Comparison) bool { return c.Test.Method == method })
	}
	if len(all) > 0 {
		p.item("difference: rate of arm − rate of against in percentage points on the same cases, with a %g%% interval (%s).",
			100*r.Level, intervals(uses))
	}
	if tests("mcnemar-exact") {
		p.item("McNemar: the exact test on the cases that tell the arms apart (only arm, only against).")
	}
	if tests("cluster-sign-flip") {
		p.item("sign flip: the paired test that swaps the arms in whole template families, for cases of one family are " +
			"alike; McNemar's exact test where every family has one case. McNemar p, which is not adjusted, takes cases as " +
			"independent.")
	}
	if slices.ContainsFunc(all, func(c Comparison) bool { return c.Prevented != nil }) {
		p.item("prevented: 1 − rate/undefended rate; no headroom where the undefended attack never landed.")
	}
	if slices.ContainsFunc(r.Runs, func(i RunInfo) bool { return !i.LLM && i.Model != NoModel }) {
		p.item("the reference model is not an LLM: differences tell defenses apart, they say nothing about how often a " +
			"real model is poisoned.")
	}
	for i := range r.Declared {
		c := &r.Declared[i]
		if d := c.Dropped; d.total() > 0 {
			p.item("dropped from %s, %s against %s, %s: %s", c.Agent, r.side(c.A), r.side(c.B), c.Metric, d)
		}
	}
	var seen []string
	for i := range r.Declared {
		for _, w := range r.Declared[i].warnings() {
			if !slices.Contains(seen, w) {
				seen = append(seen, w)
				p.item("note, %s, %s against %s, %s: %s", r.Declared[i].Agent, r.side(r.Declared[i].A), r.side(r.Declared[i].B),
					r.Declared[i].Metric, w)
			}
		}
	}
	for _, n := range r.Notes {
		p.item("%s", n)
	}
}

func intervals(uses func(string) bool) string {
	var out []string
	for _, m := range []struct{ method, text string }{
		{"newcombe-paired", "Newcombe's for pairs"}, {"paired-clustered-t", "paired, clustered by template family"},
		{"paired-cluster-bootstrap", "bootstrap of template families, paired"},
	} {
		if uses(m.method) {
			out = append(out, m.text)
		}
	}
	return strings.Join(out, "; ")
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

func (p *printer) changed(r *Report) {
	if !slices.ContainsFunc(r.Declared, func(c Comparison) bool { return len(c.Changed) > 0 }) {
		return
	}
	transcripts := r.transcripts()
	defer transcripts.close()
	for i := range r.Declared {
		c := &r.Declared[i]
		if len(c.Changed) == 0 {
			continue
		}
		p.gap()
		p.heading("%s, %s against %s, %s: %s", c.Agent, r.side(c.A), r.side(c.B), c.Metric,
			plural(len(c.Changed), "case")+" changed")
		for j, k := range c.Changed {
			if j == mostChanged {
				p.say("… and %d more; --format json has them all", len(c.Changed)-j)
				break
			}
			name := k.Case
			if k.Epoch > 0 {
				name += fmt.Sprintf(" epoch %d", k.Epoch)
			}
			kind := k.Class
			if kind == "" {
				kind = k.Label
			}
			p.item("%s (%s): %s %s with %s, %s with %s", name, kind, c.Metric, yes(k.B), r.side(c.B), yes(k.A), r.side(c.A))
			for _, side := range []struct {
				s     Side
				trial string
			}{{c.B, k.TrialB}, {c.A, k.TrialA}} {
				_, t, err := transcripts.get(side.s.Run, side.trial)
				if err != nil {
					p.err = err
					return
				}
				p.transcript(r.side(side.s), t)
			}
		}
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
