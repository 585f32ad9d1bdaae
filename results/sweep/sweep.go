// Package sweep reads a run in which the thresholds of a defense were varied: one
// arm for every value. It puts the points of a sweep beside each other, chooses
// one by the split tune, and gives its figures on the split report, so that no
// figure is reported on what it was chosen by.
package sweep

import (
	"fmt"
	"slices"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// Key is where run.json has the arms of each sweep, under the settings' "resolved".
const Key = "sweep"

// Sweep is one threshold of one defense on one agent.
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
	Defense string `json:"defense"`
	Tune    Score  `json:"tune"`
	Report  Score  `json:"report"`
}

// Score is what a point does on a split.
type Score struct {
	TPR      stats.Rate `json:"tpr"`
	FPR      stats.Rate `json:"fpr"`
	EndToEnd stats.Rate `json:"end_to_end"`
	Utility  stats.Rate `json:"utility"`
}

// worth is what a point is chosen by; ok is false where it is not measured.
func (s Score) worth() (w float64, ok bool) {
	e, measured := s.EndToEnd.Value()
	u, useful := s.Utility.Value()
	return 1 - e + u, measured && useful
}

// Collector takes the entries of a run.
type Collector struct {
	run    *results.Run
	names  []string
	arms   map[string][]string // by sweep: its defenses
	splits [2]*summary.Aggregator
}

// New returns a collector for a run. Of a run without a sweep it keeps nothing.
func New(run *results.Run, o summary.Options) *Collector {
	c := &Collector{run: run, arms: map[string][]string{}}
	resolved, _ := run.Settings["resolved"].(map[string]any)
	list, _ := resolved[Key].([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		arms, _ := m["arms"].([]any)
		if name == "" || len(arms) == 0 {
			continue
		}
		c.names = append(c.names, name)
		for _, a := range arms {
			if s, ok := a.(string); ok {
				c.arms[name] = append(c.arms[name], s)
			}
		}
	}
	if len(c.names) > 0 {
		c.splits = [2]*summary.Aggregator{summary.New(run, o), summary.New(run, o)}
	}
	return c
}

// Add counts one entry.
func (c *Collector) Add(e *results.Entry) {
	switch {
	case len(c.names) == 0:
	case e.Trial.Split == "tune":
		c.splits[0].Add(e)
	default:
		c.splits[1].Add(e)
	}
}

// Sweeps returns the sweeps of the run, none where there are none.
func (c *Collector) Sweeps() []Sweep {
	if len(c.names) == 0 {
		return nil
	}
	scores := [2]map[[2]string]Score{{}, {}}
	for i, a := range c.splits {
		for _, arm := range a.Summary().Arms {
			scores[i][[2]string{arm.Agent, arm.Defense}] = Score{arm.Rate(metric.TPR), arm.Rate(metric.FPR), arm.Rate(metric.EndToEnd), arm.Rate(metric.Utility)}
		}
	}
	var out []Sweep
	for _, name := range c.names {
		for _, agent := range c.run.Agents {
			s := Sweep{Name: name, Agent: agent, Chosen: -1}
			for _, d := range c.arms[name] {
				k := [2]string{agent, d}
				s.Points = append(s.Points, Point{Defense: d, Tune: scores[0][k], Report: scores[1][k]})
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
			score := []Score{p.Tune, p.Report}[i]
			return score.TPR.Measured() || score.FPR.Measured() || score.EndToEnd.Measured()
		}) {
			out = append(out, name)
		}
	}
	return out
}

// Of is the point's score on a split.
func (p *Point) Of(split string) Score {
	if split == "tune" {
		return p.Tune
	}
	return p.Report
}
