package contradiction

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory/text"
)

// functionWords say nothing about which slot a statement fills.
const functionWords = cArticle | cPossessive | cBe | cHave | cModal | cPreposition | cDeterminer

// slotStems returns the stems of the content words of a subject and a predicate,
// sorted and once each: the name by which statements about one thing meet,
// however they are worded.
func slotStems(parts ...string) string {
	words := lexicon()
	var stems []string
	for _, p := range parts {
		eachWord(p, func(w string) {
			if e := words[w]; e != nil && e.classes&functionWords != 0 {
				return
			}
			if w == "s" {
				return
			}
			stems = append(stems, stemOf(words, w))
		})
	}
	slices.Sort(stems)
	return strings.Join(slices.Compact(stems), " ")
}

// stemOf is the lemma of a verb and the stem of everything else.
func stemOf(words map[string]*entry, w string) string {
	if e := words[w]; e != nil && e.lemma != "" {
		return text.Stem(e.lemma)
	}
	return text.Stem(w)
}

// eachWord calls f with each word of s, folded to lower case: runs of letters
// and digits, cut where a small letter meets a capital one ("fontSize").
func eachWord(s string, f func(string)) {
	start := -1
	flush := func(end int) {
		if start >= 0 {
			if w := text.Fold(s[start:end]); w != "" {
				f(w)
			}
			start = -1
		}
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case !wordByte(c):
			flush(i)
		case start < 0:
			start = i
		case c >= 'A' && c <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z':
			flush(i)
			start = i
		}
	}
	flush(len(s))
	_ = utf8.RuneSelf
}
