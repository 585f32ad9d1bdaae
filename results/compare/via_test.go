package compare_test

import (
	"maps"
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
)

// The channel of a case is that of each agent's own trials: one case comes by a file to one
// agent and by a job to another, and to a profile by none.
func TestCasesAreComparedByTheChannelTheyCameBy(t *testing.T) {
	run := compare.NewTable("run", &results.Run{Agents: []string{"p+file", "p+job", "hermes"}, Defenses: []string{"none", "guard"}})
	for agent, via := range map[string]string{"p+file": "file", "p+job": "job", "hermes": ""} {
		for _, defense := range []string{"none", "guard"} {
			for _, id := range []string{"one", "two", "three"} {
				by := via
				if id == "three" && via != "" {
					by = "mcp"
				}
				harm := defense == "none" && by != "job"
				run.Add(&results.Trial{Agent: agent, Defense: defense, Case: id, Label: results.Attack, Status: results.Scored,
					Via: by, Harm: &harm}, nil)
			}
		}
	}
	run.Close()
	r, err := compare.Compare([]*compare.Table{run}, compare.Options{Metrics: []string{"harm"}, By: []string{"via"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string][2]int{} // pairs, and those that the guard prevents
	for _, c := range r.Exploratory.Comparisons {
		seen[c.Agent+" by "+c.Slice.Name] = [2]int{c.Pairs.N(), c.Pairs.OnlyB}
	}
	want := map[string][2]int{"p+file by file": {2, 2}, "p+file by mcp": {1, 1}, "p+job by job": {2, 0}, "p+job by mcp": {1, 1}}
	if !maps.Equal(seen, want) {
		t.Errorf("the slices are %v, not %v", seen, want)
	}
	if n := run.Arm("p+job", "none").Count(metric.Harm, compare.Slice{By: "via", Name: "job"}).Trials; n != 2 {
		t.Errorf("%d trials came by a job", n)
	}
}
