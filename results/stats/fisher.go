package stats

import "math"

// fisherLimit is the largest table of [Fisher], in trials: beyond it the
// logarithms of its factorials lose too many digits.
const fisherLimit = 10_000_000

// Fisher tests whether two arms that ran different independent trials have the
// same rate: Fisher's exact test, two-sided by adding up all tables that are no
// more probable than the observed one. Tables of more than ten million trials
// are refused with a warning; use [NewcombeIndependent].
//
// Source: A. Agresti, Categorical Data Analysis, 3rd ed. (2013), §3.5.
func Fisher(a, b Count) Test {
	const method = "fisher-exact"
	for _, c := range [...]Count{a, b} {
		if !c.valid() {
			return untested(method, badCount(c.K, c.N))
		}
		if c.N == 0 {
			return untested(method, warn(NotMeasured, "an arm has no scored trial"))
		}
	}
	if a.N > fisherLimit || b.N > fisherLimit-a.N {
		return untested(method, warn(BadInput, "more than %d trials; use the interval of the difference", fisherLimit))
	}
	k := a.K + b.K // successes, given which a.K is hypergeometric
	least, most := max(0, k-b.N), min(k, a.N)
	logP := func(x int) float64 { return logChoose(a.N, x) + logChoose(b.N, k-x) }
	// Equal probabilities differ by rounding; the tolerance is R's.
	limit := logP(a.K) + 1e-7
	scale := logChoose(a.N+b.N, k)
	p := 0.0
	for x := least; x <= most; x++ {
		if l := logP(x); l <= limit {
			p += math.Exp(l - scale)
		}
	}
	return Test{P: min(p, 1), N: a.N + b.N, Measured: true, Method: method}
}

func logChoose(n, k int) float64 {
	lg := func(v int) float64 { l, _ := math.Lgamma(float64(v) + 1); return l }
	return lg(n) - lg(k) - lg(n-k)
}
