package stats

import "gonum.org/v1/gonum/mathext"

// Pairs counts the cases that two arms, A and B, both ran, by which of them
// succeeded. Differences are A − B.
type Pairs struct {
	Both    int `json:"both"`
	OnlyA   int `json:"only_a"`
	OnlyB   int `json:"only_b"`
	Neither int `json:"neither"`
}

// N is the number of cases.
func (p Pairs) N() int { return p.Both + p.OnlyA + p.OnlyB + p.Neither }

// Add counts a case, and says which arm alone succeeded: a, b or neither.
func (p *Pairs) Add(a, b bool) (only string) {
	switch {
	case a && b:
		p.Both++
	case a:
		p.OnlyA++
		return "a"
	case b:
		p.OnlyB++
		return "b"
	default:
		p.Neither++
	}
	return ""
}

// check says why there is no table.
func (p Pairs) check() []Warning {
	for _, v := range [...]int{p.Both, p.OnlyA, p.OnlyB, p.Neither} {
		if v < 0 || v > maxTrials/4 {
			return warning(BadInput, "a table of pairs counts %d cases; counts go from 0 to %d", v, maxTrials/4)
		}
	}
	if p.N() == 0 {
		return warning(NotMeasured, "the arms have no case in common")
	}
	return nil
}

// McNemar tests whether two arms on the same independent cases have the same
// rate: the exact conditional test. Where no case tells the arms apart, P is 1.
// With repeats or template families use [SignFlip].
//
// Source: Q. McNemar (1947), Psychometrika 12:153–157; exact form in
// A. Agresti, Categorical Data Analysis, 3rd ed. (2013), §11.1.
func McNemar(p Pairs) Test {
	const method = "mcnemar-exact"
	if w := p.check(); w != nil {
		return untested(method, w)
	}
	t := Test{P: 1, N: p.OnlyA + p.OnlyB, Measured: true, Method: method}
	if t.N == 0 {
		t.Warnings = []Warning{warn(NoVariation, "no case of %d tells the arms apart", p.N())}
		return t
	}
	if p.OnlyA != p.OnlyB { // else both tails hold the observed split
		n, k := float64(t.N), float64(min(p.OnlyA, p.OnlyB))
		t.P = min(2*mathext.RegIncBeta(n-k, k+1, 0.5), 1) // twice P(X ≤ k), X ~ Bin(n, ½)
	}
	return t
}
