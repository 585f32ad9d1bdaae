package text

import (
	_ "embed"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

//go:generate go test -run TestFoldTable -update

// foldTable is generated from the Unicode tables of the standard library and
// x/text and the confusables of UTS #39: what every rune outside ASCII folds
// to, in three steps that TestFoldTable writes and fold reads. It is used as it
// lies in the program: nothing is read or built when that starts.
//
//go:embed fold.bin
var foldTable string

// tableRunes is where the table ends.
const tableRunes = 0x30000

// The parts of foldTable, behind two numbers of two bytes: how many blocks and
// how many entries there are.
var (
	foldIndex = foldTable[4:] // of each 64 runes the number of their block
	// of each rune of a block the number of its entry; 0 keeps the rune
	foldBlocks  = foldIndex[tableRunes>>6*2:]
	foldEntries = foldBlocks[number16(foldTable, 0)*64*2:] // kind, length and offset of what the rune folds to
	foldText    = foldEntries[number16(foldTable, 1)*4:]
)

// number16 is the i-th number of two bytes of a table.
func number16(table string, i uint32) uint32 {
	return uint32(table[i*2]) | uint32(table[i*2+1])<<8
}

// asciiFold is the folded byte; 0 drops it, 0x1b begins a terminal sequence.
var asciiFold = func() (t [utf8.RuneSelf]byte) {
	for c := byte(' '); c < 0x7f; c++ {
		if t[c] = c; isUpper(c) {
			t[c] += 'a' - 'A'
		}
	}
	for _, c := range "\t\n\v\f\r" {
		t[c] = ' '
	}
	t[0x1b] = 0x1b
	return t
}()

// foldKind says why a rune folds to what it folds to.
type foldKind uint8

const (
	foldPlain      foldKind = iota // compatibility form, case or diacritic
	foldConfusable                 // looks like ASCII (UTS #39), or a decimal digit of another script
	foldStyled                     // an ASCII letter or digit in another dress: full width, mathematical, circled
	foldSpace
	foldZeroWidth
	foldBidi
	foldTag
	foldSelector // variation selector
	foldControl
	foldMark // combining diacritic
	foldNorm // composes with what stands before it: needs the real NFKC
)

// foldOf returns what a rune outside ASCII folds to. keep means that it folds
// to itself.
func foldOf(r rune) (out string, kind foldKind, keep bool) {
	if r < tableRunes {
		block := number16(foldIndex, uint32(r>>6))
		e := number16(foldBlocks, block<<6|uint32(r&63))
		if e == 0 {
			return "", foldPlain, true
		}
		at := number16(foldEntries, e*2+1)
		return foldText[at:][:foldEntries[e*4+1]], foldKind(foldEntries[e*4]), false
	}
	if r >= 0xE0000 && r <= 0xE0FFF { // all default-ignorable
		switch {
		case r == 0xE0001 || r >= 0xE0020 && r <= 0xE007F:
			return "", foldTag, false
		case r >= 0xE0100 && r <= 0xE01EF:
			return "", foldSelector, false
		}
		return "", foldZeroWidth, false
	}
	return "", foldPlain, true
}

// Fold returns s as a phrase matcher should see it: NFKC, without format,
// zero-width, bidirectional, variation-selector, tag and control characters,
// without terminal escape sequences and without diacritics; case-folded;
// look-alikes of ASCII characters and digits of every script replaced by the
// ASCII ones; each run of white space one space, none at the ends. A byte
// that is not UTF-8 becomes U+FFFD, which is what a JSON encoder makes of it
// on its way to a model.
//
// ASCII letters fold to their small letter and nothing else (UTS #39 would
// turn m into rn, and 0, 1 and I into o and l), so phrases in ASCII need no
// skeleton of their own. Fold is idempotent. Text that is folded already is
// returned without a copy.
func Fold(s string) string {
	if isFolded(s) {
		return s
	}
	return string(AppendFold(make([]byte, 0, len(s)+8), s))
}

// AppendFold appends Fold(s) to dst.
func AppendFold(dst []byte, s string) []byte {
	f := folder{dst: dst}
	f.run(s)
	return f.dst
}

// Folded is a folded text with the way back to the original.
type Folded struct {
	Text string
	// at[i] is the offset in the original of the rune that byte i of Text
	// came from; at[len(Text)] is the end of the last such rune. nil where
	// folding moved nothing.
	at   []int32
	size int // length of the original
}

// FoldMap folds s like Fold and keeps, for each byte, where it came from.
// It uses four bytes more for each byte of s, unless folding moves nothing.
// Texts above 2 GiB are beyond it.
func FoldMap(s string) Folded {
	if isFolded(s) {
		return Folded{Text: s, size: len(s)}
	}
	f := folder{dst: make([]byte, 0, len(s)+8), at: make([]int32, 0, len(s)+9), mapped: true}
	f.run(s)
	f.at = append(f.at, int32(f.last))
	out := Folded{Text: string(f.dst), at: f.at, size: len(s)}
	if len(f.dst) == len(s) && isIdentity(f.at) {
		out.at = nil
	}
	return out
}

func isIdentity(at []int32) bool {
	for i, v := range at {
		if int(v) != i {
			return false
		}
	}
	return true
}

// Origin returns the offset in the original of the rune that byte i of Text
// came from. i may be len(Text): then it is the end of the last such rune.
func (f Folded) Origin(i int) int {
	switch {
	case i < 0:
		return 0
	case i > len(f.Text):
		return f.size
	case f.at == nil:
		return i
	}
	return int(f.at[i])
}

// Span returns the span of the original that Text[start:end] came from:
// the one to cut out to remove it, invisible characters inside it included.
func (f Folded) Span(start, end int) (int, int) {
	if start >= end {
		o := f.Origin(start)
		return o, o
	}
	from, to := f.Origin(start), f.Origin(end)
	if end > 0 && f.at != nil && end < len(f.Text) {
		// A rune may fold to several bytes: a span that ends inside them
		// covers the whole rune.
		for end < len(f.Text) && int(f.at[end]) == int(f.at[end-1]) {
			end++
		}
		to = f.Origin(end)
	}
	return from, to
}

// isFolded reports whether s is ASCII that Fold would return unchanged.
func isFolded(s string) bool {
	prev := byte(' ')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf || asciiFold[c] != c || c == 0x1b || c == 0 || c == ' ' && prev == ' ' {
			return false
		}
		prev = c
	}
	return prev != ' ' || s == ""
}

type folder struct {
	dst    []byte
	at     []int32
	last   int // end of the last rune that left something
	mapped bool
	space  bool // a space is owed
	owedAt int  // where the owed space began
}

func (f *folder) run(s string) {
	if f.mapped {
		f.slow(s)
	} else {
		f.dst = f.fast(s)
	}
}

// fast folds without a map; it hands over to slow at the first rune that
// needs composition.
func (f *folder) fast(s string) []byte {
	dst := f.dst
	base := len(dst)
	space := false
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			b := asciiFold[c]
			if b > ' ' && b != 0x1b {
				if space {
					dst = append(dst, ' ')
					space = false
				}
				dst = append(dst, b)
				i++
				continue
			}
			switch b {
			case ' ':
				space = len(dst) > base
				i++
			case 0x1b:
				i = endOfEscape(s, i)
			default:
				i++
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		out, kind, keep := foldOf(r)
		switch {
		case kind == foldNorm:
			f.dst = dst[:base]
			f.slow(s)
			return f.dst
		case r == 0x9b:
			i = endOfEscape(s, i)
			continue
		case keep:
			if space {
				dst = append(dst, ' ')
				space = false
			}
			if r == utf8.RuneError {
				dst = append(dst, "\uFFFD"...)
			} else {
				dst = append(dst, s[i:i+n]...)
			}
		default:
			for j := 0; j < len(out); j++ {
				if out[j] == ' ' {
					space = len(dst) > base
					continue
				}
				if space {
					dst = append(dst, ' ')
					space = false
				}
				dst = append(dst, out[j])
			}
		}
		i += n
	}
	return dst
}

// slow folds with a map, and with real normalisation where a run of the text
// needs it. A run that needs it is gathered without its invisible characters
// first: they would keep its parts from composing.
func (f *folder) slow(s string) {
	base := len(f.dst)
	var run []byte // pending runes of one composing run, starter first
	runAt, runEnd := 0, 0
	dirty := false // run holds a rune that composes with an earlier one
	flush := func() {
		if len(run) == 0 {
			return
		}
		if dirty {
			run = norm.NFKC.Append(nil, run...)
		}
		for i := 0; i < len(run); {
			r, n := utf8.DecodeRune(run[i:])
			f.emit(base, r, string(run[i:i+n]), runAt, runEnd)
			i += n
		}
		run, dirty = run[:0], false
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c == 0x1b {
			i = endOfEscape(s, i)
			continue
		}
		if c < utf8.RuneSelf && asciiFold[c] == 0 {
			i++
			continue
		}
		if c < utf8.RuneSelf && (i+1 == len(s) || s[i+1] < utf8.RuneSelf) {
			// Nothing that follows composes with it.
			flush()
			f.emit(base, rune(c), "", i, i+1)
			i++
			continue
		}
		r, n := rune(c), 1
		kind := foldPlain
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
			if r == 0x9b {
				i = endOfEscape(s, i)
				continue
			}
			var keep bool
			_, kind, keep = foldOf(r)
			if !keep && kind >= foldZeroWidth && kind <= foldMark {
				i += n
				continue
			}
		}
		if kind == foldNorm {
			// A composing run is cut where it grows absurd, so that one
			// starter with a megabyte of marks costs no more than its length.
			if len(run) < 256 {
				if len(run) == 0 {
					runAt = i
				}
				run = utf8.AppendRune(run, r)
				runEnd, dirty = i+n, true
				i += n
				continue
			}
		}
		flush()
		run = utf8.AppendRune(run, r)
		runAt, runEnd, dirty = i, i+n, kind == foldNorm
		i += n
	}
	flush()
}

func (f *folder) emit(base int, r rune, self string, from, to int) {
	out := self
	if r < utf8.RuneSelf {
		b := asciiFold[r]
		if b == 0 || b == 0x1b {
			return
		}
		f.put(base, b, from)
		if b != ' ' {
			f.last = to
		}
		return
	}
	if o, _, keep := foldOf(r); !keep {
		out = o
	}
	for j := 0; j < len(out); j++ {
		f.put(base, out[j], from)
	}
	if out != "" && out != " " {
		f.last = to
	}
}

func (f *folder) put(base int, b byte, from int) {
	if b == ' ' {
		if len(f.dst) > base && !f.space {
			f.space, f.owedAt = true, from
		}
		return
	}
	if f.space {
		f.dst = append(f.dst, ' ')
		if f.mapped {
			f.at = append(f.at, int32(f.owedAt))
		}
		f.space = false
	}
	f.dst = append(f.dst, b)
	if f.mapped {
		f.at = append(f.at, int32(from))
	}
}

// endOfEscape returns the offset after the terminal sequence that begins at
// s[i], an ESC or the one-rune CSI (ECMA-48): CSI up to its final byte, OSC
// and the other strings up to BEL or ST. A string that does not end before
// the next control character ends there, so that no byte is read twice.
func endOfEscape(s string, i int) int {
	csi := s[i] != 0x1b
	if csi {
		i += 2 // U+009B is two bytes
	} else {
		i++
		if i >= len(s) {
			return i
		}
		switch c := s[i]; {
		case c == '[':
			csi = true
			i++
		case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
			for j := i + 1; j < len(s); j++ {
				switch {
				case s[j] == 0x07:
					return j + 1
				case s[j] == 0x1b:
					if j+1 < len(s) && s[j+1] == '\\' {
						return j + 2
					}
					return j
				case s[j] < 0x20:
					// Not a string that a terminal would swallow.
					return i + 1
				}
			}
			return i + 1
		case c >= 0x20 && c <= 0x2f: // nF: intermediates, then a final byte
			for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
				i++
			}
			if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
				i++
			}
			return i
		case c >= 0x30 && c <= 0x7e:
			return i + 1
		}
	}
	if csi {
		for i < len(s) && s[i] >= 0x30 && s[i] <= 0x3f {
			i++
		}
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			i++
		}
	}
	return i
}
