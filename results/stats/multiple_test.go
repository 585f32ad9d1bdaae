package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAdjustedPValuesAreRs(t *testing.T) {
	for _, g := range golden(t, "adjusted") {
		p := g.floats("p")
		before := slices.Clone(p)
		for name, f := range map[string]func([]float64) ([]float64, []Warning){"holm": Holm, "bh": BenjaminiHochberg} {
			got, ws := f(p)
			for i, want := range g.floats(name) {
				near(t, fmt.Sprint(name, " of ", p, " at ", i), got[i], want, 1e-14)
			}
			if len(ws) > 0 {
				t.Errorf("%s of %v: warnings %v", name, p, ws)
			}
		}
		if !slices.Equal(p, before) {
			t.Error("the argument was changed")
		}
	}
}

func TestAdjustedPValuesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 30).Draw(t, "p")
		holm, _ := Holm(p)
		bh, _ := BenjaminiHochberg(p)
		for i := range p {
			if !(p[i] <= bh[i] && bh[i] <= holm[i]+1e-15 && holm[i] <= 1) {
				t.Fatalf("raw %v, BH %v, Holm %v", p[i], bh[i], holm[i])
			}
			for j := range p {
				if p[i] < p[j] && (holm[i] > holm[j] || bh[i] > bh[j]) {
					t.Fatalf("adjusting turned the order of %v and %v round", p[i], p[j])
				}
			}
		}
	})
}

func TestWhatIsNoPValueCountsAsOne(t *testing.T) {
	p := []float64{0.01, math.NaN(), -1, 2}
	for name, f := range map[string]func([]float64) ([]float64, []Warning){"Holm": Holm, "BH": BenjaminiHochberg} {
		got, ws := f(p)
		want, _ := f([]float64{0.01, 1, 1, 1})
		if !slices.Equal(got, want) || len(ws) != 3 || !hasWarning(ws, BadInput) {
			t.Errorf("%s: %v with %v", name, got, ws)
		}
		if got, ws := f(nil); len(got) != 0 || len(ws) != 0 {
			t.Errorf("%s of nothing: %v with %v", name, got, ws)
		}
	}
}
