package score

import (
	"slices"
	"strconv"
	"strings"
)

// against is how much of what speaks for a rival speaks against the value.
const against = 0.9

// weigh tells the features of a passage, and those of a rival as far as they speak against
// the value.
func (p *passage) weigh(tell func(f string, by float64)) {
	p.features(func(f string) { tell(f, 1) })
	if r := p.rival(); r != nil {
		r.features(func(f string) { tell(f, -against) })
	}
}

// rival is the passage as one about the value that is named beside its own, if one is.
func (p *passage) rival() *passage {
	r := &passage{words: slices.Clone(p.words), sents: p.sents, at: -1}
	for k, s := range p.sents {
		for i := s[0]; i < s[1]; i++ {
			switch w := &r.words[i]; w.text {
			case itself:
				w.text = rival
			case rival:
				if w.text = itself; r.at < 0 {
					r.at, r.sent = i, k
				}
			}
		}
	}
	if r.at < 0 {
		return nil
	}
	return r
}

// features tells each feature of a passage once.
func (p *passage) features(tell func(string)) {
	told := map[string]bool{}
	add := func(parts ...string) {
		if f := strings.Join(parts, ":"); !told[f] {
			told[f] = true
			tell(f)
		}
	}
	p.frame(add)
	p.everywhere(add)
	p.clause(add)
	p.shape(add)
	p.versus(add)
}

// versus is where the value stands to the first rival, and what is between them.
func (p *passage) versus(add func(...string)) {
	first, last := p.sents[0][0], p.sents[len(p.sents)-1][1]
	at := slices.IndexFunc(p.words[first:last], func(w word) bool { return w.text == rival })
	if at < 0 {
		return
	}
	at += first
	how, from, to := "before rival", p.at+1, at
	if at < p.at {
		how, from, to = "after rival", at+1, p.at
	}
	s := p.sents[p.sent]
	if at < s[0] || at >= s[1] {
		how += " elsewhere"
	}
	add(how)
	bits, _ := p.classesIn(from, to)
	for _, k := range classesOf(bits) {
		add(how, k)
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
		case w.text == figure || w.text == other || w.text == rival:
			add("k", "value", place)
			fallthrough
		case w.name:
			add("k", "name", place)
		case w.text == "?":
			add("k", "?", where)
		case w.text == `"` || w.text == "“":
			add("k", `"`, place)
		}
		add("w", p.shown(i))
		add("w", p.shown(i), where)
		if strings.HasPrefix(place, "clause") {
			add("w", p.shown(i), place)
		}
		if i+1 < to {
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

// classesIn are the classes of a span, and whether it holds another value.
func (p *passage) classesIn(from, to int) (bits uint32, value bool) {
	for i := from; i < to; i++ {
		w := p.words[i]
		bits |= w.classes
		value = value || w.name || w.text == figure || w.text == other || w.text == rival
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
