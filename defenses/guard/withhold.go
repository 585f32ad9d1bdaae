package guard

import (
	_ "embed"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

//go:embed withhold.yaml
var withholdYAML []byte

// withholdWords are token patterns (package internal/text) by family.
var withholdWords = text.Lists[map[string][]string]("guard: withhold.yaml", withholdYAML)

// The families of what a recall withholds.
const (
	leavesOut    = "leaves_out"   // that something is not to be done
	usersLiking  = "users_liking" // what the user likes or wants
	contradicted = "contradicted" // a value that the user's own records have otherwise

	// By which a sentence is no evidence, or a number is asked for.
	whenever   = "whenever"
	beside     = "beside"
	howMany    = "how_many"
	dayWord    = "day_word"
	hourWord   = "hour_word"
	someNumber = "some_number"
)

var withholds = sync.OnceValue(func() map[string]*text.Patterns {
	out := map[string]*text.Patterns{}
	for family, list := range *withholdWords() {
		p, err := text.NewPatterns(list)
		if err != nil {
			panic("guard: withhold.yaml: " + err.Error()) // it is part of the program
		}
		out[family] = p
	}
	return out
})

// withhold finds the parts of an outsider's record that no call would show to the action
// gate: that something is not to be done, what the user likes, and what his own records
// contradict. It returns what is left: "You need not ask; the code is 4711" keeps its code.
func (g *gate) withhold(s string) string {
	var left []string
	took := false
	take := func(family string, start, end int) {
		f := found(WithheldCheck, Medium, family, withheldNotes[family])
		f.Family, f.Start, f.End = family, start, end
		g.subject.add(f)
		took = true
	}
	for _, st := range text.Sentences(s) {
		if g.otherwise(st.Text) {
			take(contradicted, st.Start, st.End)
			continue
		}
		at := st.Start
		for part := range clauses(st.Text) {
			if family := withheld(part); family != "" {
				take(family, at, at+len(part))
			} else if kept := strings.TrimSpace(part); kept != "" {
				left = append(left, kept)
			}
			at += len(part)
		}
	}
	if !took {
		return s
	}
	return strings.Join(left, " ")
}

// clauses are the parts of a sentence between semicolons, and colons before a space.
func clauses(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			end := len(s)
			if i := strings.IndexByte(s, ';'); i >= 0 {
				end = i + 1
			}
			if i := strings.Index(s[:end], ": "); i >= 0 {
				end = i + 1
			}
			if !yield(s[:end]) {
				return
			}
			s = s[end:]
		}
	}
}

var withheldNotes = map[string]string{
	leavesOut:    "an outside source says what is not to be done",
	usersLiking:  "an outside source says what the user likes or wants",
	contradicted: "the user's own memory says otherwise",
}

func withheld(clause string) string {
	clause = text.Fold(clause)
	for _, family := range []string{leavesOut, usersLiking} {
		if withholds()[family].Match(clause) {
			return family
		}
	}
	return ""
}

// typesOf are the types by which a sentence's values are compared without a tool that
// wants them.
var typesOf = []world.Type{"account", "mailbox", "phone", "url", "host"}

// otherwise reports whether the user's own records have another value for what a
// sentence gives one for.
func (g *gate) otherwise(sentence string) bool {
	if len(g.facts.by) == 0 {
		return false
	}
	for _, v := range text.Values(sentence) {
		i := slices.IndexFunc(typesOf, func(t world.Type) bool { return kindsOf[t].has(v.Kind) })
		if i < 0 || v.Kind == text.ID {
			continue
		}
		c := &claim{of: typesOf[i], value: v.Text, seek: text.Seek(v.Text)}
		c.add(sentence)
		slices.Sort(c.all)
		if c.all = slices.Compact(c.all); g.facts.weigh(c) == memoryAgainst {
			return true
		}
	}
	return false
}
