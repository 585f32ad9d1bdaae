package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
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
	// Gone are records that somebody took back after they were stored. The agent may have
	// them still: no prompt shows them.
	Gone []memory.Record
	// Brought are further texts that the session brought into messages of a role, as they
	// stand there: a record within one was not recalled.
	Brought map[model.Role][]string

	said    string            // the user's words of the turn
	decided map[string]string // of this turn: what the model sees of a record, by its id
	last    map[string]string // the same of the session
	swaps   []swap            // of the session, the longest first
	bytes   int               // of swaps
}

// manySwaps bounds what is remembered of a session's decisions, and manyBytes their texts.
// What goes beyond is decided anew.
const (
	manySwaps = 1 << 14
	manyBytes = 32 << 20
)

// swap is what the model sees in the place of what the agent has.
type swap struct{ agents, models string }

// Look shows the records of a prompt to the gate and changes the prompt. Each record is
// decided on once a turn.
func (r *Reader) Look(ctx context.Context, said string, prompt []model.Message) error {
	if r.bytes > manyBytes || len(r.swaps) > manySwaps {
		r.decided, r.last, r.swaps, r.bytes = nil, nil, nil, 0
	}
	if r.decided == nil || said != r.said {
		r.said, r.decided = said, map[string]string{}
	}
	records, err := r.Mem.Visible(ctx)
	if err != nil || len(records)+len(r.Gone) == 0 {
		return err
	}
	gone := map[string]bool{}
	for i := range r.Gone {
		gone[r.Gone[i].ID] = true
	}
	records = append(records, r.Gone...) // where one that is there says the same, that is found
	slices.SortStableFunc(records, func(a, b memory.Record) int { return cmp.Compare(len(b.Text), len(a.Text)) })
	spans := make([][]span, len(prompt))
	fresh := map[memory.Route][]string{}
	for i := range prompt {
		route, ok := routes[prompt[i].Role]
		if !ok {
			continue
		}
		spans[i] = r.find(prompt[i].Content, prompt[i].Role, records)
		for _, s := range spans[i] {
			id := s.record.ID
			if _, ok := r.decided[id]; ok && !gone[id] {
				continue
			}
			r.decided[id] = withheld(id) // as long as nobody shows it
			if gone[id] {
				r.swap(swap{s.record.Text, withheld(id)})
			} else {
				fresh[route] = append(fresh[route], id)
			}
		}
	}
	for _, route := range []memory.Route{memory.RouteSnapshot, memory.RouteInject, memory.RouteSearch} {
		if err := r.decide(ctx, memory.Query{Route: route, Text: said}, fresh[route]); err != nil {
			r.decided = nil
			return err
		}
	}
	if r.last == nil {
		r.last = map[string]string{}
	}
	maps.Copy(r.last, r.decided)
	for i := range prompt {
		m := &prompt[i]
		m.Content = r.show(m.Content, spans[i], gone, false)
		m.Calls = r.calls(m.Calls, records, gone)
	}
	return nil
}

// calls are the model's own of a prompt. The agent got what [Reader.Undo] put into them: the
// model does not see by its own call what is kept from it.
func (r *Reader) calls(list []model.Call, records []memory.Record, gone map[string]bool) []model.Call {
	out := list
	for i, c := range list {
		args := slices.Clone(c.Args)
		for j := range args {
			args[j].Value = r.show(args[j].Value, r.find(args[j].Value, model.Assistant, records), gone, true)
		}
		if slices.Equal(args, c.Args) {
			continue
		}
		if &out[0] == &list[0] {
			out = slices.Clone(list)
		}
		out[i].Args = args
	}
	return out
}

// show is a text with its records as the model sees them. In its own words they need not
// name where they come from.
func (r *Reader) show(s string, spans []span, gone map[string]bool, own bool) string {
	for _, sp := range slices.Backward(spans) {
		text, ok := r.last[sp.record.ID]
		if gone[sp.record.ID] {
			text, ok = withheld(sp.record.ID), true
		}
		if !ok || text == sp.record.Text || own && strings.Contains(text, sp.record.Text) {
			continue
		}
		if sp.quoted {
			text = escaped(text)
		}
		s = s[:sp.from] + text + s[sp.to:]
	}
	return s
}

// GoneIn is the id of a record that somebody took back and whose content a text has, "" for
// none. What the user says himself in this session is his own.
func (r *Reader) GoneIn(s string) string {
	for i := range r.Gone {
		rec := &r.Gone[i]
		if !strings.Contains(s, rec.Text) && !slices.Contains(memory.Items(rec.Text), s) {
			continue
		}
		if !slices.ContainsFunc(r.Mem.Window(), func(seg memory.Segment) bool {
			return seg.Origin.Class >= memory.User && strings.Contains(seg.Text, rec.Text)
		}) {
			return rec.ID
		}
	}
	return ""
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
	r.bytes += len(s.agents) + len(s.models)
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

// find returns the records in a text of a role that did not come into it with what the
// session brought, in order, the longest where they overlap. What the agent's makers and its
// memory say in a system message is nothing that the session said.
func (r *Reader) find(content string, role model.Role, records []memory.Record) []span {
	if content == "" {
		return nil
	}
	var out, brought []span
	if role != model.System {
		for _, s := range r.Mem.Window() {
			for from := range occurrences(content, s.Text) {
				brought = append(brought, span{from: from, to: from + len(s.Text)})
			}
		}
	}
	for _, s := range r.Brought[role] {
		for from := range occurrences(content, s) {
			brought = append(brought, span{from: from, to: from + len(s)})
		}
	}
	for i := range records {
		rec := &records[i]
		for _, text := range []string{rec.Text, escaped(rec.Text)} {
			for from := range occurrences(content, text) {
				s := span{from, from + len(text), rec, text != rec.Text}
				over := func(t span) bool { return s.from < t.to && t.from < s.to }
				within := func(t span) bool { return t.from <= s.from && s.to <= t.to }
				if stands(content, s.from, s.to) && !slices.ContainsFunc(out, over) && !slices.ContainsFunc(brought, within) {
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
