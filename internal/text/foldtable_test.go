package text

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

var update = flag.Bool("update", false, "rewrite the generated fold table and the golden files")

// TestFoldTable derives the whole fold table again from its sources (the
// Unicode tables of the standard library and x/text, and UTS #39's
// confusables) and compares it with the committed one. With -update it writes
// fold.bin.
func TestFoldTable(t *testing.T) {
	want := generateFoldTable(t)
	if *update {
		if err := os.WriteFile("fold.bin", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile("fold.bin")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("fold.bin differs from its sources: run go generate ./internal/text")
	}
}

// isDiacritic tells the combining marks that decorate a letter of an
// alphabet and are dropped. Marks that spell vowels or tones in scripts of
// their own (Indic, Hebrew, Arabic …) stay.
func isDiacritic(r rune) bool {
	return r >= 0x300 && r <= 0x36F || r >= 0x1AB0 && r <= 0x1AFF || r >= 0x1DC0 && r <= 0x1DFF ||
		r >= 0x20D0 && r <= 0x20FF || r >= 0xFE20 && r <= 0xFE2F || r >= 0x483 && r <= 0x489
}

func dropKind(r rune) (foldKind, bool) {
	switch {
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200E, r == 0x200F, r == 0x061C:
		return foldBidi, true
	case r == 0xE0001, r >= 0xE0020 && r <= 0xE007F:
		return foldTag, true
	case unicode.Is(unicode.Variation_Selector, r):
		return foldSelector, true
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return foldZeroWidth, true
	case isDiacritic(r):
		return foldMark, true
	case unicode.IsSpace(r), unicode.IsOneOf([]*unicode.RangeTable{unicode.Zs, unicode.Zl, unicode.Zp}, r), r == 0x2800:
		return foldSpace, true
	case unicode.Is(unicode.Cc, r):
		return foldControl, true
	}
	return 0, false
}

// asciiLookalike is the ASCII prototype of r in confusables.txt, lower-cased,
// or "". Prototypes that stand for an ASCII character are turned back ("rn"
// is m's, "”" is the quotation mark's), so that ASCII folds to itself.
func asciiLookalike(r rune) string {
	if r < utf8.RuneSelf {
		return ""
	}
	p := strings.Map(func(r rune) rune {
		if isDiacritic(r) {
			return -1
		}
		return r
	}, norm.NFD.String(confusable.GetReplacement(r)))
	for _, c := range p {
		if c >= utf8.RuneSelf || c < ' ' {
			return ""
		}
	}
	if len(p) == 1 && isDigit(p[0]) && unicode.IsLetter(r) {
		return "" // б is no 6: in text it is a letter
	}
	switch p {
	case "rn":
		return "m"
	case "''":
		return `"`
	}
	return strings.ToLower(p)
}

var fullFold = cases.Fold()

// foldOnce is one step of folding one rune.
func foldOnce(r rune) (string, foldKind) {
	if k, ok := dropKind(r); ok {
		if k == foldSpace {
			return " ", k
		}
		return "", k
	}
	if r < utf8.RuneSelf {
		return strings.ToLower(string(r)), foldPlain
	}
	if unicode.Is(unicode.Nd, r) {
		// Decimal digits come in runs of ten that start at zero.
		zero := r
		for unicode.Is(unicode.Nd, zero-1) && r-zero < 9 {
			zero--
		}
		if k := norm.NFKC.String(string(r)); len(k) == 1 {
			return k, foldStyled
		}
		// Runs may touch: the first of a chain of runs decides.
		for unicode.Is(unicode.Nd, zero-1) {
			zero--
		}
		return string('0' + (r-zero)%10), foldConfusable
	}
	// Letters in squares, circles and flags that NFKC leaves alone.
	for _, a := range []rune{0x1F130, 0x1F150, 0x1F170, 0x1F1E6} {
		if r >= a && r < a+26 {
			return string('a' + r - a), foldStyled
		}
	}
	if k := norm.NFKC.String(string(r)); k != string(r) {
		kind := foldPlain
		if r2, n := utf8.DecodeRuneInString(k); n == len(k) && r2 < utf8.RuneSelf && unicode.IsLetter(r2) {
			kind = foldStyled
		}
		return k, kind
	}
	// The base letter without its diacritics.
	if d := []rune(norm.NFD.String(string(r))); len(d) > 1 {
		only := true
		for _, m := range d[1:] {
			only = only && isDiacritic(m)
		}
		if only {
			return string(d[0]), foldPlain
		}
	}
	lower := fullFold.String(string(r))
	if r >= 0xAB70 && r <= 0xABBF { // Cherokee folds to its capitals, which are the older letters
		lower = string(r - 0xAB70 + 0x13A0)
	} else if fullFold.String(lower) != lower {
		lower = string(r)
	}
	p := asciiLookalike(r)
	if lower != string(r) {
		// A capital that looks like I has l for its prototype; its own small
		// letter says which one is meant.
		if l, n := utf8.DecodeRuneInString(lower); p == "" || p == "l" {
			if q := asciiLookalike(l); q != "" && n == len(lower) {
				p = q
			}
		}
	}
	// A small letter with no look-alike takes its capital's (Cyrillic в with В
	// for B), so that the fold does not depend on case.
	if u := unicode.ToUpper(r); p == "" && u != r && fullFold.String(string(u)) == string(r) {
		p = asciiLookalike(u)
	}
	if p != "" {
		return p, foldConfusable
	}
	if lower != string(r) {
		return lower, foldPlain
	}
	return string(r), foldPlain
}

// foldFully repeats foldOnce on every rune of its output until it stands.
func foldFully(r rune) (string, foldKind) {
	out, kind := foldOnce(r)
	for range 8 {
		var b strings.Builder
		for _, c := range out {
			s, k := foldOnce(c)
			if k == foldConfusable && kind == foldPlain {
				kind = k
			}
			b.WriteString(s)
		}
		if b.String() == out {
			return out, kind
		}
		out = b.String()
	}
	panic(fmt.Sprintf("fold of %U does not come to rest: %q", r, out))
}

func generateFoldTable(t *testing.T) []byte {
	t.Helper()
	var blob strings.Builder
	entries := []uint32{0}
	entryOf := map[string]uint16{}
	index := make([]uint16, tableRunes>>6)
	var blocks [][64]uint16
	blockOf := map[[64]uint16]uint16{}
	for page := range index {
		var block [64]uint16
		for i := range block {
			r := rune(page<<6 | i)
			if r < utf8.RuneSelf || r >= 0xD800 && r <= 0xDFFF || r == utf8.RuneError {
				continue
			}
			out, kind := foldFully(r)
			if r >= 0xAC00 && r <= 0xD7A3 {
				out = string(r)
			}
			if out == string(r) && kind != foldSpace {
				kind = foldPlain
			}
			switch kind {
			case foldPlain, foldConfusable, foldStyled:
				first, _ := utf8.DecodeRuneInString(out)
				if out != "" && (!norm.NFKC.PropertiesString(string(r)).BoundaryBefore() ||
					!norm.NFKC.PropertiesString(string(first)).BoundaryBefore()) {
					kind = foldNorm
				} else if out == string(r) {
					continue
				}
			}
			key := fmt.Sprint(out, "\x00", kind)
			e, ok := entryOf[key]
			if !ok {
				at := strings.Index(blob.String(), out)
				if at < 0 {
					at = blob.Len()
					blob.WriteString(out)
				}
				if at > 0xFFFF || len(out) > 0xFF {
					t.Fatalf("%U: output does not fit the entry", r)
				}
				e = uint16(len(entries))
				entries = append(entries, uint32(at)<<16|uint32(len(out))<<8|uint32(kind))
				entryOf[key] = e
			}
			block[i] = e
		}
		b, ok := blockOf[block]
		if !ok {
			b = uint16(len(blocks))
			blocks = append(blocks, block)
			blockOf[block] = b
		}
		index[page] = b
	}

	// Little-endian: how many blocks and entries there are, then what fold.go reads.
	var w []byte
	w = binary.LittleEndian.AppendUint16(w, uint16(len(blocks)))
	w = binary.LittleEndian.AppendUint16(w, uint16(len(entries)))
	for _, b := range index {
		w = binary.LittleEndian.AppendUint16(w, b)
	}
	for _, b := range blocks {
		for _, e := range b {
			w = binary.LittleEndian.AppendUint16(w, e)
		}
	}
	for _, e := range entries {
		w = binary.LittleEndian.AppendUint32(w, e)
	}
	return append(w, blob.String()...)
}

// TestASCIIFold derives the fold of ASCII as the table's is derived.
func TestASCIIFold(t *testing.T) {
	for c := range utf8.RuneSelf {
		out, kind := foldOnce(rune(c))
		want := byte(0)
		switch {
		case c == 0x1b:
			want = 0x1b
		case kind == foldSpace:
			want = ' '
		case out != "":
			want = out[0]
		}
		if asciiFold[c] != want {
			t.Errorf("%#x folds to %#x, want %#x", c, asciiFold[c], want)
		}
	}
}
