package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
)

// Reader finds the records of a memory in the prompts of an agent that keeps it by itself,
// and shows each to the read gate: what was found has lineage from then on, and the model
// sees it as the gate leaves it. Who uses it has the memory for himself.
type Reader struct {
	Mem *memory.Memory
	// Shown is told of each record that the gate lets into a prompt; nil is nobody.
	Shown func(memory.Route, memory.Recalled)

	said    string            // the user's words of the turn
	decided map[string]string // of this turn: what the model sees of a record, by its id
	swaps   []swap            // of the session, the longest first
}

// swap is what the model sees in the place of what the agent has.
type swap struct{ agents, models string }

// Look shows the records of a prompt to the gate and changes the prompt. Each record is
// decided on once a turn.
func (r *Reader) Look(ctx context.Context, said string, prompt []model.Message) error {
	if r.decided == nil || said != r.said {
		r.said, r.decided = said, map[string]string{}
	}
	records, err := r.Mem.Visible(ctx)
	if err != nil || len(records) == 0 {
		return err
	}
	slices.SortStableFunc(records, func(a, b memory.Record) int { return cmp.Compare(len(b.Text), len(a.Text)) })
	spans := make([][]span, len(prompt))
	fresh := map[memory.Route][]string{}
	for i := range prompt {
		if spans[i] = r.find(&prompt[i], records); len(spans[i]) == 0 {
			continue
		}
		route := routes[prompt[i].Role]
		for _, s := range spans[i] {
			if _, ok := r.decided[s.record.ID]; !ok {
				fresh[route] = append(fresh[route], s.record.ID)
				r.decided[s.record.ID] = withheld(s.record.ID) // as long as nobody shows it
			}
		}
	}
	for _, route := range []memory.Route{memory.RouteSnapshot, memory.RouteInject, memory.RouteSearch} {
		if err := r.decide(ctx, memory.Query{Route: route, Text: said}, fresh[route]); err != nil {
			r.decided = nil
			return err
		}
	}
	for i := range prompt {
		for _, s := range slices.Backward(spans[i]) {
			text := r.decided[s.record.ID]
			if text == s.record.Text {
				continue
			}
			if s.quoted {
				text = escaped(text)
			}
			prompt[i].Content = prompt[i].Content[:s.from] + text + prompt[i].Content[s.to:]
		}
	}
	return nil
}

// routes are how a record came into a message of a role.
var routes = map[model.Role]memory.Route{model.System: memory.RouteSnapshot, model.User: memory.RouteInject,
	model.ToolRole: memory.RouteSearch}

// decide asks the gate about records by their ids.
func (r *Reader) decide(ctx context.Context, q memory.Query, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	shown, _, err := r.Mem.Screen(ctx, q, ids)
	if err != nil {
		return err
	}
	for _, s := range shown {
		r.decided[s.Record.ID] = s.Text
		if r.Shown != nil {
			r.Shown(q.Route, s)
		}
		if s.Text != s.Record.Text {
			r.swap(swap{s.Record.Text, s.Text})
		}
		if s.Attributed {
			if head, _, ok := strings.Cut(s.Text, attributed); ok { // a model may quote its beginning, under the same head
				word, _, _ := strings.Cut(s.Record.Text, " ")
				r.swap(swap{word, head + attributed + word})
			}
		}
	}
	for _, id := range ids {
		if r.decided[id] != withheld(id) {
			continue
		}
		if rec, ok := r.Mem.View().Get(id); ok {
			r.swap(swap{rec.Text, withheld(id)})
		}
	}
	return nil
}

// attributed ends the head of an attribution.
const attributed = " says: "

// withheld is what the model sees of a record that the gate shows to nobody. In what the
// model writes it stands for the record, or an edit of a whole file would delete it.
func withheld(id string) string { return "[withheld: " + id + "]" }

func (r *Reader) swap(s swap) {
	if s.models == "" || slices.Contains(r.swaps, s) { // nothing stands for nothing
		return
	}
	r.swaps = append(r.swaps, s)
	slices.SortStableFunc(r.swaps, func(a, b swap) int { return cmp.Compare(len(b.models), len(a.models)) })
}

// Undo takes out of a call's arguments what the gate brought into the prompt, and reports
// whether there was any. What it kept from the model stays so, but for a call that stores:
// it would take the entry away. In a mail it would be sent.
func (r *Reader) Undo(c model.Call, stores bool) (model.Call, bool) {
	changed := false
	out := c
	for i, a := range c.Args {
		v := a.Value
		for _, s := range r.swaps {
			if !stores && !strings.Contains(s.models, s.agents) {
				continue
			}
			v = strings.ReplaceAll(v, s.models, s.agents)
			if q := escaped(s.models); q != s.models {
				v = strings.ReplaceAll(v, q, escaped(s.agents))
			}
		}
		if v == a.Value {
			continue
		}
		if !changed {
			out.Args, changed = slices.Clone(c.Args), true
		}
		out.Args[i].Value = v
	}
	return out, changed
}

// span is a record in a message, from one byte up to another.
type span struct {
	from, to int
	record   *memory.Record
	quoted   bool // as JSON has it
}

// long is from how many bytes on a record is found wherever it stands. A shorter one must
// have a line or a quotation for itself.
const long = 16

// find returns the records in a message that did not come into it with what the session
// brought, in order, the longest where they overlap.
func (r *Reader) find(m *model.Message, records []memory.Record) []span {
	if _, ok := routes[m.Role]; !ok || m.Content == "" {
		return nil
	}
	var out, brought []span
	if m.Role != model.System { // the session brings nothing into what the agent's makers and its memory say
		for _, s := range r.Mem.Window() {
			for from := range occurrences(m.Content, s.Text) {
				brought = append(brought, span{from: from, to: from + len(s.Text)})
			}
		}
	}
	for i := range records {
		rec := &records[i]
		for _, text := range []string{rec.Text, escaped(rec.Text)} {
			for from := range occurrences(m.Content, text) {
				s := span{from, from + len(text), rec, text != rec.Text}
				over := func(t span) bool { return s.from < t.to && t.from < s.to }
				within := func(t span) bool { return t.from <= s.from && s.to <= t.to }
				if stands(m.Content, s.from, s.to) && !slices.ContainsFunc(out, over) && !slices.ContainsFunc(brought, within) {
					out = append(out, s)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return out
}

// occurrences yields where a part begins in a text.
func occurrences(s, part string) func(func(int) bool) {
	return func(yield func(int) bool) {
		for at := 0; part != ""; {
			i := strings.Index(s[at:], part)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i + len(part)
		}
	}
}

// stands reports whether a stretch of a text is no part of a longer word, and a short one
// no part of a sentence.
func stands(s string, from, to int) bool {
	word := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	first, _ := utf8.DecodeRuneInString(s[from:])
	last, _ := utf8.DecodeLastRuneInString(s[:to])
	after, _ := utf8.DecodeRuneInString(s[to:])
	if word(before) && word(first) || word(last) && word(after) {
		return false
	}
	if to-from >= long {
		return true
	}
	head := strings.TrimRight(s[:from], " -*•\t")
	open := head == "" || strings.ContainsAny(head[len(head)-1:], "\n\"")
	return open && (to == len(s) || strings.ContainsAny(s[to:to+1], "\n\r\""))
}

// escaped is a text as a JSON string has it, without the quotation marks.
func escaped(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}
