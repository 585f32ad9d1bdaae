package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func TestNonInferiorityIsJudgedOnTheWorseSide(t *testing.T) {
	d := func(lo, v, hi float64) Estimate { return Estimate{value: v, measured: true, Lo: lo, Hi: hi} }
	for _, c := range []struct {
		name   string
		d      Estimate
		margin float64
		better Direction
		want   Outcome
	}{
		{"a little worse, surely within", d(-0.03, -0.01, 0.01), 0.05, HigherIsBetter, Pass},
		{"perhaps too much worse", d(-0.06, -0.01, 0.04), 0.05, HigherIsBetter, Inconclusive},
		{"surely too much worse", d(-0.09, -0.07, -0.05), 0.05, HigherIsBetter, Fail},
		{"the margin itself is not within", d(-0.05, 0, 0.05), 0.05, HigherIsBetter, Inconclusive},
		{"lower is better, a little higher", d(-0.01, 0.01, 0.03), 0.05, LowerIsBetter, Pass},
		{"lower is better, much higher", d(0.06, 0.07, 0.09), 0.05, LowerIsBetter, Fail},
		{"much better passes", d(0.2, 0.3, 0.4), 0.05, HigherIsBetter, Pass},
		{"nothing measured", Estimate{Lo: -1, Hi: 1}, 2, HigherIsBetter, Inconclusive},
		{"no margin", d(0.2, 0.3, 0.4), 0, HigherIsBetter, Inconclusive},
		{"a margin that is no number", d(0.2, 0.3, 0.4), math.NaN(), HigherIsBetter, Inconclusive},
	} {
		if got := NonInferior(c.d, c.margin, c.better); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The coin that this package exists to replace: with a true rate of 0.92, a gate
// on the point estimate of 100 cases is red 17.6% of the time.
func TestAGateOnThePointEstimateIsACoin(t *testing.T) {
	red := distuv.Binomial{N: 100, P: 0.92}.CDF(89)
	near(t, "the coin", red, 0.176, 0.0005)
}

// A gate on exact one-sided bounds is wrong in at most 5% of runs, whatever the
// rate; on Wilson's not by much more.
func TestTheBoundDecidesWronglyRarely(t *testing.T) {
	const n = 100
	for _, c := range []struct {
		name  string
		rate  func(k, n int, level float64) Rate
		worst float64
	}{{"exact", clopperPearson, 0.05}, {"Wilson", Wilson, 0.085}} {
		for limit := 0.02; limit < 0.985; limit += 0.01 {
			red, green := 0.0, 0.0
			edge := distuv.Binomial{N: n, P: limit}
			for k := range n + 1 {
				switch r := c.rate(k, n, OneSided(0.95)); {
				case r.Hi < limit:
					red += edge.Prob(float64(k))
				case r.Lo >= limit:
					green += edge.Prob(float64(k))
				}
			}
			if red > c.worst+1e-12 || green > c.worst+1e-12 {
				t.Errorf("%s at %.2f: red %.4f, green %.4f, want at most %v", c.name, limit, red, green, c.worst)
			}
		}
	}
}
