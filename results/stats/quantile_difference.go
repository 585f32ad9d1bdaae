package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const methodQuantileDifference = "quantile-bootstrap"

// quantileDifference returns the p-quantile of a minus the p-quantile of b with
// the percentile bootstrap interval of [Replicates] resamples: for differences
// of median or p95 latency between two arms. The same seed gives the same
// interval. Samples are taken as independent; latencies of two arms on the same
// cases usually rise together, which makes the interval too wide, not too narrow.
//
// No values are resampled. The k-th order statistic of a bootstrap resample is
// the sample's value at rank ⌈nU⌉ with U distributed Beta(k, n−k+1), so one
// resample costs a few draws, however many values there are.
//
// Where a sample is too small for its own interval ([Sketch.Quantile]) the resamples
// cannot reach beyond its extremes; that end is infinite, with a [TooFew]
// warning.
//
// Sources: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap (1993),
// §13 and §16; J. S. Maritz, R. G. Jarrett (1978), A note on estimating the
// variance of the sample median, JASA 73:194–196, for the beta distribution of
// resampled order statistics.
func quantileDifference(a, b ordered, p, level float64, seed uint64) Estimate {
	level, ws := checkLevel(level)
	for _, s := range []ordered{a, b} {
		if w := checkQuantile(s, p); w != nil {
			return unmeasured(methodQuantileDifference, level, math.Inf(-1), math.Inf(1), append(ws, w...))
		}
	}
	e := Estimate{value: quantile(a, p) - quantile(b, p), measured: true, Level: level,
		N: a.size() + b.size(), Method: methodQuantileDifference, Warnings: ws}
	src := newSource(seed)
	drawA, drawB := resampledQuantile(a, p, src), resampledQuantile(b, p, src)
	differences := make([]float64, Replicates)
	for i := range differences {
		differences[i] = drawA() - drawB()
	}
	slices.Sort(differences)
	lo, hi := percentiles(differences, (1-level)/2)
	belowA, aboveA := quantileRanks(a.size(), p, level)
	belowB, aboveB := quantileRanks(b.size(), p, level)
	if belowA < 0 || aboveB >= b.size() {
		lo = math.Inf(-1)
	}
	if aboveA >= a.size() || belowB < 0 {
		hi = math.Inf(1)
	}
	if math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		e.Warnings = append(e.Warnings, warn(TooFew,
			"%d and %d values do not bound the difference of %v-quantiles on both sides at level %v", a.size(), b.size(), p,
			level))
	}
	e.within(lo, hi, math.Inf(-1), math.Inf(1))
	return e
}

// resampledQuantile returns a function that draws the p-quantile of a bootstrap
// resample of s.
func resampledQuantile(s ordered, p float64, src rand.Source) func() float64 {
	n := s.size()
	rank, share := splitRank(n, p)
	first := distuv.Beta{Alpha: float64(rank + 1), Beta: float64(n - rank), Src: src}
	// Given the first of two neighbours, the second is the least of the values
	// left, n−rank−1 uniforms above it.
	next := distuv.Beta{Alpha: 1, Beta: float64(n - rank - 1), Src: src}
	value := func(u float64) float64 { return s.at(min(int(u*float64(n)), n-1)) }
	return func() float64 {
		u := first.Rand()
		v := value(u)
		if share > 0 {
			v += share * (value(u+(1-u)*next.Rand()) - v)
		}
		return v
	}
}
