package render

import (
	"fmt"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

// states is a run of both ends whose outcomes are states.
func states(agents, defenses []string) *summary.Summary {
	run := &results.Run{ID: "20260102-0304-abcd", Model: "reference", Models: []string{"reference:naive", "reference:cautious"},
		Agents: agents, Defenses: defenses, Split: "report", Planned: int64(len(agents) * len(defenses) * 400),
		Dataset: results.Dataset{Name: "memtox-bench", Version: "v2", Attacks: 1799, Benign: 1836}}
	a := summary.New(run, summary.Options{})
	for _, agent := range agents {
		for end, model := range run.Models {
			for di, defense := range defenses {
				for i := range 100 {
					yes, no := true, false
					harm, done := i >= 12*di+20*end*di, i%10 >= di
					e := results.Entry{Trial: results.Trial{Case: fmt.Sprintf("a%d", i), Family: fmt.Sprintf("f%d", i%50), Label: results.Attack,
						Class: "policy_fact", Agent: agent, Model: model, Defense: defense, Status: results.Scored, Digest: "d",
						Situation: "external high", Harm: &no, Done: &yes}}
					if harm {
						e.Trial.Harm, e.Trial.Done = &yes, &no
					}
					e.Decisions = []results.Decision{{Gate: "write", LatencyNS: int64(150 + 3000*di*di)}}
					a.Add(&e)
					b := results.Entry{Trial: results.Trial{Case: fmt.Sprintf("b%d", i), Family: fmt.Sprintf("f%d", i%50), Label: results.Benign,
						Agent: agent, Model: model, Defense: defense, Status: results.Scored, Digest: "d", Situation: "external high",
						Done: &no, Wrong: &no, Asked: int32(di % 3)}}
					if done {
						b.Trial.Done = &yes
					}
					a.Add(&b)
				}
			}
		}
	}
	return a.Summary()
}

var arms = []string{"none", "no-memory", "origin-only", "attribution-only", "keyword", "provenance", "contradiction",
	"anomaly", "guard"}

// many are more arms than a screen shows.
func many() []string {
	out := append([]string(nil), arms...)
	for i := range 30 {
		out = append(out, fmt.Sprintf("guard:policy-%d.yaml", i))
	}
	return out
}
