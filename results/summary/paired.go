package summary

import (
	"strings"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
)

// outcome is what rates that hold one trial against another need of a scored trial
// whose outcome is a state.
type outcome struct {
	arm   armKey
	trial trialKey
	twin  string
	cell  cellKey
	metric.Outcome
}

// trialKey names the trials of one case in one epoch, whatever their arm.
type trialKey struct {
	kase  string
	epoch int32
}

// remember notes the outcome of a trial. Texts of many trials are one text.
func (a *Aggregator) remember(t *results.Trial, k cellKey) {
	o, ok := metric.OutcomeOf(t)
	if !ok {
		return
	}
	one := func(s string) string {
		if s == "" {
			return ""
		}
		if a.texts == nil {
			a.texts = map[string]string{}
		}
		if _, known := a.texts[s]; !known {
			s = strings.Clone(s)
			a.texts[s] = s
		}
		return a.texts[s]
	}
	a.outcomes = append(a.outcomes, outcome{arm: armKey{one(a.run.Label(t.Agent, t.Model)), one(t.Defense)},
		trial: trialKey{one(t.Case), t.Epoch}, twin: one(t.Twin), cell: k, Outcome: o})
}

// pair counts the rates that hold a trial against the same case undefended, or
// against its twin. Summaries of a run that goes on count them anew.
func (a *Aggregator) pair() {
	if len(a.outcomes) == 0 {
		return
	}
	type key struct {
		arm   armKey
		trial trialKey
	}
	all := make(map[key]*outcome, len(a.outcomes))
	for i := range a.outcomes {
		o := &a.outcomes[i]
		all[key{o.arm, o.trial}] = o
		for _, m := range metric.Paired() {
			c := &a.arms[o.arm].cells[o.cell][m.Index()]
			c.k, c.n = 0, 0
		}
	}
	for i := range a.outcomes {
		o := &a.outcomes[i]
		bare := o.arm
		bare.defense = undefended
		var none, twin *metric.Outcome
		if u := all[key{bare, o.trial}]; u != nil {
			none = &u.Outcome
		}
		if w := all[key{o.arm, trialKey{o.twin, o.trial.epoch}}]; w != nil {
			twin = &w.Outcome
		}
		for _, m := range metric.Paired() {
			k, n := m.Against(&o.Outcome, none, twin)
			c := &a.arms[o.arm].cells[o.cell][m.Index()]
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
