package text

import "unsafe"

// FNV-1a, 64 bits: the same on every machine and in every run, unlike
// hash/maphash, so that vectors and signatures can be compared across runs.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Hash is the FNV-1a hash of s.
func Hash[T string | []byte](s T) uint64 {
	h := uint64(fnvOffset)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func hashString(s string) uint64 { return Hash(s) | 1 } // 0 marks a free slot in tables keyed by hash

// mix spreads the bits of h (the finaliser of MurmurHash3 and SplitMix64).
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// view is b as a string without a copy, for scanners that keep no part of it;
// b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
