package stats

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestMinimumDetectableEffectIsRsRoot(t *testing.T) {
	for _, g := range golden(t, "power") {
		n, psi := g.float("n"), g.float("discordance")
		d, ok := MinimumDetectableEffect(n, psi, g.float("power"), g.float("level"))
		if !ok {
			t.Errorf("n=%v: no effect found", n)
		}
		near(t, fmt.Sprint("effect at n=", n), d, g.float("mde"), 1e-9)
		p, _ := PairedPower(n, psi, d/2, g.float("level"))
		near(t, fmt.Sprint("power of half at n=", n), p, g.float("at_half"), 1e-9)
	}
}

// Connor's formula at 80% power and 10% discordance.
func TestMinimumDetectableEffectOfOneHundredAndOneThousandCases(t *testing.T) {
	for _, c := range []struct{ n, want float64 }{{100, 0.088}, {1000, 0.028}} {
		d, ok := MinimumDetectableEffect(c.n, 0.1, 0, 0)
		if !ok || math.Abs(d-c.want) > 0.0005 {
			t.Errorf("n=%v: %v, %v; want %v", c.n, d, ok, c.want)
		}
	}
}

func TestPowerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		psi := rapid.Float64Range(0.001, 1).Draw(t, "discordance")
		delta := psi * rapid.Float64Range(0.01, 1).Draw(t, "share")
		power := rapid.Float64Range(0.2, 0.99).Draw(t, "power")
		n := rapid.Float64Range(1, 10000).Draw(t, "n")
		if p, ok := PairedPower(n, psi, delta, 0); !ok || p < power {
			t.Skip("the pairs are too few")
		}
		d, ok := MinimumDetectableEffect(n, psi, power, 0)
		if best, _ := PairedPower(n, psi, psi, 0); !ok && best < power {
			t.Skip("where arms always differ the approximation is not monotone in the difference")
		}
		if !ok || d > delta*(1+1e-9) {
			t.Fatalf("%v pairs find %v, yet were enough for %v", n, d, delta)
		}
	})
}

func TestPowerOutOfRangeHasNoAnswer(t *testing.T) {
	nan := math.NaN()
	for _, c := range [][4]float64{{0, 0.1, 0.05, 0}, {-1, 0.1, 0.05, 0}, {nan, 0.1, 0.05, 0}, {100, 0, 0, 0},
		{100, 1.1, 0.5, 0},
		{100, 0.1, 0.2, 0}, {100, 0.1, nan, 0}, {100, 0.1, 0.05, 1}, {math.Inf(1), 0.1, 0.05, 0}} {
		if p, ok := PairedPower(c[0], c[1], c[2], c[3]); ok || p != 0 {
			t.Errorf("PairedPower%v = %v, %v", c, p, ok)
		}
	}
	for _, c := range [][4]float64{{5, 0.1, 0.8, 0}, {0, 0.1, 0.8, 0}, {100, 0.1, 1, 0}, {100, 0.1, nan, 0},
		{100, 0.1, 0.8, 7}} {
		if d, ok := MinimumDetectableEffect(c[0], c[1], c[2], c[3]); ok || d != 0 {
			t.Errorf("MinimumDetectableEffect%v = %v, %v", c, d, ok)
		}
	}
	if p, ok := PairedPower(10, 1, 1, 0); !ok || p != 1 {
		t.Errorf("arms that always differ: power %v, %v", p, ok)
	}
}
