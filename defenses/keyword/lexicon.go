package keyword

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

//go:embed lexicon.yaml
var lexiconYAML []byte

// Scope says how broad a scan is.
type Scope string

// The scopes.
const (
	Strict  Scope = "strict"  // every pattern
	Relaxed Scope = "relaxed" // patterns that are unlikely in honest text
)

// The families of patterns, as messages name them.
const (
	PromptInjection = "prompt-injection"
	Exfiltration    = "exfiltration"
	Invisible       = "invisible-unicode"
	Bidirectional   = "bidirectional-unicode"
	Terminal        = "terminal-escape"
)

// Threat is one pattern of the scan.
type Threat struct {
	ID     string
	Family string
	Scope  Scope // relaxed patterns belong to both scopes
}

// table is the compiled lexicon.yaml: built when it is first needed, then never
// changed.
type table struct {
	threats    []Threat // those of the file, then those of characters
	warns      []bool   // by threat of the file
	words      *text.Lexicon
	vocabulary map[string]bool // words of the patterns; a beginning of words stands without its star
}

// file is lexicon.yaml.
var file = text.Lists[[]struct {
	ID       string
	Family   string
	Scope    Scope
	Warns    bool
	Words    []string
	Literals []string
}]("keyword: lexicon.yaml", lexiconYAML)

var compiled = sync.OnceValue(func() *table {
	t := &table{vocabulary: make(map[string]bool)}
	entries := make([]text.Entry, len(*file()))
	for i, e := range *file() {
		t.threats, t.warns = append(t.threats, Threat{e.ID, e.Family, e.Scope}), append(t.warns, e.Warns)
		for _, pattern := range e.Words {
			for _, w := range strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune(" ()|?*.#", r) }) {
				t.vocabulary[text.Fold(w)] = true
			}
		}
		entries[i] = text.Entry{ID: e.ID, Words: e.Words, Literals: e.Literals}
	}
	t.threats = append(append(t.threats, directiveThreats[:]...), characterThreats[:]...)
	var err error
	if t.words, err = text.Compile(entries); err != nil {
		panic("keyword: lexicon.yaml: " + err.Error()) // it is part of the program
	}
	return t
})

// Threats lists the patterns of a scope in the order in which findings name
// them.
func Threats(scope Scope) []Threat {
	return slices.DeleteFunc(slices.Clone(compiled().threats), func(t Threat) bool { return !in(t, scope) })
}

// Vocabulary returns a function that knows the words of the patterns, in their
// usual inflections, and common words: for taking apart what was written without
// spaces. Words are folded.
func Vocabulary() func(word string) bool {
	words := compiled().vocabulary
	return func(w string) bool {
		if len(w) < 2 {
			return false
		}
		if words[w] || text.IsCommonWord(w) && (len(w) > 2 || text.IsStopword(w)) {
			return true
		}
		for _, end := range [...]string{"s", "e", "d", "ed", "es", "ing"} {
			if stem, ok := strings.CutSuffix(w, end); ok && len(stem) > 3 && words[stem] {
				return true
			}
		}
		return false
	}
}

func in(t Threat, scope Scope) bool { return scope == Strict || t.Scope == Relaxed }
