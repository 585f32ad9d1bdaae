package stats

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestClopperPearsonIsRsBinomTest(t *testing.T) {
	for _, g := range golden(t, "clopper_pearson") {
		r := clopperPearson(g.int("k"), g.int("n"), g.float("level"))
		tol := 1e-12
		if r.N > 1_000_000 { // the incomplete beta function has fewer digits there
			tol = 1e-10
		}
		near(t, r.String()+" lo", r.Lo, g.float("lo"), tol)
		near(t, r.String()+" hi", r.Hi, g.float("hi"), tol)
		if lo := g.float("lo"); lo > 0 && lo < 1e-3 {
			near(t, r.String()+" small lo", r.Lo/lo, 1, 1e-5)
			near(t, r.String()+" small hi", r.Hi/g.float("hi"), 1, 1e-5)
		}
	}
}

func TestClopperPearsonOfNothing(t *testing.T) {
	if r := clopperPearson(0, 0, 0); r.Measured() || r.Lo != 0 || r.Hi != 1 || !hasWarning(r.Warnings, NotMeasured) {
		t.Errorf("0/0: %+v", r)
	}
	if r := clopperPearson(2, 1, 0); r.Measured() || !hasWarning(r.Warnings, BadInput) {
		t.Errorf("2/1: %+v", r)
	}
	if r := clopperPearson(1, maxTrials+1, 0); r.Measured() || !hasWarning(r.Warnings, BadInput) {
		t.Errorf("more than a billion: %+v", r)
	}
}

func TestClusteredClopperPearsonIsExactOnTheEffectiveTrials(t *testing.T) {
	singletons := []Count{{1, 1}, {0, 1}, {1, 1}, {1, 1}}
	a, b := ClusteredClopperPearson(singletons, 0.9), clopperPearson(3, 4, 0.9)
	if a.Lo != b.Lo || a.Hi != b.Hi {
		t.Errorf("singletons: %v, want %v", a, b)
	}
	if a, b := ClusteredClopperPearson([]Count{{0, 90}, {0, 90}, {0, 90}}, 0),
		clopperPearson(0, 3, 0); a.Lo != 0 || a.Hi != b.Hi {
		t.Errorf("no success in three families: %v, want the ends of %v", a, b)
	}
	// Korn and Graubard's interval by R: qbeta(0.025, x, n-x+1) and
	// qbeta(0.975, x+1, n-x) with n = 4.26376847668907, t on 3 degrees of freedom, and x = 0.55 n.
	r := ClusteredClopperPearson([]Count{{9, 10}, {4, 10}, {7, 10}, {2, 10}}, 0.95)
	near(t, "lo", r.Lo, 0.0964566886488322, 1e-12)
	near(t, "hi", r.Hi, 0.944003282201581, 1e-12)
	if r := ClusteredClopperPearson([]Count{{9, 10}}, 0); r.Lo != 0 || r.Hi != 1 {
		t.Errorf("one family: %v", r)
	}
	if r := ClusteredClopperPearson(nil, 0); r.Measured() || r.Lo != 0 || r.Hi != 1 {
		t.Errorf("nothing: %+v", r)
	}
}

func TestClopperPearsonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, level := drawCount(t, 2000), drawLevel(t)
		r := clopperPearson(c.K, c.N, level)
		if v, _ := r.Value(); !(0 <= r.Lo && r.Lo <= v && v <= r.Hi && r.Hi <= 1) {
			t.Fatalf("%v does not hold its rate", r)
		}
		if (c.K == 0) != (r.Lo == 0) || (c.K == c.N) != (r.Hi == 1) {
			t.Fatalf("%v: an end is 0 or 1 exactly at k=0 or k=n", r)
		}
		m := clopperPearson(c.N-c.K, c.N, level)
		if math.Abs(m.Lo-(1-r.Hi)) > 1e-10 || math.Abs(m.Hi-(1-r.Lo)) > 1e-10 {
			t.Fatalf("%v is not mirrored by %v", r, m)
		}
		if c.K < c.N {
			if up := clopperPearson(c.K+1, c.N, level); up.Lo < r.Lo || up.Hi < r.Hi {
				t.Fatalf("one more success moved %v down to %v", r, up)
			}
		}
	})
}

func TestWorstCaseHoldsWhateverTheMissingTrialsWere(t *testing.T) {
	lo, hi, ok := WorstCase(9, 90, 10)
	if lo != 0.09 || hi != 0.19 || !ok {
		t.Errorf("9 of 90 with 10 not scored: [%v, %v], %v", lo, hi, ok)
	}
	if lo, hi, ok := WorstCase(0, 0, 3); lo != 0 || hi != 1 || !ok {
		t.Errorf("nothing scored of 3: [%v, %v], %v", lo, hi, ok)
	}
	for _, c := range [][3]int{{0, 0, 0}, {2, 1, 0}, {0, 1, -1}, {-1, 1, 0}, {0, 1, math.MaxInt}} {
		if lo, hi, ok := WorstCase(c[0], c[1], c[2]); lo != 0 || hi != 1 || ok {
			t.Errorf("%v: [%v, %v], %v; want no answer", c, lo, hi, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := drawCount(t, 1000)
		missing := rapid.IntRange(0, 100).Draw(t, "missing")
		found := rapid.IntRange(0, missing).Draw(t, "found")
		lo, hi, ok := WorstCase(c.K, c.N, missing)
		truth := float64(c.K+found) / float64(c.N+missing)
		if !ok || truth < lo-1e-15 || truth > hi+1e-15 {
			t.Fatalf("%v is outside [%v, %v]", truth, lo, hi)
		}
	})
}

func TestEstimateJSONHasNullsForWhatIsNotKnown(t *testing.T) {
	for _, c := range []struct {
		e    Estimate
		want string
	}{
		{Estimate{}, `{"value":null,"lo":null,"hi":null,"level":0,"n":0}`},
		{Newcombe(Pairs{}, 0), `{"value":null,"lo":null,"hi":null,"level":0.95,"n":0}`},
		{quantileOf([]float64{7}, 0.5, 0), `{"value":7,"lo":null,"hi":null,"level":0.95,"n":1}`},
		{quantileOf([]float64{1, 2, 3, 4, 5, 6}, 0.5, 0), `{"value":3.5,"lo":1,"hi":6,"level":0.95,"n":6}`},
	} {
		b, err := json.Marshal(c.e)
		if err != nil || string(b) != c.want {
			t.Errorf("Marshal = %s, %v; want %s", b, err, c.want)
		}
	}
}

func TestEstimateString(t *testing.T) {
	if got := (Estimate{}).String(); got != "not measured" {
		t.Error(got)
	}
	if got, want := Newcombe(Pairs{59, 6, 16, 80}, 0).String(), "-0.06211 [-0.1186, -0.004625]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
