package contradiction

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// document reads the text line by line and hands each stretch to the reader of
// its form.
func (x *extractor) document() {
	src := x.src
	for i := 0; i < len(src); {
		end := lineEnd(src, i)
		from, to := trimSpan(src, i, end)
		if from == to {
			x.parents = x.parents[:0]
			i = end + 1
			continue
		}
		switch c := src[from]; {
		case c == '|':
			i = x.table(i, '|')
			continue
		case c == '{' || c == '[':
			if c == '[' && x.sectionHead(from, to) {
				i = end + 1
				continue
			}
			k := strings.IndexByte(src[from:to], ']')
			if c == '[' && k > 0 && identifier(src[from+1:from+k]) && !strings.Contains(src[from:from+k], "/") { // "[info] …"
				x.prose(trimSpan(src, from+k+1, to))
				i = end + 1
				continue
			}
			if next, ok := x.tryJSON(from); ok {
				i = next
				continue
			}
		}
		if d := x.delimited(i, end); d != 0 {
			i = x.table(i, d)
			continue
		}
		indent := from - i
		bulleted := false
		if n := bullet(src[from:to]); n > 0 {
			from += n
			bulleted = true
		}
		if x.keyValue(from, to, indent, bulleted) {
			i = end + 1
			continue
		}
		// A sentence may go over several lines.
		for end < len(src) {
			next := lineEnd(src, end+1)
			a, b := trimSpan(src, end+1, next)
			if a == b || !continues(src, to, a, b) {
				break
			}
			to, end = b, next
		}
		x.prose(from, to)
		i = end + 1
	}
}

// continues reports whether the line src[a:b] goes on with a sentence that
// ended, so far, at end.
func continues(src string, end, a, b int) bool {
	switch src[end-1] {
	case '.', '!', '?', ':':
		return false
	}
	c := src[a]
	if c >= 'a' && c <= 'z' {
		line := src[a:b]
		return !strings.ContainsAny(line[:min(len(line), 48)], ":=")
	}
	return false
}

func lineEnd(s string, i int) int {
	if k := strings.IndexByte(s[i:], '\n'); k >= 0 {
		return i + k
	}
	return len(s)
}

func trimSpan(s string, a, b int) (int, int) {
	for a < b && s[a] <= ' ' {
		a++
	}
	for b > a && s[b-1] <= ' ' {
		b--
	}
	return a, b
}

// bullet returns the length of a list mark, heading or quotation mark at the
// start of a line.
func bullet(s string) int {
	i := 0
	for i < len(s) && i < 8 {
		switch c := s[i]; {
		case (c == '-' || c == '*' || c == '+' || c == '>' || c == '#') && i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == c):
			i++
			if s[i] == ' ' {
				i++
			}
		case strings.HasPrefix(s[i:], "• "):
			i += len("• ")
		case c >= '1' && c <= '9' && i+2 < len(s) && (s[i+1] == '.' || s[i+1] == ')') && s[i+2] == ' ':
			i += 3
		default:
			return i
		}
	}
	return i
}

// sectionHead reads the "[name]" of an INI file.
func (x *extractor) sectionHead(from, to int) bool {
	s := x.src[from:to]
	if len(s) < 3 || len(s) > 64 || s[len(s)-1] != ']' || strings.ContainsAny(s[1:len(s)-1], "[]{}\",") ||
		digits(s[1:len(s)-1]) || len(s) == 3 {
		return false
	}
	x.section = x.keyPhrase(from+1, to-1)
	return true
}

// keyPhrase tokenizes src[from:to] and returns its words as one phrase.
func (x *extractor) keyPhrase(from, to int) phrase {
	at := len(x.tokens)
	x.tokenize(from, to)
	start := int32(len(x.refs))
	for i := at; i < len(x.tokens); i++ {
		switch x.tokens[i].kind {
		case word, number, quoted:
			x.refs = append(x.refs, int32(i))
		}
	}
	return phrase{start, int32(len(x.refs))}
}

// value makes src[from:to] one token: the value of a key, a cell of a table.
func (x *extractor) value(from, to int) phrase {
	for from < to {
		c := x.src[from]
		if (c == '"' || c == '\'' || c == '`') && to-from > 1 && x.src[to-1] == c {
			from, to = trimSpan(x.src, from+1, to-1)
			continue
		}
		if c == '*' && x.src[to-1] == '*' && to-from > 1 {
			from, to = from+1, to-1
			continue
		}
		break
	}
	if from >= to {
		return phrase{}
	}
	x.add(x.src[from:to], from, to, quoted)
	return x.refsOf(int32(len(x.tokens) - 1))
}

const maxKey = 64 // bytes of a key

// keyValue reads "key: value", "key = value", "key -> value" and "thing –
// key: value". It reports whether the line was one.
func (x *extractor) keyValue(from, to, indent int, bulleted bool) bool {
	from = x.skipStamp(from, to)
	sep, n := separator(x.src[from:to])
	if sep < 0 {
		if sep, n = dashSeparator(x.src[from:to]); sep < 0 {
			return false
		}
	}
	keyFrom, keyTo := trimSpan(x.src, from, from+sep)
	valFrom, valTo := trimSpan(x.src, from+sep+n, to)
	for keyTo > keyFrom && strings.IndexByte("*`_\"'", x.src[keyTo-1]) >= 0 {
		keyTo--
	}
	for keyFrom < keyTo && strings.IndexByte("*`_\"'", x.src[keyFrom]) >= 0 {
		keyFrom++
	}
	if strings.HasPrefix(x.src[keyFrom:keyTo], "export ") {
		keyFrom += len("export ")
	}
	for valFrom < valTo && x.src[valFrom] == '*' && x.src[from+sep] == ':' { // **key:** value
		valFrom++
	}
	valFrom, valTo = trimSpan(x.src, valFrom, valTo)
	if keyFrom >= keyTo || keyTo-keyFrom > maxKey {
		return false
	}
	if k := strings.Index(x.src[keyFrom:keyTo], " ("); k > 0 && x.src[keyTo-1] == ')' {
		_, keyTo = trimSpan(x.src, keyFrom, keyFrom+k) // a remark or a unit
	}
	at := len(x.tokens)
	atRefs := len(x.refs)
	key := x.keyPhrase(keyFrom, keyTo)
	for key.to-key.from > 1 && x.tokens[x.refs[key.from]].is(cArticle|cDrop) &&
		!x.tokens[x.refs[key.from]].is(cAttribute) && x.wordIs(int(x.refs[key.from]), len(x.tokens), "the", "our", "new") {
		key.from++
	}
	undo := func() bool {
		x.tokens = x.tokens[:at]
		x.refs = x.refs[:atRefs]
		return false
	}
	if !x.keyLike(at, len(x.tokens)) || key.empty() {
		return undo()
	}
	for len(x.parents) > 0 && x.parents[len(x.parents)-1].indent >= indent {
		x.parents = x.parents[:len(x.parents)-1]
	}
	if valFrom == valTo {
		if x.src[from+sep] == ':' && len(x.parents) < 16 && len(x.tokens) > at {
			x.parents = append(x.parents, parent{indent, key})
			return true
		}
		return undo()
	}
	if k := strings.Index(x.src[valFrom:valTo], " ("); k > 0 && x.src[valTo-1] == ')' &&
		!(x.src[valFrom+k+2] >= '0' && x.src[valFrom+k+2] <= '9') {
		valFrom, valTo = trimSpan(x.src, valFrom, valFrom+k) // a remark
	}
	label := x.tokens[at].is(cLabel) && len(x.tokens)-at <= 2
	if label || x.sentenceLike(valFrom, valTo) {
		x.prose(valFrom, valTo)
		return true
	}
	owner := x.section
	if len(x.parents) > 0 {
		owner = x.parents[len(x.parents)-1].key
	}
	x.pairs(owner, key, valFrom, valTo)
	return true
}

// skipStamp goes over the time stamp of a chat or log line.
func (x *extractor) skipStamp(from, to int) int {
	s := x.src[from:to]
	if len(s) > 2 && s[0] == '[' && (s[1] >= '0' && s[1] <= '9') {
		if k := strings.IndexByte(s[:min(len(s), 32)], ']'); k > 0 {
			a, _ := trimSpan(x.src, from+k+1, to)
			return a
		}
	}
	return from
}

// separator returns where key and value of a line are separated, and the length
// of the mark, or -1.
func separator(s string) (int, int) {
	limit := min(len(s), maxKey+8)
	for i := 1; i < limit; i++ {
		switch s[i] {
		case ':':
			if i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\t' || s[i+1] == '"' || s[i+1] == '*' {
				return i, 1
			}
			if strings.HasPrefix(s[i:], "://") {
				return -1, 0
			}
			// "key:value" without a space, but neither a time nor a port.
			if identifier(s[:i]) && !digitAt(s, i-1) && i+1 < len(s) && s[i+1] > ' ' && !strings.ContainsAny(s[i+1:], " :") {
				return i, 1
			}
		case '=':
			if i+1 < len(s) && (s[i+1] == '=' || s[i+1] == '~') || strings.IndexByte("<>!=~+", s[i-1]) >= 0 {
				return -1, 0
			}
			if i+1 < len(s) && s[i+1] == '>' {
				return i, 2
			}
			if strings.Contains(s[:i], "://") {
				return -1, 0
			}
			return i, 1
		case '-':
			if strings.HasPrefix(s[i:], "-> ") && s[i-1] == ' ' {
				return i, 2
			}
		case '\t':
			return i, 1
		case '.', '!', '?', ',', ';':
			if i+1 < len(s) && s[i+1] == ' ' && !(s[i] == '.' && i < 4) {
				return -1, 0
			}
		case 0xE2: // – — →
			if strings.HasPrefix(s[i:], "→") {
				return i, len("→")
			}
		}
	}
	return -1, 0
}

// dashSeparator finds the dash of "Deadline – 30 May": a line of a few words
// that is no sentence.
func dashSeparator(s string) (int, int) {
	if len(s) > 2*maxKey || strings.IndexByte(".!?", s[len(s)-1]) >= 0 {
		return -1, 0
	}
	for _, d := range [...]string{" – ", " — ", " - "} {
		if k := strings.Index(s, d); k > 0 && !strings.ContainsAny(s[:k], ",;:") && strings.Count(s[:k], " ") < 4 &&
			strings.Count(s, d) == 1 {
			return k + 1, len(d) - 2
		}
	}
	return -1, 0
}

func digitAt(s string, i int) bool { return s[i] >= '0' && s[i] <= '9' }

func identifier(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !wordByte(c) && c != '_' && c != '-' && c != '.' && c != '/' {
			return false
		}
	}
	return s != ""
}

// keyLike reports whether tokens[a:b] can be a key: a few words without a verb.
func (x *extractor) keyLike(a, b int) bool {
	if b-a > 9 || a == b {
		return false
	}
	words, content := 0, false
	for i := a; i < b; i++ {
		t := &x.tokens[i]
		switch {
		case t.is(cFinite) && !(t.is(cModal) && t.is(cBase)) && b-a > 1,
			t.is(cPronoun|cCondition|cGreeting|cIndefinite) && t.kind == word && b-a > 1,
			t.is(cWh), t.is(cGreeting|cNegation) && i == a,
			t.kind == stop, t.kind == question, t.kind == comma, t.kind == semicolon:
			return false
		case t.is(cS) && i > a && !x.nounVerb(i):
			return false
		}
		if t.kind == word || t.kind == number || t.kind == quoted {
			words++
			content = content || t.classes&functionWords == 0 // "From: …" heads a mail
		}
	}
	return content && words <= 6
}

func (x *extractor) nounVerb(i int) bool {
	e := x.tokens[i].entry
	return e == nil || e.traits&vNoun != 0
}

// sentenceLike reports whether a value is a sentence of its own, as in a line of
// a chat. Its tokens are not kept.
func (x *extractor) sentenceLike(from, to int) bool {
	s := x.src[from:to]
	if s[len(s)-1] == '?' {
		return true
	}
	if len(s) < 8 || s[0] == '"' || s[0] == '{' || s[0] == '[' || strings.IndexByte(s, ' ') < 0 {
		return false
	}
	at := len(x.tokens)
	x.tokenize(from, min(to, from+160))
	b := len(x.tokens)
	sentence := false
	for i := at; i < b && !sentence; i++ {
		t := &x.tokens[i]
		switch {
		case t.kind == stop && i < b-1, t.kind == semicolon:
			if i-at >= 3 && t.kind == stop {
				sentence = true
			}
		case t.kind == possessive && i > at && i+1 < b && x.tokens[i+1].kind == word &&
			x.tokens[i+1].is(cArticle|cPreposition|cNegation):
			sentence = true
		case t.kind == word && t.is(cPronoun|cFinite) && t.text != "do" && !t.upper:
			sentence = true
		case t.is(cHedge) && !t.is(cMonth):
			sentence = true
		case i == at && t.kind == word && t.is(cBase) && !t.is(cS) && i+1 < b && x.tokens[i+1].is(cOpensNP):
			sentence = true
		case i > at && t.is(cS|cPast) && !x.nounVerb(i) && i+1 < b && x.tokens[i-1].kind == word &&
			!x.tokens[i-1].is(cPreposition|cAdverb):
			sentence = x.tokens[at].is(cOpensNP) || t.is(cS)
		}
	}
	x.tokens = x.tokens[:at]
	return sentence
}

// pairs emits the value of a key. Further parts after a comma or semicolon may
// be pairs of their own ("Vet: Dr. Roth, phone 020 5550 118").
func (x *extractor) pairs(owner, key phrase, from, to int) {
	src := x.src
	if k := strings.Index(src[from:to], " #"); k > 0 &&
		(src[from] != '"' && src[from] != '\'' || strings.IndexByte(src[from+1:from+k], src[from]) >= 0) {
		from, to = trimSpan(src, from, from+k)
	}
	if src[from] == '{' {
		if next, ok := x.objectOf(from, to, key); ok && next >= to {
			return
		}
	}
	first := true
	subject := key
	for from < to {
		end, next := to, to
		for i := from; i < to; i++ {
			if c := src[i]; (c == ',' || c == ';') && (i+1 == to || src[i+1] == ' ') {
				if a, b := trimSpan(src, i+1, to); a == b || x.pairAhead(a, b, c == ';') {
					end, next = i, i+1
					break
				}
			}
		}
		a, b := trimSpan(src, from, end)
		from = next
		if a == b {
			continue
		}
		if first {
			x.keyed(owner, key, a, b)
			first = false
			continue
		}
		if sep, n := separator(src[a:b]); sep > 0 {
			ka, kb := trimSpan(src, a, a+sep)
			va, vb := trimSpan(src, a+sep+n, b)
			if va < vb {
				x.keyed(owner, x.keyPhrase(ka, kb), va, vb)
			}
			continue
		}
		if k := strings.IndexByte(src[a:b], ' '); k > 0 {
			va, vb := trimSpan(src, a+k, b)
			x.keyed(subject, x.keyPhrase(a, a+k), va, vb)
		}
	}
}

// pairAhead reports whether what follows a comma begins another pair: an
// attribute's name, or anything with a separator of its own.
func (x *extractor) pairAhead(a, b int, strong bool) bool {
	s := x.src[a:b]
	if k := strings.IndexAny(s, " :="); k > 0 && k < longestWord {
		if e := x.lookup(s[:k]); e != nil && e.classes&cAttribute != 0 && s[0] >= 'a' {
			return !x.placeWord(e) || s[k] != ' '

		}
		if s[k] == ':' || s[k] == '=' {
			return identifier(s[:k])
		}
	}
	if k := strings.IndexByte(s[:min(len(s), maxKey)], ':'); k > 0 && strong {
		return true
	}
	return false
}

// placeWord reports whether an attribute's name is rather part of an address:
// "room 4", "platform 2".
func (x *extractor) placeWord(e *entry) bool {
	return slices.Contains([]string{"room", "floor", "gate", "desk", "seat", "platform", "office", "branch", "level",
		"site", "region",
		"version", "size", "number"}, e.word)
}

// keyed emits one key with its value.
func (x *extractor) keyed(owner, key phrase, from, to int) {
	src := x.src
	for to > from && (src[to-1] == ',' || src[to-1] == ';' ||
		src[to-1] == '.' && !strings.ContainsAny(src[from:to-1], ".")) {
		to--
	}
	if noValue(src[from:to]) {
		return
	}
	if x.valueHedged(from, to) {
		return
	}
	if k := strings.IndexByte(src[from:to], ' '); owner.empty() && k > 0 && k < longestWord { // "Office: phone 12"
		e := x.lookup(src[from : from+k])
		if a, _ := trimSpan(src, from+k, to); e != nil && e.classes&cAttribute != 0 && src[from] >= 'a' && !x.placeWord(e) &&
			src[a] >= '0' && src[a] <= '9' {
			x.emit(fact{subject: key, predicate: x.keyPhrase(from, from+k), object: x.value(a, to), keyed: true,
				attribute: true})
			return
		}
	}
	v := x.value(from, to)
	f := fact{subject: key, predicate: x.refsOf(tokIs), object: v, keyed: true, multi: enumeration(src[from:to])}
	if !owner.empty() {
		f.subject, f.predicate, f.attribute = owner, key, true
	}
	x.emit(f)
}

// enumeration reports whether a value is a list of plain words: "paint, brushes,
// tape".
func enumeration(s string) bool {
	if strings.Count(s, ", ") < 2 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c == ' ' || c == ',' || c == '-' || c >= utf8.RuneSelf) {
			return false
		}
	}
	return true
}

func (x *extractor) valueHedged(from, to int) bool {
	end := from
	for end < to && wordByte(x.src[end]) {
		end++
	}
	e := x.lookup(x.src[from:end])
	return e != nil && e.classes&(cHedge|cNegation) != 0 && e.classes&cMonth == 0 && to-end > 0 && end-from > 2
}

func noValue(s string) bool {
	switch strings.ToLower(s[:min(len(s), 16)]) {
	case "", "-", "--", "?", "??", "???", "~", "null", "none", "n/a", "na", "tbd", "tba", "tbc", "todo", "unknown", "…",
		"...", "{", "[",
		"undefined", "not set", "unset", "|", "pending", "open question":
		return true
	}
	return false
}

// delimited returns the delimiter of a table in the style of CSV whose head is the
// line src[i:end], or 0. The next line must have as many cells.
func (x *extractor) delimited(i, end int) byte {
	head := x.src[i:end]
	if end+1 >= len(x.src) || len(head) > 256 {
		return 0
	}
	row := x.src[end+1 : lineEnd(x.src, end+1)]
	for _, d := range [...]byte{'\t', ';', ','} {
		n := strings.Count(head, string(d))
		if n > 0 && n < 16 && len(row) < 1024 && strings.Count(row, string(d)) == n &&
			(d == '\t' || !strings.ContainsAny(head, ".:!?=") && !strings.Contains(head, string(d)+" ") &&
				!strings.Contains(row, string(d)+" ")) {
			return d
		}
	}
	return 0
}

// table reads a table that begins at line start i and returns where it ends. Its
// cells are divided by d: '|' in Markdown, where a line begins with one too.
func (x *extractor) table(i int, d byte) int {
	const maxColumns = 16
	src := x.src
	var head []phrase
	dividers := strings.Count(src[i:lineEnd(src, i)], string(d))
	for i < len(src) {
		end := lineEnd(src, i)
		from, to := i, end
		if d == '|' {
			if from, to = trimSpan(src, i, end); from == to || src[from] != '|' {
				return i
			}
			from++
		} else if end-i > 1024 || strings.Count(src[i:end], string(d)) != dividers {
			return i
		}
		var subject phrase
		first := len(head) == 0
		for k := 0; from < to && k < maxColumns; k++ {
			q := from
			for q < to && src[q] != d {
				q++
			}
			a, b := trimSpan(src, from, q)
			from = q + 1
			if first {
				head = append(head, x.keyPhrase(a, b))
				continue
			}
			if k == 0 {
				if strings.Trim(src[a:b], ":-") == "" {
					break // the line below the head
				}
				subject = x.value(a, b)
			} else if a < b && k < len(head) && !noValue(src[a:b]) && !head[k].empty() {
				x.emit(fact{subject: subject, predicate: head[k], object: x.value(a, b), keyed: true, attribute: true})
			}
		}
		i = end + 1
	}
	return i
}

// tryJSON reads a JSON value that begins at i. It returns where the next line
// begins. Texts that only look like JSON may cost their own length a few times
// in all, never more.
func (x *extractor) tryJSON(i int) (int, bool) {
	next, ok := x.objectOf(i, len(x.src), x.section)
	if !ok {
		return i, false
	}
	end := lineEnd(x.src, next)
	if a, b := trimSpan(x.src, next, end); a < b && x.src[a] != ',' && x.src[a] != ';' {
		x.prose(a, b)
	}
	return end + 1, true
}

// objectOf reads the JSON value at src[from:to] as the value of a key.
func (x *extractor) objectOf(from, to int, key phrase) (int, bool) {
	if x.jsonWork > 4*len(x.src)+256 {
		return from, false
	}
	at, refs, facts := len(x.tokens), len(x.refs), len(x.facts)
	j := jsonReader{x: x, from: from, d: jsontext.NewDecoder(strings.NewReader(x.src[from:to]),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	ok := j.value(phrase{}, key, false)
	end := from + int(j.d.InputOffset())
	if !ok {
		x.jsonWork += end - from
		x.tokens, x.refs, x.facts = x.tokens[:at], x.refs[:refs], x.facts[:facts]
		return from, false
	}
	return end, true
}

// jsonReader finds the keys and values of a JSON value.
type jsonReader struct {
	x    *extractor
	from int // where the value begins in the text
	d    *jsontext.Decoder
}

const maxDepth = 32

// value reads a value as that of a key. Elements of an array are several values of
// one key.
func (j *jsonReader) value(owner, key phrase, multi bool) bool {
	switch k := j.d.PeekKind(); k {
	case '{', '[':
		if _, err := j.d.ReadToken(); err != nil || j.d.StackDepth() > maxDepth {
			return false
		}
		if k == '{' {
			return j.object(key, multi && key.empty())
		}
		for k = j.d.PeekKind(); k != ']'; k = j.d.PeekKind() {
			if k == '{' && !j.value(phrase{}, phrase{}, true) || k != '{' && !j.value(owner, key, true) {
				return false
			}
		}
		_, err := j.d.ReadToken()
		return err == nil
	}
	v, ok := j.scalar()
	if !ok || key.empty() || noValue(j.x.tokens[j.x.refs[v.from]].text) {
		return ok
	}
	f := fact{subject: key, predicate: j.x.refsOf(tokIs), object: v, keyed: true, multi: multi}
	if !owner.empty() {
		f.subject, f.predicate, f.attribute = owner, key, true
	}
	j.x.emit(f)
	return true
}

// scalar reads a string, a number or a word, and adds it as one token.
func (j *jsonReader) scalar() (phrase, bool) {
	x := j.x
	v, err := j.d.ReadValue()
	end := j.from + int(j.d.InputOffset())
	start := end - len(v)
	if err != nil || v.Kind() != '"' {
		return x.value(start, end), err == nil
	}
	s := x.src[start+1 : end-1]
	if strings.IndexByte(s, '\\') >= 0 {
		b, _ := jsontext.AppendUnquote(nil, v)
		s = strings.Join(strings.FieldsFunc(string(b), unicode.IsControl), " ")
	}
	x.add(s, start+1, end-1, quoted)
	return x.refsOf(int32(len(x.tokens) - 1)), true
}

func (j *jsonReader) object(owner phrase, listed bool) bool {
	x := j.x
	firstFact := len(x.facts)
	var name phrase
	for j.d.PeekKind() == '"' {
		key, _ := j.scalar()
		before := len(x.facts)
		if !j.value(owner, key, false) {
			return false
		}
		if len(x.facts) == before+1 && owner.empty() {
			switch x.tokens[x.refs[key.from]].text {
			case "name", "id", "title":
				name = x.facts[before].object
			}
		}
	}
	if _, err := j.d.ReadToken(); err != nil {
		return false
	}
	// [{"name": "printer", "port": 9100}, …]: the name is what the rest is about.
	if listed && !name.empty() && len(x.facts)-firstFact > 1 {
		kept := x.facts[:firstFact]
		for _, f := range x.facts[firstFact:] {
			if f.object == name {
				continue
			}
			if !f.attribute {
				f.subject, f.predicate, f.attribute = name, f.subject, true
			}
			kept = append(kept, f)
		}
		x.facts = kept
	}
	return true
}
