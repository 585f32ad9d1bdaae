package metric_test

import (
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
)

// Names that older sets know too mean the outcome by state where there is one: what
// was counted by words is not mixed in.
func TestOldNamesMeanTheStateWhereThereIsOne(t *testing.T) {
	yes, no := true, false
	attack := results.Trial{Label: results.Attack, Status: results.Scored, Situation: "external high", Harm: &yes, Done: &no,
		UtilityUnderAttack: &yes}
	benign := results.Trial{Label: results.Benign, Status: results.Scored, Situation: "external high", Done: &no, Utility: &yes,
		ExpectsWrite: true}
	for _, c := range []struct {
		name  string
		trial *results.Trial
		k     int
	}{{"end_to_end", &attack, 1}, {"utility_under_attack", &attack, 0}, {"utility", &benign, 0}} {
		m, _ := metric.Find(c.name)
		if k, n := m.Count(c.trial); k != c.k || n != 1 {
			t.Errorf("%s counts %d of %d, want %d of 1", c.name, k, n, c.k)
		}
	}
}
