package datasets

import (
	"fmt"
	"slices"

	"github.com/memtox/memtox/internal/text"
)

// The limits on near-duplicates, as Jaccard similarity of sets of 3-word
// shingles.
const (
	MaxAcross       = 0.5 // of two cases of different families
	MaxWithin       = 0.9 // of two cases of one family
	MaxWithinMedian = 0.6 // the median over all pairs of a family
)

// nearFloor is the similarity from which pairs of two families are looked at: a
// little below the limit, so that the report can say how far away a set is.
const nearFloor = 0.4

// NearStats describes how alike the cases of a set are.
type NearStats struct {
	Across float64 // greatest similarity across families among those above 0.4; 0 if there is none
	Within float64 // greatest similarity within a family
	Median float64 // greatest median of a family
	Worst  string  // that family
}

// shinglesOf returns the three-word sequences of what a reader sees of a case, as
// sorted hashes: of what the user says, what the content says, and the later query.
// Words are taken after folding, so that a disguise makes no new text. Filler is left
// out.
func shinglesOf(c *Case) []uint64 {
	var s []uint64
	eachText(c, func(field, part, t string) {
		if field != "text" && field != "expected_memory" && part != "source" && part != "key" {
			s = append(s, text.Shingles(t, 3)...)
		}
	})
	slices.Sort(s)
	return slices.Compact(s)
}

// near finds near-duplicates, exactly. It counts, for each case, the shingles that it
// shares with every case before it, by a list of the cases that hold each shingle.
// Variants resemble their case on purpose and are left out.
func (v *validator) near() {
	cases, near := v.set.Cases, &v.report.Near
	shingles := make([][]uint64, len(cases))
	parallel(len(cases), func(i int) {
		if cases[i].VariantOf == "" {
			shingles[i] = shinglesOf(&cases[i])
		}
	})
	holders := make(map[uint64][]int32)
	shared := make([]int32, len(cases)) // with the case that is looked at
	members := make(map[string][]int)
	alike := make(map[string][]float64) // of the pairs of a family that share anything
	var families []string
	for i, s := range shingles {
		a := &cases[i]
		if len(s) == 0 {
			continue
		}
		if members[a.Family] == nil {
			families = append(families, a.Family)
		}
		members[a.Family] = append(members[a.Family], i)
		var met []int32
		for _, h := range s {
			for _, j := range holders[h] {
				if shared[j] == 0 {
					met = append(met, j)
				}
				shared[j]++
			}
			holders[h] = append(holders[h], int32(i))
		}
		slices.Sort(met)
		for _, j := range met {
			b, both := &cases[j], int(shared[j])
			shared[j] = 0
			similarity := float64(both) / float64(len(s)+len(shingles[j])-both)
			whose, most, remedy := "family "+Inert(b.Family), MaxAcross, "write the families differently"
			switch {
			case a.Family == b.Family:
				alike[a.Family] = append(alike[a.Family], similarity)
				near.Within = max(near.Within, similarity)
				if a.State != nil { // a family says its text once, and is one unit of every interval
					continue
				}
				whose, most, remedy = "its family", MaxWithin, "vary the wording"
			case similarity < nearFloor || a.Twin == b.ID:
				continue
			default:
				near.Across = max(near.Across, similarity)
			}
			if similarity > most {
				v.add(v.problem(CheckNear, i, "write", fmt.Sprintf("is nearly case %s of %s: similarity %.2f, at most %.1f",
					Inert(b.ID), whose, similarity, most), remedy))
			}
		}
	}
	for _, family := range families {
		list, n := alike[family], len(members[family])
		slices.Sort(list)
		pairs := n * (n - 1) / 2
		at := pairs/2 - (pairs - len(list)) // of the median: before the list are the pairs that share nothing
		if at < 0 || at >= len(list) {
			continue
		}
		if list[at] > near.Median {
			near.Median, near.Worst = list[at], family
		}
		if list[at] > MaxWithinMedian && cases[members[family][0]].State == nil {
			v.add(v.problem(CheckNear, members[family][0], "family",
				fmt.Sprintf("the cases of family %s are too alike: median similarity %.2f, at most %.1f", Inert(family), list[at],
					MaxWithinMedian), "give its rules more alternatives"))
		}
	}
}
