package text

import "slices"

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
