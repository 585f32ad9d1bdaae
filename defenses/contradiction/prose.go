package contradiction

import "strings"

// prose reads the sentences of src[from:to].
func (x *extractor) prose(from, to int) {
	at := len(x.tokens)
	x.tokenize(from, to)
	end := len(x.tokens)
	start := at
	for i := at; i < end; i++ {
		switch x.tokens[i].kind {
		case stop:
			x.sentence(start, i)
			start = i + 1
		case question:
			start = i + 1
		case semicolon:
			if !x.endsAsQuestion(i, end) {
				x.sentence(start, i)
			}
			start = i + 1
		case colon:
			if i > start && x.findVerb(i+1, min(end, i+24)) > i+1 {
				x.sentence(start, i)
				start = i + 1
			}
		}
	}
	x.sentence(start, end)
}

func (x *extractor) endsAsQuestion(i, end int) bool {
	for k := i; k < end && k < i+maxClause; k++ {
		switch x.tokens[k].kind {
		case question:
			return true
		case stop:
			return false
		}
	}
	return false
}

// wordIs reports whether token i is one of the given words, whatever its case.
func (x *extractor) wordIs(i, end int, list ...string) bool {
	if i < 0 || i >= end {
		return false
	}
	x.steps++
	e := x.tokens[i].entry
	if e == nil {
		return false // all words that rules name are in the lexicon
	}
	for _, w := range list {
		if e.word == w {
			return true
		}
	}
	return false
}

// within reports whether one of the words stands in tokens[a:b].
func (x *extractor) within(a, b int, list ...string) bool {
	for i := a; i < b; i++ {
		if x.wordIs(i, b, list...) {
			return true
		}
	}
	return false
}

// sentence reads tokens[a:b], which end before the final mark.
func (x *extractor) sentence(a, b int) {
	if b-a > 4*maxClause {
		b = a + 4*maxClause
	}
	b = x.dropBrackets(a, b)
	x.contractions(a, b)
	a = x.opener(a, b)
	if b-a < 2 || x.assertsNothing(a, b) {
		return
	}
	var qualifier phrase
	a, qualifier = x.leading(a, b)
	if b-a < 2 {
		return
	}
	t := &x.tokens[a]
	if t.is(cWh|cModal|cDo) && t.kind == word && !t.is(cAttribute) {
		return
	}
	if x.imperative(a, b) {
		return
	}
	x.clauses(a, b, qualifier)
}

// dropBrackets takes tokens in round or square brackets out of the sentence by
// moving the others together, and returns the new end.
func (x *extractor) dropBrackets(a, b int) int {
	depth, w := 0, a
	for i := a; i < b; i++ {
		switch k := x.tokens[i].kind; {
		case k == open:
			depth++
			continue
		case k == closing:
			depth = max(0, depth-1)
			continue
		case k == mark, depth > 0:
			continue
		}
		if w != i {
			x.tokens[w] = x.tokens[i]
		}
		w++
	}
	return w
}

// opener goes over what may stand before an assertion without changing it:
// greetings with a comma, "please note that", "for your information", "the lab
// manager said that" is not among them, for its subject must be looked at.
func (x *extractor) opener(a, b int) int {
	for range 6 {
		if a >= b {
			return b
		}
		t := &x.tokens[a]
		switch {
		case t.kind == comma || t.kind == dash || t.kind == colon ||
			t.kind == quoted && a+1 < b && x.tokens[a+1].kind == colon:
			a++
		case t.is(cGreeting) && t.kind == word:
			c := x.nextComma(a, min(b, a+6))
			if c < 0 {
				return b
			}
			a = c + 1
		case x.wordIs(a, b, "and", "but", "so", "or", "also", "well", "anyway", "besides", "moreover", "furthermore",
			"additionally", "however", "fyi", "actually", "correction", "update"):
			a++
		case t.is(cLabel) && a+1 < b && (x.tokens[a+1].kind == colon || x.tokens[a+1].kind == comma):
			a += 2
		case x.wordIs(a, b, "please", "note", "remember", "remind", "keep", "recall", "know", "memorize", "memorise", "save",
			"store", "be", "take", "make", "bear") && !x.wordIs(a+1, b, "that"):
			// "Keep in mind that": look a few words ahead.
			k := -1
			for i := a + 1; i < min(b, a+7); i++ {
				if x.wordIs(i, b, "that") {
					k = i
					break
				}
				if x.tokens[i].is(cFinite | cArticle) {
					break
				}
			}
			if k < 0 {
				return a
			}
			a = k + 1
		case x.wordIs(a, b, "note", "remember", "recall", "know", "memorize", "memorise", "save", "store"):
			a += 2
		case x.wordIs(a, b, "as") && x.wordIs(a+1, b, "far", "if", "soon", "long"):
			return b
		case x.wordIs(a, b, "until", "till"): // "Until May, the pool opened at nine" is over
			for i := a; i < b; i++ {
				if t := &x.tokens[i]; t.is(cPast) && !t.is(cBase|cAdjective) && t.kind == word && !x.tokens[i-1].is(cBe|cHave) ||
					x.wordIs(i, b, "was", "were") {
					return b
				}
			}
			return a
		case x.wordIs(a, b, "as") && !x.wordIs(a+1, b, "of"):
			c := x.nextComma(a, min(b, a+8)) // "as agreed,"
			if c < 0 {
				return a
			}
			a = c + 1
		case x.wordIs(a, b, "according"):
			c := x.nextComma(a, min(b, a+10))
			if c < 0 {
				return b
			}
			for i := a; i < c; i++ {
				if x.tokens[i].is(cIndefinite) {
					return b
				}
			}
			a = c + 1
		case x.wordIs(a, b, "by", "for") && (x.wordIs(a+1, b, "the") && x.wordIs(a+2, b, "way", "record") ||
			x.wordIs(a+1, b, "your") && x.wordIs(a+2, b, "information", "records")):
			a += 3
		default:
			return a
		}
	}
	return a
}

// contractions reads "Bea's in room 4" as "Bea is in room 4".
func (x *extractor) contractions(a, b int) {
	for i := a + 1; i+1 < b; i++ {
		t, n := &x.tokens[i], &x.tokens[i+1]
		if t.kind == possessive && len(t.text) > 1 && n.kind == word && !n.upper &&
			(n.is(cPreposition|cArticle|cNegation) || x.wordIs(i+1, b, "now", "called")) {
			t.kind, t.entry = word, x.words["is"]
			t.classes = t.entry.classes
			return
		}
	}
}

func (x *extractor) nextComma(a, b int) int { return x.next(a, b, comma, comma) }

// nextBreak is like nextComma, for a comma or a dash.
func (x *extractor) nextBreak(a, b int) int { return x.next(a, b, comma, dash) }

// next is where the first token of one of two kinds stands in tokens[a:b], or -1.
func (x *extractor) next(a, b int, k, or kind) int {
	for i := a; i < b; i++ {
		if t := x.tokens[i].kind; t == k || t == or {
			return i
		}
	}
	return -1
}

// assertsNothing reports whether the sentence as a whole is a condition or
// begins with a hedge.
func (x *extractor) assertsNothing(a, b int) bool {
	for i := a; i < b; i++ {
		t := &x.tokens[i]
		if t.is(cCondition) && t.kind == word && !(t.is(cWh) && i > a && x.tokens[i-1].kind == comma) {
			return true
		}
		if i < a+3 && t.is(cHedge) && t.kind == word && !t.is(cMonth) {
			return true
		}
		if x.wordIs(i, b, "please") && i > a {
			return true
		}
	}
	return x.wordIs(a, b, "let", "lets", "there", "not", "no", "nobody", "none")
}

// leading reads what may stand before the subject: adverbs, a date, which is
// dropped, or a phrase that narrows the assertion ("In winter,").
func (x *extractor) leading(a, b int) (int, phrase) {
	var q phrase
	for range 4 {
		if a >= b {
			return b, q
		}
		t := &x.tokens[a]
		switch {
		case t.kind == comma:
			a++
			continue
		case t.is(cAdverb|cDating) && !t.is(cPreposition|cVerb) && t.kind == word && !x.wordIs(a, b, "both", "only", "once"):
			a++
			continue
		case t.is(cPreposition) && t.kind == word || x.wordIs(a, b, "as", "starting", "beginning", "effective", "once",
			"while"):
			c := x.nextComma(a, min(b, a+10))
			if k := x.leadingEnd(a, b); k > 0 && (c < 0 || k < c) {
				if !x.dating(a, k) {
					q = x.join(q, x.content(a, k))
				}
				a = k
				continue
			}
			if c < 0 {
				return a, q
			}
			if x.findVerb(a+1, c) >= 0 {
				return b, q // a clause of its own: "Once the paint is dry,"
			}
			if !x.dating(a, c) {
				q = x.join(q, x.content(a, c))
			}
			a = c + 1
			continue
		}
		break
	}
	return a, q
}

// leadingEnd returns where a phrase before the subject ends that no comma cuts
// off, or 0: "On Saturdays the yard closes at noon."
func (x *extractor) leadingEnd(a, b int) int {
	first := a + 2
	if x.wordIs(a, b, "as") && x.wordIs(a+1, b, "of") {
		first++
	}
	for k := first; k < min(b, first+3); k++ {
		t, prev := &x.tokens[k], &x.tokens[k-1]
		if t.kind == comma || prev.kind == word && !prev.upper && !prev.is(cTemporal) && !measures().Times[prev.text] {
			return 0
		}
		if t.kind == word && (t.is(cOpensNP|cPronoun) ||
			t.upper && (prev.kind == number || prev.is(cTemporal)) && !t.is(cMonth|cWeekday)) && x.findVerb(k, b) > 0 {
			return k
		}
	}
	return 0
}

// dating reports whether a phrase with a preposition says since when the
// statement holds: "from 1 March", "since Monday", "as of next week".
func (x *extractor) dating(a, b int) bool {
	switch {
	case x.wordIs(a, b, "as", "starting", "beginning", "effective", "since"):
		return true
	case x.wordIs(a, b, "from", "after", "by", "until", "till", "before"):
		return a+1 < b && (x.temporal(a+1, b) || x.wordIs(a+1, b, "now", "today", "then", "further"))
	case x.wordIs(a, b, "in", "on", "at"):
		return a+1 < b && (x.temporal(a+1, b) || x.hour(a, b)) && !x.recurring(a, b)
	}
	return false
}

// content returns the tokens of a phrase without articles.
func (x *extractor) content(a, b int) phrase {
	from := int32(len(x.refs))
	for i := a; i < b; i++ {
		if t := &x.tokens[i]; t.kind == comma || t.is(cPossessive) || t.is(cAdverb) && !t.is(cPreposition) && t.kind == word {
			continue
		}
		x.refs = append(x.refs, int32(i))
	}
	return phrase{from, int32(len(x.refs))}
}

// temporal reports whether tokens[a:b] name a time: a month, a weekday, a year,
// a clock time, "next week".
func (x *extractor) temporal(a, b int) bool {
	if a >= b {
		return false
	}
	for i := a; i < min(b, a+4); i++ {
		t := &x.tokens[i]
		switch {
		case t.is(cWeekday|cSeason|cMonth) && (t.upper || t.is(cSeason)):
			return true
		case t.kind == word && measures().Times[t.text]:
			return true
		case t.kind == number && ordinal(t.text):
			return true
		case t.kind == number && clockOrYear(t.text) && (len(t.text) != 4 || i == a || x.tokens[i-1].is(cMonth) ||
			t.text[3] > '9'):
			return true
		case x.wordIs(i, b, "am", "pm", "utc", "cet", "o'clock") && i > a:
			return true
		}
	}
	return false
}

// hour reports whether "at" and a small number are a time of day.
func (x *extractor) hour(a, b int) bool {
	if b-a != 2 || !x.wordIs(a, b, "at") {
		return false
	}
	t := &x.tokens[a+1]
	return t.kind == number && (t.is(cNumber) || len(t.text) <= 2 && digits(t.text))
}

func clockOrYear(s string) bool {
	if len(s) == 4 && (s[:2] == "19" || s[:2] == "20") && digits(s) {
		return true
	}
	k := strings.IndexByte(s, ':')
	if k > 0 && k <= 2 && len(s) > k+2 && digits(s[:k]) && digits(s[k+1:k+3]) {
		return true
	}
	if n := len(s); n > 2 && n <= 4 && digits(s[:n-2]) {
		return strings.EqualFold(s[n-2:], "am") || strings.EqualFold(s[n-2:], "pm")
	}
	// 2026-05-01, 3/5/2026
	return len(s) >= 8 && len(s) <= 10 && (strings.Count(s, "-") == 2 || strings.Count(s, "/") == 2) && s[0] >= '0' &&
		s[0] <= '9'
}

// ordinal reports whether s is a day of a month: "10th".
func ordinal(s string) bool {
	n := len(s)
	return n >= 3 && n <= 4 && digits(s[:n-2]) && (s[n-2:] == "th" || s[n-2:] == "st" || s[n-2:] == "nd" ||
		s[n-2:] == "rd")
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// recurring reports whether a phrase with a preposition narrows a statement to
// times that come again: "on Saturdays", "in winter", "at weekends", "during
// the holidays".
func (x *extractor) recurring(a, b int) bool {
	if x.wordIs(a, b, "during") || b-a == 2 && x.wordIs(a, b, "in") && x.tokens[a+1].is(cMonth) && x.tokens[a+1].upper {
		return true
	}
	for i := a + 1; i < b; i++ {
		t := &x.tokens[i]
		if t.is(cSeason) || t.is(cWeekday) && strings.HasSuffix(t.text, "s") ||
			x.wordIs(i, b, "night", "nights", "mornings", "evenings", "afternoons", "morning", "evening", "afternoon",
				"weekends", "weekdays") {
			return true
		}
	}
	return false
}

// imperative reports whether the sentence begins with a command.
func (x *extractor) imperative(a, b int) bool {
	t := &x.tokens[a]
	if x.wordIs(a, b, "don't", "never", "always") || x.wordIs(a, b, "do") && a+1 < b && x.tokens[a+1].is(cNegation) {
		return true
	}
	if c := x.nextComma(a, min(b, a+4)); c > a && c+1 < b && t.upper { // "Bea, call the office"
		n := &x.tokens[c+1]
		if n.is(cBase) && n.kind == word && !n.upper && x.findVerb(a, c) < 0 && !n.is(cPreposition) &&
			(n.entry.traits&vNoun == 0 || c+2 < b && x.tokens[c+2].is(cOpensNP|cPronoun)) {
			return true
		}
	}
	if !t.is(cBase) || t.kind != word || t.is(cS) {
		return false
	}
	if a+1 < b {
		n := &x.tokens[a+1]
		if n.kind == word && n.is(cOpensNP|cPronoun) {
			return true
		}
	}
	return t.entry.traits&vNoun == 0 || x.findVerb(a, b) < 0
}

// findVerb returns where the finite verb of the clause tokens[a:b] stands, or -1.
// A subject must stand before it. Verbs of restrictive relative clauses do not
// count.
func (x *extractor) findVerb(a, b int) int {
	relative := 0
	b = min(b, a+maxClause)
	for i := a; i < b; i++ {
		t := &x.tokens[i]
		switch t.kind {
		case comma, dash, semicolon, colon, stop, question:
			return -1
		case quoted, number, possessive:
			continue
		}
		if i > a && (t.is(cWh) || x.wordIs(i, b, "that")) && !x.tokens[i-1].is(cPreposition|cFinite) {
			if x.tokens[i-1].kind == word || x.tokens[i-1].kind == number {
				relative++
				continue
			}
		}
		if x.finite(i, a, b) {
			if relative > 0 {
				relative--
				continue
			}
			return i
		}
	}
	return -1
}

// finite reports whether token i is a finite verb of the clause that begins at a
// and ends at b.
func (x *extractor) finite(i, a, b int) bool {
	t := &x.tokens[i]
	if i == a || t.kind != word || t.classes&(cFinite|cS|cPast|cBase|cHedge) == 0 {
		return false
	}
	prev := &x.tokens[i-1]
	if prev.kind == possessive && !t.is(cBe) || prev.is(cOpensNP) && !prev.is(cPronoun) &&
		!x.wordIs(i-1, b, "this", "that", "all", "both") {
		return false
	}
	if t.is(cFinite) {
		return true
	}
	if prev.is(cPreposition) && !prev.is(cParticle) && prev.kind == word {
		return false
	}
	if t.is(cHedge) && !t.is(cMonth) && t.entry.lemma == "" {
		return t.is(cModal) || x.wordIs(i, b, "might", "may", "could", "would", "seems", "seem", "appears", "seemed", "'d")
	}
	if t.upper && prev.upper && t.is(cBase) {
		return false
	}
	noun := x.nounVerb(i)
	switch {
	case t.is(cS):
		if !noun {
			return !x.strongLater(i, b, 2) && !(i+1 < b && x.tokens[i+1].is(cBase) && !x.nounVerb(i+1) &&
				!x.tokens[i+1].is(cAdjective|cPreposition|cPart|cAdverb))
		}
		if prev.is(cAdverb) && !prev.is(cPreposition|cVerb) && i-2 >= a && i+1 < b {
			return true // "always books aisle seats"
		}
		if i+2 < b && x.tokens[i+1].is(cBase) && !x.tokens[i+
			1].is(cPreposition|cParticle|cAdjective|cPart|cAdverb|cNumber|cMonth) && x.evidence(i+2) {
			return false // "pull requests need one approval"
		}
		if i+1 < b && x.tokens[i+1].is(cBase) && !x.nounVerb(i+1) &&
			!x.tokens[i+1].is(cAdjective|cPreposition|cPart|cAdverb) {
			return false
		}
		if x.tokens[min(i+1, b-1)].is(cPreposition) && x.baseLater(i, b) {
			return false // "purchase orders above 10,000 kroner need"
		}
		return i+1 < b && !x.strongLater(i, b, maxClause) && (x.evidence(i+1) || x.singularSubject(a, i))
	case t.is(cPast):
		return i+1 < b && !prev.is(cBe|cHave) && !x.strongLater(i, b, maxClause) &&
			(x.evidence(i+1) || !t.is(cPart) || x.tokens[i+1].kind == word)
	case t.is(cBase):
		if t.is(cPreposition | cAdverb | cNumber | cMonth | cOpinion) {
			return false
		}
		p := i - 1
		for p > a && x.tokens[p].is(cAdverb) && !x.tokens[p].is(cVerb) {
			p--
		}
		if x.tokens[p].is(cPronoun) {
			return true
		}
		if !x.plural(p) && !x.coordinatedNames(a, i) && !x.pluralHead(a, i) {
			return false
		}
		return i+1 < b && !x.strongLater(i, b, maxClause) &&
			(x.evidence(i+1) || !noun || x.tokens[i+1].is(cAdjective|cOpinion))
	}
	return false
}

// guessVerb looks for a verb that the lexicon does not know, by its ending and
// its neighbours: "The rooms overlook the lake." It gives the token an entry.
func (x *extractor) guessVerb(a, b int) int {
	for i := a + 1; i+1 < b && i < a+8; i++ {
		t, prev, next := &x.tokens[i], &x.tokens[i-1], &x.tokens[i+1]
		if t.kind == comma || t.kind == dash {
			return -1
		}
		n := len(t.text)
		if t.kind != word || t.entry != nil || t.upper || n < 4 || prev.kind != word && !prev.upper && prev.kind != number ||
			prev.is(cOpensNP|cPreposition|cNumber) ||
			strings.HasSuffix(t.text, "ly") {
			continue
		}
		opens := next.is(cArticle|cPossessive|cDeterminer) || next.kind == number
		third := t.text[n-1] == 's' && t.text[n-2] != 's' && t.text[n-2] != 'u' && t.text[n-2] != 'i'
		switch {
		case third && !x.plural(i-1) && (opens || next.upper || next.is(cPreposition)) &&
			(x.tokens[a].is(cOpensNP|cPronoun) || x.tokens[a].upper):
			t.entry = &entry{word: t.text, classes: cS, lemma: lemmaOfS(t.text)}
		case !third && opens && !strings.HasSuffix(t.text, "ed") && !strings.HasSuffix(t.text, "ing") &&
			(x.plural(i-1) || prev.is(cPronoun)):
			t.entry = &entry{word: t.text, classes: cBase, lemma: t.text}
		default:
			continue
		}
		t.classes = t.entry.classes
		return i
	}
	return -1
}

func lemmaOfS(w string) string {
	n := len(w)
	switch {
	case n > 4 && w[n-3:] == "ies":
		return w[:n-3] + "y"
	case n > 4 && (w[n-4:] == "ches" || w[n-4:] == "shes" || w[n-4:] == "sses" || w[n-3:] == "xes"):
		return w[:n-2]
	}
	return w[:n-1]
}

// coordinatedNames reports whether a subject is two things: "Bea and Kwame".
func (x *extractor) coordinatedNames(a, i int) bool {
	return x.within(a+1, i-1, "and")
}

// strongLater reports whether an unmistakable finite verb follows within n
// tokens of the same clause, so that token i is none.
func (x *extractor) strongLater(i, b, n int) bool {
	for k := i + 1; k < b && k <= i+n; k++ {
		t := &x.tokens[k]
		if t.kind == comma || t.kind == dash || x.wordIs(k, b, "and", "but", "that", "which", "who", "where") {
			return false
		}
		if t.kind != word {
			continue
		}
		if t.is(cFinite) || t.is(cS) && !x.nounVerb(k) && !x.tokens[k-1].is(cOpensNP) {
			return true
		}
	}
	return false
}

// baseLater reports whether a plural verb follows, which token i would be the
// subject of.
func (x *extractor) baseLater(i, b int) bool {
	for k := i + 3; k+1 < b && k < i+8; k++ {
		t, prev := &x.tokens[k], &x.tokens[k-1]
		if t.kind == comma || x.wordIs(k, b, "and", "but", "that", "which", "who", "to") {
			return false
		}
		if t.kind == word && t.is(cBase) && !t.is(cS|cPreposition|cParticle|cAdverb|cAdjective|cNumber|cMonth|cAttribute|cOpinion) && !prev.is(cOpensNP|cPreposition) && prev.kind != possessive && x.evidence(k+1) {
			return true
		}
	}
	return false
}

// evidence reports whether token i looks like the beginning of what follows a
// verb.
func (x *extractor) evidence(i int) bool {
	t := &x.tokens[i]
	return t.kind == number || t.kind == quoted || t.upper || x.wordIs(i, i+1, "next") ||
		t.is(cOpensNP|cPronoun|cNumber|cPreposition|cAdverb|cTemporal|cNegation|cIndefinite|cParticle) ||
		strings.HasSuffix(t.text, "ly")
}

// plural reports whether a noun that stands last in a subject is plural.
func (x *extractor) plural(i int) bool {
	t := &x.tokens[i]
	w := t.text
	n := len(w)
	if n > 2 && w[n-1] == 's' && w[n-2] != 's' && w[n-2] != 'u' && w[n-2] != 'i' &&
		(t.kind == word || t.kind == number && (w[n-2] < '0' || w[n-2] > '9' || strings.IndexByte(w, '-') > 0)) &&
		!t.is(cFinite) {
		return true
	}
	return x.wordIs(i, i+1, "people", "children", "staff", "police", "men", "women")
}

// pluralHead reports whether a subject with a phrase behind its noun is plural:
// "deploys to production".
func (x *extractor) pluralHead(a, i int) bool {
	for k := a + 1; k < i-1; k++ {
		if t := &x.tokens[k]; t.is(cPreposition) && t.kind == word {
			return x.plural(k - 1)
		}
	}
	return false
}

// singularSubject reports whether tokens[a:i] look like a complete subject in
// the singular, so that a word that may be a noun or a verb is a verb.
func (x *extractor) singularSubject(a, i int) bool {
	t := &x.tokens[a]
	return (t.is(cOpensNP) || t.upper) && !x.plural(i-1) && i-a <= 4 && (i-a >= 2 || !t.is(cOpensNP))
}

// subject is the subject of a clause, taken apart where it names an attribute of
// something: "the harbour bar's owner", "the owner of the harbour bar".
type subject struct {
	whole, owner, attribute phrase
	ok                      bool
	negated                 bool // "never" before the verb
	first, second           bool // "I", "you"
}

// clauses cuts a sentence into clauses and reads each.
func (x *extractor) clauses(a, b int, qualifier phrase) {
	var s subject
	// "Ngozi, our bookkeeper, works from Enugu."
	if c1, c2 := x.insertion(a, b); c1 > 0 {
		s = x.subject(a, c1)
		x.insert(s, c1+1, c2)
		x.coordinated(s, c2+1, b, qualifier)
	} else {
		v := x.findVerb(a, b)
		if v < 0 {
			if v = x.guessVerb(a, b); v < 0 {
				return
			}
		}
		if inner := x.reported(a, v, b); inner != 0 {
			if inner > 0 {
				x.clauses(inner, b, qualifier)
			}
			return
		}
		if x.cleft(a, v, b) {
			return
		}
		s = x.subject(a, v)
		x.coordinated(s, v, b, qualifier)
	}
}

// cleft reads "Gate 14 is where the Oslo flight boards" and "it is Ana who signs
// the cheques".
func (x *extractor) cleft(a, v, b int) bool {
	if !x.wordIs(v, b, "is", "'s", "are") {
		return false
	}
	if x.wordIs(v+1, b, "where", "when") {
		w := x.findVerb(v+2, b)
		if w < 0 {
			for k := v + 4; k <= b-1; k++ { // an ordinary verb may end the sentence
				if x.tokens[k].is(cS | cBase) {
					w = k
				}
			}
		}
		if w < 0 {
			return true
		}
		s := x.subject(v+2, w)
		place := x.subject(a, v)
		if !s.ok || !place.ok || x.tokens[w].entry == nil {
			return true
		}
		x.emit(fact{subject: s.whole, predicate: x.join(x.lemma(w), x.content(w+1, b)), object: place.whole,
			verb: x.tokens[w].entry})
		return true
	}
	if v == a+1 && x.wordIs(a, b, "it") {
		for k := v + 2; k < min(b, v+7); k++ {
			if x.wordIs(k, b, "who", "that", "which") && k+1 < b && x.tokens[k+1].is(cFinite|cS|cPast) && x.tokens[k-1].upper {
				x.coordinated(x.subject(v+1, k), k+1, b, phrase{})
				return true
			}
		}
	}
	return false
}

// coordinated reads the predicate whose verb stands at v, and then further
// predicates of the same subject and further clauses of the sentence.
func (x *extractor) coordinated(s subject, v, b int, qualifier phrase) {
	passive := false
	for range 12 {
		end, next, kind := x.boundary(v, b)
		before := len(x.facts)
		if passive {
			g := group{main: v, bareModal: -1, passive: true}
			g.next = x.skipAdverbs(v+1, end, &g)
			if g.next < end {
				x.predicateOf(s, g, end, qualifier)
			}
		} else {
			x.predicate(s, v, end, qualifier)
		}
		passive = false
		if next < 0 {
			return
		}
		switch kind {
		case sameVerb:
			g := x.verbGroup(v, b)
			g.next = next
			end, after, k := x.boundary(next, b)
			x.predicateOf(s, g, end, qualifier)
			if k != sameSubject || after < 0 {
				return
			}
			v = after
		case sameSubject, sameAuxiliary:
			v, passive = next, kind == sameAuxiliary
		case newClause:
			w := x.findVerb(next, b)
			if w < 0 {
				return
			}
			s = x.subject(next, w)
			v = w
			qualifier = phrase{}
		case relative, relativeWhose:
			if len(x.facts) == before {
				return
			}
			o := x.facts[len(x.facts)-1].object
			if kind == relativeWhose {
				w := x.findVerb(next, b)
				if w < 0 {
					return
				}
				s = subject{owner: o, attribute: x.trimmed(next, w), ok: true}
				s.whole = x.join(s.owner, s.attribute)
				v = w
			} else {
				s = subject{whole: o, attribute: o, ok: true}
				v = next
			}
			qualifier = phrase{}
		}
	}
}

type boundaryKind uint8

const (
	none boundaryKind = iota
	sameSubject
	sameAuxiliary // "is stored on nas4 and kept for 30 days"
	sameVerb      // "starts at 18:30 on Tuesdays and at 10:00 on Saturdays"
	newClause
	relative
	relativeWhose
)

// boundary returns where the clause whose verb stands at v ends, and where and
// how the next one begins, or -1.
func (x *extractor) boundary(v, b int) (end, next int, kind boundaryKind) {
	for i := v + 1; i < b; i++ {
		t := &x.tokens[i]
		j := i
		switch {
		case t.kind == comma || t.kind == dash:
			j++
			for j < b && x.wordIs(j, b, "and", "but", "while", "whereas", "so", "yet") {
				j++
			}
		case t.kind == word && x.wordIs(i, b, "and", "but", "while", "whereas"):
			j++
		default:
			continue
		}
		for j < b && x.tokens[j].is(cAdverb) && !x.tokens[j].is(cPreposition) && x.tokens[j].kind == word && j < i+5 {
			j++
		}
		if j >= b {
			return i, -1, none
		}
		n := &x.tokens[j]
		if n.kind != word && n.kind != number && n.kind != quoted {
			continue
		}
		if t.kind == comma && n.kind == word {
			switch {
			case x.wordIs(j, b, "which", "who") && j+1 < b:
				return i, j + 1, relative
			case x.wordIs(j, b, "whose"):
				return i, j + 1, relativeWhose
			case x.wordIs(j, b, "because", "although", "though", "where", "if", "unless", "so"):
				return i, -1, none
			}
		}
		// A predicate of the same subject.
		if n.kind == word && (n.is(cFinite) || n.is(cS|cPast|cPart)) && !(j > i+1 && x.tokens[j-1].is(cOpensNP)) {
			if n.is(cFinite) || !x.nounVerb(j) || j+1 < b && x.evidence(j+1) ||
				n.is(cS) && j+1 < b && x.tokens[j+1].kind == word && x.tokens[v].is(cS|cBe) && !x.strongLater(j, b, maxClause) &&
					!x.wordIs(j+1, b, "and", "or") {
				if n.is(cPart) && !n.is(cS) && (x.tokens[v].is(cBe|cModal) || x.tokens[v].is(cPart) && !x.tokens[v].is(cS)) {
					if j+1 < b && x.tokens[j+1].is(cPreposition|cFrequency|cDeterminer) {
						return i, j, sameAuxiliary
					}
					continue
				}
				return i, j, sameSubject
			}
		}
		// Another phrase for the same verb: "at 18:30 on Tuesdays and at 10:00 on …".
		if n.kind == word && n.is(cPreposition) && t.kind == word && j+1 < b && v+1 < i && x.tokens[v+1].is(cPreposition) &&
			x.tokens[j+1].kind == number && x.wordIs(j, b, x.tokens[v+1].text) {
			return i, j, sameVerb
		}
		// A clause of its own.
		limit := min(b, j+14)
		for k := j; k < limit; k++ {
			if kk := x.tokens[k].kind; kk == comma || kk == dash {
				limit = k
			}
		}
		if w := x.findVerb(j, limit); w > j {
			return i, j, newClause
		}
	}
	return b, -1, none
}

// insertion finds a stretch between two commas that stands between the subject
// and its verb.
func (x *extractor) insertion(a, b int) (int, int) {
	c1 := x.nextBreak(a+1, min(b, a+12))
	if c1 < 0 || x.findVerb(a, c1) >= 0 {
		return 0, 0
	}
	c2 := x.nextBreak(c1+1, min(b, c1+24))
	if c2 < 0 || x.tokens[c2].kind != x.tokens[c1].kind || c2+1 >= b {
		return 0, 0
	}
	n := c2 + 1
	for n < b && x.tokens[n].is(cAdverb) && x.tokens[n].kind == word && !x.tokens[n].is(cVerb) {
		n++
	}
	if n >= b {
		return 0, 0
	}
	t := &x.tokens[n]
	if t.kind != word {
		return 0, 0
	}
	if t.is(cFinite) || t.is(cS|cPast) && (!x.nounVerb(n) || n+1 < b && x.evidence(n+1)) ||
		t.is(cBase) && x.plural(c1-1) && n+1 < b {
		return c1, c2
	}
	return 0, 0
}

// insert reads what stands between commas after a subject: a relative clause or
// an apposition.
func (x *extractor) insert(s subject, a, b int) {
	if !s.ok || a >= b {
		return
	}
	t := &x.tokens[a]
	switch {
	case x.wordIs(a, b, "which", "who"):
		if a+1 < b {
			x.coordinated(s, a+1, b, phrase{})
		}
	case x.wordIs(a, b, "whose"):
		if w := x.findVerb(a+1, b); w > 0 {
			o := subject{owner: s.whole, attribute: x.trimmed(a+1, w), ok: true}
			o.whole = x.join(o.owner, o.attribute)
			x.coordinated(o, w, b, phrase{})
		}
	case t.is(cHistory|cPreposition|cCondition|cWh|cHedge|cSubordinate) && t.kind == word,
		x.wordIs(a, b, "as", "known", "also"):
	case t.is(cOpensNP), t.is(cAttribute) && !t.upper, x.names(a, b) && !x.tokens[x.refs[s.whole.from]].upper,
		x.names(a, b) && !s.owner.empty(), b-a <= 5 && x.genitive(a, b):
		o := x.object(a, b)
		x.emit(fact{subject: s.whole, predicate: x.refsOf(tokIs), object: o})
	}
}

// names reports whether all of tokens[a:b] are names.
func (x *extractor) names(a, b int) bool {
	return a < b && b-a <= 3 && !x.any(a, b, func(t *token) bool { return !t.upper || t.kind != word })
}

// genitive reports whether tokens[a:b] are "Marek's wife".
func (x *extractor) genitive(a, b int) bool {
	return x.any(a+1, b-1, func(t *token) bool { return t.kind == possessive })
}

// reported handles "the lab manager said that …": it returns where the reported
// clause begins, 0 if nothing is reported, -1 if what is reported asserts
// nothing.
func (x *extractor) reported(a, v, b int) int {
	t := &x.tokens[v]
	j := v + 1
	if t.is(cHave) && j < b && x.tokens[j].is(cPart) {
		t = &x.tokens[j]
		j++
	}
	if t.entry == nil || t.entry.traits&vSay == 0 {
		return 0
	}
	if j < b && (x.wordIs(j, b, "me", "us", "you", "him", "her", "them", "everyone") ||
		x.tokens[j].upper && x.wordIs(j+1, b, "that")) {
		j++
	}
	that := x.wordIs(j, b, "that")
	if that {
		j++
	}
	w := x.findVerb(j, b)
	if w < 0 {
		if t.entry.traits&vNoun != 0 {
			return 0 // "reports to Ana"
		}
		return -1
	}
	if !that && !(x.tokens[j].is(cOpensNP|cPronoun) || x.tokens[j].upper) {
		return 0
	}
	for i := a; i < v; i++ {
		if x.tokens[i].is(cIndefinite) || i == a && (x.wordIs(i, b, "they", "it", "a", "an", "some")) {
			return -1
		}
	}
	return j
}

// trimmed returns tokens[a:b] without articles, "our", words that only mark a
// change, and adverbs at both ends.
func (x *extractor) trimmed(a, b int) phrase {
	a, b = x.trim(a, b)
	return x.span(a, b)
}

func (x *extractor) trim(a, b int) (int, int) {
	for a < b {
		t := &x.tokens[a]
		if t.kind == comma || t.kind == dash || t.kind == word &&
			(t.is(cArticle) || t.is(cDrop) && a+1 < b && !t.is(cAttribute) && x.wordIs(a, b, "new") ||
				x.wordIs(a, b, "our", "all") || x.wordIs(a, b, "now")) {
			a++
			continue
		}
		break
	}
	for b > a {
		t := &x.tokens[b-1]
		if t.kind == comma || t.kind == dash || t.kind == colon ||
			t.kind == word && b-1 > a && (t.is(cDating) || t.is(cAdverb) && !t.is(cPreposition|cParticle) && t.text != "only" &&
				t.text != "automatically") {
			b--
			continue
		}
		break
	}
	return a, b
}

// subject reads the subject tokens[a:v].
func (x *extractor) subject(a, v int) subject {
	var s subject
	for a < v && x.tokens[a].kind == word && x.tokens[a].is(cAdverb|cDating) && !x.tokens[a].is(cVerb|cPreposition) {
		a++
	}
	for v-1 > a && x.tokens[v-1].kind == word && x.tokens[v-1].is(cNegation) {
		s.negated = true
		v--
	}
	for k := a + 1; k < v; k++ {
		if x.wordIs(k, v, "since") {
			v = k
		}
	}
	if v-2 > a && x.wordIs(v-2, v, "this", "next", "last") && measures().Times[x.tokens[v-1].text] {
		v -= 2
	}
	for v > a && (x.tokens[v-1].kind == comma || x.tokens[v-1].kind == word && x.tokens[v-1].is(cAdverb) &&
		!x.tokens[v-1].is(cVerb|cPreposition)) {
		v--
	}
	if a >= v {
		return s
	}
	t := &x.tokens[a]
	if t.kind == word && t.is(cNegation|cIndefinite|cCondition|cHedge) && !t.is(cMonth) || t.is(cWh) {
		return s
	}
	if (t.is(cPreposition) || x.wordIs(a, v, "as")) && t.kind == word {
		return s
	}
	if t.is(cPronoun) && t.kind == word {
		if v-a > 1 {
			return s
		}
		switch {
		case t.is(cFirst), t.is(cSecond):
			s.whole = x.refsOf(tokUser)
			s.first, s.second = t.is(cFirst), t.is(cSecond)
		default:
			s.whole = x.last
		}
		s.attribute = s.whole
		s.ok = !s.whole.empty()
		return s
	}
	if v-a == 1 && t.is(cDeterminer) || x.wordIs(a, v, "most", "some", "many", "several", "few", "half", "any", "either",
		"another", "such") ||
		x.wordIs(v-1, v, "one", "ones") {
		return s
	}
	if t.is(cPossessive) && t.kind == word {
		switch {
		case x.wordIs(a, v, "our"):
			a++
		case t.is(cThird):
			s.owner = x.last
			if s.owner.empty() {
				return s
			}
			a++
		default:
			s.owner = x.refsOf(tokUser)
			a++
		}
	}
	a, v = x.trim(a, v)
	for a < v && x.tokens[a].is(cDeterminer) && x.tokens[a].kind == word && !x.wordIs(a, v, "every", "each") {
		a++
	}
	if a >= v {
		return s
	}
	s.ok = true
	if !s.owner.empty() {
		s.attribute = x.span(a, v)
		s.whole = x.join(s.owner, s.attribute)
		return s
	}
	if x.tokens[a].is(cNumber) && x.wordIs(a+1, v, "of") {
		return subject{} // "two of the boats"
	}
	if x.tokens[v-1].kind == possessive {
		return subject{} // "and Hanno's is 15" leaves out what of his
	}
	s.whole = x.span(a, v)
	s.attribute = s.whole
	for k := v - 1; k > a; k-- { // the last genitive divides
		if x.tokens[k].kind == possessive && k+1 < v {
			s.owner, s.attribute = x.trimmed(a, k), x.trimmed(k+1, v)
			return s
		}
	}
	for k := a + 1; k+1 < v; k++ {
		if x.tokens[k].kind != word {
			continue
		}
		if x.wordIs(k, v, "of", "for") {
			oa, ov := x.trim(k+1, v)
			s.attribute = x.trimmed(a, k)
			if x.tokens[oa].is(cPossessive) && x.tokens[oa].is(cFirst|cSecond) {
				oa++
				s.owner = x.join(x.refsOf(tokUser), x.span(oa, ov))
			} else {
				s.owner = x.span(oa, ov)
			}
			return s
		}
		if x.tokens[k].is(cPreposition | cWh) {
			break
		}
	}
	return s
}

// object cuts an object out of tokens[a:b] and trims it.
func (x *extractor) object(a, b int) phrase {
	a, b = x.objectSpan(a, b)
	return x.span(a, b)
}

func (x *extractor) objectSpan(a, b int) (int, int) {
	for a < b {
		t := &x.tokens[a]
		if t.kind == comma || t.kind == colon || t.kind == word &&
			(t.is(cArticle) || t.is(cPossessive) && x.wordIs(a, b, "our", "their", "its", "his", "her", "my", "your") ||
				x.wordIs(a, b, "now", "new", "currently")) {
			a++
			continue
		}
		break
	}
	b = x.objectEnd(a, b)
	for b > a+1 {
		t := &x.tokens[b-1]
		if t.kind == comma || t.kind == dash || t.kind == colon ||
			t.kind == word && (t.is(cDating) || x.wordIs(b-1, b, "too", "also", "only", "and", "permanently", "currently",
				"officially", "sharp")) {
			b--
			continue
		}
		if t.kind == word && x.wordIs(b-1, b, "here", "there") && b-2 > a {
			b--
			if x.wordIs(b-1, b, "up", "down", "over", "out") {
				b--
			}
			continue
		}
		// "last autumn", "next week"
		if t.kind == word && (measures().Times[t.text] || t.is(cTemporal)) && b-2 > a &&
			x.wordIs(b-2, b, "last", "next", "this") {
			b -= 2
			continue
		}
		break
	}
	return a, b
}

// objectEnd returns where the object that begins at a ends: at a subordinate
// clause, or at a comma that no list, date or address goes over.
func (x *extractor) objectEnd(a, b int) int {
	for i := a; i < b; i++ {
		t := &x.tokens[i]
		switch t.kind {
		case dash, colon:
			if i > a {
				return i
			}
		case comma:
			if i+1 >= b {
				return i
			}
			n := &x.tokens[i+1]
			if n.kind == number && x.names(a, i) {
				return i // "Dr. Roth, 020 5550 118"
			}
			if n.kind == number || n.upper && !x.clauseAfter(i+1, b) {
				continue
			}
			if n.kind == word && !n.is(cOpensNP|cPronoun|cNegation|cSubordinate|cWh|cPreposition|cAdverb|cHistory|cFinite|cCondition|cIng) && x.listAhead(i+1, b) {
				continue
			}
			return i
		case word:
			if i > a && (x.wordIs(i, b, "because", "although", "though", "so", "where", "why", "since", "instead", "formerly",
				"previously", "including", "unlike") ||
				x.wordIs(i, b, "rather") && x.wordIs(i+1, b, "than") ||
				x.wordIs(i, b, "or") && i+1 < b && x.tokens[i+1].is(cPreposition) || x.aside(i, b)) {
				return i
			}
		}
	}
	return b
}

// aside reports whether words at the end of a sentence add nothing to its value:
// "for now", "as usual", "until further notice".
func (x *extractor) aside(i, b int) bool {
	switch {
	case x.wordIs(i, b, "for"):
		return x.wordIs(i+1, b, "now", "good", "sure") && i+2 == b || x.wordIs(i+1, b, "the") && x.wordIs(i+2, b, "moment")
	case x.wordIs(i, b, "as"):
		return x.wordIs(i+1, b, "usual", "always", "agreed", "before", "well", "of", "planned", "discussed")
	case x.wordIs(i, b, "at"):
		return x.wordIs(i+1, b, "present") || x.wordIs(i+1, b, "the") && x.wordIs(i+2, b, "moment", "latest", "earliest")
	case x.wordIs(i, b, "until"):
		return x.wordIs(i+1, b, "further")
	case x.wordIs(i, b, "with"):
		return x.wordIs(i+1, b, "immediate")
	case x.wordIs(i, b, "from"):
		return x.wordIs(i+1, b, "now", "today", "tomorrow", "then")
	case x.wordIs(i, b, "these", "so", "of", "by", "effective", "starting", "beginning"):
		return x.wordIs(i+1, b, "days", "far", "course", "default", "immediately", "from", "on", "in", "next") &&
			!x.wordIs(i, b, "of") || x.wordIs(i, b, "of") && x.wordIs(i+1, b, "course") ||
			x.wordIs(i, b, "effective", "starting", "beginning") && x.temporal(i+1, b)
	}
	return false
}

func (x *extractor) clauseAfter(i, b int) bool {
	return i+1 < b && x.tokens[i+1].is(cFinite) && x.tokens[i+1].kind == word
}

// listAhead reports whether an "and" or "or" comes within a few tokens, as in
// "red, white and blue".
func (x *extractor) listAhead(i, b int) bool {
	return x.within(i, min(b, i+12), "and", "or")
}
