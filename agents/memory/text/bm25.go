package text

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Okapi BM25's parameters (Robertson and Zaragoza 2009): how soon repeating a
// word stops counting, and how much a long document is held back.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// BM25 ranks short documents by the words they share with a query. Documents
// come and go; every score is over the documents there are. Words are folded,
// stemmed and interned; stopwords do not count.
//
// Searches may run at the same time as each other, not as Add and Remove.
type BM25 struct {
	terms    map[string]int32 // stem → index in postings
	postings []posting
	docs     []bm25Doc        // by slot, in the order of Add
	slots    map[string]int32 // key → slot
	words    int              // in all live documents
	dead     int              // slots of removed documents
	scratch  sync.Pool
}

type posting struct {
	live    int32 // live documents that hold the term
	entries []postingEntry
}

type postingEntry struct {
	slot  int32
	count int32
}

type bm25Doc struct {
	key   string
	words int32 // length; -1 once removed
	terms []int32
}

// Hit is a document and its score.
type Hit struct {
	Key   string
	Score float64 // above 0, without an upper bound
}

type bm25Scratch struct {
	scores []float64
	found  []int32
	terms  []int32
	fold   []byte
}

// NewBM25 returns an empty index.
func NewBM25() *BM25 {
	return &BM25{
		terms:   map[string]int32{},
		slots:   map[string]int32{},
		scratch: sync.Pool{New: func() any { return new(bm25Scratch) }},
	}
}

// Len is the number of documents.
func (x *BM25) Len() int { return len(x.slots) }

// Add indexes text under key, in place of what stood there.
func (x *BM25) Add(key, text string) {
	x.Remove(key)
	slot := int32(len(x.docs))
	doc := bm25Doc{key: key}
	text = Fold(text)
	for i := 0; ; {
		start, end, kind := nextToken(text, i)
		if kind == 0 {
			break
		}
		i = end
		if IsStopword(text[start:end]) {
			continue
		}
		doc.words++
		stem := Stem(text[start:end])
		t, ok := x.terms[stem]
		if !ok {
			t = int32(len(x.postings))
			x.terms[stem] = t
			x.postings = append(x.postings, posting{})
		}
		p := &x.postings[t]
		if n := len(p.entries); n > 0 && p.entries[n-1].slot == slot {
			p.entries[n-1].count++
			continue
		}
		p.entries = append(p.entries, postingEntry{slot: slot, count: 1})
		p.live++
		doc.terms = append(doc.terms, t)
	}
	x.docs = append(x.docs, doc)
	x.slots[key] = slot
	x.words += int(doc.words)
}

// Remove takes a document out and reports whether it was there.
func (x *BM25) Remove(key string) bool {
	slot, ok := x.slots[key]
	if !ok {
		return false
	}
	doc := &x.docs[slot]
	for _, t := range doc.terms {
		x.postings[t].live--
	}
	x.words -= int(doc.words)
	*doc = bm25Doc{words: -1}
	delete(x.slots, key)
	if x.dead++; x.dead > len(x.slots)+32 {
		x.compact()
	}
	return true
}

// compact gives the slots, entries and terms of removed documents back. It
// runs after as many removals as there are documents, so its cost spreads.
func (x *BM25) compact() {
	moved := make([]int32, len(x.docs))
	docs := x.docs[:0]
	for i, d := range x.docs {
		if d.words < 0 {
			moved[i] = -1
			continue
		}
		moved[i] = int32(len(docs))
		x.slots[d.key] = int32(len(docs))
		docs = append(docs, d)
	}
	clear(x.docs[len(docs):])
	x.docs, x.dead = docs, 0

	renumbered := make([]int32, len(x.postings))
	postings := x.postings[:0]
	for i, p := range x.postings {
		if p.live == 0 {
			renumbered[i] = -1
			continue
		}
		entries := p.entries[:0]
		for _, e := range p.entries {
			if slot := moved[e.slot]; slot >= 0 {
				entries = append(entries, postingEntry{slot: slot, count: e.count})
			}
		}
		p.entries = entries
		renumbered[i] = int32(len(postings))
		postings = append(postings, p)
	}
	clear(x.postings[len(postings):])
	x.postings = postings
	for stem, t := range x.terms {
		if renumbered[t] < 0 {
			delete(x.terms, stem)
		} else {
			x.terms[stem] = renumbered[t]
		}
	}
	for i := range x.docs {
		for j, t := range x.docs[i].terms {
			x.docs[i].terms[j] = renumbered[t]
		}
	}
}

// Search returns the k best documents (all, if k ≤ 0) that share a word with
// the query, best first; equal scores in the order of Add.
func (x *BM25) Search(query string, k int) []Hit {
	return x.AppendHits(nil, query, k)
}

// AppendHits appends the hits of Search to dst.
func (x *BM25) AppendHits(dst []Hit, query string, k int) []Hit {
	if len(x.slots) == 0 {
		return dst
	}
	sc := x.scratch.Get().(*bm25Scratch)
	defer x.scratch.Put(sc)
	if len(sc.scores) < len(x.docs) {
		sc.scores = make([]float64, len(x.docs)+len(x.docs)/4)
	}
	sc.found, sc.terms = sc.found[:0], sc.terms[:0]

	if !isFolded(query) {
		sc.fold = AppendFold(sc.fold[:0], query)
		query = view(sc.fold)
	}
	for i := 0; ; {
		start, end, kind := nextToken(query, i)
		if kind == 0 {
			break
		}
		i = end
		// Stopwords are in no posting.
		if t, ok := x.terms[Stem(query[start:end])]; ok {
			sc.terms = append(sc.terms, t)
		}
	}
	// In one fixed order, each term as often as the query has it, so that
	// sums do not depend on anything else.
	slices.Sort(sc.terms)
	n := float64(len(x.slots))
	norm := bm25K1 * bm25B * n / float64(max(1, x.words)) // times a document's length
	for i := 0; i < len(sc.terms); {
		j := i + 1
		for j < len(sc.terms) && sc.terms[j] == sc.terms[i] {
			j++
		}
		p := &x.postings[sc.terms[i]]
		df := float64(p.live)
		idf := math.Log(1+(n-df+0.5)/(df+0.5)) * float64(j-i) * (bm25K1 + 1)
		i = j
		for _, e := range p.entries {
			doc := &x.docs[e.slot]
			if doc.words < 0 {
				continue
			}
			tf := float64(e.count)
			if sc.scores[e.slot] == 0 {
				sc.found = append(sc.found, e.slot)
			}
			sc.scores[e.slot] += idf * tf / (tf + bm25K1*(1-bm25B) + norm*float64(doc.words))
		}
	}
	order := func(a, b int32) int {
		if c := cmp.Compare(sc.scores[b], sc.scores[a]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	}
	best := sc.found
	if k > 0 && k < len(best) {
		best = smallest(best, k, order)
	}
	slices.SortFunc(best, order)
	for _, slot := range best {
		dst = append(dst, Hit{Key: x.docs[slot].key, Score: sc.scores[slot]})
	}
	for _, slot := range sc.found {
		sc.scores[slot] = 0
	}
	return dst
}

// smallest moves the k smallest of list to its front with a heap of k.
func smallest(list []int32, k int, order func(a, b int32) int) []int32 {
	heap := list[:k]
	down := func(i int) {
		for {
			c := 2*i + 1
			if c >= k {
				return
			}
			if c+1 < k && order(heap[c+1], heap[c]) > 0 {
				c++
			}
			if order(heap[c], heap[i]) <= 0 {
				return
			}
			heap[i], heap[c] = heap[c], heap[i]
			i = c
		}
	}
	for i := k/2 - 1; i >= 0; i-- {
		down(i)
	}
	for i := k; i < len(list); i++ {
		if order(list[i], heap[0]) < 0 {
			list[i], heap[0] = heap[0], list[i]
			down(0)
		}
	}
	return heap
}
