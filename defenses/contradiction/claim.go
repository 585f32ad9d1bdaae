package contradiction

// claim is a fact as the knowledge base keeps it: which slot it fills, and with
// what. One fact may make several claims: that Ana leads the team fills the slot
// "what Ana leads" and the slot "who leads the team".
type claim struct {
	slot uint64 // of subject and predicate
	bare uint64 // of the attribute alone, without its owner; 0 where it says too little
	own  bool   // the slot has an owner ("Norvik's billing contact")
	// functional slots have one value whatever it is. The others conflict only
	// where two values exclude each other, as two numbers of one unit do.
	functional bool
	negated    bool
	multi      bool
	fact       int32  // index of the fact
	object     phrase // the value
}

// Tags keep apart slots of the same words.
const (
	tagValue uint64 = iota // attributes, agents of passives, and times
	tagPlace
	tagObject // object of a verb
	tagPrep   // plus the preposition
)

// claims appends what the facts just read claim.
func (x *extractor) claims(dst []claim) []claim {
	for i := range x.facts {
		dst = x.claimsOf(dst, int32(i))
	}
	return dst
}

func (x *extractor) claimsOf(dst []claim, i int32) []claim {
	f := &x.facts[i]
	c := claim{fact: i, negated: f.negated, multi: f.multi, object: f.object}
	var s stems
	switch {
	case f.attribute, f.keyed:
		// "X's Y is Z", "Y: Z"
		x.addPhrase(&s, f.predicate)
		words := s.n
		c.functional = true
		if f.attribute {
			if s.n >= 2 {
				c.bare = s.key(tagValue)
			}
			x.addPhrase(&s, f.subject)
			c.own = s.n > words
		} else {
			x.addPhrase(&s, f.subject)
			if s.n >= 2 {
				c.bare = s.key(tagValue)
			}
		}
		if s.n == 0 {
			return dst
		}
		c.slot = s.key(tagValue)
		return append(dst, c)
	case f.have:
		x.addPhrase(&s, f.subject)
		x.addPhrase(&s, f.predicate)
		c.slot = s.key(tagObject)
		return append(dst, c)
	case f.verb == nil:
		return x.copulaClaims(dst, f, c)
	}
	return x.verbClaims(dst, f, c)
}

// copulaClaims are those of "X is Z" and "X is in Z".
func (x *extractor) copulaClaims(dst []claim, f *fact, c claim) []claim {
	var s stems
	x.addPhrase(&s, f.subject)
	if s.n == 0 {
		return dst
	}
	subjectStems := s
	x.addPhrase(&s, f.predicate)
	prep := x.preposition(f.predicate)
	head := x.head(f.subject)
	switch {
	case prep == nil || x.timeObject(f.object):
		named := x.upperPhrase(f.subject)
		c.functional = head.is(cAttribute) && !named
		if c.functional && s.n >= 2 {
			c.bare = s.key(tagValue)
		}
		c.slot = s.key(tagValue)
		// A thing that is no person has one name: "the winner is Ana".
		if !named && x.upperPhrase(f.object) {
			c.functional = true
		}
		dst = append(dst, c)
		// "Rolf is the owner of the clock shop": the shop's owner is Rolf.
		if named && !f.negated && prep == nil && x.definite(f.object) {
			var o stems
			x.addPhrase(&o, f.object)
			if o.n > 0 && x.anyAttribute(f.object) {
				dst = append(dst, claim{slot: o.key(tagValue), functional: true, fact: c.fact, object: f.subject,
					negated: f.negated})
			}
		}
	default:
		c.functional = true
		c.slot = s.key(tagPrep + prep.stem)
		dst = append(dst, c)
		if prep.classes&cPreposition != 0 && s == subjectStems && x.isWord(prep, "in") {
			dst = append(dst, claim{slot: s.key(tagPlace), functional: true, fact: c.fact, object: f.object, negated: f.negated})
		}
	}
	return dst
}

// verbClaims are those of other verbs.
func (x *extractor) verbClaims(dst []claim, f *fact, c claim) []claim {
	var s stems
	x.addPhrase(&s, f.subject)
	if s.n == 0 {
		return dst
	}
	bare := s
	x.addPhrase(&s, f.predicate)
	prep := x.preposition(f.predicate)
	c.functional = true
	timed := x.timeObject(f.object)
	switch {
	case f.by:
		c.slot = s.key(tagValue)
		return append(dst, c)
	case f.verb.traits&vLight != 0, x.naming(f.verb): // "stays", "equals": no more than "is"
		c.slot = bare.key(tagValue)
		return append(dst, c)
	case timed && (prep != nil || f.verb.lemma == "take"):
		// "The fair starts on 4 August", "is on 4 August", "was moved to".
		if f.verb.means("start", "begin", "take", "happen", "move", "postpone", "reschedule", "push",
			"bring", "shift", "hold", "set", "commence") {
			c.slot = bare.key(tagValue)
			dst = append(dst, c)
		}
		c.slot = s.key(tagPrep)
		return append(dst, c)
	case prep == nil:
		c.slot = s.key(tagObject)
		dst = append(dst, c)
		// "Svetlana leads the design team": who leads the team?
		if !f.multi && !f.negated && inverseUnique(f.verb) && x.definite(f.object) && x.upperPhrase(f.subject) {
			var o stems
			x.addPhrase(&o, f.object)
			x.addEntry(&o, f.verb)
			dst = append(dst, claim{slot: o.key(tagValue), functional: true, fact: c.fact, object: f.subject})
		}
		return dst
	case f.verb.lemma == "belong":
		c.slot = s.key(tagValue)
		return append(dst, c)
	}
	switch f.verb.lemma {
	case "keep", "store", "hang", "park", "hide", "stand", "sit", "lie", "leave", "locate", "place", "put":
		c.slot = s.key(tagPlace) // one place at a time, whatever the preposition
		return append(dst, c)
	case "move", "relocate":
		if x.isWord(prep, "to") {
			dst = append(dst, claim{slot: bare.key(tagPlace), functional: true, fact: c.fact, object: f.object,
				negated: f.negated})
			x.addEntry(&bare, x.words["live"])
			dst = append(dst, claim{slot: bare.key(tagPrep + x.words["in"].stem), functional: true, fact: c.fact,
				object: f.object, negated: f.negated})
		}
	}
	if x.isWord(prep, "into") {
		prep = x.words["to"]
	}
	c.slot = s.key(tagPrep + prep.stem)
	return append(dst, c)
}

// naming reports whether a verb only gives a name.
func (x *extractor) naming(e *entry) bool {
	return e == x.words["call"] || e == x.words["called"] || e == x.words["named"]
}

// inverseUnique lists verbs of which a thing has one subject at a time.
func inverseUnique(e *entry) bool {
	return e.means("lead", "head", "chair", "own", "manage", "direct", "run", "captain", "coach",
		"edit", "supervise", "coordinate", "oversee")
}

func (x *extractor) isWord(e *entry, w string) bool { return e == x.words[w] }

// preposition returns the last preposition of a predicate that stands before its
// qualifiers: the first one after the verb, or nil.
func (x *extractor) preposition(p phrase) *entry {
	for _, i := range x.refs[p.from:p.to] {
		if t := &x.tokens[i]; t.is(cPreposition) && t.kind == word && t.entry != nil && !t.lemma && i >= pseudoTokens {
			return t.entry
		}
	}
	return nil
}

// head is the last word of a phrase before any preposition.
func (x *extractor) head(p phrase) *token {
	last := &x.tokens[tokIs]
	for _, i := range x.refs[p.from:p.to] {
		t := &x.tokens[i]
		if t.is(cPreposition) && t.kind == word {
			break
		}
		last = t
	}
	return last
}

func (x *extractor) upperPhrase(p phrase) bool {
	if p.empty() {
		return false
	}
	i := x.refs[p.from]
	if i == tokUser {
		return true
	}
	t := &x.tokens[i]
	if t.upper && t.entry != nil && t.start >= 0 && (t.start == 0 || t.is(cAttribute)) {
		return false // a capital at the start of a sentence, or of a key
	}
	return t.upper && t.kind != quoted
}

func (x *extractor) anyAttribute(p phrase) bool {
	for _, i := range x.refs[p.from:p.to] {
		t := &x.tokens[i]
		if t.is(cAttribute) {
			return true
		}
		if t.is(cPreposition) {
			break
		}
	}
	return false
}

// definite reports whether "the", "our" or the like stood before a phrase.
func (x *extractor) definite(p phrase) bool {
	if p.empty() {
		return false
	}
	i := x.refs[p.from]
	if i-1 < pseudoTokens || i < pseudoTokens {
		return false
	}
	prev := &x.tokens[i-1]
	return prev.is(cPossessive) || prev.is(cArticle) && prev.text != "a" && prev.text != "an" && prev.text != "A"
}

func (x *extractor) timeObject(p phrase) bool {
	if p.empty() {
		return false
	}
	a, b := int(x.refs[p.from]), int(x.refs[p.to-1])+1
	if a < int(pseudoTokens) || b < a {
		return false
	}
	return x.temporal(a, min(b, len(x.tokens))) || x.clock(a, min(b, len(x.tokens)))
}
