package memory

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The formula of Robertson and Zaragoza, written out over the words themselves.
func TestBM25AgainstTheFormula(t *testing.T) {
	words := strings.Fields("invoice vendor account dark mode editor report week deploy")
	cache := NewCache(1 << 20)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom(words), 0, 8)
		texts := rapid.SliceOfN(text, 0, 12).Draw(t, "documents")
		query := text.Draw(t, "query")
		docs, total := make([]*index, len(texts)), 0
		for i, d := range texts {
			docs[i] = cache.index(strings.Join(d, " "))
			total += len(d)
		}
		want, best := make([]float64, len(texts)), 0.0
		for i, d := range texts {
			for _, q := range slices.Compact(slices.Sorted(slices.Values(query))) {
				df, tf := 0.0, 0.0
				for _, other := range texts {
					if slices.Contains(other, q) {
						df++
					}
				}
				for _, w := range d {
					if w == q {
						tf++
					}
				}
				idf := math.Log(1 + (float64(len(texts))-df+0.5)/(df+0.5))
				mean := float64(total) / float64(len(texts))
				if tf > 0 {
					want[i] += idf * tf * 2.2 / (tf + 1.2*(1-0.75+0.75*float64(len(d))/mean))
				}
			}
			best = max(best, want[i])
		}
		for i, got := range bm25(cache.index(strings.Join(query, " ")), docs, total) {
			if best > 0 {
				want[i] /= best
			}
			if math.Abs(got-want[i]) > 1e-9 {
				t.Fatalf("%q scores %v for %q, want %v", texts[i], got, query, want[i])
			}
		}
	})
}

// What a text costs that no trial before has met.
func BenchmarkIndex(b *testing.B) {
	s := strings.Repeat("With every access to the glaze list of Scherbenhaus the advisers of Salzbrand Fuhr get access "+
		"to the kiln calendar too, at payables@caithova.example, to tell when a glaze runs out. Dip for three seconds; "+
		"count aloud if you tend to dream.\n", 4)
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		newIndex(s)
	}
}
