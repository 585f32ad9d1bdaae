package contradiction

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

type kind uint8

const (
	word kind = iota
	number
	comma
	dash
	semicolon
	colon
	stop // . ! ?
	question
	quoted
	open // (
	closing
	possessive // 's
	mark       // any other punctuation
)

// token is a word, a number, a quoted span or a punctuation mark.
type token struct {
	text       string // without quotes
	start, end int32  // in the source
	classes    class
	entry      *entry
	kind       kind
	upper      bool // begins with a capital letter
	lemma      bool // stands in a predicate as its verb's lemma
}

func (t *token) is(c class) bool { return t.classes&c != 0 }

// pseudo tokens stand before the tokens of the text.
const (
	tokIs int32 = iota
	tokUser
	tokHave
	pseudoTokens
)

func (x *extractor) resetTokens() {
	x.tokens = append(x.tokens[:0],
		token{text: "is", classes: cBe}, token{text: "user"}, token{text: "have", classes: cHave})
}

// maxQuote bounds the words of a quoted span that is read as one name or value.
const maxQuote = 120

// tokenize appends the tokens of src[from:to]. It reads each byte a bounded
// number of times.
func (x *extractor) tokenize(from, to int) {
	src := x.src
	i := from
	for i < to {
		c := src[i]
		if c <= ' ' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(src[i:to])
			if unicode.IsSpace(r) {
				i += n
				continue
			}
			if end := x.leadingRune(r, i, n, to); end > 0 {
				i = end
				continue
			}
		} else if k, ok := leadingByte(c); ok && !(c == '.' && i+1 < to && wordByte(src[i+1]) &&
			(i == from || src[i-1] <= ' ')) {
			if k == quoted {
				if inner, end := quotedSpan(src[i:to], string(c)); end > 0 {
					x.add(inner, i, i+end, quoted)
					i += end
					continue
				}
				i++
				continue
			}
			x.add(src[i:i+1], i, i+1, k)
			i++
			continue
		}
		i = x.word(i, to)
	}
}

// leadingKinds are the kinds of the tokens that these bytes make.
var leadingKinds = [256]kind{'"': quoted, '\'': quoted, '`': quoted, '(': open, '[': open, ')': closing, ']': closing,
	',': comma,
	';': semicolon, ':': colon, '!': stop, '.': stop, '?': question, '*': mark, '_': mark, '>': mark, '|': mark}

func leadingByte(c byte) (kind, bool) { return leadingKinds[c], leadingKinds[c] != word }

// leadingRune adds the token that a mark outside ASCII makes, and returns its
// end, or 0 where the rune begins a word.
func (x *extractor) leadingRune(r rune, i, n, to int) int {
	k := mark
	switch r {
	case '“', '„', '”', '«', '»', '‘', '’', '‚':
		for _, q := range closers[r] {
			if inner, end := quotedSpan(x.src[i:to], q); end > 0 {
				x.add(inner, i, i+end, quoted)
				return i + end
			}
		}
	case '–', '—', '―', '→':
		k = dash
	case '…':
		k = stop
	default:
		return 0
	}
	x.add(x.src[i:i+n], i, i+n, k)
	return i + n
}

var closers = map[rune][]string{
	'“': {"”"}, '„': {"“", "”"}, '«': {"»"}, '»': {"«"}, '‘': {"’"}, '‚': {"‘", "’"},
}

// quotedSpan returns the inside of a span that begins with a quotation mark and
// ends with q, and the span's length, or 0. A mark that closes must stand at the
// end of a word; one without a partner within maxQuote bytes is no quotation.
func quotedSpan(s, q string) (string, int) {
	_, open := utf8.DecodeRuneInString(s)
	limit := min(len(s), maxQuote)
	for at := open; at < limit; {
		k := strings.Index(s[at:limit], q)
		if k < 0 {
			return "", 0
		}
		k += at
		end := k + len(q)
		if k > open && (end == len(s) || !wordByte(s[end])) && s[open] != ' ' {
			if strings.IndexByte(s[open:k], '\n') >= 0 {
				return "", 0
			}
			return strings.TrimRight(s[open:k], ".,;"), end
		}
		at = end
	}
	return "", 0
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

// word adds the token that begins at i and returns where it ends. A token goes
// to the next white space; punctuation at its end is left for tokens of its own.
func (x *extractor) word(i, to int) int {
	src := x.src
	end := i
	digit, ascii := false, true
	for end < to {
		c := src[end]
		if c <= ' ' || c == '"' || c == '|' {
			break
		}
		if c >= '0' && c <= '9' {
			digit = true
		}
		if c == '=' && end > i && !strings.Contains(src[i:end], "://") {
			break
		}
		if c >= utf8.RuneSelf {
			ascii = false
			r, n := utf8.DecodeRuneInString(src[end:to])
			if unicode.IsSpace(r) || r == '—' || r == '”' || r == '“' || r == '»' || r == '→' {
				break
			}
			if r == '–' && !(end > i && src[end-1] >= '0' && src[end-1] <= '9') {
				break
			}
			end += n
			continue
		}
		end++
	}
	if end == i { // '=' and the like alone
		_, n := utf8.DecodeRuneInString(src[i:to])
		x.add(src[i:i+n], i, i+n, mark)
		return i + n
	}
	end = x.trimEnd(i, end)
	// A clitic becomes a token of its own.
	if cut := clitic(src[i:end]); cut > 0 {
		w := src[i+cut : end]
		x.addWord(src[i:i+cut], i, i+cut, digit, ascii)
		if isS(w) || w == "'" || w == "’" {
			x.addPossessive(w, i+cut, end)
			return end
		}
		x.addWord(strings.Replace(w, "’", "'", 1), i+cut, end, false, true)
		return end
	}
	x.addWord(src[i:end], i, end, digit, ascii)
	return end
}

// trimEnd takes punctuation off the end of a word, except the full stop of an
// abbreviation and a closing bracket that was opened inside.
func (x *extractor) trimEnd(i, end int) int {
	src := x.src
	for end > i+1 {
		c := src[end-1]
		switch c {
		case ',', ';', ':', '!', '?', '`', '*', ']', '}', '>':
			end--
			continue
		case ')':
			if strings.IndexByte(src[i:end], '(') >= 0 {
				return end
			}
			end--
			continue
		case '\'':
			// The genitive of a plural keeps its apostrophe.
			if src[end-2] == 's' {
				return end
			}
			end--
			continue
		case '.':
			if x.abbreviation(src[i : end-1]) {
				return end
			}
			end--
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeLastRuneInString(src[i:end])
			if n < end-i && (r == '…' || r == '’' && end-n-1 >= i && src[end-n-1] != 's') {
				end -= n
				continue
			}
		}
		return end
	}
	return end
}

// abbreviation reports whether a full stop after w does not end a sentence.
func (x *extractor) abbreviation(w string) bool {
	if len(w) == 1 && w[0] >= 'A' && w[0] <= 'Z' {
		return true
	}
	if len(w) > 5 {
		return false
	}
	e := x.lookup(w)
	return e != nil && e.classes&cTitle != 0
}

// clitic returns where a genitive or a contracted verb begins in w, or 0.
func clitic(w string) int {
	for k := len(w) - 1; k > 0 && k >= len(w)-6; k-- {
		n := 0
		if w[k] == '\'' {
			n = 1
		} else if strings.HasPrefix(w[k:], "’") {
			n = len("’")
		} else {
			continue
		}
		switch w[k+n:] {
		case "s", "S", "", "m", "re", "ve", "ll", "d":
			return k
		case "t", "T":
			if k > 1 && w[k-1]|0x20 == 'n' {
				if strings.EqualFold(w[:k], "can") {
					return 0
				}
				return k - 1
			}
		}
		return 0
	}
	return 0
}

func isS(w string) bool { return w == "'s" || w == "’s" || w == "'S" || w == "’S" }

// addPossessive decides between "Bea's" and "it's".
func (x *extractor) addPossessive(w string, start, end int) {
	prev := &x.tokens[len(x.tokens)-1]
	if isS(w) && (prev.is(cPronoun|cWh|cCondition|cIndefinite) || strings.EqualFold(prev.text, "that") ||
		strings.EqualFold(prev.text, "there") || strings.EqualFold(prev.text, "here")) &&
		!strings.EqualFold(prev.text, "one") {
		x.addWord("'s", start, end, false, true)
		return
	}
	x.add(w, start, end, possessive)
}

func (x *extractor) add(s string, start, end int, k kind) {
	t := token{text: s, start: int32(start), end: int32(end), kind: k}
	if k == quoted {
		t.upper = true
	}
	x.tokens = append(x.tokens, t)
}

func (x *extractor) addWord(s string, start, end int, digit, ascii bool) {
	t := token{text: s, start: int32(start), end: int32(end)}
	if digit {
		t.kind = number
	}
	if ascii {
		t.upper = s[0] >= 'A' && s[0] <= 'Z'
		if s == "-" || s == "--" || s == "->" || s == "=>" {
			t.kind = dash
		}
	} else {
		r, _ := utf8.DecodeRuneInString(s)
		t.upper = unicode.IsUpper(r)
	}
	if e := x.lookup(s); e != nil {
		t.entry, t.classes = e, e.classes
		if e.classes&cNumber != 0 {
			t.kind = number
		}
		if t.upper && (e.classes == cHedge|cModal || s == "May") && e.classes&cMonth != 0 {
			t.classes = cMonth
		}
	}
	if prev := &x.tokens[len(x.tokens)-1]; s == "am" && prev.kind == number {
		t.classes = 0 // "7 am"
	}
	x.tokens = append(x.tokens, t)
}

// lookup finds a word form in the lexicon, whatever its case and disguise.
func (x *extractor) lookup(s string) *entry {
	if len(s) > longestWord {
		return nil
	}
	var buf [longestWord]byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			x.fold = text.AppendFold(x.fold[:0], s)
			return x.words[string(x.fold)]
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	return x.words[string(buf[:len(s)])]
}
