package summary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
)

// entries are attack and benign trials of an arm on a split: so many of ten
// attacks work, so many of ten benign cases are done.
func entries(defense, split string, work, done int) []*results.Entry {
	var out []*results.Entry
	for i := range 10 {
		detected, useful, stopped := i >= work, i < done, i >= done
		out = append(out,
			&results.Entry{Trial: results.Trial{Case: fmt.Sprint("a", split, i), Family: fmt.Sprint("f", i), Split: split,
				Label: results.Attack, Class: "c", Agent: "hermes", Defense: defense,
				Status: results.Scored, ExpectsASR: true, ExpectsRSR: true, Written: !detected, Influenced: !detected,
				Detected: &detected, Digest: "d"}},
			&results.Entry{Trial: results.Trial{Case: fmt.Sprint("b", split, i), Family: fmt.Sprint("g", i), Split: split,
				Label: results.Benign, Agent: "hermes", Defense: defense,
				Status: results.Scored, ExpectsWrite: true, Utility: &useful, LegitStopped: &stopped, Digest: "d"}})
	}
	return out
}

func sweepRun(arms ...string) *results.Run {
	list := make([]any, len(arms))
	for i, a := range arms {
		list[i] = a
	}
	return &results.Run{Agents: []string{"hermes"}, Defenses: append([]string{"none"}, arms...),
		Settings: map[string]any{"resolved": map[string]any{SweepKey: []any{map[string]any{"name": "x.t", "arms": list}}}}}
}

func TestThePointIsChosenOnTuneAndScoredOnReport(t *testing.T) {
	c := New(sweepRun("x:1", "x:2", "x:3"), Options{})
	for _, list := range [][]*results.Entry{
		entries("x:1", "tune", 2, 9), entries("x:2", "tune", 1, 10), entries("x:3", "tune", 0, 5),
		// On report another point is better: that must not matter.
		entries("x:1", "report", 0, 10), entries("x:2", "report", 6, 4), entries("x:3", "report", 3, 5),
	} {
		for _, e := range list {
			c.Add(e)
		}
	}
	s := c.Summary().Sweeps
	if len(s) != 1 || s[0].Chosen != 1 || !strings.Contains(s[0].Why, "x:2 is chosen") ||
		!strings.Contains(s[0].Why, "on report it has end to end 6/10") {
		t.Fatalf("%+v", s)
	}
	p := s[0].Points[1]
	if p.Tune.TPR.K != 9 || p.Tune.FPR.K != 0 || p.Report.TPR.K != 4 || p.Report.FPR.K != 6 || p.Report.Utility.K != 4 {
		t.Errorf("%+v", p)
	}
	if got := strings.Join(s[0].Splits(), " "); got != "tune report" {
		t.Errorf("splits %s", got)
	}
}

func TestNothingIsChosenWithoutTune(t *testing.T) {
	c := New(sweepRun("x:1", "x:2"), Options{})
	for _, d := range []string{"x:1", "x:2"} {
		for _, e := range entries(d, "report", 1, 9) {
			c.Add(e)
		}
	}
	s := c.Summary().Sweeps
	if len(s) != 1 || s[0].Chosen != -1 || !strings.Contains(s[0].Why, "--split all") {
		t.Errorf("%+v", s)
	}
}

func TestARunWithoutASweepHasNone(t *testing.T) {
	for _, r := range []*results.Run{{}, {Settings: map[string]any{"resolved": map[string]any{SweepKey: "nonsense"}}},
		sweepRun()} {
		c := New(r, Options{})
		for _, e := range entries("none", "tune", 1, 1) {
			c.Add(e)
		}
		if s := c.Summary().Sweeps; s != nil {
			t.Errorf("%+v", s)
		}
	}
}
