package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Options says what to compare. The zero value compares every arm of a run with
// the undefended one, or the arms of runs with those of the first, on [DefaultMetrics].
type Options struct {
	Metrics  []string // names of rates or latencies, or excess_per_100; DefaultMetrics if empty
	Latency  bool     // the latencies of writes and reads beside the metrics
	Against  string   // within a run: the defense that the others are compared with; Undefended if empty
	AllPairs bool     // within a run: every two arms of an agent
	Agents   []string // only these; all if empty
	Defenses []string // only these, and the one they are compared with
	By       []string // exploratory slices: names of SliceNames
	Changed  bool     // list the cases that changed
	Level    float64  // two-sided confidence level; stats.DefaultLevel if 0
	Seed     uint64   // of resampling
}

// DefaultMetrics are compared where no metric is named: the headline and what it costs.
func DefaultMetrics(states bool) []string {
	if states {
		return []string{metric.Harm.Name, metric.DoneBenign.Name, metric.Wrong.Name, metric.ExcessPer100}
	}
	return []string{metric.EndToEnd.Name, metric.Utility.Name}
}

// latencies are compared where latency is asked for.
var latencies = []string{"latency_us.write.p50", "latency_us.write.p95", "latency_us.read.p50", "latency_us.read.p95"}

// states reports whether the outcome of some trial is a state.
func (t *Table) states() bool {
	return slices.ContainsFunc(t.arms, func(a *Arm) bool {
		return slices.ContainsFunc(a.cells, func(c cell) bool { return c.judged })
	})
}

func usage(what, hint string) error { return &settings.Problem{What: what, Hint: hint} }

// Side is one arm of a comparison.
type Side struct {
	Run     int    `json:"run"` // place in Report.Runs
	Defense string `json:"defense"`
}

// Comparison is one metric in two arms on the same cases.
type Comparison struct {
	Metric string `json:"metric"`
	Slice  Slice  `json:"slice,omitzero"` // the zero Slice in the declared family
	Agent  string `json:"agent"`
	A      Side   `json:"a"` // differences are A − B; B is the reference
	B      Side   `json:"b"`

	RateA      stats.Rate     `json:"rate_a"` // on the pairs
	RateB      stats.Rate     `json:"rate_b"`
	Difference stats.Estimate `json:"difference"`
	Interval   string         `json:"interval"` // its method
	Pairs      stats.Pairs    `json:"pairs"`
	Test       stats.Test     `json:"test"`
	McNemar    stats.Test     `json:"mcnemar"`    // the exact test, which takes cases as independent
	Adjusted   *float64       `json:"p_adjusted"` // p of Test, adjusted for its family; nil where nothing was tested
	// Prevented is there where B is undefended and the metric is one that the attacker
	// wants high.
	Prevented *Prevented `json:"prevented,omitempty"`
	Dropped   Dropped    `json:"dropped"`
	Changed   []Change   `json:"changed,omitempty"`  // where asked for
	Warnings  []string   `json:"warnings,omitempty"` // what qualifies it, without repeats
}

// Family is comparisons whose p values are adjusted together.
type Family struct {
	Adjustment  string       `json:"adjustment"`
	Comparisons []Comparison `json:"comparisons"`
}

// LatencyComparison is a quantile of the time inside a gate in two arms, in
// microseconds, or how many questions were not due per 100 trials of a label. It is not
// tested: the interval says what there is to say.
type LatencyComparison struct {
	Name       string         `json:"name"`
	Label      string         `json:"label,omitempty"` // of questions: results.Attack or results.Benign
	Agent      string         `json:"agent"`
	A          Side           `json:"a"`
	B          Side           `json:"b"`
	ValueA     *float64       `json:"value_a"` // null where no call was timed
	ValueB     *float64       `json:"value_b"`
	Difference stats.Estimate `json:"difference"`
}

// RunInfo is what a report says of a run.
type RunInfo struct {
	Name     string `json:"name"`
	ID       string `json:"run_id"`
	Dataset  string `json:"dataset"`
	Split    string `json:"split"`
	Model    string `json:"model"`
	LLM      bool   `json:"llm"`
	Finished bool   `json:"finished"`
	Trials   int64  `json:"trials"`
	Planned  int64  `json:"planned"`
}

// Report is the outcome of Compare.
type Report struct {
	Runs     []RunInfo `json:"runs"`
	Metrics  []string  `json:"metrics"`
	By       []string  `json:"-"`
	Level    float64   `json:"level"`
	Declared Family    `json:"declared"` // adjusted by Holm
	// Exploratory has the slices, adjusted by Benjamini–Hochberg, where there are any.
	Exploratory *Family             `json:"exploratory,omitempty"`
	Latency     []LatencyComparison `json:"latency_us,omitempty"`
	Questions   []LatencyComparison `json:"excess_per_100,omitempty"`
	// Notes say what was left out and what differs between runs.
	Notes []string `json:"notes"`

	tables []*Table
}

// duel is two arms that are to be compared: one of a run, and one of the first.
type duel struct {
	run  int
	x, y *Arm
}

func (d duel) sides() (a, b Side) { return Side{d.run, d.x.Defense}, Side{0, d.y.Defense} }

// WantsLatency reports whether a metric needs the decisions to be loaded.
func (o *Options) WantsLatency() bool {
	return o.Latency || slices.ContainsFunc(o.Metrics,
		func(m string) bool { _, ok := metric.FindLatency(m); return ok })
}

// Check finds what is wrong with the options, whatever the runs.
func (o *Options) Check() error {
	for _, name := range o.Metrics {
		if _, ok := metric.FindLatency(name); ok || name == metric.ExcessPer100 {
			continue
		}
		m, ok := metric.Find(name)
		if !ok || m.PerRecord {
			names := metric.Names((*metric.Metric).PerTrial)
			for _, l := range metric.Latencies() {
				names = append(names, l.String())
			}
			names = append(names, metric.ExcessPer100)
			return settings.Unknown("", "metric", name, names)
		}
		if m.Conditional {
			return usage(fmt.Sprintf("%s is not compared across arms: what it is out of depends on the arm itself, or on another "+
				"arm or case, so the arms have different denominators", m.Name),
				"compare end_to_end instead, or harm and done_attack where outcomes are states: --metric end_to_end")
		}
	}
	for _, by := range o.By {
		if !slices.Contains(SliceNames(), by) {
			return settings.Unknown("--by", "slice", by, SliceNames())
		}
	}
	if o.Level != 0 && !(o.Level > 0 && o.Level < 1) {
		return usage(fmt.Sprintf("a confidence level of %v is not between 0 and 1", o.Level), "0.95 is usual")
	}
	return nil
}

// Compare compares the arms of one run with each other, or those of several runs
// with those of the first.
func Compare(tables []*Table, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return nil, usage("there is no run to compare", "name a run directory")
	}
	if len(o.Metrics) == 0 {
		o.Metrics = DefaultMetrics(tables[0].states())
	}
	if o.Latency {
		o.Metrics = slices.Concat(o.Metrics, slices.DeleteFunc(slices.Clone(latencies),
			func(l string) bool { return slices.Contains(o.Metrics, l) }))
	}
	if o.Level == 0 {
		o.Level = stats.DefaultLevel
	}
	r := &Report{Level: o.Level, Metrics: o.Metrics, By: o.By, Notes: []string{}, tables: tables,
		Declared: Family{Adjustment: "holm"}}
	sliced := Family{Adjustment: "benjamini-hochberg"}
	for _, t := range tables {
		r.Runs = append(r.Runs, t.Info())
		if n := r.Runs[len(r.Runs)-1]; !n.Finished {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is not finished: %d of %d planned trials are compared", n.Name, n.Trials,
				n.Planned))
		}
	}
	var duels []duel
	var err error
	if len(tables) == 1 {
		duels, err = within(tables[0], o)
	} else {
		duels, err = between(tables, o, r)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range o.Metrics {
		if l, ok := metric.FindLatency(name); ok {
			for _, d := range duels {
				if c, ok := compareLatency(d, l, o); ok {
					r.Latency = append(r.Latency, c)
				}
			}
			continue
		}
		if name == metric.ExcessPer100 {
			for _, d := range duels {
				for _, label := range []string{results.Attack, results.Benign} {
					if c := compareExcess(d, label, o); c.Difference.Measured() {
						r.Questions = append(r.Questions, c)
					}
				}
			}
			continue
		}
		m, _ := metric.Find(name)
		for _, d := range duels {
			r.Declared.Comparisons = append(r.Declared.Comparisons, compareRate(d, m, Slice{}, o))
			for _, by := range o.By {
				for _, v := range d.x.Table.Values(by) {
					if c := compareRate(d, m, Slice{by, v}, o); c.Pairs.N() > 0 || c.Dropped.total() > 0 {
						sliced.Comparisons = append(sliced.Comparisons, c)
					}
				}
			}
		}
	}
	r.Declared.adjust(stats.Holm)
	if sliced.adjust(stats.BenjaminiHochberg); len(o.By) > 0 {
		r.Exploratory = &sliced
	}
	return r, nil
}

// Measured reports whether anything could be compared.
func (r *Report) Measured() bool {
	if len(r.Declared.Comparisons) == 0 {
		return slices.ContainsFunc(slices.Concat(r.Latency, r.Questions),
			func(c LatencyComparison) bool { return c.Difference.Measured() })
	}
	return slices.ContainsFunc(r.Declared.Comparisons, func(c Comparison) bool { return c.Difference.Measured() })
}

func (f *Family) adjust(by func([]float64) ([]float64, []stats.Warning)) {
	p := make([]float64, len(f.Comparisons))
	for i, c := range f.Comparisons {
		p[i] = c.Test.P
	}
	p, _ = by(p)
	for i := range f.Comparisons {
		if c := &f.Comparisons[i]; c.Test.Measured {
			c.Adjusted = &p[i]
		}
	}
}

// Info says what the run is.
func (t *Table) Info() RunInfo {
	i := RunInfo{Name: t.Name, Finished: t.Finished, Trials: t.Trials}
	if t.Run != nil {
		i.ID, i.Dataset, i.Split, i.Model, i.LLM, i.Planned = t.Run.ID,
			strings.TrimSpace(t.Run.Dataset.Name+" "+t.Run.Dataset.Version), t.Run.Split, t.Run.Model, t.Run.LLM, t.Run.Planned
	}
	return i
}

// base is the agent's name without the model that drives it.
func (a *Arm) base() string {
	return a.Table.Run.Named(a.Agent)
}

func (o *Options) wants(a *Arm) bool {
	return (len(o.Agents) == 0 || slices.Contains(o.Agents, a.Agent) || slices.Contains(o.Agents, a.base())) &&
		(len(o.Defenses) == 0 || slices.Contains(o.Defenses, a.Defense))
}

// checkNames refuses filters that name nothing.
func (o *Options) checkNames(tables []*Table) error {
	var agents, defenses []string
	for _, t := range tables {
		for _, a := range t.arms {
			agents, defenses = append(agents, a.Agent, a.base()), append(defenses, a.Defense)
		}
	}
	for _, c := range []struct {
		what         string
		names, known []string
	}{{"agent", o.Agents, agents}, {"defense", o.Defenses, defenses}} {
		slices.Sort(c.known)
		c.known = slices.Compact(c.known)
		for _, n := range c.names {
			if !slices.Contains(c.known, n) {
				return usage(fmt.Sprintf("no arm has the %s %q", c.what, n), settings.Meant(n, c.known))
			}
		}
	}
	return nil
}

// within pairs the arms of one run.
func within(t *Table, o Options) ([]duel, error) {
	if err := o.checkNames([]*Table{t}); err != nil {
		return nil, err
	}
	if len(t.arms) == 0 {
		return nil, usage(t.Name+" holds no trial yet", "wait until some have finished")
	}
	var out []duel
	against, found := cmp.Or(o.Against, Undefended), o.AllPairs
	for i, y := range t.arms {
		for k, x := range t.arms {
			found = found || y.Defense == against
			if x != y && x.Agent == y.Agent && o.wants(x) &&
				(o.AllPairs && k > i && o.wants(y) || !o.AllPairs && y.Defense == against) {
				out = append(out, duel{0, x, y})
			}
		}
	}
	if !found {
		var names []string
		for _, a := range t.arms {
			if !slices.Contains(names, a.Defense) {
				names = append(names, a.Defense)
			}
		}
		return nil, usage(fmt.Sprintf("%s has no arm %q to compare with", t.Name, against),
			settings.Meant(against, names)+"; --against names one, --all-pairs compares all")
	}
	if len(out) == 0 {
		return nil, usage(t.Name+" has no two arms to compare",
			"an arm is compared with another of the same agent; name a second run to compare runs")
	}
	return out, nil
}

// between pairs the arms of each later run with those of the first.
func between(tables []*Table, o Options, r *Report) ([]duel, error) {
	if o.Against != "" || o.AllPairs {
		return nil, usage("--against and --all-pairs compare the arms of one run, and there are several",
			"leave them out: each arm is compared with the same arm of the first run")
	}
	if err := o.checkNames(tables); err != nil {
		return nil, err
	}
	first := tables[0]
	var out []duel
	for i, t := range tables[1:] {
		if err := SameDataset(t, first); err != nil {
			return nil, err
		}
		r.Notes = append(r.Notes, Differences(t, first)...)
		n := len(out)
		common, onlyA, onlyB := t.Beside(first)
		for _, arms := range common {
			if o.wants(arms[0]) {
				out = append(out, duel{i + 1, arms[0], arms[1]})
			}
		}
		for _, a := range slices.Concat(onlyA, onlyB) {
			other := first
			if a.Table == first {
				other = t
			}
			if o.wants(a) {
				r.Notes = append(r.Notes, fmt.Sprintf("dropped: arm %s of %s, which %s does not have", a.Name(), a.Table.Name,
					other.Name))
			}
		}
		if len(out) == n {
			return nil, usage(fmt.Sprintf("%s and %s have no arm in common", t.Name, first.Name),
				"arms are the same where agent and defense have the same names")
		}
	}
	return out, nil
}

// SameDataset refuses tables of different sets of cases.
func SameDataset(a, b *Table) error {
	if a.Run == nil || b.Run == nil {
		return nil
	}
	x, y := a.Run.Dataset, b.Run.Dataset
	if x.Name != y.Name || x.SHA256 != y.SHA256 {
		return usage(fmt.Sprintf("%s ran %s and %s ran %s: results of different cases are not compared", a.Name,
			dataset(x.Name, x.Version, x.SHA256), b.Name, dataset(y.Name, y.Version, y.SHA256)),
			"run both on the same version of a set")
	}
	return nil
}

func dataset(name, version, sum string) string {
	s := strings.TrimSpace(name + " " + version)
	if len(sum) > 12 {
		sum = sum[:12]
	}
	if sum != "" {
		s += " (SHA-256 " + sum + "…)"
	}
	return s
}

// Differences says which settings of two runs differ: those that a reader must
// know to read the comparison.
func Differences(a, b *Table) []string {
	if a.Run == nil || b.Run == nil {
		return nil
	}
	var out []string
	say := func(what string, x, y any) {
		if s, t := setting(x), setting(y); s != t {
			out = append(out, fmt.Sprintf("%s differs: %s in %s, %s in %s", what, s, a.Name, t, b.Name))
		}
	}
	say("model", a.Run.Model, b.Run.Model)
	say("split", a.Run.Split, b.Run.Split)
	say("version of memtox", a.Run.Version, b.Run.Version)
	for _, k := range []string{"os", "arch", "processors", "cpu"} { // latencies are of the machine
		if x, y := a.Run.Host[k], b.Run.Host[k]; x != nil && y != nil { // a baseline has no host
			say("host "+k, x, y)
		}
	}
	keys := slices.Sorted(maps.Keys(a.Run.Settings))
	for k := range b.Run.Settings {
		if _, ok := a.Run.Settings[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		switch k {
		case "resolved", "out", "format", "concurrency", "fsync", "max_not_scored", "agent", "defense", "model", "split",
			"transcripts":
			continue // said elsewhere, or without bearing on outcomes
		}
		x, y := a.Run.Settings[k], b.Run.Settings[k]
		if (x == nil || y == nil) && unset(x) && unset(y) {
			continue // one memtox had no such setting, and the other left it alone
		}
		say("setting "+k, x, y)
	}
	return out
}

// unset reports whether a setting, as run.json has it, is absent or empty.
func unset(v any) bool {
	return slices.Contains([]string{"<nil>", "", "[]", "false", "0", "0s"}, fmt.Sprint(v))
}

// setting is the value of a setting as a note prints it.
func setting(v any) string {
	switch s := fmt.Sprint(v); {
	case v == nil:
		return "not recorded"
	case s == "":
		return "empty"
	default:
		return s
	}
}

func compareRate(d duel, m *metric.Metric, s Slice, o Options) Comparison {
	p := pair(d.x, d.y, m, s, o.Changed && s == (Slice{}))
	c := Comparison{Metric: m.Name, Slice: s, Agent: d.x.Agent, Pairs: p.Pairs, Dropped: p.Dropped,
		Changed: p.changed, RateA: stats.ClusteredWilson(p.A, o.Level), RateB: stats.ClusteredWilson(p.B, o.Level),
		Difference: p.Estimate(o.Level, o.Seed), Test: p.Test(o.Seed), McNemar: stats.McNemar(p.Pairs)}
	c.A, c.B = d.sides()
	c.Interval = c.Difference.Method
	for _, w := range slices.Concat(c.Difference.Warnings, c.Test.Warnings) {
		if !slices.Contains(c.Warnings, w.Text) {
			c.Warnings = append(c.Warnings, w.Text)
		}
	}
	if m.Lands && d.x.Table == d.y.Table && d.y.Defense == Undefended {
		v := prevented(c.RateA, c.RateB)
		c.Prevented = &v
	}
	return c
}

func compareLatency(d duel, l metric.Latency, o Options) (LatencyComparison, bool) {
	c := LatencyComparison{Name: l.String(), Agent: d.x.Agent}
	c.A, c.B = d.sides()
	a, okA := d.x.Latency(l.Gate)
	b, okB := d.y.Latency(l.Gate)
	if v, ok := a.Quantile(l.Quantile, o.Level).Value(); ok {
		c.ValueA = &v
	}
	if v, ok := b.Quantile(l.Quantile, o.Level).Value(); ok {
		c.ValueB = &v
	}
	c.Difference = a.QuantileDifference(b, l.Quantile, o.Level, o.Seed)
	return c, okA || okB
}

// compareExcess compares the questions that were not due in the trials of a label that
// both arms have.
func compareExcess(d duel, label string, o Options) LatencyComparison {
	c := LatencyComparison{Name: metric.ExcessPer100, Label: label, Agent: d.x.Agent}
	c.A, c.B = d.sides()
	clusters := make([]stats.Cluster, len(d.x.Table.families))
	var a, b, n, most float64
	for of := range both(d.x, d.y) {
		if of.c.Label != label || !of.x.judged || !of.y.judged {
			continue
		}
		x, y := float64(of.x.excess), float64(of.y.excess)
		a, b, n, most = a+x, b+y, n+1, max(most, x, y, 1)
		clusters[of.c.family].N++
		clusters[of.c.family].Sum += x - y
	}
	for i := range clusters { // a difference of outcomes lies between −1 and 1
		clusters[i].Sum /= most
	}
	if n > 0 {
		a, b = 100*a/n, 100*b/n
		c.ValueA, c.ValueB = &a, &b
		c.Difference = stats.PairedDifference(clusters, o.Level, o.Seed).Times(100 * most)
	}
	return c
}
