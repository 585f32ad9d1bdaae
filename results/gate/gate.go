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

	Rate       *stats.Rate         `json:"rate,omitempty"`       // at the confidence that passes
	Difference *stats.Estimate     `json:"difference,omitempty"` // run − baseline
	Regressed  []Regression        `json:"regressed,omitempty"`  // classes that a failed check is due to
	Changed    []compare.Deviation `json:"changed,omitempty"`    // cases that a replay did not repeat

	requirement *Requirement // of a limit: it knows its place
}

// Regression is a class in which a check failed, or in which outcomes changed.
type Regression struct {
	Class   string   `json:"class"`
	Text    string   `json:"text"`
	Changed int      `json:"changed,omitempty"`
	Cases   []string `json:"cases,omitempty"` // some of them
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
		return problem("", "memtox gate --init RUN writes some to gate.yaml, for -f gate.yaml; or give --require '"+
			strings.SplitN(form, "instance ", 2)[1]+"', or --baseline",
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
		g.note("the run is not complete: %d of %d planned trials; what is missing can make a check inconclusive", t.Trials,
			res.Run.Planned)
	}
	var plans []plan
	for i := range o.Require {
		ps, err := g.limits(&o.Require[i])
		if err != nil {
			return nil, err
		}
		plans = append(plans, ps...)
	}
	if o.Baseline != nil {
		if err := compare.SameDataset(t, o.Baseline); err != nil {
			return nil, err
		}
		res.Baseline = o.Baseline.Name
		ps, err := g.baseline()
		if err != nil {
			return nil, err
		}
		plans = append(plans, ps...)
	}
	for _, p := range plans {
		if p.chance {
			res.Statistical++
		}
	}
	res.FailConfidence = 1 - (1-o.Confidence)/float64(max(res.Statistical, 1))
	for _, p := range plans {
		res.Checks = append(res.Checks, p.judge(res.FailConfidence))
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

// plan is a check to come. How many there are that chance can decide sets the confidence at
// which it fails.
type plan struct {
	chance bool
	judge  func(fail float64) Check
}

type gate struct {
	t   *compare.Table
	o   Options
	res *Result
}

func (g *gate) note(format string, args ...any) {
	g.res.Notes = append(g.res.Notes, fmt.Sprintf(format, args...))
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
	arms := max(len(run.Labels())*len(run.Defenses), len(g.t.Arms()))
	planned := int(run.Planned) / max(arms, 1)
	return max(planned-a.Scored-a.NotScored-a.Excluded, 0)
}

// limits makes the checks of a requirement: one an agent.
func (g *gate) limits(r *Requirement) ([]plan, error) {
	targets, err := r.resolve(g.t)
	if err != nil {
		return nil, err
	}
	m, rate := metric.Find(r.Metric)
	asks := r.Metric == metric.ExcessPer100
	if asks {
		m = metric.DoneAttack
	} else if !rate && targets[0].slice.Name != "" {
		return nil, problem(r.Where, "leave the class out", "%q: %s is not told apart by class", r.Text, r.Metric)
	}
	var plans []plan
	var idle []string
	for _, x := range targets {
		c := Check{Kind: KindLimit, Name: x.agent + "/" + x.defense, Agent: x.agent, Defense: x.defense,
			Class: x.slice.Name, Metric: r.Metric, Require: r.words, requirement: r}
		if c.Class != "" {
			c.Name += "/" + c.Class
		}
		c.Name += "." + r.Metric
		a := g.t.Arm(x.agent, x.defense)
		if c.Class != "" && a != nil && len(targets) > 1 {
			// A class that does not apply to an agent's profile is no reason to
			// be red or undecided, as long as it applies to another's.
			if n := a.Count(m, x.slice); n.Trials > 0 && n.Excluded == n.Trials {
				idle = append(idle, c.Name)
				continue
			}
		}
		plans = append(plans, plan{r.Metric != NotScored, func(fail float64) Check {
			c.Outcome, c.Measured = stats.Inconclusive, "not measured"
			switch l, latency := metric.FindLatency(r.Metric); {
			case a == nil:
				c.Why = "the arm has no trial yet"
			case rate:
				g.limit(&c, a, m, x.slice, fail)
			case asks:
				g.excess(&c, a, x.slice, fail)
			case latency:
				g.latency(&c, a, l, fail)
			default:
				g.count(&c, a)
			}
			return c
		}})
	}
	if len(plans) == 0 {
		return nil, problem(r.Where, "gate a class that the agents have", "%q: the class applies to none of the agents",
			r.Text)
	}
	for _, n := range idle {
		g.note("%s is not judged: the class does not apply to the agent", n)
	}
	return plans, nil
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func percent(v float64) string { return fmt.Sprintf("%.2f%%", 100*v) }

// limit holds a rate against its limit.
func (g *gate) limit(c *Check, a *compare.Arm, m *metric.Metric, s compare.Slice, fail float64) {
	tally := a.Count(m, s)
	pass := g.share(c, a, tally, 1, 1, percent, fail)
	c.Rate = &pass
	if v, ok := pass.Value(); ok {
		c.Measured = fmt.Sprintf("%d/%d %s", pass.K, pass.N, percent(v))
	} else {
		c.Why = fmt.Sprintf("no trial was scored that %s is about: %d not scored, %d excluded", m.Name, tally.NotScored,
			tally.Excluded)
	}
}

// excess holds the questions that were not due against their limit, which each side must
// meet: the worse decides. Either may break it, so that each has half of the check's
// chance to fail wrongly.
func (g *gate) excess(c *Check, a *compare.Arm, s compare.Slice, fail float64) {
	c.Why = "no trial was scored whose outcome is a state"
	open := *c
	outcomes, worst, most := []stats.Outcome{stats.Pass, stats.Inconclusive, stats.Fail}, -1, 0.
	per100 := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	for _, m := range []*metric.Metric{metric.DoneAttack, metric.DoneBenign} {
		tally, each := a.Excess(m, s)
		if !tally.Arose() {
			continue
		}
		x, side := open, map[*metric.Metric]string{metric.DoneAttack: "attacks", metric.DoneBenign: "benign cases"}[m]
		asked := g.share(&x, a, tally, each, 100, per100, 1-(1-fail)/2)
		v, ok := asked.Value()
		if v *= 100 * float64(each); ok {
			x.Measured = fmt.Sprintf("%d in %d %s, %s per 100", asked.K, asked.N/each, side, per100(v))
		} else {
			x.Why = fmt.Sprintf("none of %d %s was scored", tally.NotScored, side)
		}
		if i := slices.Index(outcomes, x.Outcome); i > worst || i == worst && v > most {
			worst, most, *c = i, v, x
		}
	}
}

// share judges a share, of trials that count each times at most. The limit is one on how
// often they count in so many trials. It sets the check's outcome, bounds and reason where
// a trial was scored.
func (g *gate) share(c *Check, a *compare.Arm, tally compare.Tally, each int, trials float64,
	figure func(float64) string, fail float64) stats.Rate {
	pass := stats.ClusteredClopperPearson(tally.Families, stats.OneSided(g.o.Confidence))
	broken := stats.ClusteredClopperPearson(tally.Families, stats.OneSided(fail))
	if !pass.Measured() {
		return pass
	}
	scale := trials * float64(each)
	c.judge(span{scale * pass.Lo, scale * pass.Hi}, span{scale * broken.Lo, scale * broken.Hi}, figure)
	// Trials that nobody knows the outcome of could all have gone against it.
	unknown := tally.NotScored + g.missing(a)
	lo, hi, _ := stats.WorstCase(pass.K, pass.N, each*unknown)
	lo, hi = scale*lo, scale*hi
	worst, best := hi, lo
	if c.requirement.AtLeast {
		worst, best = lo, hi
	}
	if c.Outcome == stats.Pass && c.requirement.broken(worst) || c.Outcome == stats.Fail && !c.requirement.broken(best) {
		c.Outcome = stats.Inconclusive
		c.Why = fmt.Sprintf("%d trials are not scored or missing: with them the rate lies between %s and %s", unknown,
			figure(lo), figure(hi))
	}
	return pass
}

// span is an interval.
type span struct{ lo, hi float64 }

// judge holds an interval against the limit of the check: pass where its end meets the
// limit, fail where that of broken, which is wider, breaks it from the other side.
func (c *Check) judge(pass, broken span, figure func(float64) string) {
	r := c.requirement
	good, bad, side := pass.hi, broken.lo, [2]string{"upper", "lower"}
	if r.AtLeast {
		good, bad, side = pass.lo, broken.hi, [2]string{"lower", "upper"}
	}
	c.Bound = fmt.Sprintf("[%s, %s]", figure(pass.lo), figure(pass.hi))
	switch {
	case !r.broken(good):
		c.Outcome, c.Why = stats.Pass, side[0]+" bound "+figure(good)+" meets the limit"
	case r.broken(bad):
		c.Outcome, c.Why = stats.Fail, side[1]+" bound "+figure(bad)+" breaks the limit"
	default:
		c.Outcome, c.Why = stats.Inconclusive, "the limit lies within the bounds: more cases would decide"
	}
}

// count holds the number of trials that failed against its limit.
func (g *gate) count(c *Check, a *compare.Arm) {
	c.Measured = fmt.Sprintf("%d of %d", a.NotScored, a.Scored+a.NotScored)
	switch {
	case c.requirement.broken(float64(a.NotScored)):
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
	return v / 1e3, err == nil && v > 0 && !math.IsInf(v, 0)
}

// latency holds a quantile of the time inside a gate against its limit.
func (g *gate) latency(c *Check, a *compare.Arm, l metric.Latency, fail float64) {
	scale, unit := 1.0, "µs"
	if !c.requirement.Absolute {
		us, ok := g.calibration()
		if !ok {
			c.Why = "the run has no calibration value, so a multiple of it means nothing; give a time (" + c.Name +
				" <= 40us) to ask for an absolute limit"
			return
		}
		scale, unit = 1/us, "× calibration loop"
	}
	s, _ := a.Latency(l.Gate)
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
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	c.Measured = fmt.Sprintf("%s %s of %d", figure(v*scale), unit, pass.N)
	c.judge(span{pass.Lo * scale, pass.Hi * scale}, span{broken.Lo * scale, broken.Hi * scale}, figure)
	if g.missing(a) > 0 && c.Outcome == stats.Pass {
		c.Outcome, c.Why = stats.Inconclusive, fmt.Sprintf("%d trials have not run", g.missing(a))
	}
}

// baseline makes the checks against the baseline.
func (g *gate) baseline() (plans []plan, err error) {
	b := g.o.Baseline
	common, onlyA, onlyB := g.t.Beside(b)
	for _, a := range onlyA {
		g.note("arm %s is not judged: the baseline does not have it", a.Name())
	}
	for _, a := range onlyB {
		g.note("arm %s of the baseline is not judged: the run does not have it", a.Name())
	}
	if len(common) == 0 {
		return nil, problem("--baseline", "make one of this run: memtox gate RUN --write-baseline FILE",
			"%s and %s have no arm in common", g.t.Name, b.Name)
	}
	g.res.Notes = append(g.res.Notes, compare.Differences(g.t, b)...)
	for _, arms := range common {
		a, old := arms[0], arms[1]
		for _, name := range slices.Sorted(maps.Keys(g.o.Margins)) {
			m, _ := metric.Find(name)
			if a.Defense == compare.Undefended && m.Lands {
				continue // what lands undefended is headroom, not a defect
			}
			if !old.Count(m, compare.Slice{}).Arose() && !a.Count(m, compare.Slice{}).Arose() {
				g.note("%s.%s is not judged: the question did not arise in either run", a.Name(), m.Name)
				continue
			}
			plans = append(plans, plan{true, func(fail float64) Check { return g.nonInferior(a, old, m, fail) }})
		}
		if g.o.Exact {
			plans = append(plans, plan{false, func(float64) Check { return g.replay(a, old) }})
		}
	}
	return plans, nil
}

// difference estimates run − baseline: paired where cases match, else as two
// samples.
func (g *gate) difference(a, old *compare.Arm, m *metric.Metric, s compare.Slice, confidence float64) (stats.Estimate,
	compare.Paired) {
	level, p := stats.OneSided(confidence), compare.Pair(a, old, m, s)
	if p.Pairs.N() > 0 {
		return p.Estimate(level, g.o.Seed), p
	}
	return stats.NewcombeIndependent(a.Count(m, s).Sum(), old.Count(m, s).Sum(), level), p
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
	r := compare.Replay(a, old)
	return r.Same > 0 && len(r.Changed) == 0 && r.NotScored == 0 && r.OnlyA == 0 && r.OnlyB == 0 && g.missing(a) == 0
}

// worse turns a difference of run − baseline, and the ends of its interval, into how
// much worse the run is.
func worse(m *metric.Metric, v float64, x span) (float64, span) {
	if m.Better == stats.LowerIsBetter {
		return v, x
	}
	return -v, span{-x.hi, -x.lo}
}

func (g *gate) nonInferior(a, old *compare.Arm, m *metric.Metric, fail float64) Check {
	margin := g.o.Margins[m.Name]
	c := Check{Kind: KindBaseline, Name: a.Name() + "." + m.Name, Agent: a.Agent, Defense: a.Defense, Metric: m.Name,
		Outcome: stats.Inconclusive, Measured: "not measured",
		Require: fmt.Sprintf("worse than the baseline by less than %s", short(margin))}
	e, p := g.difference(a, old, m, compare.Slice{}, g.o.Confidence)
	broken, _ := g.difference(a, old, m, compare.Slice{}, fail)
	c.Difference = &e
	v, ok := e.Value()
	if !ok {
		c.Why = "the run and the baseline have no scored trial in common"
		return c
	}
	c.Measured = fmt.Sprintf("%+.2f points on %d cases", 100*v, e.N)
	c.Bound = fmt.Sprintf("[%+.2f, %+.2f]", 100*e.Lo, 100*e.Hi)
	if g.repeats(a, old) {
		c.Outcome, c.Why = stats.Pass, "every case ended exactly as in the baseline, and the model is deterministic"
		return c
	}
	if p.Pairs.N() == 0 {
		g.note("%s: the run and the baseline have no case in common; they are compared as two samples", c.Name)
	}
	harm, within := worse(m, v, span{e.Lo, e.Hi})
	_, least := worse(m, v, span{broken.Lo, broken.Hi})
	switch {
	case stats.NonInferior(e, margin, m.Better) == stats.Pass:
		c.Outcome, c.Why = stats.Pass, fmt.Sprintf("worse by at most %.2f points", 100*max(within.hi, 0))
	case stats.NonInferior(broken, margin, m.Better) == stats.Fail:
		c.Outcome, c.Why = stats.Fail, fmt.Sprintf("worse by at least %.2f points", 100*least.lo)
	default:
		c.Why = "the margin lies within the bounds: more cases or a wider margin would decide"
		return c
	}
	// Cases that failed or are missing could all have gone against the outcome.
	// What only one run has because a filter differs is no such case.
	unknown := p.Dropped.NotScored + g.missing(a)
	total := float64(e.N + unknown)
	lo, hi := (harm*float64(e.N)-float64(unknown))/total, (harm*float64(e.N)+float64(unknown))/total
	switch {
	case unknown > 0 && (c.Outcome == stats.Pass && hi >= margin || c.Outcome == stats.Fail && lo < margin):
		c.Outcome = stats.Inconclusive
		c.Why = fmt.Sprintf("%d trials are not scored or missing: with them the run is worse by between %.2f and %.2f points",
			unknown, 100*lo, 100*hi)
	case c.Outcome == stats.Fail:
		c.Regressed = g.regressed(a, old, m)
	}
	return c
}

// regressed finds the classes that a failed check is due to: those that got
// worse by more than chance explains at the gate's confidence, else the one that
// got worst.
func (g *gate) regressed(a, old *compare.Arm, m *metric.Metric) []Regression {
	var out, worst []Regression
	most := 0.
	for _, class := range g.t.Values("class") {
		e, p := g.difference(a, old, m, compare.Slice{By: "class", Name: class}, g.o.Confidence)
		v, ok := e.Value()
		if !ok {
			continue
		}
		harm, within := worse(m, v, span{e.Lo, e.Hi})
		x := Regression{Class: class, Text: fmt.Sprintf("%s.%s is worse by %.2f points on %d cases of %s [%+.2f, %+.2f]",
			a.Name(), m.Name, 100*harm, p.Pairs.N(), class, 100*e.Lo, 100*e.Hi)}
		if within.lo > 0 {
			out = append(out, x)
		}
		if harm > most {
			most, worst = harm, []Regression{x}
		}
	}
	if len(out) == 0 {
		return worst
	}
	return out
}

// mostCases is how many cases of a class a regression names.
const mostCases = 10

func (g *gate) replay(a, old *compare.Arm) Check {
	r := compare.Replay(a, old)
	c := Check{Kind: KindReplay, Name: a.Name() + ".digest", Agent: a.Agent, Defense: a.Defense,
		Require: "outcomes exactly as in the baseline", Outcome: stats.Inconclusive, Changed: r.Changed,
		Measured: fmt.Sprintf("%d of %d cases changed", len(r.Changed), r.Same+len(r.Changed))}
	for _, k := range r.Changed {
		i := slices.IndexFunc(c.Regressed, func(x Regression) bool { return x.Class == k.Class })
		if i < 0 {
			i = len(c.Regressed)
			c.Regressed = append(c.Regressed, Regression{Class: k.Class})
		}
		x := &c.Regressed[i]
		if x.Changed++; x.Changed <= mostCases {
			x.Cases = append(x.Cases, k.Case)
		}
	}
	for i := range c.Regressed {
		x := &c.Regressed[i]
		x.Text = fmt.Sprintf("%s: %d cases of %s ended otherwise than in the baseline: %s", a.Name(), x.Changed, x.Class,
			strings.Join(x.Cases, ", "))
		if x.Changed > len(x.Cases) {
			x.Text += ", …"
		}
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
		g.note("%s: %d cases are not in the baseline and were not replayed", c.Name, r.OnlyA)
	}
	return c
}
