package contradiction

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

// class is a set of word classes. A word may have several: "leaves" is a verb
// and a noun.
type class uint64

const (
	cArticle class = 1 << iota
	cDeterminer
	cPossessive
	cPronoun
	cIndefinite
	cBe
	cHave
	cDo
	cModal
	cHedge
	cCondition
	cSubordinate
	cNegation
	cPreposition
	cParticle
	cAdverb
	cDating
	cHistory
	cGreeting
	cWh
	cNumber
	cWeekday
	cMonth
	cSeason
	cAdjective
	cDrop
	cTitle
	cLabel
	cAttribute
	cBase // verb: infinitive and plural
	cS    // verb: third person singular
	cPast
	cPart // participle
	cIng
	cFirst // I, we, my, our
	cSecond
	cThird
	cOpinion
	cFrequency
	cLight
)

const (
	cFinite   = cBe | cHave | cDo | cModal
	cOpensNP  = cArticle | cDeterminer | cPossessive
	cTemporal = cWeekday | cMonth | cSeason
	cVerb     = cBase | cS | cPast | cPart | cIng
)

// trait is what the lexicon says of a verb beyond its forms.
type trait uint16

const (
	vNoun      trait = 1 << iota // n
	vMulti                       // m
	vMilestone                   // e
	vChange                      // c
	vPlace                       // p
	vLight                       // l
	vSay                         // s
	vNone                        // x
	vAdverbial                   // a
)

const traitLetters = "nmecplsxa"

// entry is what the lexicon knows of one word form.
type entry struct {
	word    string
	classes class
	lemma   string // of the verb
	traits  trait
	stem    uint64 // hash of what the word counts as in the name of a slot
	group   int    // of values of which a thing has one at a time; 0 is none
}

// means reports whether an entry is a form of one of these verbs.
func (e *entry) means(lemmas ...string) bool { return slices.Contains(lemmas, e.lemma) }

//go:embed lexicon.txt
var lexiconText string

// lexicon is compiled once, when the first text is read, so that programs that
// never look at a text pay nothing.
var lexicon = sync.OnceValue(func() map[string]*entry { return compileLexicon(lexiconText) })

// longestWord bounds the look-up: no word of the lexicon is longer.
const longestWord = 24

var sections = map[string]class{
	"article": cArticle, "determiner": cDeterminer, "possessive": cPossessive, "pronoun": cPronoun,
	"indefinite": cIndefinite, "be": cBe, "have": cHave, "do": cDo, "modal": cModal, "hedge": cHedge,
	"condition": cCondition, "subordinate": cSubordinate, "negation": cNegation, "preposition": cPreposition,
	"particle": cParticle, "adverb": cAdverb, "dating": cDating, "history": cHistory, "greeting": cGreeting,
	"wh": cWh, "number": cNumber, "weekday": cWeekday, "month": cMonth, "season": cSeason,
	"adjective": cAdjective, "drop": cDrop, "title": cTitle, "label": cLabel, "attribute": cAttribute,
	"first": cFirst, "second": cSecond, "third": cThird, "opinion": cOpinion, "frequency": cFrequency, "light": cLight,
	"syntax": 0,
}

func compileLexicon(source string) map[string]*entry {
	words := make(map[string]*entry, 4096)
	at := func(w string) *entry {
		e := words[w]
		if e == nil {
			e = &entry{word: w}
			words[w] = e
		}
		return e
	}
	section, groups := "", 0
	var synonyms [][]string
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			continue
		}
		if section == "verb" {
			forms, flags, _ := strings.Cut(line, " ")
			addVerb(at, strings.Split(forms, "/"), flags)
			continue
		}
		if section == "closed" {
			groups++
			for w := range strings.FieldsSeq(line) {
				at(w).group = groups
			}
			continue
		}
		if section == "synonym" {
			synonyms = append(synonyms, strings.Fields(line))
			continue
		}
		for w := range strings.FieldsSeq(line) {
			at(w).classes |= sections[section]
		}
	}
	for w, e := range words {
		e.stem = text.Hash(stemOf(words, w))
		if verb := agentOf(words, w); e.lemma == "" && verb != "" {
			e.stem = text.Hash(text.Stem(verb)) // "owner" names the slot of "owns"
		}
	}
	for _, line := range synonyms {
		for _, w := range line {
			at(w).stem = text.Hash(stemOf(words, line[0]))
		}
	}
	// Forms of a synonym's verb and plurals of its noun.
	for _, line := range synonyms {
		for _, e := range words {
			if e.lemma != "" && e.lemma == line[0] {
				e.stem = words[line[0]].stem
			}
		}
		for _, w := range line {
			for _, form := range []string{w + "s", w + "es"} {
				if e := words[form]; e != nil {
					e.stem = at(w).stem
				}
			}
		}
	}
	for w, e := range words {
		if base := words[e.lemma]; e.lemma != "" && base != nil && e.lemma != w && base.stem != 0 {
			e.stem = base.stem
		}
	}
	return words
}

// addVerb enters all forms of a verb: its lemma, and past and participle where
// they are not regular.
func addVerb(at func(string) *entry, forms []string, flags string) {
	lemma := forms[0]
	var tr trait
	for i, letter := range traitLetters {
		if strings.ContainsRune(flags, letter) {
			tr |= 1 << i
		}
	}
	enter := func(form string, c class) {
		e := at(form)
		if e.lemma != "" && e.lemma != lemma {
			e.classes |= c // "found": the first verb that claims a form keeps it
			return
		}
		e.classes |= c
		e.lemma = lemma
		e.traits |= tr
	}
	enter(lemma, cBase)
	enter(thirdPerson(lemma), cS)
	for _, stem := range doubled(lemma) {
		if len(forms) == 1 {
			enter(withEd(stem), cPast|cPart)
		}
		enter(withIng(stem), cIng)
	}
	if len(forms) > 1 {
		enter(forms[1], cPast)
		enter(forms[len(forms)-1], cPart)
	}
}

// agentOf returns the verb that a noun for its agent comes from, or "".
func agentOf(words map[string]*entry, w string) string {
	n := len(w)
	if n < 5 || w[n-1] != 'r' || w[n-2] != 'e' && w[n-2] != 'o' {
		return ""
	}
	for _, v := range [...]string{w[:n-2], w[:n-1], w[:n-2] + "e", w[:n-3]} {
		if e := words[v]; e != nil && e.classes&cBase != 0 && (len(v) != n-3 || w[n-3] == w[n-4]) {
			return v
		}
	}
	return ""
}

func thirdPerson(v string) string {
	switch {
	case v == "have" || v == "do" || v == "be" || v == "go":
		return map[string]string{"have": "has", "do": "does", "be": "is", "go": "goes"}[v]
	case strings.HasSuffix(v, "s"), strings.HasSuffix(v, "x"), strings.HasSuffix(v, "ch"),
		strings.HasSuffix(v, "sh"), strings.HasSuffix(v, "z"):
		return v + "es"
	case endsConsonantY(v):
		return v[:len(v)-1] + "ies"
	}
	return v + "s"
}

func withEd(v string) string {
	switch {
	case strings.HasSuffix(v, "e"):
		return v + "d"
	case endsConsonantY(v):
		return v[:len(v)-1] + "ied"
	}
	return v + "ed"
}

func withIng(v string) string {
	switch {
	case strings.HasSuffix(v, "ie"):
		return v[:len(v)-2] + "ying"
	case strings.HasSuffix(v, "e") && !strings.HasSuffix(v, "ee") && v != "be":
		return v[:len(v)-1] + "ing"
	}
	return v + "ing"
}

func endsConsonantY(v string) bool {
	return len(v) > 1 && v[len(v)-1] == 'y' && !vowel(v[len(v)-2])
}

// doubled returns the verb and, where its last consonant may be doubled before
// an ending ("stop", "prefer"), the doubled form too. Which of the two is
// English does not matter to a reader of texts.
func doubled(v string) []string {
	n := len(v)
	if n < 3 || vowel(v[n-1]) || strings.IndexByte("wxy", v[n-1]) >= 0 || !vowel(v[n-2]) || vowel(v[n-3]) {
		return []string{v}
	}
	return []string{v, v + v[n-1:]}
}

func vowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
