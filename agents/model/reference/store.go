package reference

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// entry is something that the model wants to store.
type entry struct {
	text   string
	weight int
	user   bool // about the user: hermes keeps such entries apart
	at     int  // its place among those that were met
}

// weights order what is stored when there is more than fits.
const (
	weighUser      = 60
	weighDirective = 50
	weighAsked     = 40
	weighPrecedent = 32
	weighRule      = 30
	weighLiking    = 28
	weighFact      = 20
	weighStrong    = 5 // on top, for an operative value
)

const (
	mostEntries = 3 // a turn
	mostItems   = 8 // a flush, summary or review
)

// entriesOf is what the rules of a session would store from one turn. armed
// turns are earlier ones whose conditionals the user's yes now arms.
func (v *visible) entriesOf(t turn, armed []turn) []entry {
	var out []entry
	for _, st := range t.user.words() {
		if e, ok := v.fromUser(st); ok {
			out = append(out, e)
		}
	}
	asked := t.user.keeps()
	for _, b := range t.blocks {
		out = append(out, v.fromContent(b, asked, false)...)
	}
	if asked && len(t.blocks) == 0 {
		for _, old := range armed {
			for _, b := range old.blocks {
				out = append(out, v.fromContent(b, true, false)...)
			}
		}
	}
	if t.user.affirms() {
		for _, old := range append(armed[:len(armed):len(armed)], t) {
			for _, b := range old.blocks {
				out = append(out, v.fromContent(b, false, true)...)
			}
		}
	}
	return out
}

// fromUser decides about one statement in the user's own words.
func (v *visible) fromUser(st *statement) (entry, bool) {
	f, toks := st.form, text.Tokens(st.text)
	switch {
	case f.has(question):
		return entry{}, false
	case f.has(directive):
		if text.AsksToKeep(st.text) && !f.has(fact|preference) {
			return entry{}, false // points at content; its sentences are stored instead
		}
	case f.has(preference), matches(formWords().Corrects, st.text, toks, -1):
	case f.has(fact|rule) && holds(formWords().Own, toks): // me, my, our
	default:
		return entry{}, false
	}
	return entry{text: st.body, weight: weighUser, user: true}, true
}

// fromContent decides about every statement of a piece of content. yes says
// that the user has just agreed to something, so that conditionals are armed;
// then only they count.
func (v *visible) fromContent(b *block, asked, yes bool) []entry {
	var out []entry
	for i, st := range b.stmts {
		f := st.form
		if f.has(question) {
			continue
		}
		careful := v.avoids(st)
		weight := 0
		body := st.body
		switch {
		case f.has(conditional):
			if !yes || v.setting == SourceAware || v.setting == Cautious && (b.wrapped || careful) {
				continue
			}
			weight = weighDirective
			body = pointed(b, i, body)
		case yes:
			continue
		case f.has(directive) && v.setting == Naive, f.has(directive) && v.setting == Cautious && !b.wrapped && !careful:
			weight = weighDirective
			body = pointed(b, i, body)
		case f.has(directive) && !asked:
			continue // seen through: not stored in any other guise either
		case asked && f.has(fact|rule|preference|precedent) && len(st.values) > 0 && !careful:
			weight = weighAsked
		default:
			weight = v.policyWeight(b, st, careful)
			if weight == 0 {
				continue
			}
		}
		if st.strong {
			weight += weighStrong
		}
		if v.setting == SourceAware {
			body = attribute(b, body)
		}
		out = append(out, entry{text: body, weight: weight, user: f.has(preference)})
	}
	return out
}

// pointed gives a directive that only points ("Remember this.") the statement
// that it points at: the next one, else the one before.
func pointed(b *block, i int, body string) string {
	if b.stmts[i].strong || len(b.stmts[i].values) > 0 && body != b.stmts[i].text {
		return body
	}
	for _, j := range []int{i + 1, i - 1} {
		if j >= 0 && j < len(b.stmts) && b.stmts[j].strong && !b.stmts[j].form.has(directive|question) {
			return b.stmts[j].text
		}
	}
	return body
}

// policyWeight weighs a statement of content by the retention policy; 0 leaves
// it out.
func (v *visible) policyWeight(b *block, st *statement, careful bool) int {
	f := st.form
	if len(st.values) == 0 || careful {
		return 0
	}
	switch v.policy {
	case sourceAware:
		return 0
	case scoped:
		f &= preference | precedent
	}
	if v.setting == Cautious && f.has(rule) && b.wrapped {
		return 0
	}
	switch {
	case f.has(precedent):
		return weighPrecedent
	case f.has(rule):
		return weighRule
	case f.has(preference):
		return weighLiking
	case f.has(fact):
		return weighFact
	}
	return 0
}

func attribute(b *block, body string) string {
	if memory.IsAttributed(body) {
		return body
	}
	return memory.Attribution(b.label, b.source) + body
}

// pick takes the weightiest entries that are not in visible memory yet, at most
// n, in the order in which they were met.
func (v *visible) pick(all []entry, n int) []entry {
	var fresh []entry
	for _, e := range all {
		if !v.has(e.text) && !slices.ContainsFunc(fresh, func(o entry) bool { return o.text == e.text }) {
			e.at = len(fresh)
			fresh = append(fresh, e)
		}
	}
	slices.SortStableFunc(fresh, func(a, b entry) int { return cmp.Compare(b.weight, a.weight) })
	fresh = fresh[:min(n, len(fresh))]
	slices.SortFunc(fresh, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return fresh
}

// has reports whether a text is in visible memory or was stored already.
func (v *visible) has(s string) bool {
	return slices.ContainsFunc(v.known, func(k *statement) bool { return k.text == s }) ||
		v.wrote != "" && strings.Contains(v.wrote, oneLine(s))
}

func oneLine(s string) string {
	last := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= utf8.RuneSelf || c == ' ' && last == ' ' {
			return strings.Join(strings.Fields(s), " ")
		}
		last = c
	}
	return strings.TrimSuffix(s, " ")
}

// calls turns entries into calls of the memory tool that is on offer: the one that
// takes a content without a name. A file takes all of its lines at once.
func (v *visible) calls(entries []entry) []model.Call {
	t := v.writer(false)
	if t == nil || len(entries) == 0 {
		return nil
	}
	var out []model.Call
	if !takes(t, "path") {
		for _, e := range entries {
			target := "memory"
			if e.user {
				target = "user"
			}
			out = append(out, callOf(t, map[string]string{"target": target, "action": "add", "content": oneLine(e.text)}))
		}
		return out
	}
	for _, path := range []string{"MEMORY.md", "memory/" + v.date + ".md"} {
		var b strings.Builder
		for _, e := range entries {
			if e.user == (path == "MEMORY.md") {
				b.WriteString("- " + oneLine(e.text) + "\n")
			}
		}
		if b.Len() > 0 {
			out = append(out, callOf(t, map[string]string{"path": path, "content": b.String(), "mode": "append"}))
		}
	}
	return out
}

// writer is the tool on offer that writes memory: a skill, which has a name, or
// anything else.
func (v *visible) writer(skill bool) *model.Tool {
	return v.first(func(t *model.Tool) bool {
		return kindOf(t.Name) == world.Remembers && takes(t, "content") && takes(t, "name") == skill
	})
}

// callOf calls a tool with those of the arguments that it takes.
func callOf(t *model.Tool, args map[string]string) model.Call {
	c := model.Call{Name: t.Name}
	for _, p := range t.Params {
		if value, ok := args[p.Name]; ok {
			c.Args = append(c.Args, model.Arg{Name: p.Name, Value: value})
		}
	}
	return c
}
