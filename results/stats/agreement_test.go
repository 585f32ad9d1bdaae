package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestAUCIsDeLongByPairs(t *testing.T) {
	for i, g := range golden(t, "auc") {
		e := AUC(g.floats("pos"), g.floats("neg"), 0.95)
		v, _ := e.Value()
		near(t, fmt.Sprint(i, " area"), v, g.float("auc"), 1e-13)
		near(t, fmt.Sprint(i, " SE"), e.SE, g.float("se"), 1e-13)
		near(t, fmt.Sprint(i, " lo"), e.Lo, g.float("lo"), 1e-12)
		near(t, fmt.Sprint(i, " hi"), e.Hi, g.float("hi"), 1e-12)
	}
}

func TestAUCWithoutAStandardError(t *testing.T) {
	u := Wilson(0, 3, 0).Hi
	for _, c := range []struct {
		name     string
		pos, neg []float64
		measured bool
		value    float64
		lo, hi   float64
		warning  WarningCode
	}{
		{"no attacks", nil, []float64{1}, false, 0, 0, 1, NotMeasured},
		{"no benign texts", []float64{1}, nil, false, 0, 0, 1, NotMeasured},
		{"a score that is no number", []float64{1, math.NaN()}, []float64{0, 1}, false, 0, 0, 1, BadInput},
		{"one attack", []float64{1}, []float64{0, 0}, true, 1, 0, 1, TooFew},
		{"perfect", []float64{4, 5, 6}, []float64{1, 2, 3, 3}, true, 1, 1 - u, 1, NoVariation},
		{"perfectly wrong", []float64{1, 2, 3}, []float64{4, 5, 6}, true, 0, 0, u, NoVariation},
		{"all tied", []float64{1, 1, 1}, []float64{1, 1, 1}, true, 0.5, 0.5 - u/2, 0.5 + u/2, NoVariation},
		{"infinite scores", []float64{math.Inf(1), 2, 3}, []float64{math.Inf(-1), 1, 1}, true, 1, 1 - u, 1, NoVariation},
	} {
		e := AUC(c.pos, c.neg, 0)
		if v, ok := e.Value(); ok != c.measured || v != c.value || !hasWarning(e.Warnings, c.warning) {
			t.Errorf("%s: %+v", c.name, e)
		}
		near(t, c.name+" lo", e.Lo, c.lo, 1e-12)
		near(t, c.name+" hi", e.Hi, c.hi, 1e-12)
	}
}

func TestAUCProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.Map(rapid.IntRange(0, 20), func(i int) float64 { return float64(i) })
		pos := rapid.SliceOfN(score, 2, 40).Draw(t, "pos")
		neg := rapid.SliceOfN(score, 2, 40).Draw(t, "neg")
		e, swapped := AUC(pos, neg, 0), AUC(neg, pos, 0)
		v, _ := e.Value()
		if !(0 <= e.Lo && e.Lo <= v && v <= e.Hi && e.Hi <= 1) {
			t.Fatalf("%v does not hold its value", e)
		}
		if math.Abs(e.Lo-(1-swapped.Hi)) > 1e-9 || math.Abs(e.Hi-(1-swapped.Lo)) > 1e-9 {
			t.Fatalf("swapping classes turned %v into %v", e, swapped)
		}
		wins := 0.0
		for _, p := range pos {
			for _, n := range neg {
				switch {
				case p > n:
					wins++
				case p == n:
					wins += 0.5
				}
			}
		}
		if want := wins / float64(len(pos)*len(neg)); math.Abs(v-want) > 1e-12 {
			t.Fatalf("%v, want %v of all pairs", v, want)
		}
	})
}

func TestKappaIsTheDeltaMethods(t *testing.T) {
	for i, g := range golden(t, "kappa") {
		cells, size := g.ints("cells"), g.int("size")
		var table [][]int
		for r := range size {
			table = append(table, cells[r*size:(r+1)*size])
		}
		e := Kappa(table, 0.95)
		v, _ := e.Value()
		near(t, fmt.Sprint(i, " kappa"), v, g.float("kappa"), 1e-13)
		near(t, fmt.Sprint(i, " SE"), e.SE, g.float("se"), 1e-8)
		near(t, fmt.Sprint(i, " lo"), e.Lo, g.float("lo"), 1e-7)
		near(t, fmt.Sprint(i, " hi"), e.Hi, g.float("hi"), 1e-7)
	}
}

// Agresti, Categorical Data Analysis (1990), p. 370: 91 married couples, kappa
// 0.129 with standard error 0.069.
func TestKappaIsAgrestisExample(t *testing.T) {
	e := Kappa([][]int{{7, 7, 2, 3}, {2, 8, 3, 7}, {1, 5, 4, 9}, {2, 8, 9, 14}}, 0)
	v, _ := e.Value()
	near(t, "kappa", v, 0.129, 0.0005)
	near(t, "SE", e.SE, 0.069, 0.0005)
}

func TestKappaWhereItIsNotDefined(t *testing.T) {
	for _, c := range []struct {
		name     string
		table    [][]int
		measured bool
		warning  WarningCode
	}{
		{"no table", nil, false, NotMeasured},
		{"empty table", [][]int{{0, 0}, {0, 0}}, false, NotMeasured},
		{"ragged", [][]int{{1, 0}, {1}}, false, BadInput},
		{"negative", [][]int{{1, -1}, {0, 2}}, false, BadInput},
		{"overflow", [][]int{{math.MaxInt, 1}, {0, 2}}, false, BadInput},
		{"one category", [][]int{{9, 0}, {0, 0}}, false, NoVariation},
		{"full agreement", [][]int{{9, 0}, {0, 7}}, true, NoVariation},
	} {
		e := Kappa(c.table, 0)
		if e.Measured() != c.measured || !hasWarning(e.Warnings, c.warning) {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
	e := Kappa([][]int{{9, 0}, {0, 7}}, 0)
	if v, _ := e.Value(); v != 1 || e.Hi != 1 || !(e.Lo > 0.4 && e.Lo < 0.7) {
		t.Errorf("full agreement on 16 texts: %v, want an interval with width", e)
	}
}

func BenchmarkAUC100k(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	pos, neg := make([]float64, 50_000), make([]float64, 50_000)
	for i := range pos {
		pos[i], neg[i] = rng.NormFloat64()+1, rng.NormFloat64()
	}
	for b.Loop() {
		AUC(pos, neg, 0.95)
	}
}
