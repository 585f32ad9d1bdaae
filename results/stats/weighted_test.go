package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// One stratum of single trials is the plain rate, and its interval Wilson's.
func TestOneStratumOfSingleTrialsIsThePlainRate(t *testing.T) {
	f := Families{}
	for i := range 200 {
		f.Add(fmt.Sprint(i), i < 30)
	}
	got, ok := Weighted([]Stratum{{3, f}}, 0.95)
	want := Wilson(30, 200, 0.95)
	if !ok || math.Abs(got.Rate-0.15) > 1e-12 || math.Abs(got.Lo-want.Lo) > 0.002 || math.Abs(got.Hi-want.Hi) > 0.002 {
		t.Errorf("%+v, want %v to %v", got, want.Lo, want.Hi)
	}
}

func TestWeightsDecideAndWhatIsEmptyDoesNotCount(t *testing.T) {
	some := Families{"a": {K: 5, N: 5}, "b": {K: 5, N: 5}}
	none := Families{"c": {N: 5}, "d": {N: 5}}
	got, ok := Weighted([]Stratum{{1, some}, {3, none}, {5, Families{}}, {0, Families{"e": {K: 1, N: 1}}}}, 0.95)
	if !ok || math.Abs(got.Rate-0.25) > 1e-12 || got.Trials != 20 || got.Lo > 0.1 || got.Hi < 0.5 {
		t.Errorf("%+v", got)
	}
	if _, ok := Weighted([]Stratum{{1, Families{}}, {0, some}}, 0.95); ok {
		t.Error("nothing is measured")
	}
	zero, _ := Weighted([]Stratum{{1, none}, {1, none}}, 0.95)
	if zero.Rate != 0 || zero.Hi < 0.3 {
		t.Errorf("four families of no success: %+v", zero)
	}
}

// The interval holds the true rate about as often as it says, with families that
// are alike within.
func TestTheWeightedIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	weights, p := []float64{0.5, 0.3, 0.2}, []float64{0.2, 0.6, 0.05}
	truth := 0.
	for i := range p {
		truth += weights[i] * p[i]
	}
	covered := 0
	const runs = 2000
	for range runs {
		var strata []Stratum
		for i := range p {
			f := Families{}
			for k := range 25 {
				q := p[i] * 1.5
				if k%2 == 0 {
					q = p[i] * 0.5
				}
				c := Count{N: 5}
				for range 5 {
					if r.Float64() < q {
						c.K++
					}
				}
				f[fmt.Sprint(i, "/", k)] = c
			}
			strata = append(strata, Stratum{weights[i], f})
		}
		if s, _ := Weighted(strata, 0.95); s.Lo <= truth && truth <= s.Hi {
			covered++
		}
	}
	if share := float64(covered) / runs; share < 0.93 {
		t.Errorf("covered in %.3f of the runs", share)
	}
}
