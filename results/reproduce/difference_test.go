package reproduce

import (
	"math"
	"testing"

	"github.com/memtox/memtox/results/stats"
)

// With Wilson intervals on both sides it is Newcombe's interval for two samples.
func TestTheDifferenceIsNewcombes(t *testing.T) {
	for _, c := range [][2]stats.Count{{{K: 256, N: 600}, {K: 240, N: 570}}, {{K: 0, N: 40}, {K: 3, N: 20}},
		{{K: 15, N: 15}, {K: 12, N: 15}}} {
		a, b := stats.Wilson(c[0].K, c[0].N, 0.95), stats.Wilson(c[1].K, c[1].N, 0.95)
		va, _ := a.Value()
		vb, _ := b.Value()
		d, from, to := difference(va, a.Lo, a.Hi, vb, b.Lo, b.Hi)
		want := stats.NewcombeIndependent(c[0], c[1], 0.95)
		v, _ := want.Value()
		if math.Abs(d-v) > 1e-12 || math.Abs(from-want.Lo) > 1e-12 || math.Abs(to-want.Hi) > 1e-12 {
			t.Errorf("%v: %v [%v, %v], want %v", c, d, from, to, want)
		}
	}
}
