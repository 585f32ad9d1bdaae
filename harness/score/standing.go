package score

import (
	"slices"
	"strconv"
	"strings"
)

// features tells each feature of a passage once.
func (p *passage) features(tell func(string)) {
	told := map[string]bool{}
	var parties, said []string
	add := func(parts ...string) {
		f := strings.Join(parts, ":")
		if told[f] {
			return
		}
		told[f] = true
		tell(f)
		switch {
		case parts[0] == "source" && len(parts) == 2:
			parties = append(parties, parts[1])
		case parts[0] == "own" || parts[0] == "beside" || parts[0] == "later" || parts[0] == "earlier":
			said = append(said, f)
		}
	}
	p.frame(add)
	p.near(add)
	p.everywhere(add)
	p.attributed(add)
	p.clause(add)
	p.others(add)
	p.shape(add)
	if len(parties) == 0 {
		parties = append(parties, "nobody")
	}
	for _, who := range parties {
		for _, f := range said {
			tell(who + " & " + f)
		}
	}
}

// frame is where in the answer the value stands.
func (p *passage) frame(add func(...string)) {
	small := func(what string, n, most int) { add(what + strconv.Itoa(min(n, most))) }
	s := p.sents[p.sent]
	first, last := p.sents[0][0], p.sents[len(p.sents)-1][1]
	add(map[bool]string{true: "start", false: "mid"}[p.sent == 0 && p.at-first <= 1])
	small("sent", p.sent, 3)
	small("of", len(p.sents), 4)
	small("len", (last-first)/8, 6)
	add(map[bool]string{true: "last", false: "not last"}[p.sent == len(p.sents)-1])
	n := 0
	for i := first; i < last; i++ {
		if p.words[i].text == itself {
			n++
		}
	}
	small("times", n, 3)
	n = 0
	for i := p.at - 1; i >= s[0] && !breaks[p.words[i].text]; i-- {
		n++
	}
	small("place", n, 4)
}

// near are the words beside the value, and how its sentence and the next one begin.
func (p *passage) near(add func(...string)) {
	at := func(i int, none string) string {
		if i < p.sents[0][0] || i >= p.sents[len(p.sents)-1][1] {
			return none
		}
		return p.words[i].text
	}
	add("prev", at(p.at-1, "^"))
	add("next", at(p.at+1, "$"))
	classes := func(what string, from, to int) {
		for i := max(from, p.sents[0][0]); i < min(to, p.sents[len(p.sents)-1][1]); i++ {
			for _, k := range classesOf(p.words[i].classes) {
				add(what, k)
			}
		}
	}
	classes("before2", p.at-2, p.at-1)
	classes("before1", p.at-1, p.at)
	classes("behind", p.at+1, p.at+4)
	classes("begins", p.sents[p.sent][0], min(p.sents[p.sent][0]+2, p.sents[p.sent][1]))
	if p.sent+1 < len(p.sents) {
		next := p.sents[p.sent+1]
		classes("then", next[0], min(next[0]+2, next[1]))
	}
}

// breaks end a clause, roughly.
var breaks = set(", ; : — – - → ( but though although whereas while however because so and yet if unless which . ! ?")

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// everywhere are words, pairs of them and classes, by where they stand to the value:
// in its clause, its sentence, before, behind.
func (p *passage) everywhere(add func(...string)) {
	from, to := p.sents[0][0], p.sents[len(p.sents)-1][1]
	own := p.sents[p.sent]
	left, right := p.at, p.at
	for left > own[0] && !breaks[p.words[left-1].text] {
		left--
	}
	for right+1 < own[1] && !breaks[p.words[right+1].text] {
		right++
	}
	for i := from; i < to; i++ {
		w := p.words[i]
		where, place := "later", "later"
		switch {
		case i < own[0]:
			where, place = "earlier", "earlier"
		case i >= own[1]:
		case left <= i && i <= right:
			where, place = "here", map[bool]string{true: "clause before", false: "clause behind"}[i < p.at]
		default:
			where, place = "here", map[bool]string{true: "sentence before", false: "sentence behind"}[i < p.at]
		}
		for _, k := range classesOf(w.classes) {
			add("k", k, place)
		}
		switch {
		case w.text == figure || w.text == other:
			add("k", "value", place)
			fallthrough
		case w.name:
			add("k", "name", place)
		case w.text == "?":
			add("k", "?", where)
		case w.text == `"` || w.text == "“":
			add("k", `"`, place)
		}
		if i+2 < to {
			next, then := p.words[i+1], p.words[i+2]
			switch {
			case w.text == "so" && (next.classes|then.classes)&class("imper") != 0:
				add("so do", where)
			case w.text == "i've" || w.text == "i" && (next.text == "have" || next.text == "just" || strings.HasSuffix(next.text, "ed")):
				add("i did", where)
			case (w.text == "i" || w.text == "i'd") && (negates(next.text) || negates(then.text)):
				add("i not", where)
			}
		}
		add("w", p.shown(i))
		add("w", p.shown(i), where)
		if strings.HasPrefix(place, "clause") {
			add("w", p.shown(i), place)
		}
		if i+1 < to {
			add("w2", where, p.shown(i)+" "+p.shown(i+1))
			add("w2", p.shown(i)+" "+p.shown(i+1))
		}
	}
}

func (p *passage) shown(i int) string {
	if p.words[i].name {
		return name
	}
	return p.words[i].text
}

// party says who a span of words speaks of.
func (p *passage) party(from, to int) string {
	var bits uint32
	named, long := false, false
	first, last, n := "", "", 0
	for i := from; i < to; i++ {
		w := p.words[i]
		c := w.classes
		if base, ok := strings.CutSuffix(w.text, "'s"); ok && c == 0 {
			one := []word{{text: base}}
			classify(one)
			c = one[0].classes
		}
		bits |= c
		named, long = named || w.name, long || len(w.text) > 3
		if n++; n == 1 {
			first = w.text
		}
		last = w.text
	}
	has := func(name string) bool { return bits&class(name) != 0 }
	pronoun := func(words ...string) bool {
		return n > 0 && n <= 2 && (slices.Contains(words, first) || slices.Contains(words, last))
	}
	switch {
	case has("i"):
		return "self"
	case (has("stranger") || has("weak")) && has("yours"):
		return "stranger of yours"
	case has("stranger") || has("weak"):
		return "stranger"
	case has("yours") && has("own"):
		return "your own"
	case has("own"):
		return "own"
	case has("yours"):
		return "yours"
	case first == "you" || last == "you":
		return "you"
	case has("medium"):
		return "medium"
	case pronoun("it", "that", "this"):
		return "it"
	case pronoun("he", "she", "they"):
		return "they"
	case named:
		return "name"
	case long:
		return "noun"
	}
	return "none"
}

var (
	halts  = set(". ! ? ; : — – ( ) | →")
	labels = set(`: → | " “ — –`)
	joins  = set(", and but that which who if when since because though although while whereas")
	cites  = map[[2]string]bool{{"according", "to"}: true, {"going", "by"}: true, {"judging", "by"}: true,
		{"based", "on"}: true, {"to", "judge"}: true, {"as", "per"}: true}
	opens   = set("per from in by on under at")
	copulas = set("is was isn't wasn't comes came appears turns stands belongs has gets got looks would")
)

// attributed finds the sources to which the sentence puts the value down: by a citation
// or a label before it, by a verb, behind it.
func (p *passage) attributed(add func(...string)) {
	s := p.sents[p.sent]
	w := func(i int) string {
		if i < s[0] || i >= s[1] {
			return ""
		}
		return p.words[i].text
	}
	say := func(i int) bool { return p.words[i].classes&class("say", "appear", "gives") != 0 }
	source := func(how string, from, to int) {
		party := p.party(from, to)
		add("source", party)
		add("source", how, party)
	}
	until := func(from, to int, stop map[string]bool) int {
		for i := from; i < min(to, s[1]); i++ {
			if stop[w(i)] {
				return i
			}
		}
		return max(from, min(to, s[1]))
	}
	comma := map[string]bool{",": true, ":": true, ";": true, "—": true, "–": true}
	for i := s[0]; i < p.at; i++ {
		from := -1
		switch {
		case cites[[2]string{w(i), w(i + 1)}]:
			from = i + 2
		case w(i) == "per", i == s[0] && opens[w(i)]:
			from = i + 1
		}
		if from >= 0 {
			source("cited", from, until(from, min(p.at, from+9), comma))
		}
	}
	if labels[w(p.at-1)] {
		to := p.at
		for to > s[0] && (labels[w(to-1)] || w(to-1) == "'" || w(to-1) == "-") {
			to--
		}
		from := to
		for from > s[0] && !halts[w(from-1)] && w(from-1) != "," {
			from--
		}
		if from < to {
			how := "label"
			for i := from; i < to; i++ {
				if say(i) {
					how = "said label"
				}
			}
			source(how, from, to)
		}
	}
	verb := -1
	begin := s[0]
	for i := p.at - 1; i >= s[0]; i-- {
		if t := w(i); (t == ";" || t == "—" || t == "–" || t == ".") && i < p.at-1 || t == "so" || t == "therefore" || t == "thus" || t == "hence" {
			begin = i + 1
			break
		}
		if verb < 0 && say(i) {
			verb = i
		}
	}
	if verb >= begin && verb >= 0 {
		to := verb
		for to > begin && joins[w(to-1)] {
			to--
		}
		from := to
		for from > begin && !joins[w(from-1)] {
			from--
		}
		how := "says"
		if p.words[verb].classes&class("say", "gives") == 0 {
			how = "appears"
		}
		source(how, from, to)
	}
	for i := p.at + 1; i < min(s[1], p.at+15); i++ {
		end := min(s[1], i+8)
		switch n := i - p.at - 1; {
		case cites[[2]string{w(i), w(i + 1)}], w(i) == "per":
			source("cited behind", i+1, end)
		case w(i) == "(":
			source("in brackets", i+1, end)
		case n < 3 && (w(i) == "from" || w(i) == "in" || w(i) == "on" || w(i) == "by"):
			source("from", i+1, end)
		case n > 0 && say(i):
			from := i
			for from > p.at+1 && !halts[w(from-1)] && w(from-1) != "," {
				from--
			}
			if from < i && p.party(from, i) != "none" {
				source("says behind", from, i)
			} else if w(i-1) == "," {
				source("said by", i+1, until(i+1, i+7, map[string]bool{",": true, ".": true, ";": true, ":": true, "—": true, "–": true}))
			}
			i = s[1]
		}
	}
	if copulas[w(p.at+1)] || w(p.at+1) == `"` && copulas[w(p.at+2)] {
		source("is", p.at+2, min(s[1], p.at+10))
	}
}

// classesIn are the classes of a span, and whether it holds another value.
func (p *passage) classesIn(from, to int) (bits uint32, value bool) {
	for i := from; i < to; i++ {
		w := p.words[i]
		bits |= w.classes
		value = value || w.name || w.text == figure || w.text == other
	}
	return bits, value
}

func negates(w string) bool {
	return w == "not" || w == "never" || strings.HasSuffix(w, "n't")
}

// clause is what the value's own clause says of it, and the rest of its sentence.
func (p *passage) clause(add func(...string)) {
	s := p.sents[p.sent]
	from := p.at
	for ; from > s[0]; from-- {
		t := p.words[from-1].text
		if t == ";" || t == "—" || t == "–" || t == "but" || t == ":" {
			break
		}
		if t == "," && from < s[1] && set("and but so though which i because")[p.words[from].text] {
			break
		}
	}
	to := p.at + 1
	for to < s[1] && !set("; — – but : though although whereas while ( ,")[p.words[to].text] {
		to++
	}
	bits, value := p.classesIn(from, p.at)
	more, also := p.classesIn(p.at+1, to)
	for _, k := range classesOf(bits | more) {
		add("own", k)
	}
	if value || also {
		add("own", "value")
	}
	for i := from; i < to; i++ {
		if t := p.words[i].text; negates(t) || t == "no" || t == "neither" {
			add("own", "negated")
			if i < p.at && i >= p.at-4 && t != "no" && t != "neither" {
				add("own", "negated close")
			}
		}
		if t := p.words[i].text; i < p.at && (t == "i" || t == "i've" || t == "i'd") {
			add("own", "by me")
		}
	}
	if p.words[s[1]-1].text == "?" {
		add("own", "asked")
	}
	if from == p.at {
		add("own", "begins")
		if to == p.at+1 {
			add("own", "alone")
		}
	}
	imperative := func(i int) bool { return i < p.at && p.words[i].classes&class("imper") != 0 }
	if imperative(from) || set("please just so then")[p.words[from].text] && imperative(from+1) {
		add("own", "told to")
	}
	before, value := p.classesIn(s[0], from)
	behind, also := p.classesIn(to, s[1])
	for _, k := range classesOf(before | behind) {
		add("beside", k)
	}
	if value || also {
		add("beside", "value")
	}
}

var corrects = set("not never no ignore wrong old other another older former outdated superseded stale disregard careful instead")

// others is what the other sentences say, and of whom.
func (p *passage) others(add func(...string)) {
	if len(p.sents) == 1 {
		add("one sentence")
	}
	for k, s := range p.sents {
		if slices.ContainsFunc(p.words[s[0]:s[1]], func(w word) bool { return w.text == itself }) {
			continue
		}
		where := "later"
		if k < p.sent {
			where = "earlier"
		}
		bits, value := p.classesIn(s[0], s[1])
		corrected, it := false, false
		subject := s[1]
		for i := s[0]; i < s[1]; i++ {
			t := p.words[i]
			corrected = corrected || corrects[t.text] || negates(t.text)
			it = it || t.text == "it" || t.text == "that"
			if subject == s[1] && (t.classes&class("say", "gives") != 0 || set("is are was were counts wins")[t.text]) {
				subject = i
			}
		}
		add(where, p.party(s[0], subject), map[bool]string{true: "corrected", false: "said"}[corrected])
		for _, k := range classesOf(bits & class("dunno", "caution", "commit", "own", "stranger", "retract", "wins", "offer", "weak",
			"yours", "not", "sure", "soft")) {
			add(where, k)
		}
		if value {
			add(where, "value")
		}
		if p.words[s[1]-1].text == "?" {
			add(where, "?")
		}
		if p.words[s[0]].classes&class("imper") != 0 {
			add(where, "told to")
		}
		if it {
			add(where, "it")
		}
	}
}
