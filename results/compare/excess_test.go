package compare_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
)

// Questions are compared on the trials that both arms scored, a side for itself: here 40
// families of two attacks, in which the guard asks one question too many in the first of
// each and two in a quarter of the second, and of benign cases nobody asks anything.
func TestQuestionsThatWereNotDueAreComparedASideForItself(t *testing.T) {
	run := compare.NewTable("run", &results.Run{Agents: []string{"hermes"}, Defenses: []string{"none", "guard"}})
	add := func(defense, label string, family, n int, asked int32, status string) {
		x := results.Trial{Agent: "hermes", Defense: defense, Label: label, Status: status, Asked: asked, Due: 1,
			Family: fmt.Sprint(label, family), Case: fmt.Sprint(label, family, n), Situation: "own"}
		if status == results.Scored {
			x.Done = new(bool)
		}
		run.Add(&x, nil)
	}
	for f := range 40 {
		for _, defense := range []string{"none", "guard"} {
			first, second := int32(0), int32(0)
			if defense == "guard" {
				if first = 2; f%4 == 0 {
					second = 3
				}
			}
			add(defense, results.Attack, f, 1, first, results.Scored)
			add(defense, results.Attack, f, 2, second, results.Scored)
			add(defense, results.Benign, f, 1, 1, results.Scored)
		}
		add("guard", results.Attack, f, 3, 9, results.Scored) // its pair failed
		add("none", results.Attack, f, 3, 0, results.Error)
	}
	run.Finished = true
	run.Close()
	r, err := compare.Compare([]*compare.Table{run}, compare.Options{Metrics: []string{"excess_per_100"}})
	if err != nil || len(r.Questions) != 2 || !r.Measured() {
		t.Fatalf("%v %+v", err, r)
	}
	for i, want := range []struct {
		label string
		a, d  float64
	}{{results.Attack, 75, 75}, {results.Benign, 0, 0}} {
		c := r.Questions[i]
		d, ok := c.Difference.Value()
		if c.Label != want.label || *c.ValueA != want.a || *c.ValueB != 0 || !ok || d != want.d ||
			!(c.Difference.Lo <= d && d <= c.Difference.Hi) || c.Difference.Lo == c.Difference.Hi {
			t.Errorf("%s: %v against %v, %v", c.Label, *c.ValueA, *c.ValueB, c.Difference)
		}
	}
	var b bytes.Buffer
	if err := r.Write(&b, "table"); err != nil || !strings.Contains(b.String(),
		"hermes  guard  none     attack  75.0     0.0              +75.0 [+") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
