package render

import (
	_ "embed"
	"math"
	"strconv"

	"github.com/memtox/memtox/results/stats"
)

// HeatStyle is the style sheet of maps of rates, for pages.
//
//go:embed heat.css
var HeatStyle string

// Heat is a cell of a map: whole percents, and the class of [HeatStyle] that says how bad
// that is.
func Heat(r stats.Rate, better stats.Direction) (text, class string) {
	v, ok := r.Value()
	if !ok {
		return "–", "none"
	}
	bad := v
	if better == stats.HigherIsBetter {
		bad = 1 - v
	}
	return whole(&v), "h" + strconv.Itoa(int(math.Round(10*min(max(bad, 0), 1))))
}
