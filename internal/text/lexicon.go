package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Entry is one entry of a lexicon.
type Entry struct {
	ID       string
	Words    []string
	Literals []string
}

// Lexicon is a compiled word list. It never changes; any number of goroutines
// may use it.
type Lexicon struct {
	patterns *Patterns
	single   []*Patterns // each pattern alone
	entryOf  []int       // pattern → entry
	needs    [][3]uint16 // pattern → groups of which one word each must be there; 0 is none
	always   bool        // some pattern needs none

	quick  *Phrases
	groups [][]uint16 // phrase → groups that it fills
	whole  []bool     // phrase → it is a whole word, not the beginning of one
	exact  []int      // phrase → entry of a literal, or -1

	texts sync.Pool // of *Text
}

// maxGroups bounds the sets of the first pass.
const maxGroups = 1024

// Compile builds a lexicon. The number of an entry is its index.
func Compile(entries []Entry) (*Lexicon, error) {
	l := &Lexicon{texts: sync.Pool{New: func() any { return new(Text) }}}
	var sources []string
	var phrases []string
	at := map[string]int{} // words and literals apart
	phrase := func(kind, s string) int {
		i, ok := at[kind+s]
		if !ok {
			i = len(phrases)
			at[kind+s] = i
			phrases = append(phrases, strings.TrimSuffix(s, "*"))
			l.groups = append(l.groups, nil)
			l.whole = append(l.whole, !strings.HasSuffix(s, "*"))
			l.exact = append(l.exact, -1)
		}
		return i
	}
	groups := 1 // group 0 is none
	known := map[string]uint16{}
	for id, e := range entries {
		for _, src := range e.Words {
			one, err := NewPatterns([]string{src})
			if err != nil {
				return nil, fmt.Errorf("entry %s: %w", e.ID, err)
			}
			l.single = append(l.single, one)
			var need [3]uint16
			for n, words := range one.required() {
				key := strings.Join(words, "|")
				g, ok := known[key]
				if !ok {
					g = uint16(groups)
					known[key] = g
					if groups++; groups > maxGroups {
						return nil, fmt.Errorf("the lexicon has more than %d groups of words: split it", maxGroups)
					}
					for _, w := range words {
						i := phrase("word ", w)
						l.groups[i] = append(l.groups[i], g)
					}
				}
				need[n] = g
			}
			l.always = l.always || need == [3]uint16{}
			sources = append(sources, src)
			l.entryOf = append(l.entryOf, id)
			l.needs = append(l.needs, need)
		}
		for _, s := range e.Literals {
			folded := Fold(s)
			if folded == "" {
				return nil, fmt.Errorf("entry %s: the literal %q folds to nothing", e.ID, s)
			}
			i := phrase("literal ", folded)
			if l.exact[i] >= 0 && l.exact[i] != id {
				return nil, fmt.Errorf("entry %s: the literal %q belongs to entry %s already", e.ID, s, entries[l.exact[i]].ID)
			}
			l.exact[i] = id
		}
	}
	var err error
	if l.patterns, err = NewPatterns(sources); err != nil {
		return nil, err
	}
	l.quick = NewPhrases(phrases)
	return l, nil
}

// Match is one place where an entry matched: bytes of the original text.
type Match struct{ Entry, Start, End int }

// fewCandidates is up to how many patterns are quicker to match one by one than
// with all the others.
const fewCandidates = 4

// maxPooled bounds the tokens of a buffer that is kept.
const maxPooled = 4096

// Text is a text that several lexicons look at: what has been worked out for one
// serves the next. The zero value is an empty text. It belongs to one goroutine.
type Text struct {
	Original string
	Odd      Oddities

	plain    bool // ASCII without oddities: an automaton reads it as it is
	folded   string
	isFolded bool
	tokens   []Token
	isTokens bool
	back     Folded
	isBack   bool
}

// Reset makes it another text. odd is text.Scan(s).
func (t *Text) Reset(s string, odd Oddities) {
	if len(t.tokens) > maxPooled {
		t.tokens = nil // one huge text must not leave a huge buffer behind
	}
	clear(t.tokens) // keep no text alive
	*t = Text{Original: s, Odd: odd, plain: odd == 0 && isASCII(s), tokens: t.tokens[:0]}
}

// Folded is the folded text.
func (t *Text) Folded() string {
	if !t.isFolded {
		t.folded, t.isFolded = Fold(t.Original), true
	}
	return t.folded
}

// Quick is what an automaton that takes either case may read instead of the
// folded text: the text itself where folding would only change case and white
// space. mapped reports whether places in it are places in the original.
func (t *Text) Quick() (s string, mapped bool) {
	if t.plain {
		return t.Original, true
	}
	return t.Folded(), false
}

// Back returns the place in the original of a place in the folded text.
func (t *Text) Back(start, end int) (int, int) {
	if !t.isBack {
		t.back, t.isBack = FoldMap(t.Original), true
	}
	return t.back.Span(start, end)
}

func (t *Text) words() []Token {
	if !t.isTokens {
		t.tokens, t.isTokens = AppendTokens(t.tokens[:0], t.Folded()), true
	}
	return t.tokens
}

// Find appends the first match of each entry that matches in s, in the order of
// entries, to dst. odd is text.Scan(s).
func (l *Lexicon) Find(dst []Match, s string, odd Oddities) []Match {
	t := l.texts.Get().(*Text)
	t.Reset(s, odd)
	dst = l.FindIn(dst, t)
	t.Reset("", 0)
	l.texts.Put(t)
	return dst
}

// FindIn is Find in a text that other lexicons may have looked at.
func (l *Lexicon) FindIn(dst []Match, t *Text) []Match {
	var few [fewCandidates]int
	quick, _ := t.Quick()
	candidates, literal := l.candidates(quick, few[:])
	if candidates == 0 && !literal {
		return dst
	}
	folded := t.Folded()
	from := len(dst)
	add := func(entry, start, end int) {
		for i := from; i < len(dst); i++ {
			if m := &dst[i]; m.Entry == entry {
				if start < m.Start {
					m.Start, m.End = start, end
				}
				return
			}
		}
		dst = append(dst, Match{entry, start, end})
	}
	switch {
	case candidates > fewCandidates:
		l.patterns.FindTokens(folded, t.words(), func(id, start, end int) bool {
			add(l.entryOf[id], start, end)
			return true
		})
	case candidates > 0:
		for _, id := range few[:candidates] {
			l.single[id].FindTokens(folded, t.words(), func(_, start, end int) bool {
				add(l.entryOf[id], start, end)
				return false
			})
		}
	}
	if literal {
		l.quick.Find(folded, func(id, start, end int) bool {
			if e := l.exact[id]; e >= 0 {
				add(e, start, end)
			}
			return true
		})
	}
	if len(dst) == from {
		return dst
	}
	for i := from; i < len(dst); i++ {
		dst[i].Start, dst[i].End = t.Back(dst[i].Start, dst[i].End)
	}
	slices.SortFunc(dst[from:], func(a, b Match) int { return cmp.Compare(a.Entry, b.Entry) })
	return dst
}

// candidates counts the patterns that may match in s, which is folded or plain
// ASCII, and puts the first of them into few; literal reports whether a literal
// is there.
func (l *Lexicon) candidates(s string, few []int) (count int, literal bool) {
	var seen [maxGroups / 64]uint64
	any := false
	l.quick.Find(s, func(id, start, end int) bool {
		if l.exact[id] >= 0 {
			literal = true
			return true
		}
		// An ASCII letter or digit beside one belongs to the same word. Other
		// characters may: those do not count.
		if start > 0 && isAlnum(s[start-1]) && isAlnum(s[start]) ||
			l.whole[id] && end < len(s) && isAlnum(s[end]) && isAlnum(s[end-1]) {
			return true
		}
		for _, g := range l.groups[id] {
			seen[g>>6] |= 1 << (g & 63)
			any = true
		}
		return true
	})
	if !any && !l.always {
		return 0, literal
	}
	seen[0] |= 1 // group 0
	for i := range l.needs {
		n := &l.needs[i]
		if seen[n[0]>>6]>>(n[0]&63)&1 != 0 && seen[n[1]>>6]>>(n[1]&63)&1 != 0 && seen[n[2]>>6]>>(n[2]&63)&1 != 0 {
			if count < len(few) {
				few[count] = i
			}
			count++
		}
	}
	return count, literal
}

// required returns up to three groups of words such that every match of the first
// pattern holds a word of each; "word*" is the beginning of one.
func (p *Patterns) required() [][]string {
	needs := slices.Clone(p.list[0].needs)
	slices.SortStableFunc(needs, func(a, b []string) int { return cmp.Compare(commonest(b), commonest(a)) })
	return needs[:min(len(needs), 3)]
}

// rarity orders words by how unlikely a text is to hold them: by the frequency
// in everyday English, among equals by length.
func rarity(word string) float32 {
	word, prefix := strings.CutSuffix(word, "*")
	r := Weight(word) + float32(min(len(word), 20))/50
	if prefix {
		r -= 0.1
	}
	return r
}

// commonest is the rarity of the likeliest word of a group.
func commonest(words []string) float32 {
	r := rarity(words[0])
	for _, w := range words {
		r = min(r, rarity(w))
	}
	return r
}
