package guard

import (
	"errors"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

// Glob is a pattern of record keys: * is any run of characters, dots and slashes
// included, ? any one, [abc] one of these, [a-z] one in that range, [!abc] none of
// these. Both key and pattern are folded, so that neither case nor a look-alike
// nor an invisible character leads around it.
type Glob struct {
	source string
	parts  [][]item // between the stars
}

// item matches one character.
type item struct {
	any    bool
	not    bool
	ranges []span // of runes; one of one rune for a plain character
}

type span struct{ lo, hi rune }

func (it *item) match(r rune) bool {
	if it.any {
		return true
	}
	for _, s := range it.ranges {
		if s.lo <= r && r <= s.hi {
			return !it.not
		}
	}
	return it.not
}

// maxGlob bounds a pattern, in bytes.
const maxGlob = 256

// ParseGlob reads a pattern.
func ParseGlob(s string) (Glob, error) {
	g := Glob{source: s}
	rs := []rune(text.Fold(s))
	switch {
	case len(s) > maxGlob:
		return g, errors.New("the pattern is longer than 256 bytes")
	case !utf8.ValidString(s):
		return g, errors.New("the pattern is not UTF-8")
	case len(rs) == 0:
		return g, errors.New("the pattern is empty: write * for every key")
	}
	part := []item{}
	for i := 0; i < len(rs); i++ {
		switch rs[i] {
		case '*':
			g.parts = append(g.parts, part)
			part = []item{}
		case '?':
			part = append(part, item{any: true})
		case '[':
			it, n, err := class(rs[i:])
			if err != nil {
				return g, err
			}
			part = append(part, it)
			i += n - 1
		default:
			part = append(part, item{ranges: []span{{rs[i], rs[i]}}})
		}
	}
	g.parts = append(g.parts, part)
	return g, nil
}

// class reads [abc], [a-z] or [!abc] and returns its length. A closing bracket
// that stands first is a character.
func class(rs []rune) (item, int, error) {
	var it item
	i := 1
	if i < len(rs) && rs[i] == '!' {
		it.not = true
		i++
	}
	for first := true; ; first = false {
		if i >= len(rs) {
			return it, 0, errors.New("the bracket [ is never closed")
		}
		if rs[i] == ']' && !first {
			return it, i + 1, nil
		}
		s := span{rs[i], rs[i]}
		if i+2 < len(rs) && rs[i+1] == '-' && rs[i+2] != ']' {
			s.hi = rs[i+2]
			i += 2
			if s.hi < s.lo {
				return it, 0, errors.New("the range in brackets runs backwards")
			}
		}
		it.ranges = append(it.ranges, s)
		i++
	}
}

// String returns the pattern as it was written.
func (g Glob) String() string { return g.source }

// Match reports whether the pattern covers the key.
func (g Glob) Match(key string) bool { return g.match(text.Fold(key)) }

// match is Match on a folded key: the first part at the beginning, the last at
// the end, each of the others at its first place in between.
func (g Glob) match(key string) bool {
	n, ok := at(g.parts[0], key)
	if !ok || len(g.parts) == 1 {
		return ok && n == len(key)
	}
	key = key[n:]
	last := g.parts[len(g.parts)-1]
	for _, part := range g.parts[1 : len(g.parts)-1] {
		for {
			if n, ok := at(part, key); ok {
				key = key[n:]
				break
			}
			_, n := utf8.DecodeRuneInString(key)
			if n == 0 {
				return false
			}
			key = key[n:]
		}
	}
	from := len(key)
	for range last {
		_, n := utf8.DecodeLastRuneInString(key[:from])
		if n == 0 {
			return false
		}
		from -= n
	}
	_, ok = at(last, key[from:])
	return ok
}

// at matches a part at the beginning of s and returns how long the match is.
func at(part []item, s string) (int, bool) {
	i := 0
	for k := range part {
		r, n := utf8.DecodeRuneInString(s[i:])
		if n == 0 || !part[k].match(r) {
			return 0, false
		}
		i += n
	}
	return i, true
}

// keys is a record's key, folded when the first pattern asks.
type keys struct {
	raw, folded string
	known       bool
}

func (k *keys) match(gs []Glob) bool {
	if len(gs) == 0 {
		return false
	}
	if !k.known {
		k.folded, k.known = text.Fold(k.raw), true
	}
	for _, g := range gs {
		if g.match(k.folded) {
			return true
		}
	}
	return false
}
