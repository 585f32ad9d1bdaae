package stats

import "math"

const methodWilson = "wilson"

// Wilson returns the rate of k successes in n independent trials with Wilson's
// score interval, which keeps close to its level for small n and for rates
// near 0 and 1. At k=0 the lower end is exactly 0, at k=n the upper exactly 1.
// With n=0 the rate is not measured.
//
// Source: E. B. Wilson (1927), Probable inference, the law of succession, and
// statistical inference, JASA 22:209–212; recommended by L. D. Brown, T. T. Cai,
// A. DasGupta (2001), Interval estimation for a binomial proportion,
// Statistical Science 16:101–133.
func Wilson(k, n int, level float64) Rate {
	level, ws := checkLevel(level)
	if !(Count{k, n}).valid() {
		return notMeasured(methodWilson, level, append(ws, badCount(k, n)))
	}
	if n == 0 {
		return notMeasured(methodWilson, level, append(ws, warn(NotMeasured, "no trial was scored")))
	}
	r := Rate{K: k, N: n, Level: level, Method: methodWilson, EffectiveN: float64(n), Warnings: ws}
	r.Lo, r.Hi = wilson(float64(k)/float64(n), float64(n), level)
	return r
}

func badCount(k, n int) Warning {
	return warn(BadInput, "%d of %d is no count of successes; need 0 <= k <= n <= %d", k, n, maxTrials)
}

// wilson is the score interval of the rate p, from 0 to 1, on n trials, where n need not
// be whole. Without a trial it is all there is.
func wilson(p, n, level float64) (lo, hi float64) {
	if n == 0 {
		return 0, 1
	}
	z := criticalZ(level)
	z2 := z * z
	centre := p + z2/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	lo = (centre - half) / (1 + z2/n)
	hi = (centre + half) / (1 + z2/n)
	// Rounding must neither leave [0, 1] nor exclude p, and the ends at p=0
	// and p=1 are exact.
	lo, hi = min(max(lo, 0), p), max(min(hi, 1), p)
	if p == 0 {
		lo = 0
	}
	if p == 1 {
		hi = 1
	}
	return lo, hi
}
