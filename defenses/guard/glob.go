package guard

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

// Glob is a pattern of record keys: * is any run of characters, dots and slashes
// included, ? any one, [abc] one of these, [a-z] one in that range, [!abc] none of
// these. Both key and pattern are folded, so that neither case nor a look-alike
// nor an invisible character leads around it.
type Glob struct {
	source string
	re     *regexp.Regexp // of folded keys
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
	var b strings.Builder
	for i := 0; i < len(rs); i++ {
		switch rs[i] {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '[':
			n, err := class(&b, rs[i:])
			if err != nil {
				return g, err
			}
			i += n - 1
		default:
			b.WriteString(regexp.QuoteMeta(string(rs[i])))
		}
	}
	var err error
	g.re, err = regexp.Compile("^(?s:" + b.String() + ")$")
	return g, err
}

// class writes [abc], [a-z] or [!abc] as a regular expression has it, and returns its
// length in the pattern. A closing bracket that stands first is a character.
func class(b *strings.Builder, rs []rune) (int, error) {
	b.WriteByte('[')
	i := 1
	if i < len(rs) && rs[i] == '!' {
		b.WriteByte('^')
		i++
	}
	for first := true; ; first = false {
		if i >= len(rs) {
			return 0, errors.New("the bracket [ is never closed")
		}
		if rs[i] == ']' && !first {
			b.WriteByte(']')
			return i + 1, nil
		}
		lo, hi := rs[i], rs[i]
		if i+2 < len(rs) && rs[i+1] == '-' && rs[i+2] != ']' {
			hi = rs[i+2]
			i += 2
			if hi < lo {
				return 0, errors.New("the range in brackets runs backwards")
			}
		}
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, lo, hi)
		i++
	}
}

// String returns the pattern as it was written.
func (g Glob) String() string { return g.source }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (g *Glob) UnmarshalText(b []byte) (err error) {
	if *g, err = ParseGlob(string(b)); err != nil {
		return fmt.Errorf("bad glob %q: %w", b, err)
	}
	return nil
}

// SettingSchema implements [settings.Schemer].
func (g *Glob) SettingSchema() map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "maxLength": maxGlob}
}

// Match reports whether the pattern covers the key.
func (g Glob) Match(key string) bool { return g.re.MatchString(text.Fold(key)) }

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
		if g.re.MatchString(k.folded) {
			return true
		}
	}
	return false
}
