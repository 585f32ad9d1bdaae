package compare

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/memtox/memtox/results/stats"
)

// The interval is made for independent rates. On those it keeps its level; on
// pairs, which rise and fall together, it covers more often, never less.
func TestThePreventedFractionIsCoveredAtItsLevel(t *testing.T) {
	const n, runs = 150, 3000
	for _, c := range []struct{ undefended, defended, shared float64 }{{0.6, 0.2, 0}, {0.9, 0.05, 0}, {0.3, 0.25, 0},
		{0.6, 0.2, 0.9}, {0.5, 0.5, 0.9}} {
		truth := 1 - c.defended/c.undefended
		covered := 0
		for seed := range runs {
			rng := rand.New(rand.NewPCG(uint64(seed), 5))
			a, b := 0, 0
			for range n {
				u := rng.Float64()
				v := u // how hard the case is
				if rng.Float64() >= c.shared {
					v = rng.Float64()
				}
				if u < c.undefended {
					b++
				}
				if v < c.defended {
					a++
				}
			}
			p := prevented(stats.Wilson(a, n, 0.95), stats.Wilson(b, n, 0.95))
			if p.Headroom && (p.Lo == nil || *p.Lo <= truth) && truth <= *p.Hi {
				covered++
			}
		}
		if f := float64(covered) / runs; f < 0.94 || c.shared == 0 && f > 0.965 {
			t.Errorf("%+v: covered in %.3f of runs", c, f)
		}
	}
}

func TestPreventedAtTheEdges(t *testing.T) {
	for _, c := range []struct{ a, b, n int }{{0, 0, 50}, {0, 1, 50}, {50, 1, 50}, {50, 50, 50}, {1, 50, 50}, {0, 1, 1},
		{1, 1, 1}, {0, 0, 0}} {
		p := prevented(stats.Wilson(c.a, c.n, 0.95), stats.Wilson(c.b, c.n, 0.95))
		if p.Headroom != (c.b > 0) ||
			p.Headroom && !((p.Lo == nil || *p.Lo <= *p.Value) && *p.Value <= *p.Hi && *p.Hi <= 1) {
			t.Errorf("%+v: %+v", c, p)
		}
		if b, err := json.Marshal(p); err != nil || !p.Headroom &&
			string(b) != `{"headroom":false,"value":null,"lo":null,"hi":null}` {
			t.Errorf("%+v: %s %v", c, b, err)
		}
	}
}
