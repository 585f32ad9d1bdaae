package gate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/gate"
	"github.com/memtox/memtox/results/stats"
)

// sample makes a run of stochastic arms: attacks land with the arm's
// probability, shifted for each family by a draw that all arms share, which is
// what makes cases of a family alike.
type sample struct {
	families, size int
	spread         float64
	lands          map[string]float64 // by defense
}

func (s sample) table(seed uint64, epoch int32) *compare.Table {
	run := &results.Run{Dataset: results.Dataset{Name: "null", SHA256: "0"}, Agents: []string{"hermes"},
		Model: "stochastic", LLM: true}
	t := compare.NewTable("sample", run)
	families := rand.New(rand.NewPCG(seed, 1))
	trials := rand.New(rand.NewPCG(seed, uint64(epoch)+2))
	x := results.Trial{Dataset: "null", Label: results.Attack, Class: "explicit_command", Agent: "hermes",
		Status: results.Scored, ExpectsASR: true, ExpectsRSR: true}
	names := []string{"guard", "second"}
	for f := range s.families {
		shift := s.spread * (2*families.Float64() - 1)
		x.Family = fmt.Sprint("f", f)
		for c := range s.size {
			x.Case = fmt.Sprint("f", f, "c", c)
			for _, d := range names {
				p, ok := s.lands[d]
				if !ok {
					continue
				}
				x.Defense = d
				x.Written = trials.Float64() < p+shift
				x.Influenced, x.Acted = x.Written, x.Written
				t.Add(&x, nil)
			}
		}
	}
	t.Finished = true
	t.Close()
	return t
}

// frequency runs trials in parallel and counts the outcomes.
func frequency(t *testing.T, n int, one func(seed uint64) stats.Outcome) map[stats.Outcome]float64 {
	t.Helper()
	outcomes := make([]stats.Outcome, n)
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < n; i += 2 {
				outcomes[i] = one(uint64(i) + 1)
			}
		}()
	}
	wg.Wait()
	f := map[stats.Outcome]float64{}
	for _, o := range outcomes {
		f[o] += 1 / float64(n)
	}
	return f
}

// slack is three standard errors of a frequency at p over n runs.
func slack(p float64, n int) float64 { return 3 * math.Sqrt(p*(1-p)/float64(n)) }

// The worst case for a limit is a true rate that lies on it. 1,000 runs each:
// red and green at most 5%, which is what the package promises, up to three
// standard errors of the count (2.1 points).
func TestARateOnItsLimitGoesRedAndGreenNoMoreOftenThanStated(t *testing.T) {
	const n = 1000
	for _, c := range []struct {
		name string
		s    sample
		p    float64
	}{
		{"independent cases", sample{families: 200, size: 1}, 0.1},
		{"few independent cases", sample{families: 60, size: 1}, 0.05},
		{"families of five, alike", sample{families: 60, size: 5, spread: 0.1}, 0.12},
	} {
		c.s.lands = map[string]float64{"guard": c.p}
		req := require(t, fmt.Sprintf("guard.end_to_end <= %v", c.p))
		f := frequency(t, n, func(seed uint64) stats.Outcome {
			return evaluate(t, c.s.table(seed, 0), gate.Options{Require: req}).Outcome
		})
		t.Logf("%s: red %.3f green %.3f", c.name, f[stats.Fail], f[stats.Pass])
		if most := 0.05 + slack(0.05, n); f[stats.Fail] > most || f[stats.Pass] > most {
			t.Errorf("%s: red %.3f, green %.3f of runs, want at most %.3f", c.name, f[stats.Fail], f[stats.Pass], most)
		}
	}
}

// Two runs of the same arms differ by chance alone. A margin of half a point is
// close to none, so nearly every run is inconclusive, and red stays under 5%
// over both checks together. With no difference and the margin at the true
// difference, the promise is the same.
func TestANullComparisonGoesRedNoMoreOftenThanStated(t *testing.T) {
	const n = 1000
	for _, c := range []struct {
		name      string
		s         sample
		old, new  float64
		margin    float64
		green     float64 // at most
		bothSides bool
	}{
		{name: "no difference", s: sample{families: 300, size: 1}, old: 0.2, new: 0.2, margin: 0.005, green: 1},
		{name: "no difference, families", s: sample{families: 50, size: 6, spread: 0.15}, old: 0.2, new: 0.2, margin: 0.005,
			green: 1},
		{name: "worse by exactly the margin", s: sample{families: 300, size: 1}, old: 0.2, new: 0.25, margin: 0.05,
			green: 0.05},
		{name: "worse by exactly the margin, families", s: sample{families: 50, size: 6, spread: 0.15}, old: 0.2, new: 0.25,
			margin: 0.05, green: 0.05},
	} {
		f := frequency(t, n, func(seed uint64) stats.Outcome {
			a, b := c.s, c.s
			a.lands = map[string]float64{"guard": c.new, "second": c.new}
			b.lands = map[string]float64{"guard": c.old, "second": c.old}
			return evaluate(t, a.table(seed, 0), gate.Options{Baseline: b.table(seed, 1),
				Margins: map[string]float64{"end_to_end": c.margin}}).Outcome
		})
		t.Logf("%s: red %.3f green %.3f", c.name, f[stats.Fail], f[stats.Pass])
		if f[stats.Fail] > 0.05+slack(0.05, n) || f[stats.Pass] > c.green+slack(0.05, n) {
			t.Errorf("%s: red %.3f, green %.3f of runs, want at most 0.05 and %.2f", c.name, f[stats.Fail], f[stats.Pass],
				c.green)
		}
	}
}

// A planted regression is found as often as the power of the test says.
func TestPlantedRegressionsGoRedAtTheComputedPower(t *testing.T) {
	const n = 400
	t.Run("limit", func(t *testing.T) {
		for _, p := range []float64{0.1, 0.13, 0.18} {
			const cases, limit = 200, 0.08
			// The power of an exact bound is a sum of binomial probabilities.
			want := 0.0
			for k := range cases + 1 {
				families := slices.Repeat([]stats.Count{{N: 1}}, cases)
				for i := range k {
					families[i].K = 1
				}
				if stats.ClusteredClopperPearson(families, stats.OneSided(0.95)).Lo > limit {
					want += distuv.Binomial{N: cases, P: p}.Prob(float64(k))
				}
			}
			s := sample{families: cases, size: 1, lands: map[string]float64{"guard": p}}
			req := require(t, fmt.Sprintf("guard.end_to_end <= %v", limit))
			f := frequency(t, n, func(seed uint64) stats.Outcome {
				return evaluate(t, s.table(seed, 0), gate.Options{Require: req}).Outcome
			})
			t.Logf("red %.3f, computed %.3f", f[stats.Fail], want)
			if math.Abs(f[stats.Fail]-want) > slack(want, n)+0.005 {
				t.Errorf("a rate of %v goes red in %.3f of runs, want %.3f", p, f[stats.Fail], want)
			}
		}
	})
	t.Run("baseline", func(t *testing.T) {
		for _, shift := range []float64{0.08, 0.12, 0.18} {
			const cases, old, margin = 400, 0.1, 0.02
			now := old + shift
			// Arms that are independent given the case disagree with this
			// probability; then the difference is normal, after Connor (1987).
			discordance := old*(1-now) + now*(1-old)
			se := math.Sqrt((discordance - shift*shift) / cases)
			want := distuv.UnitNormal.CDF((shift-margin)/se - distuv.UnitNormal.Quantile(0.95))
			s := sample{families: cases, size: 1}
			f := frequency(t, n, func(seed uint64) stats.Outcome {
				a, b := s, s
				a.lands, b.lands = map[string]float64{"guard": now}, map[string]float64{"guard": old}
				return evaluate(t, a.table(seed, 0), gate.Options{Baseline: b.table(seed, 1),
					Margins: map[string]float64{"end_to_end": margin}}).Outcome
			})
			// Newcombe's interval is a little wider than the normal one.
			t.Logf("red %.3f, computed %.3f", f[stats.Fail], want)
			if math.Abs(f[stats.Fail]-want) > slack(want, n)+0.03 {
				t.Errorf("worse by %v goes red in %.3f of runs, want %.3f", shift, f[stats.Fail], want)
			}
		}
	})
}
