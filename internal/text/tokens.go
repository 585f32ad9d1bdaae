package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// TokenKind says what a token is made of.
type TokenKind uint8

const (
	Word      TokenKind = iota + 1 // letters, with inner apostrophes and underscores
	Number                         // digits, with inner points and commas
	Mixed                          // letters and digits: v2, a1b2
	Ideograph                      // one character of a script that puts no spaces between words
)

var tokenNames = [...]string{"", "word", "number", "mixed", "ideograph"}

func (k TokenKind) String() string { return nameOf(tokenNames[:], k) }

// nameOf is the name of a kind, which is not 0.
func nameOf[K ~uint8](names []string, k K) string {
	if k == 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Token is one word or number of a text.
type Token struct {
	Text       string // lower case
	Start, End int    // bytes of the text it was found in
	Kind       TokenKind
}

// Tokens splits s into words and numbers. Punctuation, hyphens included,
// separates; it is no token. Tokens does not fold: give it Fold's output where
// disguised letters matter.
func Tokens(s string) []Token {
	if s == "" {
		return nil
	}
	return AppendTokens(make([]Token, 0, len(s)/6+2), s)
}

// AppendTokens appends the tokens of s to dst.
func AppendTokens(dst []Token, s string) []Token {
	lower := lowerASCII(s)
	for i := 0; ; {
		start, end, kind := nextToken(s, i)
		if kind == 0 {
			return dst
		}
		w := lower[start:end]
		if kind != Ideograph && !isASCII(w) {
			w = strings.ToLower(w)
		}
		dst = append(dst, Token{Text: w, Start: start, End: end, Kind: kind})
		i = end
	}
}

// lowerASCII lowers the ASCII letters of s, byte for byte.
func lowerASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; 'A' <= c && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; 'A' <= c && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return view(b)
		}
	}
	return s
}

func isASCII(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] >= utf8.RuneSelf {
			return false
		}
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

const (
	cLetter = 1 << iota
	cDigit
	cJoin  // inside a word only: ' _
	cPoint // inside a number only: . ,
	cHigh  // not ASCII
	cIdeo
)

var byteClass = makeByteClass()

func makeByteClass() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			t[c] = cLetter
		case c >= '0' && c <= '9':
			t[c] = cDigit
		case c == '\'' || c == '_':
			t[c] = cJoin
		case c == '.' || c == ',':
			t[c] = cPoint
		case c >= utf8.RuneSelf:
			t[c] = cHigh
		}
	}
	return t
}

// runeClass classifies the rune at s[i], for bytes of class cHigh.
func runeClass(s string, i int) (class uint8, size int) {
	r, n := utf8.DecodeRuneInString(s[i:])
	switch {
	case r == '’':
		return cJoin, n
	case unicode.IsOneOf(unspaced, r):
		return cIdeo, n
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return cLetter, n
	case unicode.IsNumber(r):
		return cDigit, n
	}
	return 0, n
}

var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar}

// nextToken finds the first token at or after i; its kind is 0 where there is
// none.
func nextToken(s string, i int) (start, end int, kind TokenKind) {
	// Find where it begins.
	for {
		if i >= len(s) {
			return len(s), len(s), 0
		}
		class, n := byteClass[s[i]], 1
		if class == cHigh {
			class, n = runeClass(s, i)
		}
		if class == cIdeo {
			return i, i + n, Ideograph
		}
		if class&(cLetter|cDigit) != 0 {
			break
		}
		i += n
	}
	start = i
	var seen uint8
	for i < len(s) {
		class, n := byteClass[s[i]], 1
		if class == cHigh {
			class, n = runeClass(s, i)
		}
		switch class {
		case cLetter, cDigit:
			seen |= class
		case cJoin, cPoint:
			// Only between two of its kind.
			want := uint8(cLetter | cDigit)
			if class == cPoint {
				want = cDigit
				if seen != cDigit {
					want = 0
				}
			}
			if i+n >= len(s) {
				return start, i, kindOf(seen)
			}
			next := byteClass[s[i+n]]
			if next == cHigh {
				next, _ = runeClass(s, i+n)
			}
			if next&want == 0 && (class == cPoint || s[i] != '_' || next != cJoin) {
				return start, i, kindOf(seen)
			}
		default:
			return start, i, kindOf(seen)
		}
		i += n
	}
	return start, i, kindOf(seen)
}

func kindOf(seen uint8) TokenKind {
	switch seen {
	case cLetter:
		return Word
	case cDigit:
		return Number
	}
	return Mixed
}
