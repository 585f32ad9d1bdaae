package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRatio(t *testing.T) {
	// By hand: y = 1.1x, 0.9x, 1.0x, 1.0x over x = 10 each: ratio 1, s = sqrt(2/3),
	// half = t(3) · s/2/10 = 3.18245 · 0.0408248.
	r, lo, hi, ok := Ratio([]float64{11, 9, 10, 10}, []float64{10, 10, 10, 10}, 0.95)
	if half := 3.182446 * math.Sqrt(2./3) / 2 / 10; !ok || r != 1 || math.Abs(hi-1-half) > 1e-6 ||
		math.Abs(1-lo-half) > 1e-6 {
		t.Errorf("%v [%v, %v], want half width %v", r, lo, hi, half)
	}
	for _, c := range [][2][]float64{{nil, nil}, {{1}, {0}}, {{1}, {1, 2}}, {{1}, {math.Inf(1)}}} {
		if _, _, _, ok := Ratio(c[0], c[1], 0.95); ok {
			t.Errorf("Ratio(%v, %v) must not be measured", c[0], c[1])
		}
	}
	if r, lo, hi, ok := Ratio([]float64{3}, []float64{2}, 0.95); !ok || r != 1.5 || lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("one pair: %v [%v, %v]", r, lo, hi)
	}
}

func TestRatioCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	covered, trials := 0, 2000
	for range trials {
		var y, x []float64
		for range 40 {
			u := 5 + 10*rng.Float64()
			x, y = append(x, u), append(y, u*(1.4+0.5*rng.NormFloat64()))
		}
		if _, lo, hi, _ := Ratio(y, x, 0.95); lo <= 1.4 && 1.4 <= hi {
			covered++
		}
	}
	if rate := float64(covered) / float64(trials); rate < 0.93 || rate > 0.97 {
		t.Errorf("the 95%% interval covers %.3f", rate)
	}
}
