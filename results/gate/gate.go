package gate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// DefaultConfidence is the one-sided confidence of every bound.
const DefaultConfidence = 0.95

// CalibrationKey is the key of run.json's host under which a run keeps how many
// nanoseconds its calibration loop took: latencies are held against multiples of
// it, so that a limit means the same on every machine.
const CalibrationKey = "calibration_ns"

// BaselineMetrics are held against a baseline where no metric is named.
func BaselineMetrics() []string { return []string{"end_to_end", "tpr", "fpr", "utility"} }

// Options say what a run has to meet.
type Options struct {
	Require []Requirement
	// Baseline is what the run must not be worse than, by Margins (metric to
	// margin, as a share), or must repeat, if Exact.
	Baseline *compare.Table
	Margins  map[string]float64
	Exact    bool
	// Confidence is one-sided; DefaultConfidence if 0.
	Confidence float64
	Seed       uint64 // of resampling
}

// Kinds of checks.
const (
	KindLimit    = "limit"
	KindBaseline = "baseline"
	KindReplay   = "replay"
)

// Check is one judgement.
type Check struct {
	Kind    string        `json:"kind"`
	Name    string        `json:"name"` // agent/defense[/class].metric
	Agent   string        `json:"agent"`
	Defense string        `json:"defense"`
	Class   string        `json:"class,omitempty"`
	Metric  string        `json:"metric,omitempty"`
	Require string        `json:"require"` // what is required, in words
	Outcome stats.Outcome `json:"outcome"`
	// Measured is the figure with its counts; Bound the ends that were judged;
	// Why says what decided.
	Measured string `json:"measured"`
	Bound    string `json:"bound"`
	Why      string `json:"why"`

	Rate       *stats.Rate     `json:"rate,omitempty"`       // at the confidence that passes
	Difference *stats.Estimate `json:"difference,omitempty"` // run − baseline
	Regressed  []Regression    `json:"regressed,omitempty"`  // classes that a failed check is due to
	Changed    []Changed       `json:"changed,omitempty"`    // cases that a replay did not repeat

	requirement *Requirement // of a limit: it knows its place
}

// Regression is a class in which a check failed, or in which outcomes changed.
type Regression struct {
	Class   string   `json:"class"`
	Text    string   `json:"text"`
	Changed int      `json:"changed,omitempty"`
	Cases   []string `json:"cases,omitempty"` // some of them
}

// Changed is a case whose outcome differs from the baseline's.
type Changed struct {
	Case   string   `json:"case"`
	Epoch  int32    `json:"epoch"`
	Class  string   `json:"class"` // or the kind of a benign case
	What   []string `json:"what"`  // "acted no → yes"; empty where only decisions differ
	Absent bool     `json:"absent,omitempty"`
}

// Result is the outcome of a gate.
type Result struct {
	Run      compare.RunInfo `json:"run"`
	Baseline string          `json:"baseline,omitempty"`
	Outcome  stats.Outcome   `json:"outcome"`
	// Confidence is that of each bound that passes; bounds that fail are taken at
	// FailConfidence, which is higher where there are several checks.
	Confidence     float64  `json:"confidence"`
	FailConfidence float64  `json:"fail_confidence"`
	Statistical    int      `json:"statistical_checks"` // those that chance can decide
	Checks         []Check  `json:"checks"`
	Notes          []string `json:"notes"`
}

// Count returns how many checks have an outcome.
func (r *Result) Count(o stats.Outcome) int {
	n := 0
	for i := range r.Checks {
		if r.Checks[i].Outcome == o {
			n++
		}
	}
	return n
}

// WantsLatency reports whether the decisions have to be loaded.
func (o *Options) WantsLatency() bool {
	return slices.ContainsFunc(o.Require, func(r Requirement) bool { _, ok := metric.FindLatency(r.Metric); return ok })
}

// Check finds what is wrong with the options, whatever the run.
func (o *Options) Check() error {
	if o.Confidence != 0 && !(o.Confidence > 0.5 && o.Confidence < 1) {
		return problem("--confidence", "0.95 is usual", "a one-sided confidence of %v is not between 0.5 and 1", o.Confidence)
	}
	if o.Baseline == nil && (len(o.Margins) > 0 || o.Exact) {
		return problem("--baseline", "name the baseline's file or run directory",
			"a margin or an exact replay is held against a baseline, and there is none")
	}
	if o.Baseline != nil && len(o.Margins) == 0 && !o.Exact {
		return problem("--baseline", "give --margin 0.02, or --exact",
			"the baseline is not used: nothing says how it is held against the run")
	}
	for name, m := range o.Margins {
		rate, ok := metric.Find(name)
		if !ok || rate.PerRecord {
			return problem("--margin", "one of "+strings.Join(metric.Names((*metric.Metric).PerTrial), ", "),
				"unknown metric %q", name)
		}
		if rate.Conditional {
			return problem("--margin", "use end_to_end", "%s is not compared across arms: what was written differs", name)
		}
		if !(m > 0 && m < 1) {
			return problem("--margin", "0.02 allows two percentage points", "a margin of %v for %s is not between 0 and 1", m,
				name)
		}
	}
	if len(o.Require) == 0 && o.Baseline == nil {
		return problem("", "give --require '"+strings.SplitN(form, "instance ", 2)[1]+"', -f gate.yaml or --baseline",
			"there is no requirement: a gate without one would always be green")
	}
	return nil
}

// Evaluate judges a run.
func Evaluate(t *compare.Table, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Confidence == 0 {
		o.Confidence = DefaultConfidence
	}
	res := &Result{Run: t.Info(), Confidence: o.Confidence, Notes: []string{}}
	g := &gate{t: t, o: o, res: res}
	if missing := g.missing(nil); missing > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("the run is not complete: %d of %d planned trials; what is missing can "+
			"make a check inconclusive", t.Trials, res.Run.Planned))
	}
	var plans []func(fail float64) Check
	statistical := 0 // checks that chance can decide
	for i := range o.Require {
		ps, err := g.limits(&o.Require[i])
		if err != nil {
			return nil, err
		}
		plans = append(plans, ps...)
		if o.Require[i].Metric != NotScored {
			statistical += len(ps)
		}
	}
	if o.Baseline != nil {
		if err := compare.SameDataset(t, o.Baseline); err != nil {
			return nil, err
		}
		res.Baseline = o.Baseline.Name
		ps, n, err := g.baseline()
		if err != nil {
			return nil, err
		}
		statistical += n
		plans = append(plans, ps...)
	}
	res.Statistical = statistical
	res.FailConfidence = 1 - (1-o.Confidence)/float64(max(statistical, 1))
	for _, p := range plans {
		res.Checks = append(res.Checks, p(res.FailConfidence))
	}
	switch {
	case res.Count(stats.Fail) > 0:
		res.Outcome = stats.Fail
	case len(res.Checks) == 0 || res.Count(stats.Inconclusive) > 0:
		res.Outcome = stats.Inconclusive
	default:
		res.Outcome = stats.Pass
	}
	return res, nil
}

type gate struct {
	t   *compare.Table
	o   Options
	res *Result
}

// missing is how many planned trials an arm has not come to, or all arms
// together for nil. Arms have the same share of the plan.
func (g *gate) missing(a *compare.Arm) int {
	run := g.t.Run
	if run == nil || run.Planned <= 0 {
		return 0
	}
	if a == nil {
		return int(max(run.Planned-g.t.Trials, 0))
	}
	arms := max(len(run.Agents)*len(run.Defenses), len(g.t.Arms()))
	planned := int(run.Planned) / max(arms, 1)
	return max(planned-a.Scored-a.NotScored-a.Excluded, 0)
}

func name(x target, metric string) string {
	s := x.agent + "/" + x.defense
	if x.slice.Name != "" {
		s += "/" + x.slice.Name
	}
	return s + "." + metric
}

// limits makes the checks of a requirement: one an agent.
func (g *gate) limits(r *Requirement) ([]func(float64) Check, error) {
	targets, err := r.resolve(g.t)
	if err != nil {
		return nil, err
	}
	if _, latency := metric.FindLatency(r.Metric); (latency || r.Metric == NotScored) && targets[0].slice.Name != "" {
		return nil, problem(r.Where, "leave the class out", "%q: %s is not told apart by class", r.Text, r.Metric)
	}
	var plans []func(float64) Check
	var idle []string
	for _, x := range targets {
		a := g.t.Arm(x.agent, x.defense)
		if x.slice.Name != "" && a != nil {
			// A class that does not apply to an agent's profile is no reason to
			// be red or undecided, as long as it applies to another's.
			m, _ := metric.Find(r.Metric)
			if c := g.t.Count(a, m, x.slice); c.Trials > 0 && c.Excluded == c.Trials && len(targets) > 1 {
				idle = append(idle, name(x, r.Metric))
				continue
			}
		}
		c := Check{Kind: KindLimit, Name: name(x, r.Metric), Agent: x.agent, Defense: x.defense, Class: x.slice.Name,
			Metric: r.Metric, requirement: r}
		c.Require = requireText(r)
		plans = append(plans, func(fail float64) Check { g.limit(&c, r, x, a, fail); return c })
	}
	if len(plans) == 0 {
		return nil, problem(r.Where, "gate a class that the agents have", "%q: the class applies to none of the agents",
			r.Text)
	}
	for _, n := range idle {
		g.res.Notes = append(g.res.Notes, n+" is not judged: the class does not apply to the agent")
	}
	return plans, nil
}

func requireText(r *Requirement) string {
	op := "<="
	if r.AtLeast {
		op = ">="
	}
	_, latency := metric.FindLatency(r.Metric)
	switch {
	case latency && r.Absolute:
		return fmt.Sprintf("%s %s µs", op, short(r.Limit))
	case latency:
		return fmt.Sprintf("%s %s × calibration loop", op, short(r.Limit))
	}
	return op + " " + short(r.Limit)
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func (g *gate) limit(c *Check, r *Requirement, x target, a *compare.Arm, fail float64) {
	c.Outcome, c.Measured = stats.Inconclusive, "not measured"
	if a == nil {
		c.Why = "the arm has no trial yet"
		return
	}
	if r.Metric == NotScored {
		g.count(c, r, a)
		return
	}
	if l, ok := metric.FindLatency(r.Metric); ok {
		g.latency(c, r, a, l, fail)
		return
	}
	m, _ := metric.Find(r.Metric)
	tally := g.t.Count(a, m, x.slice)
	pass := stats.ClusteredClopperPearson(tally.Families, stats.OneSided(g.o.Confidence))
	broken := stats.ClusteredClopperPearson(tally.Families, stats.OneSided(fail))
	c.Rate = &pass
	v, ok := pass.Value()
	if !ok {
		c.Why = fmt.Sprintf("no trial was scored that %s is about: %d not scored, %d excluded", r.Metric, tally.NotScored,
			tally.Excluded)
		return
	}
	c.Measured = fmt.Sprintf("%d/%d %.2f%%", pass.K, pass.N, 100*v)
	c.Bound = fmt.Sprintf("[%.2f%%, %.2f%%]", 100*pass.Lo, 100*pass.Hi)
	unknown := tally.NotScored + g.missing(a)
	lo, hi, _ := stats.WorstCase(pass.K, pass.N, unknown)
	if r.AtLeast {
		c.Outcome = either(pass.Lo >= r.Limit, broken.Hi < r.Limit)
		c.explain(c.Outcome, fmt.Sprintf("lower bound %.2f%%", 100*pass.Lo), fmt.Sprintf("upper bound %.2f%%", 100*broken.Hi))
		if c.Outcome == stats.Pass && lo < r.Limit || c.Outcome == stats.Fail && hi >= r.Limit {
			c.hidden(unknown, lo, hi)
		}
		return
	}
	c.Outcome = either(pass.Hi <= r.Limit, broken.Lo > r.Limit)
	c.explain(c.Outcome, fmt.Sprintf("upper bound %.2f%%", 100*pass.Hi), fmt.Sprintf("lower bound %.2f%%", 100*broken.Lo))
	if c.Outcome == stats.Pass && hi > r.Limit || c.Outcome == stats.Fail && lo <= r.Limit {
		c.hidden(unknown, lo, hi)
	}
}

func either(pass, fail bool) stats.Outcome {
	switch {
	case pass:
		return stats.Pass
	case fail:
		return stats.Fail
	}
	return stats.Inconclusive
}

// explain says which bound decided.
func (c *Check) explain(o stats.Outcome, pass, fail string) {
	switch o {
	case stats.Pass:
		c.Why = pass + " meets the limit"
	case stats.Fail:
		c.Why = fail + " breaks the limit"
	default:
		c.Why = "the limit lies within the bounds: more cases would decide"
	}
}

// hidden makes a check inconclusive because of the trials that nobody knows the
// outcome of.
func (c *Check) hidden(unknown int, lo, hi float64) {
	c.Outcome = stats.Inconclusive
	c.Why = fmt.Sprintf("%d trials are not scored or missing: with them the rate lies between %.2f%% and %.2f%%", unknown,
		100*lo, 100*hi)
}

func (g *gate) count(c *Check, r *Requirement, a *compare.Arm) {
	c.Measured = fmt.Sprintf("%d of %d", a.NotScored, a.Scored+a.NotScored)
	switch {
	case float64(a.NotScored) > r.Limit:
		c.Outcome, c.Why = stats.Fail, "more trials failed than allowed"
	case a.Scored == 0:
		c.Why = "no trial was scored"
	case g.missing(a) > 0:
		c.Why = fmt.Sprintf("%d trials have not run", g.missing(a))
	default:
		c.Outcome, c.Why = stats.Pass, "no more trials failed than allowed"
	}
}

// calibration returns how many microseconds the run's calibration loop took.
func (g *gate) calibration() (us float64, ok bool) {
	if g.t.Run == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(fmt.Sprint(g.t.Run.Host[CalibrationKey]), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0, false
	}
	return v / 1e3, true
}

func (g *gate) latency(c *Check, r *Requirement, a *compare.Arm, l metric.Latency, fail float64) {
	scale, unit := 1.0, "µs"
	if !r.Absolute {
		us, ok := g.calibration()
		if !ok {
			c.Why = "the run has no calibration value, so a multiple of it means nothing; give a time (" + c.Name +
				" <= 40us) to ask for an absolute limit"
			return
		}
		scale, unit = 1/us, "× calibration loop"
	}
	s, ok := a.Latency(l.Gate)
	if !ok {
		c.Why = "no decision of that gate was timed"
		return
	}
	pass, broken := s.Quantile(l.Quantile, stats.OneSided(g.o.Confidence)), s.Quantile(l.Quantile, stats.OneSided(fail))
	v, ok := pass.Value()
	if !ok {
		c.Why = "no decision of that gate was timed"
		return
	}
	figure := func(v float64) string {
		if math.IsInf(v, 0) {
			return "unbounded"
		}
		return strconv.FormatFloat(v*scale, 'g', 4, 64)
	}
	c.Measured = fmt.Sprintf("%s %s of %d", figure(v), unit, pass.N)
	c.Bound = fmt.Sprintf("[%s, %s]", figure(pass.Lo), figure(pass.Hi))
	c.Outcome = either(pass.Hi*scale <= r.Limit, broken.Lo*scale > r.Limit)
	c.explain(c.Outcome, "upper bound "+figure(pass.Hi), "lower bound "+figure(broken.Lo))
	if g.missing(a) > 0 && c.Outcome == stats.Pass {
		c.Outcome, c.Why = stats.Inconclusive, fmt.Sprintf("%d trials have not run", g.missing(a))
	}
}

// baseline makes the checks against the baseline. n is how many of them are
// statistical.
func (g *gate) baseline() (plans []func(float64) Check, n int, err error) {
	b := g.o.Baseline
	var common []*compare.Arm
	for _, a := range g.t.Arms() {
		if b.Arm(a.Agent, a.Defense) != nil {
			common = append(common, a)
		} else {
			g.res.Notes = append(g.res.Notes, fmt.Sprintf("arm %s is not judged: the baseline does not have it", a.Name()))
		}
	}
	for _, a := range b.Arms() {
		if g.t.Arm(a.Agent, a.Defense) == nil {
			g.res.Notes = append(g.res.Notes, fmt.Sprintf("arm %s of the baseline is not judged: the run does not have it",
				a.Name()))
		}
	}
	if len(common) == 0 {
		return nil, 0, problem("--baseline", "make one of this run: memtox gate RUN --write-baseline FILE",
			"%s and %s have no arm in common", g.t.Name, b.Name)
	}
	g.res.Notes = append(g.res.Notes, compare.Differences(g.t, b)...)
	for _, a := range common {
		for _, name := range slices.Sorted(maps.Keys(g.o.Margins)) {
			m, _ := metric.Find(name)
			if a.Defense == compare.Undefended && m.Lands {
				continue // what lands undefended is headroom, not a defect
			}
			old := b.Arm(a.Agent, a.Defense)
			if empty(b.Count(old, m, compare.Slice{})) && empty(g.t.Count(a, m, compare.Slice{})) {
				g.res.Notes = append(g.res.Notes, fmt.Sprintf("%s.%s is not judged: the question did not arise in either run",
					a.Name(), m.Name))
				continue
			}
			n++
			plans = append(plans, func(fail float64) Check { return g.nonInferior(a, old, m, fail) })
		}
		if g.o.Exact {
			plans = append(plans, func(float64) Check { return g.replay(a, b.Arm(a.Agent, a.Defense)) })
		}
	}
	return plans, n, nil
}

func empty(t compare.Tally) bool {
	return t.NotScored == 0 && !slices.ContainsFunc(t.Families, func(c stats.Count) bool { return c.N > 0 })
}

// difference estimates run − baseline: paired where cases match, else as two
// samples.
func (g *gate) difference(a, old *compare.Arm, m *metric.Metric, s compare.Slice, level float64) (e stats.Estimate,
	p compare.Paired) {
	p = compare.Pair(g.t, a, g.o.Baseline, old, m, s)
	if p.Pairs.N() > 0 {
		return p.Estimate(level, g.o.Seed), p
	}
	sum := func(t compare.Tally) (c stats.Count) {
		for _, f := range t.Families {
			c.K, c.N = c.K+f.K, c.N+f.N
		}
		return c
	}
	return stats.NewcombeIndependent(sum(g.t.Count(a, m, s)), sum(g.o.Baseline.Count(old, m, s)), level), p
}

// repeats reports whether an arm of a deterministic model did exactly what the
// baseline did, in every case. Then there is nothing that chance could have
// hidden, and the width of the interval, which is about other cases, would make
// an unchanged defense undecided.
func (g *gate) repeats(a, old *compare.Arm) bool {
	for _, t := range []*compare.Table{g.t, g.o.Baseline} {
		if t.Run == nil || t.Run.LLM {
			return false
		}
	}
	r := compare.Replay(g.t, a, g.o.Baseline, old)
	return r.Same > 0 && len(r.Changed) == 0 && r.NotScored == 0 && r.OnlyA == 0 && r.OnlyB == 0 && g.missing(a) == 0
}

func (g *gate) nonInferior(a, old *compare.Arm, m *metric.Metric, fail float64) Check {
	margin := g.o.Margins[m.Name]
	c := Check{Kind: KindBaseline, Name: a.Name() + "." + m.Name, Agent: a.Agent, Defense: a.Defense, Metric: m.Name,
		Outcome: stats.Inconclusive, Measured: "not measured",
		Require: fmt.Sprintf("worse than the baseline by less than %s", short(margin))}
	e, p := g.difference(a, old, m, compare.Slice{}, stats.OneSided(g.o.Confidence))
	broken, _ := g.difference(a, old, m, compare.Slice{}, stats.OneSided(fail))
	c.Difference = &e
	if g.repeats(a, old) && e.Measured() {
		c.Outcome, c.Measured = stats.Pass, fmt.Sprintf("+0.00 points on %d cases", e.N)
		c.Bound = fmt.Sprintf("[%+.2f, %+.2f]", 100*e.Lo, 100*e.Hi)
		c.Why = "every case ended exactly as in the baseline, and the model is deterministic"
		return c
	}
	v, ok := e.Value()
	if !ok {
		c.Why = "the run and the baseline have no scored trial in common"
		return c
	}
	c.Measured = fmt.Sprintf("%+.2f points on %d cases", 100*v, e.N)
	c.Bound = fmt.Sprintf("[%+.2f, %+.2f]", 100*e.Lo, 100*e.Hi)
	if p.Pairs.N() == 0 {
		g.res.Notes = append(g.res.Notes, c.Name+": the run and the baseline have no case in common; they are compared as "+
			"two samples")
	}
	c.Outcome = either(stats.NonInferior(e, margin, m.Better) == stats.Pass,
		stats.NonInferior(broken, margin, m.Better) == stats.Fail)
	worst, best := -e.Lo, -broken.Hi
	if m.Better == stats.LowerIsBetter {
		worst, best = e.Hi, broken.Lo
	}
	switch c.Outcome {
	case stats.Pass:
		c.Why = fmt.Sprintf("worse by at most %.2f points", 100*max(worst, 0))
	case stats.Fail:
		c.Why = fmt.Sprintf("worse by at least %.2f points", 100*best)
		c.Regressed = g.regressed(a, old, m, margin)
	default:
		c.Why = "the margin lies within the bounds: more cases or a wider margin would decide"
	}
	// Cases that failed or are missing could all have gone against the outcome.
	// What only one run has because a filter differs is no such case.
	if unknown := p.Dropped.NotScored + g.missing(a); unknown > 0 && c.Outcome != stats.Inconclusive {
		total := float64(e.N + unknown)
		lo, hi := (v*float64(e.N)-float64(unknown))/total, (v*float64(e.N)+float64(unknown))/total
		if m.Better == stats.HigherIsBetter {
			lo, hi = -hi, -lo
		}
		if c.Outcome == stats.Pass && hi >= margin || c.Outcome == stats.Fail && lo < margin {
			c.Outcome, c.Regressed = stats.Inconclusive, nil
			c.Why = fmt.Sprintf("%d trials are not scored or missing: with them the run is worse by between %.2f and %.2f points", unknown, 100*lo, 100*hi)
		}
	}
	return c
}

// regressed finds the classes that a failed check is due to: those that got
// worse by more than chance explains at the gate's confidence, else the one that
// got worst.
func (g *gate) regressed(a, old *compare.Arm, m *metric.Metric, margin float64) []Regression {
	var out []Regression
	var worst Regression
	most := math.Inf(-1)
	for _, class := range g.t.Values("class") {
		e, p := g.difference(a, old, m, compare.Slice{By: "class", Name: class}, stats.OneSided(g.o.Confidence))
		v, ok := e.Value()
		if !ok {
			continue
		}
		harm, least := -v, -e.Hi
		if m.Better == stats.LowerIsBetter {
			harm, least = v, e.Lo
		}
		x := Regression{Class: class, Text: fmt.Sprintf("%s.%s is worse by %.2f points on %d cases of %s [%+.2f, %+.2f]",
			a.Name(), m.Name, 100*harm, p.Pairs.N(), class, 100*e.Lo, 100*e.Hi)}
		if least > 0 {
			out = append(out, x)
		}
		if harm > most {
			most, worst = harm, x
		}
	}
	if len(out) == 0 && most > 0 {
		out = append(out, worst)
	}
	return out
}

// mostCases is how many cases of a class a regression names.
const mostCases = 10

func (g *gate) replay(a, old *compare.Arm) Check {
	c := Check{Kind: KindReplay, Name: a.Name() + ".digest", Agent: a.Agent, Defense: a.Defense,
		Require: "outcomes exactly as in the baseline", Outcome: stats.Inconclusive}
	r := compare.Replay(g.t, a, g.o.Baseline, old)
	c.Measured = fmt.Sprintf("%d of %d cases changed", len(r.Changed), r.Same+len(r.Changed))
	byClass := map[string]*Regression{}
	var order []string
	for _, k := range r.Changed {
		c.Changed = append(c.Changed, Changed{Case: k.Case, Epoch: k.Epoch, Class: k.Class, What: k.What})
		x := byClass[k.Class]
		if x == nil {
			x = &Regression{Class: k.Class}
			byClass[k.Class] = x
			order = append(order, k.Class)
		}
		x.Changed++
		if len(x.Cases) < mostCases {
			x.Cases = append(x.Cases, k.Case)
		}
	}
	for _, class := range order {
		x := byClass[class]
		x.Text = fmt.Sprintf("%s: %d cases of %s ended otherwise than in the baseline: %s", a.Name(), x.Changed, class,
			strings.Join(x.Cases, ", "))
		if x.Changed > len(x.Cases) {
			x.Text += ", …"
		}
		c.Regressed = append(c.Regressed, *x)
	}
	switch {
	case len(r.Changed) > 0:
		c.Outcome, c.Why = stats.Fail, "cases changed"
	case r.Same == 0:
		c.Why = "no case was scored in both"
	case r.NotScored > 0:
		c.Why = fmt.Sprintf("%d cases were not scored", r.NotScored)
	case r.OnlyB > 0:
		c.Why = fmt.Sprintf("%d cases of the baseline are not in the run", r.OnlyB)
	default:
		c.Outcome, c.Why = stats.Pass, fmt.Sprintf("all %d cases ended as in the baseline", r.Same)
	}
	if r.OnlyA > 0 {
		g.res.Notes = append(g.res.Notes, fmt.Sprintf("%s: %d cases are not in the baseline and were not replayed", c.Name,
			r.OnlyA))
	}
	return c
}
