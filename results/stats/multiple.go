package stats

import (
	"cmp"
	"slices"
)

// Holm returns p-values adjusted for being several declared comparisons, in the
// order given: rejecting those at or under α keeps the probability of any false
// rejection at or under α, however the tests depend. A value that is no p-value
// counts as 1 and gives a warning.
//
// Source: S. Holm (1979), A simple sequentially rejective multiple test
// procedure, Scand. J. Statist. 6:65–70.
func Holm(p []float64) ([]float64, []Warning) {
	q, order, ws := sortedP(p)
	running := 0.0
	for i, at := range order {
		running = max(running, min(float64(len(p)-i)*q[at], 1))
		q[at] = running
	}
	return q, ws
}

// BenjaminiHochberg returns p-values adjusted for being exploratory slices, in
// the order given: among those at or under α, the expected share of false
// rejections is at or under α for independent or positively dependent tests. A
// value that is no p-value counts as 1 and gives a warning.
//
// Source: Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery
// rate, J. R. Statist. Soc. B 57:289–300.
func BenjaminiHochberg(p []float64) ([]float64, []Warning) {
	q, order, ws := sortedP(p)
	running := 1.0
	for i := len(order) - 1; i >= 0; i-- {
		at := order[i]
		running = min(running, float64(len(p))/float64(i+1)*q[at])
		q[at] = running
	}
	return q, ws
}

// sortedP copies p and returns the positions of its values in rising order.
func sortedP(p []float64) (q []float64, order []int, ws []Warning) {
	q = slices.Clone(p)
	order = make([]int, len(p))
	for i, v := range p {
		order[i] = i
		if !(v >= 0 && v <= 1) {
			q[i] = 1
			ws = append(ws, warn(BadInput, "p-value %d is %v; it counts as 1", i+1, v))
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(q[a], q[b]) })
	return q, order, ws
}
