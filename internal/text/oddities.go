package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Oddities are the unusual things that a text carries, as bits. None of them
// proves an attack; each is a way to make a text read otherwise to a person
// than to a model.
type Oddities uint16

const (
	ZeroWidth    Oddities = 1 << iota // zero-width or other invisible format characters
	BidiControl                       // characters that reorder what is shown
	ANSIEscape                        // terminal escape sequences
	ControlChars                      // control characters other than tab, line feed and carriage return
	TagChars                          // tag characters, which spell invisible ASCII
	Selectors                         // runs of two or more variation selectors, which can carry hidden bytes
	MixedScript                       // one word with Latin letters and look-alikes from another script
	Confusable                        // a whole word of look-alikes in a text that is otherwise Latin
	Styled                            // words in full-width, mathematical or circled letters
	StackedMarks                      // four or more diacritics on one letter
	InvalidUTF8                       // bytes that are not UTF-8
)

var oddityNames = [...]string{"zero-width", "bidi-control", "ansi-escape", "control", "tag", "variation-selectors",
	"mixed-script", "confusable", "styled", "stacked-marks", "invalid-utf8"}

// Has reports whether o holds any of the bits of p.
func (o Oddities) Has(p Oddities) bool { return o&p != 0 }

// String lists the names of the bits with commas; "" for none.
func (o Oddities) String() string { return strings.Join(o.Names(), ",") }

// Names are the names of the bits, in their order.
func (o Oddities) Names() []string {
	var names []string
	for i, n := range oddityNames {
		if o&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// Scan reports what is unusual about s.
func Scan(s string) Oddities {
	var odd Oddities
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf { // the usual text ends here
		if c := s[i]; c < ' ' || c == 0x7f {
			odd |= asciiOddity(c)
		}
		i++
	}
	if i == len(s) {
		return odd
	}
	for i > 0 && byteClass[s[i-1]]&cLetter != 0 { // back to the start of the word
		i--
	}

	var word wordScripts
	var fakes scriptSet  // scripts of words that are nothing but look-alikes
	var honest scriptSet // scripts of words that ASCII could not have spelt
	latinWords := false
	selectors, marks := 0, 0
	endWord := func() {
		if word.letters > 0 {
			switch {
			case word.latin && word.lookalike:
				odd |= MixedScript
			case !word.latin && word.plain == 0 && word.lookalike && word.letters > 2:
				fakes |= word.scripts
			case !word.latin:
				if word.plain > 0 {
					honest |= word.scripts
				}
			default:
				latinWords = true
			}
		}
		word = wordScripts{}
	}
	latinWords = i > 0
	for i < len(s) {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			selectors, marks = 0, 0
			switch {
			case byteClass[c]&cLetter != 0:
				word.letters++
				word.latin = true
			case byteClass[c]&cDigit != 0:
			default:
				endWord()
				if c < ' ' || c == 0x7f {
					odd |= asciiOddity(c)
				}
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r == utf8.RuneError && n == 1 {
			odd |= InvalidUTF8
			continue
		}
		_, kind, keep := foldOf(r)
		if kind != foldSelector {
			selectors = 0
		}
		if kind != foldMark {
			marks = 0
		}
		switch kind {
		case foldZeroWidth:
			// A joiner after an emoji, a soft hyphen and a leading byte-order
			// mark are ordinary.
			if !(r == 0x200D && selectorContext(s[:i-n])) && r != 0xAD && !(r == 0xFEFF && i == n) {
				odd |= ZeroWidth
			}
		case foldBidi:
			odd |= BidiControl
		case foldTag:
			odd |= TagChars
		case foldSelector:
			if selectors++; selectors > 1 {
				odd |= Selectors
			}
		case foldControl:
			if r == 0x9b {
				odd |= ANSIEscape
			}
			odd |= ControlChars
		case foldMark:
			if marks++; marks > 3 {
				odd |= StackedMarks
			}
		case foldSpace:
			endWord()
		case foldConfusable:
			if r == 'µ' || r == '\u2126' { // micro and ohm are units
				break
			}
			if !unicode.IsLetter(r) {
				if !unicode.IsNumber(r) {
					endWord()
				}
				break
			}
			word.letters++
			word.scripts |= scriptOf(r)
			if unicode.Is(unicode.Latin, r) {
				word.latin = true
			} else {
				word.lookalike = true
			}
		case foldStyled:
			if unicode.IsLetter(r) && r != 'ª' && r != 'º' || r >= 0x1F130 && r <= 0x1F189 || r >= 0x24B6 && r <= 0x24E9 {
				odd |= Styled
			}
		default:
			switch {
			case unicode.IsLetter(r):
				word.letters++
				if unicode.Is(unicode.Latin, r) {
					word.latin = true
				} else {
					word.scripts |= scriptOf(r)
					word.plain++
				}
			case keep && !unicode.IsMark(r):
				endWord()
			}
		}
	}
	endWord()
	if latinWords && fakes&^honest != 0 {
		odd |= Confusable
	}
	return odd
}

func asciiOddity(c byte) Oddities {
	switch c {
	case '\t', '\n', '\r':
		return 0
	case 0x1b:
		return ANSIEscape
	}
	return ControlChars
}

// selectorContext reports whether before ends in a symbol (an emoji) or in a
// variation selector: where a zero-width joiner builds one picture of two.
func selectorContext(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsOneOf([]*unicode.RangeTable{unicode.So, unicode.Sk, unicode.Variation_Selector}, r)
}

// wordScripts is what is known of the word being read.
type wordScripts struct {
	letters   int
	plain     int // letters outside Latin that look like no ASCII letter
	latin     bool
	lookalike bool
	scripts   scriptSet
}

type scriptSet uint8

const (
	scriptCyrillic scriptSet = 1 << iota
	scriptGreek
	scriptOther
)

func scriptOf(r rune) scriptSet {
	switch {
	case unicode.Is(unicode.Cyrillic, r):
		return scriptCyrillic
	case unicode.Is(unicode.Greek, r):
		return scriptGreek
	case unicode.Is(unicode.Latin, r):
		return 0
	}
	return scriptOther
}
