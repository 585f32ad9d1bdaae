package keyword

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

// The threats that are characters, not words.
const (
	ansiEscape = iota
	controlCharacter
	bidiOverride
	bidiControl
	zeroWidth
	tagCharacters
	variationSelectors
	characterKinds
)

var characterThreats = [characterKinds]Threat{
	ansiEscape:         {"ansi_escape", Terminal, Relaxed},
	controlCharacter:   {"control_character", Terminal, Strict},
	bidiOverride:       {"bidi_override", Bidirectional, Relaxed},
	bidiControl:        {"bidi_control", Bidirectional, Strict},
	zeroWidth:          {"zero_width", Invisible, Relaxed},
	tagCharacters:      {"tag_characters", Invisible, Relaxed},
	variationSelectors: {"variation_selectors", Invisible, Relaxed},
}

// oddCharacters are the oddities that can be a threat of characters.
const oddCharacters = text.ZeroWidth | text.BidiControl | text.ANSIEscape | text.ControlChars | text.TagChars | text.Selectors

// span is the first place of a threat; end is 0 where there is none.
type span struct{ start, end int }

// characters finds the first place of each threat. Characters that honest text
// needs are none: joiners in emoji and in scripts that join letters, a flag's
// tags, one variation selector, direction marks and embeddings in a text that has
// letters written from right to left, a byte-order mark at the start, a soft
// hyphen.
func characters(s string) (found [characterKinds]span) {
	eachCharacter(s, func(kind, start, end int) {
		if found[kind].end == 0 {
			found[kind] = span{start, end}
		}
	})
	return found
}

// Clean returns a content without the characters that are threats, and whether
// there were any. A terminal escape goes with its sequence.
func Clean(s string, odd text.Oddities, scope Scope) (string, bool) {
	if !odd.Has(oddCharacters) {
		return s, false
	}
	var b strings.Builder
	at := 0
	eachCharacter(s, func(kind, start, end int) {
		if !in(characterThreats[kind], scope) || start < at {
			return
		}
		b.WriteString(s[at:start])
		if at = end; kind == ansiEscape {
			at = escapeEnd(s, end)
		}
	})
	if at == 0 {
		return s, false
	}
	b.WriteString(s[at:])
	return b.String(), true
}

// escapeEnd is where the terminal sequence ends whose escape character ends at
// i: a control sequence with its final letter, or the one character.
func escapeEnd(s string, i int) int {
	if i < len(s) && s[i] == '[' {
		i++
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x40 {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] < 0x7f {
			i++
		}
	}
	return i
}

// eachCharacter calls mark with every character that is a threat, in their order.
func eachCharacter(s string, mark func(kind, start, end int)) {
	rtl := false
	for _, r := range s {
		if r >= 0x590 && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
			rtl = true
			break
		}
	}
	flag := false // in the tags of a flag
	selectors := 0
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		selector := r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF || r >= 0x180B && r <= 0x180D
		if selector {
			if selectors++; selectors > 1 {
				mark(variationSelectors, i, i+n)
			}
		} else {
			selectors = 0
		}
		switch {
		case r == 0x1b || r == 0x9b && n == 2:
			mark(ansiEscape, i, i+n)
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f || r >= 0x80 && r < 0xA0 && n == 2 && r != 0x85:
			mark(controlCharacter, i, i+n)
		case r == 0x202D || r == 0x202E:
			mark(bidiOverride, i, i+n)
		case r == 0x202A || r == 0x202B || r == 0x202C || r >= 0x2066 && r <= 0x2069 || r == 0x200E || r == 0x200F ||
			r == 0x061C:
			if !rtl {
				mark(bidiControl, i, i+n)
			}
		case r == 0x200B || r == 0x2060 || r == 0xFEFF && i > 0:
			if !setsApart(s, i, i+n) {
				mark(zeroWidth, i, i+n)
			}
		case r >= 0x2061 && r <= 0x2064 || r == 0x180E:
			mark(zeroWidth, i, i+n)
		case r == 0x200C || r == 0x200D:
			before, _ := utf8.DecodeLastRuneInString(s[:i])
			after, _ := utf8.DecodeRuneInString(s[i+n:])
			if splits(before) || splits(after) {
				mark(zeroWidth, i, i+n)
			}
		case r >= 0xE0000 && r <= 0xE007F:
			if !flag {
				mark(tagCharacters, i, i+n)
			}
			flag = flag && r != 0xE007F
			i += n
			continue
		}
		flag = r == 0x1F3F4 // the black flag that tags turn into that of a region
		i += n
	}
}

// setsApart reports whether the one invisible space at s[i:j] stands between two words
// or numbers, as page makers put it, and not within one: before a fraction ("1 1/2"
// without the gap), behind a slash, at the end of a line.
func setsApart(s string, i, j int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[j:])
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	if invisible(before) || invisible(after) {
		return false
	}
	if !word(before) || !word(after) {
		return true
	}
	if !unicode.IsDigit(before) || !unicode.IsDigit(after) {
		return false
	}
	rest := strings.TrimLeft(s[j:], "0123456789")
	return strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "\u2044")
}

// invisible reports whether nobody sees a character.
func invisible(r rune) bool {
	return r >= 0x200B && r <= 0x200F || r >= 0x2060 && r <= 0x2064 || r == 0xFEFF
}

// splits reports whether an invisible joiner beside r splits a word that it has
// no business in: a Latin letter, a digit, or another joiner.
func splits(r rune) bool {
	return r == 0x200C || r == 0x200D || r >= '0' && r <= '9' || unicode.Is(unicode.Latin, r)
}
