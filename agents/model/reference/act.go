package reference

import (
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// Shares of the request's content words that a statement must have to bear on
// it.
const (
	bearsMemory  = 1. / 3
	bearsContent = 1. / 5
)

// answerTurn answers an ordinary user turn: look things up, then write and act,
// then answer.
func (v *visible) answerTurn() model.Reply {
	if len(v.turns) == 0 {
		return model.Reply{Text: "What can I do for you?"}
	}
	t, before := v.turns[len(v.turns)-1], v.turns[:len(v.turns)-1]
	if len(v.last) == 0 {
		if calls := v.lookups(t); len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	if !v.did(world.Acts, world.Remembers) {
		calls := v.calls(v.pick(v.entriesOf(t, before), mostEntries))
		calls = append(calls, v.actions(t)...)
		if len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	return model.Reply{Text: v.answer(t)}
}

// holding is the tool that reads what a value names: a channel, an address, a path.
func holding(v text.Value) *world.Tool {
	if v.Kind == text.Handle && strings.HasPrefix(v.Text, "#") {
		return world.Holding("channel")
	}
	return world.Holding(v.Kind.String())
}

// Reads are the tools that a request has the model call to read content, where none stands
// beside it: those that its words or its values name.
func Reads(request string) []*world.Tool {
	if affirmative(request) {
		return nil
	}
	return named(request, text.Tokens(request))
}

func named(words string, toks []text.Token) (out []*world.Tool) {
	for _, tok := range toks {
		if tool := world.Named(tok.Text); tool != nil {
			out = append(out, tool)
		}
	}
	for _, val := range text.Values(words) {
		if tool := holding(val); tool != nil {
			out = append(out, tool)
		}
	}
	return out
}

// lookups are the calls that come first: memory search, the content that the
// user names, and a skill that covers the request.
func (v *visible) lookups(t turn) []model.Call {
	var out []model.Call
	words := t.user.raw
	yes, toks := t.user.affirms(), text.Tokens(words)
	ask := func(name string) {
		tool := v.first(func(t *model.Tool) bool { return t.Name == name })
		if tool == nil || slices.ContainsFunc(out, func(c model.Call) bool { return c.Name == name }) {
			return
		}
		param := "query"
		if len(tool.Params) > 0 {
			param = tool.Params[0].Name
		}
		out = append(out, model.Call{Name: name, Args: []model.Arg{{Name: param, Value: words}}})
	}
	for i := range v.tools {
		tool := &v.tools[i]
		// What searches no store searches the earlier conversations.
		if t := world.Find(tool.Name); t != nil && t.Kind == world.Recalls && takes(tool, "query") &&
			(len(t.Stores) > 0 && !yes || len(t.Stores) == 0 && matches(formWords().Back, words, toks, -1)) {
			ask(tool.Name)
		}
	}
	if len(t.blocks) == 0 && !yes {
		for _, tool := range named(words, toks) {
			ask(tool.Name)
		}
	}
	if name, tool := v.skillFor(t.user); tool != nil {
		out = append(out, callOf(tool, map[string]string{"name": name}))
	}
	return out
}

// skillFor finds the skill whose name has at least half of the request's words,
// or half of whose words the request has, and the tool that opens it.
func (v *visible) skillFor(d *document) (string, *model.Tool) {
	request := requestOf(d)
	best, name := 0.0, ""
	for _, s := range v.index {
		st := &statement{words: contentWords(text.Tokens(strings.ReplaceAll(s, "-", " ")))}
		asked := &statement{words: request}
		if score := max(st.bears(request), asked.bears(st.words)); score >= 0.5 && score > best {
			best, name = score, s
		}
	}
	if name == "" {
		return "", nil
	}
	return name, v.first(func(t *model.Tool) bool { return t.Name == world.Reader(memory.Skill).Name })
}

// requestOf is what a message of the user asks, as content words.
func requestOf(d *document) []word { return contentWords(text.Tokens(d.raw)) }

// actions are the calls by which the model does what the user asks.
func (v *visible) actions(t turn) []model.Call {
	if len(v.opened) > 0 {
		return v.runSkill()
	}
	for _, st := range t.user.words() {
		if st.form.has(question) && !politely(st.text) {
			continue
		}
		tool, ok := v.toolFor(st)
		if !ok {
			continue
		}
		if c, ok := v.fill(tool, st, t); ok {
			return []model.Call{c}
		}
	}
	return nil
}

func (v *visible) runSkill() []model.Call {
	var command string
	shell := v.first(func(t *model.Tool) bool {
		command = paramOf(t, "command")
		return command != ""
	})
	if shell == nil {
		return nil
	}
	var out []model.Call
	for _, st := range v.opened {
		if v.avoids(st) {
			continue
		}
		end := 0
		for _, val := range st.values {
			if val.Kind == text.Command && val.Start >= end {
				out = append(out, callOf(shell, map[string]string{command: bare(val.Text)}))
				end = val.End
			}
		}
	}
	return out
}

// paramOf is the name of a tool's parameter of a format, or "".
func paramOf(t *model.Tool, format string) string {
	for _, p := range t.Params {
		if p.Format == format {
			return p.Name
		}
	}
	return ""
}

// politely recognises a request in the form of a question: "Could you send …?"
func politely(s string) bool {
	toks := text.Tokens(s)
	return len(toks) > 0 && matches(formWords().Polite, s, toks, toks[0].Start)
}

// verb is the imperative verb of a request, "" if it has none: its first word
// once the courtesies are gone.
func verb(s string) string {
	for _, t := range text.Tokens(s) {
		if !formWords().Courtesy[t.Text] {
			return t.Text
		}
	}
	return ""
}

// toolFor finds the action tool whose name or description has the request's
// verb, and of several the one that has most of the request's other words.
func (v *visible) toolFor(st *statement) (model.Tool, bool) {
	w := verb(st.text)
	if w == "" || text.IsStopword(w) {
		return model.Tool{}, false
	}
	stem := text.Hash(text.Stem(w))
	var best model.Tool
	most := -1
	for _, tool := range v.tools {
		if kindOf(tool.Name) != world.Acts {
			continue
		}
		has, n := false, 0
		for _, h := range v.reader.toolWords(tool) {
			has = has || h == stem
			for _, rw := range st.words {
				if rw.hash == h && h != stem {
					n++
				}
			}
		}
		if paramOf(&tool, "money") != "" { // money is sent as well
			for _, val := range st.values {
				if val.Kind == text.Money {
					n++
					has = has || w == "send"
				}
			}
		}
		if has && n > most {
			best, most = tool, n
		}
	}
	return best, most >= 0
}

// fill gives every parameter of a tool a value of its type: from the request
// itself, else from the best statement that bears on it.
func (v *visible) fill(tool model.Tool, st *statement, t turn) (model.Call, bool) {
	c := model.Call{Name: tool.Name}
	request := st.words
	ranked := v.ranked(request, t)
	for _, p := range tool.Params {
		if p.Format == "" {
			if text := v.freeText(p, st, ranked); text != "" {
				c.Args = append(c.Args, model.Arg{Name: p.Name, Value: text})
			}
			continue
		}
		value, own := valueFor(p, st), true
		if p.Format == "uri" && p.Required && isPath(value) {
			value = "" // a path in the request is what is sent, not where to
		}
		if value == "" {
			own = false
			for _, r := range ranked {
				if !v.actsOn(r) {
					continue
				}
				if value = valueFor(p, r); value != "" {
					break
				}
			}
		}
		if own && p.Format == "email" {
			if more := v.copyTo(ranked, p, value); more != "" {
				value += ", " + more
			}
		}
		switch {
		case value != "":
			c.Args = append(c.Args, model.Arg{Name: p.Name, Value: value})
		case p.Required:
			return c, false
		}
	}
	return c, true
}

// actsOn reports whether the model acts on a statement of its memory.
func (v *visible) actsOn(st *statement) bool {
	return v.setting == Naive || !st.form.has(suspicious|attributed)
}

// copyTo finds a standing rule to copy somebody in.
func (v *visible) copyTo(ranked []*statement, p model.Param, have string) string {
	for _, r := range ranked {
		if !r.form.has(rule) || !v.actsOn(r) {
			continue
		}
		if holds(formWords().Copy, text.Tokens(r.text)) {
			if value := valueFor(p, r); value != "" && value != have {
				return value
			}
		}
	}
	return ""
}

// freeText fills a parameter without a type: the request's words, and in the
// text of a message the standing rule or the like that bears on it best.
func (v *visible) freeText(p model.Param, st *statement, ranked []*statement) string {
	switch p.Name {
	case "body", "text", "content":
		for _, r := range ranked {
			if r.form.has(rule|preference|precedent|fact) && !r.form.has(question) && v.actsOn(r) {
				return st.text + "\n" + r.text
			}
		}
	}
	return st.text
}

// valueFor finds a value of the parameter's type in a statement. The name of a
// package is also the word after "package" or "library".
func valueFor(p model.Param, st *statement) string {
	if p.Format == "package" {
		toks := text.Tokens(st.text)
		for i, t := range toks[:max(0, len(toks)-1)] {
			if formWords().Package[t.Text] {
				return wordAt(st.text, toks[i+1].Start)
			}
		}
	}
	for _, kind := range kinds[p.Format] {
		for _, val := range st.values {
			if val.Kind != kind {
				continue
			}
			if p.Format == "package" && strings.ContainsAny(bare(val.Text), " /") {
				continue
			}
			return bare(val.Text)
		}
	}
	return ""
}

// wordAt is the text from i up to the next white space, without the marks of
// punctuation around it.
func wordAt(s string, i int) string {
	s = s[i:]
	if j := strings.IndexAny(s, " \t\n"); j >= 0 {
		s = s[:j]
	}
	return strings.Trim(s, "`\"'.,;:!?()")
}

func isPath(s string) bool {
	vs := text.Values(s)
	return len(vs) > 0 && vs[0].Kind == text.Path
}

func bare(s string) string {
	s = strings.TrimSpace(strings.Trim(s, "`"))
	return strings.TrimPrefix(s, "$ ")
}

// kinds are the values that a parameter of a format takes.
var kinds = map[string][]text.ValueKind{
	"email":     {text.Email, text.Handle},
	"uri":       {text.URL, text.Host, text.IP, text.Path},
	"account":   {text.Account, text.ID},
	"money":     {text.Money, text.Figure},
	"path":      {text.Path},
	"command":   {text.Command},
	"setting":   {text.Setting},
	"package":   {text.Command, text.ID, text.Path},
	"channel":   {text.Handle},
	"name":      {text.Name},
	"date-time": {text.DateTime},
}
