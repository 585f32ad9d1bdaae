package contradiction

import (
	"strings"
)

// Bounds on what one text may give. A longer text is read up to the bound; real
// memory entries stay far below them.
const (
	maxFacts  = 4096
	maxClause = 96 // tokens of one clause
)

// phrase is a list of tokens: a range of extractor.refs.
type phrase struct{ from, to int32 }

func (p phrase) empty() bool { return p.from >= p.to }

// fact is one assertion that a text makes.
type fact struct {
	subject, predicate, object phrase
	verb                       *entry // main verb, nil for "is"
	// The text denies it: "the hall has no lift".
	negated bool
	// The slot may hold several values at once ("likes", "speaks"): another value
	// contradicts nothing.
	multi     bool
	by        bool // passive with its agent as object: "is led by Ana"
	keyed     bool // from a key and a value rather than a sentence
	attribute bool // the predicate names an attribute: "X's owner is Y"
	have      bool
}

// extractor reads one text at a time and keeps its buffers for the next one. It
// is not safe for concurrent use.
type extractor struct {
	words  map[string]*entry
	src    string
	tokens []token
	refs   []int32
	facts  []fact
	fold   []byte

	// Between sentences of one text.
	last     phrase // subject of the last assertion, for "it" and "its"
	section  phrase // of an INI file
	parents  []parent
	steps    int // comparisons of words, for the test that says they are linear
	jsonWork int // bytes that failed readings of JSON have cost
}

// parent is a key without a value that nested keys may follow.
type parent struct {
	indent int
	key    phrase
}

func newExtractor() *extractor { return &extractor{words: lexicon()} }

// run reads what a text asserts, in the order of the text: English sentences,
// "key: value" and "key = value" lines, JSON objects, INI sections and tables of
// Markdown. Questions, commands, conditions, hedges and history assert nothing. It
// takes time linear in the text and never fails: what it cannot read it leaves out.
func (x *extractor) run(src string) {
	x.src = src
	x.resetTokens()
	x.refs = x.refs[:0]
	x.facts = x.facts[:0]
	x.last, x.section = phrase{}, phrase{}
	x.parents = x.parents[:0]
	x.jsonWork, x.steps = 0, 0
	x.document()
}

// refsOf makes a phrase of single tokens.
func (x *extractor) refsOf(ids ...int32) phrase {
	from := int32(len(x.refs))
	x.refs = append(x.refs, ids...)
	return phrase{from, int32(len(x.refs))}
}

// span makes a phrase of tokens[a:b].
func (x *extractor) span(a, b int) phrase {
	from := int32(len(x.refs))
	for i := a; i < b; i++ {
		x.refs = append(x.refs, int32(i))
	}
	return phrase{from, int32(len(x.refs))}
}

// join makes one phrase of several.
func (x *extractor) join(list ...phrase) phrase {
	from := int32(len(x.refs))
	for _, p := range list {
		x.refs = append(x.refs, x.refs[p.from:p.to]...)
	}
	return phrase{from, int32(len(x.refs))}
}

// lemma makes a phrase of the verb at i as its lemma.
func (x *extractor) lemma(i int) phrase {
	verb := x.tokens[i]
	verb.lemma = true
	x.tokens = append(x.tokens, verb)
	return x.refsOf(int32(len(x.tokens) - 1))
}

// any reports whether one of tokens[a:b] is as f says.
func (x *extractor) any(a, b int, f func(*token) bool) bool {
	for i := a; i < b; i++ {
		if f(&x.tokens[i]) {
			return true
		}
	}
	return false
}

func (x *extractor) emit(f fact) {
	if len(x.facts) >= maxFacts || x.blank(f.subject) || x.blank(f.predicate) || x.blank(f.object) {
		return
	}
	x.facts = append(x.facts, f)
}

// blank reports whether a phrase spells nothing, like an empty key.
func (x *extractor) blank(p phrase) bool {
	for _, i := range x.refs[p.from:p.to] {
		if strings.TrimSpace(x.tokens[i].text) != "" {
			return false
		}
	}
	return true
}

// phrase spells a phrase: neighbours in the text with what stands between them
// there, everything else with a space.
func (x *extractor) phrase(p phrase) string {
	var b strings.Builder
	x.spell(&b, p)
	return b.String()
}

func (x *extractor) spell(b *strings.Builder, p phrase) {
	refs := x.refs[p.from:p.to]
	for k, i := range refs {
		t := &x.tokens[i]
		if k > 0 {
			prev := refs[k-1]
			if between, ok := x.between(prev, i); ok {
				b.WriteString(between)
			} else {
				b.WriteByte(' ')
			}
		}
		switch {
		case t.lemma && t.entry != nil && t.entry.lemma != "":
			b.WriteString(t.entry.lemma)
		case t.kind == quoted && len(refs) > 1 && i >= pseudoTokens:
			b.WriteString(x.src[t.start:t.end])
		default:
			b.WriteString(t.text)
		}
	}
}

// between returns the text between two neighbouring tokens, if they are
// neighbours and nothing but white space and punctuation stands there.
func (x *extractor) between(a, b int32) (string, bool) {
	if b != a+1 || a < pseudoTokens || x.tokens[b].start < x.tokens[a].end {
		return "", false
	}
	s := x.src[x.tokens[a].end:x.tokens[b].start]
	return s, len(s) <= 2
}
