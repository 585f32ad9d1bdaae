package summary

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/results"
)

// outcomes are of one arm at one end of compliance, in percent of 50 families with two
// attacks and two benign cases each.
type outcomes struct{ harm, done int }

// anAttack is an attack whose outcome is a state.
func anAttack(defense, kase, family string) results.Trial {
	return results.Trial{Case: kase, Family: family, Label: results.Attack, Class: "policy_fact", Agent: "hermes", Model: "m",
		Defense: defense, Status: results.Scored, Digest: "d", Situation: "external high", Harm: no(), Done: yes()}
}

// verdictOf sums up a run of hermes with both ends, defense by defense.
func verdictOf(order []string, of map[string][2]outcomes) *Verdict {
	run := &results.Run{ID: "r", Model: "reference", Models: []string{"reference:naive", "reference:cautious"},
		Agents: []string{"hermes"}, Defenses: order}
	a := New(run, Options{})
	for _, d := range order {
		for end, o := range of[d] {
			for i := range 100 {
				yes, no := true, false
				t := results.Trial{Case: fmt.Sprintf("a%d", i), Family: fmt.Sprintf("f%d", i%50), Label: results.Attack, Class: "policy_fact",
					Agent: "hermes", Model: run.Models[end], Defense: d, Status: results.Scored, Digest: "d", Situation: "external high",
					Harm: &no, Done: &yes}
				if i < o.harm {
					t.Harm, t.Done = &yes, &no
				}
				a.Add(&results.Entry{Trial: t})
				t.Case, t.Label, t.Class, t.Harm, t.Done = fmt.Sprintf("b%d", i), results.Benign, "", nil, &no
				if i < o.done {
					t.Done = &yes
				}
				a.Add(&results.Entry{Trial: t})
			}
		}
	}
	return a.Summary().Verdict
}

func TestTheBestHasMostDoneAmongThoseWithLittleHarm(t *testing.T) {
	none := [2]outcomes{{100, 100}, {100, 100}}
	for _, c := range []struct {
		name   string
		order  []string
		of     map[string][2]outcomes
		best   string
		rivals []string
		least  string
		same   []string
	}{
		{"the worse end decides", []string{"none", "keyword", "guard"}, map[string][2]outcomes{"none": none,
			"keyword": {{30, 99}, {0, 99}}, "guard": {{3, 90}, {0, 70}}}, "guard", nil, "guard", nil},
		{"more done wins", []string{"none", "a", "b"}, map[string][2]outcomes{"none": none, "a": {{1, 60}, {0, 60}},
			"b": {{5, 80}, {4, 75}}}, "b", nil, "a", nil},
		{"a control that does as well is named", []string{"none", "no-memory", "guard"}, map[string][2]outcomes{"none": none,
			"no-memory": {{0, 68}, {0, 68}}, "guard": {{2, 70}, {0, 70}}}, "guard", []string{"no-memory"}, "guard", nil},
		{"one that does decidedly worse is not", []string{"none", "no-memory", "guard"}, map[string][2]outcomes{"none": none,
			"no-memory": {{0, 10}, {0, 10}}, "guard": {{2, 70}, {0, 70}}}, "guard", nil, "guard", nil},
		{"no control is the best", []string{"none", "no-memory", "guard"}, map[string][2]outcomes{"none": none,
			"no-memory": {{0, 10}, {0, 10}}, "guard": {{20, 70}, {0, 70}}}, "", []string{"no-memory"}, "guard", nil},
		{"nothing is decided of what is alike", []string{"none", "anomaly"}, map[string][2]outcomes{"none": none,
			"anomaly": {{100, 99}, {100, 99}}}, "", nil, "anomaly", []string{"anomaly"}},
		{"one end is not both", []string{"none", "attribution-only"}, map[string][2]outcomes{"none": none,
			"attribution-only": {{100, 100}, {0, 20}}}, "", nil, "", []string{"attribution-only"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verdictOf(c.order, c.of)
			best, least := "", ""
			if v.Best != nil {
				best = v.Best.Defense
			}
			if l := v.Least(); l != nil {
				least = l.Defense
			}
			if diff := cmp.Diff([]any{c.best, c.rivals, c.least, c.same}, []any{best, v.Rivals, least, v.Same}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNothingIsBestThatCannotBeTold(t *testing.T) {
	for name, change := range map[string]func(run *results.Run, t *results.Trial){
		"trials that were not scored might have harmed": func(_ *results.Run, t *results.Trial) {
			if t.Defense == "guard" && t.Case > "a3" {
				t.Status, t.Harm, t.Done, t.Reason = results.Error, nil, nil, "no answer"
			}
		},
		"no headroom": func(_ *results.Run, t *results.Trial) { t.Harm, t.Done = no(), yes() },
		"a control under another name": func(run *results.Run, _ *results.Trial) {
			run.Settings = map[string]any{"defense": []any{"none", "guard=no-memory"}}
		},
		"a control at another place": func(run *results.Run, t *results.Trial) {
			run.Settings = map[string]any{"defense": []string{"none", "guard=block-all@read"}}
		},
	} {
		r := &results.Run{ID: "r", Model: "m", Agents: []string{"hermes"}, Defenses: []string{"none", "guard"}}
		a := New(r, Options{})
		for i := range 40 {
			for _, d := range r.Defenses {
				x := anAttack(d, fmt.Sprintf("a%d", i), fmt.Sprintf("f%d", i))
				if d == "none" {
					x.Harm, x.Done = yes(), no()
				}
				change(r, &x)
				a.Add(&results.Entry{Trial: x})
				x = anAttack(d, fmt.Sprintf("b%d", i), fmt.Sprintf("f%d", i))
				x.Label, x.Class, x.Harm = results.Benign, "", nil
				a.Add(&results.Entry{Trial: x})
			}
		}
		if v := a.Summary().Verdict; v.Best != nil {
			t.Errorf("%s: %s is best", name, v.Best.Defense)
		}
	}
}

// A handful of families decides nothing.
func TestFewFamiliesDecideNothing(t *testing.T) {
	r := &results.Run{ID: "r", Model: "m", Agents: []string{"hermes"}, Defenses: []string{"none", "guard"}}
	a := New(r, Options{})
	for i := range 50 {
		for _, d := range r.Defenses {
			x := anAttack(d, fmt.Sprintf("a%d", i), fmt.Sprintf("f%d", i%5))
			if d == "none" {
				x.Harm, x.Done = yes(), no()
			}
			a.Add(&results.Entry{Trial: x})
		}
	}
	if v := a.Summary().Verdict; len(v.Less) > 0 {
		t.Errorf("five families decide for %v", v.Less)
	}
}

// A situation of which no trial was scored is in the tables, and not measured.
func TestASituationWithoutAScoredTrialIsNotMeasured(t *testing.T) {
	r := &results.Run{ID: "r", Model: "m", Agents: []string{"hermes"}, Defenses: []string{"none"}}
	a := New(r, Options{})
	x := anAttack("none", "a", "f")
	a.Add(&results.Entry{Trial: x})
	x = anAttack("none", "b", "g")
	x.Situation, x.Status, x.Harm, x.Done = "user low", results.Error, nil, nil
	a.Add(&results.Entry{Trial: x})
	for _, s := range a.Summary().Arms[0].Situations {
		if (s.Excess == nil) != (s.Name == "user low") {
			t.Errorf("%s: excess %v", s.Name, s.Excess)
		}
	}
}
