package compare

import (
	"fmt"

	"github.com/memtox/memtox/results/metric"
)

// Replayed is how far an arm repeated another, trial by trial.
type Replayed struct {
	Same         int
	NotScored    int // failed in one of them at least
	OnlyA, OnlyB int
	Changed      []Deviation
}

// Deviation is a case whose outcome digest differs.
type Deviation struct {
	Case  string   `json:"case"`
	Epoch int32    `json:"epoch"`
	Class string   `json:"class"` // or the kind of a benign case
	What  []string `json:"what"`  // rates to which it contributes otherwise: "acted no → yes"; empty where only decisions differ
}

// Replay compares the outcomes of two arms by their digests: same cases, same
// funnel, same sequence of verdicts. What is said goes from B to A.
func Replay(a, b *Arm) Replayed {
	var r Replayed
	kind := slicings["class"]
	for of := range both(a, b) {
		x, y := of.x, of.y
		switch {
		case x.state == absent && y.state == absent:
		case y.state == absent:
			r.OnlyA++
		case x.state == absent:
			r.OnlyB++
		case x.state == failed || y.state == failed:
			r.NotScored++
		case x.state == excluded && y.state == excluded: // says nothing about anything
		case x.digest == y.digest:
			r.Same++
		default:
			d := Deviation{Case: of.c.ID, Epoch: of.epoch, Class: kind(of.c)}
			for _, m := range metrics {
				if now, was := word(x, m), word(y, m); now != was {
					d.What = append(d.What, fmt.Sprintf("%s %s → %s", m.Name, was, now))
				}
			}
			r.Changed = append(r.Changed, d)
		}
	}
	return r
}

// word says how a trial counts in a rate.
func word(c cell, m *metric.Metric) string {
	if !c.in.Has(m) {
		return "–"
	}
	return yes(c.hit.Has(m))
}
