package stats

import "math"

// TangoNonInferiority tests on independent cases whether arm A, the candidate,
// is worse than arm B, the baseline, by less than margin. The null hypothesis
// is that it is worse by margin or more; P is one-sided. Margins outside (0, 1)
// are refused with a warning and P = 1.
//
// It is the score test, which keeps its level where few cases differ. With
// repeats or families use [NonInferior] on a clustered difference.
//
// Source: T. Tango (1998), Equivalence test and confidence interval for the
// difference in proportions for the paired-sample design, Statistics in
// Medicine 17:891–908.
func TangoNonInferiority(p Pairs, margin float64, better Direction) Test {
	const method = "tango-score"
	if w := p.check(); w != nil {
		return untested(method, *w)
	}
	if !(margin > 0 && margin < 1) {
		return untested(method, warn(BadInput, "margin %v is not between 0 and 1", margin))
	}
	b, c := float64(p.OnlyA), float64(p.OnlyB)
	if better == LowerIsBetter {
		b, c = c, b
	}
	t := Test{N: p.N(), Measured: true, Method: method}
	t.P = normalTail(tangoZ(b, c, float64(p.N()), -margin))
	return t
}

// tangoZ is the score statistic of the hypothesis that (b−c)/n estimates delta,
// where b and c of n pairs differ. The variance is taken at the maximum
// likelihood under that hypothesis.
func tangoZ(b, c, n, delta float64) float64 {
	qa := 2 * n
	qb := -b - c + (2*n-b+c)*delta
	qc := -c * delta * (1 - delta)
	q := (math.Sqrt(max(qb*qb-4*qa*qc, 0)) - qb) / (2 * qa)
	variance := n * (2*q + delta*(1-delta))
	if variance <= 0 { // only where delta is 0 and no pair differs
		return 0
	}
	return (b - c - n*delta) / math.Sqrt(variance)
}

// normalTail is the probability of a standard normal above z.
func normalTail(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }
