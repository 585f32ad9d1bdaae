package text

import (
	"math"
	"slices"
)

// Shingles returns the hashes of the runs of n words of s, folded, sorted and
// without repetition. A text of fewer than n words has one shingle of all of
// them; a text without words has none.
func Shingles(s string, n int) []uint64 {
	if n < 1 {
		n = 1
	}
	s = Fold(s)
	var words []uint64
	for i := 0; ; {
		start, end, kind := nextToken(s, i)
		if kind == 0 {
			break
		}
		words = append(words, mix(hashString(s[start:end])))
		i = end
	}
	if len(words) == 0 {
		return nil
	}
	if len(words) < n {
		n = len(words)
	}
	// A rolling polynomial over the hashes of the words.
	var h, top uint64 = 0, 1
	for range n - 1 {
		top *= fnvPrime
	}
	out := make([]uint64, 0, len(words)-n+1)
	for i, w := range words {
		if i >= n {
			h -= words[i-n] * top
		}
		h = h*fnvPrime + w
		if i >= n-1 {
			out = append(out, mix(h))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Jaccard is the size of the intersection over that of the union of two
// sorted sets, 0 to 1; 0 for two empty sets, which have nothing in common.
func Jaccard(a, b []uint64) float64 {
	both := Shared(a, b)
	if union := len(a) + len(b) - both; union > 0 {
		return float64(both) / float64(union)
	}
	return 0
}

// Containment is the share of a that is in b, 0 to 1; 0 for an empty a.
func Containment(a, b []uint64) float64 {
	if len(a) == 0 {
		return 0
	}
	return float64(Shared(a, b)) / float64(len(a))
}

// Shared is how many members two sorted sets have in common.
func Shared(a, b []uint64) int {
	n := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			n++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return n
}

// Signature is a MinHash sketch of a set: the share of places in which two
// signatures agree estimates the Jaccard similarity of their sets, with a
// standard error of at most 1/16 (Broder 1997).
type Signature [signatureSize]uint32

const signatureSize = 64

// emptyPlace fills the signature of an empty set, which is like nothing.
const emptyPlace = math.MaxUint32

// MinHash sketches a set of hashes. It hashes each element once, into one of
// the places, and fills the places left empty from others in an order that
// depends on the place alone (optimal densification: Shrivastava 2017).
func MinHash(set []uint64) Signature {
	var sig Signature
	for i := range sig {
		sig[i] = emptyPlace
	}
	if len(set) == 0 {
		return sig
	}
	for _, x := range set {
		h := mix(x ^ 0x9e3779b97f4a7c15)
		at, v := h>>32%signatureSize, uint32(h)
		if v == emptyPlace {
			v--
		}
		sig[at] = min(sig[at], v)
	}
	dense := sig
	for i := range dense {
		for try := uint64(0); dense[i] == emptyPlace; try++ {
			dense[i] = sig[mix(uint64(i)<<32|try)%signatureSize]
		}
	}
	return dense
}

// Similarity estimates the Jaccard similarity of the sets behind two
// signatures, 0 to 1.
func (a *Signature) Similarity(b *Signature) float64 {
	n := 0
	for i := range a {
		if a[i] == b[i] && a[i] != emptyPlace {
			n++
		}
	}
	return float64(n) / signatureSize
}

// NearIndex finds near-duplicates among thousands of texts by their
// signatures, in bands of four places: a pair of similarity 0.8 is found with
// probability 0.9998, of 0.5 with 0.64, of 0.2 with 0.03 (1-(1-j⁴)¹⁶).
//
// Searches may run at the same time as each other, not as Add.
type NearIndex struct {
	sigs  []Signature
	bands [signatureSize / bandRows]map[uint64][]int32
}

const bandRows = 4

// Near is an entry of a NearIndex and its estimated similarity.
type Near struct {
	ID         int // the number that Add gave it
	Similarity float64
}

// NewNearIndex returns an empty index.
func NewNearIndex() *NearIndex {
	x := new(NearIndex)
	for i := range x.bands {
		x.bands[i] = map[uint64][]int32{}
	}
	return x
}

// Len is the number of entries.
func (x *NearIndex) Len() int { return len(x.sigs) }

// Add enters a signature and returns its id, counting from 0. The signature of
// an empty set is entered and never found.
func (x *NearIndex) Add(sig Signature) int {
	id := len(x.sigs)
	x.sigs = append(x.sigs, sig)
	if sig[0] == emptyPlace {
		return id
	}
	for b := range x.bands {
		k := sig.band(b)
		x.bands[b][k] = append(x.bands[b][k], int32(id))
	}
	return id
}

// Search returns the entries whose similarity to sig is estimated at least
// atLeast, in the order of their ids.
func (x *NearIndex) Search(sig Signature, atLeast float64) []Near {
	if sig[0] == emptyPlace {
		return nil
	}
	var ids []int32
	for b := range x.bands {
		ids = append(ids, x.bands[b][sig.band(b)]...)
	}
	slices.Sort(ids)
	var out []Near
	for _, id := range slices.Compact(ids) {
		if sim := sig.Similarity(&x.sigs[id]); sim >= atLeast {
			out = append(out, Near{ID: int(id), Similarity: sim})
		}
	}
	return out
}

func (a *Signature) band(b int) uint64 {
	h := uint64(b)
	for _, v := range a[b*bandRows : (b+1)*bandRows] {
		h = mix(h*fnvPrime ^ uint64(v))
	}
	return h
}
