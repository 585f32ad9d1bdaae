package datasets

import (
	"math/bits"

	"github.com/memtox/memtox/internal/text"
)

// Rand is SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom
// number generators"): eight lines that give the same numbers in every version
// of Go, which is what byte-for-byte reproducible cases need.
type Rand struct{ state uint64 }

// NewRand returns a generator for the seed and any number of labels, so that
// each family, case and slot has numbers of its own.
func NewRand(seed uint64, labels ...string) *Rand {
	h := seed
	for _, l := range labels {
		h = (h ^ text.Hash(l)) * 0x9e3779b97f4a7c15
	}
	r := &Rand{h}
	r.Uint64()
	return r
}

// Uint64 returns the next 64 bits.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// IntN returns a number from 0 to n-1; n must be above 0. The bias of the
// multiplication is below n/2^64.
func (r *Rand) IntN(n int) int {
	if n <= 0 {
		panic("grammar: IntN of a number that is not positive")
	}
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(hi)
}

// Shuffle permutes n things.
func (r *Rand) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, r.IntN(i+1))
	}
}

// Order returns the numbers from 0 to n-1 in a random order.
func (r *Rand) Order(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	r.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// Pick returns one of the list.
func Pick[T any](r *Rand, list []T) T { return list[r.IntN(len(list))] }
