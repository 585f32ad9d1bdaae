package stats

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func sketchOf(values ...float64) *Sketch {
	var s Sketch
	for _, v := range values {
		s.Add(v)
	}
	return &s
}

// drawValues draws values over all magnitudes, zero included.
func drawValues(t *rapid.T, label string) []float64 {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.Just(0.0),
		rapid.Float64Range(0, 1e4),
		rapid.Map(rapid.Float64Range(-700, 700), math.Exp),
		rapid.SampledFrom([]float64{math.SmallestNonzeroFloat64, math.MaxFloat64, 1, 1e-6, 3600}),
	), 0, 60).Draw(t, label)
}

func TestEveryRankOfASketchIsWithinItsError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawValues(t, "x")
		s := sketchOf(x...)
		slices.Sort(x)
		r := s.ranks()
		if r.size() != len(x) {
			t.Fatalf("%d values, want %d", r.size(), len(x))
		}
		for i, v := range x {
			if got := r.at(i); math.Abs(got-v) > SketchError*v+leastBinned {
				t.Fatalf("rank %d is %v, want %v", i, got, v)
			}
		}
		if len(x) > 0 && (r.at(0) != x[0] || r.at(len(x)-1) != x[len(x)-1]) {
			t.Fatal("the extremes are not exact")
		}
	})
}

func TestTheOrderOfValuesMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawValues(t, "x"), drawValues(t, "y")
		one, other := sketchOf(append(slices.Clone(x), y...)...), sketchOf(append(slices.Clone(y), x...)...)
		if !reflect.DeepEqual(one, other) {
			t.Fatalf("%+v, and in another order %+v", one, other)
		}
	})
}

func TestSketchSummary(t *testing.T) {
	var s Sketch
	if sum, ok := s.Summary(); ok || sum != (Summary{}) {
		t.Errorf("an empty sketch sums up to %+v, %v", sum, ok)
	}
	for i := range 10_000 {
		s.Add(float64(i + 1))
	}
	sum, ok := s.Summary()
	if !ok || sum.N != 10_000 || sum.Max != 10_000 {
		t.Errorf("%+v, %v", sum, ok)
	}
	for _, c := range []struct{ got, want float64 }{{sum.P50, 5000}, {sum.P95, 9500}, {sum.P99, 9900}} {
		if math.Abs(c.got/c.want-1) > SketchError {
			t.Errorf("%v, want %v within 1%%", c.got, c.want)
		}
	}
	if one, _ := sketchOf(42).Summary(); one != (Summary{1, 42, 42, 42, 42}) {
		t.Errorf("one value: %+v", one)
	}
}

func TestSketchRefusesWhatIsNoLatencyAndSaysSo(t *testing.T) {
	s := sketchOf(1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 2)
	if s.Count() != 2 || s.Refused() != 4 {
		t.Errorf("%d values, %d refused", s.Count(), s.Refused())
	}
	if e := s.Quantile(0.5, 0); !hasWarning(e.Warnings, BadInput) || !hasWarning(e.Warnings, TooFew) {
		t.Errorf("%+v", e)
	}
	if e := (&Sketch{}).Quantile(0.5, 0); e.Measured() || !hasWarning(e.Warnings, NotMeasured) {
		t.Errorf("%+v", e)
	}
	if e := s.QuantileDifference(&Sketch{}, 0.5, 0, 1); e.Measured() || !hasWarning(e.Warnings, NotMeasured) {
		t.Errorf("%+v", e)
	}
}

func TestSketchAgreesWithTheStoredSample(t *testing.T) {
	x, y := millionLatencies(1)[:20_000], millionLatencies(2)[:20_000]
	for i := range y {
		y[i] *= 1.2
	}
	sx, sy := sketchOf(x...), sketchOf(y...)
	for _, p := range []float64{0.5, 0.95} {
		a, b := quantileOf(x, p, 0.95), sx.Quantile(p, 0.95)
		for _, c := range [][2]float64{{a.value, b.value}, {a.Lo, b.Lo}, {a.Hi, b.Hi}} {
			if math.Abs(c[1]/c[0]-1) > SketchError {
				t.Errorf("p=%v: %v of the sketch, %v of the sample", p, b, a)
			}
		}
		d, e := differenceOf(y, x, p, 0.95, 1), sy.QuantileDifference(sx, p, 0.95, 1)
		if tol := 2 * SketchError * 1.2 * a.Hi; math.Abs(d.Lo-e.Lo) > tol || math.Abs(d.Hi-e.Hi) > tol ||
			!hasWarning(e.Warnings, Approximate) {
			t.Errorf("p=%v: difference %v of the sketches, %v of the samples", p, e, d)
		}
	}
}

func TestSketchMemoryIsBounded(t *testing.T) {
	var s Sketch
	for e := -1074; e < 1024; e++ {
		s.Add(math.Ldexp(1, e))
	}
	s.Add(math.MaxFloat64)
	const limit = 35_968 // ln(2¹⁰²⁴)/binWidth, rounded up to whole chunks
	if len(s.counts) > 2*limit || s.first < -limit || s.first+len(s.counts) > limit {
		t.Errorf("bins %d and %d following", s.first, len(s.counts))
	}
	var latencies Sketch
	latencies.Add(1e-6)
	latencies.Add(3600)
	if len(latencies.counts) > 1300 {
		t.Errorf("a microsecond to an hour takes %d counters", len(latencies.counts))
	}
}

func BenchmarkSketchAdd(b *testing.B) {
	x := millionLatencies(1)
	var s Sketch
	i := 0
	for b.Loop() {
		s.Add(x[i%len(x)])
		i++
	}
}

func BenchmarkSketchSummary(b *testing.B) {
	s := sketchOf(millionLatencies(1)[:100_000]...)
	for b.Loop() {
		s.Summary()
	}
}

func TestSpreadKeepsEveryValueAboveNothing(t *testing.T) {
	var s Sketch
	for _, v := range []float64{0, 1e-9, 0.001, 1, 9.99, 10.5, 1e6, 1e300} {
		s.Add(v)
	}
	first, counts := s.Spread(16)
	var n uint64
	for _, c := range counts {
		n += c
	}
	if n != 7 || counts[0] != 1 || counts[len(counts)-1] != 1 || first > -143 || first < -145 {
		t.Errorf("%d values from %d on", n, first)
	}
	for _, v := range []float64{0.0123, 1.1, 3, 987, 1.1e5} {
		var s Sketch
		s.Add(v)
		first, counts := s.Spread(16)
		if len(counts) != 1 || math.Pow(10, float64(first)/16) > v || math.Pow(10, float64(first+1)/16) < v {
			t.Errorf("%v is counted from bin %d on: %v", v, first, counts)
		}
	}
}
