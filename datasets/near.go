package datasets

import (
	"cmp"
	"fmt"
	"math"
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
	add := func(t string) {
		tokens := text.Tokens(text.Fold(t))
		var h [3]uint64
		for i, tok := range tokens {
			h[0], h[1], h[2] = h[1], h[2], text.Hash(tok.Text)
			if i >= 2 || i == len(tokens)-1 {
				s = append(s, (h[0]*31+h[1])*0x9e3779b97f4a7c15+h[2])
			}
		}
	}
	segments := func(list []Segment) {
		for i := range list {
			add(list[i].Title)
			add(list[i].Text)
		}
	}
	for i := range c.Inject {
		add(c.Inject[i].Text)
	}
	for i := range c.Write {
		add(c.Write[i].User)
		segments(c.Write[i].Segments)
	}
	if c.Retrieval != nil {
		add(c.Retrieval.Query)
		segments(c.Retrieval.Segments)
	}
	slices.Sort(s)
	return slices.Compact(s)
}

// Jaccard is the size of the intersection over the size of the union, 0 if both
// are empty.
func (s Shingles) Jaccard(t Shingles) float64 {
	both := 0
	for i, j := 0, 0; i < len(s) && j < len(t); {
		switch {
		case s[i] < t[j]:
			i++
		case s[i] > t[j]:
			j++
		default:
			both++
			i++
			j++
		}
	}
	if union := len(s) + len(t) - both; union > 0 {
		return float64(both) / float64(union)
	}
	return 0
}

// near finds near-duplicates, exactly. Across families it compares only cases
// that share one of their rarest shingles: two sets whose similarity is above t
// must share one among the first (1−t)·n+1 of each in any common order (the
// prefix filter of Chaudhuri, Ganti and Kaushik 2006), and in the order of
// rarity few others do. Variants resemble their case on purpose and are left out.
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
					r.problems = append(r.problems, v.problem(CheckNear, i, "write", fmt.Sprintf("is nearly case %s of its family: similarity %.2f, at most %.1f", inert(v.set.Cases[j].ID), s, MaxWithin), "vary the wording"))
				}
			}
		}
		if len(all) == 0 {
			return
		}
		slices.Sort(all)
		r.median, r.most = all[len(all)/2], all[len(all)-1]
		if r.median > MaxWithinMedian {
			r.problems = append(r.problems, v.problem(CheckNear, members[0], "family", fmt.Sprintf("the cases of family %s are too alike: median similarity %.2f, at most %.1f", inert(names[k]), r.median, MaxWithinMedian), "give its rules more alternatives"))
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

func (v *validator) nearAcross(shingles []Shingles) {
	const least = nearFloor
	total := 0
	for _, s := range shingles {
		total += len(s)
	}
	// Number the shingles by rarity: rank[k] of the k-th distinct one.
	all := make([]uint64, 0, total)
	for _, s := range shingles {
		all = append(all, s...)
	}
	slices.Sort(all)
	type counted struct {
		hash uint64
		n    int32
	}
	var distinct []counted
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		if j-i > 1 { // one that stands in a single case finds no pair
			distinct = append(distinct, counted{all[i], int32(j - i)})
		}
		i = j
	}
	slices.SortFunc(distinct, func(a, b counted) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.hash, b.hash)) })
	rank := make(map[uint64]int32, len(distinct))
	for i, d := range distinct {
		rank[d.hash] = int32(i)
	}
	postings := make([][]int32, len(distinct))
	met := make([]int, len(shingles)) // the last case that each was a candidate of
	for i := range met {
		met[i] = -1
	}
	type pair struct {
		i, j       int
		similarity float64
	}
	var pairs []pair
	ranks := make([]int32, 0, 1024)
	for i, s := range shingles {
		if len(s) == 0 {
			continue
		}
		ranks = ranks[:0]
		alone := 0
		for _, h := range s {
			if r, ok := rank[h]; ok {
				ranks = append(ranks, r)
			} else {
				alone++
			}
		}
		slices.Sort(ranks)
		a := &v.set.Cases[i]
		prefix := len(s) - int(math.Ceil(least*float64(len(s)))) + 1 - alone // single ones come first in the order
		for _, r := range ranks[:max(0, min(prefix, len(ranks)))] {
			for _, j := range postings[r] {
				n, m := float64(len(s)), float64(len(shingles[j]))
				if met[j] == i || min(n, m) < least*max(n, m) {
					continue
				}
				met[j] = i
				if b := &v.set.Cases[j]; a.Family != b.Family && a.Twin != b.ID {
					pairs = append(pairs, pair{i: i, j: int(j)})
				}
			}
			postings[r] = append(postings[r], int32(i))
		}
	}
	parallel(len(pairs), func(k int) {
		p := &pairs[k]
		p.similarity = shingles[p.i].Jaccard(shingles[p.j])
	})
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(a.i-b.i, a.j-b.j) })
	for _, p := range pairs {
		if p.similarity >= least {
			v.report.Near.Across = max(v.report.Near.Across, p.similarity)
		}
		if p.similarity > MaxAcross {
			b := &v.set.Cases[p.j]
			v.add(v.problem(CheckNear, p.i, "write", fmt.Sprintf("is nearly case %s of family %s: similarity %.2f, at most %.1f", inert(b.ID), inert(b.Family), p.similarity, MaxAcross), "write the families differently"))
		}
	}
}
