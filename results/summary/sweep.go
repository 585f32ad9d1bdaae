package summary

import (
	"fmt"
	"slices"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// SweepKey is where run.json has the arms of each sweep, under the settings' "resolved".
const SweepKey = "sweep"

// Sweep is one threshold of one defense on one agent, an arm for every value. One is
// chosen by the split tune, and has its figures on the split report, so that no figure
// is reported on what it was chosen by.
type Sweep struct {
	Name   string  `json:"sweep"` // for instance anomaly.z
	Agent  string  `json:"agent"`
	Points []Point `json:"points"` // in the order of the values
	// Chosen is the index of the point that is best on tune: with the greatest sum
	// of security (1 − end to end) and utility, the earlier one where two are alike.
	// -1 where there is none.
	Chosen int `json:"chosen"`
	// Why says so in words.
	Why string `json:"why"`
}

// Point is one value: an arm, on each split.
type Point struct {
	Defense string     `json:"defense"`
	Tune    PointRates `json:"tune"`
	Report  PointRates `json:"report"`
}

// PointRates is what a point does on a split.
type PointRates struct {
	TPR      stats.Rate `json:"tpr"`
	FPR      stats.Rate `json:"fpr"`
	EndToEnd stats.Rate `json:"end_to_end"`
	Utility  stats.Rate `json:"utility"`
}

// PointMetrics are the rates of a point, in the order of [PointRates.Rates].
var PointMetrics = []*metric.Metric{metric.TPR, metric.FPR, metric.EndToEnd, metric.Utility}

// Rates lists the rates.
func (s PointRates) Rates() []stats.Rate { return []stats.Rate{s.TPR, s.FPR, s.EndToEnd, s.Utility} }

// worth is what a point is chosen by; ok is false where it is not measured.
func (s PointRates) worth() (w float64, ok bool) {
	e, measured := s.EndToEnd.Value()
	u, useful := s.Utility.Value()
	return 1 - e + u, measured && useful
}

// sweepArms is a sweep of a run, and the defenses that are its points.
// EmbeddingsKey is where run.json says what recall and defenses compared texts by, under
// the settings' "resolved"; it is absent where nothing did.
const EmbeddingsKey = "embeddings"

type sweepArms struct {
	name string
	arms []string
}

// sweepsOf reads the sweeps of a run from its resolved settings.
func sweepsOf(run *results.Run) []sweepArms {
	var out []sweepArms
	resolved, _ := run.Settings["resolved"].(map[string]any)
	list, _ := resolved[SweepKey].([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		arms, _ := m["arms"].([]any)
		if name == "" || len(arms) == 0 {
			continue
		}
		s := sweepArms{name: name}
		for _, a := range arms {
			if d, ok := a.(string); ok {
				s.arms = append(s.arms, d)
			}
		}
		out = append(out, s)
	}
	return out
}

// swept returns the sweeps of the run, none where there are none.
func (a *Aggregator) swept() []Sweep {
	score := func(x *arm, tune bool) PointRates {
		if x == nil {
			return PointRates{}
		}
		f := x.families(func(k cellKey) bool { return a.counts(k) && k.tune == tune })
		of := func(m *metric.Metric) stats.Rate { return a.rate(f, m) }
		return PointRates{of(metric.TPR), of(metric.FPR), of(metric.EndToEnd), of(metric.Utility)}
	}
	var out []Sweep
	for _, sw := range a.sweeps {
		for _, agent := range a.run.Labels() {
			s := Sweep{Name: sw.name, Agent: agent, Chosen: -1}
			for _, d := range sw.arms {
				x := a.arms[armKey{agent, d}]
				s.Points = append(s.Points, Point{Defense: d, Tune: score(x, true), Report: score(x, false)})
			}
			s.choose()
			out = append(out, s)
		}
	}
	return out
}

// choose takes the best point on tune.
func (s *Sweep) choose() {
	best := 0.
	for i, p := range s.Points {
		w, ok := p.Tune.worth()
		if !ok {
			s.Chosen, s.Why = -1, "no point is chosen: not every point was measured on the split tune (run it with --split all)"
			return
		}
		if s.Chosen < 0 || w > best {
			s.Chosen, best = i, w
		}
	}
	if s.Chosen < 0 {
		return
	}
	p := s.Points[s.Chosen]
	s.Why = fmt.Sprintf("%s is chosen: on tune it has the greatest sum of security and utility (%.3f)", p.Defense, best)
	if _, ok := p.Report.worth(); ok {
		s.Why += fmt.Sprintf("; on report it has end to end %s and utility %s", p.Report.EndToEnd, p.Report.Utility)
	} else {
		s.Why += "; it was not measured on report (run it with --split all)"
	}
}

// Splits says which splits were measured.
func (s *Sweep) Splits() []string {
	var out []string
	for i, name := range []string{"tune", "report"} {
		if slices.ContainsFunc(s.Points, func(p Point) bool {
			score := []PointRates{p.Tune, p.Report}[i]
			return score.TPR.Measured() || score.FPR.Measured() || score.EndToEnd.Measured()
		}) {
			out = append(out, name)
		}
	}
	return out
}

// Of is the point's score on a split.
func (p *Point) Of(split string) PointRates {
	if split == "tune" {
		return p.Tune
	}
	return p.Report
}
