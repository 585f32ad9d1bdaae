package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// An ordered sample gives its values by rank, 0 to size−1, in rising order.
type ordered interface {
	size() int
	at(rank int) float64
}

const methodQuantile = "order-statistics"

// checkQuantile returns why the p-quantile of s does not exist.
func checkQuantile(s ordered, p float64) []Warning {
	if s.size() == 0 {
		return warning(NotMeasured, "there are no values")
	}
	if !(p > 0 && p < 1) {
		return warning(BadInput, "quantile %v is not between 0 and 1", p)
	}
	return nil
}

// quantileEstimate is the p-quantile of independent values (0.5 for the median),
// with the interval between two order statistics, which needs no assumption
// about the distribution.
//
// The ranks are the closest that keep each tail at or under (1−level)/2. Where
// the sample is too small to have them the end is infinite and the estimate
// carries a [TooFew] warning: at 95%, the median needs 6 values, p95 needs 72
// for an upper end. The value interpolates between neighbours as R's type 7 and
// numpy do.
//
// Sources: H. A. David, H. N. Nagaraja, Order Statistics, 3rd ed. (2003), §7.1,
// for the interval; R. J. Hyndman, Y. Fan (1996), Sample quantiles in
// statistical packages, The American Statistician 50:361–365, for the value.
func quantileEstimate(s ordered, p, level float64) Estimate {
	level, ws := checkLevel(level)
	if w := checkQuantile(s, p); w != nil {
		return unmeasured(methodQuantile, level, math.Inf(-1), math.Inf(1), append(ws, w...))
	}
	e := Estimate{value: quantile(s, p), measured: true, Level: level, N: s.size(), Method: methodQuantile, Warnings: ws}
	below, above := quantileRanks(s.size(), p, level)
	lo, hi := math.Inf(-1), math.Inf(1)
	if below >= 0 {
		lo = s.at(below)
	}
	if above < s.size() {
		hi = s.at(above)
	}
	if below < 0 || above >= s.size() {
		e.Warnings = append(e.Warnings, warn(TooFew,
			"%d values do not bound the %v-quantile on both sides at level %v", s.size(), p, level))
	}
	e.within(lo, hi, math.Inf(-1), math.Inf(1))
	return e
}

// quantile interpolates linearly between the ranks around (n−1)p.
func quantile(s ordered, p float64) float64 {
	rank, share := splitRank(s.size(), p)
	v := s.at(rank)
	if share > 0 {
		v += share * (s.at(rank+1) - v)
	}
	return v
}

func splitRank(n int, p float64) (rank int, share float64) {
	h := float64(n-1) * p
	rank = min(int(h), n-1)
	share = h - float64(rank)
	if rank == n-1 {
		share = 0
	}
	return rank, share
}

// quantileRanks returns the closest ranks (from 0) whose values lie below and
// above the p-quantile with error at most (1−level)/2 each; below is −1 and
// above n where there is none. The number of values under the quantile is
// binomial.
func quantileRanks(n int, p, level float64) (below, above int) {
	tail := (1 - level) / 2
	size := float64(n)
	// The value of rank r is above the quantile with probability
	// P(Bin(n, p) ≤ r), which rises with r.
	below = sort.Search(n, func(r int) bool {
		return mathext.RegIncBeta(size-float64(r), float64(r)+1, 1-p) > tail
	}) - 1
	// It is below the quantile with probability P(Bin(n, p) ≥ r+1), which falls.
	above = sort.Search(n, func(r int) bool {
		return mathext.RegIncBeta(float64(r)+1, size-float64(r), p) <= tail
	})
	return below, above
}
