package stats

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the arguments, no function panics, no result holds a NaN, and every
// interval holds its value.
func TestNoArgumentsGiveANaN(t *testing.T) {
	ints := rapid.OneOf(rapid.IntRange(-2, 40), rapid.Int(),
		rapid.SampledFrom([]int{maxTrials, maxTrials + 1, math.MaxInt, math.MinInt}))
	odd := rapid.SampledFrom([]float64{0, 1, -1, 0.5, 0.95, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64,
		-math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1e-300, 1 - 1e-16, math.Copysign(0, -1)})
	floats := rapid.OneOf(odd, rapid.Float64Range(-1, 2), rapid.Float64())
	rapid.Check(t, func(t *rapid.T) {
		level, p, x := floats.Draw(t, "level"), floats.Draw(t, "p"), floats.Draw(t, "x")
		a, b := Count{ints.Draw(t, "ka"), ints.Draw(t, "na")}, Count{ints.Draw(t, "kb"), ints.Draw(t, "nb")}
		pairs := Pairs{ints.Draw(t, "both"), ints.Draw(t, "a"), ints.Draw(t, "b"), ints.Draw(t, "neither")}
		sample := rapid.SliceOfN(floats, 0, 12).Draw(t, "sample")
		cs := []Cluster{{a.N, x}, {b.N, p}, {3, 1}}
		seed := rapid.Uint64().Draw(t, "seed")
		var sketch Sketch
		for _, v := range sample {
			sketch.Add(v)
		}

		for name, r := range map[string]Rate{
			"Wilson": Wilson(a.K, a.N, level), "ClopperPearson": clopperPearson(a.K, a.N, level),
			"ClusteredWilson":         ClusteredWilson([]Count{a, b, {1, 3}}, level),
			"ClusteredClopperPearson": ClusteredClopperPearson([]Count{a, b}, level),
		} {
			v, ok := r.Value()
			if !ok {
				v = (r.Lo + r.Hi) / 2
			}
			if !(0 <= r.Lo && r.Lo <= v && v <= r.Hi && r.Hi <= 1) || math.IsNaN(r.ICC) || math.IsNaN(r.EffectiveN) ||
				!(r.Level > 0 && r.Level < 1) {
				t.Fatalf("%s: %+v", name, r)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for name, e := range map[string]Estimate{
			"Newcombe": Newcombe(pairs, level), "NewcombeIndependent": NewcombeIndependent(a, b, level),
			"PairedClustered": PairedClustered(cs, level), "PairedClusterBootstrap": PairedClusterBootstrap(cs, level, seed),
			"Sketch.Quantile": sketch.Quantile(p, level), "Sketch.QuantileDifference": sketch.QuantileDifference(&sketch, p,
				level, seed),
			"AUC":   AUC(sample, []float64{0, 1, x}, level),
			"Kappa": Kappa([][]int{{a.K, a.N}, {b.K, b.N}}, level),
		} {
			v, ok := e.Value()
			if ok && !(e.Lo <= v && v <= e.Hi) || !ok && !(e.Lo < e.Hi && len(e.Warnings) > 0) || math.IsNaN(e.SE) ||
				math.IsNaN(e.DF) {
				t.Fatalf("%s: %+v", name, e)
			}
			if _, err := json.Marshal(e); err != nil {
				t.Fatalf("%s: %+v: %v", name, e, err)
			}
		}
		for name, test := range map[string]Test{
			"McNemar": McNemar(pairs), "SignFlip": SignFlip(cs, seed),
		} {
			if !(test.P >= 0 && test.P <= 1) || !test.Measured && test.P != 1 {
				t.Fatalf("%s: %+v", name, test)
			}
		}
		if v, _ := PairedPower(x, p, level, level); !(v >= 0 && v <= 1) {
			t.Fatalf("power %v", v)
		}
		if v, _ := MinimumDetectableEffect(x, p, level, level); !(v >= 0 && v <= 1) {
			t.Fatalf("effect %v", v)
		}
		if lo, hi, _ := WorstCase(a.K, a.N, b.N); math.IsNaN(lo) || math.IsNaN(hi) {
			t.Fatalf("bounds %v, %v", lo, hi)
		}
		if rho, ok := IntraclassCorrelation([]Count{a, b}); math.IsNaN(rho) || !ok && rho != 0 {
			t.Fatalf("correlation %v, %v", rho, ok)
		}
	})
}

// Student's t comes from an inverse that loses digits with many degrees of
// freedom; it must still lie between the normal and the t of fewer.
func TestCriticalTFallsToCriticalZ(t *testing.T) {
	near(t, "z", criticalZ(0.95), 1.959963984540054, 1e-14)
	near(t, "t on 1", criticalT(0.95, 1), 12.70620473617471, 1e-10)
	near(t, "t on 29", criticalT(0.95, 29), 2.045229642132703, 1e-10)
	near(t, "t on 1000", criticalT(0.95, 1000), 1.962339080826408, 1e-9)
	near(t, "t on a million", criticalT(0.95, 1e6), 1.959966356, 1e-7)
}
