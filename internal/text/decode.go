package text

import (
	"encoding/base64"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DecodedKind names a wrapping.
type DecodedKind uint8

const (
	Base64        DecodedKind = iota + 1 // standard or URL alphabet, padded or not
	Hex                                  // pairs of digits, with or without 0x, \x, spaces or colons
	Percent                              // %69%67
	HTMLEntities                         // &#105; &lt;
	Leet                                 // 1gn0r3
	Tags                                 // invisible tag characters that spell ASCII
	SelectorBytes                        // variation selectors that carry bytes
)

var decodedNames = [...]string{"", "base64", "hex", "percent", "html", "leet", "tags", "selectors"}

func (k DecodedKind) String() string { return nameOf(decodedNames[:], k) }

// Decoded is a text found inside another.
type Decoded struct {
	Kind       DecodedKind
	Text       string // what it says, one level down
	Start, End int    // where the wrapped form stands
}

// Bounds on what Decode returns for one text, whatever its length.
const (
	maxDecoded      = 64
	maxDecodedBytes = 1 << 20
)

// Decode finds text that is wrapped in s and unwraps it by one level. Only
// what reads as text comes back: printable, UTF-8, with letters. For Percent,
// HTMLEntities and Leet, Text is the whole word or words of the span,
// unwrapped. It returns at most 64 findings and a megabyte of text, in the
// order of kind and then place.
func Decode(s string) []Decoded {
	d := decoder{s: s, left: maxDecodedBytes}
	d.base64()
	d.hex()
	d.percent()
	d.entities()
	d.leet()
	if strings.IndexByte(s, 0xF3) >= 0 || strings.IndexByte(s, 0xEF) >= 0 {
		d.hidden()
	}
	return d.out
}

type decoder struct {
	s    string
	out  []Decoded
	left int
}

func (d *decoder) full() bool { return len(d.out) >= maxDecoded || d.left <= 0 }

func (d *decoder) add(kind DecodedKind, text string, from, to int) {
	if d.full() || len(text) > d.left {
		return
	}
	d.left -= len(text)
	d.out = append(d.out, Decoded{Kind: kind, Text: text, Start: from, End: to})
}

// readable reports whether b is text that someone may have written: mostly
// letters, or eight characters of ASCII, which bytes are hardly ever by accident:
// numbers are wrapped too.
func readable(b string) bool {
	if !utf8.ValidString(b) {
		return false
	}
	letters, others, runes := 0, 0, 0
	for _, r := range b {
		runes++
		switch {
		case r == '\n' || r == '\t' || r == '\r':
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return false
		case unicode.IsLetter(r) || r == ' ':
			letters++
		case r >= utf8.RuneSelf:
			others++
		}
	}
	return runes >= 3 && letters*2 >= runes && others*4 <= runes || runes >= 8 && runes == len(b) && letters > 0
}

func isBase64(c byte) bool { return isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_' }

func (d *decoder) base64() {
	s := d.s
	for i := 0; i < len(s) && !d.full(); {
		if !isBase64(s[i]) {
			i++
			continue
		}
		from := i
		for i < len(s) && isBase64(s[i]) {
			i++
		}
		to := i
		for i < len(s) && i-to < 2 && s[i] == '=' {
			i++
		}
		padded := i > to
		n := to - from
		if n < 12 || n%4 == 1 || n > maxDecodedBytes { // twelve characters carry nine bytes
			continue
		}
		t := s[from:to]
		url, std, digit := strings.ContainsAny(t, "-_"), strings.ContainsAny(t, "+/"), strings.ContainsAny(t, "0123456789")
		mixed := t != strings.ToUpper(t) && t != strings.ToLower(t)
		// A word of small letters, or a path, is not taken for one unless it is padded.
		if url && std || !padded && (!mixed || !digit && n < 24) {
			continue
		}
		enc := base64.RawStdEncoding
		if url {
			enc = base64.RawURLEncoding
		}
		if b, err := enc.DecodeString(t); err == nil && readable(string(b)) {
			d.add(Base64, string(b), from, i)
		}
	}
}

// hexRun reads pairs of hexadecimal digits from i, each perhaps behind \x, 0x
// or one separator, and returns the bytes, the end and the number of digits
// that are letters.
func hexRun(s string, i int) (b []byte, end int) {
	end = i
	for i < len(s) {
		j := i
		if len(b) > 0 && (s[j] == ' ' || s[j] == ':' || s[j] == ',') {
			j++
			if j < len(s) && s[j-1] == ',' && s[j] == ' ' {
				j++
			}
		}
		if j+1 < len(s) && (s[j] == '\\' || s[j] == '0') && s[j+1] == 'x' {
			j += 2
		}
		if j+1 >= len(s) || !isHex(s[j]) || !isHex(s[j+1]) {
			break
		}
		b = append(b, unhex(s[j])<<4|unhex(s[j+1]))
		i = j + 2
		end = i
	}
	return b, end
}

func unhex(c byte) byte { return byte(strings.IndexByte("0123456789abcdef", c|0x20)) }

func (d *decoder) hex() {
	s := d.s
	for i := 0; i < len(s) && !d.full(); {
		if !(isHex(s[i]) || s[i] == '\\') || i > 0 && isAlnum(s[i-1]) {
			i++
			continue
		}
		b, end := hexRun(s, i)
		if end == i {
			i++
			continue
		}
		if len(b) >= 6 && (end == len(s) || !isAlnum(s[end])) && readable(string(b)) {
			d.add(Hex, string(b), i, end)
		}
		i = end
	}
}

// words calls f with the spans of the runs of characters other than white
// space that hold mark, neighbours joined.
func words(s string, mark byte, f func(from, to int)) {
	for i := 0; ; {
		n := strings.IndexByte(s[i:], mark)
		if n < 0 {
			return
		}
		from := i + n
		for from > i && s[from-1] > ' ' {
			from--
		}
		to := i + n
		for to < len(s) && s[to] > ' ' {
			to++
		}
		f(from, to)
		i = to
	}
}

func (d *decoder) percent() {
	words(d.s, '%', func(from, to int) {
		if d.full() {
			return
		}
		w := d.s[from:to]
		b := make([]byte, 0, len(w))
		n := 0
		for i := 0; i < len(w); i++ {
			if w[i] == '%' && i+2 < len(w) && isHex(w[i+1]) && isHex(w[i+2]) {
				b = append(b, unhex(w[i+1])<<4|unhex(w[i+2]))
				i += 2
				n++
				continue
			}
			b = append(b, w[i])
		}
		if n > 0 && readable(string(b)) {
			d.add(Percent, string(b), from, to)
		}
	})
}

func (d *decoder) entities() {
	found := len(d.out)
	words(d.s, '&', func(from, to int) {
		if d.full() {
			return
		}
		w := d.s[from:to]
		if strings.IndexByte(w, ';') < 0 {
			return
		}
		if t := html.UnescapeString(w); t != w {
			d.add(HTMLEntities, t, from, to)
		}
	})
	// What is said may need the words beside it, which are written plainly.
	if n := len(d.out); n > found && (n > found+1 || d.out[found].Start > 0 || d.out[found].End < len(d.s)) {
		d.add(HTMLEntities, html.UnescapeString(d.s), 0, len(d.s))
	}
}

// leetLetter is what a digit or sign stands for inside a word, or 0.
func leetLetter(c byte) byte {
	if i := strings.IndexByte("01!|34@5$7+89", c); i >= 0 {
		return "oiiieaassttbg"[i]
	}
	return 0
}

// leet finds clauses with words written in leetspeak: a word that mixes
// letters with leet signs and is a common English word when they are read as
// letters. The clause comes back in small letters, its other words as they
// are, so that phrases match across it.
func (d *decoder) leet() {
	s := d.s
	var run []byte
	from, to, found := -1, 0, 0
	flush := func() {
		if found > 0 {
			d.add(Leet, string(run), from, to)
		}
		from, found, run = -1, 0, run[:0]
	}
	for i := 0; i < len(s) && !d.full(); {
		if s[i] <= ' ' {
			if s[i] == '\n' {
				flush()
			}
			i++
			continue
		}
		start := i
		for i < len(s) && s[i] > ' ' {
			i++
		}
		end := i
		for end > start && strings.IndexByte(".,;:?!\"')", s[end-1]) >= 0 {
			end--
		}
		if from < 0 {
			from = start
		} else {
			run = append(run, ' ')
		}
		n := len(run)
		run = append(run, s[start:end]...)
		if unleet(run[n:]) {
			found++
		}
		to = end
		if end < i && strings.IndexByte(".?!;", s[end]) >= 0 || len(run) > 512 {
			flush()
		}
	}
	flush()
}

// unleet lowers w and, if it is leetspeak for a common word, rewrites it.
func unleet(w []byte) bool {
	letters, signs, one := 0, 0, false
	for j, c := range w {
		switch {
		case isUpper(c):
			w[j] = c | 0x20
			letters++
		case byteClass[c]&cLetter != 0:
			letters++
		case leetLetter(c) != 0:
			signs++
			one = one || c == '1'
		default:
			letters = -len(w)
		}
	}
	if len(w) < 3 || len(w) > 24 || signs == 0 || letters < 1 {
		return false
	}
	// 1 may stand for i or l: the one that makes a word.
	for _, i := range []byte("il") {
		var buf [24]byte
		for j, c := range w {
			if buf[j] = c; leetLetter(c) != 0 {
				buf[j] = leetLetter(c)
			}
			if c == '1' {
				buf[j] = i
			}
		}
		if IsCommonWord(string(buf[:len(w)])) {
			copy(w, buf[:])
			return true
		}
		if !one {
			break
		}
	}
	return false
}

// hidden reads runs of tag characters and of variation selectors, which no
// screen shows.
func (d *decoder) hidden() {
	s := d.s
	var run []byte
	var kind DecodedKind
	from, to := 0, 0
	flush := func() {
		if len(run) >= 3 && readable(string(run)) {
			d.add(kind, string(run), from, to)
		}
		run = run[:0]
	}
	for i := 0; i < len(s) && !d.full(); {
		if s[i] < utf8.RuneSelf {
			flush()
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		k, b := DecodedKind(0), byte(0)
		switch {
		case r >= 0xE0020 && r < 0xE007F:
			k, b = Tags, byte(r-0xE0000)
		case r >= 0xFE00 && r <= 0xFE0F:
			k, b = SelectorBytes, byte(r-0xFE00)
		case r >= 0xE0100 && r <= 0xE01EF:
			k, b = SelectorBytes, byte(r-0xE0100+16)
		case r == 0xE0001 || r == 0xE007F:
			i += n
			continue
		}
		if k != kind {
			flush()
		}
		if k != 0 {
			if len(run) == 0 {
				from, kind = i, k
			}
			run = append(run, b)
			to = i + n
		}
		i += n
	}
	flush()
}
