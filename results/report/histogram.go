package report

import "math"

// perDecade is how many bins of a histogram make a factor of ten.
const perDecade = 16

// The bins reach from a nanosecond to about a day, in microseconds; what lies
// outside is counted in the outermost.
const (
	firstBin = -3 * perDecade
	bins     = 14 * perDecade
)

// histogram counts latencies in microseconds in bins of equal width on a
// logarithmic axis.
type histogram struct {
	n    [bins]uint64
	size uint64
}

func (h *histogram) add(us float64) {
	b := 0
	if us > 0 {
		b = min(max(int(math.Floor(math.Log10(us)*perDecade))-firstBin, 0), bins-1)
	}
	h.n[b]++
	h.size++
}

// extent is the first and the last bin that holds something; ok is false for an
// empty histogram.
func (h *histogram) extent() (from, to int, ok bool) {
	from, to = -1, -1
	for i, n := range h.n {
		if n > 0 {
			if from < 0 {
				from = i
			}
			to = i
		}
	}
	return from, to, from >= 0
}

// decade is where a bin begins, as a power of ten of a microsecond.
func decade(bin int) float64 { return float64(bin+firstBin) / perDecade }
