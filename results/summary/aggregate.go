package summary

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
	"strings"

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
	// Vulnerabilities says which vulnerabilities a class exploits. Without it
	// the lists of vulnerabilities are empty.
	Vulnerabilities map[string][]string
	// Classes is the order in which known classes are listed; others follow by
	// name.
	Classes []string
	// Mutations is the order in which known mutations are listed.
	Mutations []string
}

// Original is the name of the slice of attacks that are no variants.
const Original = "none"

// Aggregator takes entries, in any order, and makes the summary of them. Each
// trial must be added once; a [results.Reader] sees to that.
type Aggregator struct {
	run    *results.Run
	opts   Options
	arms   map[armKey]*arm
	last   *arm
	lastOf armKey
	trials int64

	variants map[string]bool // names that attacks have; "" is an original
}

type armKey struct{ agent, defense string }

// cellKey is what the slices of a summary tell apart.
type cellKey struct{ family, class, signal, channel, variant string }

// maxVariants bounds how many variants are told apart: their names are texts of
// the set. The rest are one.
const maxVariants = 1000

// otherVariants is the name of the variants beyond maxVariants.
const otherVariants = "others"

type arm struct {
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
	reasons map[string]int64 // errors by kind
	writes  writes
}

// New returns an empty aggregator. The run tells name, model, dataset and the
// order of the arms; an arm of the run that has no rows is listed with nothing
// measured.
func New(run *results.Run, o Options) *Aggregator {
	a := &Aggregator{run: run, opts: o, arms: map[armKey]*arm{}, variants: map[string]bool{}}
	for _, agent := range run.Agents {
		for _, defense := range run.Defenses {
			a.arm(armKey{agent, defense})
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
		x = &arm{cells: map[cellKey]cell{}}
		a.arms[k] = x
	}
	a.last, a.lastOf = x, k
	return x
}

// Add counts one entry. Of its decisions gate, record and latency are read.
func (a *Aggregator) Add(e *results.Entry) {
	t := &e.Trial
	x := a.arm(armKey{t.Agent, t.Defense})
	a.trials++
	x.digest.add(t.Digest)
	x.costs.ModelCalls += int64(t.ModelCalls)
	x.costs.ToolCalls += int64(t.ToolCalls)
	x.costs.Retries += int64(t.Retries)
	x.costs.EmptyAnswers += int64(t.EmptyAnswers)
	x.costs.PromptTokens += t.PromptTokens
	x.costs.CompletionTokens += t.CompletionTokens
	x.costs.DefenseCalls += int64(t.DefenseCalls)
	x.costs.DefenseTokens += t.DefenseTokens
	x.costs.JudgeCalls += int64(t.JudgeCalls)
	x.costs.JudgeTokens += t.JudgeTokens
	x.costs.JudgeUnanswered += int64(t.JudgeUnanswered)
	x.costs.TokensEstimated = x.costs.TokensEstimated || t.TokensEstimated

	k := cellKey{family: t.Family}
	if k.family == "" {
		k.family = "\x00" + t.Case // no family is named like that
	}
	if t.Label == results.Attack {
		k.class, k.signal, k.channel, k.variant = t.Class, t.Signal, t.Channel, a.variant(t.Variant)
	}
	c := x.cells[k]
	if c == nil {
		c = make(cell, len(metrics))
		x.cells[k] = c
	}
	c.add(t)
	switch t.Status {
	case results.Scored:
		x.scored++
		x.writes.add(t)
	case results.Error:
		x.errors++
		if x.reasons == nil {
			x.reasons = map[string]int64{}
		}
		x.reasons[ErrorKind(t.Reason)]++
		return
	default:
		x.outside++
		return
	}
	x.unsure += int64(t.Unsure)
	x.verdict.Allow += int64(t.Allow)
	x.verdict.Redact += int64(t.Redact)
	x.verdict.Defer += int64(t.Defer)
	x.verdict.Quarantine += int64(t.Quarantine)
	x.verdict.Block += int64(t.Block)
	for i := range e.Decisions {
		d := &e.Decisions[i]
		if d.Gate == results.GateRead && d.Record != "" {
			continue // the call's own row has the time
		}
		if g := slices.Index(gateNames[:], d.Gate); g >= 0 {
			x.gates[g].Add(float64(d.LatencyNS) / 1000)
			if d.WireNS > 0 {
				x.wire[g].Add(float64(d.WireNS) / 1000)
			}
		}
	}
}

// variant is the name under which a variant is counted.
func (a *Aggregator) variant(name string) string {
	if !a.variants[name] {
		if len(a.variants) >= maxVariants {
			name = otherVariants
		}
		a.variants[strings.Clone(name)] = true
	}
	return name
}

var gateNames = [4]string{results.GateWrite, results.GateRead, results.GateInput, results.GateAct}

// Summary returns the summary of what was added so far.
func (a *Aggregator) Summary() *Summary {
	s := &Summary{RunID: a.run.ID, Resumed: a.opts.Resumed, Model: a.run.Model, LLM: a.run.LLM, Dataset: a.run.Dataset, Split: a.run.Split,
		Planned: a.run.Planned, Whole: a.run.Whole, Trials: a.trials, Arms: []Arm{}}
	none := stats.ClusteredWilson(nil, a.opts.Level)
	s.Interval = Interval{Method: none.Method, Level: none.Level}
	keys := make([]armKey, 0, len(a.arms))
	for k := range a.arms {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(p, q armKey) int {
		return cmp.Or(listed(a.run.Agents, p.agent, q.agent), listed(a.run.Defenses, p.defense, q.defense))
	})
	for _, k := range keys {
		s.Arms = append(s.Arms, a.arms[k].summary(k, a.opts, a.variants))
	}
	s.OnlyVariants = len(a.variants) > 0 && !a.variants[""]
	s.Digest = runDigest(s.Arms)
	return s
}

// latencies fills the quantiles of every gate and reports whether there are any.
func latencies(to *Gates, from *[len(gateNames)]stats.Sketch) bool {
	some := false
	for i, l := range []*Latency{&to.Write, &to.Read, &to.Input, &to.Act} {
		if q, ok := from[i].Summary(); ok {
			*l = Latency{N: q.N, P50: &q.P50, P95: &q.P95, P99: &q.P99}
			some = true
		}
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

func (x *arm) summary(k armKey, o Options, variants map[string]bool) Arm {
	out := Arm{Agent: k.agent, Defense: k.defense, Digest: x.digest.sum(), Verdicts: x.verdict, Unsure: x.unsure,
		Scored: x.scored, NotScored: x.errors, Excluded: x.outside, Costs: x.costs,
		Errors: x.reasons, WriteExpected: x.writes.expected, WriteProposed: x.writes.proposed}
	// Variants are never pooled with the attacks that they vary.
	counts := func(k cellKey) bool { return k.variant == "" || !variants[""] }
	all := x.families(counts)
	out.Rates = make(Rates, len(metrics))
	for _, m := range metrics {
		if m.Judged && !all.arose(m) {
			continue
		}
		r := all.rate(m, o.Level)
		out.Rates[m.Index()] = &r
		for _, w := range r.Warnings {
			if w.Code != stats.NotMeasured {
				out.Warnings = append(out.Warnings, m.Name+": "+w.Text)
			}
		}
		if missing := all.missing(m); missing > 0 {
			lo, hi, _ := stats.WorstCase(r.K, r.N, missing)
			if out.Bounds == nil {
				out.Bounds = map[string]Bound{}
			}
			out.Bounds[m.Name] = Bound{lo, hi, int64(missing)}
		}
	}
	if out.Silent() {
		out.Warnings = append(out.Warnings, out.Silence())
	}
	latencies(&out.LatencyUS, &x.gates)
	var wire Gates
	if latencies(&wire, &x.wire) {
		out.WireUS = &wire
	}
	one := func(s string) []string { return []string{s} }
	out.Classes = x.slices(o, o.Classes, func(k cellKey) []string { return one(k.class) }, counts)
	out.Signals = x.slices(o, []string{"strong", "weak"}, func(k cellKey) []string { return one(k.signal) }, counts)
	out.Channels = x.slices(o, nil, func(k cellKey) []string { return one(k.channel) }, counts)
	out.Vulnerabilities = x.slices(o, nil, func(k cellKey) []string { return o.Vulnerabilities[k.class] }, counts)
	if len(variants) > 1 || len(variants) == 1 && !variants[""] {
		all := func(cellKey) bool { return true }
		out.Mutations = x.slices(o, append([]string{Original}, o.Mutations...), func(k cellKey) []string {
			switch {
			case k.class == "":
				return nil // a benign case
			case k.variant == "":
				return one(Original)
			}
			return one(k.variant)
		}, all)
	}
	return out
}

// slices makes a slice of every name that some attack trial has, scored or not.
func (x *arm) slices(o Options, order []string, names func(cellKey) []string, counts func(cellKey) bool) []Slice {
	var all []string
	seen := map[string]bool{"": true}
	for k := range x.cells {
		if !counts(k) {
			continue
		}
		for _, n := range names(k) {
			if !seen[n] {
				seen[n] = true
				all = append(all, n)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return listed(order, a, b) })
	out := make([]Slice, len(all))
	for i, n := range all {
		f := x.families(func(k cellKey) bool { return counts(k) && slices.Contains(names(k), n) })
		out[i] = Slice{Name: n, Rates: make(Rates, len(metrics))}
		for _, m := range metrics {
			if m.Sliced {
				r := f.rate(m, o.Level)
				out[i].Rates[m.Index()] = &r
			}
		}
	}
	return out
}

// metrics are the rates, by their index.
var metrics = metric.All()

// count is a numerator, a denominator, and how many trials that were not scored
// could have been in both.
type count struct{ k, n, missing uint32 }

// cell holds the counts of one family in one arm and slice, by rate.
type cell []count

// add counts a trial into the cell.
func (c cell) add(t *results.Trial) {
	for i, m := range metrics {
		if t.Status == results.Scored {
			k, n := m.Count(t)
			c[i].k += uint32(k)
			c[i].n += uint32(n)
		}
		if m.Missing(t) {
			c[i].missing++
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
			f = make(cell, len(metrics))
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

// rate is the clustered rate. The order of the families is made the same every
// time, for sums of floating-point numbers depend on it.
func (f families) rate(m *metric.Metric, level float64) stats.Rate {
	counts := make([]stats.Count, 0, len(f))
	for _, c := range f {
		if c := c[m.Index()]; c.n > 0 {
			counts = append(counts, stats.Count{K: int(c.k), N: int(c.n)})
		}
	}
	slices.SortFunc(counts, func(a, b stats.Count) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.K, b.K)) })
	return stats.ClusteredWilson(counts, level)
}

// arose reports whether some trial was in the rate or could have been.
func (f families) arose(m *metric.Metric) bool {
	for _, c := range f {
		if c := c[m.Index()]; c.n+c.missing > 0 {
			return true
		}
	}
	return false
}

func (f families) missing(m *metric.Metric) int {
	n := 0
	for _, c := range f {
		n += int(c[m.Index()].missing)
	}
	return n
}

// multiset is a digest of digests that does not depend on their order: the
// number of them and the sum, modulo 2²⁵⁶, of the SHA-256 of each. Trials
// finish in any order and may be too many to sort. It guards against differing
// outcomes, not against somebody who looks for collisions.
type multiset struct {
	n uint64
	s [4]uint64
}

func (m *multiset) add(digest string) {
	h := sha256.Sum256([]byte("memtox trial outcome\x00" + digest))
	var carry uint64
	for i := range m.s {
		m.s[i], carry = bits.Add64(m.s[i], binary.LittleEndian.Uint64(h[8*i:]), carry)
	}
	m.n++
}

func (m *multiset) sum() string {
	b := []byte("memtox arm 1\x00")
	b = binary.LittleEndian.AppendUint64(b, m.n)
	for _, w := range m.s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// runDigest covers the names and digests of the arms, in the order of their
// names.
func runDigest(arms []Arm) string {
	order := make([]*Arm, len(arms))
	for i := range arms {
		order[i] = &arms[i]
	}
	slices.SortFunc(order, func(a, b *Arm) int { return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Defense, b.Defense)) })
	b := []byte("memtox run 1\x00")
	for _, a := range order {
		for _, s := range []string{a.Agent, a.Defense, a.Digest} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
