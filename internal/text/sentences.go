package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// SentenceKind is the form of the line that a sentence stands in.
type SentenceKind uint8

const (
	Prose   SentenceKind = iota + 1
	Item                 // of a list; the span leaves the bullet or number out
	Heading              // the span leaves the marks out
	Row                  // of a table, whole
	Pair                 // begins with "key: "
	Quote                // after a ">" mark, which the span leaves out
	Code                 // a line of a fenced block
)

// Sentence is one statement of a text, without white space at its ends.
type Sentence struct {
	Text       string
	Start, End int
	Kind       SentenceKind
}

// Sentences splits s into statements: at . ! ? where a sentence ends there
// (not in URLs, addresses, decimals, versions, abbreviations and code), at
// line ends (except inside a paragraph that is only wrapped), bullets, table
// rows, headings. Spans do not overlap and are in order.
func Sentences(s string) []Sentence {
	var out []Sentence
	fenced := false
	for i := 0; i < len(s); {
		end := lineEnd(s, i)
		next := min(end+1, len(s))
		from, to := trimSpan(s, i, end)
		i = next
		if from == to {
			continue
		}
		line := s[from:to]
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			out = append(out, Sentence{line, from, to, Code})
			continue
		}
		kind, skip := lineKind(line)
		from += skip
		if kind == 0 || from >= to {
			continue
		}
		if kind == Row {
			out = append(out, Sentence{s[from:to], from, to, Row})
			continue
		}
		// Take in the lines that only wrap this one.
		for kind != Heading && i < len(s) && to-from >= 40 && !endsStatement(s[to-1]) {
			end := lineEnd(s, i)
			f, t := trimSpan(s, i, end)
			if f == t || !continues(s[f:t]) {
				break
			}
			// The line that was taken in decides about the next: a short one
			// ends a paragraph.
			short := t-f < 40
			to = t
			i = min(end+1, len(s))
			if short {
				break
			}
		}
		out = splitProse(out, s, from, to, kind)
	}
	return out
}

func lineEnd(s string, i int) int {
	for ; i < len(s); i++ {
		if s[i] == '\n' || s[i] == '\r' {
			return i
		}
	}
	return i
}

func trimSpan(s string, from, to int) (int, int) {
	t := strings.TrimLeftFunc(s[from:to], unicode.IsSpace)
	from = to - len(t)
	return from, from + len(strings.TrimRightFunc(t, unicode.IsSpace))
}

func endsStatement(c byte) bool { return strings.IndexByte(".!?:;|", c) >= 0 }

// continues reports whether a line can only go on with a sentence begun before.
func continues(line string) bool {
	if kind, skip := lineKind(line); kind != Prose || skip > 0 {
		return false
	}
	r, _ := utf8.DecodeRuneInString(line)
	return unicode.IsLower(r)
}

// lineKind tells what a trimmed, non-empty line is, and how many bytes of
// marks stand before its text. Kind 0 is a line of marks only.
func lineKind(line string) (SentenceKind, int) {
	skipTo := func(n int) int {
		for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
			n++
		}
		return n
	}
	spaceAt := func(n int) bool { return n >= len(line) || line[n] == ' ' || line[n] == '\t' }
	switch c := line[0]; {
	case c == '|' || barCount(line) >= 2:
		if strings.Trim(line, "|-:+= \t") == "" {
			return 0, 0
		}
		return Row, 0
	case strings.Trim(line, "-=*_~# \t") == "":
		return 0, 0
	case c == '#':
		n := 0
		for n < len(line) && line[n] == '#' {
			n++
		}
		if spaceAt(n) && n <= 6 {
			return Heading, skipTo(n)
		}
	case c == '>':
		n := 0
		for n < len(line) && (line[n] == '>' || line[n] == ' ') {
			n++
		}
		return Quote, n
	case (c == '-' || c == '*' || c == '+') && spaceAt(1):
		n := skipTo(1)
		for _, box := range []string{"[ ] ", "[x] ", "[X] "} {
			if strings.HasPrefix(line[n:], box) {
				n += len(box)
			}
		}
		return Item, skipTo(n)
	case c >= utf8.RuneSelf:
		for _, mark := range []string{"•", "‣", "◦", "▪", "–", "—", "·", "●", "■"} {
			if strings.HasPrefix(line, mark) {
				return Item, skipTo(len(mark))
			}
		}
	case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '(':
		// 1. 2) (3) a)
		n := 0
		if c == '(' {
			n++
		}
		digits := n
		for n < len(line) && n < 5 && line[n] >= '0' && line[n] <= '9' {
			n++
		}
		letter := n == digits && n < len(line) && line[n] >= 'a' && line[n] <= 'z'
		if letter {
			n++
		}
		if n > digits && n+1 < len(line) && (line[n] == ')' || line[n] == '.' && c != '(' && !letter) && spaceAt(n+1) {
			return Item, skipTo(n + 1)
		}
	}
	// key: value, with a key of at most four words.
	if at := strings.IndexByte(line[:min(len(line), 48)], ':'); at > 0 && at+1 < len(line) && line[at+1] == ' ' {
		key := line[:at]
		if strings.Count(key, " ") < 4 && !strings.ContainsAny(key, ".!?,;`\"") {
			return Pair, 0
		}
	}
	return Prose, 0
}

// barCount counts the table bars of a line, up to two.
func barCount(line string) int {
	n := 0
	for i := 1; i < len(line)-1 && n < 2; i++ {
		if line[i] == '|' && line[i-1] == ' ' && line[i+1] == ' ' {
			n++
		}
	}
	return n
}

// splitProse appends the sentences of s[from:to].
func splitProse(out []Sentence, s string, from, to int, kind SentenceKind) []Sentence {
	start := from
	add := func(end int) {
		a, b := trimSpan(s, start, end)
		if a < b {
			out = append(out, Sentence{s[a:b], a, b, kind})
		}
		start = end
		if kind == Pair {
			kind = Prose
		}
	}
	for i := from; i < to; {
		c := s[i]
		switch {
		case c == '`':
			if n := strings.IndexByte(s[i+1:to], '`'); n >= 0 {
				i += n + 2
				continue
			}
			// No more back-quotes: the rest is not looked at again.
			i++
			for i < to && s[i] != '.' && s[i] != '!' && s[i] != '?' && s[i] < utf8.RuneSelf {
				i++
			}
			continue
		case c == '.' || c == '!' || c == '?':
			end := i + 1
			for end < to && (s[end] == '.' || s[end] == '!' || s[end] == '?') {
				end++
			}
			marks := s[i:end]
			i = end
			for end < to && end < i+4 && strings.IndexByte(`"')]*_`, s[end]) >= 0 {
				end++
			}
			for _, closer := range []string{"”", "’", "»"} {
				if strings.HasPrefix(s[end:to], closer) {
					end += len(closer)
				}
			}
			if end < to && s[end] != ' ' && s[end] != '\t' && s[end] != '\n' && s[end] != '\r' &&
				!strings.HasPrefix(s[end:to], "\u00a0") {
				continue
			}
			if end < to && marks == "." && !fullStop(s, start, i-1, end, to) {
				continue
			}
			if end < to && end > i && marks != "." && startsLower(s[end:to]) {
				continue // an aside (with a mark!) inside a sentence
			}
			if end < to && len(marks) > 1 && marks[0] == '.' && marks[len(marks)-1] == '.' && startsLower(s[end:to]) {
				continue
			}
			i = end
			add(end)
			continue
		case c == 0xE3 && strings.HasPrefix(s[i:to], "。"),
			c == 0xEF && (strings.HasPrefix(s[i:to], "！") || strings.HasPrefix(s[i:to], "？")):
			i += 3
			for _, closer := range []string{"」", "』", "”"} {
				if strings.HasPrefix(s[i:to], closer) {
					i += len(closer)
				}
			}
			add(i)
			continue
		}
		i++
	}
	add(to)
	return out
}

func startsLower(s string) bool {
	s = s[:min(len(s), 64)]
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, " \t\r\n"))
	return unicode.IsLower(r)
}

// Chatted splits a sentence where a point ends one and the next begins in lower case, as
// in chats: "disk is here on Friday. teal gets cleaned today". [Sentences] leaves these
// together, for a point there may be an abbreviation's.
func Chatted(s Sentence) []Sentence {
	out, code := []Sentence(nil), false
	from := 0
	for i := 0; i+2 < len(s.Text); i++ {
		c := s.Text[i]
		code = code != (c == '`')
		if code || c != '.' || s.Text[i+1] != ' ' || !startsLower(s.Text[i+1:]) {
			continue
		}
		w := i
		for w > from && (wordByte(s.Text[w-1]) || s.Text[w-1] == '.') {
			w--
		}
		word := strings.ToLower(s.Text[w:i])
		if len(word) == 1 || len(word) == 2 && word[0] > '9' || valueWords().Abbreviations[word] || valueWords().Ends[word] {
			continue
		}
		out = append(out, Sentence{s.Text[from : i+1], s.Start + from, s.Start + i + 1, s.Kind})
		from = i + 2
	}
	return append(out, Sentence{s.Text[from:], s.Start + from, s.End, s.Kind})
}

// fullStop reports whether the point at s[at] ends the sentence that began at
// start; after is where the white space behind it begins.
func fullStop(s string, start, at, after, to int) bool {
	w := at
	for w > start && at-w < 12 && (wordByte(s[w-1]) || s[w-1] == '.') {
		w--
	}
	word := strings.ToLower(s[w:at])
	next := strings.TrimLeft(s[after:min(to, after+64)], " \t\r\n\"'(*_")
	r, _ := utf8.DecodeRuneInString(next)
	if valueWords().Abbreviations[word] {
		return false
	}
	if word == "no" || word == "nr" || word == "art" || word == "p" && !(s[w] == 'P' && unicode.IsUpper(r)) {
		return !(r >= '0' && r <= '9')
	}
	if valueWords().Ends[word] {
		// "Acme Inc. The next …" ends; "Acme Inc. Paris" does not.
		if unicode.IsLower(r) || unicode.IsDigit(r) {
			return false
		}
		n := 0
		for n < len(next) && byteClass[next[n]]&cLetter != 0 {
			n++
		}
		return IsStopword(strings.ToLower(next[:n])) || IsCommonWord(strings.ToLower(next[:n]))
	}
	if len(word) == 1 && byteClass[word[0]]&cLetter != 0 && s[w] >= 'A' && s[w] <= 'Z' && s[w] != 'I' &&
		unicode.IsUpper(r) {
		return false // an initial: J. Smith
	}
	if w == start || strings.TrimSpace(s[start:w]) == "" {
		if _, end, kind := nextToken(word, 0); kind == Number && end == len(word) {
			return false // the number of an item: 1. Do this
		}
	}
	return !unicode.IsLower(r)
}
