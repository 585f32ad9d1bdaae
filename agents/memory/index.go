package memory

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

// Cache shares the analysis of texts between the trials of a run.
type Cache struct{ memo *text.Memo[*index] }

// NewCache returns a cache of at most about maxBytes.
func NewCache(maxBytes int) *Cache { return &Cache{text.New[*index](maxBytes)} }

func (c *Cache) index(s string) *index { return c.memo.Get(s, newIndex) }

// index is what lineage and recall need to know about one text.
type index struct {
	spans []uint64 // content spans in order, each once: pairs of neighbouring content words, or the one word
	pairs []uint64 // spans, sorted
	stems []term   // content words with their counts, sorted
	count int      // content words in all

	text  string
	embed sync.Once
	vec   []float32
	wish  sync.Once
	keeps []*keeping // none where the text asks to keep nothing
	parts sync.Once
	said  []statement
}

type term struct {
	word uint64
	n    int32
}

// ownWord reports a word that an agent's own phrasing adds when it stores
// what was said ("The user prefers …"): it must not look like content that
// came from nowhere.
func ownWord(w string) bool {
	switch w {
	case "user", "user's", "users", "i", "my", "me", "we", "our", "us", "you", "your", "please":
		return true
	}
	return false
}

func newIndex(s string) (*index, int) {
	ix := &index{text: s}
	room := rooms.Get().(*room)
	defer rooms.Put(room)
	toks := text.AppendTokens(room.tokens[:0], s)
	stems := room.stems[:0]
	for i := range toks {
		if w := room.stem(&toks[i]); !w.other {
			stems = append(stems, w.stem)
		}
	}
	room.keep(toks, stems)
	ix.count = len(stems)
	switch len(stems) {
	case 0:
	case 1:
		ix.spans = []uint64{stems[0]}
	default:
		ix.spans = make([]uint64, 0, len(stems)-1)
		for i := 1; i < len(stems); i++ {
			ix.spans = append(ix.spans, pair(stems[i-1], stems[i]))
		}
	}
	ix.pairs = slices.Clone(ix.spans)
	slices.Sort(ix.pairs)
	ix.pairs = slices.Compact(ix.pairs)
	slices.Sort(stems)
	distinct := 0
	for i, w := range stems {
		if i == 0 || w != stems[i-1] {
			distinct++
		}
	}
	ix.stems = make([]term, 0, distinct)
	for i, w := range stems {
		if i > 0 && w == stems[i-1] {
			ix.stems[len(ix.stems)-1].n++
			continue
		}
		ix.stems = append(ix.stems, term{w, 1})
	}
	return ix, 8*(2*len(ix.spans)+2*len(ix.stems)) + 4*text.HashDim + 200
}

// vector embeds the text, once.
func (ix *index) vector() []float32 {
	ix.embed.Do(func() {
		ix.vec = make([]float32, text.HashDim)
		text.Hashing{}.EmbedInto(ix.vec, ix.text)
	})
	return ix.vec
}

// room is what making an index takes, for the next one.
type room struct {
	tokens []text.Token
	stems  []uint64
	words  [1 << 10]known
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// keep has the next index take the place of the lists. A text that fills the window of a
// profile is remembered, a huge one is not.
func (r *room) keep(toks []text.Token, stems []uint64) {
	if cap(toks) <= 1<<14 {
		r.tokens, r.stems = toks, stems
	}
}

// known is a short word that was asked for lately.
type known struct {
	letters [16]byte
	length  uint8
	kind    text.TokenKind
	word
}

// word is what an index has of a token.
type word struct {
	stem        uint64 // its hash
	stop, other bool   // a stopword; no content word at all
}

func (r *room) stem(t *text.Token) word {
	w := known{length: uint8(len(t.Text)), kind: t.Kind}
	if len(t.Text) > len(w.letters) {
		return wordOf(t)
	}
	copy(w.letters[:], t.Text)
	h := binary.LittleEndian.Uint64(w.letters[:8]) + 31*binary.LittleEndian.Uint64(w.letters[8:])
	at := &r.words[h*0x9E3779B97F4A7C15>>54]
	if at.letters != w.letters || at.length != w.length || at.kind != w.kind {
		w.word = wordOf(t)
		*at = w
	}
	return at.word
}

func wordOf(t *text.Token) word {
	stop := text.IsStopword(t.Text)
	return word{text.Hash(text.Stem(t.Text)), stop, t.Kind == text.Word && (stop || ownWord(t.Text))}
}

func (ix *index) hasPair(p uint64) bool {
	_, ok := slices.BinarySearch(ix.pairs, p)
	return ok
}

func (ix *index) hasWord(w uint64) bool {
	return ix.times(w) > 0
}

// times is how often the text has a content word.
func (ix *index) times(w uint64) int32 {
	i, ok := slices.BinarySearchFunc(ix.stems, w, func(t term, w uint64) int { return cmp.Compare(t.word, w) })
	if !ok {
		return 0
	}
	return ix.stems[i].n
}

func pair(a, b uint64) uint64 { return (a*0x9E3779B97F4A7C15 + b) * 0xD6E8FEB86659FD93 }
