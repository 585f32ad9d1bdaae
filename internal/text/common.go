package text

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed common.txt
var commonTxt string

// wordTable holds what is known of common words, by hash: open addressing,
// never changed after it is built.
type wordTable struct {
	slots [4096]wordSlot
}

type wordSlot struct {
	hash   uint64
	weight float32 // 0: not a stem of the list
	stop   bool    // this very word is a stopword
	common bool    // this very word is in the list
}

// commonWords parses common.txt when it is first asked for.
var commonWords = sync.OnceValue(func() *wordTable {
	t := new(wordTable)
	for n, line := range strings.Split(commonTxt, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		band, words, _ := strings.Cut(line, ":")
		name, figure, _ := strings.Cut(band, " ")
		weight, err := strconv.ParseFloat(figure, 32)
		if err != nil {
			panic(fmt.Sprintf("common.txt:%d: want \"band weight: words\": %v", n+1, err))
		}
		for w := range strings.FieldsSeq(words) {
			h, stem := hashString(w), hashString(Stem(w))
			s := t.slot(h)
			s.hash, s.common, s.stop = h, true, s.stop || name == "stop"
			// Bands go from common to rare: the first to claim a stem keeps it.
			if s = t.slot(stem); s.weight == 0 {
				s.hash, s.weight = stem, float32(weight)
			}
		}
	}
	return t
})

// slot returns the slot of h, or a free one.
func (t *wordTable) slot(h uint64) *wordSlot {
	for i := h % uint64(len(t.slots)); ; i = (i + 1) % uint64(len(t.slots)) {
		if s := &t.slots[i]; s.hash == h || s.hash == 0 {
			return s
		}
	}
}

// stemWeight is the inverse document frequency of a stem by its hash, from
// near 0 for stopwords to 1 for words that are not common.
func (t *wordTable) stemWeight(h uint64) float32 {
	return cmp.Or(t.slot(h).weight, 1)
}

// IsStopword reports whether the lower-case word w carries no topic of its own
// (the, of, wouldn't …).
func IsStopword(w string) bool {
	return commonWords().slot(hashString(w)).stop
}

// IsCommonWord reports whether the lower-case word w is an everyday English
// word, stopwords included.
func IsCommonWord(w string) bool {
	t := commonWords()
	return t.slot(hashString(w)).common || t.slot(hashString(Stem(w))).weight > 0
}

// Weight returns the inverse document frequency of a lower-case word in
// everyday English, from near 0 (stopwords) to 1 (not a common word).
func Weight(w string) float32 { return commonWords().stemWeight(hashString(Stem(w))) }
