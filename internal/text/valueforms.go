package text

import (
	_ "embed"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed values.yaml
var valuesYAML []byte

var valueWords = Lists[struct {
	Currencies, Extensions, Domains, Months, Weekdays, Programs, Subcommands, Units, Shells, Abbreviations, Ends Words

	Forms struct {
		Flag, Key, Label, Argument, IPv4, Date, Time, Clock, Quarter, Money, Amount, Version, IBAN Form
	}
}]("values.yaml", valuesYAML)

func allOf(t string, ok func(byte) bool) bool {
	for i := 0; i < len(t); i++ {
		if !ok(t[i]) {
			return false
		}
	}
	return t != ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return byteClass[c]&(cLetter|cDigit) != 0 }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isIPv6 reports whether t is an address, perhaps with the length of a prefix.
func isIPv6(t string) bool {
	t, prefix, ok := strings.Cut(t, "/")
	_, err := netip.ParseAddr(t)
	return err == nil && (!ok || allOf(prefix, isDigit))
}

// isDateTime: a date, a time of day, both, two times, a month or a quarter of a year.
func isDateTime(t string) bool {
	if len(t) > 40 || !isDigit(t[0]) {
		return false
	}
	f := &valueWords().Forms
	if at := strings.IndexByte(t, 'T'); at >= 0 {
		return f.Date.Is(t[:at]) && f.Time.Is(t[at:])
	}
	from, to, span := strings.Cut(t, "-")
	return span && f.Clock.Is(from) && f.Clock.Is(to) || f.Quarter.Is(t) || f.Date.Is(t) || f.Clock.Is(t)
}

// currencySign cuts a currency sign from the front of t.
func currencySign(t string) (string, bool) {
	for _, p := range []string{"$", "€", "£", "¥", "₹", "US$", "A$", "C$"} {
		if rest, ok := strings.CutPrefix(t, p); ok {
			return rest, true
		}
	}
	return t, false
}

// isPhone: digits with separators that read as a telephone number.
func isPhone(t string) bool {
	digits := countDigits(t)
	if digits < 7 || digits > 15 {
		return false
	}
	if t[0] == '+' {
		return true
	}
	// 555-0100, 555-010-2233, 020 7946 0958; account numbers group otherwise.
	parts := strings.FieldsFunc(t, func(r rune) bool { return r < '0' || r > '9' })
	switch len(parts) {
	case 1:
		return strings.ContainsAny(t, "()")
	case 2:
		return len(parts[0]) == 3 && len(parts[1]) == 4 || parts[0][0] == '0' && len(parts[0]) >= 3
	case 3:
		return len(parts[0]) == 3 && len(parts[1]) == 3 && len(parts[2]) == 4 ||
			parts[0][0] == '0' && len(parts[0]) >= 3 && digits >= 10
	case 4:
		return len(parts[0]) == 1 && len(parts[1]) == 3 && len(parts[3]) == 4
	}
	return false
}

func countDigits(t string) int {
	n := 0
	for i := range len(t) {
		if isDigit(t[i]) {
			n++
		}
	}
	return n
}

func isIBAN(t string) bool {
	return len(t) >= 15 && isUpper(t[0]) && valueWords().Forms.IBAN.Is(t) && countDigits(t[4:]) >= 6
}

// isQuantity: 3rd, 30s, 10GB, 2x, 5k, 24h, 80%.
func isQuantity(t string) bool {
	n := 0
	for n < len(t) && (isDigit(t[n]) || t[n] == '.' || t[n] == ',') {
		n++
	}
	if n == 0 || !isDigit(t[0]) {
		return false
	}
	unit := strings.ToLower(t[n:min(len(t), n+6)])
	return unit == "" || valueWords().Units[unit]
}

// isID: an identifier with letters and digits that names one thing.
func isID(t string) bool {
	if len(t) < 3 || len(t) > 128 {
		return false
	}
	digits, upper, seps := 0, 0, 0
	for i := 0; i < len(t); i++ {
		c := t[i]
		switch {
		case isDigit(c):
			digits++
		case isUpper(c):
			upper++
		case c == '-' || c == '_' || c == '#' || c == '.' || c == ':':
			seps++
			if i == 0 {
				return false
			}
		case c >= 'a' && c <= 'z' || c >= utf8.RuneSelf:
		default:
			return false
		}
	}
	if seps > 0 {
		return digits > 0
	}
	return digits >= 2 || upper > 0 || len(t) >= 5
}

// hostOrFile: names with dots.
func hostOrFile(t string) ValueKind {
	name, port, hasPort := strings.Cut(t, ":")
	if hasPort && !allOf(port, isDigit) {
		return 0
	}
	if len(name) > 255 {
		return 0
	}
	at := strings.LastIndexByte(name, '.')
	ext := name[at+1:]
	lower := strings.ToLower(ext)
	if name[0] == '.' && at == 0 {
		if len(ext) >= 2 && valueWords().Forms.Key.Is(ext) { // .env, .bashrc
			return Path
		}
		return 0
	}
	if !allOf(name, func(c byte) bool { return isAlnum(c) || c == '.' || c == '-' || c == '_' || c >= utf8.RuneSelf }) {
		return 0
	}
	if strings.HasPrefix(name, "www.") && len(name) > 6 {
		return Host
	}
	if valueWords().Extensions[lower] && !hasPort && !(valueWords().Domains[lower] && strings.Count(name, ".") > 1) {
		return Path
	}
	if valueWords().Domains[lower] && (ext == lower || name == strings.ToUpper(name)) {
		// A sentence run on without a space ("done.it") is no host, if the
		// first part is capitalised or the whole thing abbreviates.
		if at < 2 || strings.Contains(name, "..") || name[0] == '-' {
			return 0
		}
		return Host
	}
	return 0
}

// pathOrURL: words with slashes or backslashes.
func pathOrURL(t string) ValueKind {
	switch {
	case len(t) >= 2 && (t[0] == '/' || t[0] == '\\') && !strings.HasPrefix(t, "//"):
		return Path
	case strings.HasPrefix(t, "~/"), strings.HasPrefix(t, "./"), strings.HasPrefix(t, "../"), strings.HasPrefix(t, `\\`):
		return Path
	case len(t) > 2 && byteClass[t[0]]&cLetter != 0 && t[1] == ':' && (t[2] == '\\' || t[2] == '/'):
		return Path
	}
	first, rest, ok := strings.Cut(t, "/")
	if ok && strings.IndexByte(first, '.') > 0 && hostOrFile(first) == Host {
		if rest == "" {
			return Host
		}
		return URL
	}
	if len(t) < 4 {
		return 0
	}
	slashes := 0
	signs := false
	letters := false
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c == '/' || c == '\\':
			slashes++
		case c == '.' || c == '_' || c == '-':
			signs = true
		case byteClass[c]&(cLetter|cHigh) != 0:
			letters = true
		}
	}
	if letters && (slashes >= 2 || signs || strings.HasSuffix(t, "/")) {
		return Path
	}
	return 0
}

// Several words.

// wordEnd is the end of the run of letters and digits at i, at most 24 bytes.
func wordEnd(s string, i, to int) int {
	e := i
	for e < to && e-i < 24 && isAlnum(s[e]) {
		e++
	}
	return e
}

// digitsEnd is the end of the run of digits at i, at most 24.
func digitsEnd(s string, i, to int) int {
	e := i
	for e < to && e-i < 24 && isDigit(s[e]) {
		e++
	}
	return e
}

// amountEnd is the end of the digits at i, at most 32, with points and commas
// between them.
func amountEnd(s string, i, to int) int {
	e := i
	for e < to && e-i < 32 && (isDigit(s[e]) || (s[e] == ',' || s[e] == '.') && e+1 < to && isDigit(s[e+1])) {
		e++
	}
	return e
}

func lowerWord(s string) string {
	if len(s) > 24 {
		return ""
	}
	return strings.ToLower(s)
}

// several recognises the forms that reach over spaces, and returns where the
// value ends, or 0. It looks at no more than some eighty bytes.
func (v *valueScanner) several(i, to int) int {
	s := v.s
	c := s[i]
	if isDigit(c) || c == '+' {
		if end := phoneEnd(s, i, to); end > 0 {
			return v.take(Phone, i, end)
		}
	}
	if isDigit(c) {
		if end := groupedDigits(s, i, to); end > 0 {
			return v.take(Account, i, end)
		}
		// 12 March 2025, 12th of March
		e := digitsEnd(s, i, to)
		if e-i <= 2 {
			w := wordEnd(s, e, to) // an ordinal's ending
			if h := lowerWord(s[e:w]); h == "am" || h == "pm" {
				return v.take(DateTime, i, w)
			}
			if w == e || w == e+2 {
				j := skipSpace(s, w, to)
				if strings.HasPrefix(s[j:to], "of ") {
					j += 3
				}
				w := wordEnd(s, j, to)
				if j > e && valueWords().Months[lowerWord(s[j:w])] {
					return v.take(DateTime, i, yearAfter(s, w, to))
				}
				if j == w || j == e {
					j = skipSpace(s, e, to)
					w = wordEnd(s, j, to)
				}
				if h := lowerWord(s[j:w]); j > e && (h == "am" || h == "pm") && s[j:w] != "Am" {
					return v.take(DateTime, i, w)
				}
			}
		}
		// 1,200.50 dollars
		n := amountEnd(s, i, to)
		j := skipSpace(s, n, to)
		w := wordEnd(s, j, to)
		if word := lowerWord(s[j:w]); j > n || w > j {
			if j > n && (word == "million" || word == "billion" || word == "thousand") {
				k := skipSpace(s, w, to)
				if w2 := wordEnd(s, k, to); valueWords().Currencies[lowerWord(s[k:w2])] {
					return v.take(Money, i, w2)
				}
			}
			if valueWords().Currencies[word] {
				return v.take(Money, i, w)
			}
			if j == n+1 && (word == "percent") {
				return v.take(Figure, i, w)
			}
		}
		if strings.HasPrefix(s[n:to], "%") {
			v.add(Figure, i, n+1)
			return n + 1
		}
		if strings.HasPrefix(s[n:to], "€") {
			v.add(Money, i, n+3)
			return n + 3
		}
		// A figure with commas, which would end an atom.
		if n > e && strings.IndexByte(s[i:n], ',') >= 0 && (n == to || !isAlnum(s[n]) && s[n] != '-' && s[n] != '/') {
			return v.take(Figure, i, n)
		}
		return 0
	}
	if rest, ok := currencySign(s[i:min(to, i+48)]); ok {
		at := min(to, i+48) - len(rest)
		at = skipSpace(s, at, to)
		n := amountEnd(s, at, to)
		if n == at {
			return 0
		}
		if w := wordEnd(s, n, to); valueWords().Forms.Amount.Is(s[at:w]) {
			n = w
		}
		j := skipSpace(s, n, to)
		switch w := wordEnd(s, j, to); lowerWord(s[j:w]) {
		case "million", "billion", "thousand", "usd":
			n = w
		}
		return v.take(Money, i, n)
	}
	if byteClass[c]&cLetter == 0 {
		return 0
	}
	w := wordEnd(s, i, to)
	if w < to && (isAlnum(s[w]) || s[w] == '@') {
		return 0
	}
	if isUpper(c) {
		if end := ibanEnd(s, i, to); end > 0 {
			return v.take(Account, i, end)
		}
		word := lowerWord(s[i:w])
		j := skipSpace(s, w, to)
		if valueWords().Currencies[word] && len(word) <= 4 && j < to && isDigit(s[j]) {
			n := amountEnd(s, j, to)
			return v.take(Money, i, n)
		}
		if valueWords().Months[word] {
			if s[w-1] != '.' && w < to && s[w] == '.' {
				j = skipSpace(s, w+1, to)
			}
			d := digitsEnd(s, j, to)
			if d > j && d-j <= 4 {
				e := d
				if o := wordEnd(s, d, to); o == d+2 && d-j <= 2 {
					e = o
				}
				if d-j <= 2 {
					e = yearAfter(s, e, to)
				}
				return v.take(DateTime, i, e)
			}
		}
		if valueWords().Weekdays[word] {
			return v.take(DateTime, i, w)
		}
	}
	// key = value
	if j := skipSpace(s, w, to); j > w && j+2 < to && s[j] == '=' && s[j+1] == ' ' && valueWords().Forms.Key.Is(s[i:w]) {
		from := skipSpace(s, j+1, to)
		if e := trimValue(s, from, wordRun(s, from, to)); e > from {
			v.add(Setting, i, e)
			v.inner(from, e)
			return e
		}
	}
	return 0
}

// skipSpace skips at most two spaces or a no-break space.
func skipSpace(s string, i, to int) int {
	for n := 0; n < 2 && i < to; n++ {
		if s[i] == ' ' || s[i] == '\t' {
			i++
		} else if strings.HasPrefix(s[i:to], "\u00a0") {
			i += 2
		} else {
			break
		}
	}
	return i
}

// yearAfter extends a date that ends at i by ", 2025".
func yearAfter(s string, i, to int) int {
	j := i
	if j < to && s[j] == ',' {
		j++
	}
	j = skipSpace(s, j, to)
	if d := digitsEnd(s, j, to); d-j == 4 && j > i && (d == to || !isAlnum(s[d])) {
		return d
	}
	return i
}

// phoneEnd is the end of a telephone number of several groups at i, or 0.
func phoneEnd(s string, i, to int) int {
	end, digits, groups := 0, 0, 0
	limit := min(to, i+28)
	for j := i; j < limit; {
		switch c := s[j]; {
		case isDigit(c):
			for j < limit && isDigit(s[j]) {
				j++
				digits++
			}
			groups++
			end = j
			continue
		case c == '+' && j == i, c == '(' || c == ')' || c == ' ' || c == '-' || c == '.' || c == '/':
			// One separator, or a bracket with a space.
			if j > i && j+1 < limit && !isDigit(s[j+1]) && !(c == ' ' && s[j+1] == '(') &&
				!(c == ')' && (s[j+1] == ' ' || s[j+1] == '-')) {
				j = limit
				continue
			}
			if c == '/' {
				j = limit
				continue
			}
			j++
			continue
		}
		break
	}
	if end == 0 || groups < 2 && s[i] != '+' || end < to && isAlnum(s[end]) {
		return 0
	}
	t := s[i:end]
	if f := &valueWords().Forms; !isPhone(t) || strings.Count(t, ".") == 1 || f.Date.Is(t) || f.IPv4.Is(t) {
		return 0
	}
	return end
}

// groupedDigits is the end of an account or card number written in groups of
// at least two digits, eight digits or more in all, or 0.
func groupedDigits(s string, i, to int) int {
	end, digits, groups := 0, 0, 0
	for j := i; j < to && j-i < 48; {
		d := digitsEnd(s, j, to)
		if d-j < 2 {
			break
		}
		digits += d - j
		groups++
		end = d
		if d+1 >= to || s[d] != ' ' && s[d] != '-' || !isDigit(s[d+1]) {
			break
		}
		j = d + 1
	}
	if groups < 2 || digits < 8 || digits > 34 || end < to && (isAlnum(s[end]) || s[end] == ':' || s[end] == '/') ||
		valueWords().Forms.Date.Is(s[i:end]) {
		return 0
	}
	// 2024 2025 are two years and 2025-03-12 14:00 is a date: groups of an
	// account are alike, or it has three.
	if groups == 2 && digits < 12 {
		return 0
	}
	if digitsEnd(s, i, to)-i == 4 && end >= i+10 && valueWords().Forms.Date.Is(s[i:i+10]) {
		return 0
	}
	return end
}

// ibanEnd is the end of an IBAN at i, with or without spaces between its
// groups of four, or 0.
func ibanEnd(s string, i, to int) int {
	var t [40]byte
	n, end := 0, 0
	for j := i; j < to && n < len(t); j++ {
		c := s[j]
		if isUpper(c) || isDigit(c) {
			t[n] = c
			n++
			end = j + 1
			continue
		}
		if c == ' ' && n%4 == 0 && n > 0 && j+1 < to && (isDigit(s[j+1]) || isUpper(s[j+1])) &&
			groupHasDigit(s[j+1:min(to, j+5)]) {
			continue
		}
		break
	}
	if end < to && isAlnum(s[end]) || !isIBAN(string(t[:n])) {
		return 0
	}
	return end
}

func groupHasDigit(g string) bool {
	for i := 0; i < len(g); i++ {
		if isDigit(g[i]) {
			return true
		}
		if !isUpper(g[i]) {
			return false
		}
	}
	return false
}

// Bare commands: a known program and arguments that only a command line has.

// bareCommand recognises a bare command whose program stands at s[i:e].
func (v *valueScanner) bareCommand(i, e, to int) int {
	s := v.s
	if v.command || e-i > 16 || !valueWords().Programs[s[i:e]] {
		return 0
	}
	end, args := e, false
	plain := 0 // plain words that may still be arguments: they follow a subcommand
	for j := e; j < to; {
		j++ // the space
		if j >= to || s[j] == ' ' {
			break
		}
		w := j
		for w < to && s[w] != ' ' && s[w] != '\t' && s[w] != '`' && s[w] != '"' {
			w++
		}
		t := s[j:trimValue(s, j, w)]
		switch {
		case t == "":
			w = to
		case t == "|" || t == "&&" || t == "||" || t == ">" || t == ">>":
			plain = 0
			j = w
			continue
		case t[0] == '-' || strings.ContainsAny(t, "/=:@\\") || strings.IndexByte(t, '.') > 0:
			args = true
			end = j + len(t)
		case args && (valueWords().Programs[t] || allOf(t, isDigit)):
			end = j + len(t)
		case valueWords().Subcommands[t]:
			args = true
			plain = 2
			end = j + len(t)
		case plain > 0 && valueWords().Forms.Argument.Is(t) && !IsStopword(t):
			plain--
			end = j + len(t)
		default:
			w = to
		}
		if w < to && len(t) < w-j { // punctuation ends it
			break
		}
		j = w
	}
	if !args {
		return 0
	}
	v.addCommand(i, e, end)
	return end
}

// name recognises a run of capitalised words that begins at s[i:e].
func (v *valueScanner) name(i, e, to int, sentenceStart bool) int {
	s := v.s
	start, end, words := -1, 0, 0
	at := i
	for first := true; ; first = false {
		w := trimValue(s, at, e)
		t := s[at:w]
		if !capitalised(t) {
			break
		}
		if low := lowerWord(strings.TrimSuffix(t, "'s")); first && (IsStopword(low) || sentenceStart && IsCommonWord(low)) ||
			!first && IsStopword(low) {
			// The first word of a sentence has its capital from that.
			if !first {
				break
			}
		} else {
			if start < 0 {
				start = at
			}
			words++
			end = w
		}
		if w < e && !(s[w] == '.' && w-at <= 3 && words > 0) || first && start < 0 && words > 0 {
			break
		}
		if first && start < 0 {
			// Go on only to the very next word.
			if w < e {
				return 0
			}
		}
		next := e
		if next >= to || s[next] != ' ' || words >= 6 {
			break
		}
		next++
		if next >= to || isOpener(s[next]) {
			break
		}
		at = next
		e = wordRun(s, at, min(to, at+64))
		if e-at >= 60 {
			break
		}
		// A word of another form (an id, a URL) is a value of its own.
		if classify(s[at:max(at+1, trimValue(s, at, e))]) != 0 || strings.ContainsAny(s[at:e], "@=:/\\") {
			break
		}
	}
	if start < 0 {
		return 0
	}
	for _, poss := range []string{"'s", "’s"} {
		if strings.HasSuffix(s[start:end], poss) {
			end -= len(poss)
		}
	}
	// The first word of a line or sentence before a colon is a label.
	if words == 1 && sentenceStart && start == i && end < to && s[end] == ':' {
		return 0
	}
	// One word in capitals is emphasis or an abbreviation.
	if t := s[start:end]; words == 1 && (len(t) < 2 || t == strings.ToUpper(t)) {
		return 0
	}
	if t := s[start:end]; words > 1 && t == strings.ToUpper(t) && allCommon(t) {
		return 0
	}
	v.add(Name, start, end)
	return end
}

func allCommon(t string) bool {
	for w := range strings.FieldsSeq(strings.ToLower(t)) {
		if !IsCommonWord(w) {
			return false
		}
	}
	return true
}

// capitalised: a word of letters, hyphens, apostrophes and inner points that begins with a capital.
func capitalised(t string) bool {
	if t == "" || len(t) > 64 {
		return false
	}
	r, n := utf8.DecodeRuneInString(t)
	if !unicode.IsUpper(r) {
		return false
	}
	for _, r := range t[n:] {
		if !unicode.IsLetter(r) && r != '-' && r != '\'' && r != '’' && r != '&' && !unicode.IsMark(r) {
			return false
		}
	}
	return true
}
