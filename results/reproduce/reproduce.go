package reproduce

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Verdict says how a measurement stands to a published figure.
type Verdict string

// The verdicts.
const (
	// Inside: the difference of the two has an interval that holds 0; a fact is
	// the same.
	Inside Verdict = "inside"
	// Outside: it does not; a fact differs.
	Outside Verdict = "outside"
	// NotComparable: they answer different questions, or one of them is missing.
	NotComparable Verdict = "not comparable"
)

// ReferenceLabel stands in every row that the reference model measured.
const ReferenceLabel = "reference model, not an LLM"

// Measurement is a figure of a program: a rate or a text.
type Measurement struct {
	Rate *stats.Rate
	Text string
}

// Program measures the figures of a table that takes no model, by their ids. A
// figure that it leaves out is not measured.
type Program func(context.Context) (map[string]Measurement, error)

// Input is what there is to measure with.
type Input struct {
	Runs     []*compare.Table
	Programs map[string]Program // by table
}

// Row is one figure beside ours.
type Row struct {
	Figure    string      `json:"figure"`
	Published string      `json:"published"`      // "42.67% (256/600)"; "–" where the source has none
	Measured  string      `json:"measured"`       // "37/60 61.7% [48.0%, 73.6%]"; "not measured"
	Rate      *stats.Rate `json:"rate,omitempty"` // ours
	// model and arm that measured; the reference model is called what it is
	By      string  `json:"by"`
	Verdict Verdict `json:"verdict,omitempty"` // empty where nothing was published
	Reason  string  `json:"reason"`
}

// Report is a filled table.
type Report struct {
	Table Table    `json:"table"`
	Runs  []string `json:"runs"`
	Rows  []Row    `json:"rows"`
	// Needs says what is missing and how to get it.
	Needs []string `json:"needs,omitempty"`
}

// Measured reports whether any row has a measurement.
func (r *Report) Measured() bool {
	return slices.ContainsFunc(r.Rows, func(x Row) bool { return x.Measured != notMeasured })
}

// Count counts the rows with a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, x := range r.Rows {
		if x.Verdict == v {
			n++
		}
	}
	return n
}

const notMeasured = "not measured"

// Reproduce fills a table. A table without anything to measure with comes back
// with its figures and Needs.
func Reproduce(ctx context.Context, name string, in Input) (*Report, error) {
	t, ok := Find(name)
	if !ok {
		return nil, settings.Unknown("", "table", name, Names())
	}
	r := &Report{Table: t, Rows: []Row{}, Runs: []string{}}
	for _, run := range in.Runs {
		r.Runs = append(r.Runs, run.Name)
	}
	if t.Kind == KindProgram && len(in.Runs) > 0 {
		return nil, usage(name+" takes no run: it is a program's", "leave --run out")
	}
	switch t.Kind {
	case KindProgram:
		p := in.Programs[name]
		var got map[string]Measurement
		if p != nil {
			var err error
			if got, err = p(ctx); err != nil {
				return nil, fmt.Errorf("reproducing %s: %w", name, err)
			}
		}
		for _, f := range t.Figures {
			m, ok := got[f.ID]
			r.Rows = append(r.Rows, programRow(f, m, ok))
		}
		if p == nil {
			r.Needs = t.Need
		}
	case KindPolicy:
		r.policy(in.Runs)
	default:
		r.fromRuns(in.Runs)
	}
	return r, nil
}

// published gives a figure as its source has it.
func (f *Figure) published() string {
	switch {
	case f.Percent == nil:
		return f.Text
	case f.K != nil && f.N != nil:
		return fmt.Sprintf("%s%% (%d/%d)", f.Percent.Text, *f.K, *f.N)
	}
	return f.Percent.Text + "%"
}

func programRow(f Figure, m Measurement, measured bool) Row {
	row := Row{Figure: f.ID, Published: f.published(), Measured: notMeasured, By: "memtox's own code, no model",
		Verdict: NotComparable, Reason: "not measured"}
	if !measured {
		return row
	}
	switch {
	case m.Rate != nil:
		row.Rate, row.Measured = m.Rate, m.Rate.String()
	default:
		row.Measured = m.Text
	}
	switch {
	case f.Incomparable != "":
		row.Reason = f.Incomparable
	case m.Rate != nil:
		row.Verdict, row.Reason = judge(f, *m.Rate)
	case m.Text == f.Text:
		row.Verdict, row.Reason = Inside, "the same"
	default:
		row.Verdict, row.Reason = Outside, "not the same"
	}
	return row
}

// judge compares a rate with a published one: inside where the interval of their
// difference holds 0. The interval adds the distances of each rate to the ends
// of its own interval in squares (Newcombe's method 10), so that the clustering
// of our cases counts. A figure without counts is taken as exact but for its
// rounding, which makes outside more likely, not less.
func judge(f Figure, ours stats.Rate) (Verdict, string) {
	v, ok := ours.Value()
	if !ok || f.Percent == nil {
		return NotComparable, "not measured"
	}
	theirs, rounding := f.Percent.share()
	lo, hi := theirs-rounding, theirs+rounding
	how := "taken as exact: no counts are published"
	if f.K != nil && f.N != nil {
		w := stats.Wilson(*f.K, *f.N, ours.Level)
		lo, hi, how = w.Lo, w.Hi, "both intervals count"
	}
	d, from, to := difference(v, ours.Lo, ours.Hi, theirs, lo, hi)
	text := fmt.Sprintf("difference %+.1f points [%+.1f, %+.1f], %s", 100*d, 100*from, 100*to, how)
	if from <= 0 && 0 <= to {
		return Inside, text
	}
	return Outside, text
}

// difference is a − b with its interval, from those of a and b.
func difference(a, fromA, toA, b, fromB, toB float64) (d, from, to float64) {
	d = a - b
	return d, d - math.Hypot(a-fromA, toB-b), d + math.Hypot(toA-a, b-fromB)
}

// textAgent is the profile of memtox detect, which hands texts to defenses
// without an agent.
const textAgent = "text"

// label says who measured.
func label(a *compare.Arm) string {
	run := a.Table.Run
	switch {
	case a.Agent == textAgent: // no model reads the texts, or the defense is one
		return a.Name()
	case run == nil:
		return "unknown model, " + a.Name()
	case !run.LLM:
		return run.Model + " (" + ReferenceLabel + "), " + a.Name()
	}
	return run.Model + ", " + a.Name()
}

// rate adds up a figure's classes in an arm.
func rate(a *compare.Arm, f Figure) (r stats.Rate, notScored int) {
	m, ok := metric.Find(f.Metric)
	if !ok {
		return stats.ClusteredWilson(nil, 0), 0
	}
	if len(f.Classes) == 0 {
		t := a.Count(m, compare.Slice{})
		return stats.ClusteredWilson(t.Families, 0), t.NotScored
	}
	var families []stats.Count
	for _, c := range f.Classes {
		t := a.Count(m, compare.Slice{By: "class", Name: c})
		if families == nil {
			families = make([]stats.Count, len(t.Families))
		}
		for i, c := range t.Families {
			families[i].K += c.K
			families[i].N += c.N
		}
		notScored += t.NotScored
	}
	return stats.ClusteredWilson(families, 0), notScored
}

// fromRuns fills a table of a model's agents or of detectors.
func (r *Report) fromRuns(runs []*compare.Table) {
	t := r.Table
	var arms []*compare.Arm
	for _, run := range runs {
		arms = append(arms, run.Arms()...)
	}
	used := map[*compare.Arm]bool{}
	for _, f := range t.Figures {
		rows := len(r.Rows)
		for _, a := range arms {
			if matches(f, a) {
				used[a] = true
				r.Rows = append(r.Rows, r.row(f, a))
			}
		}
		if len(r.Rows) == rows {
			r.Rows = append(r.Rows, Row{Figure: f.ID, Published: f.published(), Measured: notMeasured, By: "–",
				Verdict: NotComparable, Reason: "no run measured it"})
		}
	}
	// Defenses of ours on the same texts stand beside detectors of theirs.
	seen := map[[2]any]bool{}
	for _, a := range arms {
		if t.Kind != KindDetectors || used[a] || a.Defense == compare.Undefended {
			continue
		}
		reason := "another defense on the same cases; nothing is published of it"
		if other := otherCases(t, a.Table); other != "" {
			reason = "another defense; " + other
		}
		for _, f := range t.Figures {
			what := f.ID[strings.IndexByte(f.ID, '.')+1:]
			rate, _ := rate(a, f)
			if rate.Measured() && !seen[[2]any{a, what}] {
				r.Rows = append(r.Rows, Row{Figure: a.Defense + "." + what, Published: "–", Measured: rate.String(), Rate: &rate,
					By: label(a), Reason: reason})
			}
			seen[[2]any{a, what}] = true
		}
	}
	if r.Count(Inside)+r.Count(Outside) == 0 {
		r.Needs = t.Need
	}
}

// matches reports whether an arm may stand beside a figure.
func matches(f Figure, a *compare.Arm) bool {
	if a.Defense != cmp.Or(f.Defense, compare.Undefended) || f.Agent != "" && a.Agent != f.Agent {
		return false
	}
	// A model's own row takes that model's runs; the reference model may stand
	// beside the first of them, which is where a reader looks.
	run := a.Table.Run
	return f.Model == "" || run == nil || !run.LLM || sameModel(run.Model, f.Model)
}

func (r *Report) row(f Figure, a *compare.Arm) Row {
	rate, notScored := rate(a, f)
	row := Row{Figure: f.ID, Published: f.published(), Measured: notMeasured, By: label(a), Verdict: NotComparable}
	if rate.Measured() {
		row.Rate, row.Measured = &rate, rate.String()
	}
	var reasons []string
	add := func(s string) {
		if s != "" {
			reasons = append(reasons, s)
		}
	}
	add(f.Incomparable)
	if !rate.Measured() {
		add("no trial of it was scored")
	}
	if r.Table.Kind == KindLLM {
		add(r.otherModel(f, a.Table))
	} else if a.Agent != textAgent {
		add("measured in an agent's sessions, not on the texts: use memtox detect")
	}
	add(otherCases(r.Table, a.Table))
	if notScored > 0 {
		add(fmt.Sprintf("%d trials were not scored", notScored))
	}
	if a.Table.Run != nil && a.Table.Trials < a.Table.Run.Planned {
		add("the run is not complete")
	}
	if len(reasons) > 0 {
		row.Reason = strings.Join(reasons, "; ")
		return row
	}
	row.Verdict, row.Reason = judge(f, rate)
	return row
}

// otherModel says why a run's model is not the figure's.
func (r *Report) otherModel(f Figure, t *compare.Table) string {
	want := cmp.Or(f.Model, r.Table.Model)
	switch {
	case t.Run == nil:
		return "the run does not say which model it used"
	case !t.Run.LLM:
		return "the " + ReferenceLabel
	case !sameModel(t.Run.Model, want):
		return "another model than " + want
	case fmt.Sprint(t.Run.Settings["policy"]) != "vague" && t.Run.Settings["policy"] != nil:
		return "another retention policy than the default"
	}
	return ""
}

// sameModel compares names of models as endpoints write them:
// openai:openai/gpt-oss-120b is gpt-oss-120b, and gpt-oss:120b too.
func sameModel(have, want string) bool {
	plain := func(s string) string {
		if _, name, ok := strings.Cut(s, ":"); ok && slices.Contains([]string{"openai", "ollama", "cassette", "replay"},
			s[:len(s)-len(name)-1]) {
			s = name
		}
		s = s[strings.LastIndexByte(s, '/')+1:]
		return strings.NewReplacer(":", "-", "_", "-", " ", "-").Replace(strings.ToLower(s))
	}
	return want != "" && plain(have) == plain(want)
}

func otherCases(t Table, run *compare.Table) string {
	if run.Run == nil || run.Run.Dataset.Name == t.Dataset {
		return ""
	}
	return fmt.Sprintf("other cases: %s instead of %s", run.Run.Dataset.Name, t.Dataset)
}

// policies are the retention policies, the vague one first: it is the default,
// and what the others are held against.
var policies = [...]string{"vague", "scoped", "source-aware"}

// policy shows end to end and utility by retention policy.
func (r *Report) policy(runs []*compare.Table) {
	by := map[string]*compare.Table{}
	for _, t := range runs {
		if t.Run == nil {
			continue
		}
		by[fmt.Sprint(t.Run.Settings["policy"])] = t
	}
	base := by["vague"]
	for _, p := range policies {
		t := by[p]
		if t == nil {
			r.Needs = r.Table.Need
			r.Rows = append(r.Rows, Row{Figure: p, Published: "–", Measured: notMeasured, By: "–", Verdict: NotComparable,
				Reason: "no run has this policy"})
			continue
		}
		for _, a := range t.Arms() {
			for _, name := range []string{"end_to_end", "utility"} {
				rate, _ := rate(a, Figure{Metric: name})
				row := Row{Figure: p + "/" + a.Defense + "." + name, Published: "–", Measured: rate.String(), Rate: &rate,
					By: label(a), Verdict: NotComparable, Reason: "the source gives no figure"}
				if !rate.Measured() {
					row.Measured, row.Rate = notMeasured, nil
				}
				if base != nil && base != t {
					row.Reason += "; " + versus(base, a, name)
				}
				r.Rows = append(r.Rows, row)
			}
		}
	}
}

// versus says how an arm differs from the same arm under the vague policy.
func versus(base *compare.Table, a *compare.Arm, name string) string {
	if err := compare.SameDataset(a.Table, base); err != nil {
		return "other cases than under vague"
	}
	old := base.Arm(a.Agent, a.Defense)
	if old == nil {
		return "vague was not run with this arm"
	}
	m, _ := metric.Find(name)
	p := compare.Pair(a, old, m, compare.Slice{})
	e := p.Estimate(stats.DefaultLevel, 1)
	v, ok := e.Value()
	if !ok {
		return "no case was scored under both policies"
	}
	return fmt.Sprintf("%+.1f points against vague [%+.1f, %+.1f], paired on %d cases", 100*v, 100*e.Lo, 100*e.Hi, e.N)
}
