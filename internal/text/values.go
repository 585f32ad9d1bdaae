package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ValueKind is the type of an operative value.
type ValueKind uint8

const (
	URL      ValueKind = iota + 1 // with a scheme, or host and path
	Host                          // a domain name, with or without a port
	Email                         //
	Account                       // IBAN, card and account numbers: eight digits or more
	Phone                         //
	Money                         // a figure with a currency
	DateTime                      // a date, a time of day, a month with a day or year, a weekday
	Path                          // of a file or a directory
	Command                       // back-quoted text, a "$ " line, a line of a shell block, a known program with arguments
	Flag                          // --name, --name=value, -x
	Version                       // v1.2, 1.2.3
	IP                            // version 4 or 6, with or without port or prefix length
	Handle                        // @name, #channel
	ID                            // letters with digits: INV-4471, Tulip-44, a UUID, a hexadecimal hash
	Setting                       // key=value
	Name                          // capitalised words
	Figure                        // any other number, percent included

	Kinds // is more than each of them
)

var valueKindNames = [...]string{"", "url", "host", "email", "account", "phone", "money", "datetime", "path", "command",
	"flag", "version", "ip", "handle", "id", "setting", "name", "figure"}

func (k ValueKind) String() string { return nameOf(valueKindNames[:], k) }

// Value is one operative value: what a sentence is about, and what an attack
// would have to change to pay.
type Value struct {
	Kind       ValueKind
	Text       string // as written, without the punctuation behind it
	Start, End int
}

// Values finds the operative values of s in order of their start. A Setting
// or a Command may hold further values, which follow it; other spans do not
// overlap. Values looks at s as written, for case matters to it.
func Values(s string) []Value {
	v := valueScanner{s: s}
	v.scan(0, len(s))
	return v.out
}

type valueScanner struct {
	s       string
	out     []Value
	depth   int  // settings and labels that the scanner is inside of
	command bool // inside a Command, which holds no other
}

func (v *valueScanner) add(kind ValueKind, from, to int) {
	v.out = append(v.out, Value{Kind: kind, Text: v.s[from:to], Start: from, End: to})
}

// take is add that returns where the value ends.
func (v *valueScanner) take(kind ValueKind, from, to int) int {
	v.add(kind, from, to)
	return to
}

// scan finds the values of s[i:to], line forms included.
func (v *valueScanner) scan(i, to int) {
	s := v.s
	lineStart := true
	shell := false // inside a fenced block of shell lines
	for i < to {
		c := s[i]
		if c == '\n' || c == '\r' {
			lineStart = true
			i++
			continue
		}
		if c <= ' ' {
			i++
			continue
		}
		if lineStart {
			lineStart = false
			end := i
			for end < to && s[end] != '\n' && s[end] != '\r' {
				end++
			}
			line := strings.TrimRight(s[i:end], " \t")
			switch {
			case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
				shell = !shell && valueWords().Shells[strings.ToLower(strings.TrimSpace(line[3:]))]
				i = end
				continue
			case shell, strings.HasPrefix(line, "$ "):
				from := i + len(line) - len(strings.TrimLeft(line, "$ "))
				if from < i+len(line) {
					v.addCommand(from, from, i+len(line))
				}
				i = end
				continue
			}
			// The rest of the line, without looking for its end again.
			v.inline(i, end)
			i = end
		}
	}
}

// inline finds the values of a span of one line.
func (v *valueScanner) inline(i, to int) {
	s := v.s
	sentenceStart := true
	noTick := false
	for i < to {
		c := s[i]
		switch {
		case c == '`':
			i++
			if noTick {
				continue
			}
			for i < to && s[i] == '`' {
				i++
			}
			n := strings.IndexByte(s[i:to], '`')
			if n < 0 {
				noTick = true
				continue
			}
			v.quoted(i, i+n)
			i += n + 1
			sentenceStart = false
			continue
		case c <= ' ':
			i++
			continue
		case isOpener(c):
			// What is quoted begins anew.
			sentenceStart = sentenceStart || c == '"' || c == '('
			i++
			continue
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:to])
			if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("€£¥₹", r) {
				i += n
				if r == '•' || r == '–' || r == '—' || r == '“' {
					sentenceStart = true
				}
				continue
			}
		}
		end, starts := v.atom(i, to, sentenceStart)
		if end <= i {
			end = i + 1
		}
		sentenceStart = starts
		i = end
	}
}

func isOpener(c byte) bool { return openers[c] }

// quoted handles the text between back-quotes.
func (v *valueScanner) quoted(from, to int) {
	for from < to && v.s[from] == ' ' {
		from++
	}
	for from < to && v.s[to-1] == ' ' {
		to--
	}
	if from >= to {
		return
	}
	if !strings.ContainsAny(v.s[from:to], " \t") {
		n := len(v.out)
		if end := v.typed(from, to); end == to && len(v.out) > n {
			return
		}
		v.out = v.out[:n]
		v.add(Command, from, to)
		return
	}
	v.addCommand(from, from, to)
}

// addCommand adds s[from:to] and the values in it from inner on.
func (v *valueScanner) addCommand(from, inner, to int) {
	v.add(Command, from, to)
	v.command = true
	v.inline(inner, to)
	v.command = false
}

// inner looks for one value in the rest of a setting or behind a label; not
// deeper than twice, so that a=a=a=… stays linear.
func (v *valueScanner) inner(from, to int) {
	if v.depth >= 2 {
		return
	}
	v.depth++
	v.typed(from, to)
	v.depth--
}

var (
	openers  = byteSet("\"'([{<*_|)]}>,;!?:")
	hardEnds = byteSet("\"<>|`\x7f")
	softEnds = byteSet("\"<>|`\x7f,;()[]{}'*")
)

func byteSet(bytes string) (t [256]bool) {
	for _, c := range []byte(bytes) {
		t[c] = true
	}
	return t
}

// hardEnd reports the characters that end every value.
func hardEnd(c byte) bool { return c <= ' ' || hardEnds[c] }

// softEnd reports those that end every value but a URL and a figure.
func softEnd(c byte) bool { return c <= ' ' || softEnds[c] }

// wordRun is the end of the word at i: at the next character that ends a
// value, or between ASCII and a script that puts no spaces between words.
func wordRun(s string, i, to int) int {
	for e := i; e < to; {
		if s[e] < utf8.RuneSelf {
			if softEnd(s[e]) {
				return e
			}
			e++
			continue
		}
		class, n := runeClass(s, e)
		if e > i && (class == 0 || class == cIdeo && s[i] < utf8.RuneSelf) {
			return e
		}
		e += n
	}
	return to
}

// atom handles what begins at i and returns where to go on, and whether a
// sentence begins there.
func (v *valueScanner) atom(i, to int, sentenceStart bool) (int, bool) {
	s := v.s
	// Forms of several words come first.
	if c := s[i]; c >= '0' && c <= '9' || c == '+' || c == '$' || c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' ||
		c >= 'a' && c <= 'z' {
		if end := v.several(i, to); end > 0 {
			return end, false
		}
	}
	e := wordRun(s, i, to)
	if e == i {
		return i + 1, sentenceStart
	}
	n := len(v.out)
	if end := v.typed(i, e); len(v.out) > n {
		last := s[end-1]
		return end, last == '.' || last == '!' || last == '?' || last == ':'
	}
	// Words: names, bare commands.
	if end := v.bareCommand(i, e, to); end > 0 {
		return end, false
	}
	if end := v.name(i, e, to, sentenceStart); end > 0 {
		return end, false
	}
	last := s[e-1]
	return e, last == '.' || last == '!' || last == '?' || last == ':'
}

// trimValue cuts the punctuation behind a value.
func trimValue(s string, from, to int) int {
	var open [7]int
	counted := false
	for to > from {
		switch s[to-1] {
		case '.', ',', ';', ':', '!', '?', '\'', '"', '*', '_', '~', '\\':
			to--
		case ')', ']', '}':
			// A bracket that was opened inside belongs to the value.
			if !counted {
				counted = true
				for i := from; i < to; i++ {
					open[bracket(s[i])]++
				}
				open[0] = 0
			}
			b := bracket(s[to-1])
			if open[b-1] >= open[b] {
				return to
			}
			open[b]--
			to--
		default:
			if r, n := utf8.DecodeLastRuneInString(s[from:to]); r == '…' || r == '”' || r == '’' || r == '。' || r == '，' ||
				r == '»' {
				to -= n
				continue
			}
			return to
		}
	}
	return to
}

// bracket numbers the brackets, a closing one after its opening one; 0 is
// every other byte.
func bracket(c byte) int { return strings.IndexByte("()[]{}", c) + 1 }

// typed recognises one value in s[from:to], which holds no white space, and
// returns where it ends in s; nothing is added where there is none.
func (v *valueScanner) typed(from, to int) int {
	s := v.s
	a := s[from:to]
	if at := strings.Index(a, "://"); at > 0 {
		return v.url(from, from+at, to)
	}
	end := trimValue(s, from, to)
	t := s[from:end]
	if t == "" {
		return to
	}
	if at := strings.IndexByte(t, '@'); at >= 0 {
		if v.address(from, end, from+at) {
			return to
		}
	}
	c := t[0]
	if c == '-' {
		if valueWords().Forms.Flag.Is(t) {
			v.add(Flag, from, end)
			return to
		}
		for from < end && s[from] == '-' {
			from++
		}
		if t = s[from:end]; t == "" {
			return to
		}
	}
	if at := strings.IndexByte(t, '='); at > 0 && at+1 < len(t) && t[at+1] != '=' && valueWords().Forms.Key.Is(t[:at]) {
		v.add(Setting, from, end)
		v.inner(from+at+1, end)
		return to
	}
	// label:value, as in port:8443 or host:path
	if at := strings.IndexByte(t, ':'); at > 0 && at+1 < len(t) && valueWords().Forms.Label.Is(t[:at]) && at > 1 {
		n := len(v.out)
		if v.inner(from+at+1, end); len(v.out) > n {
			return to
		}
	}
	if kind := classify(t); kind != 0 {
		v.add(kind, from, end)
	}
	return to
}

// classify names the kind of a single word without punctuation behind it, or
// 0.
func classify(t string) ValueKind {
	digits, letters, other := 0, 0, 0
	dots, slashes, colons, hyphens := 0, 0, 0, 0
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c >= '0' && c <= '9':
			digits++
		case byteClass[c]&(cLetter|cHigh) != 0:
			letters++
		case c == '.':
			dots++
		case c == '/':
			slashes++
		case c == ':':
			colons++
		case c == '-':
			hyphens++
		default:
			other++
		}
	}
	c := t[0]
	switch {
	case dots == 3 && digits >= 4 && letters == 0 && valueWords().Forms.IPv4.Is(t):
		return IP
	case colons >= 2 && isIPv6(t):
		return IP
	case digits >= 2 && isDateTime(t):
		return DateTime
	case digits > 0 && (c == '$' || c >= utf8.RuneSelf) && valueWords().Forms.Money.Is(t):
		return Money
	case c == '#' && len(t) > 1 && other == 1:
		if digits > 0 && letters == 0 {
			return ID
		}
		if letters > 0 && slashes == 0 && dots == 0 {
			return Handle
		}
		return 0
	case slashes > 0 || strings.IndexByte(t, '\\') >= 0:
		return pathOrURL(t)
	case digits > 0 && len(t) <= 48 && valueWords().Forms.Version.Is(t):
		return Version
	case digits > 0 && letters == 0 && colons == 0 && other <= 1:
		if hyphens > 0 && dots == 0 && digits >= 7 && other == 0 {
			if digits >= 8 && digits <= 34 && !isPhone(t) {
				return Account
			}
			return Phone
		}
		if dots == 0 && other == 0 && digits >= 8 {
			return Account
		}
		if hyphens >= 2 && digits >= 6 && dots == 0 && other == 0 {
			return Account // a sort code
		}
		if hyphens <= 1 {
			return Figure
		}
		return 0
	case isIBAN(t):
		return Account
	case dots > 0 && letters > 0:
		if k := hostOrFile(t); k != 0 {
			return k
		}
	}
	if digits > 0 && letters > 0 {
		if isQuantity(t) {
			return Figure
		}
		if isID(t) {
			return ID
		}
	}
	return 0
}

// url adds the URL whose "://" stands at s[at:] and what stands before it.
func (v *valueScanner) url(from, at, limit int) int {
	s := v.s
	start := at
	for start > from && (byteClass[s[start-1]]&(cLetter|cDigit) != 0 || s[start-1] == '+' || s[start-1] == '-' ||
		s[start-1] == '.') {
		start--
	}
	for start < at && byteClass[s[start]]&cLetter == 0 {
		start++
	}
	// A URL goes on over commas and brackets, which ended the atom.
	end := at + 3
	for end < len(s) && !hardEnd(s[end]) {
		if s[end] >= utf8.RuneSelf {
			if r, _ := utf8.DecodeRuneInString(s[end:]); r == '”' || r == '“' || r == '»' || r == '，' || r == '。' ||
				unicode.IsSpace(r) {
				break
			}
		}
		end++
	}
	stop := end
	end = trimValue(s, start, end)
	if start == at || end <= at+3 {
		return max(limit, at+3)
	}
	if start > from+1 && s[start-1] == '=' && valueWords().Forms.Key.Is(s[from:start-1]) {
		v.add(Setting, from, end)
	} else if start > from {
		v.inner(from, start)
	}
	v.add(URL, start, end)
	return stop
}

// address adds the email or the handle around the @ at s[at].
func (v *valueScanner) address(from, end, at int) bool {
	s := v.s
	domain := at + 1
	for domain < end && (byteClass[s[domain]]&(cLetter|cDigit|cHigh) != 0 || s[domain] == '.' || s[domain] == '-' ||
		s[domain] == '_') {
		domain++
	}
	domain = trimValue(s, at+1, domain)
	local := at
	for local > from && (byteClass[s[local-1]]&(cLetter|cDigit|cHigh) != 0 ||
		strings.IndexByte("._%+-", s[local-1]) >= 0) {
		local--
	}
	switch {
	case domain == at+1:
		return false
	case local == at:
		if at > from && byteClass[s[at-1]]&(cLetter|cDigit) != 0 {
			return false
		}
		v.add(Handle, at, domain)
		return true
	case strings.IndexByte(s[at+1:domain], '.') < 0 && s[at+1:domain] != "localhost":
		return false
	}
	if local > from+1 && s[local-1] == '=' && valueWords().Forms.Key.Is(s[from:local-1]) {
		v.add(Setting, from, domain)
	}
	v.add(Email, local, domain)
	return true
}
