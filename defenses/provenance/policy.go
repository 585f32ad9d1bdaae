package provenance

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v4"

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

// policy is the compiled policy.yaml: built when it is first needed, then never
// changed.
type policy struct {
	trust      [memory.System + 1]float64 // by class
	floor      float64
	writeFloor float64
	sources    []string
	terms      *text.Lexicon // the intents, then standing rules
}

var compiled = sync.OnceValue(func() *policy {
	p, err := compile(policyYAML)
	if err != nil {
		panic("provenance: policy.yaml: " + err.Error()) // it is part of the program
	}
	return p
})

func compile(data []byte) (*policy, error) {
	var file struct {
		Trust          map[string]float64  `yaml:"trust"`
		Floor          float64             `yaml:"floor"`
		WriteFloor     float64             `yaml:"write_floor"`
		TrustedSources []string            `yaml:"trusted_sources"`
		Intents        map[Intent][]string `yaml:"intents"`
		StandingRules  []string            `yaml:"standing_rules"`
	}
	if err := yaml.Load(data, &file, yaml.WithKnownFields()); err != nil {
		return nil, err
	}
	p := &policy{floor: file.Floor, writeFloor: file.WriteFloor, sources: file.TrustedSources}
	if len(file.Trust) != len(p.trust) || len(file.Intents) != len(intents) {
		return nil, fmt.Errorf("it needs the trust of the %d source classes and the terms of the %d intents", len(p.trust),
			len(intents))
	}
	for c := range p.trust {
		trust, ok := file.Trust[memory.Class(c).String()]
		if !ok {
			return nil, fmt.Errorf("trust of %s is missing", memory.Class(c))
		}
		p.trust[c] = trust
	}
	var entries []text.Entry
	for _, i := range intents {
		if len(file.Intents[i]) == 0 {
			return nil, fmt.Errorf("the intent %s has no terms", i)
		}
		entries = append(entries, text.Entry{ID: string(i), Words: file.Intents[i]})
	}
	entries = append(entries, text.Entry{ID: "standing_rule", Words: file.StandingRules})
	var err error
	p.terms, err = text.Compile(entries)
	return p, err
}

// Trust is the trust in a record: its own score if it has one, else that of its
// origin's class.
func Trust(r *memory.Record) float64 {
	if r.Trust != nil {
		return *r.Trust
	}
	if int(r.Origin.Class) >= len(compiled().trust) {
		return 0
	}
	return compiled().trust[r.Origin.Class]
}

// low reports whether a record is trusted less than floor. A record that brings
// its own score must also name a trusted source: a score alone is anybody's
// claim. A record without one is known by its class, and what its origin calls
// itself does not count.
func (p *policy) low(r *memory.Record, floor float64) bool {
	return !(Trust(r) >= floor) || r.Trust != nil && !slices.Contains(p.sources, r.Origin.Source)
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

// CallIntents reads the high-risk intents off a tool call: its tool's name and
// the query behind it.
func CallIntents(c memory.Call) []Intent {
	return Intents(words(c.Tool) + ". " + c.Query.Text)
}

// words takes a tool's name apart: send_payment, deploy.service, sendPayment.
func words(name string) string {
	out := make([]rune, 0, len(name)+4)
	lower := false
	for _, r := range name {
		if r == '_' || r == '.' || r == '-' || r == '/' || r == ':' || lower && unicode.IsUpper(r) {
			out = append(out, ' ')
		}
		lower = unicode.IsLower(r)
		if r != '_' {
			out = append(out, r)
		}
	}
	return string(out)
}
