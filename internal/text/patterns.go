package text

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Patterns matches a list of token patterns in time linear in the text, with
// no backtracking. A pattern is a sequence, separated by spaces, of
//
//	word          that word, in either case
//	word*         a word that begins so
//	*             any one token
//	#             any number or token with digits
//	(a|b c|d*)    one of several sequences
//	...3          a gap: up to 3 tokens, whatever they are, in the same sentence
//
// each of which (a gap aside) may be followed by ? for "or nothing". Words are
// the tokens of Tokens: punctuation between them does not matter, except that
// a gap does not reach over the end of a sentence.
//
//	ignore (all|any|the)? (previous|prior|above) instruction*
//
// Building is cheap (microseconds a pattern). A Patterns never changes; any
// number of goroutines may use it.
type Patterns struct {
	list     []compiledPattern
	words    map[string]*atom
	prefixes [256][]*atom // by first byte
	any      []place      // places that any token fills and a match may begin with
	number   []place      // places that a token with digits fills
	scratch  sync.Pool
}

type compiledPattern struct {
	source string
	follow []uint64 // place → places that may come next
	gaps   uint64   // places that are part of a gap
	any    uint64   // places that any token fills, gaps included
	first  uint64   // places that may come first
	last   uint64   // places that may come last
	needs  [][]string
}

// place is one position in one pattern: where its token may stand.
type place struct {
	pattern int32
	first   bool // a match may begin with one of them
	bits    uint64
}

// atom lists where one word, or the beginning of one, stands in all patterns.
type atom struct {
	word   string
	places []place
}

// NewPatterns compiles a list. The id of a pattern is its index. A pattern may
// hold 64 words, alternatives and gap tokens included, and must not match the
// empty text.
func NewPatterns(sources []string) (*Patterns, error) {
	p := &Patterns{words: map[string]*atom{}}
	for id, src := range sources {
		if err := p.add(int32(id), src); err != nil {
			return nil, fmt.Errorf("compiling pattern %d %q: %w", id, src, err)
		}
	}
	for id, c := range p.list {
		if first := c.any & c.first; first != 0 {
			p.any = append(p.any, place{pattern: int32(id), bits: first})
		}
	}
	p.markFirst(p.any)
	p.markFirst(p.number)
	for _, a := range p.words {
		p.markFirst(a.places)
	}
	for _, a := range slices.Concat(p.prefixes[:]...) {
		p.markFirst(a.places)
	}
	n := len(p.list)
	p.scratch.New = func() any { return &patternRun{state: make([]patternState, n)} }
	return p, nil
}

func (p *Patterns) markFirst(places []place) {
	for i := range places {
		places[i].first = places[i].bits&p.list[places[i].pattern].first != 0
	}
}

// Len is the number of patterns.
func (p *Patterns) Len() int { return len(p.list) }

// Find calls f for matches in s, which should be folded: see FindTokens.
func (p *Patterns) Find(s string, f func(id, start, end int) bool) {
	r := p.scratch.Get().(*patternRun)
	r.tokens = AppendTokens(r.tokens[:0], s)
	p.find(r, s, r.tokens, f)
	clear(r.tokens) // keep no text alive
	p.scratch.Put(r)
}

// FindTokens calls f with the id and the span in s of each match, in the order
// in which they end; it stops when f returns false. tokens are the tokens of
// s. Of the matches of one pattern that overlap, the one that ends first is
// given, from the earliest token that it can begin with.
func (p *Patterns) FindTokens(s string, tokens []Token, f func(id, start, end int) bool) {
	r := p.scratch.Get().(*patternRun)
	p.find(r, s, tokens, f)
	p.scratch.Put(r)
}

// Match reports whether any pattern matches in s.
func (p *Patterns) Match(s string) bool {
	found := false
	p.Find(s, func(int, int, int) bool {
		found = true
		return false
	})
	return found
}

type patternRun struct {
	tokens []Token
	state  []patternState
	live   []int32 // patterns with state.active != 0
	hit    []int32 // patterns with state.fits != 0, in this step
}

type patternState struct {
	active uint64 // places filled by the token before
	fits   uint64 // places that this token can fill
	start  [64]int32
}

func (p *Patterns) find(r *patternRun, s string, tokens []Token, f func(id, start, end int) bool) {
	defer func() {
		for _, id := range r.live {
			r.state[id].active = 0
		}
		r.live = r.live[:0]
	}()
	fit := func(places []place) {
		for _, pl := range places {
			st := &r.state[pl.pattern]
			if st.active == 0 && !pl.first {
				continue
			}
			if st.fits == 0 {
				r.hit = append(r.hit, pl.pattern)
			}
			st.fits |= pl.bits
		}
	}
	for i := range tokens {
		t := &tokens[i]
		r.hit = r.hit[:0]
		if a := p.words[t.Text]; a != nil {
			fit(a.places)
		}
		for _, a := range p.prefixes[t.Text[0]] {
			if strings.HasPrefix(t.Text, a.word) {
				fit(a.places)
			}
		}
		if t.Kind == Number || t.Kind == Mixed {
			fit(p.number)
		}
		fit(p.any)
		for _, id := range r.live {
			if c := &p.list[id]; c.any != 0 {
				st := &r.state[id]
				if st.fits == 0 {
					r.hit = append(r.hit, id)
				}
				st.fits |= c.any
			}
		}
		if len(r.live) == 0 && len(r.hit) == 0 {
			continue
		}
		newSentence := i > 0 && len(r.live) > 0 && endsSentence(s[tokens[i-1].End:t.Start])

		stop := false
		for _, id := range r.hit {
			c, st := &p.list[id], &r.state[id]
			was := st.active
			var now uint64
			var start [64]int32
			for rest := was; rest != 0; rest &= rest - 1 {
				at := bits.TrailingZeros64(rest)
				to := c.follow[at] & st.fits
				if newSentence {
					// Neither into a gap nor out of one.
					to &^= c.gaps
					if c.gaps&(1<<at) != 0 {
						to = 0
					}
				}
				for next := to; next != 0; next &= next - 1 {
					n := bits.TrailingZeros64(next)
					if now&(1<<n) == 0 || st.start[at] < start[n] {
						start[n] = st.start[at]
					}
				}
				now |= to
			}
			for next := c.first & st.fits &^ now; next != 0; next &= next - 1 {
				n := bits.TrailingZeros64(next)
				start[n] = int32(i)
				now |= 1 << n
			}
			if done := now & c.last; done != 0 {
				from := int32(i)
				for ; done != 0; done &= done - 1 {
					from = min(from, start[bits.TrailingZeros64(done)])
				}
				now = 0
				if !stop && !f(int(id), tokens[from].Start, t.End) {
					stop = true
				}
			}
			for n := now; n != 0; n &= n - 1 {
				at := bits.TrailingZeros64(n)
				st.start[at] = start[at]
			}
			// fits stays set as the mark that active is of this step.
			st.active = now
		}
		// Patterns that the token did not fit have come to nothing.
		for _, id := range r.live {
			if r.state[id].fits == 0 {
				r.state[id].active = 0
			}
		}
		r.live = r.live[:0]
		for _, id := range r.hit {
			r.state[id].fits = 0
			if r.state[id].active != 0 {
				r.live = append(r.live, id)
			}
		}
		if stop {
			return
		}
	}
}

// endsSentence reports whether the text between two tokens ends a sentence.
func endsSentence(between string) bool {
	for i := 0; i < len(between); i++ {
		switch between[i] {
		case '.', '!', '?':
			return true
		case '\n':
			if strings.Contains(between[i+1:], "\n") {
				return true
			}
		}
	}
	return false
}

// A part of a pattern under construction: the places it may begin and end
// with, and whether it may be nothing.
type patternPart struct {
	first, last uint64
	empty       bool
	// needs are groups of words of which each match holds one; "word*" is the
	// beginning of one.
	needs [][]string
}

type patternParser struct {
	p      *Patterns
	id     int32
	src    string
	pos    int
	places int
	c      *compiledPattern
}

func (p *Patterns) add(id int32, src string) error {
	c := compiledPattern{source: src}
	pp := &patternParser{p: p, id: id, src: src, c: &c}
	part, err := pp.sequence(0)
	if err != nil {
		return err
	}
	if pp.pos < len(src) {
		return fmt.Errorf("unexpected %q at byte %d", src[pp.pos], pp.pos)
	}
	if part.empty {
		return fmt.Errorf("it would match the empty text: make one word of it required")
	}
	c.first, c.last, c.needs = part.first, part.last, part.needs
	if c.first&c.gaps != 0 || c.last&c.gaps != 0 {
		return fmt.Errorf("a gap needs a required word on both sides")
	}
	p.list = append(p.list, c)
	return nil
}

func (pp *patternParser) newPlace() (uint64, error) {
	if pp.places == 64 {
		return 0, fmt.Errorf("it has more than 64 words: split it")
	}
	pp.places++
	pp.c.follow = append(pp.c.follow, 0)
	return 1 << (pp.places - 1), nil
}

func (pp *patternParser) join(a, b patternPart) patternPart {
	for rest := a.last; rest != 0; rest &= rest - 1 {
		pp.c.follow[bits.TrailingZeros64(rest)] |= b.first
	}
	out := patternPart{first: a.first, last: b.last, empty: a.empty && b.empty, needs: slices.Concat(a.needs, b.needs)}
	if a.empty {
		out.first |= b.first
	}
	if b.empty {
		out.last |= a.last
	}
	return out
}

// sequence reads elements up to the end, a bar or a closing bracket.
func (pp *patternParser) sequence(depth int) (patternPart, error) {
	whole := patternPart{empty: true}
	for {
		for pp.pos < len(pp.src) && pp.src[pp.pos] == ' ' {
			pp.pos++
		}
		if pp.pos == len(pp.src) || pp.src[pp.pos] == '|' && depth > 0 || pp.src[pp.pos] == ')' {
			return whole, nil
		}
		part, err := pp.element(depth)
		if err != nil {
			return whole, err
		}
		whole = pp.join(whole, part)
	}
}

func (pp *patternParser) element(depth int) (patternPart, error) {
	var part patternPart
	if pp.src[pp.pos] == '(' {
		if depth > 8 {
			return part, fmt.Errorf("brackets nest deeper than 8")
		}
		open := pp.pos
		var group []string // of the rarest words of each alternative
		for whole := true; ; {
			pp.pos++ // the bracket or the bar
			alt, err := pp.sequence(depth + 1)
			if err != nil {
				return part, err
			}
			part.first |= alt.first
			part.last |= alt.last
			part.empty = part.empty || alt.empty
			if whole = whole && len(alt.needs) > 0; whole {
				group = append(group, slices.MaxFunc(alt.needs, func(a, b []string) int {
					return cmp.Compare(commonest(a), commonest(b))
				})...)
			}
			if pp.pos == len(pp.src) {
				return part, fmt.Errorf("the bracket at byte %d is not closed", open)
			}
			if pp.src[pp.pos] == ')' {
				pp.pos++
				if whole {
					slices.Sort(group)
					part.needs = [][]string{slices.Compact(group)}
				}
				break
			}
		}
	} else {
		from := pp.pos
		for pp.pos < len(pp.src) && !strings.ContainsRune(" |()?", rune(pp.src[pp.pos])) {
			pp.pos++
		}
		word := pp.src[from:pp.pos]
		if word == "" {
			return part, fmt.Errorf("unexpected %q at byte %d", pp.src[pp.pos], pp.pos)
		}
		if n, ok := strings.CutPrefix(word, "..."); ok {
			return pp.gap(n)
		}
		var err error
		if part, err = pp.word(word); err != nil {
			return part, err
		}
	}
	if pp.pos < len(pp.src) && pp.src[pp.pos] == '?' {
		pp.pos++
		part.empty, part.needs = true, nil
	}
	return part, nil
}

// gap is n optional tokens.
func (pp *patternParser) gap(n string) (patternPart, error) {
	count, err := strconv.Atoi(n)
	if err != nil || count < 1 || count > 32 {
		return patternPart{}, fmt.Errorf("the gap %q does not say how many tokens, 1 to 32", "..."+n)
	}
	whole := patternPart{empty: true}
	for range count {
		bit, err := pp.newPlace()
		if err != nil {
			return whole, err
		}
		pp.c.gaps |= bit
		pp.c.any |= bit
		whole = pp.join(whole, patternPart{first: bit, last: bit, empty: true})
	}
	return whole, nil
}

func (pp *patternParser) word(word string) (patternPart, error) {
	switch word {
	case "*":
		bit, err := pp.newPlace()
		pp.c.any |= bit
		return patternPart{first: bit, last: bit}, err
	case "#":
		bit, err := pp.newPlace()
		pp.p.number = addPlace(pp.p.number, pp.id, bit)
		return patternPart{first: bit, last: bit}, err
	}
	prefix := strings.HasSuffix(word, "*")
	folded := Fold(strings.TrimSuffix(word, "*"))
	tokens := Tokens(folded)
	if len(tokens) == 0 {
		return patternPart{}, fmt.Errorf("%q has no word in it", word)
	}
	// What the tokeniser splits ("follow-up") is a sequence here too.
	whole := patternPart{empty: true}
	for i, t := range tokens {
		bit, err := pp.newPlace()
		if err != nil {
			return whole, err
		}
		need := t.Text
		a := pp.p.words[need]
		if prefix && i == len(tokens)-1 {
			a = pp.prefix(need)
			need += "*"
		} else if a == nil {
			a = &atom{word: need}
			pp.p.words[need] = a
		}
		a.places = addPlace(a.places, pp.id, bit)
		whole = pp.join(whole, patternPart{first: bit, last: bit, needs: [][]string{{need}}})
	}
	return whole, nil
}

// prefix returns the atom of the beginning of a word.
func (pp *patternParser) prefix(word string) *atom {
	list := &pp.p.prefixes[word[0]]
	i := slices.IndexFunc(*list, func(a *atom) bool { return a.word == word })
	if i < 0 {
		i = len(*list)
		*list = append(*list, &atom{word: word})
	}
	return (*list)[i]
}

func addPlace(places []place, id int32, bit uint64) []place {
	if n := len(places); n > 0 && places[n-1].pattern == id {
		places[n-1].bits |= bit
		return places
	}
	return append(places, place{pattern: id, bits: bit})
}
