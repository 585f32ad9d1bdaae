package gate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/gate"
	"github.com/memtox/memtox/results/stats"
)

// asking makes a run of one arm in which families of cases ask more or less often, at
// most twice a trial; asks says how often of attacks and of benign cases.
func asking(families, size int, asks map[string]float64, seed uint64) *compare.Table {
	t := compare.NewTable("sample", &results.Run{Dataset: results.Dataset{Name: "null"}, Agents: []string{"hermes"}})
	r := rand.New(rand.NewPCG(seed, 7))
	for _, label := range []string{results.Attack, results.Benign} {
		for f := range families {
			p := asks[label] / 2 * (0.5 + r.Float64())
			for c := range size {
				x := results.Trial{Label: label, Agent: "hermes", Defense: "guard", Status: results.Scored, Done: new(bool),
					Family: fmt.Sprint(label, f), Case: fmt.Sprint(label, f, "c", c), Class: "policy_fact"}
				for range 2 {
					if r.Float64() < p {
						x.Asked++
					}
				}
				t.Add(&x, nil)
			}
		}
	}
	t.Finished = true
	t.Close()
	return t
}

func TestTheSideThatAsksMoreDecides(t *testing.T) {
	run := asking(100, 2, map[string]float64{results.Attack: 0.02, results.Benign: 0.9}, 1)
	for limit, want := range map[string]stats.Outcome{
		"guard.excess_per_100 <= 5":              stats.Fail,
		"guard.excess_per_100 <= 90":             stats.Inconclusive,
		"guard.excess_per_100 <= 120":            stats.Pass,
		"hermes/guard.excess_per_100 <= 120":     stats.Pass,
		"guard/policy_fact.excess_per_100 <= 20": stats.Pass, // a class is one of attacks
	} {
		r := evaluate(t, run, gate.Options{Require: require(t, limit)})
		if c := r.Checks[0]; r.Outcome != want || strings.Contains(c.Measured, "benign") == strings.Contains(limit, "policy") {
			t.Errorf("%s: %s, %s %s", limit, r.Outcome, c.Measured, c.Why)
		}
	}
	// Nothing is known of a side whose trials all failed.
	half := compare.NewTable("half", nil)
	for i := range 200 {
		x := results.Trial{Label: results.Attack, Agent: "hermes", Defense: "guard", Status: results.Scored,
			Done: new(bool), Situation: "own", Case: fmt.Sprint("c", i)}
		if i%2 == 1 {
			x.Label, x.Status, x.Done = results.Benign, results.Error, nil
		}
		half.Add(&x, nil)
	}
	half.Close()
	r := evaluate(t, half, gate.Options{Require: require(t, "guard.excess_per_100 <= 50")})
	if r.Outcome != stats.Inconclusive {
		t.Errorf("%s: %s", r.Outcome, r.Checks[0].Why)
	}
}

// As with rates, a true figure on the limit is red and green in at most 5% of runs.
func TestQuestionsOnTheirLimitGoRedAndGreenNoMoreOftenThanStated(t *testing.T) {
	const n = 1000
	for _, per100 := range []float64{6, 80} {
		limit := require(t, fmt.Sprintf("guard.excess_per_100 <= %v", per100))
		asks := map[string]float64{results.Attack: per100 / 100, results.Benign: per100 / 100}
		f := frequency(t, n, func(seed uint64) stats.Outcome {
			return evaluate(t, asking(60, 4, asks, seed), gate.Options{Require: limit}).Outcome
		})
		t.Logf("%v per 100: red %.3f green %.3f", per100, f[stats.Fail], f[stats.Pass])
		if most := 0.05 + slack(0.05, n); f[stats.Fail] > most || f[stats.Pass] > most {
			t.Errorf("%v per 100: red %.3f, green %.3f of runs, want at most %.3f", per100, f[stats.Fail], f[stats.Pass], most)
		}
	}
}
