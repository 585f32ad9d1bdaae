package stats

import "math"

// Newcombe returns the difference of two arms' rates on the same independent
// cases, A − B, with Newcombe's interval: the square-and-add interval of the two
// Wilson intervals, with the correlation of the arms, continuity corrected
// (method 10). It has width even where no case tells the arms apart.
//
// Source: R. G. Newcombe (1998), Improved confidence intervals for the
// difference between binomial proportions based on paired data, Statistics in
// Medicine 17:2635–2650.
func Newcombe(p Pairs, level float64) Estimate {
	const method = "newcombe-paired"
	level, ws := checkLevel(level)
	if w := p.check(); w != nil {
		return unmeasured(method, level, -1, 1, append(ws, w...))
	}
	a, b, c, d := float64(p.Both), float64(p.OnlyA), float64(p.OnlyB), float64(p.Neither)
	n := a + b + c + d
	phi := 0.0
	if product := (a + b) * (c + d) * (a + c) * (b + d); product > 0 {
		numerator := a*d - b*c
		if numerator > 0 {
			numerator = max(numerator-n/2, 0)
		}
		phi = numerator / math.Sqrt(product)
	}
	e := Estimate{value: (b - c) / n, measured: true, Level: level, N: p.N(), Method: method, Warnings: ws}
	e.squareAndAdd((a+b)/n, n, (a+c)/n, n, phi)
	return e
}

// NewcombeIndependent returns the difference of the rates of two arms that ran
// different cases, a − b, with the square-and-add interval of the two Wilson
// intervals.
//
// Source: R. G. Newcombe (1998), Interval estimation for the difference between
// independent proportions: comparison of eleven methods, Statistics in Medicine
// 17:873–890, method 10.
func NewcombeIndependent(a, b Count, level float64) Estimate {
	const method = "newcombe-independent"
	level, ws := checkLevel(level)
	for _, c := range [...]Count{a, b} {
		if !c.valid() {
			return unmeasured(method, level, -1, 1, append(ws, badCount(c.K, c.N)))
		}
		if c.N == 0 {
			return unmeasured(method, level, -1, 1, append(ws, warn(NotMeasured, "an arm has no scored trial")))
		}
	}
	p, q := float64(a.K)/float64(a.N), float64(b.K)/float64(b.N)
	e := Estimate{value: p - q, measured: true, Level: level, N: a.N + b.N, Method: method, Warnings: ws}
	e.squareAndAdd(p, float64(a.N), q, float64(b.N), 0)
	return e
}

// squareAndAdd combines the Wilson intervals of p on m trials and q on n trials
// whose errors correlate by phi into the interval of p − q.
func (e *Estimate) squareAndAdd(p, m, q, n, phi float64) {
	pLo, pHi := wilson(p, m, e.Level)
	qLo, qHi := wilson(q, n, e.Level)
	reach := func(x, y float64) float64 { return math.Sqrt(max(x*x-2*phi*x*y+y*y, 0)) }
	e.within(e.value-reach(p-pLo, qHi-q), e.value+reach(pHi-p, q-qLo), -1, 1)
}
