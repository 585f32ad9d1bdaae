package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestWilsonIsRsPropTest(t *testing.T) {
	for _, g := range golden(t, "wilson") {
		k, n := g.int("k"), g.int("n")
		r := Wilson(k, n, g.float("level"))
		near(t, r.String()+" lo", r.Lo, g.float("lo"), 1e-12)
		near(t, r.String()+" hi", r.Hi, g.float("hi"), 1e-12)
		if len(r.Warnings) > 0 {
			t.Errorf("%v: warnings %v", r, r.Warnings)
		}
	}
}

// Brown, Cai and DasGupta (2001) and Newcombe (1998, Statistics in Medicine
// 17:857–872, table I) print these to four decimals.
func TestWilsonIsNewcombesTable(t *testing.T) {
	for _, c := range []struct {
		k, n   int
		lo, hi float64
	}{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0.0000, 0.1611},
		{1, 29, 0.0061, 0.1718},
	} {
		r := Wilson(c.k, c.n, 0.95)
		near(t, "lo", r.Lo, c.lo, 0.00005)
		near(t, "hi", r.Hi, c.hi, 0.00005)
	}
}

func TestWilsonIsExactAtTheEnds(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 10, 33, 1000, 123457, maxTrials} {
		for _, level := range []float64{0.5, 0.9, 0.95, 0.999999} {
			if r := Wilson(0, n, level); r.Lo != 0 || !(r.Hi > 0) {
				t.Errorf("0/%d at %v: [%v, %v], want a lower end of exactly 0", n, level, r.Lo, r.Hi)
			}
			if r := Wilson(n, n, level); r.Hi != 1 || !(r.Lo < 1) {
				t.Errorf("%d/%d at %v: [%v, %v], want an upper end of exactly 1", n, n, level, r.Lo, r.Hi)
			}
		}
	}
}

func TestALevelThatIsNoneIsReplacedAndSaid(t *testing.T) {
	want := Wilson(3, 10, 0.95)
	for _, level := range []float64{-1, 1, 2, math.NaN(), math.Inf(1)} {
		r := Wilson(3, 10, level)
		if r.Lo != want.Lo || r.Hi != want.Hi || r.Level != 0.95 || !hasWarning(r.Warnings, BadInput) {
			t.Errorf("level %v: %+v, want the interval of 0.95 and a warning", level, r)
		}
	}
	if r := Wilson(3, 10, 0); r.Lo != want.Lo || r.Hi != want.Hi || len(r.Warnings) != 0 {
		t.Errorf("level 0: %+v, want 0.95 without a warning", r)
	}
}

// drawCount draws k of n with n from 1 to limit.
func drawCount(t *rapid.T, limit int) Count {
	n := rapid.IntRange(1, limit).Draw(t, "n")
	return Count{rapid.IntRange(0, n).Draw(t, "k"), n}
}

func drawLevel(t *rapid.T) float64 { return rapid.Float64Range(0.01, 0.9999).Draw(t, "level") }

func TestWilsonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, level := drawCount(t, 5000), drawLevel(t)
		r := Wilson(c.K, c.N, level)
		v, ok := r.Value()
		if !ok || !(0 <= r.Lo && r.Lo <= v && v <= r.Hi && r.Hi <= 1) {
			t.Fatalf("%v does not hold its rate within [0, 1]", r)
		}
		m := Wilson(c.N-c.K, c.N, level)
		if math.Abs(m.Lo-(1-r.Hi)) > 1e-12 || math.Abs(m.Hi-(1-r.Lo)) > 1e-12 {
			t.Fatalf("%v is not mirrored by %v", r, m)
		}
		if c.K < c.N {
			if up := Wilson(c.K+1, c.N, level); up.Lo < r.Lo || up.Hi < r.Hi {
				t.Fatalf("one more success moved %v down to %v", r, up)
			}
		}
		if wide := Wilson(c.K, c.N, (level+1)/2); wide.Lo > r.Lo || wide.Hi < r.Hi {
			t.Fatalf("a higher level narrowed %v to %v", r, wide)
		}
		if ten := Wilson(10*c.K, 10*c.N, level); ten.Hi-ten.Lo > r.Hi-r.Lo {
			t.Fatalf("ten times the trials widened %v to %v", r, ten)
		}
	})
}

func TestOneSidedLevels(t *testing.T) {
	for _, c := range []struct{ level, want float64 }{{0.95, 0.9}, {0, 0.9}, {0.975, 0.95}, {0.5, -1}, {1, -1},
		{math.NaN(), -1}} {
		near(t, "OneSided", OneSided(c.level), c.want, 1e-15)
	}
	if r := Wilson(1, 2, OneSided(0.3)); !hasWarning(r.Warnings, BadInput) {
		t.Error("a one-sided level below one half must be refused by the interval")
	}
}

func BenchmarkWilson(b *testing.B) {
	for b.Loop() {
		Wilson(37, 40, 0.95)
	}
}
