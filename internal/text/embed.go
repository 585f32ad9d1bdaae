package text

import (
	"math"
	"sync"
)

// HashDim is the length of a Hashing vector.
const HashDim = 192

// Hashing turns a text into a vector without a model and without a network: stemmed words,
// weighted by how rare they are in English, and the three-letter pieces of
// each word, hashed with a sign into HashDim buckets (Weinberger et al. 2009,
// "Feature hashing for large scale multitask learning"), then scaled to length
// 1. It sees shared words and shared spelling, not meaning. A text without any
// word gives the zero vector.
type Hashing struct{}

// Embed returns the vector of text.
func (h Hashing) Embed(text string) []float32 {
	v := make([]float32, HashDim)
	h.EmbedInto(v, text)
	return v
}

// gramShare is the length of the vector of a word's pieces against that of
// the word itself: spelling counts, words count more.
const gramShare = 0.5

// EmbedInto writes the vector of text to dst, which must hold HashDim values.
// It does not allocate, once its scratch space has grown to the length of the
// text.
func (Hashing) EmbedInto(dst []float32, text string) {
	v := (*[HashDim]float32)(dst)
	clear(v[:])
	if !isFolded(text) {
		buf := scratch.Get().(*[]byte)
		defer scratch.Put(buf)
		*buf = AppendFold((*buf)[:0], text)
		text = view(*buf)
	}
	common := commonWords()
	var before uint64 // hash of the ideograph just before
	for i := 0; ; {
		start, end, kind := nextToken(text, i)
		if kind == 0 {
			break
		}
		i = end
		w := text[start:end]
		if kind == Ideograph {
			h := hashString(w)
			addHashed(v, mix(h), 0.5)
			if before != 0 {
				addHashed(v, mix(before*fnvPrime^h), 1)
			}
			before = h
			continue
		}
		before = 0
		stem := Stem(w)
		h := hashString(stem)
		weight := common.stemWeight(h)
		addHashed(v, mix(h), weight)
		if weight < 0.1 || len(stem) < 3 {
			continue
		}
		// Pieces of ^stem. The stem is cut at its end already. Each piece is
		// hashed from its three bytes in one multiplication.
		n := min(len(stem), 32)
		unit := weight * gramShare * inverseRoot[n-1]
		g := uint64('^')<<16 | uint64(stem[0])<<8 | uint64(stem[1])
		addHashed(v, g*0x9e3779b97f4a7c15, unit)
		for j := 2; j < n; j++ {
			g = (g<<8 | uint64(stem[j])) & 0xFFFFFF
			p := g * 0x9e3779b97f4a7c15
			addHashed(v, p^p>>29, unit)
		}
	}
	normalise(v[:])
}

// scratch holds buffers for folded text; what they hold never outlives a call.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// inverseRoot[n] is 1/√n.
var inverseRoot = func() (t [33]float32) {
	for n := 1; n < len(t); n++ {
		t[n] = float32(1 / math.Sqrt(float64(n)))
	}
	return t
}()

// addHashed adds x to the bucket that h picks, with the sign that h picks.
func addHashed(v *[HashDim]float32, h uint64, x float32) {
	bucket := h >> 32 * HashDim >> 32
	if h&1 != 0 {
		x = -x
	}
	v[bucket] += x
}

func normalise(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	f := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= f
	}
}

// Dot is the inner product of two vectors of the same length, summed in a
// fixed order.
func Dot(a, b []float32) float32 {
	if len(a) != len(b) {
		panic("text: Dot of vectors of different lengths")
	}
	// Four sums hide the latency of the additions.
	var s0, s1, s2, s3 float32
	n := len(a) &^ 3
	b = b[:len(a)]
	for i := 0; i < n; i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for i := n; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}
