package summary

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Options of a summary. The zero value is usable.
type Options struct {
	// Level of the intervals; [stats.DefaultLevel] if 0.
	Level float64
	// Resumed is the number of trials that were taken from a journal.
	Resumed int
	// Mix weighs the situations of state sets; nil does not.
	Mix *Mix
	// Vulnerabilities says which vulnerabilities a class exploits. Without it
	// the lists of vulnerabilities are empty.
	Vulnerabilities map[string][]string
	// Classes is the order in which known classes are listed; others follow by
	// name.
	Classes []string
	// Mutations is the order in which known mutations are listed.
	Mutations []string
	// Gates says at which gate each defense was asked, where texts were handed to
	// defenses without an agent (`memtox detect`); nil for a run of agents.
	Gates map[string]string
}

// Original is the name of the slice of attacks that are no variants.
const Original = "none"

// Aggregator takes entries, in any order, and makes the summary of them. Each
// trial must be added once; a [results.Reader] sees to that.
type Aggregator struct {
	run     *results.Run
	opts    Options
	metrics []*metric.Metric // those that are counted
	sweeps  []sweepArms
	arms    map[armKey]*arm
	last    *arm
	lastOf  armKey
	sum     Summary // what is counted of the run as a whole

	variants                  names // of attacks; "" is an original
	inSituation, cameBy       names
	classes, signals, sources names // of texts
	outcomes                  []outcome
	cases                     map[string]int32 // numbers for outcomes
	checks                    map[[2]string]*spoken
	reasons                   map[Reason]int64
}

type armKey struct{ agent, defense string }

// cellKey is what the slices of a summary tell apart. The family "" holds cases that
// are a family each, and have one trial.
type cellKey struct {
	family, class, signal, channel, variant, source, situation, via string

	attack, tune bool
}

// names are texts of rows that are told apart. The rows may have any number of them:
// beyond maxNames they are one.
type names map[string]bool

const (
	maxNames = 1000
	others   = "others"
)

func (n names) take(name string) string {
	if !n[name] {
		if len(n) >= maxNames {
			name = others
		}
		n[strings.Clone(name)] = true
	}
	return name
}

type arm struct {
	number  int32 // from 0, as the arms came
	cells   map[cellKey]cell
	digest  multiset
	gates   [4]stats.Sketch
	wire    [4]stats.Sketch
	verdict Verdicts
	unsure  int64
	scored  int64
	errors  int64
	outside int64
	costs   Costs
	kinds   map[string]int64 // errors by kind
	writes  writes
	unheld  []string // gates that had nothing to hold on to
	model   string
	// questions are counted by situation, apart for benign cases and attacks.
	questions map[string]*[2]asking
	texts     *textArm // nil in a run of agents
}

// New returns an empty aggregator. The run tells name, model, dataset and the
// order of the arms; an arm of the run that has no rows is listed with nothing
// measured.
func New(run *results.Run, o Options) *Aggregator {
	a := &Aggregator{run: run, opts: o, metrics: metric.All(), sweeps: sweepsOf(run), arms: map[armKey]*arm{},
		variants: names{}, inSituation: names{}, cameBy: names{}, classes: names{}, signals: names{}, sources: names{},
		checks: map[[2]string]*spoken{}, reasons: map[Reason]int64{}}
	if o.Gates != nil {
		a.metrics = metric.OfTexts()
	}
	for _, agent := range run.Agents {
		for _, model := range run.ModelNames() {
			for _, defense := range run.Defenses {
				a.arm(armKey{run.Label(agent, model), defense}).model = model
			}
		}
	}
	return a
}

func (a *Aggregator) arm(k armKey) *arm {
	if a.last != nil && a.lastOf == k {
		return a.last
	}
	x := a.arms[k]
	if x == nil {
		x = &arm{number: int32(len(a.arms)), cells: map[cellKey]cell{}}
		if a.opts.Gates != nil {
			x.texts = new(textArm)
		}
		a.arms[k] = x
	}
	a.last, a.lastOf = x, k
	return x
}

// Add counts one entry. Of its decisions gate, record, reasons and latency are read.
// Where texts were handed to defenses, sizes are theirs in bytes, one a decision.
func (a *Aggregator) Add(e *results.Entry, sizes ...int) {
	t := &e.Trial
	x := a.arm(armKey{a.run.Label(t.Agent, t.Model), t.Defense})
	a.sum.Trials++
	x.digest.add(t.Digest)
	x.costs.add(t)
	if x.texts == nil || t.Status == results.Scored {
		k := a.key(e)
		c := x.cells[k]
		if c == nil {
			c = make(cell, metric.Count())
			x.cells[k] = c
		}
		c.add(t, a.metrics)
		if x.texts == nil {
			a.remember(t, x, c)
		}
	}
	switch t.Status {
	case results.Scored:
		x.scored++
		x.writes.add(t)
		for _, g := range []string{results.GateRead, results.GateAct} {
			if strings.Contains(t.NotEnforced, g) && !slices.Contains(x.unheld, g) {
				x.unheld = append(x.unheld, g)
			}
		}
		x.ask(t, a.inSituation.take(t.Situation))
	case results.Error:
		x.errors++
		if x.kinds == nil {
			x.kinds = map[string]int64{}
		}
		x.kinds[ErrorKind(t.Reason)]++
		a.unscored(t)
		return
	default:
		x.outside++
		a.unscored(t)
		return
	}
	if t.Label == results.Attack {
		a.sum.Attacks++
		if !t.ExpectsASR && t.JudgedWritten == nil {
			a.sum.Uncountable++
		}
	}
	x.unsure += int64(t.Unsure)
	x.verdict.add(t)
	if x.texts != nil {
		x.texts.add(e, sizes)
	}
	for i := range e.Decisions {
		d := &e.Decisions[i]
		// In sessions, a read has a row of the call, which has the time, and one of each
		// record of note, which has the reasons.
		call, record := d.Gate != results.GateRead || d.Record == "", d.Gate != results.GateRead || d.Record != ""
		if d.Reasons != "" && record {
			a.spoke(t.Defense, d)
		}
		if g := slices.Index(gateNames[:], d.Gate); g >= 0 && (call || x.texts != nil) {
			x.gates[g].Add(float64(d.LatencyNS) / 1000)
			if d.WireNS > 0 {
				x.wire[g].Add(float64(d.WireNS) / 1000)
			}
		}
	}
}

// AddAll counts every entry of a run.
func (a *Aggregator) AddAll(r *results.Reader) error {
	for e, err := range r.Entries(results.Everything) {
		if err != nil {
			return err
		}
		a.Add(e)
	}
	return nil
}

// key says which part of its arm an entry is in.
func (a *Aggregator) key(e *results.Entry) cellKey {
	t := &e.Trial
	if a.opts.Gates != nil {
		return a.textKey(e)
	}
	k := cellKey{family: t.Family, tune: len(a.sweeps) > 0 && t.Split == "tune"}
	if k.family == "" {
		k.family = "\x00" + t.Case // no family is named like that
	}
	k.via = a.cameBy.take(t.Via)
	if !t.Question {
		k.situation = a.inSituation.take(t.Situation)
	}
	if t.Label == results.Attack {
		k.attack, k.class, k.signal, k.channel, k.variant = true, t.Class, t.Signal, t.Channel, a.variants.take(t.Variant)
	}
	return k
}

// unscored counts why a trial is in no rate.
func (a *Aggregator) unscored(t *results.Trial) {
	r := Reason{Agent: a.run.Label(t.Agent, t.Model), Defense: t.Defense, Status: t.Status, Reason: t.Reason}
	if _, known := a.reasons[r]; !known && len(a.reasons) >= maxNames {
		r.Reason = others
	}
	a.reasons[r]++
}

// spoke counts the checks of one decision. A trial counts once a check, whatever the
// number of its decisions: an agent that is refused tries again.
func (a *Aggregator) spoke(defense string, d *results.Decision) {
	became := 0
	switch stopped := d.Action == "block" || d.Action == "quarantine" || d.Action == "redact"; {
	case !stopped:
	case d.Poison:
		became = 3
	case d.Legit:
		became = 2
	default:
		became = 1
	}
	for check := range strings.SplitSeq(d.Reasons, ";") {
		k := [2]string{defense, check}
		n := a.checks[k]
		if n == nil && len(a.checks) >= maxNames {
			k[1] = others
			n = a.checks[k]
		}
		if n == nil {
			n = &spoken{Check: Check{Defense: strings.Clone(defense), Name: strings.Clone(k[1])}}
			a.checks[[2]string{n.Defense, n.Name}] = n
		}
		if n.trial != a.sum.Trials {
			n.trial, n.became = a.sum.Trials, 0
			n.N++
		}
		if became > n.became {
			as := [...]*int64{new(int64), &n.OtherStopped, &n.LegitStopped, &n.PoisonStopped}
			*as[n.became]--
			*as[became]++
			n.became = became
		}
	}
}

// spoken is a check with the trial on which it spoke last, and what became of that.
type spoken struct {
	Check
	trial  int64
	became int
}

var gateNames = [4]string{results.GateWrite, results.GateRead, results.GateInput, results.GateAct}

// Summary returns the summary of what was added so far.
func (a *Aggregator) Summary() *Summary {
	s := a.sum
	s.RunID, s.Resumed, s.Model, s.LLM, s.Dataset, s.Split = a.run.ID, a.opts.Resumed, a.run.Model, a.run.LLM,
		a.run.Dataset, a.run.Split
	s.Planned, s.Whole = a.run.Planned, a.run.Whole
	resolved, _ := a.run.Settings["resolved"].(map[string]any)
	s.Embeddings, _ = resolved[EmbeddingsKey].(string)
	none := stats.ClusteredWilson(nil, a.opts.Level)
	s.Interval = Interval{Method: none.Method, Level: none.Level}
	labels := a.run.Labels()
	keys := slices.SortedFunc(maps.Keys(a.arms), func(p, q armKey) int {
		return cmp.Or(listed(labels, p.agent, q.agent), listed(a.run.Defenses, p.defense, q.defense))
	})
	a.pair()
	place := map[armKey]int{}
	s.Arms = make([]Arm, len(keys))
	var each errgroup.Group // arm by arm, each with a hundred intervals
	each.SetLimit(runtime.GOMAXPROCS(0))
	for i, k := range keys {
		place[k] = i
		x := a.arms[k]
		each.Go(func() error { s.Arms[i] = a.summary(k, x); return nil })
	}
	_ = each.Wait() // none fails
	a.dominated(s.Arms)
	s.OnlyVariants = len(a.variants) > 0 && !a.variants[""]
	s.Digest = runDigest(s.Arms)
	for r, n := range a.reasons {
		r.N = n
		s.Reasons = append(s.Reasons, r)
	}
	slices.SortFunc(s.Reasons, func(p, q Reason) int {
		return cmp.Or(cmp.Compare(place[armKey{p.Agent, p.Defense}], place[armKey{q.Agent, q.Defense}]),
			cmp.Compare(p.Status, q.Status), cmp.Compare(q.N, p.N), cmp.Compare(p.Reason, q.Reason))
	})
	for _, c := range a.checks {
		s.Checks = append(s.Checks, c.Check)
	}
	slices.SortFunc(s.Checks, func(p, q Check) int {
		return cmp.Or(listed(a.run.Defenses, p.Defense, q.Defense), cmp.Compare(q.PoisonStopped, p.PoisonStopped),
			cmp.Compare(q.N, p.N), cmp.Compare(p.Name, q.Name))
	})
	s.Sweeps = a.swept()
	if a.opts.Gates == nil {
		s.Verdict = a.verdict(&s)
	} else {
		s.Texts = &Texts{Cases: a.run.Dataset.Attacks + a.run.Dataset.Benign}
	}
	return &s
}

// latencies fills the quantiles of every gate and reports whether there are any.
func latencies(to *Gates, from *[len(gateNames)]stats.Sketch, texts bool) bool {
	some := false
	for i, l := range []*Latency{&to.Write, &to.Read, &to.Input, &to.Act} {
		*l = LatencyOf(&from[i])
		if !texts {
			l.Max = nil
		}
		some = some || l.N > 0
	}
	return some
}

// listed orders names as a list has them, the others behind it by name.
func listed(list []string, a, b string) int {
	i, j := slices.Index(list, a), slices.Index(list, b)
	switch {
	case i >= 0 && j >= 0:
		return cmp.Compare(i, j)
	case i >= 0:
		return -1
	case j >= 0:
		return 1
	}
	return cmp.Compare(a, b)
}

// summary makes the figures of an arm.
func (a *Aggregator) summary(k armKey, x *arm) Arm {
	out := Arm{Agent: k.agent, Defense: k.defense, Model: x.model, name: a.run.Named(k.agent), Digest: x.digest.sum(), Verdicts: x.verdict, Unsure: x.unsure,
		Scored: x.scored, NotScored: x.errors, Excluded: x.outside, Costs: x.costs,
		Errors: x.kinds, WriteExpected: x.writes.expected, WriteProposed: x.writes.proposed, times: &x.gates}
	out.ExcessPer100 = x.excess()
	if len(x.questions) > 0 {
		out.Situations = a.situations(x)
		if a.opts.Mix != nil {
			out.Mixed = a.mixed(x)
		}
	}
	latencies(&out.LatencyUS, &x.gates, x.texts != nil)
	if x.texts != nil {
		a.ofTexts(&out, x)
		return out
	}
	all := x.families(a.counts)
	out.Rates, out.Bounds = make(Rates, metric.Count()), map[string]Bound{}
	for _, m := range a.metrics {
		total := all.total(m)
		if (m.Judged || m.Seldom) && total.n+total.missing == 0 {
			continue
		}
		r := a.rate(all, m)
		out.Rates[m.Index()] = &r
		for _, w := range r.Warnings {
			if w.Code != stats.NotMeasured {
				out.Warnings = append(out.Warnings, m.Name+": "+w.Text)
			}
		}
		if total.missing > 0 {
			lo, hi, _ := stats.WorstCase(r.K, r.N, int(total.missing))
			out.Bounds[m.Name] = Bound{lo, hi, int64(total.missing)}
		}
	}
	if out.NotEnforced = x.unheld; len(x.unheld) > 0 {
		out.Warnings = append(out.Warnings, out.Unheld())
	}
	if out.Silent() {
		out.Warnings = append(out.Warnings, out.Silence())
	}
	var wire Gates
	if latencies(&wire, &x.wire, false) {
		out.WireUS = &wire
	}
	by := func(order []string, of func(cellKey) string) []Slice {
		return a.slices(x, order, func(k cellKey) []string { return []string{of(k)} }, a.counts)
	}
	out.Classes = by(a.opts.Classes, x.classes())
	out.Signals = by([]string{"strong", "weak"}, func(k cellKey) string { return k.signal })
	out.Channels = by(nil, func(k cellKey) string { return k.channel })
	if len(a.cameBy) > 1 || !a.cameBy[""] {
		out.Vias = by(nil, func(k cellKey) string { return k.via })
	}
	out.Vulnerabilities = a.slices(x, nil, func(k cellKey) []string { return a.opts.Vulnerabilities[k.class] }, a.counts)
	if len(a.variants) > 1 || len(a.variants) == 1 && !a.variants[""] {
		out.Mutations = a.slices(x, append([]string{Original}, a.opts.Mutations...), func(k cellKey) []string {
			if k.class == "" {
				return nil // a benign case
			}
			return []string{cmp.Or(k.variant, Original)}
		}, func(cellKey) bool { return true })
	}
	return out
}

// classes say in which class a cell is. A benign twin is in that of its family's
// attacks, if these have one.
func (x *arm) classes() func(cellKey) string {
	of := map[string]string{}
	for k := range x.cells {
		if was, ok := of[k.family]; k.attack && ok && was != k.class {
			of[k.family] = ""
		} else if k.attack {
			of[k.family] = k.class
		}
	}
	return func(k cellKey) string {
		if k.attack {
			return k.class
		}
		return of[k.family]
	}
}

// counts reports whether cases are in the rates of their arm: variants are never
// pooled with the attacks that they vary.
func (a *Aggregator) counts(k cellKey) bool { return k.variant == "" || !a.variants[""] }

// slices makes a slice of every name that some trial has, scored or not.
func (a *Aggregator) slices(x *arm, order []string, names func(cellKey) []string, counts func(cellKey) bool) []Slice {
	out := make([]Slice, 0)
	for _, n := range x.names(order, names, counts) {
		f := x.families(func(k cellKey) bool { return counts(k) && slices.Contains(names(k), n) })
		s := Slice{Name: n, Rates: make(Rates, metric.Count())}
		for _, m := range a.metrics {
			if m.Sliced {
				r := a.rate(f, m)
				s.Rates[m.Index()] = &r
			}
		}
		out = append(out, s)
	}
	return out
}

// names lists the names that cells have, in an order.
func (x *arm) names(order []string, names func(cellKey) []string, counts func(cellKey) bool) []string {
	seen := map[string]bool{}
	for k := range x.cells {
		if counts(k) {
			for _, n := range names(k) {
				seen[n] = true
			}
		}
	}
	delete(seen, "")
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return listed(order, a, b) })
}

// count is a numerator, a denominator, and how many trials that were not scored
// could have been in both.
type count struct{ k, n, missing uint32 }

// cell holds the counts of one family in one arm and slice, by rate.
type cell []count

// add counts a trial into the cell.
func (c cell) add(t *results.Trial, metrics []*metric.Metric) {
	for _, m := range metrics {
		x := &c[m.Index()]
		if t.Status == results.Scored {
			k, n := m.Count(t)
			x.k += uint32(k)
			x.n += uint32(n)
		}
		if m.Missing(t) {
			x.missing++
		}
	}
}

// families adds up the cells of each family.
type families map[string]cell

func (x *arm) families(want func(cellKey) bool) families {
	out := families{}
	for k, c := range x.cells {
		if !want(k) {
			continue
		}
		f := out[k.family]
		if f == nil {
			f = make(cell, len(c))
			out[k.family] = f
		}
		for m := range f {
			f[m].k += c[m].k
			f[m].n += c[m].n
			f[m].missing += c[m].missing
		}
	}
	return out
}

// rate is the clustered rate. The order of the families is made the same every time,
// for sums of floating-point numbers depend on it: those of texts go by name, those of
// agents by size, and a change would show in the last digits of old runs.
func (a *Aggregator) rate(f families, m *metric.Metric) stats.Rate {
	counts := make([]stats.Count, 0, len(f))
	names := maps.Keys(f)
	if a.opts.Gates != nil {
		names = slices.Values(slices.Sorted(names))
	}
	for name := range names {
		c := f[name][m.Index()]
		if name == "" { // families of one trial
			hits := slices.Repeat([]stats.Count{{K: 1, N: 1}}, int(c.k))
			counts = slices.Concat(counts, hits, slices.Repeat([]stats.Count{{N: 1}}, int(c.n-c.k)))
		} else if c.n > 0 {
			counts = append(counts, stats.Count{K: int(c.k), N: int(c.n)})
		}
	}
	if a.opts.Gates == nil {
		slices.SortFunc(counts, func(a, b stats.Count) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.K, b.K)) })
	}
	return stats.ClusteredWilson(counts, a.opts.Level)
}

// total adds up what trials there are in a rate.
func (f families) total(m *metric.Metric) (all count) {
	for _, c := range f {
		all.n += c[m.Index()].n
		all.missing += c[m.Index()].missing
	}
	return all
}
