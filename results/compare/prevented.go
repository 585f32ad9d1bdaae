package compare

import (
	"math"

	"github.com/memtox/memtox/results/stats"
)

// Prevented is the share of the undefended rate that a defense takes away.
type Prevented struct {
	// Headroom is false where the undefended attack did not land on any of the
	// cases: then there is nothing to prevent and no figure.
	Headroom bool     `json:"headroom"`
	Value    *float64 `json:"value"`
	Lo       *float64 `json:"lo"` // nil also where the data set no bound
	Hi       *float64 `json:"hi"`
}

// prevented returns 1 − defended/undefended. Below 0 the defense makes things
// worse.
//
// The interval of the ratio is recovered from those of the two rates as if they
// were independent; on the same cases they rise and fall together, which makes
// it too wide, not too narrow.
//
// Source: A. Donner, G. Y. Zou (2012), Closed-form confidence intervals for
// functions of the normal mean and standard deviation, Stat. Methods Med. Res.
// 21:347–359, for ratios (MOVER).
func prevented(defended, undefended stats.Rate) Prevented {
	a, okA := defended.Value()
	b, okB := undefended.Value()
	if !okA || !okB || undefended.K == 0 {
		return Prevented{}
	}
	lower, upper := ratio(a, defended.Lo, defended.Hi, b, undefended.Lo, undefended.Hi)
	value, lo, hi := 1-a/b, 1-upper, 1-lower
	p := Prevented{Headroom: true, Value: &value, Lo: &lo, Hi: &hi}
	if math.IsInf(upper, 1) {
		p.Lo = nil
	}
	return p
}

func ratio(a, la, ua, b, lb, ub float64) (lower, upper float64) {
	end := func(x, y float64, sign float64) float64 { // x is the end of a, y that of b
		below := y * (2*b - y)
		if sign < 0 && math.Abs(below) < 1e-12 {
			return x * (2*a - x) / (2 * a * b) // the limit as y goes to 2b
		}
		root := math.Sqrt(max(a*a*b*b-x*(2*a-x)*below, 0))
		return (a*b + sign*root) / below
	}
	lower = 0
	if a > 0 {
		lower = max(end(la, ub, -1), 0)
	}
	if lb <= 0 {
		return lower, math.Inf(1)
	}
	return min(lower, a/b), max(end(ua, lb, 1), a/b)
}
