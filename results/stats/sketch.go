package stats

import (
	"math"
	"sort"
)

const (
	// SketchError is the largest relative error of a value read from a [Sketch].
	SketchError = 0.01
	// binError leaves room for rounding under SketchError.
	binError = 0.0099
	// leastBinned is the smallest value that has a bin. Below the normal numbers
	// math.Log is not accurate on all machines.
	leastBinned = 0x1p-1022
	// binChunk is how many bins are made at a time, so that values that come in
	// falling order do not move the bins for every value.
	binChunk = 128
)

// binWidth is the width of a bin on the natural logarithmic scale.
var binWidth = math.Log((1 + binError) / (1 - binError))

// A Sketch holds a distribution of non-negative values, such as latencies, in
// bounded memory: values are counted in bins whose width is a fixed share of
// their value, so every quantile is within [SketchError] of the value of that
// rank in the sample. The least and largest values are exact. Values from a
// microsecond to an hour take some 1,200 counters, all finite numbers 72,000.
// Values under 2⁻¹⁰²² count as 0.
//
// The order of the values makes no difference. The zero Sketch is empty and ready. It is not safe for concurrent use.
//
// Source: C. Masson, J. E. Rim, H. K. Lee (2019), DDSketch: a fast and
// fully-mergeable quantile sketch with relative-error guarantees, PVLDB
// 12:2195–2205.
type Sketch struct {
	zeros    uint64
	first    int      // number of the bin that counts[0] holds
	counts   []uint64 // of bins first, first+1, …
	total    uint64
	refused  uint64
	min, max float64
}

// Add counts one value. A value that is negative, infinite or no number is
// counted as refused and changes nothing else.
func (s *Sketch) Add(v float64) {
	if !(v >= 0) || math.IsInf(v, 1) {
		s.refused++
		return
	}
	if s.total == 0 {
		s.min, s.max = v, v
	}
	s.min, s.max = min(s.min, v), max(s.max, v)
	s.total++
	if v < leastBinned {
		s.zeros++
		return
	}
	bin := int(math.Ceil(math.Log(v) / binWidth))
	s.cover(bin, bin)
	s.counts[bin-s.first]++
}

// cover makes room for the bins from lo to hi, in whole chunks: which bins there
// are depends on the values alone, not on their order.
func (s *Sketch) cover(lo, hi int) {
	lo = floorChunk(lo)
	hi = floorChunk(hi) + binChunk // exclusive from here
	if len(s.counts) == 0 {
		s.first, s.counts = lo, make([]uint64, hi-lo)
		return
	}
	if lo < s.first {
		s.counts = append(make([]uint64, s.first-lo, s.first-lo+len(s.counts)), s.counts...)
		s.first = lo
	}
	if need := hi - s.first; need > len(s.counts) {
		s.counts = append(s.counts, make([]uint64, need-len(s.counts))...)
	}
}

// floorChunk rounds down to the first bin of a chunk, below zero too.
func floorChunk(bin int) int { return bin &^ (binChunk - 1) }

// Count returns how many values were added, Refused how many were not.
func (s *Sketch) Count() uint64   { return s.total }
func (s *Sketch) Refused() uint64 { return s.refused }

// A Summary is what a table shows of a distribution, in the unit of its values.
type Summary struct {
	N                  uint64
	P50, P95, P99, Max float64
}

// Summary returns the usual quantiles, each within [SketchError], and the exact
// maximum. ok is false where no value was added.
func (s *Sketch) Summary() (sum Summary, ok bool) {
	if s.total == 0 {
		return Summary{}, false
	}
	r := s.ranks()
	return Summary{N: s.total, P50: quantile(r, 0.50), P95: quantile(r, 0.95), P99: quantile(r, 0.99), Max: s.max}, true
}

// Quantile is the package's [Quantile] of the values added; value and ends are
// within [SketchError].
func (s *Sketch) Quantile(p, level float64) Estimate {
	e := quantileEstimate(s.ranks(), p, level)
	if s.refused > 0 {
		e.Warnings = append(e.Warnings, warn(BadInput, "%d values were negative or not finite and are left out", s.refused))
	}
	return e
}

// QuantileDifference is the package's [QuantileDifference] of the values of s
// and t, on values within [SketchError].
func (s *Sketch) QuantileDifference(t *Sketch, p, level float64, seed uint64) Estimate {
	e := quantileDifference(s.ranks(), t.ranks(), p, level, seed)
	e.Warnings = append(e.Warnings, warn(Approximate, "values were binned to within %v%%", 100*SketchError))
	if refused := s.refused + t.refused; refused > 0 {
		e.Warnings = append(e.Warnings, warn(BadInput, "%d values were negative or not finite and are left out", refused))
	}
	return e
}

// sketchRanks reads a sketch by rank. ends[i] is the number of values in bins up
// to the i-th, zeros included.
// Spread counts the values above 0 in bins of equal width on a logarithmic axis,
// perDecade to a factor of ten. Bin k of the answer begins at 10^((first+k)/perDecade);
// the first and the last hold something. A value may stand in a bin beside its own, as
// it is known within [SketchError] only.
func (s *Sketch) Spread(perDecade int) (first int, counts []uint64) {
	for i, n := range s.counts {
		if n == 0 {
			continue
		}
		v := min(max(math.Exp(float64(s.first+i)*binWidth)*(1-binError), s.min), s.max)
		bin := int(math.Floor(math.Log10(v) * float64(perDecade)))
		if counts == nil {
			first = bin
		}
		for len(counts) <= bin-first {
			counts = append(counts, 0)
		}
		counts[bin-first] += n
	}
	return first, counts
}

type sketchRanks struct {
	s    *Sketch
	ends []uint64
}

func (s *Sketch) ranks() sketchRanks {
	r := sketchRanks{s: s, ends: make([]uint64, len(s.counts))}
	running := s.zeros
	for i, c := range s.counts {
		running += c
		r.ends[i] = running
	}
	return r
}

func (r sketchRanks) size() int { return int(r.s.total) }

func (r sketchRanks) at(rank int) float64 {
	switch {
	case rank <= 0:
		return r.s.min
	case uint64(rank) >= r.s.total-1:
		return r.s.max
	case uint64(rank) < r.s.zeros:
		return 0
	}
	i := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > uint64(rank) })
	// The value that is off by the same share at both ends of the bin.
	v := math.Exp(float64(r.s.first+i)*binWidth) * (1 - binError)
	return min(max(v, r.s.min), r.s.max)
}
