package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestClusteredWilsonIsRsAovAndScoreRoots(t *testing.T) {
	for _, g := range golden(t, "clustered") {
		fs := counts(g.ints("ks"), g.ints("ns"))
		rho, ok := IntraclassCorrelation(fs)
		if !ok {
			t.Errorf("%v: no correlation", fs)
		}
		r := ClusteredWilson(fs, 0.95)
		near(t, fmt.Sprint(fs, " rho"), rho, g.float("rho"), 1e-10)
		near(t, fmt.Sprint(fs, " n_eff"), r.EffectiveN, g.float("neff"), 1e-10)
		near(t, fmt.Sprint(fs, " lo"), r.Lo, g.float("lo"), 1e-10)
		near(t, fmt.Sprint(fs, " hi"), r.Hi, g.float("hi"), 1e-10)
	}
}

func TestClusteredWilsonWhereFamiliesCannotDiffer(t *testing.T) {
	for _, c := range []struct {
		name     string
		families []Count
		k, n     int
		neff     float64
		warning  WarningCode
	}{
		{"no success counts families", []Count{{0, 90}, {0, 90}, {0, 90}}, 0, 270, 3, ""},
		{"no failure counts families", []Count{{90, 90}, {10, 10}}, 100, 100, 2, ""},
		{"one family says nothing of others", []Count{{40, 90}}, 40, 90, 0, OneCluster},
		{"one family without success is one trial", []Count{{0, 90}}, 0, 90, 1, OneCluster},
		{"one family of one trial is that trial", []Count{{1, 1}}, 1, 1, 1, ""},
		{"singletons are independent", []Count{{1, 1}, {0, 1}, {1, 1}, {1, 1}}, 3, 4, 4, ""},
		{"singletons without success are independent", []Count{{0, 1}, {0, 1}}, 0, 2, 2, ""},
		{"empty families are no families", []Count{{0, 0}, {0, 30}, {0, 0}, {0, 60}}, 0, 90, 2, ""},
		{"families alike beyond chance gain nothing", []Count{{3, 6}, {3, 6}}, 6, 12, 12 * estimated(0.95, 1), ""},
		{"families all or nothing are one trial each", []Count{{8, 8}, {0, 8}, {8, 8}}, 16, 24, 3 * estimated(0.95, 2), ""},
	} {
		r := ClusteredWilson(c.families, 0.95)
		if r.K != c.k || r.N != c.n {
			t.Errorf("%s: %d/%d, want the raw %d/%d", c.name, r.K, r.N, c.k, c.n)
		}
		near(t, c.name+": n_eff", r.EffectiveN, c.neff, 1e-12)
		lo, hi := wilson(float64(c.k)/float64(c.n), c.neff, 0.95)
		near(t, c.name+": lo", r.Lo, lo, 1e-12)
		near(t, c.name+": hi", r.Hi, hi, 1e-12)
		if c.warning != "" && !hasWarning(r.Warnings, c.warning) || c.warning == "" && len(r.Warnings) > 0 {
			t.Errorf("%s: warnings %v, want %q", c.name, r.Warnings, c.warning)
		}
	}
}

func TestClusteredWilsonSaysWhereSizesAreTooUnequal(t *testing.T) {
	if r := ClusteredWilson([]Count{{1, 3}, {7, 9}, {20, 41}, {2, 2}, {0, 5}}, 0); !hasWarning(r.Warnings,
		UnequalClusters) {
		t.Errorf("%+v: no warning", r)
	}
	if r := ClusteredWilson([]Count{{1, 9}, {7, 9}, {5, 10}, {8, 9}}, 0); len(r.Warnings) > 0 {
		t.Errorf("%+v: a warning for nearly equal sizes", r)
	}
}

func drawFamilies(t *rapid.T) []Count {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Count {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		return Count{rapid.IntRange(0, n).Draw(t, "k"), n}
	}), 0, 25).Draw(t, "families")
}

func TestClusteredWilsonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs, level := drawFamilies(t), drawLevel(t)
		r := ClusteredWilson(fs, level)
		v, ok := r.Value()
		if !ok {
			if r.Lo != 0 || r.Hi != 1 {
				t.Fatalf("nothing measured, yet [%v, %v]", r.Lo, r.Hi)
			}
			return
		}
		if !(0 <= r.Lo && r.Lo <= v && v <= r.Hi && r.Hi <= 1) {
			t.Fatalf("%v does not hold its rate within [0, 1]", r)
		}
		if least := float64(r.Families) * estimated(r.Level, float64(r.Families-1)); !(least <= r.EffectiveN+1e-9 &&
			r.EffectiveN <= float64(r.N)) {
			t.Fatalf("%v effective trials of %d in %d families", r.EffectiveN, r.N, r.Families)
		}
		if plain := Wilson(r.K, r.N, level); r.Lo > plain.Lo+1e-12 || r.Hi < plain.Hi-1e-12 {
			t.Fatalf("%v is narrower than %v", r, plain)
		}
		mirror := make([]Count, len(fs))
		for i, f := range fs {
			mirror[len(fs)-1-i] = Count{f.N - f.K, f.N}
		}
		if m := ClusteredWilson(mirror, level); math.Abs(m.Lo-(1-r.Hi)) > 1e-9 || math.Abs(m.Hi-(1-r.Lo)) > 1e-9 {
			t.Fatalf("%v is not mirrored by %v", r, m)
		}
	})
}

// Over simulated families, many or few, the interval should hold the true rate about as
// often as its level says, where the plain interval does so far less often.
func TestClusteredWilsonCoversWherePlainWilsonDoesNot(t *testing.T) {
	for _, families := range []int{5, 8, 36} {
		t.Run(fmt.Sprint(families), func(t *testing.T) { coverage(t, families) })
	}
}

func coverage(t *testing.T, families int) {
	rng := rand.New(rand.NewPCG(7, 7))
	const sims, size, p, rho = 2000, 20, 0.3, 0.4
	a, b := p*(1-rho)/rho, (1-p)*(1-rho)/rho // a beta-binomial with this correlation
	clustered, plain := 0, 0
	for range sims {
		fs := make([]Count, families)
		total := 0
		for i := range fs {
			q := betaDraw(rng, a, b)
			for range size {
				if rng.Float64() < q {
					fs[i].K++
				}
			}
			fs[i].N = size
			total += fs[i].K
		}
		if r := ClusteredWilson(fs, 0.95); r.Lo <= p && p <= r.Hi {
			clustered++
		}
		if r := Wilson(total, families*size, 0.95); r.Lo <= p && p <= r.Hi {
			plain++
		}
	}
	if got := float64(clustered) / sims; got < 0.93 || got > 0.97 {
		t.Errorf("clustered interval covers %.3f, want about 0.95", got)
	}
	if got := float64(plain) / sims; got > 0.6 {
		t.Errorf("plain interval covers %.3f of a clustered rate; the simulation is not clustered", got)
	}
}

// betaDraw draws from a beta distribution by Jöhnk's method, which suits small
// parameters.
func betaDraw(rng *rand.Rand, a, b float64) float64 {
	for {
		x, y := math.Pow(rng.Float64(), 1/a), math.Pow(rng.Float64(), 1/b)
		if s := x + y; s > 0 && s <= 1 {
			return x / s
		}
	}
}

func BenchmarkClusteredWilson(b *testing.B) {
	fs := make([]Count, 108)
	for i := range fs {
		fs[i] = Count{i % 31, 30}
	}
	for b.Loop() {
		ClusteredWilson(fs, 0.95)
	}
}
