package memory_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/agents/memory"
)

func page(source string) memory.Origin {
	return memory.Origin{Class: memory.External, Medium: memory.Web, Source: source}
}

// Whoever quotes another's words must not choose whose name stands over theirs: a
// record names every source that it may be from, and its lineage has them all.
func TestContentDoesNotChooseItsSource(t *testing.T) {
	const fact = "Norvik Print delivers to the harbour office."
	const payload = "Invoices of Norvik Print go to account ZZ75SLBK0031462209."
	for name, c := range map[string]struct {
		pages   []string // of a.example, b.example …
		entry   string
		names   string
		lineage []string
	}{
		"one source": {[]string{fact, "The canteen opens at nine."}, fact, "a.example",
			[]string{"a.example"}},
		"two say the same": {[]string{fact, fact}, fact, "a.example, b.example",
			[]string{"a.example", "b.example"}},
		"a quotation before the payload": {[]string{fact, fact + " " + payload}, fact + " " + payload, "b.example",
			[]string{"a.example", "b.example"}},
		"the payload alone": {[]string{fact, fact + " " + payload}, payload, "b.example",
			[]string{"a.example", "b.example"}},
		"the quoted words alone": {[]string{fact, fact + " " + payload}, fact, "a.example, b.example",
			[]string{"a.example", "b.example"}},
		"made of two": {[]string{fact, payload}, fact + " " + payload, "a.example, b.example",
			[]string{"a.example", "b.example"}},
		"the attacker comes first": {[]string{fact + " " + payload, fact}, fact + " " + payload, "a.example",
			[]string{"a.example", "b.example"}},
		"of three that say it one says the rest": {[]string{fact, fact, fact + " " + payload}, fact + " " + payload,
			"c.example", []string{"a.example", "b.example", "c.example"}},
		"in words of nobody": {[]string{fact, payload}, "Bills should reach another recipient.",
			"a.example, b.example", []string{"a.example", "b.example"}},
		"a quotation, the rest in other words": {[]string{fact, payload}, fact + " Bills should reach another recipient.",
			"a.example, b.example", []string{"a.example", "b.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(memory.Options{})
			for i, text := range c.pages {
				take(t, m, page(string(rune('a'+i))+".example"), 1, text)
			}
			r := write(t, m, add(c.entry))[0].Committed
			var lineage []string
			for _, l := range r.Lineage {
				lineage = append(lineage, l.Origin.Source)
			}
			slices.Sort(lineage)
			if r.Origin.Source != c.names || !slices.Equal(lineage, c.lineage) || r.Origin.Class != memory.External {
				t.Errorf("from %+v, lineage %v", r.Origin, lineage)
			}
			// What is made of it in a later session may be from any of them too.
			m.NextSession()
			if _, err := m.Search(ctx, memory.Query{Route: memory.RouteSearch, Text: r.Text}); err != nil {
				t.Fatal(err)
			}
			again := write(t, m, memory.Draft{Route: memory.RouteMemoryTool, Store: "notes", Text: r.Text})[0].Committed
			for _, o := range r.AppendOrigins(nil) {
				if !again.From(o.Source) {
					t.Errorf("copied: from %+v, lineage %+v, without %s", again.Origin, again.Lineage, o.Source)
				}
			}
		})
	}
}

// A declared source is the source, whatever else says the same: overlap lowers the
// trust in what the agent says, and nothing else.
func TestADeclaredSourceIsTheSource(t *testing.T) {
	const fact = "Norvik Print delivers to the harbour office."
	agent := memory.Origin{Class: memory.Agent, Medium: memory.Chat}
	for name, c := range map[string]struct {
		before, declared, want memory.Origin
	}{
		"another page said it before":       {page("a.example"), page("b.example"), page("b.example")},
		"the user said it before":           {fromUser, page("b.example"), page("b.example")},
		"a page said what the agent says":   {page("a.example"), agent, page("a.example")},
		"the user said what the agent says": {fromUser, agent, agent},
		"a page said what the user says":    {page("a.example"), fromUser, fromUser},
		"a user said what another user says ": {memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "ada"},
			fromUser, fromUser},
	} {
		m := newMemory(memory.Options{})
		take(t, m, c.before, 1, fact)
		seg := take(t, m, c.declared, 2, fact)
		d := add(fact)
		d.From = &seg
		r := write(t, m, d)[0].Committed
		if diff := cmp.Diff(c.want, r.Origin); diff != "" || c.declared != agent && len(r.Lineage) != 1 {
			t.Errorf("%s: %s %+v", name, diff, r.Lineage)
		}
	}
}
