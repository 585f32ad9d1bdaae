package contradiction

import (
	"slices"
	"strings"
)

// group is a verb with its auxiliaries.
type group struct {
	main        int // the verb that carries the meaning; -1 for a bare copula
	next        int // what follows
	copula      bool
	have        bool // "have" as a verb of its own
	passive     bool
	past        bool
	perfect     bool
	progressive bool
	negated     bool
	bareModal   int // "must" before a bare "be"
	modal       bool
	obliged     bool // "has to", "needs to"
}

// skipAdverbs goes over adverbs and negations and notes the latter.
func (x *extractor) skipAdverbs(i, b int, g *group) int {
	for i < b {
		t := &x.tokens[i]
		switch {
		case t.kind == comma && i+2 < b && x.tokens[i+1].is(cAdverb) && x.tokens[i+2].kind == comma:
			i += 3
		case t.kind != word:
			return i
		case x.wordIs(i, b, "no") && x.wordIs(i+1, b, "longer"):
			g.negated = true
			i += 2
		case t.is(cNegation) && !x.wordIs(i, b, "no", "neither", "nor"):
			g.negated = true
			i++
		case t.is(cAdverb) && !t.is(cVerb) && !(t.is(cPreposition|cParticle) && !(i+1 < b && x.tokens[i+1].kind == number)),
			t.is(cDating) && i+1 < b, t.is(cHistory) && i+1 < b:
			i++
		case t.is(cPreposition) && x.wordIs(i, b, "about", "around", "over") && i+1 < b && x.tokens[i+1].kind == number:
			i++
		default:
			return i
		}
	}
	return i
}

// verbGroup reads the verb at v with its auxiliaries.
func (x *extractor) verbGroup(v, b int) group {
	g := group{main: -1, bareModal: -1}
	i := v
	for steps := 0; i < b && steps < 6; steps++ {
		t := &x.tokens[i]
		switch {
		case t.is(cModal) && steps == 0:
			g.modal, g.bareModal = true, i
			i = x.skipAdverbs(i+1, b, &g)
		case t.is(cDo) && steps == 0 && x.auxiliary(i, b):
			g.past = x.wordIs(i, b, "did")
			i = x.skipAdverbs(i+1, b, &g)
		case t.is(cHave) || t.entry != nil && t.entry.lemma == "have":
			n := x.skipAdverbs(i+1, b, &g)
			if n < b && x.tokens[n].is(cPart) && x.tokens[n].kind == word &&
				!(x.tokens[n].is(cBase) && !x.tokens[n].is(cPast|cPart)) && x.tokens[n].text != "set" {
				g.perfect = true
				i = n
				continue
			}
			if x.wordIs(n, b, "to") {
				g.obliged = true
				i = x.skipAdverbs(n+1, b, &g)
				continue
			}
			g.have, g.next = true, n
			g.past = x.wordIs(i, b, "had")
			return g
		case t.is(cBe) || t.entry != nil && t.entry.lemma == "be":
			if x.wordIs(i, b, "was", "were") {
				g.past = true
			}
			n := x.skipAdverbs(i+1, b, &g)
			if n >= b {
				g.copula, g.next = true, n
				return g
			}
			m := &x.tokens[n]
			if x.wordIs(n, b, "to") && n+1 < b && x.tokens[n+1].is(cBase) { // "are to be sent to"
				i = n + 1
				continue
			}
			if m.kind == word && (x.wordIs(n, b, "been", "being")) {
				i = n
				continue
			}
			if m.is(cIng) && m.kind == word && !m.upper && n+1 < b {
				g.progressive, g.main, g.next = true, n, n+1
				return g
			}
			if m.is(cPart) && m.kind == word && !m.upper && !(m.is(cAdjective) && !x.byFollows(n+1, b)) {
				g.passive, g.main, g.next = true, n, n+1
				return g
			}
			g.copula, g.next = true, n
			return g
		case steps == 0 && t.entry != nil && t.entry.lemma == "need" && x.wordIs(i+1, b, "to") && i+2 < b &&
			x.tokens[i+2].is(cBase):
			g.obliged = true
			i += 2
		default:
			g.main, g.next = i, i+1
			if t.is(cPast) && !t.is(cBase) && !g.perfect {
				g.past = true
			}
			return g
		}
	}
	g.next = b
	return g
}

func (x *extractor) byFollows(i, b int) bool { return x.wordIs(i, b, "by") }

// auxiliary reports whether "do" at i helps another verb.
func (x *extractor) auxiliary(i, b int) bool {
	var g group
	n := x.skipAdverbs(i+1, b, &g)
	return n < b && x.tokens[n].is(cBase) && (g.negated || n == i+1)
}

// part is a direct object (prep < 0) or a phrase with a preposition.
type part struct{ prep, a, b int }

const maxParts = 6

// parts cuts tokens[a:b] at prepositions. "of", "per" and the like stay inside a
// part, and so does "to" between two numbers or times, unless a change went from
// one to the other.
func (x *extractor) parts(a, b int, change bool) (list [maxParts]part, n int) {
	cur := part{-1, a, b}
	for i := a; i+1 < b && n < maxParts-1; i++ {
		t := &x.tokens[i]
		if t.kind != word {
			continue
		}
		if i > a && x.wordIs(i, b, "before", "after") && measures().Times[x.tokens[i-1].text] {
			continue // "30 minutes before departure"
		}
		if i > a && x.wordIs(i, b, "that", "which", "who") {
			break // a restrictive relative clause belongs to its noun
		}
		if t.upper && len(t.text) > 1 && t.text[1] <= 'Z' {
			continue // "AS" ends the names of companies
		}
		if !t.is(cPreposition) && !x.wordIs(i, b, "as") && !(x.wordIs(i, b, "next") && x.wordIs(i+1, b, "to")) {
			continue
		}
		if i == cur.a && cur.prep >= 0 { // "out of", "next to", "from under"
			cur.a++
			continue
		}
		if x.wordIs(i, b, "at") && x.wordIs(i+1, b, "most", "least") || x.wordIs(i, b, "of") && i > a ||
			x.wordIs(i, b, "per", "than", "like", "off", "up", "down") || x.wordIs(i, b, "out") && !x.wordIs(i+1, b, "of") ||
			x.wordIs(i, b, "to") && i > a && x.wordIs(i-1, b, "up") && x.tokens[i+1].kind == number ||
			i > a && x.wordIs(i, b, "above", "below", "over", "across", "past") {
			continue
		}
		if !change && i > a && x.wordIs(i, b, "to", "until", "till") && x.sameKind(i-1, i+1) {
			continue
		}
		if i > cur.a || cur.prep >= 0 {
			cur.b = i
			list[n] = cur
			n++
		}
		cur = part{i, i + 1, b}
	}
	cur.b = b
	if cur.a < cur.b {
		list[n] = cur
		n++
	}
	return list, n
}

// sameKind reports whether two tokens are both numbers or both times, so that
// "to" between them makes a range.
func (x *extractor) sameKind(i, j int) bool {
	a, b := &x.tokens[i], &x.tokens[j]
	return (a.kind == number || a.is(cTemporal) || x.wordIs(i, i+1, "am", "pm", "noon")) &&
		(b.kind == number || b.is(cTemporal) || x.wordIs(j, j+1, "noon", "midnight"))
}

// predicate reads the predicate of s whose verb stands at v and which ends at b.
func (x *extractor) predicate(s subject, v, b int, qualifier phrase) {
	if v >= b {
		return
	}
	for i := v; i < b; i++ { // a hedge takes the assertion back
		if t := &x.tokens[i]; t.is(cHedge) && t.kind == word && !t.is(cMonth) && !(t.is(cVerb) && i > v+2) {
			return
		}
	}
	if x.wordIs(v, b, "used") && x.wordIs(v+1, b, "to") {
		return
	}
	g := x.verbGroup(v, b)
	if g.next >= b {
		return
	}
	x.predicateOf(s, g, b, qualifier)
}

// predicateOf reads a predicate whose verb group is known.
func (x *extractor) predicateOf(s subject, g group, b int, qualifier phrase) {
	if !s.ok && (g.main < 0 || x.tokens[g.main].entry == nil || x.tokens[g.main].entry.traits&vChange == 0) {
		return // "they changed the code to 12" still has a slot of its own
	}
	if s.negated {
		g.negated = true
	}
	if g.obliged && s.first || g.modal && (s.first && x.wordIs(g.bareModal, b, "will", "'ll", "can", "shall") ||
		s.second && x.wordIs(g.bareModal, b, "will", "'ll", "can") &&
			!(g.main > 0 && x.wordIs(g.main, b, "reach", "contact"))) {
		return // a plan, an offer
	}
	if g.perfect && !x.lasting(g, b) {
		return
	}
	before := len(x.facts)
	switch {
	case g.copula:
		if g.past && !g.perfect {
			return
		}
		x.copula(s, g, g.next, b, qualifier)
	case g.have:
		if g.past {
			return
		}
		x.having(s, g, b, qualifier)
	default:
		x.action(s, g, b, qualifier)
	}
	x.facts = append(x.facts[:before], slices.DeleteFunc(x.facts[before:], x.garbled)...)
	if len(x.facts) > before {
		if x.facts[before].subject == s.owner || s.owner.empty() {
			x.last = x.facts[before].subject
		} else {
			x.last = s.whole
		}
	}
}

// lasting reports whether a perfect tells a state that holds, or a change, rather
// than what has happened: "has lived here since 2018", "has moved to".
func (x *extractor) lasting(g group, b int) bool {
	if g.main >= 0 {
		if e := x.tokens[g.main].entry; e != nil && e.traits&(vChange|vMilestone) != 0 || g.passive {
			return true
		}
		if x.wordIs(g.main+1, b, "over") {
			return true
		}
	}
	for i := g.next; i < b; i++ {
		if x.wordIs(i, b, "since") || x.wordIs(i, b, "for") && x.duration(part{i, i + 1, min(b, i+3)}) {
			return true
		}
	}
	return g.copula && !x.wordIs(g.next, b, "there", "here", "to")
}

// garbled reports whether a fact shows that the clause was not understood: a
// finite verb is left in its subject or its object, or they are longer than
// names and values are.
func (x *extractor) garbled(f fact) bool {
	return x.clauseLike(f.subject, 10) || x.clauseLike(f.object, 14)
}

func (x *extractor) clauseLike(p phrase, limit int32) bool {
	if p.to-p.from > limit {
		return true
	}
	for _, i := range x.refs[p.from:p.to] {
		t := &x.tokens[i]
		if i < pseudoTokens || t.kind != word {
			continue
		}
		if t.is(cWh) || x.wordIs(int(i), int(i)+1, "that") {
			return false
		}
		if t.is(cFinite) && !t.upper && !t.is(cNumber) && t.text != "do" && t.text != "can" && t.text != "will" ||
			x.wordIs(int(i), int(i)+1, "please") {
			return true
		}
	}
	return false
}

// copulaFact fills in subject and predicate of "X's Y is Z".
func (x *extractor) copulaFact(s subject, qualifier phrase, g *group) fact {
	f := fact{negated: g.negated}
	if s.owner.empty() {
		f.subject = s.whole
		f.predicate = x.refsOf(tokIs)
		if g.copula {
			f.predicate = x.being(g)
		}
		f.predicate = x.join(f.predicate, qualifier)
		return f
	}
	f.subject, f.attribute = s.owner, true
	f.predicate = x.join(s.attribute, qualifier)
	return f
}

// being is "is", or "must be" and the like.
func (x *extractor) being(g *group) phrase {
	if g.bareModal < 0 {
		return x.refsOf(tokIs)
	}
	x.tokens = append(x.tokens, token{text: "be", classes: cBe, start: -1, end: -1})
	return x.refsOf(int32(g.bareModal), int32(len(x.tokens)-1))
}

// copula reads what follows "is".
func (x *extractor) copula(s subject, g group, i, b int, qualifier phrase) {
	if g.negated { // "not on Tuesday but on Wednesday", "not Tuesday, Wednesday"
		k := -1
		for j := i; j < min(b, i+10); j++ {
			if x.wordIs(j, b, "but") || x.tokens[j].kind == comma && j+1 < b && !x.wordIs(j+1, b, "and", "or") &&
				!x.wordIs(j+1, b, "but") {
				k = j + 1
				break
			}
		}
		if k > 0 && k < b && !x.tokens[k].is(cSubordinate|cPronoun|cWh) {
			g.negated = false
			i = x.skipAdverbs(k, b, &g)
		}
	}
	if i >= b {
		return
	}
	t := &x.tokens[i]
	if t.kind == comma || t.kind == word && (t.is(cWh) ||
		x.wordIs(i, b, "that", "to", "like", "such", "so", "as", "if", "one", "part", "among")) {
		return
	}
	if t.kind == word && x.wordIs(i, b, "no", "nothing", "none") {
		g.negated = true
		i++
		if i >= b {
			return
		}
		t = &x.tokens[i]
	}
	// "is in Leeds", "is behind the dairy"
	if t.kind == word && i+1 < b && (t.is(cPreposition) && !x.wordIs(i, b, "of", "per", "than") ||
		x.wordIs(i, b, "next") && x.wordIs(i+1, b, "to")) {
		x.placed(s, g, i, b, qualifier, phrase{})
		return
	}
	// "is older than Ilka"
	for k := i + 1; k+1 < b && k <= i+2; k++ {
		if x.wordIs(k, b, "than") && x.tokens[k-1].kind == word && !x.wordIs(k-1, b, "more", "less") && !x.tokens[i].upper {
			f := fact{subject: s.whole, predicate: x.join(x.refsOf(tokIs), x.span(i, k+1), qualifier), object: x.object(k+1, b),
				negated: g.negated}
			x.emit(f)
			return
		}
	}
	// "is due on 15 February"
	if t.kind == word && !t.upper && (t.is(cAdjective) || t.is(cPart) ||
		t.entry == nil && strings.HasSuffix(t.text, "ed") || strings.HasSuffix(t.text, "able") ||
		strings.HasSuffix(t.text, "ible")) && i+1 < b {
		n := x.skipAdverbs(i+1, b, &g)
		if n < b && x.tokens[n].is(cPreposition) && x.tokens[n].kind == word && !x.wordIs(n, b, "of") && n+1 < b {
			if t.is(cOpinion) && !t.is(cAdjective) {
				return
			}
			if x.wordIs(i, b, "free") && x.wordIs(n, b, "for") {
				f := x.copulaFact(s, x.join(qualifier, x.content(n, x.objectEnd(n, b))), &g)
				f.object = x.refsOf(int32(i))
				x.emit(f)
				return
			}
			x.placed(s, g, n, b, qualifier, x.refsOf(int32(i)))
			return
		}
		// "is closed Mondays", "is due 3 May"
		if n+1 == b && x.tokens[n].is(cTemporal) || n < b && (x.tokens[n].kind == number || x.wordIs(n, b, "every")) {
			f := x.copulaFact(s, x.join(qualifier, x.refsOf(int32(i))), &g)
			f.object = x.object(n, b)
			x.emit(f)
			return
		}
	}
	list, n := x.parts(i, x.objectEnd(i, b), false)
	if n == 0 {
		return
	}
	end := list[0].b
	for k := 1; k < n; k++ {
		p := list[k]
		switch {
		case x.wordIs(p.prep, b, "since") || x.datingPart(p):
		case x.recurring(p.prep, p.b):
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		case x.wordIs(p.prep, b, "for") && x.narrowable(list[0].a, list[0].b),
			x.quantity(list[0].a, list[0].b) && x.wordIs(p.prep, b, "in", "at", "on", "with", "during", "after", "before",
				"without", "within"):
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		default:
			end = p.b
		}
	}
	oa, ob := x.objectSpan(list[0].a, end)
	if oa >= ob || x.opinion(oa, ob) || x.tokens[oa].is(cOpinion) && x.tokens[oa].kind == word && !x.tokens[oa].upper &&
		len(list) > 1 && n > 1 ||
		strings.HasSuffix(x.tokens[oa].text, "ing") && x.tokens[oa].entry == nil && !x.tokens[oa].upper && n > 1 {
		return
	}
	f := x.copulaFact(s, qualifier, &g)
	f.object = x.span(oa, ob)
	x.emit(f)
	if k := ob + 1; ob < b && x.tokens[ob].kind == comma && k+1 < b && x.tokens[k].is(cAttribute) && !x.tokens[k].upper &&
		(x.tokens[k+1].kind == number || x.tokens[k+1].upper) { // "is Koop, account EE38 …"
		about := s.owner
		if about.empty() {
			about = s.whole
		}
		x.emit(fact{subject: about, predicate: x.refsOf(int32(k)), object: x.object(k+1, b), attribute: true})
		return
	}
	x.apposition(f.object, ob, b)
}

// apposition reads what follows an object after a comma: "is Dr. Roth, our vet".
func (x *extractor) apposition(o phrase, at, b int) {
	if o.empty() || at >= b || x.tokens[at].kind != comma || at+1 >= b {
		return
	}
	n := &x.tokens[at+1]
	if x.wordIs(at+1, b, "not") || !(n.is(cPossessive) || n.is(cArticle) && x.tokens[x.refs[o.from]].upper) ||
		n.kind != word {
		return
	}
	if r := x.object(at+1, b); !r.empty() && r.to-r.from <= 6 {
		x.emit(fact{subject: o, predicate: x.refsOf(tokIs), object: r})
	}
}

// opinion reports whether an object says no more than how somebody likes a
// thing.
func (x *extractor) opinion(a, b int) bool {
	t := &x.tokens[a]
	if t.kind != word {
		return false
	}
	if x.wordIs(a, b, "very", "quite", "rather", "too", "so", "really", "pretty", "a") && b-a <= 3 {
		a++
		if x.wordIs(a, b, "bit", "little") {
			a++
		}
		if a >= b {
			return true
		}
		t = &x.tokens[a]
	}
	if b-a == 1 && !t.upper && t.entry == nil {
		if strings.HasSuffix(t.text, "ed") && strings.IndexByte(t.text, '-') < 0 {
			return true // a participle that the lexicon does not know: "cancelled"
		}
		for _, ending := range [...]string{"ous", "ful", "ing", "ish", "some"} {
			if strings.HasSuffix(t.text, ending) {
				return true
			}
		}
	}
	return t.is(cOpinion) && t.kind == word && !t.upper && b-a <= 3
}

// narrowable reports whether an object is a name, a number or quoted, so that
// "for …" behind it narrows the statement rather than the object.
func (x *extractor) narrowable(a, b int) bool {
	return x.any(a, b, func(t *token) bool {
		return t.kind == number || t.kind == quoted || t.upper || strings.ContainsAny(t.text, "@/_.#")
	})
}

// datingPart reports whether a part only says when the statement began to hold.
func (x *extractor) datingPart(p part) bool {
	return x.wordIs(p.prep, p.b, "from", "as", "effective") &&
		(x.temporal(p.a, p.b) || x.wordIs(p.a, p.b, "now", "then", "of"))
}

// placed reads "is (adjective) in Z".
func (x *extractor) placed(s subject, g group, prep, b int, qualifier, adjective phrase) {
	list, n := x.parts(prep, x.objectEnd(prep, b), false)
	if n == 0 {
		return
	}
	end := list[0].b
	for k := 1; k < n; k++ {
		p := list[k]
		switch {
		case x.recurring(p.prep, p.b):
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		case x.wordIs(p.prep, b, "since") || x.datingPart(p) && !x.wordIs(prep, b, "from"):
		case x.wordIs(p.prep, b, "for") && x.narrowable(list[0].a, list[0].b):
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		case x.dating(p.prep, p.b) && !x.temporal(list[0].a, list[0].b):
		default:
			end = p.b
		}
	}
	f := fact{negated: g.negated, subject: s.whole}
	if _, last := x.objectSpan(list[0].a, end); x.wordIs(last-1, last, "way", "hurry", "mood", "trouble", "progress",
		"doubt", "mess", "call", "fire", "mind", "sale", "vacation", "break", "duty", "leave", "holiday", "strike", "track",
		"time", "hand", "order", "repair", "service", "free") {
		return
	}
	a := list[0].a
	if x.wordIs(a, b, "charge", "possession", "front") && x.wordIs(a+1, b, "of") && a+2 < b { // "in charge of"
		a += 2
	}
	f.predicate = x.join(x.being(&g), adjective, x.span(prep, a), qualifier)
	_, ob := x.objectSpan(a, end)
	f.object = x.object(a, end)
	x.emit(f)
	x.apposition(f.object, ob, b)
}

// having reads "has the Y Z", "has 212 members", "has no lift".
func (x *extractor) having(s subject, g group, b int, qualifier phrase) {
	i := g.next
	have := x.refsOf(tokHave)
	if x.wordIs(i, b, "no", "neither") {
		g.negated = true
		i++
	}
	if i >= b {
		return
	}
	t := &x.tokens[i]
	if t.is(cWh|cPronoun) || x.wordIs(i, b, "that", "something") {
		return
	}
	end := x.objectEnd(i, b)
	list, n := x.parts(i, end, false)
	if n == 0 || list[0].prep >= 0 {
		return
	}
	a, e := list[0].a, list[0].b
	if x.passing(a, e) {
		return
	}
	// Prepositional phrases narrow or belong to the thing had.
	for k := 1; k < n; k++ {
		p := list[k]
		if x.recurring(p.prep, p.b) || x.wordIs(p.prep, b, "for", "in", "at", "on") {
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		}
	}
	if x.tokens[a].is(cPossessive) && n > 1 && x.wordIs(list[1].prep, b, "in", "at", "on", "with", "near", "behind") &&
		!x.recurring(list[1].prep, list[1].b) {
		na, ne := x.objectSpan(a, e) // "has its headquarters in Lund"
		x.emit(fact{subject: s.whole, predicate: x.join(have, x.span(na, ne), x.span(list[1].prep, list[1].a)),
			object: x.object(list[1].a, list[n-1].b), negated: g.negated, have: true})
		return
	}
	if t.kind == number || t.is(cNumber) {
		f := fact{subject: s.whole, predicate: x.join(have, qualifier), object: x.object(a, e), negated: g.negated,
			have: true}
		x.emit(f)
		return
	}
	if x.tokens[i].is(cArticle) {
		for k := i + 1; k < e; k++ { // "a capacity of 40 litres"
			if x.wordIs(k, e, "of") && k > i+1 && k+1 < e {
				na, ne := x.trim(i, k)
				x.emit(fact{subject: s.whole, predicate: x.join(x.span(na, ne), qualifier), object: x.object(k+1, e),
					negated: g.negated, attribute: true})
				return
			}
		}
		// "the code 4411"
		na, ne := x.trim(i, e)
		for k := na + 1; k < ne; k++ {
			if tk := &x.tokens[k]; (tk.kind == number || tk.kind == quoted || tk.upper && x.wordIs(i, b, "the")) &&
				x.tokens[k-1].kind == word && !x.tokens[k-1].is(cNumber) && !x.tokens[k-1].upper {
				x.emit(fact{subject: s.whole, predicate: x.join(x.span(na, k), qualifier), object: x.object(k, ne),
					negated: g.negated, attribute: true})
				return
			}
		}
	}
	x.emit(fact{subject: s.whole, predicate: x.join(have, qualifier), object: x.object(a, e), negated: g.negated,
		multi: !g.negated, have: true})
}

// passing reports whether an object names what comes and goes: a question, a
// break, a cold.
func (x *extractor) passing(a, b int) bool {
	return x.wordIs(b-1, b, "question", "questions", "idea", "ideas", "problem", "problems", "break", "cold", "headache",
		"favour", "favor", "look",
		"chance", "point", "feeling", "fun", "time", "help", "rest", "trouble", "minute", "moment", "lunch", "dinner",
		"breakfast", "luck", "plans")
}

// action reads a predicate whose verb is not "be" or "have".
func (x *extractor) action(s subject, g group, b int, qualifier phrase) {
	m := &x.tokens[g.main]
	e := m.entry
	if e == nil || e.lemma == "" || e.traits&vNone != 0 {
		return
	}
	i := g.next
	if e.lemma == "get" && i < b && x.tokens[i].is(cPart) {
		return
	}
	if g.progressive {
		if !e.means("use", "work", "live", "stay", "move", "switch", "relocate", "migrate", "host",
			"lead", "teach", "run", "head", "manage", "replace", "take") {
			return // what somebody is doing passes
		}
	}
	if e.means("need", "like", "love", "hate", "prefer", "decide", "agree", "ask", "expect", "choose",
		"learn", "help", "start", "begin",
		"refuse", "promise", "offer", "use", "look") {
		if x.wordIs(i, b, "to") && i+1 < b && x.tokens[i+1].is(cBase) || x.wordIs(i, b, "forward", "like") {
			return
		}
	}
	if e.traits&vSay != 0 && (x.wordIs(i, b, "that") || !g.passive && i < b && x.tokens[i].kind == quoted) {
		return
	}
	change := e.traits&vChange != 0
	if e.lemma == "go" && (x.wordIs(i, b, "up", "down") && x.wordIs(i+1, b, "from", "to") ||
		x.wordIs(i, b, "from") && i+1 < b && x.tokens[i+1].kind == number) {
		change = true
	}
	if g.past && !g.perfect && e.traits&vMilestone == 0 && !change {
		return
	}
	i = x.skipAdverbs(i, b, &g)
	pred := x.lemma(g.main)
	// A particle belongs to the verb.
	goUp := change && e.lemma == "go"
	if i+1 < b && !(x.wordIs(i, b, "up") && x.wordIs(i+1, b, "to") && i+2 < b && x.tokens[i+2].kind == number &&
		e.traits&vChange == 0 && e.lemma != "go") && x.tokens[i].is(cParticle) && x.tokens[i].kind == word &&
		!x.wordIs(i, b, "in", "on", "together") && !(x.wordIs(i, b, "over", "up") && x.tokens[i+1].kind == number) {
		pred = x.join(pred, x.refsOf(int32(i)))
		i = x.skipAdverbs(i+1, b, &g)
	}
	if i >= b || x.tokens[i].is(cWh) && x.tokens[i].kind == word || x.wordIs(i, b, "that", "if", "whether") ||
		x.tokens[i].kind == comma {
		return
	}
	if x.wordIs(i, b, "to") && i+1 < b && x.tokens[i+1].is(cBase) && !x.tokens[i+1].is(cAttribute) && !x.nounVerb(i+1) {
		return // "hopes to", "tends to"
	}
	if (e.lemma == "stay" || e.lemma == "remain") && !g.passive &&
		(!x.tokens[i].is(cPreposition) || x.tokens[i].is(cAdjective)) {
		x.copula(s, g, i, b, qualifier)
		return
	}
	list, n := x.parts(i, x.objectEnd(i, b), change)
	if n == 0 {
		return
	}
	if change && x.change(s, g, e, list[:n], qualifier, goUp) {
		return
	}
	if change && g.past && !g.perfect && e.traits&vMilestone == 0 && !g.passive {
		return
	}
	if g.negated && list[0].prep < 0 && x.wordIs(i, b, "any") {
		list[0].a++
	}
	if list[0].prep < 0 && x.wordIs(list[0].a, b, "no") { // "takes no cards"
		g.negated = true
		list[0].a++
		if list[0].a >= list[0].b {
			return
		}
	}
	f := fact{subject: s.whole, verb: e, negated: g.negated}
	// "is called Z", "reads Z", "falls on Z": says no more than "is".
	if e.lemma == "call" && g.passive && list[0].prep < 0 ||
		(e.lemma == "name" || e.lemma == "appoint" || e.lemma == "elect") && g.passive && list[0].prep < 0 &&
			!x.often(list[0].a, list[0].b) || e.lemma == "know" && g.passive && x.wordIs(list[0].prep, b, "as") ||
		(e.lemma == "read" && list[0].prep < 0 || e.lemma == "fall" && x.wordIs(list[0].prep, b, "on")) && !s.owner.empty() &&
			!g.passive {
		if s.owner.empty() {
			f.predicate = x.join(pred, qualifier) // "the band is called …"
		} else {
			f = x.copulaFact(s, qualifier, &g)
		}
		f.object = x.object(list[0].a, list[n-1].b)
		x.emit(f)
		return
	}
	x.complement(f, g, pred, list[:n], qualifier, b)
}

// change reads a verb of change: what changed is the slot, what it changed to
// the value. It reports whether it has dealt with the predicate.
func (x *extractor) change(s subject, g group, e *entry, list []part, qualifier phrase, goUp bool) bool {
	keep := false // verbs that keep their own slot
	switch e.lemma {
	case "move", "relocate", "migrate", "switch", "push", "postpone", "reschedule", "bring", "shift", "delay", "advance",
		"transfer", "set":
		keep = true
	case "become":
		if list[0].prep < 0 {
			f := x.copulaFact(s, qualifier, &g)
			end := list[0].b
			for _, p := range list[1:] {
				if x.temporal(p.a, p.b) {
					break
				}
				end = p.b
			}
			f.object = x.object(list[0].a, end)
			x.emit(f)
			return true
		}
	case "replace", "succeed":
		for k := range list {
			if x.wordIs(list[k].prep, list[k].b, "as") && !g.passive {
				x.emit(fact{subject: x.trimmed(list[k].a, list[k].b), predicate: x.refsOf(tokIs), object: s.whole,
					negated: g.negated})
				return true
			}
		}
		if len(list) > 1 && !g.passive && list[0].prep < 0 && x.tokens[list[0].a].is(cThird) &&
			x.wordIs(list[1].prep, list[1].b, "with", "by") {
			x.emit(fact{subject: s.whole, predicate: x.trimmed(list[0].a+1, list[0].b), object: x.object(list[1].a, list[1].b),
				negated: g.negated, attribute: true})
			return true
		}
		return !g.passive
	case "fall", "visit":
		if !x.wordIs(list[0].prep, list[0].b, "to", "from") {
			return false
		}
	}
	if e.lemma == "rename" && list[0].prep < 0 && g.passive { // "was renamed Linda Hall"
		f := x.copulaFact(s, qualifier, &g)
		f.object = x.object(list[0].a, list[0].b)
		x.emit(f)
		return true
	}
	if e.lemma == "turn" && list[0].prep < 0 {
		return true // "turns 40"
	}
	to := -1
	for k := range list {
		if x.wordIs(list[k].prep, list[k].b, "to", "into") {
			to = k
			break
		}
	}
	if to < 0 {
		if (e.lemma == "postpone" || e.lemma == "reschedule" || e.lemma == "move") && list[0].prep >= 0 &&
			!x.wordIs(list[0].prep, list[0].b, "by", "from") {
			return false // "postponed until Friday" keeps its verb
		}
		if e.lemma == "bring" || e.lemma == "transfer" {
			return g.past && !g.passive
		}
		if g.passive && (e.lemma == "replace" || x.wordIs(list[0].prep, list[0].b, "until", "till") || !g.past) &&
			(list[0].prep >= 0 || x.tokens[list[0].a].is(cDeterminer|cFrequency)) {
			return false // "was replaced by Hedda", "must be changed every 90 days"
		}
		return (g.past || g.perfect || g.passive) && e.traits&vMilestone == 0
	}
	if g.progressive && !keep {
		return false
	}
	end := list[to].b
	for k := to + 1; k < len(list); k++ {
		if g.past && x.temporal(list[k].a, list[k].b) {
			continue // when it changed
		}
		if x.recurring(list[k].prep, list[k].b) {
			qualifier = x.join(qualifier, x.content(list[k].prep, list[k].b))
		} else if !x.dating(list[k].prep, list[k].b) && !x.datingPart(list[k]) &&
			x.wordIs(list[k].prep, list[k].b, "in", "at", "on", "with", "of") {
			end = list[k].b
		}
	}
	object := x.object(list[to].a, end)
	// "switched its lab to Z", "raised the fee from 4 to 5 euros"
	if list[0].prep < 0 && !g.passive {
		a := list[0].a
		t := &x.tokens[a]
		f := fact{object: object, negated: g.negated}
		switch {
		case t.is(cPossessive) && t.is(cThird):
			f.subject, f.predicate, f.attribute = s.whole, x.join(x.trimmed(a+1, list[0].b), qualifier), true
		case t.is(cPossessive) && !x.wordIs(a, a+1, "our"):
			f.subject, f.predicate, f.attribute = x.refsOf(tokUser), x.join(x.trimmed(a+1, list[0].b), qualifier), true
		default:
			o := x.subject(a, list[0].b)
			if !o.ok {
				return true
			}
			f = x.copulaFact(o, qualifier, &g)
			f.object = object
		}
		x.emit(f)
		return true
	}
	if e.lemma == "switch" && g.passive {
		keep = false // "the audit firm was switched to": another firm
	}
	if keep && !goUp {
		pred := x.lemma(g.main)
		if n := g.main + 1; n < int(list[0].a) && x.tokens[n].is(cParticle) && x.tokens[n].kind == word &&
			!x.wordIs(n, n+1, "to") {
			pred = x.join(pred, x.refsOf(int32(n)))
		}
		x.emit(fact{subject: s.whole, predicate: x.join(pred, x.span(list[to].prep, list[to].a), qualifier), object: object,
			verb: e, negated: g.negated})
		return true
	}
	f := x.copulaFact(s, qualifier, &g)
	f.object = object
	x.emit(f)
	return true
}

// complement finds the value among a verb's objects: the object itself, or, where
// that only completes the verb ("sign contracts with DocuSeal"), what follows.
func (x *extractor) complement(f fact, g group, pred phrase, list []part, qualifier phrase, b int) {
	e := f.verb
	first := list[0]
	rest := list[1:]
	if first.prep >= 0 {
		// Verb and preposition.
		prep := first.prep
		end := first.b
		if x.wordIs(prep, b, "from") && len(rest) > 0 && x.wordIs(rest[0].prep, b, "to", "until", "till") {
			end = rest[0].b
			rest = rest[1:]
		}
		for k := first.a + 1; k < first.b && len(rest) == 0 && x.narrowable(first.a, k); k++ {
			if x.often(k, first.b) { // "is sent to board@… every night"
				qualifier = x.join(qualifier, x.span(k, first.b))
				first.b, end = k, k
			}
		}
		var second part
		label := x.codeLabel(first.a, first.b)
		if g.passive && x.wordIs(prep, b, "by") {
			f.by = true
		}
		if g.past && !g.perfect && g.passive && e.traits&(vMilestone|vChange) == 0 {
			return
		}
		for _, p := range rest {
			switch {
			case x.clockTail(first, p):
				end = p.b
			case x.recurring(p.prep, p.b), x.wordIs(p.prep, b, "for"),
				x.wordIs(p.prep, b, "on") && x.temporal(first.a, first.b) && !x.temporal(p.a, p.b):
				qualifier = x.join(qualifier, x.content(p.prep, p.b))
			case x.wordIs(p.prep, b, "since"), x.datingPart(p):
			case x.dating(p.prep, p.b) != x.temporal(first.a, first.b) &&
				(x.dating(p.prep, p.b) && (x.clock(p.a, p.b) || x.hour(p.prep, p.b)) ||
					x.clock(first.a, first.b) && x.wordIs(p.prep, b, "from", "in", "at", "to")):
				// "leaves at 9:15 from platform 4" says two things.
				second = p
			case x.dating(p.prep, p.b) && !x.temporal(first.a, first.b):
			case x.wordIs(prep, b, "by"), x.wordIs(p.prep, b, "on", "at", "upon", "after", "before", "via", "by", "with",
				"without", "within") && !x.temporal(first.a, first.b):
				qualifier = x.join(qualifier, x.content(p.prep, p.b))
			default:
				end = p.b
			}
		}
		if x.wordIs(first.a, b, "free") && first.b-first.a == 1 {
			return
		}
		if second.b > 0 {
			o := f
			o.predicate = x.join(pred, x.span(second.prep, second.a), qualifier)
			o.object = x.object(second.a, second.b)
			defer x.emit(o)
		}
		f.predicate = x.join(pred, x.span(prep, first.a), qualifier)
		a := first.a
		if label > 0 {
			na, _ := x.trim(first.a, first.b)
			f.predicate = x.join(pred, x.span(prep, first.a), x.span(na, label), qualifier)
			a = label
		}
		_, ob := x.objectSpan(a, end)
		f.object = x.object(a, end)
		x.emit(f)
		x.apposition(f.object, ob, b)
		return
	}
	if g.passive && e.traits&vMulti == 0 && !x.narrowable(first.a, first.b) &&
		!x.tokens[first.a].is(cNumber|cDeterminer|cDating|cFrequency) && !x.temporal(first.a, first.b) &&
		!x.wordIs(first.a, b, "once", "twice") {
		// A passive has no object: what stands there is an adverb, or the
		// complement of a state ("is painted green").
		if len(rest) == 0 && (g.past || g.perfect || first.b-first.a != 1 || x.weakObject(x.span(first.a, first.b))) {
			return
		}
	}
	t := &x.tokens[first.a]
	if t.is(cPronoun) && t.kind == word && !x.wordIs(first.a, b, "it") ||
		x.wordIs(first.a, b, "me", "us", "him", "them") ||
		x.wordIs(first.a, b, "it", "this", "that") && first.b-first.a == 1 ||
		x.wordIs(first.a, b, "all") && x.temporal(first.a, first.b) || x.passing(first.a, first.b) && len(rest) == 0 {
		return
	}
	// "is serviced every two years by Viking", "meets every Thursday at 19:00"
	if len(rest) > 0 && x.often(first.a, first.b) && rest[0].b == list[len(list)-1].b {
		f.by = g.passive && x.wordIs(rest[0].prep, b, "by")
		f.predicate = x.join(pred, x.span(first.a, first.b), x.span(rest[0].prep, rest[0].a), qualifier)
		f.object = x.object(rest[0].a, rest[0].b)
		x.emit(f)
		return
	}
	if g.past && !g.perfect && !g.passive && !x.tokens[first.a].upper && x.tokens[first.a].kind != number {
		return // "built a sandcastle" and "signed the lease" are events, "joined Brevik Shipping" is a fact
	}
	if e.traits&vMulti != 0 && !(e.lemma == "cover" && t.kind == number) {
		f.multi = true
	}
	// "takes 10 mg every morning"
	for k := first.a + 1; k < first.b && len(rest) == 0; k++ {
		if x.often(k, first.b) {
			// "measures blood pressure twice a day"
			if !x.narrowable(first.a, k) && !(x.tokens[k-1].kind == word && x.tokens[k-1].is(cPreposition)) {
				na, ne := x.objectSpan(first.a, k)
				f.predicate = x.join(pred, x.span(na, ne), qualifier)
				f.object, f.multi = x.span(k, first.b), false
				x.emit(f)
				return
			}
			qualifier = x.join(qualifier, x.span(k, first.b))
			first.b = k
			break
		}
	}
	if e.lemma == "need" && first.b-first.a == 1 && strings.HasSuffix(t.text, "ing") {
		return
	}
	if e.lemma == "speak" && first.prep < 0 || e.lemma == "own" && x.tokens[first.a].is(cArticle) &&
		!x.wordIs(first.a, b, "the") {
		f.multi = true
	}
	// "calls their dog Mokka"
	if e.lemma == "call" || e.lemma == "name" || e.lemma == "nickname" {
		for k := first.b - 1; k > first.a; k-- {
			if !x.tokens[k].upper && x.tokens[k].kind != quoted {
				if k+1 < first.b {
					na, ne := x.objectSpan(first.a, k+1)
					f.predicate = x.join(pred, x.span(na, ne), qualifier)
					f.object = x.object(k+1, first.b)
					x.emit(f)
					return
				}
				break
			}
		}
	}
	// "charges guests 14 euros for parking"
	if k := x.secondObject(e, first); k > 0 {
		na, ne := x.objectSpan(first.a, k)
		pred = x.join(pred, x.span(na, ne))
		first.a = k
	}
	// "takes care of the garden"
	if k := first.a + 1; k+1 < first.b && x.wordIs(k, first.b, "of") && x.bare(first.a, k) && e.traits&vMulti == 0 &&
		len(rest) == 0 && e.lemma != "need" && e.lemma != "eat" && e.lemma != "drink" {
		f.predicate = x.join(pred, x.span(first.a, k+1), qualifier)
		f.object = x.object(k+1, first.b)
		x.emit(f)
		return
	}
	inner := false
	var value part
	for k, p := range rest {
		if x.wordIs(p.prep, b, "on", "in") && x.recurring(p.prep, p.b) && k == len(rest)-1 &&
			!x.narrowable(first.a, first.b) && e.traits&vMulti == 0 && !x.weakObject(x.span(first.a, first.b)) &&
			!x.often(first.a, first.b) {
			inner, value = true, p // "holds surgery on Tuesdays"
			break
		}
		if x.recurring(p.prep, p.b) || x.wordIs(p.prep, b, "since", "as") ||
			x.wordIs(p.prep, b, "for") && !x.duration(p) &&
				!(x.quantity(p.a, min(p.b, p.a+3)) && !x.narrowable(first.a, first.b)) {
			continue
		}
		if x.wordIs(p.prep, b, "for") { // "rents out skis for 15 euros a day"
			inner, value = true, p
			break
		}
		if x.innerObject(e, first) || !x.narrowable(first.a, first.b) && !x.wordIs(first.a, b, "a", "an") &&
			x.completes(e, p) {
			inner, value = true, p
		}
		break
	}
	end := first.b
	from := first.a
	if inner {
		na, ne := x.objectSpan(first.a, first.b)
		pred = x.join(pred, x.span(na, ne))
		from, end = value.a, value.b
		if x.wordIs(value.prep, b, "with", "without") && x.tokens[first.a].is(cPossessive) &&
			!x.narrowable(value.a, value.b) {
			from = value.prep // "takes coffee without sugar"
		} else {
			pred = x.join(pred, x.span(value.prep, value.a))
			if label := x.codeLabel(value.a, value.b); label > 0 {
				na, _ := x.trim(value.a, value.b)
				pred = x.join(pred, x.span(na, label))
				from = label
			}
		}
	}
	for _, p := range rest {
		if inner && p == value {
			continue
		}
		switch {
		case x.recurring(p.prep, p.b):
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		case x.wordIs(p.prep, b, "for"), x.wordIs(p.prep, b, "as"), x.wordIs(p.prep, b, "in", "within") && x.duration(p):
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		case x.wordIs(p.prep, b, "since"), x.datingPart(p), x.dating(p.prep, p.b) && !x.temporal(from, end):
		case x.quantity(from, end):
			qualifier = x.join(qualifier, x.content(p.prep, p.b))
		case p.a > from && p.a > end-1:
			end = p.b
		}
	}
	if e.lemma == "prefer" && len(rest) > 0 && x.wordIs(rest[0].prep, b, "to", "over") {
		end = first.b
	}
	if inner {
		f.multi = false // "sells its milk to X"
	}
	f.predicate = x.join(pred, qualifier)
	if inner && from == value.prep {
		f.object = x.span(from, end)
	} else {
		f.object = x.object(from, end)
	}
	if !inner && x.weakObject(f.object) {
		return
	}
	x.emit(f)
	_, ob := x.objectSpan(from, end)
	x.apposition(f.object, ob, b)
}

// duration reports whether a part is a number of hours, days and the like.
func (x *extractor) duration(p part) bool {
	return p.a+1 < p.b && (x.tokens[p.a].kind == number || x.wordIs(p.a, p.b, "a", "an")) &&
		measures().Times[x.tokens[p.b-1].text]
}

// clock reports whether tokens[a:b] are a time of day.
func (x *extractor) clock(a, b int) bool {
	return a < b && x.tokens[a].kind == number && (clockOrYear(x.tokens[a].text) && len(x.tokens[a].text) != 4 ||
		strings.IndexByte(x.tokens[a].text, ':') > 0 ||
		x.wordIs(a+1, b, "am", "pm", "a.m", "p.m", "o'clock")) || x.wordIs(a, b, "noon", "midnight")
}

// quantity reports whether tokens[a:b] are a number with its unit, not a time or a
// date: what stands behind it narrows the statement.
func (x *extractor) quantity(a, b int) bool {
	if a >= b || b-a > 3 || x.temporal(a, b) {
		return false
	}
	t := &x.tokens[a]
	return t.kind == number && (t.is(cNumber) || t.text[0] >= '0' && t.text[0] <= '9') &&
		!strings.ContainsAny(t.text, ":/@") && strings.Count(t.text, ".") < 2
}

// clockTail reports whether p belongs to the time before it: "six in the
// morning".
func (x *extractor) clockTail(first, p part) bool {
	return x.tokens[first.a].kind == number && first.b-first.a <= 2 && x.wordIs(p.prep, p.b, "in", "at") &&
		x.wordIs(p.b-1, p.b, "morning", "afternoon", "evening", "night")
}

// weakObject reports whether an object names nothing: an adverb, "early".
func (x *extractor) weakObject(o phrase) bool {
	if o.empty() {
		return true
	}
	if last := int(x.refs[o.to-1]); x.wordIs(last, last+1, "later", "earlier", "longer") {
		return true
	}
	if o.to-o.from != 1 {
		return false
	}
	t := &x.tokens[x.refs[o.from]]
	if t.is(cFrequency) {
		return false
	}
	return t.kind == word && (t.is(cAdverb|cAdjective|cOpinion|cPronoun|cIndefinite|cParticle) ||
		strings.HasSuffix(t.text, "ly") && !t.upper || x.wordIs(int(x.refs[o.from]), int(x.refs[o.from])+1, "early", "late",
		"well", "soon", "here", "there", "twice", "lot", "more", "less"))
}

// secondObject returns where the second of two objects begins, a quantity: "pays
// Bea 20 euros an hour"; 0 where there is one object.
func (x *extractor) secondObject(e *entry, p part) int {
	if !e.means("charge", "pay", "give", "cost", "offer", "owe", "allow", "grant", "send", "lend",
		"earn", "save", "bill", "award", "permit") {
		return 0
	}
	for k := p.a + 1; k < p.b; k++ {
		if x.tokens[k].kind == number {
			if x.tokens[k-1].kind == number || x.wordIs(k-1, k, "about", "only", "up", "most", "least", "over", "the", "a") {
				return 0
			}
			return k
		}
	}
	return 0
}

// often reports whether "every week", "twice a day" or "three times a year" begins
// at k and goes to the end.
func (x *extractor) often(k, b int) bool {
	return x.wordIs(k, b, "every", "each") || x.wordIs(k, b, "once", "twice") && k+1 < b ||
		x.tokens[k].kind == number && x.wordIs(k+1, b, "times") && k+2 < b
}

// bare reports whether an object is one or two common nouns without an article,
// which belong to their verb: "holds surgery".
func (x *extractor) bare(a, b int) bool {
	return a < b && b-a <= 2 && !x.tokens[a].is(cOpensNP) &&
		!x.any(a, b, func(t *token) bool { return t.kind != word || t.upper })
}

// completes reports whether a phrase behind a verb's object answers what the verb
// asks for: from whom, with what, at what time.
func (x *extractor) completes(e *entry, p part) bool {
	if e.means("prefer", "need", "require", "recommend", "use", "want", "attend", "lead", "head", "chair", "know") {
		return false
	}
	switch {
	case x.wordIs(p.prep, p.b, "from", "with", "via", "through", "under", "by", "into"), x.duration(p):
		return true
	case x.wordIs(p.prep, p.b, "at", "on"):
		return x.narrowable(p.a, p.b)
	case x.wordIs(p.prep, p.b, "to"):
		return e.means("sell", "rent", "lease", "lend", "report", "present", "supply", "offer", "show",
			"donate", "delegate", "assign", "connect", "link", "limit")
	}
	return false
}

// innerObject reports whether a direct object only completes the verb, so that
// the value is in the phrase behind it.
func (x *extractor) innerObject(e *entry, p part) bool {
	if e.means("prefer", "need", "require", "recommend", "use", "want") {
		return false
	}
	if x.any(p.a, p.b, func(t *token) bool { return t.kind == number || t.kind == quoted || t.upper }) {
		return false
	}
	t := &x.tokens[p.a]
	if e.traits&vPlace != 0 {
		return true
	}
	return t.is(cPossessive) || !t.is(cOpensNP) && p.b-p.a <= 2
}

// codeLabel returns where a code begins that a noun before it names: "account
// AT02 …", "extension 212"; 0 where there is none. A platform, a room, a gate is
// part of the value.
func (x *extractor) codeLabel(a, b int) int {
	a, b = x.trim(a, b)
	if b-a < 2 || !x.wordIs(a, b, "account", "extension", "number", "address", "iban", "ext", "bank", "port", "code",
		"channel", "pin") {
		return 0
	}
	k := a + 1
	for k < b && x.tokens[k].kind == word && !x.tokens[k].upper && x.tokens[k].is(cAttribute) {
		k++
	}
	if k < b && (x.tokens[k].kind == number || x.tokens[k].kind == quoted || x.tokens[k].upper) {
		return k
	}
	return 0
}
