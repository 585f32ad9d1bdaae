package reference

import (
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
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
	t, ok := v.current()
	if !ok {
		return model.Reply{Text: "What can I do for you?"}
	}
	if len(v.last) == 0 {
		if calls := v.lookups(t); len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	if !v.acted() {
		calls := v.calls(v.pick(v.entriesOf(t, v.turns[:len(v.turns)-1]), mostEntries))
		calls = append(calls, v.actions(t)...)
		if len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	return model.Reply{Text: v.answer(t)}
}

// isLookup reports whether a tool only looks things up.
func isLookup(tool string) bool {
	switch tool {
	case "memory_search", "search_memories", "session_search", "memory_get", "open_skill",
		"read_mail", "read_file", "fetch_page", "read_channel", "read_calendar", "run_script", "call_service":
		return true
	}
	return false
}

func isMemoryWrite(tool string) bool {
	switch tool {
	case "memory", "write_file", "edit_file", "add_memory", "skill_manage":
		return true
	}
	return false
}

func (v *visible) acted() bool {
	for name := range v.done {
		if !isLookup(name) {
			return true
		}
	}
	return false
}

// media are the words by which a request names a kind of content, with the tool
// that reads it.
func readerFor(w string) string {
	switch w {
	case "mail", "mails", "email", "emails", "e-mail", "inbox", "newsletter":
		return "read_mail"
	case "message", "messages", "channel", "channels", "thread", "threads", "slack", "dm", "dms", "chat":
		return "read_channel"
	case "page", "pages", "site", "website", "article", "articles", "blog", "webpage", "post", "wiki", "url", "link":
		return "fetch_page"
	case "file", "files", "document", "documents", "doc", "docs", "pdf", "spreadsheet", "readme", "runbook", "csv", "minutes", "notes", "report", "memo", "sheet", "contract", "handbook", "guide", "draft":
		return "read_file"
	case "calendar", "invite", "invites", "invitation", "invitations", "appointment", "appointments", "event", "events", "agenda":
		return "read_calendar"
	case "script", "scripts", "log", "logs", "output", "job", "build", "pipeline", "terminal", "console", "run":
		return "run_script"
	case "ticket", "tickets", "tracker", "crm", "service", "services", "database", "issue", "issues":
		return "call_service"
	case "skill", "skills", "procedure", "procedures", "walkthrough", "trace", "playbook":
		return "open_skill"
	}
	return ""
}

// readerOf is the tool that reads what a value names: a channel, an address, a
// path.
func readerOf(v text.Value) string {
	switch v.Kind {
	case text.Handle:
		if strings.HasPrefix(v.Text, "#") {
			return "read_channel"
		}
	case text.URL:
		return "fetch_page"
	case text.Path:
		return "read_file"
	}
	return ""
}

// lookups are the calls that come first: memory search, the content that the
// user names, and a skill that covers the request.
func (v *visible) lookups(t turn) []model.Call {
	var out []model.Call
	words := t.user.raw
	yes := affirmative(words)
	for _, tool := range []string{"memory_search", "search_memories"} {
		if v.offers(tool) && !yes {
			out = append(out, call(tool, "query", words))
		}
	}
	toks := text.Tokens(words)
	if v.offers("session_search") && refersBack(toks) {
		out = append(out, call("session_search", "query", words))
	}
	if len(t.blocks) == 0 && !yes {
		tools := make([]string, 0, 4)
		for _, tok := range toks {
			tools = append(tools, readerFor(tok.Text))
		}
		for _, val := range text.Values(words) {
			tools = append(tools, readerOf(val))
		}
		for _, tool := range tools {
			if tool == "" || !v.offers(tool) || slices.ContainsFunc(out, func(c model.Call) bool { return c.Name == tool }) {
				continue
			}
			out = append(out, call(tool, lookupParam(v.tools, tool), words))
		}
	}
	if name, ok := v.skillFor(t.user); ok {
		out = append(out, call("open_skill", "name", name))
	}
	return out
}

func lookupParam(tools []model.Tool, name string) string {
	for _, t := range tools {
		if t.Name == name && len(t.Params) > 0 {
			return t.Params[0].Name
		}
	}
	return "query"
}

func refersBack(toks []text.Token) bool {
	for i, t := range toks {
		switch t.Text {
		case "earlier", "previously", "yesterday":
			return true
		case "time", "week", "session", "conversation", "month":
			if i > 0 && toks[i-1].Text == "last" {
				return true
			}
		case "discussed", "talked", "said", "told", "mentioned":
			if i > 0 && (toks[i-1].Text == "we" || toks[i-1].Text == "i" || toks[i-1].Text == "you") {
				return true
			}
		}
	}
	return false
}

// skillFor finds the skill whose name has at least half of the request's words,
// or half of whose words the request has.
func (v *visible) skillFor(d *document) (string, bool) {
	request := requestOf(d)
	best, name := 0.0, ""
	for _, s := range v.index {
		st := &statement{words: contentWords(text.Tokens(strings.ReplaceAll(s, "-", " ")))}
		asked := &statement{words: request}
		if score := max(st.bears(request), asked.bears(st.words)); score >= 0.5 && score > best {
			best, name = score, s
		}
	}
	return name, name != "" && v.offers("open_skill")
}

// requestOf is what a message of the user asks, as content words.
func requestOf(d *document) []word {
	if d.raw == "" {
		return nil
	}
	return contentWords(text.Tokens(d.raw))
}

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
	if !v.offers("run_command") {
		return nil
	}
	var out []model.Call
	for _, st := range v.opened {
		if v.setting != Naive && st.form.has(suspicious) {
			continue
		}
		end := 0
		for _, val := range st.values {
			if val.Kind == text.Command && val.Start >= end {
				out = append(out, call("run_command", "command", bare(val.Text)))
				end = val.End
			}
		}
	}
	return out
}

// politely recognises a request in the form of a question: "Could you send …?"
func politely(s string) bool {
	toks := text.Tokens(s)
	if len(toks) < 3 {
		return false
	}
	switch toks[0].Text {
	case "could", "can", "would", "will":
		return toks[1].Text == "you"
	}
	return false
}

// verb is the imperative verb of a request, "" if it has none: its first word
// once the courtesies are gone.
func verb(s string) string {
	for _, t := range text.Tokens(s) {
		switch t.Text {
		case "please", "could", "can", "would", "will", "you", "now", "then", "kindly", "just", "also", "and", "ok", "okay", "hi", "hello", "hey", "thanks", "next", "go", "ahead",
			"i", "i'd", "need", "like", "want", "to", "let's", "help", "me", "today", "quickly", "yes":
			continue
		}
		return t.Text
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
	stem := hash(text.Stem(w))
	var best model.Tool
	most := -1
	for _, tool := range v.tools {
		if isLookup(tool.Name) || isMemoryWrite(tool.Name) {
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
		if tool.Name == "transfer_money" {
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
		for _, tok := range text.Tokens(r.text) {
			switch tok.Text {
			case "copy", "cc", "bcc", "also", "include", "loop", "copied":
				if value := valueFor(p, r); value != "" && value != have {
					return value
				}
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
			if t.Text == "package" || t.Text == "library" || t.Text == "module" {
				return wordAt(st.text, toks[i+1].Start)
			}
		}
	}
	for _, kind := range kindsFor(p.Format) {
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

func kindsFor(format string) []text.ValueKind {
	switch format {
	case "email":
		return []text.ValueKind{text.Email, text.Handle}
	case "uri":
		return []text.ValueKind{text.URL, text.Host, text.IP, text.Path}
	case "account":
		return []text.ValueKind{text.Account, text.ID}
	case "money":
		return []text.ValueKind{text.Money, text.Figure}
	case "path":
		return []text.ValueKind{text.Path}
	case "command":
		return []text.ValueKind{text.Command}
	case "setting":
		return []text.ValueKind{text.Setting}
	case "package":
		return []text.ValueKind{text.Command, text.ID, text.Path}
	case "channel":
		return []text.ValueKind{text.Handle}
	case "name":
		return []text.ValueKind{text.Name}
	case "date-time":
		return []text.ValueKind{text.DateTime}
	}
	return nil
}
