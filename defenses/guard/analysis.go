package guard

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/defenses/keyword"
	"github.com/memtox/memtox/internal/text"
)

// analysis is what all checks of one content share: the content as it stands, and
// what it says where it is wrapped.
type analysis struct {
	layers []layer
	hints  hints
}

// layer is one way to read a content.
type layer struct {
	text.Text
	// Where the wrapped form stands in the content, and what it is; the layer of
	// the content itself has no wrapping.
	wrapping   string
	start, end int
	digits     int // how many it holds
}

// place returns where in the content a place in the layer stands.
func (l *layer) place(start, end int) (int, int) {
	if l.wrapping != "" {
		return l.start, l.end
	}
	return start, end
}

// of reads a content.
func (a *analysis) of(s string) {
	a.hints = hint(s)
	a.layers = a.layers[:0]
	a.add(s, "", 0, 0)
	a.layers[0].digits = a.hints.digits
	if a.hints.wrapped {
		for _, d := range text.Decode(s) {
			a.add(d.Text, d.Kind.String(), d.Start, d.End)
		}
	}
	if a.hints.spaced {
		if t, start, end, ok := despace(s); ok {
			a.add(t, "spaced letters", start, end)
		}
	}
	if a.hints.tagged {
		if t, start, end, ok := untag(s); ok {
			a.add(t, "split by markup", start, end)
		}
	}
}

// add appends a layer, and keeps the buffers of the one that stood there.
func (a *analysis) add(s, wrapping string, start, end int) {
	n := len(a.layers)
	if n < cap(a.layers) {
		a.layers = a.layers[:n+1]
	} else {
		a.layers = append(a.layers, layer{})
	}
	l := &a.layers[n]
	l.Reset(s, text.Scan(s))
	l.wrapping, l.start, l.end = wrapping, start, end
	if wrapping != "" {
		l.digits = hint(s).digits
	}
}

// hints say which of the dearer readings can find anything.
type hints struct {
	wrapped bool // Decode may find something
	spaced  bool // single letters stand in a row
	tagged  bool // markup stands within a word
	digits  int  // how many there are
}

// The classes of bytes that hints look at.
const (
	isLetter = 1 << iota
	isDigit
	isLeet // stands for a letter within a word
	isCode // a character of base64
	isGap
)

var classes = func() (t [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = isLetter|isCode, isLetter|isCode
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = isDigit | isCode
	}
	for _, c := range []byte("01345789@$!|+") {
		t[c] |= isLeet
	}
	for _, c := range []byte("+/-_") {
		t[c] |= isCode
	}
	for _, c := range []byte(" \t\n\r.,-_*|/") {
		t[c] |= isGap
	}
	for c := utf8.RuneSelf; c < 256; c++ {
		t[c] = isLetter
	}
	return t
}()

// hint looks at every byte once.
func hint(s string) hints {
	var h hints
	var before uint8 // class of the byte before
	code, single := 0, 0
	mixed := uint8(0) // what the run of code holds
	letters := 0      // of the word so far
	for i := 0; i < len(s); i++ {
		c := s[i]
		k := classes[c]
		if k&isCode != 0 {
			code++
			switch {
			case c >= 'a' && c <= 'z':
				mixed |= 1
			case c >= 'A' && c <= 'Z':
				mixed |= 2
			default:
				mixed |= 4
			}
		} else {
			if code >= 12 && (mixed&3 == 3 || mixed&4 != 0 || c == '=') {
				h.wrapped = true
			}
			code, mixed = 0, 0
		}
		if k&isDigit != 0 {
			h.digits++
		}
		switch {
		case k&isLetter != 0:
			if before&isLeet != 0 {
				h.wrapped = true
			}
			letters++
			if before&isLetter == 0 {
				letters = 1
			}
		case k&isLeet != 0:
			if before&isLetter != 0 && i+1 < len(s) && classes[s[i+1]]&(isLetter|isLeet) != 0 {
				h.wrapped = true
			}
			single = 0
		case k&isGap != 0:
			if before&isLetter != 0 {
				if letters == 1 || letters <= 3 && s[i-1] >= utf8.RuneSelf {
					if single++; single >= minSpaced {
						h.spaced = true
					}
				} else {
					single = 0
				}
			}
		case c == '%' || c == '&' || c == '\\':
			h.wrapped = true
		case c == '<':
			h.tagged = true
		}
		before = k
	}
	if code >= 12 && (mixed&3 == 3 || mixed&4 != 0) {
		h.wrapped = true
	}
	if !h.wrapped {
		// Tag characters and variation selectors.
		h.wrapped = strings.IndexByte(s, 0xF3) >= 0 || strings.IndexByte(s, 0xEF) >= 0
	}
	return h
}

// minSpaced is how many single letters in a row are no accident.
const minSpaced = 5

// despace joins runs of single letters that stand apart: "I g n o r e  a l l",
// "i.g.n.o.r.e". The smallest gap of a run stands between letters and a wider one
// between words; where all gaps are alike, the words are looked for. It returns
// the whole content read so, and where the first run begins and the last one
// ends.
func despace(s string) (out string, start, end int, ok bool) {
	var b strings.Builder
	start = -1
	at := 0
	type letter struct{ from, to int }
	var run []letter
	left := maxSegmented
	flush := func() {
		if len(run) >= minSpaced+1 {
			least := len(s)
			for i := 1; i < len(run); i++ {
				least = min(least, run[i].from-run[i-1].to)
			}
			b.WriteString(s[at:run[0].from])
			from := b.Len()
			uniform := true
			for i, l := range run {
				if i > 0 && l.from-run[i-1].to > least {
					b.WriteByte(' ')
					uniform = false
				}
				b.WriteString(s[l.from:l.to])
			}
			if letters := b.Len() - from; uniform && letters <= left {
				left -= letters
				joined := b.String()
				words := segment(text.Fold(joined[from:]))
				b.Reset()
				b.WriteString(joined[:from])
				b.WriteString(words)
			}
			at = run[len(run)-1].to
			if start < 0 {
				start = run[0].from
			}
			end = at
		}
		run = run[:0]
	}
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf && classes[s[i]]&isLetter == 0 {
			if classes[s[i]]&isGap == 0 {
				flush()
			}
			i++
			continue
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if i+n < len(s) && classes[s[i+n]]&isLetter != 0 || i > 0 && classes[s[i-1]]&isLetter != 0 {
			flush() // a longer word
			for i < len(s) && classes[s[i]]&isLetter != 0 {
				i++
			}
			continue
		}
		run = append(run, letter{i, i + n})
		i += n
	}
	flush()
	if start < 0 {
		return "", 0, 0, false
	}
	b.WriteString(s[at:])
	return b.String(), start, end, true
}

// maxSegmented bounds the letters of one content that are taken apart into words:
// it costs some hundred nanoseconds a letter.
const maxSegmented = 8 << 10

// segment puts spaces between the words of a run of letters: of the ways to take
// it apart that leave the fewest letters over, one with the fewest words.
func segment(s string) string {
	const longest = 16
	vocabulary := keyword.Vocabulary()
	type best struct{ cost, from int }
	ways := make([]best, len(s)+1)
	for end := 1; end <= len(s); end++ {
		ways[end] = best{ways[end-1].cost + 10, end - 1} // a letter left over
		for from := max(0, end-longest); from < end-1; from++ {
			if cost := ways[from].cost + 1; cost < ways[end].cost && vocabulary(s[from:end]) {
				ways[end] = best{cost, from}
			}
		}
	}
	var cuts []int
	for at := len(s); at > 0; at = ways[at].from {
		cuts = append(cuts, at)
	}
	var b strings.Builder
	from := 0
	for i := len(cuts) - 1; i >= 0; i-- {
		if from > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s[from:cuts[i]])
		from = cuts[i]
	}
	return b.String()
}

// untag takes out tags and comments of HTML that stand within a word, where a
// page shows none: "ig<!-- -->nore", "ig<b></b>nore".
func untag(s string) (out string, start, end int, ok bool) {
	var b strings.Builder
	at := 0
	start = -1
	for _, m := range tagForm.FindAllStringIndex(s, -1) {
		from, to := m[0], m[1]
		if to-from > maxTag && !strings.HasPrefix(s[from:], "<!--") {
			continue
		}
		joined := start >= 0 && from == at // right behind what was taken out
		if from > 0 && (joined || classes[s[from-1]]&isLetter != 0) && to < len(s) &&
			(classes[s[to]]&isLetter != 0 || s[to] == '<') {
			if start < 0 {
				start = from - 1
			}
			b.WriteString(s[at:from])
			at, end = to, to+1
		}
	}
	if start < 0 {
		return "", 0, 0, false
	}
	b.WriteString(s[at:])
	return b.String(), start, min(end, len(s)), true
}

var tagForm = regexp.MustCompile(`(?s)<!--.*?-->|<[^<>]*>`)

// maxTag bounds a tag, in bytes.
const maxTag = 512
