package stats

import (
	"math/bits"
	"math/rand/v2"
)

// Replicates is the number of resamples of a bootstrap or permutation test.
const Replicates = 10_000

// newSource returns a generator whose sequence Go fixes for all versions.
func newSource(seed uint64) *rand.PCG { return rand.NewPCG(seed, 0x6d656d746f78) }

// below returns a whole number from 0 to n−1. It takes one draw, so that the
// sequence does not depend on how a library rejects; the bias is under n/2⁶⁴.
func below(src *rand.PCG, n int) int {
	hi, _ := bits.Mul64(src.Uint64(), uint64(n))
	return int(hi)
}
