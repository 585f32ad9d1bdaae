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

// HeatCell is a cell of a map: whole percents, the class of [HeatStyle] that says how bad
// that is, and the whole rate.
type HeatCell struct {
	Text  string `json:"text"`
	Class string `json:"class"`
	Whole string `json:"whole"`
}

// Heat is the cell of a rate.
func Heat(r stats.Rate, better stats.Direction) HeatCell {
	v, ok := r.Value()
	if !ok {
		return HeatCell{"–", "none", r.String()}
	}
	bad := v
	if better == stats.HigherIsBetter {
		bad = 1 - v
	}
	return HeatCell{whole(&v), "h" + strconv.Itoa(int(math.Round(10*min(max(bad, 0), 1)))), r.String()}
}
