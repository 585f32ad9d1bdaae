package contradiction

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/text"
)

// Bounds on one clause, in words.
const (
	maxClause = 64
	maxBefore = 20 // of a topic, before its value
	maxBehind = 12
	maxPhrase = 6
)

//go:embed words.yaml
var wordsYAML []byte

var lists = text.Lists[struct {
	Copulas, Definite, Light, Skip, User, Negations, Past, Hedges, Several text.Words
	Leads, Forms, Choices                                                  map[string]string
	Units                                                                  map[string]map[string]float64
}]("words.yaml", wordsYAML)

// fact is a value and what it is said to be of.
type fact struct {
	topic   []stem // sorted by hash
	value   value
	lead    string // what leads to it: prepositions of a group, a noun ("-queue"), or "" for "is" and a colon
	shown   string // the value as written
	negated bool
}

// claim is a fact where a text says it: its topic for a person, and where the value
// stands in the text, or 0.
type claim struct {
	fact
	slot       string
	start, end int
}

// stem is a word of a topic.
type stem struct {
	hash    uint32
	unit    uint8 // the same for the words of one name, below 32; 0 for other words
	light   bool
	context bool // counts only where the other topic has it too
}

// word is a word of a sentence.
type word struct {
	stem
	text       string // lower case, without the ending of an owner
	start, end int
	in         int  // the value that it is part of, or -1
	owner      bool // "Norvik's"
	says       bool // something about a topic
	one        bool // begins a name for one thing, as in "the owner of"
}

// mention is a value of a sentence: the words from one to another.
type mention struct {
	text.Value
	from, to int
}

// sentence reads the clauses of a sentence. at is where it begins in the text, and
// colon where its key ends, or -1.
func (r *reader) sentence(s string, at, colon int) {
	r.split(s)
	for from, to := 0, 0; from < len(r.words); from = to {
		for to = from + 1; to < len(r.words) && to-from < maxClause; to++ {
			between := s[r.words[to-1].end:r.words[to].start]
			if len(between) > 1 && (strings.ContainsAny(between, ";—") || colon < 0 && strings.Contains(between, ": ")) {
				break
			}
		}
		c := clause{reader: r, s: s, at: at, colon: colon, from: from, to: to, is: -1}
		if c.asserts() {
			c.facts(false)
			c.facts(true)
		}
	}
}

// split finds the words and the values of a sentence.
func (r *reader) split(s string) {
	toks := text.Tokens(s)
	r.words, r.values = r.words[:0], r.values[:0]
	for i, v := range values(s, toks) {
		m := mention{Value: v}
		for m.from = len(r.words); m.from < len(toks) && toks[m.from].End <= v.Start; m.from++ {
			r.words = append(r.words, newWord(toks[m.from], -1))
		}
		for m.to = m.from; m.to < len(toks) && toks[m.to].Start < v.End; m.to++ {
			w := newWord(toks[m.to], i)
			w.unit, w.light = uint8(i%30)+2, false
			if v.Kind != text.Name && v.Kind != text.Figure { // one word of a topic, whatever it is made of
				w.hash, w.says = uint32(text.Hash(v.Text)), m.to == m.from
				w.light = v.Kind == text.DateTime
				w.context = !w.light
			}
			r.words = append(r.words, w)
		}
		r.values = append(r.values, m)
	}
	for _, t := range toks[len(r.words):] {
		r.words = append(r.words, newWord(t, -1))
	}
}

func newWord(t text.Token, in int) word {
	l := lists()
	w := word{text: strings.TrimSuffix(strings.TrimSuffix(t.Text, "'s"), "’s"), start: t.Start, end: t.End, in: in}
	w.owner = len(w.text) < len(t.Text)
	w.says = !text.IsStopword(t.Text) && !l.Skip[t.Text] && (in >= 0 || len(t.Text) > 1 || t.Kind != text.Word)
	w.one = in >= 0 || l.Definite[t.Text]
	w.hash, w.light = hash(w.text), l.Light[w.text]
	if in < 0 && l.User[t.Text] {
		w.stem, w.says = stem{hash: hash("user"), unit: 1, light: true}, true
	}
	return w
}

// hash is the same for all forms of a lower-case word.
func hash(w string) uint32 {
	w = text.Fold(w)
	return uint32(text.Hash(text.Stem(cmp.Or(lists().Forms[w], w))))
}

// values finds the values of a sentence, one at each place. What leads to a flag is
// a command.
func values(s string, toks []text.Token) []text.Value {
	all := text.Values(s)
	out, end := all[:0:0], 0
	for _, v := range all {
		switch {
		case v.Start < end:
		case v.Kind == text.Flag || v.Kind == text.Setting:
			if from := program(v.Start, toks); from >= 0 {
				end = v.End + strings.IndexAny(s[v.End:]+";", ",;")
				v = text.Value{Kind: text.Command, Text: strings.TrimRight(s[from:end], " .`\"'"), Start: from}
				v.End = from + len(v.Text)
				out = append(slices.DeleteFunc(out, func(o text.Value) bool { return o.End > from }), v)
			}
		case v.Kind == text.Figure && len(out) > 0 && out[len(out)-1].Kind == text.Name && s[end:v.Start] == " ":
			name := &out[len(out)-1] // "Erlengrund 14"
			name.Text, name.End, end = s[name.Start:v.End], v.End, v.End
		default:
			out, end = append(out, v), v.End
		}
	}
	return out
}

// program is where the command of a flag begins: behind the last word that leads to
// a value. Where there is none before the flag it is -1.
func program(flag int, toks []text.Token) int {
	l := lists()
	for i := len(toks) - 1; i > 0; i-- {
		w := toks[i-1].Text
		if toks[i].Start < flag && (l.Leads[w] != "" || l.Copulas[w] || l.Light[w]) {
			return toks[i].Start
		}
	}
	return -1
}

// clause is a part of a sentence: its words from one to another.
type clause struct {
	*reader
	s         string
	at, colon int // of the sentence
	from, to  int
	is        int  // the word by which the predicate begins, or -1
	several   bool // its verb takes several objects
}

// asserts finds the predicate, and reports whether the clause is no guess.
func (c *clause) asserts() bool {
	l := lists()
	for i, w := range c.words[c.from:c.to] {
		switch i += c.from; {
		case w.start < c.colon:
			continue
		case c.colon >= 0 && c.is < 0:
			c.is = i - 1
		case w.in >= 0:
		case l.Hedges[w.text] && c.colon < 0:
			return false
		case c.is < 0 && i > c.from && l.Copulas[w.text]:
			c.is = i
		}
		c.several = c.several || w.in < 0 && l.Several[w.text]
	}
	return true
}

// gap is what stands before a word and behind the one before it.
func (c *clause) gap(i int) string { return c.s[c.words[i-1].end:c.words[i].start] }

// facts reads the values of a clause. What is of a kind that says itself what it is
// for may be told of in another clause: wide reads those alone, with the whole
// sentence for their topic.
func (c *clause) facts(wide bool) {
	if wide && c.to-c.from == len(c.words) {
		return
	}
	l, found := lists(), false
	for i, m := range c.values {
		if m.from < c.from || m.from >= c.to {
			continue
		}
		last, next := i+1 == len(c.values) || c.values[i+1].from >= c.to, ""
		if m.to < c.to && c.s[m.End:c.words[m.to].start] == " " && c.words[m.to].says && c.words[m.to].in < 0 {
			next = c.words[m.to].text
		}
		v := valueOf(&m.Value, next)
		predicate := c.is >= 0 && m.from > c.is || c.is < 0 && last && m.from > c.from
		lead := ""
		switch {
		case v.kind == "" || m.from == m.to:
			continue
		case v.strong:
		case wide || c.several || c.words[m.to-1].owner || m.from > 0 && c.words[m.from-1].text == "of":
			continue
		case predicate:
			lead = c.lead(m.from)
		case v.kind != "name" || m.from != c.from || m.to != c.is || !l.Copulas[c.words[c.is].text] ||
			c.is+1 == c.to || !c.words[c.is+1].one:
			continue // nor "Rolf is the owner of the shop"
		}
		found = found || predicate
		c.add(m.from, m.to, m.Start, m.End, v, lead, wide)
	}
	if !found && !wide && !c.several {
		c.phrase()
	}
}

// phrase reads a value in plain words: what stands behind "is", or behind the
// preposition that follows it or a verb such as "goes".
func (c *clause) phrase() {
	l, is := lists(), c.is
	for i := c.from + 1; is < 0 && i+1 < c.to; i++ {
		if c.words[i].light && l.Leads[c.words[i+1].text] != "" {
			is = i
		}
	}
	if is < 0 {
		return
	}
	from, lead := is+1, ""
	for i := from; i < min(is+5, c.to-1); i++ {
		if p := l.Leads[c.words[i].text]; p != "" {
			from, lead = i+1, p
			break
		}
	}
	idle := func(i int) bool {
		w := c.words[i].text
		return l.Skip[w] || l.Negations[w] || w == "the" || w == "a" || w == "an"
	}
	for from < c.to && idle(from) {
		from++
	}
	to := from
	for i := from; i < min(c.to, from+maxPhrase) && (i == from || !strings.ContainsAny(c.gap(i), ",(")); i++ {
		if !idle(i) {
			to = i + 1
		}
	}
	if to == from {
		return
	}
	v := value{kind: phrase, unit: l.Choices[c.words[from].text]}
	if v.unit != "" {
		to = from + 1
	}
	start, end := c.words[from].start, c.words[to-1].end
	v.form = strings.Join(strings.Fields(text.Fold(c.s[start:end])), " ")
	c.add(from, to, start, end, v, lead, false)
}

// lead is what leads to the value at a word.
func (c *clause) lead(at int) string {
	for i := at - 1; i > max(c.is, c.from-1, at-4); i-- {
		w := &c.words[i]
		if p := lists().Leads[w.text]; p != "" {
			return p
		}
		if w.says && w.in < 0 {
			return "-" + text.Stem(w.text)
		}
	}
	return ""
}

// denied reports whether the value at a word is denied, and whether it is what
// once was.
func (c *clause) denied(from, to int) (negated, past bool) {
	l := lists()
	for i := from - 1; i >= c.from && i > from-12; i-- {
		w := c.words[i].text
		negated = negated || l.Negations[w] || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "n’t")
		past = past || l.Past[w] && i >= from-3 || i == from-1 && (w == "was" || w == "were" ||
			w == "from" && to < c.to && c.words[to].text == "to")
		if w == "but" || strings.Contains(c.gap(i+1), ",") {
			break
		}
	}
	return negated, past
}

// add adds the claim that the words from one to another are a value of what the
// rest of the clause speaks of.
func (c *clause) add(from, to, start, end int, v value, lead string, wide bool) {
	negated, past := c.denied(from, to)
	if past || len(c.claims) >= maxClaims {
		return
	}
	lo, hi := c.from, c.to
	if wide {
		lo, hi = 0, len(c.words)
	}
	var topic []stem
	var named, other []string
	for i := max(lo, from-maxBefore); i < min(hi, to+maxBehind); i++ {
		w := &c.words[i]
		if i >= from && i < to || !w.says {
			continue
		}
		topic = append(topic, w.stem)
		if w.unit == 0 {
			other = append(other, w.text)
		} else if !w.context {
			named = append(named, w.text)
		}
	}
	if len(topic) == 0 || v.kind == phrase && v.unit == "" && len(other) == 0 {
		return // that Ana is a doctor does not say that she is nothing else
	}
	slices.SortStableFunc(topic, func(a, b stem) int { return cmp.Compare(a.hash, b.hash) })
	cl := claim{fact: fact{topic: slices.CompactFunc(topic, func(a, b stem) bool { return a.hash == b.hash }),
		value: v, lead: lead, shown: c.s[start:end], negated: negated}, slot: slotName(append(named, other...))}
	if c.at+start >= 0 && start > c.colon {
		cl.start, cl.end = c.at+start, c.at+end
	}
	c.claims = append(c.claims, cl)
}

// slotName spells a topic for a person, in letters that are safe everywhere.
func slotName(words []string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, strings.Join(words, "_"))
	return cmp.Or(text.Cut(safe, 64), "unnamed")
}
