package summary

import (
	"strings"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
)

// outcome is what rates that hold one trial against another need of a scored trial
// whose outcome is a state. There may be a million of them.
type outcome struct {
	tried
	twin int32 // the number of its twin's case; 0 is none
	cell cell  // that counts it
	metric.Outcome
}

// tried names a trial: the number of its arm, that of its case, its epoch.
type tried struct{ arm, kase, epoch int32 }

// remember notes the outcome of a trial of an arm.
func (a *Aggregator) remember(t *results.Trial, x *arm, c cell) {
	o, ok := metric.OutcomeOf(t)
	if !ok {
		return
	}
	number := func(kase string) int32 {
		n, known := a.cases[kase]
		if !known && kase != "" {
			if a.cases == nil {
				a.cases = map[string]int32{}
			}
			n = int32(len(a.cases) + 1)
			a.cases[strings.Clone(kase)] = n
		}
		return n
	}
	a.outcomes = append(a.outcomes, outcome{tried: tried{x.number, number(t.Case), t.Epoch}, twin: number(t.Twin),
		cell: c, Outcome: o})
}

// pair counts the rates that hold a trial against the same case undefended, or
// against its twin. Summaries of a run that goes on count them anew.
func (a *Aggregator) pair() {
	if len(a.outcomes) == 0 {
		return
	}
	bare := make([]int32, len(a.arms)) // the undefended arm of the same agent, by arm
	for k, x := range a.arms {
		bare[x.number] = -1
		if u := a.arms[armKey{k.agent, undefended}]; u != nil {
			bare[x.number] = u.number
		}
	}
	all := make(map[tried]int32, len(a.outcomes))
	for i := range a.outcomes {
		o := &a.outcomes[i]
		all[o.tried] = int32(i)
		for _, m := range metric.Paired() {
			c := &o.cell[m.Index()]
			c.k, c.n = 0, 0
		}
	}
	other := func(arm, kase, epoch int32) *metric.Outcome {
		if i, ok := all[tried{arm, kase, epoch}]; ok {
			return &a.outcomes[i].Outcome
		}
		return nil
	}
	for i := range a.outcomes {
		o := &a.outcomes[i]
		none, twin := other(bare[o.arm], o.kase, o.epoch), other(o.arm, o.twin, o.epoch)
		for _, m := range metric.Paired() {
			k, n := m.Against(&o.Outcome, none, twin)
			c := &o.cell[m.Index()]
			c.k += uint32(k)
			c.n += uint32(n)
		}
	}
}

// undefended is the defense that others are held against.
const undefended = "none"

// Excess are the questions that were not due, per 100 trials, of the side (attacks,
// benign cases) that has more of them.
func (x *arm) excess() *float64 {
	var all [2]asking
	for _, sides := range x.questions {
		for i, side := range sides {
			all[i].trials += side.trials
			all[i].excess += side.excess
		}
	}
	return excess(&all)
}

// excess is nil where no trial was scored.
func excess(sides *[2]asking) *float64 {
	var most *float64
	if sides == nil {
		return nil
	}
	for _, side := range sides {
		if side.trials == 0 {
			continue
		}
		if v := 100 * float64(side.excess) / float64(side.trials); most == nil || v > *most {
			most = &v
		}
	}
	return most
}

// asking counts the questions of one side.
type asking struct{ trials, excess int64 }

func (x *arm) ask(t *results.Trial, situation string) {
	excess, ok := metric.Excess(t)
	if !ok {
		return
	}
	sides := x.questions[situation]
	if sides == nil {
		if x.questions == nil {
			x.questions = map[string]*[2]asking{}
		}
		sides = new([2]asking)
		x.questions[strings.Clone(situation)] = sides
	}
	side := &sides[0]
	if t.Label == results.Attack {
		side = &sides[1]
	}
	side.trials++
	side.excess += int64(excess)
}
