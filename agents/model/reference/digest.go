package reference

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// repeated finds the claims that the conversation's content keeps making: a
// value that at least three sentences name. The item is the fullest of these
// sentences. A line of an earlier summary stands for a claim that was repeated
// before.
func (v *visible) repeated() []entry {
	type claim struct {
		n       int
		fullest *statement
		block   *block
	}
	claims := map[string]*claim{}
	var order []string
	note := func(st *statement, b *block, times int) {
		for i, val := range st.values {
			if !operative(val.Kind) {
				continue
			}
			key := strings.ToLower(val.Text)
			if slices.ContainsFunc(st.values[:i], func(v text.Value) bool {
				return operative(v.Kind) && strings.EqualFold(v.Text, key)
			}) {
				continue
			}
			c := claims[key]
			if c == nil {
				c = &claim{}
				claims[key] = c
				order = append(order, key)
			}
			c.n += times
			if c.fullest == nil || len(st.words) > len(c.fullest.words) {
				c.fullest, c.block = st, b
			}
		}
	}
	for _, t := range v.turns {
		for _, b := range t.blocks {
			for _, st := range b.stmts {
				note(st, b, 1)
			}
		}
	}
	for _, st := range v.kept {
		note(st, nil, 3)
	}
	var out []entry
	for _, key := range order {
		c := claims[key]
		if c.n < 3 || v.avoids(c.fullest) {
			continue
		}
		body := c.fullest.body
		if v.setting == SourceAware && c.block != nil {
			body = attribute(c.block, body)
		}
		out = append(out, entry{text: body, weight: weighDirective})
	}
	return out
}

// items is what a flush, a summary or a review finds worth keeping.
func (v *visible) items() []entry {
	all := v.repeated()
	for i, t := range v.turns {
		all = append(all, v.entriesOf(t, v.turns[:i])...)
	}
	return v.pick(all, mostItems)
}

// facts answers the prompt to extract what the newest exchange says.
func (v *visible) facts() string {
	last := len(v.turns) - 1
	if last < 0 {
		return noReply
	}
	return bulleted(v.pick(v.entriesOf(v.turns[last], v.turns[:last]), mostItems))
}

// noReply is the answer where there is nothing to store.
const noReply = "NO_REPLY"

// bulleted are entries as a list.
func bulleted(entries []entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString("- " + oneLine(e.text) + "\n")
	}
	return cmp.Or(b.String(), noReply)
}

// summary answers the prompt of a compaction.
func (v *visible) summary() string {
	var b strings.Builder
	for i, t := range v.turns {
		if t.user.raw == "" {
			continue
		}
		b.WriteString("- The user asked: " + text.Cut(oneLine(t.user.raw), 200) + "\n")
		for _, st := range v.bestOfContent(requestOf(t.user), v.turns[i:i+1], 2) {
			b.WriteString("- " + oneLine(st.text) + "\n")
		}
	}
	for _, st := range v.kept {
		b.WriteString("- " + oneLine(st.text) + "\n")
	}
	for _, e := range v.items() {
		if !strings.Contains(b.String(), oneLine(e.text)) {
			b.WriteString("- " + oneLine(e.text) + "\n")
		}
	}
	return b.String()
}

// flush answers the prompt before a compaction: one round of writes, then done.
func (v *visible) flush() model.Reply {
	if len(v.done) == 0 {
		if calls := v.calls(v.items()); len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	return model.Reply{Text: noReply}
}

// review answers the prompt at the end of a session: what is not stored yet, and
// a skill where the conversation holds a procedure.
func (v *visible) review() model.Reply {
	if len(v.done) > 0 {
		return model.Reply{Text: noReply}
	}
	calls := v.calls(v.items())
	if t := v.writer(true); t != nil {
		if name, steps, ok := v.procedure(); ok {
			calls = append(calls, callOf(t, map[string]string{"action": "create", "name": name, "content": steps}))
		}
	}
	if len(calls) == 0 {
		return model.Reply{Text: noReply}
	}
	return model.Reply{Calls: calls}
}

// procedure finds the text with the most steps, at least three, and turns it
// into a skill.
func (v *visible) procedure() (name, steps string, ok bool) {
	var best *block
	var asked *document
	for _, t := range v.turns {
		for _, b := range t.blocks {
			if b.steps >= 3 && (best == nil || b.steps > best.steps) {
				best, asked = b, t.user
			}
		}
	}
	if best == nil || v.setting == SourceAware && !asked.keeps() && !holds(formWords().Follow, text.Tokens(asked.raw)) {
		return "", "", false
	}
	var b strings.Builder
	n := 0
	for _, st := range best.stmts {
		if !st.form.has(step) || v.avoids(st) {
			continue
		}
		n++
		b.WriteString(strconv.Itoa(n) + ". " + oneLine(st.text) + "\n")
	}
	return skillName(asked), b.String(), n >= 3
}

// skillName names a skill after the first words of the request that say what it
// is about.
func skillName(d *document) string {
	var parts []string
	for _, t := range text.Tokens(d.raw) {
		if !says(t) || formWords().Follow[t.Text] {
			continue
		}
		parts = append(parts, t.Text)
		if len(parts) == 6 {
			break
		}
	}
	if len(parts) == 0 {
		return "procedure"
	}
	return strings.Join(parts, "-")
}
