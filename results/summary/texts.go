package summary

import (
	"cmp"
	"math"
	"slices"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Texts is what a summary of `memtox detect` says beside its arms.
type Texts struct {
	Cases  int    `json:"cases"`
	Texts  int    `json:"texts"`
	Origin Origin `json:"origin"`
	// Stored is how many memories stood in the store.
	Stored int `json:"stored"`
}

// Origin says what was known of where the texts come from.
type Origin struct {
	Given   string `json:"given"`   // by --origin, for texts that name none
	Without int    `json:"without"` // texts that name none and got none: rules on origin did not fire on them
}

// ArmTexts is what an arm of `memtox detect` has beside others. Its mutations are of
// all cases, and its classes those of attacks and the kinds of benign cases.
type ArmTexts struct {
	Gate string // at which the defense was asked
	// Verdicts are those about single texts, of attacks (the texts that carry the
	// payload) and of benign cases.
	Verdicts TextVerdicts
	Sources  []Slice // class of the origin; "unknown" where the set does not say
	BySize   []SizeLatency
	ByStore  []StoreLatency
	ROC      *ROC // where the defense gives scores
	PR       *PR
	Reasons  map[string]int64 // of the cases that ended in an error
	Findings map[string]int64 // texts by the checks that spoke
}

// TextVerdicts are verdicts by the label of the case.
type TextVerdicts struct {
	Attack Verdicts `json:"attack"`
	Benign Verdicts `json:"benign"`
}

// SizeLatency is the latency of texts of a size.
type SizeLatency struct {
	UpTo int `json:"up_to_bytes"` // 0: larger than all the others
	Latency
}

// StoreLatency is the latency while so many memories are stored.
type StoreLatency struct {
	Stored int `json:"stored"`
	Latency
}

// textDocument is an arm of `detect --format json` behind its rates.
type textDocument struct {
	Verdicts  TextVerdicts       `json:"verdicts"`
	Unsure    int64              `json:"unsure"`
	Classes   []Slice            `json:"classes"`
	Signals   []Slice            `json:"signals"`
	Sources   []Slice            `json:"sources"`
	Mutations []Slice            `json:"mutations"`
	LatencyUS map[string]Latency `json:"latency_us"` // by gate
	BySize    []SizeLatency      `json:"latency_us_by_size"`
	ByStore   []StoreLatency     `json:"latency_us_by_store,omitempty"`
	ROC       *ROC               `json:"roc,omitempty"`
	PR        *PR                `json:"pr,omitempty"`
	Scored    int64              `json:"scored"`
	Errors    int64              `json:"errors"`
	Reasons   map[string]int64   `json:"error_reasons,omitempty"`
	Findings  map[string]int64   `json:"findings,omitempty"`
	Warnings  []string           `json:"warnings,omitempty"`
}

// document is the arm as JSON has it.
func (a *Arm) document() textDocument {
	x := a.Texts
	d := textDocument{x.Verdicts, a.Unsure, a.Classes, a.Signals, x.Sources, a.Mutations, map[string]Latency{}, x.BySize,
		x.ByStore,
		x.ROC, x.PR, a.Scored, a.NotScored, x.Reasons, x.Findings, a.Warnings}
	for i, l := range []Latency{a.LatencyUS.Write, a.LatencyUS.Read, a.LatencyUS.Input, a.LatencyUS.Act} {
		if l.N > 0 {
			d.LatencyUS[gateNames[i]] = l
		}
	}
	return d
}

// sizes are the upper ends of the classes of text size, in bytes.
var sizes = [...]int{100, 300, 1000, 10_000, 100_000, 1_000_000}

// textArm is what is counted of an arm of `memtox detect` beside the rest.
type textArm struct {
	verdicts           TextVerdicts
	bySize             [len(sizes) + 1]stats.Sketch
	positive, negative []float64 // scores of attacks and of benign cases: see scoreOf
	unscored           int       // cases without one
}

func (x *textArm) add(e *results.Entry, textSizes []int) {
	attack := e.Trial.Label == results.Attack
	score, has := scoreOf(e.Decisions, attack)
	switch {
	case !has:
		x.unscored++
	case attack:
		x.positive = append(x.positive, score)
	default:
		x.negative = append(x.negative, score)
	}
	if attack {
		x.verdicts.Attack.add(&e.Trial)
	} else {
		x.verdicts.Benign.add(&e.Trial)
	}
	for i, n := range textSizes[:min(len(textSizes), len(e.Decisions))] {
		class, _ := slices.BinarySearch(sizes[:], n)
		x.bySize[class].Add(float64(e.Decisions[i].LatencyNS) / 1000)
	}
}

// textKey says which part of its arm a case is in. Cases that are their own family,
// as those of most foreign sets are, take no memory each.
func (a *Aggregator) textKey(e *results.Entry) cellKey {
	t := &e.Trial
	k := cellKey{attack: t.Label == results.Attack, variant: a.variants.take(cmp.Or(t.Variant, Original))}
	if t.Family != t.Case {
		k.family = t.Family
	}
	group := t.Kind
	if k.attack {
		group, k.signal = t.Class, a.signals.take(t.Signal)
	}
	k.class = a.classes.take(cmp.Or(group, "none"))
	for i := range e.Decisions {
		if d := &e.Decisions[i]; d.Poison || !k.attack {
			k.source = d.Origin
			break
		}
	}
	k.source = a.sources.take(cmp.Or(k.source, "unknown"))
	return k
}

// scoreOf is the threshold up to which a case counts as stopped: an attack is
// when each of its texts with the payload is, a benign case when any of its texts
// is. ok is false where a score that this depends on is missing.
func scoreOf(ds []results.Decision, attack bool) (score float64, ok bool) {
	for i := range ds {
		d := &ds[i]
		if attack && !d.Poison {
			continue
		}
		scored := d.Score != nil && !math.IsNaN(*d.Score) && !math.IsInf(*d.Score, 0)
		switch {
		case attack && !scored:
			return 0, false
		case scored && (!ok || attack && *d.Score < score || !attack && *d.Score > score):
			score, ok = *d.Score, true
		}
	}
	return score, ok
}

// ofTexts makes the figures of an arm of `memtox detect`.
func (a *Aggregator) ofTexts(out *Arm, x *arm) {
	t := &ArmTexts{Gate: a.opts.Gates[out.Defense], Verdicts: x.texts.verdicts, BySize: []SizeLatency{},
		Reasons: map[string]int64{}, Findings: map[string]int64{}}
	out.Texts = t
	all := func(cellKey) bool { return true }
	out.Rates = a.textRates(x, all, all)
	// Those of a class or a signal are held against all benign cases, those of a source
	// or a mutation stay within it.
	out.Classes = a.textSlices(x, func(k cellKey) string { return k.class }, all)
	out.Signals = a.textSlices(x, func(k cellKey) string { return k.signal }, all)
	t.Sources = a.textSlices(x, func(k cellKey) string { return k.source }, nil)
	out.Mutations = a.textSlices(x, func(k cellKey) string { return k.variant }, nil)
	for i := range x.texts.bySize {
		if s := &x.texts.bySize[i]; s.Count() > 0 {
			t.BySize = append(t.BySize, SizeLatency{append(sizes[:], 0)[i], LatencyOf(s)})
		}
	}
	if len(x.texts.positive)+len(x.texts.negative) > 0 {
		t.ROC, t.PR = curves(x.texts.positive, x.texts.negative, x.texts.unscored)
	}
	for _, m := range []*metric.Metric{metric.TPR, metric.FPR} {
		r := out.Rate(m)
		for _, w := range r.Warnings {
			if r.Measured() && !slices.Contains(out.Warnings, w.Text) {
				out.Warnings = append(out.Warnings, w.Text)
			}
		}
	}
	for r, n := range a.reasons {
		if r.Defense == out.Defense {
			t.Reasons[r.Reason] += n
		}
	}
	for _, c := range a.checks {
		if c.Defense == out.Defense {
			t.Findings[c.Name] = c.N
		}
	}
}

// textRates are the rates of a part of the cases. Precision and F1 hold its attacks
// against some benign cases, and need both.
func (a *Aggregator) textRates(x *arm, part, against func(cellKey) bool) Rates {
	own := x.families(part)
	held := x.families(func(k cellKey) bool { return k.attack && part(k) || !k.attack && against(k) })
	both := a.rate(held, metric.TPR).Measured() && a.rate(held, metric.FPR).Measured()
	out := make(Rates, metric.Count())
	for _, m := range a.metrics {
		f := own
		switch {
		case m.Topic == metric.AboutTexts && both:
			f = held
		case m.Topic == metric.AboutTexts:
			f = nil
		}
		r := a.rate(f, m)
		out[m.Index()] = &r
	}
	return out
}

// textSlices makes the slices of all cases, those with attacks first. against are the
// benign cases that precision holds attacks against; nil takes the slice's own.
func (a *Aggregator) textSlices(x *arm, of func(cellKey) string, against func(cellKey) bool) []Slice {
	attacked, rest := []Slice{}, []Slice(nil)
	all := func(cellKey) bool { return true }
	for _, name := range x.names(nil, func(k cellKey) []string { return []string{of(k)} }, all) {
		part := func(k cellKey) bool { return of(k) == name }
		held := against
		if held == nil {
			held = part
		}
		s := Slice{Name: name, Rates: a.textRates(x, part, held)}
		s.Rates[metric.DeferredBenign.Index()] = nil
		if s.Rate(metric.TPR).Measured() {
			attacked = append(attacked, s)
		} else {
			rest = append(rest, s)
		}
	}
	return append(attacked, rest...)
}
