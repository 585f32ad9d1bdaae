package provenance

import (
	_ "embed"
	"slices"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

//go:embed policy.yaml
var policyYAML []byte

// Intent is a kind of action in which a false memory does lasting harm.
type Intent string

// The high-risk intents.
const (
	Payment    Intent = "payment"
	Identity   Intent = "identity"
	Deployment Intent = "deployment"
	Security   Intent = "security"
)

// intents is the order in which they are looked at and named.
var intents = [...]Intent{Payment, Identity, Deployment, Security}

// standingRule is the lexicon entry behind the intents.
const standingRule = len(intents)

// policy is policy.yaml.
type policy struct {
	Trust          map[memory.Class]float64
	Floor          float64
	WriteFloor     float64  `yaml:"write_floor"`
	TrustedSources []string `yaml:"trusted_sources"`
	Intents        map[Intent][]string
	StandingRules  []string `yaml:"standing_rules"`

	terms *text.Lexicon // the intents, then standing rules
}

var file = text.Lists[policy]("provenance: policy.yaml", policyYAML)

// compiled is built when it is first needed, then never changed.
var compiled = sync.OnceValue(func() *policy {
	p := file()
	var entries []text.Entry
	for _, i := range intents {
		entries = append(entries, text.Entry{ID: string(i), Words: p.Intents[i]})
	}
	var err error
	p.terms, err = text.Compile(append(entries, text.Entry{ID: "standing_rule", Words: p.StandingRules}))
	if err != nil {
		panic("provenance: policy.yaml: " + err.Error()) // it is part of the program
	}
	return p
})

// Trust is the trust in a record: its own score if it has one, else that of its
// origin's class.
func Trust(r *memory.Record) float64 {
	if r.Trust != nil {
		return *r.Trust
	}
	return compiled().Trust[r.Origin.Class]
}

// low reports whether a record is trusted less than floor. A record that brings
// its own score must also name a trusted source: a score alone is anybody's
// claim. A record without one is known by its class, and what its origin calls
// itself does not count.
func (p *policy) low(r *memory.Record, floor float64) bool {
	return !(Trust(r) >= floor) || r.Trust != nil && !slices.Contains(p.TrustedSources, r.Origin.Source)
}

// Term is a place in a text that bears on a high-risk intent or states a
// standing rule.
type Term struct {
	Intent     Intent // "" for a standing rule
	Start, End int    // bytes
}

// Reader reads terms off texts, one after the other, and keeps its buffers
// between them. It belongs to one goroutine.
type Reader struct {
	matches []text.Match
	terms   []Term
}

// Terms returns the first term of each intent and the first standing rule of a
// text. The result is good until the next call.
func (x *Reader) Terms(t *text.Text) []Term {
	x.matches = compiled().terms.FindIn(x.matches[:0], t)
	x.terms = x.terms[:0]
	for _, m := range x.matches {
		t := Term{Start: m.Start, End: m.End}
		if m.Entry < standingRule {
			t.Intent = intents[m.Entry]
		}
		x.terms = append(x.terms, t)
	}
	return x.terms
}

// Intents reads the high-risk intents off a text, such as a query.
func Intents(s string) []Intent {
	var out []Intent
	for _, m := range compiled().terms.Find(nil, s, text.Scan(s)) {
		if m.Entry < standingRule {
			out = append(out, intents[m.Entry])
		}
	}
	return out
}
