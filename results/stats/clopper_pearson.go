package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const methodClopperPearson = "clopper-pearson"

// ClopperPearson returns the rate of k successes in n independent trials with
// the exact interval, which never covers less often than its level and is
// therefore wider than [Wilson]'s: for claims that others will quote. It knows
// no clusters.
//
// Source: C. J. Clopper, E. S. Pearson (1934), The use of confidence or
// fiducial limits illustrated in the case of the binomial, Biometrika 26:404–413.
func ClopperPearson(k, n int, level float64) Rate {
	level, ws := checkLevel(level)
	if !(Count{k, n}).valid() {
		return notMeasured(methodClopperPearson, level, append(ws, badCount(k, n)))
	}
	if n == 0 {
		return notMeasured(methodClopperPearson, level, append(ws, warn(NotMeasured, "no trial was scored")))
	}
	r := Rate{K: k, N: n, Lo: 0, Hi: 1, Level: level, Method: methodClopperPearson, EffectiveN: float64(n), Warnings: ws}
	tail := (1 - level) / 2
	if k > 0 {
		r.Lo = betaQuantile(float64(k), float64(n-k)+1, tail)
	}
	if k < n { // by symmetry, so that a small tail is never taken from 1
		r.Hi = 1 - betaQuantile(float64(n-k), float64(k)+1, tail)
	}
	p := float64(k) / float64(n)
	r.Lo, r.Hi = min(r.Lo, p), max(r.Hi, p)
	return r
}

// betaQuantile is the q-quantile of the beta distribution. It bisects the
// distribution function, which is slower than gonum's inverse and exact to the
// last few digits where that stops at about 1e-6.
func betaQuantile(a, b, q float64) float64 {
	if b == 1 {
		return math.Exp(math.Log(q) / a)
	}
	lo, hi := 0.0, 1.0
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if mathext.RegIncBeta(a, b, mid) < q {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
