package stats

import (
	"math"
	"math/bits"
)

// exhaustiveClusters is the largest number of clusters whose flips are all
// tried: 2¹³ is the power of two next under [Replicates].
const exhaustiveClusters = 13

// SignFlip tests whether arms A and B are exchangeable, from the paired
// differences by family: it swaps the arms in whole clusters and asks how often
// the absolute total difference is as large as the observed one. It holds for
// any number of clusters; all swaps are tried up to 13 clusters that differ,
// [Replicates] random ones beyond, where the smallest possible P is 1/10,001 and
// the work is 10,000 steps a cluster.
// With one pair in every cluster it is [McNemar]'s exact test.
//
// Sources: R. A. Fisher, The Design of Experiments (1935), §21; B. Phipson,
// G. K. Smyth (2010), Permutation p-values should never be zero, Stat. Appl.
// Genet. Mol. Biol. 9:39, for counting the observed one.
func SignFlip(clusters []Cluster, seed uint64) Test {
	const method = "cluster-sign-flip"
	cs, _, bad := poolClusters(clusters)
	if bad != nil {
		return untested(method, bad)
	}
	var sums []float64
	var total, size float64
	for _, c := range cs {
		if c.Sum != 0 { // swapping a cluster without a difference does nothing
			sums = append(sums, c.Sum)
			total += c.Sum
			size += math.Abs(c.Sum)
		}
	}
	t := Test{P: 1, N: len(sums), Measured: true, Method: method}
	if len(sums) == 0 {
		t.Warnings = []Warning{warn(NoVariation, "no cluster of %d tells the arms apart", len(cs))}
		return t
	}
	atLeast := math.Abs(total) - 1e-9*size // equal totals differ by rounding
	extreme := 0
	if len(sums) <= exhaustiveClusters {
		flips := 1 << len(sums)
		for mask := range flips {
			if math.Abs(flipped(sums, func(i int) bool { return mask>>i&1 == 1 })) >= atLeast {
				extreme++
			}
		}
		t.P = float64(extreme) / float64(flips)
	} else {
		src := newSource(seed)
		var word uint64
		coin := func(i int) bool {
			if i%64 == 0 {
				word = src.Uint64()
			}
			return bits.RotateLeft64(word, -(i%64))&1 == 1
		}
		for range Replicates {
			if math.Abs(flipped(sums, coin)) >= atLeast {
				extreme++
			}
		}
		t.P = float64(extreme+1) / (Replicates + 1)
	}
	if len(sums) < 6 { // 2·½⁵ > 0.05
		t.Warnings = append(t.Warnings, warn(TooFew,
			"only %d clusters tell the arms apart: P cannot be under %.3g", len(sums), math.Ldexp(1, 1-len(sums))))
	}
	return t
}

func flipped(sums []float64, flip func(int) bool) float64 {
	var s float64
	for i, v := range sums {
		if flip(i) {
			v = -v
		}
		s += v
	}
	return s
}
