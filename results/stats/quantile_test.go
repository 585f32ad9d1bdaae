package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type sortedSample []float64

func (s sortedSample) size() int           { return len(s) }
func (s sortedSample) at(rank int) float64 { return s[rank] }

// quantileOf and differenceOf are the estimates of stored values, as those of a
// Sketch but without its error.
func quantileOf(values []float64, p, level float64) Estimate {
	return quantileEstimate(sortedSample(slices.Sorted(slices.Values(values))), p, level)
}

func differenceOf(a, b []float64, p, level float64, seed uint64) Estimate {
	return quantileDifference(sortedSample(slices.Sorted(slices.Values(a))), sortedSample(slices.Sorted(slices.Values(b))),
		p, level, seed)
}

func TestQuantileRanksAreRsBinomial(t *testing.T) {
	for _, g := range golden(t, "quantile_ranks") {
		n, p := g.int("n"), g.float("p")
		below, above := quantileRanks(n, p, 0.95)
		if below+1 != g.int("lower") || above+1 != g.int("upper") {
			t.Errorf("n=%d p=%v: ranks %d and %d, want %d and %d", n, p, below+1, above+1, g.int("lower"), g.int("upper"))
		}
	}
}

func TestQuantileIsRsTypeSeven(t *testing.T) {
	for _, g := range golden(t, "quantile_values") {
		x := g.floats("x")
		for _, c := range []struct {
			p   float64
			col string
		}{{0.5, "p50"}, {0.95, "p95"}, {0.99, "p99"}} {
			v, _ := quantileOf(x, c.p, 0).Value()
			near(t, fmt.Sprint(c.col, " of ", len(x)), v, g.float(c.col), 1e-12)
		}
	}
}

func TestQuantileThatTheSampleDoesNotBound(t *testing.T) {
	inf := math.Inf(1)
	few := make([]float64, 71)
	for i := range few {
		few[i] = float64(i)
	}
	for _, c := range []struct {
		name     string
		e        Estimate
		measured bool
		warning  WarningCode
		lo, hi   float64
	}{
		{"no values", quantileOf(nil, 0.5, 0), false, NotMeasured, -inf, inf},
		{"quantile 0", quantileOf([]float64{1, 2}, 0, 0), false, BadInput, -inf, inf},
		{"quantile NaN", quantileOf([]float64{1, 2}, math.NaN(), 0), false, BadInput, -inf, inf},
		{"median of one", quantileOf([]float64{7}, 0.5, 0), true, TooFew, -inf, inf},
		{"median of five", quantileOf([]float64{1, 2, 3, 4, 5}, 0.5, 0), true, TooFew, -inf, inf},
		{"p95 of 71", quantileOf(few, 0.95, 0), true, TooFew, 62, inf},
		{"p95 of one and none", differenceOf([]float64{1}, nil, 0.95, 0, 1), false, NotMeasured, -inf, inf},
		{"one against one", differenceOf([]float64{1}, []float64{3}, 0.5, 0, 1), true, TooFew, -inf, inf},
	} {
		if c.e.Measured() != c.measured || !hasWarning(c.e.Warnings, c.warning) || c.e.Lo != c.lo || c.e.Hi != c.hi {
			t.Errorf("%s: %+v", c.name, c.e)
		}
	}
	if e := quantileOf(append(few, 71), 0.95, 0); e.Hi != 71 || len(e.Warnings) != 0 {
		t.Errorf("p95 of 72: %+v, want the maximum as upper end", e)
	}
}

func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 200).Draw(t, "x")
		p := rapid.Float64Range(0.001, 0.999).Draw(t, "p")
		level := drawLevel(t)
		e := quantileOf(x, p, level)
		if v, ok := e.Value(); !ok || !(e.Lo <= v && v <= e.Hi) {
			t.Fatalf("%v does not hold its value", e)
		}
		wide := quantileOf(x, p, (1+level)/2)
		if wide.Lo > e.Lo || wide.Hi < e.Hi {
			t.Fatalf("a higher level narrowed %v to %v", e, wide)
		}
		d := differenceOf(x, x, p, level, 1)
		if v, ok := d.Value(); !ok || v != 0 || !(d.Lo <= 0 && d.Hi >= 0) {
			t.Fatalf("a sample differs from itself by %v", d)
		}
	})
}

// The interval must hold the true p95 as often as it says, and the difference
// the true difference.
func TestQuantileIntervalsCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const sims, n = 1000, 300
	trueP95 := -math.Log(0.05)
	one, two := 0, 0
	for i := range sims {
		x, y := make([]float64, n), make([]float64, n)
		for j := range n {
			x[j], y[j] = rng.ExpFloat64(), 2*rng.ExpFloat64()
		}
		if e := quantileOf(x, 0.95, 0.95); e.Lo <= trueP95 && trueP95 <= e.Hi {
			one++
		}
		if i < sims/4 {
			if e := differenceOf(y, x, 0.95, 0.95, uint64(i)); e.Lo <= trueP95 && trueP95 <= e.Hi {
				two++
			}
		}
	}
	if got := float64(one) / sims; got < 0.935 || got > 0.985 {
		t.Errorf("p95 is covered %.3f, want 0.95 or a little more", got)
	}
	if got := float64(two) / (sims / 4); got < 0.90 || got > 0.99 {
		t.Errorf("the difference is covered %.3f, want about 0.95", got)
	}
}

// Drawing one order statistic must be the same experiment as resampling all
// values and taking it.
func TestResampledQuantileIsTheBootstrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	x := make(sortedSample, 50)
	for i := range x {
		x[i] = rng.ExpFloat64()
	}
	slices.Sort(x)
	const reps, p = 20000, 0.9
	short, long := make([]float64, reps), make([]float64, reps)
	draw := resampledQuantile(x, p, newSource(3))
	y := make(sortedSample, len(x))
	for i := range reps {
		short[i] = draw()
		for j := range y {
			y[j] = x[rng.IntN(len(x))]
		}
		slices.Sort(y)
		long[i] = quantile(y, p)
	}
	slices.Sort(short)
	slices.Sort(long)
	// Kolmogorov's distance of two samples of 20,000 is under 0.0195 with
	// probability 0.999.
	worst := 0.0
	for i := range reps {
		at, _ := slices.BinarySearch(long, math.Nextafter(short[i], math.Inf(1)))
		last, _ := slices.BinarySearch(short, math.Nextafter(short[i], math.Inf(1)))
		worst = max(worst, math.Abs(float64(at)-float64(last))/reps)
	}
	if worst > 0.0195 {
		t.Errorf("the two bootstrap distributions are %.4f apart", worst)
	}
}

func TestQuantileDifferenceIsDeterministicAndTurnsRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := make([]float64, 400), make([]float64, 500)
	for i := range x {
		x[i] = rng.ExpFloat64()
	}
	for i := range y {
		y[i] = 3 * rng.ExpFloat64()
	}
	a, again, b := differenceOf(x, y, 0.5, 0, 9), differenceOf(x, y, 0.5, 0, 9), differenceOf(y, x, 0.5, 0, 9)
	if !reflect.DeepEqual(a, again) {
		t.Errorf("%v and %v with the same seed", a, again)
	}
	if a.Hi >= 0 || b.Lo <= 0 {
		t.Errorf("a threefold median is not seen: %v and %v", a, b)
	}
	near(t, "lo", a.Lo, -b.Hi, 0.05)
	near(t, "hi", a.Hi, -b.Lo, 0.05)
}

func BenchmarkQuantileOfAMillion(b *testing.B) {
	x := millionLatencies(1)
	for b.Loop() {
		quantileOf(x, 0.95, 0.95)
	}
}

func BenchmarkQuantileDifferenceOfTwoMillion(b *testing.B) {
	x, y := millionLatencies(1), millionLatencies(2)
	for b.Loop() {
		differenceOf(x, y, 0.95, 0.95, 1)
	}
}

func millionLatencies(seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, seed))
	x := make([]float64, 1_000_000)
	for i := range x {
		x[i] = math.Exp(3 + rng.NormFloat64())
	}
	return x
}
