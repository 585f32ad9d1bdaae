package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// ClusteredClopperPearson is [ClusteredWilson] with the exact interval in place
// of Wilson's, on the same effective number of trials: for claims that others
// will quote. The exact interval of independent trials never covers less often
// than its level; here that is not guaranteed, for the correlation is estimated,
// but the one-sided bounds are not biased towards ½ as Wilson's are.
//
// Sources: C. J. Clopper, E. S. Pearson (1934), The use of confidence or
// fiducial limits illustrated in the case of the binomial, Biometrika 26:404–413; E. L. Korn, B. I. Graubard (1998),
// Confidence intervals for proportions with small expected number of positive counts estimated from
// survey data, Survey Methodology 24:193–201.
func ClusteredClopperPearson(families []Count, level float64) Rate {
	r := ClusteredWilson(families, level)
	r.Method = "clopper-pearson-clustered"
	return r.exact()
}

// exact replaces the interval of a rate by the exact one of its rate and
// effective number of trials, which need not be whole.
func (r Rate) exact() Rate {
	p, ok := r.Value()
	if !ok {
		return r
	}
	n, k := r.EffectiveN, p*r.EffectiveN
	tail := (1 - r.Level) / 2
	if r.Lo, r.Hi = 0, 1; n == 0 {
		return r
	}
	if r.K > 0 {
		r.Lo = min(betaQuantile(k, n-k+1, tail), p)
	}
	if r.K < r.N { // by symmetry, so that a small tail is never taken from 1
		r.Hi = max(1-betaQuantile(n-k, k+1, tail), p)
	}
	return r
}

// betaQuantile is the q-quantile of the beta distribution. It bisects the
// distribution function, which is slower than gonum's inverse and exact to the
// last few digits where that stops at about 1e-6.
func betaQuantile(a, b, q float64) float64 {
	if b == 1 {
		return math.Pow(q, 1/a)
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
