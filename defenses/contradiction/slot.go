package contradiction

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

// functionWords say nothing about which slot a statement fills.
const functionWords = cArticle | cPossessive | cBe | cHave | cModal | cPreposition | cDeterminer

// stemOf is the stem of a verb's lemma, and of the verb that a noun for its agent
// comes from ("owner", "manager"); of everything else the word's own.
func stemOf(words map[string]*entry, w string) string {
	if e := words[w]; e != nil && e.lemma != "" {
		return text.Stem(e.lemma)
	}
	return text.Stem(w)
}

// eachWord calls f with each word of s, folded to lower case: runs of letters
// and digits, cut where a small letter meets a capital one ("fontSize").
func eachWord(s string, f func(string)) {
	for start, end := nextWord(s, 0); start < end; start, end = nextWord(s, end) {
		if w := text.Fold(s[start:end]); w != "" {
			f(w)
		}
	}
}

// nextWord returns the next word of s at or after i; start == end at the end.
func nextWord(s string, i int) (start, end int) {
	for i < len(s) && !wordByte(s[i]) {
		i++
	}
	start = i
	for i < len(s) && wordByte(s[i]) {
		if i > start && s[i] >= 'A' && s[i] <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z' {
			break
		}
		i++
	}
	return start, i
}

// maxStems bounds the words that name one slot.
const maxStems = 24

// stems is a small set of hashed stems.
type stems struct {
	list [maxStems]uint64
	n    int
}

func (s *stems) add(h uint64) {
	for i := 0; i < s.n; i++ {
		if s.list[i] == h {
			return
		}
	}
	if s.n < maxStems {
		s.list[s.n] = h
		s.n++
	}
}

// key names the slot of these stems and a tag. It does not depend on the order of
// the words.
func (s *stems) key(tag uint64) uint64 {
	const prime = 1099511628211 // of FNV
	h := tag*prime ^ text.Hash("")
	var sum, prod uint64 = 0, 1
	for _, x := range s.list[:s.n] {
		x ^= x >> 29
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 32
		sum += x
		prod *= x | 1
	}
	return (h^sum)*prime ^ prod
}

// addPhrase adds the stems of a phrase's content words.
func (x *extractor) addPhrase(s *stems, p phrase) {
	before := s.n
	light := uint64(0)
	defer func() {
		if s.n == before && light != 0 {
			s.add(light) // "name: Bea": nothing else says what it is
		}
	}()
	for _, i := range x.refs[p.from:p.to] {
		t := &x.tokens[i]
		if t.kind == possessive || t.kind == comma || t.kind == dash {
			continue
		}
		if t.entry != nil && t.kind == word {
			if t.lemma && t.entry.stem != 0 {
				s.add(t.entry.stem)
				continue
			}
			if t.is(cLight) {
				light = t.entry.stem
				continue
			}
			x.addEntry(s, t.entry)
			continue
		}
		x.addText(s, t.text)
	}
}

func (x *extractor) addEntry(s *stems, e *entry) {
	if e.classes&functionWords != 0 || e.classes&(cDrop|cAttribute) == cDrop || e.stem == 0 && e.lemma == "" {
		return
	}
	h := e.stem
	if h == 0 { // a verb that was guessed
		h = text.Hash(text.Stem(e.lemma))
	}
	s.add(h)
}

// addText adds the stems of a text of possibly several words.
func (x *extractor) addText(s *stems, w string) {
	for a, b := nextWord(w, 0); a < b; a, b = nextWord(w, b) {
		if b-a > 64 {
			s.add(text.Hash(w[a:b]))
			continue
		}
		var buf [64]byte
		n := b - a
		ascii := true
		for k := 0; k < n; k++ {
			c := w[a+k]
			if c >= utf8.RuneSelf {
				ascii = false
				break
			}
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			buf[k] = c
		}
		low := buf[:n]
		if !ascii {
			x.fold = text.AppendFold(x.fold[:0], w[a:b])
			low = x.fold
		}
		if len(low) == 1 && low[0] == 's' && a > 0 {
			continue
		}
		if e := x.words[string(low)]; e != nil {
			x.addEntry(s, e)
			continue
		}
		s.add(x.stemHash(low))
	}
}

// stemHash hashes the stem of a word that the lexicon does not know; a noun for
// an agent counts as its verb: "approver" as "approve".
func (x *extractor) stemHash(low []byte) uint64 {
	if n := len(low); n > 4 && n <= longestWord && low[n-1] == 'r' && (low[n-2] == 'e' || low[n-2] == 'o') {
		if v := agentOf(x.words, string(low)); v != "" {
			return x.words[v].stem
		}
	}
	return text.Hash(text.Stem(string(low)))
}

// slotName spells a slot for a person, in letters that are safe everywhere.
func slotName(parts ...string) string {
	words := lexicon()
	var b strings.Builder
	var seen []string
	for _, p := range parts {
		eachWord(p, func(w string) {
			if e := words[w]; e != nil && e.classes&functionWords != 0 || w == "s" || slices.Contains(seen, w) || b.Len() > 48 {
				return
			}
			seen = append(seen, w)
			if b.Len() > 0 {
				b.WriteByte('_')
			}
			for i := 0; i < len(w) && b.Len() < 64; i++ {
				if c := w[i]; c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
					b.WriteByte(c)
				} else {
					b.WriteByte('-')
				}
			}
		})
	}
	if b.Len() == 0 {
		return "unnamed"
	}
	return b.String()
}
