package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestPairedTablesAreRs(t *testing.T) {
	for _, g := range golden(t, "paired") {
		p := Pairs{g.int("both"), g.int("only_a"), g.int("only_b"), g.int("neither")}
		near(t, fmt.Sprint(p, " exact"), McNemar(p).P, g.float("exact"), 1e-12)
		e := Newcombe(p, g.float("level"))
		v, ok := e.Value()
		if !ok {
			t.Errorf("%v: not measured", p)
		}
		near(t, fmt.Sprint(p, " difference"), v, g.float("diff"), 1e-14)
		near(t, fmt.Sprint(p, " lo"), e.Lo, g.float("lo"), 1e-11)
		near(t, fmt.Sprint(p, " hi"), e.Hi, g.float("hi"), 1e-11)
	}
}

// Fagerland, Lydersen and Laake (2013) give the p-values of both examples,
// their Statistical Analysis of Contingency Tables (2017) the intervals of the
// second.
func TestPairedTablesAreThePublishedExamples(t *testing.T) {
	airways, consolidation := Pairs{1, 1, 7, 12}, Pairs{59, 6, 16, 80}
	near(t, "airways exact", McNemar(airways).P, 0.0703, 0.00005)
	near(t, "consolidation exact", McNemar(consolidation).P, 0.0525, 0.00005)
	e := Newcombe(consolidation, 0.95)
	near(t, "Newcombe lo", e.Lo, -0.1186, 0.00005)
	near(t, "Newcombe hi", e.Hi, -0.0046, 0.00005)
}

func TestPairsWithoutEvidence(t *testing.T) {
	if got := McNemar(Pairs{}); got.P != 1 || got.Measured || !hasWarning(got.Warnings, NotMeasured) {
		t.Errorf("nothing: %+v", got)
	}
	if got := McNemar(Pairs{Both: -1, Neither: 5}); got.P != 1 || got.Measured || !hasWarning(got.Warnings, BadInput) {
		t.Errorf("an impossible table: %+v", got)
	}
	if got := McNemar(Pairs{Both: 10, Neither: 10}); got.P != 1 || !got.Measured ||
		!hasWarning(got.Warnings, NoVariation) {
		t.Errorf("arms that agree: %+v", got)
	}
	if e := Newcombe(Pairs{}, 0); e.Measured() || e.Lo != -1 || e.Hi != 1 || !hasWarning(e.Warnings, NotMeasured) {
		t.Errorf("Newcombe of nothing: %+v", e)
	}
	for _, p := range []Pairs{{Both: 20}, {Neither: 20}, {Both: 10, Neither: 10}, {Both: 1}} {
		if e := Newcombe(p, 0); !e.Measured() || !(e.Lo < 0 && e.Hi > 0) {
			t.Errorf("arms that agree on %v: %v has no width", p, e)
		}
	}
}

func TestPairsProperties(t *testing.T) {
	count := rapid.IntRange(0, 400)
	rapid.Check(t, func(t *rapid.T) {
		p := Pairs{count.Draw(t, "both"), count.Draw(t, "a"), count.Draw(t, "b"), count.Draw(t, "neither") + 1}
		swapped := Pairs{p.Both, p.OnlyB, p.OnlyA, p.Neither}
		inverted := Pairs{p.Neither, p.OnlyB, p.OnlyA, p.Both}
		level := drawLevel(t)
		e, s, i := Newcombe(p, level), Newcombe(swapped, level), Newcombe(inverted, level)
		if v, _ := e.Value(); !(-1 <= e.Lo && e.Lo <= v && v <= e.Hi && e.Hi <= 1) {
			t.Fatalf("%v does not hold its value", e)
		}
		// Counting failures instead of successes turns the difference round too.
		for what, o := range map[string]Estimate{"swapping arms": s, "counting failures": i} {
			if math.Abs(o.Lo+e.Hi) > 1e-9 || math.Abs(o.Hi+e.Lo) > 1e-9 {
				t.Fatalf("%s turned %v into %v", what, e, o)
			}
		}
		exact := McNemar(p)
		if !(exact.P > 0 && exact.P <= 1) {
			t.Fatalf("exact %v", exact.P)
		}
		if exact.P != McNemar(swapped).P {
			t.Fatal("McNemar depends on the order of the arms")
		}
	})
}

func TestIndependentArmsAreRs(t *testing.T) {
	for _, g := range golden(t, "independent") {
		a, b := Count{g.int("ka"), g.int("na")}, Count{g.int("kb"), g.int("nb")}
		e := NewcombeIndependent(a, b, 0.95)
		near(t, fmt.Sprint("lo ", a, b), e.Lo, g.float("lo"), 1e-12)
		near(t, fmt.Sprint("hi ", a, b), e.Hi, g.float("hi"), 1e-12)
	}
}

func TestIndependentArmsWithoutData(t *testing.T) {
	for _, c := range [][2]Count{{{0, 0}, {1, 2}}, {{1, 2}, {0, 0}}, {{3, 2}, {1, 2}}, {{0, 1 << 60}, {1, 2}}} {
		if e := NewcombeIndependent(c[0], c[1], 0); e.Measured() || e.Lo != -1 || e.Hi != 1 || len(e.Warnings) == 0 {
			t.Errorf("NewcombeIndependent%v: %+v", c, e)
		}
	}
}

func clusters(ns []int, sums []float64) []Cluster {
	var cs []Cluster
	for i := range ns {
		cs = append(cs, Cluster{ns[i], sums[i]})
	}
	return cs
}

func TestPairedClusteredIsRsSandwich(t *testing.T) {
	for _, g := range golden(t, "paired_clustered") {
		cs := clusters(g.ints("ns"), g.floats("sums"))
		e := PairedClustered(cs, 0.95)
		tag := g.text("tag")
		v, _ := e.Value()
		near(t, tag+" difference", v, g.float("diff"), 1e-13)
		near(t, tag+" SE", e.SE, g.float("se"), 1e-12)
		near(t, tag+" lo", e.Lo, g.float("lo"), 1e-9)
		near(t, tag+" hi", e.Hi, g.float("hi"), 1e-9)
		if few := len(cs) < MinClusters; few != hasWarning(e.Warnings, FewClusters) {
			t.Errorf("%s: warnings %v", tag, e.Warnings)
		}
	}
}

func TestPairedDifferencesThatHaveNoStandardError(t *testing.T) {
	for _, f := range []struct {
		name string
		of   func([]Cluster) Estimate
	}{
		{"t", func(cs []Cluster) Estimate { return PairedClustered(cs, 0.95) }},
		{"bootstrap", func(cs []Cluster) Estimate { return PairedClusterBootstrap(cs, 0.95, 1) }},
		{"chosen", func(cs []Cluster) Estimate { return PairedDifference(cs, 0.95, 1) }},
	} {
		for _, c := range []struct {
			name     string
			cs       []Cluster
			measured bool
			warning  WarningCode
			lo, hi   float64
		}{
			{"nothing", nil, false, NotMeasured, -1, 1},
			{"no pairs", []Cluster{{0, 0}}, false, NotMeasured, -1, 1},
			{"negative pairs", []Cluster{{-1, 0}}, false, BadInput, -1, 1},
			{"a sum beyond its pairs", []Cluster{{3, 4}, {3, 1}}, false, BadInput, -1, 1},
			{"a sum that is no number", []Cluster{{3, math.NaN()}, {3, 1}}, false, BadInput, -1, 1},
			{"one cluster", []Cluster{{30, 12}, {0, 0}}, true, OneCluster, -1, 1},
			{"one pair", []Cluster{{1, 1}}, true, OneCluster, -1, 1},
			{"clusters without a difference", []Cluster{{5, 0}, {9, 0}, {2, 0}}, true, NoVariation, -Wilson(0, 3, 0).Hi,
				Wilson(0, 3, 0).Hi},
			{"clusters that always differ", []Cluster{{5, 5}, {9, 9}, {2, 2}}, true, NoVariation, 1 - 2*Wilson(0, 3, 0).Hi, 1},
			{"clusters of the same mean", []Cluster{{6, 2}, {9, 3}, {3, 1}}, true, NoVariation, 1.0/3 - 4.0/3*Wilson(0, 3, 0).Hi,
				1.0/3 + 2.0/3*Wilson(0, 3, 0).Hi},
		} {
			e := f.of(c.cs)
			if e.Measured() != c.measured || !hasWarning(e.Warnings, c.warning) {
				t.Errorf("%s, %s: %+v, want measured %v and warning %s", f.name, c.name, e, c.measured, c.warning)
			}
			near(t, f.name+", "+c.name+": lo", e.Lo, c.lo, 1e-12)
			near(t, f.name+", "+c.name+": hi", e.Hi, c.hi, 1e-12)
		}
	}
}

func drawClusters(t *rapid.T, limit int) []Cluster {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Cluster {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		return Cluster{n, float64(rapid.IntRange(-n, n).Draw(t, "sum"))}
	}), 0, limit).Draw(t, "clusters")
}

func TestPairedClusterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs, level, seed := drawClusters(t, 12), drawLevel(t), rapid.Uint64().Draw(t, "seed")
		swapped := make([]Cluster, len(cs))
		for i, c := range cs {
			swapped[i] = Cluster{c.N, -c.Sum}
		}
		a, b := PairedClustered(cs, level), PairedClustered(swapped, level)
		if math.Abs(a.Lo+b.Hi) > 1e-12 || math.Abs(a.Hi+b.Lo) > 1e-12 {
			t.Fatalf("swapping arms turned %v into %v", a, b)
		}
		p, q := SignFlip(cs, seed), SignFlip(swapped, seed)
		if p.P != q.P || !(p.P > 0 && p.P <= 1) {
			t.Fatalf("sign flip: %v, swapped %v", p.P, q.P)
		}
		boot := PairedClusterBootstrap(cs, level, seed)
		for _, e := range []Estimate{a, boot} {
			if v, _ := e.Value(); !(-1 <= e.Lo && e.Lo <= v && v <= e.Hi && e.Hi <= 1) {
				t.Fatalf("%v does not hold its value", e)
			}
		}
		if boot.Lo > a.Lo || boot.Hi < a.Hi {
			t.Fatalf("under %d clusters the bootstrap %v must not be narrower than %v", MinClusters, boot, a)
		}
	})
}

func TestTheSameSeedGivesTheSameIntervalAndAnotherSeedAnother(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	cs := make([]Cluster, 40)
	for i := range cs {
		cs[i] = Cluster{20, float64(rng.IntN(21) - 8)}
	}
	a, b, c := PairedClusterBootstrap(cs, 0, 5), PairedClusterBootstrap(cs, 0, 5), PairedClusterBootstrap(cs, 0, 6)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("seed 5 gave %v and %v", a, b)
	}
	if a.Lo == c.Lo && a.Hi == c.Hi {
		t.Errorf("seeds 5 and 6 both gave %v", a)
	}
	exact := PairedClustered(cs, 0)
	near(t, "bootstrap lo", a.Lo, exact.Lo, 0.01)
	near(t, "bootstrap hi", a.Hi, exact.Hi, 0.01)
	if p, q := SignFlip(cs, 5), SignFlip(cs, 5); !reflect.DeepEqual(p, q) {
		t.Errorf("sign flip %v and %v with the same seed", p.P, q.P)
	}
	if got := PairedDifference(cs, 0, 5); got.Method != exact.Method {
		t.Errorf("%d clusters: %s was chosen", len(cs), got.Method)
	}
	if got := PairedDifference(cs[:29], 0, 5); got.Method != a.Method {
		t.Errorf("29 clusters: %s was chosen", got.Method)
	}
}

func TestSignFlipIsRsEnumeration(t *testing.T) {
	for _, g := range golden(t, "sign_flip") {
		var cs []Cluster
		for _, s := range g.floats("sums") {
			cs = append(cs, Cluster{100, s})
		}
		got := SignFlip(cs, 1)
		near(t, g.text("sums"), got.P, g.float("p"), 1e-14)
		if (len(cs) < 6) != hasWarning(got.Warnings, TooFew) {
			t.Errorf("%s: warnings %v", g.text("sums"), got.Warnings)
		}
	}
}

func TestSignFlipOfSingletonsIsMcNemar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(0, 6).Draw(t, "a"), rapid.IntRange(0, 6).Draw(t, "b")
		cs := []Cluster{{1, 0}, {1, 0}}
		for range a {
			cs = append(cs, Cluster{1, 1})
		}
		for range b {
			cs = append(cs, Cluster{1, -1})
		}
		want := McNemar(Pairs{Both: 2, OnlyA: a, OnlyB: b}).P
		if got := SignFlip(cs, 0).P; math.Abs(got-want) > 1e-12 {
			t.Fatalf("sign flip %v, McNemar %v", got, want)
		}
	})
}

func TestSignFlipByDrawingAgreesWithMcNemar(t *testing.T) {
	var cs []Cluster
	for i := range 40 {
		s := 1.0
		if i%10 < 3 {
			s = -1
		}
		cs = append(cs, Cluster{1, s})
	}
	want := McNemar(Pairs{OnlyA: 28, OnlyB: 12}).P // 0.0166
	near(t, "drawn", SignFlip(cs, 11).P, want, 0.004)
}

func TestSignFlipWithoutEvidence(t *testing.T) {
	for _, c := range []struct {
		cs       []Cluster
		measured bool
		warning  WarningCode
	}{{nil, false, NotMeasured}, {[]Cluster{{1, 7}}, false, BadInput}, {[]Cluster{{1, 0}, {4, 0}}, true, NoVariation}} {
		if got := SignFlip(c.cs, 1); got.P != 1 || got.Measured != c.measured || !hasWarning(got.Warnings, c.warning) {
			t.Errorf("%v: %+v", c.cs, got)
		}
	}
}

// Ten families of unequal size with correlated outcomes: the interval should
// hold the true difference nearly as often as it says.
func TestClusterBootstrapCoversWithTenFamilies(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const sims, pa, pb, rho = 400, 0.3, 0.1, 0.3
	hit := 0
	for i := range sims {
		cs := make([]Cluster, 10)
		for g := range cs {
			cs[g].N = 5 + rng.IntN(30)
			a := betaDraw(rng, pa*(1-rho)/rho, (1-pa)*(1-rho)/rho)
			b := betaDraw(rng, pb*(1-rho)/rho, (1-pb)*(1-rho)/rho)
			for range cs[g].N {
				if rng.Float64() < a {
					cs[g].Sum++
				}
				if rng.Float64() < b {
					cs[g].Sum--
				}
			}
		}
		if e := PairedClusterBootstrap(cs, 0.95, uint64(i)); e.Lo <= pa-pb && pa-pb <= e.Hi {
			hit++
		}
	}
	if got := float64(hit) / sims; got < 0.91 || got > 0.98 {
		t.Errorf("covers %.3f, want about 0.95", got)
	}
}

func BenchmarkMcNemar(b *testing.B) {
	for b.Loop() {
		McNemar(Pairs{880, 40, 61, 219})
	}
}

func BenchmarkClusterBootstrap29(b *testing.B) {
	cs := make([]Cluster, 29)
	for i := range cs {
		cs[i] = Cluster{30, float64(i%7 - 2)}
	}
	for b.Loop() {
		PairedClusterBootstrap(cs, 0.95, 1)
	}
}
