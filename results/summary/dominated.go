package summary

import (
	"slices"

	"github.com/memtox/memtox/results/metric"
)

// Controls are the defenses that check nothing of a claim but where it came from, if
// that.
func Controls() []string {
	return []string{"no-memory", "block-all", "origin-only", "attribution-only", "confirm-all"}
}

// dominated names, for each arm of a run whose outcomes are states, the control that
// does as well by everything and better by something.
func (a *Aggregator) dominated(arms []Arm) {
	control := func(label string) bool { return slices.Contains(Controls(), a.kind(label)) }
	for i := range arms {
		x := &arms[i]
		if x.ExcessPer100 == nil || x.Defense == undefended || control(x.Defense) {
			continue
		}
		for k := range arms {
			c := &arms[k]
			if c.Agent == x.Agent && control(c.Defense) && x.Dominated == "" && c.beats(x) {
				x.Dominated = c.Defense
			}
		}
	}
}

// beats compares the figures as they stand; what their intervals allow is for compare
// to say.
func (a *Arm) beats(b *Arm) bool {
	if a.ExcessPer100 == nil {
		return false
	}
	better := false
	for _, m := range []*metric.Metric{metric.Harm, metric.DoneBenign, metric.Wrong} {
		x, ok := a.Rate(m).Value()
		y, ok2 := b.Rate(m).Value()
		if !ok || !ok2 {
			return false
		}
		if m == metric.DoneBenign {
			x, y = -x, -y
		}
		if x > y {
			return false
		}
		better = better || x < y
	}
	return *a.ExcessPer100 <= *b.ExcessPer100 && (better || *a.ExcessPer100 < *b.ExcessPer100)
}
