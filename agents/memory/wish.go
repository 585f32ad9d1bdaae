package memory

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/memtox/memtox/internal/text"
)

// keeping is what somebody asks to keep by his words: the words that single a part
// out of what he was shown, and the kinds of value, each with its weight.
type keeping struct {
	words   []weighted // sorted
	kinds   [text.Kinds]float64
	dearest float64 // of kinds
	facts   bool    // he wants to know when, or how much
	items   []int   // of a list, by number
	adopts  bool    // he says that he goes by it from now on

	last atomic.Pointer[reading] // the trials of one case hold it against the same texts
}

type weighted struct {
	word   uint64
	weight float64
}

// Words beside the request itself ("That is where I book now. Please note it.") weigh
// less, and a kind of value ("the mailbox", "when") as much as a rare word.
const (
	besideWeight = 0.6
	kindWeight   = 2
)

// keeping reads the text as what the user says, once: one wish, or several that stand in
// a sentence.
func (ix *index) keeping() []*keeping {
	ix.wish.Do(func() {
		if !text.Wishes(ix.text) {
			return
		}
		one := &keeping{items: text.Numbered(ix.text), adopts: text.Adopts(ix.text)}
		var beside []string
		for _, s := range parts(ix.text) {
			wishes, others := text.Meant(s.Text)
			beside = append(beside, others...)
			if !text.Wishes(s.Text) {
				for _, w := range wishes {
					beside = append(beside, w.Words...)
					one.named(w.Kinds, besideWeight)
				}
				continue
			}
			for _, w := range wishes {
				k := one
				if len(wishes) > 1 {
					k = &keeping{items: one.items, adopts: one.adopts}
					ix.keeps = append(ix.keeps, k)
				}
				k.add(w.Words, 1)
				k.named(w.Kinds, 1)
				if len(w.Kinds) > 0 {
					k.facts = !slices.ContainsFunc(w.Kinds, func(of text.ValueKind) bool { return 1<<of&telling == 0 })
				}
			}
		}
		if len(one.words) > 0 || ix.keeps == nil {
			ix.keeps = append(ix.keeps, one)
		}
		for _, k := range ix.keeps {
			k.add(beside, besideWeight)
			k.dearest = slices.Max(k.kinds[:])
		}
	})
	return ix.keeps
}

// part is a sentence, or a part of the sentence of that number.
type part struct {
	text.Sentence
	of int
}

func parts(s string) (out []part) {
	for i, st := range text.Sentences(s) {
		for _, p := range text.Chatted(st) {
			out = append(out, part{p, i})
		}
	}
	return out
}

func (k *keeping) named(kinds []text.ValueKind, weight float64) {
	for _, kind := range kinds {
		k.kinds[kind] = max(k.kinds[kind], kindWeight*weight)
	}
}

func (k *keeping) add(words []string, weight float64) {
	for _, s := range words {
		word := text.Hash(text.Stem(s))
		i, known := slices.BinarySearchFunc(k.words, word, byWord)
		if !known {
			k.words = slices.Insert(k.words, i, weighted{word, weight})
		}
		k.words[i].weight = max(k.words[i].weight, weight)
	}
}

func byWord(w weighted, to uint64) int {
	switch {
	case w.word < to:
		return -1
	case w.word > to:
		return 1
	}
	return 0
}

// statement is a sentence of a content as wishes see it.
type statement struct {
	text   string
	words  []uint64 // stems of its content words, sorted, each once
	number int      // of an item of a list
	of     int      // the sentence that it is a part of, by number
	some   uint64   // a bit for each word, by its last bits: most words that it lacks show there
	values atomic.Uint32
}

// has reports whether the statement has a word.
func (s *statement) has(word uint64) bool {
	return s.some&(1<<(word&63)) != 0 && has(s.words, word)
}

// statements are the sentences of the text, read once.
func (ix *index) statements() []statement {
	ix.parts.Do(func() {
		room := rooms.Get().(*room)
		defer rooms.Put(room)
		sentences, words := parts(ix.text), room.stems[:0]
		ix.said = make([]statement, len(sentences))
		number, end := 0, 0
		for i := range sentences {
			s, st, from := &sentences[i], &ix.said[i], len(words)
			toks := text.AppendTokens(room.tokens[:0], s.Text)
			if n := max(numberBefore(ix.text[:s.Start]), numberAt(s.Text, toks)); n > 0 || strings.Contains(ix.text[end:s.Start], "\n") {
				number = n // else it stands in the line of the one before, and in its item
			}
			st.text, st.number, st.of, end = s.Text, number, s.of, s.End
			for j := range toks {
				if w := room.stem(&toks[j]); !w.stop {
					words = append(words, w.stem)
				}
			}
			room.keep(toks, words)
			slices.Sort(words[from:])
			st.words = slices.Compact(words[from:])
			words = words[:from+len(st.words)]
		}
		words = slices.Clone(words)
		for i := range ix.said {
			n := len(ix.said[i].words)
			ix.said[i].words, words = words[:n:n], words[n:]
			for _, w := range ix.said[i].words {
				ix.said[i].some |= 1 << (w & 63)
			}
		}
	})
	return ix.said
}

// kinds has the bit of each kind of value in the statement. Bit 0, which is none's, says
// that they have been looked for.
func (s *statement) kinds() uint32 {
	k := s.values.Load()
	if k == 0 {
		k = 1
		for _, v := range text.Values(s.text) {
			k |= 1 << v.Kind
		}
		s.values.Store(k)
	}
	return k
}

// decides are its values that decide where something goes or what is run.
func (s *statement) decides() (out []string) {
	if s.kinds()&deciding != 0 {
		for _, v := range text.Values(s.text) {
			if 1<<v.Kind&deciding != 0 {
				out = append(out, v.Text)
			}
		}
	}
	return out
}

// deciding are the kinds of such values.
const deciding = 1<<text.Account | 1<<text.Email | 1<<text.Phone | 1<<text.URL | 1<<text.Host | 1<<text.Path | 1<<text.Command

// telling are the kinds that only say when and how much.
const telling = 1<<text.DateTime | 1<<text.Money | 1<<text.Figure

// numberBefore is the number of an item that begins behind it, 0 for none.
func numberBefore(s string) int {
	s = strings.TrimRight(s, " \t\"'")
	if s = strings.TrimRight(s, ".):"); s == "" {
		return 0
	}
	from := len(s)
	for from > 0 && len(s)-from < 2 && s[from-1] >= '0' && s[from-1] <= '9' {
		from--
	}
	n := 0
	for ; from < len(s); from++ {
		n = 10*n + int(s[from]-'0')
	}
	return n
}

// numberAt is the number of an item that a sentence begins with: "[2] Weld", "Step 2".
func numberAt(s string, toks []text.Token) int {
	if at := strings.IndexByte(s, ']'); at > 1 && at < 4 && s[0] == '[' {
		return numberBefore(s[:at])
	}
	if len(toks) > 1 && toks[1].Text[0] >= '0' && toks[1].Text[0] <= '9' {
		if n := text.Numbered(s[:toks[1].End]); len(n) > 0 {
			return n[0]
		}
	}
	return 0
}

// wish is what the user asked to keep in a turn, among what he had been shown.
type wish struct {
	*keeping
	*reading // nil until it is held against the window
	turn     int
	seen     int // of the window, how much the reading is about
	newer    int // the last turn that brought content
}

// reading is what somebody asks to keep, held against what he was shown and had said. It
// is never changed.
type reading struct {
	of   []heardText
	rare []float64  // how much each of the words tells
	most float64    // the weight of the sentence that is meant first of all
	kind bool       // it has a value of a kind that he names
	only [][]uint64 // words of the items that he names by number
	to   []string   // where something goes, by the sentences that are meant
	few  bool       // the last turn that brought content brought a few sentences
}

// heardText is a text of the window, as a wish sees it.
type heardText struct {
	*index
	what byte
}

const (
	users  = iota // the user had said it before he was shown anything, or to be shown it
	older         // he had been shown it
	newest        // he was shown it last
)

// share is how much of the weight of the sentence that is meant first of all another
// one needs to be meant too, unless it says the same: what a wish singles out may be said
// several times. What was noted of an item must have as much of its words.
const share = 0.8

// Who asks to keep all of what he was shown means each of a few sentences, and none of
// many in particular.
const fewStatements = 3

// A word tells by how few sentences have it, and as much in a long text as in one of so
// many: else, where a mail is long, a word of four sentences tells nearly what a word of
// one does.
const ordinary = 20

// meant reports whether the wish is for a text that came in a turn. Where his words
// single out a part of what the user was shown, that part is meant, else all that came
// last.
func (w *wish) meant(c *Cache, window []Segment, turn int, content string) bool {
	if turn > w.turn {
		return false
	}
	if w.reading == nil || slices.ContainsFunc(window[w.seen:], w.shown) {
		w.read(c, window)
	}
	w.seen = len(window)
	if len(w.words) == 0 && len(w.only) == 0 {
		return turn == w.newer && w.few // "please save that"
	}
	said := c.index(content).statements()
	for i := range said {
		s := &said[i]
		if len(w.only) > 0 {
			if slices.ContainsFunc(w.only, func(item []uint64) bool { return shared(item, s.words) >= share*float64(len(s.words)) }) {
				return true
			}
			continue
		}
		if w.singles(s) && w.all(said, s.of) {
			return true
		}
	}
	return false
}

// all reports whether of the parts of a sentence the wish singles out each that says where
// something goes: they stand in one record.
func (w *wish) all(said []statement, sentence int) bool {
	for i := range said {
		if s := &said[i]; s.of == sentence && s.kinds()&deciding != 0 && !w.singles(s) {
			return false
		}
	}
	return true
}

// singles reports whether the wish singles a sentence out.
func (w *wish) singles(s *statement) bool { return w.means(s) || w.repeats(s) }

// means reports whether a sentence is what his words single out. One that says where
// something goes needs more than to come near the best: the kind of value that he names,
// or all of his words that any has, unless he goes by it from now on.
func (w *wish) means(s *statement) bool {
	x, kind := w.weigh(s, share*w.most)
	switch {
	case x == 0 || x < share*w.most:
		return false
	case s.kinds()&deciding == 0 || kind && w.names(s.kinds()&deciding):
		return true
	case w.kind || w.facts:
		return false // he wants to know when, and this says where the money goes
	}
	return w.adopts || w.answered(s)
}

// names reports whether he names one of the kinds of value.
func (w *wish) names(kinds uint32) bool {
	for k, worth := range w.kinds {
		if worth > 0 && kinds&(1<<k) != 0 {
			return true
		}
	}
	return false
}

// answered reports whether a sentence has all of what he asks for that any has, and there is
// some: nothing of a mail is "what the script prints". Who names nothing there ("Please keep
// what it says of them") means what he says beside.
func (w *wish) answered(s *statement) bool {
	names, some := false, false
	for i, k := range w.words {
		if k.weight < 1 {
			continue
		}
		names = true
		if w.rare[i] > 0 {
			if some = true; !s.has(k.word) {
				return false
			}
		}
	}
	return some || !names
}

// repeats reports whether a sentence says of where something goes what one that is meant
// says.
func (w *wish) repeats(s *statement) bool {
	if len(w.to) == 0 {
		return false
	}
	if x, _ := w.weigh(s, 0); x == 0 {
		return false
	}
	return slices.ContainsFunc(s.decides(), func(v string) bool { return slices.Contains(w.to, v) })
}

func has(sorted []uint64, word uint64) bool {
	_, found := slices.BinarySearch(sorted, word)
	return found
}

// shared is how many words two statements share.
func shared(a, b []uint64) float64 {
	n := 0
	for _, w := range b {
		if has(a, w) {
			n++
		}
	}
	return float64(n)
}

// shown reports whether the user had been shown a segment when he made the wish.
func (w *wish) shown(s Segment) bool { return s.Origin.Class == External && s.Turn <= w.turn }

// read holds the wish against what the user was shown up to then.
func (w *wish) read(c *Cache, window []Segment) {
	w.newer = 0
	for i := range window {
		if s := &window[i]; w.shown(*s) {
			w.newer = max(w.newer, s.Turn)
		}
	}
	var room [32]heardText
	of := room[:0]
	for i := range window {
		s := &window[i]
		what := byte(older)
		switch {
		case s.Origin.Class == User && s.Turn <= w.newer && s.Turn < w.turn:
			what = users
		case !w.shown(*s):
			continue
		case s.Turn == w.newer:
			what = newest
		}
		of = append(of, heardText{c.index(s.Text), what})
	}
	if last := w.last.Load(); last != nil && slices.Equal(last.of, of) {
		w.reading = last
		return
	}
	w.reading = w.against(slices.Clone(of))
	w.last.Store(w.reading)
}

// against holds what is asked for against the texts.
func (k *keeping) against(of []heardText) *reading {
	w := &wish{keeping: k, reading: &reading{of: of, rare: make([]float64, len(k.words))}}
	var shown []*statement
	all, last := map[uint64]bool{}, 0
	for _, t := range of {
		said := t.statements()
		switch t.what {
		case users:
			// By the words that he had said before he was shown anything, or when he asked to be, he
			// means all of it, and no part. "The room of the test round", of an invitation to the test
			// round, is what has the room.
			for i := range said {
				for _, word := range said[i].words {
					all[word] = true
				}
			}
			continue
		case newest:
			last += len(said)
		}
		for i := range said {
			shown = append(shown, &said[i])
		}
	}
	w.few = last <= fewStatements
	part := false
	for i, k := range w.words {
		n := 0
		for _, s := range shown {
			if s.has(k.word) {
				n++
			}
		}
		if n > 0 {
			w.rare[i] = math.Log(1 + ordinary/float64(n))
		}
		part = part || !all[k.word] && (n > 0 || k.weight == 1)
	}
	for i, k := range w.words {
		if part && all[k.word] {
			w.rare[i] = 0
		}
	}
	words := 0.
	for _, s := range shown {
		x, _ := w.weigh(s, math.Inf(1))
		words = max(words, x)
	}
	for i := range shown {
		if x, kind := w.weigh(shown[i], words); x > w.most {
			w.most, w.kind = x, kind
		}
		if n := shown[i].number; n > 0 && slices.Contains(w.items, n) {
			w.only = append(w.only, shown[i].words)
		}
	}
	for _, s := range shown {
		if w.means(s) {
			w.to = append(w.to, s.decides()...)
		}
	}
	return w.reading
}

// weigh is how much a sentence is what the user means, and whether it has a value of a
// kind that he names. In one that cannot come to least with a value, none is looked for.
func (w *wish) weigh(s *statement, least float64) (float64, bool) {
	sum, kind := 0., 0.
	for i, k := range w.words {
		if s.has(k.word) {
			sum += k.weight * w.rare[i]
		}
	}
	if w.dearest > 0 && sum+w.dearest >= least {
		for k, worth := range w.kinds {
			if worth > kind && s.kinds()&(1<<k) != 0 {
				kind = worth
			}
		}
	}
	return sum + kind, kind > 0
}

// askedFor reports whether the user asked, in this session and after one of the
// segments had come, to keep what a text says.
func (m *Memory) askedFor(l Lineage, content string) bool {
	for _, k := range l {
		if k.Segment == 0 {
			continue
		}
		for i := range m.window {
			if s := &m.window[i]; s.ID == k.Segment && m.wasAsked(&m.opts, s.Turn, content) {
				return true
			}
		}
	}
	return false
}

// heard is what wishes of a session are about.
type heard struct {
	window []Segment       // what entered the context
	asked  map[int][]*wish // by turn, what the user asks to keep
}

// wasAsked reports whether the user asked to keep a text that came in a turn.
func (h *heard) wasAsked(opts *Options, turn int, content string) bool {
	if opts.WholeTurns {
		return h.asked[turn] != nil || h.asked[turn+1] != nil && !h.brought(turn+1)
	}
	for _, wishes := range h.asked {
		if slices.ContainsFunc(wishes, func(w *wish) bool { return w.meant(opts.Cache, h.window, turn, content) }) {
			return true
		}
	}
	return false
}

// brought reports whether a turn brought content.
func (h *heard) brought(turn int) bool {
	return slices.ContainsFunc(h.window, func(s Segment) bool { return s.Turn == turn && s.Origin.Class == External })
}
