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

// Shingles is the set of the three-word sequences of a text, as sorted hashes.
// Words are taken after folding, so that a disguise makes no new text.
type Shingles []uint64

// ShinglesOf returns the shingles of what a reader sees of a case: what the user
// says, what the content says, and the later query. Filler is left out.
func ShinglesOf(c *Case) Shingles {
	var s Shingles
	eachText(c, func(field, part, t string) {
		if field != "text" && field != "expected_memory" && part != "source" && part != "key" {
			s = append(s, text.Shingles(t, 3)...)
		}
	})
	slices.Sort(s)
	return slices.Compact(s)
}

// Jaccard is the size of the intersection over the size of the union, 0 if both
// are empty.
func (s Shingles) Jaccard(t Shingles) float64 {
	both := text.Shared(s, t)
	if union := len(s) + len(t) - both; union > 0 {
		return float64(both) / float64(union)
	}
	return 0
}

// near finds near-duplicates, exactly. Variants resemble their case on purpose and
// are left out.
func (v *validator) near() {
	set := v.set
	shingles := make([]Shingles, len(set.Cases))
	parallel(len(set.Cases), func(i int) {
		if set.Cases[i].VariantOf == "" {
			shingles[i] = ShinglesOf(&set.Cases[i])
		}
	})
	v.nearWithin(shingles)
	v.nearAcross(shingles)
}

func (v *validator) nearWithin(shingles []Shingles) {
	families := make(map[string][]int)
	var names []string
	for i := range v.set.Cases {
		if len(shingles[i]) == 0 {
			continue
		}
		f := v.set.Cases[i].Family
		if families[f] == nil {
			names = append(names, f)
		}
		families[f] = append(families[f], i)
	}
	type result struct {
		median, most float64
		problems     []Problem
	}
	results := make([]result, len(names))
	parallel(len(names), func(k int) {
		members, r := families[names[k]], &results[k]
		var all []float64
		for a, i := range members {
			for _, j := range members[:a] {
				s := shingles[i].Jaccard(shingles[j])
				all = append(all, s)
				if s > MaxWithin {
					r.problems = append(r.problems, v.problem(CheckNear, i, "write",
						fmt.Sprintf("is nearly case %s of its family: similarity %.2f, at most %.1f", Inert(v.set.Cases[j].ID), s,
							MaxWithin), "vary the wording"))
				}
			}
		}
		if len(all) == 0 {
			return
		}
		slices.Sort(all)
		r.median, r.most = all[len(all)/2], all[len(all)-1]
		if r.median > MaxWithinMedian {
			r.problems = append(r.problems, v.problem(CheckNear, members[0], "family",
				fmt.Sprintf("the cases of family %s are too alike: median similarity %.2f, at most %.1f", Inert(names[k]), r.median,
					MaxWithinMedian), "give its rules more alternatives"))
		}
	})
	for k, r := range results {
		v.add(r.problems...)
		v.report.Near.Within = max(v.report.Near.Within, r.most)
		if r.median > v.report.Near.Median {
			v.report.Near.Median, v.report.Near.Worst = r.median, names[k]
		}
	}
}

// nearAcross counts, for each case, the shingles that it shares with every case
// before it, by a list of the cases that hold each shingle.
func (v *validator) nearAcross(shingles []Shingles) {
	holders := make(map[uint64][]int32)
	shared := make([]int32, len(shingles)) // with the case that is looked at
	for i, s := range shingles {
		a := &v.set.Cases[i]
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
			both := int(shared[j])
			shared[j] = 0
			b := &v.set.Cases[j]
			similarity := float64(both) / float64(len(s)+len(shingles[j])-both)
			if similarity < nearFloor || a.Family == b.Family || a.Twin == b.ID {
				continue
			}
			v.report.Near.Across = max(v.report.Near.Across, similarity)
			if similarity > MaxAcross {
				v.add(v.problem(CheckNear, i, "write", fmt.Sprintf("is nearly case %s of family %s: similarity %.2f, at most %.1f",
					Inert(b.ID), Inert(b.Family), similarity, MaxAcross), "write the families differently"))
			}
		}
	}
}
