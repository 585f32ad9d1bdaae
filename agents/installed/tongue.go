package installed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/remote"
)

// Tongue is the reference model behind a product. It reads the product's prompts as the
// product's file says, has the model answer what stands in them, and says the answer in
// the product's own tools. Nothing of a prompt gets another meaning: what the file does
// not know of is left out, and nothing is kept from one request to the next.
type Tongue struct {
	product *Product
	model   model.Model
}

// Behind puts a model that is no language model behind a product; any other it returns as
// it is. A model may stand in bounds, which know it by a method Unwrap.
func Behind(p *Product, m model.Model) model.Model {
	bare := m
	for {
		u, ok := bare.(interface{ Unwrap() model.Model })
		if !ok {
			break
		}
		bare = u.Unwrap()
	}
	if n, ok := bare.(model.Namer); !ok || n.IsLLM() {
		return m
	}
	return &Tongue{p, m}
}

// maxRounds is how often the model is asked in one turn of the user's, before it stops.
const maxRounds = 40

// Next implements [model.Model].
func (t *Tongue) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := t.fits(req.Tools); err != nil {
		return model.Reply{}, remote.Spoilt(remote.GivenUp, "the reference model cannot work behind %s: %w",
			t.product.Title, err)
	}
	h := t.hear(req)
	if h.rounds > maxRounds {
		return model.Reply{Text: "I stopped: this went on for too long."}, nil
	}
	if calls, err := h.reading(); err != nil {
		return model.Reply{}, remote.Spoilt(remote.GivenUp, "the reference model cannot work behind %s: %w",
			t.product.Title, err)
	} else if len(calls) > 0 {
		return model.Reply{Calls: calls}, nil
	}
	if h.first {
		return model.Reply{Text: "I have read it."}, nil
	}
	r, err := t.model.Next(ctx, h.req)
	if err != nil {
		return r, err
	}
	if h.is == extraction {
		r.Text = h.stored(r.Text)
	}
	r.Calls = h.say(r.Calls)
	if r.Text == "" && len(r.Calls) == 0 {
		r.Text = "Nothing of note."
	}
	return r, nil
}

// fits holds the tools that a product offers to what its file says of them. A request
// without tools, or with some of them, is one of the product's own purposes.
func (t *Tongue) fits(tools []model.Tool) error {
	writes := len(tools) == 0 || slices.ContainsFunc(t.product.Tools, func(k Tool) bool { return k.Answers != "" })
	for i := range tools {
		o := &tools[i]
		k := t.product.Tool(o.Name)
		if k == nil {
			continue
		}
		for _, path := range k.Args {
			name, _, _ := strings.Cut(path, "[]")
			if !slices.ContainsFunc(o.Params, func(p model.Param) bool { return p.Name == name }) {
				return fmt.Errorf("its tool %s takes no argument %q: versions that were tried are %s",
					k.Name, name, strings.Join(t.product.Tried, ", "))
			}
		}
		writes = writes || k.Does == gate.Stores || k.Does == gate.Writes
	}
	if !writes {
		return fmt.Errorf("it offers none of the tools that write its memory (%s): versions that were tried are %s",
			strings.Join(t.product.writers(), ", "), strings.Join(t.product.Tried, ", "))
	}
	return nil
}

// writers are the names of the tools that write memory.
func (p *Product) writers() (names []string) {
	for _, t := range p.Tools {
		if t.Does == gate.Stores || t.Does == gate.Writes {
			names = append(names, t.Name)
		}
	}
	return names
}

// heard is a request in the model's own words.
type heard struct {
	*Tongue
	req    model.Request
	offers []model.Tool // the product's
	is     string       // what the newest message of the user's role is; "" is the user's own
	today  string
	files  map[string]string // that were read since then, by path
	rounds int               // asked since then

	prompt string          // the newest system message, as it is
	unread []pointer       // of the newest turn
	first  bool            // the newest turn asks to read what the next one speaks of
	held   []model.Message // of such a turn
	inline string          // content that came in its words
	script string          // and what a job's script showed
}

// What the model is told where a product asks for something in words of its own.
var asides = map[string]string{
	"flush":      "Store durable memories now.",
	"review":     "Review the conversation above.",
	"compaction": "Summarise the conversation so far.",
	extraction:   "Extract the facts of the last exchange.",
}

// extraction is the message that asks for the facts of a conversation, job that which begins
// a job of the user's.
const (
	extraction = "extraction"
	job        = "job"
)

func (t *Tongue) hear(req model.Request) *heard {
	h := &heard{Tongue: t, offers: req.Tools, req: model.Request{Seed: req.Seed, MaxTokens: req.MaxTokens}}
	h.req.Tools = h.tools()
	called := map[string]*model.Call{} // by id
	var asked map[string]pointer       // calls that read what the user spoke of, by id
	add := func(m model.Message) {
		if h.first {
			h.held = append(h.held, m)
		} else {
			h.req.Messages = append(h.req.Messages, m)
		}
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		switch m.Role {
		case model.System:
			_, is := t.product.User(m.Content)
			if h.is = cmp.Or(is, h.is); is == "" {
				h.prompt = m.Content
				add(model.Message{Role: model.System, Content: h.system(m.Content)})
			}
		case model.User:
			said, is := t.product.User(m.Content)
			if is == "context" || is == "nudge" {
				continue
			}
			if is == "" && h.is == "compaction" { // what the system message asked for
				is = h.is
			}
			h.is, h.files, h.rounds = is, map[string]string{}, 0
			if is == extraction {
				h.quoted(m.Content)
				continue
			}
			if is == "compaction" {
				add(model.Message{Role: model.User, Content: m.Content})
			}
			if is == job { // to the model it is the user's turn
				said, is, h.is = h.message().Said.in(m.Content), "", ""
				if c := t.product.Channels[external.ByJob]; c != nil {
					h.script = c.Within.in(m.Content)
				}
			}
			if is == "" {
				said, h.unread = pointers(said)
				asked = map[string]pointer{}
				if rest, ok := strings.CutPrefix(said, external.ReadFirst); ok {
					h.first, h.inline = true, h.inline+rest
					continue
				}
				said += h.inline
			}
			held := h.held
			h.first, h.held, h.inline = false, nil, ""
			add(model.Message{Role: model.User, Content: cmp.Or(asides[is], said)})
			for _, m := range held {
				add(m)
			}
			h.shown(add)
		case model.Assistant:
			h.rounds++
			o := model.Message{Role: model.Assistant, Content: m.Content}
			for j := range m.Calls {
				c := &m.Calls[j]
				called[c.ID] = c
				if i := slices.IndexFunc(h.unread, func(p pointer) bool { return h.reads(c, p) }); i >= 0 {
					asked[c.ID] = h.unread[i]
					h.unread = slices.Delete(h.unread, i, i+1)
					if asked[c.ID].via != external.ByMCP {
						continue // it comes with its result
					}
				}
				if c := h.made(c); c.Name != "" {
					o.Calls = append(o.Calls, c)
				}
			}
			if o.Content != "" && !h.first || len(o.Calls) > 0 {
				add(o)
			}
		case model.ToolRole:
			c := called[m.CallID]
			if c == nil {
				continue
			}
			if p, ok := asked[m.CallID]; ok && p.via != external.ByMCP {
				h.read(p, m.CallID, t.result(c.Name, m.Content), add)
				continue
			}
			if k := t.product.Tool(c.Name); k != nil && k.Does == gate.Reads {
				if path := c.Get(k.Args["path"]); h.files != nil && path != "" {
					h.files[path] = k.contents(m.Content)
				}
				continue
			}
			if o := h.made(c); o.Name != "" {
				add(model.Message{Role: model.ToolRole, Name: o.Name, CallID: m.CallID, Content: t.result(c.Name, m.Content)})
			}
		}
	}
	return h
}

// tools are what the product offers, as the model knows it: its memory by the tools of
// the catalog that do the same, and those of ours by their own names.
func (h *heard) tools() (out []model.Tool) {
	offer := func(name string) {
		if t := world.Find(name); t != nil && !slices.ContainsFunc(out, func(o model.Tool) bool { return o.Name == name }) {
			out = append(out, t.Tool)
		}
	}
	files := true // are the only way to write memory
	for i := range h.offers {
		if k := h.product.Tool(h.offers[i].Name); k != nil && k.Does == gate.Stores {
			files = files && k.Fixed["store"] != ""
		}
	}
	for i := range h.offers {
		o := &h.offers[i]
		if name, ours := strings.CutPrefix(o.Name, h.product.MCPPrefix); ours {
			out = append(out, model.Tool{Name: name, Description: o.Description, Params: o.Params})
			continue
		}
		if k := h.product.Tool(o.Name); k != nil && (files || k.Does != gate.Writes) {
			offer(k.known())
		}
	}
	return out
}

// known is the tool of the catalog that does what a tool of a product does, or "".
func (k *Tool) known() string {
	switch {
	case k.Does == gate.Stores && k.Fixed["store"] == "skills":
		return "skill_manage"
	case k.Does == gate.Stores:
		return "memory"
	case k.Does == gate.Writes:
		return "write_file"
	case k.Does == gate.Recalls && k.Args["query"] != "":
		if t := world.Find(k.Name); t != nil && t.Kind == world.Recalls {
			return k.Name
		}
		return "search_memories"
	}
	return ""
}

// system is a system message: the day, and the memory that it shows.
func (h *heard) system(content string) string {
	var b strings.Builder
	p := &h.product.Prompt
	if p.Today.Regexp != nil {
		if m := p.Today.FindStringSubmatch(content); m != nil {
			if day, err := time.Parse(p.Layout, m[1]); err == nil {
				h.today = day.Format(time.DateOnly)
				b.WriteString("Today is " + h.today + ".\n")
			}
		}
	}
	for i := range h.product.Stores {
		s := &h.product.Stores[i]
		if entries := s.shown(content, p.Ends); len(entries) > 0 {
			block(&b, s.Name, entries)
		}
	}
	return b.String()
}

// quoted takes the conversation of an extraction for the one that the model had.
func (h *heard) quoted(content string) {
	m := h.message()
	var known []struct{ Text string }
	_ = json.Unmarshal([]byte(m.Knows.in(content)), &known) // what is no list holds none
	var like []string
	for _, k := range known {
		like = append(like, k.Text)
	}
	var system strings.Builder
	block(&system, "memories", like)
	said := m.Said.in(content)
	var spoken []model.Message
	at := m.Speaker.FindAllStringSubmatchIndex(said, -1)
	for i, s := range at {
		to := len(said)
		if i+1 < len(at) {
			to = at[i+1][0]
		}
		role, words := model.Role(said[s[2]:s[3]]), strings.TrimSpace(said[s[1]:to])
		if role == model.System {
			system.WriteString(h.system(words))
		} else {
			spoken = append(spoken, model.Message{Role: role, Content: words})
		}
	}
	h.req.Messages = append([]model.Message{{Role: model.System, Content: system.String()}}, spoken...)
	h.req.Messages = append(h.req.Messages, model.Message{Role: model.User, Content: asides[extraction]})
}

// stored is an answer to an extraction as the product reads it.
func (h *heard) stored(answer string) string {
	return h.product.stores(extraction).answer(slices.DeleteFunc(memory.Items(answer),
		func(fact string) bool { return fact == "NO_REPLY" }))
}

// answer is a reply in which the product finds facts to store.
func (t *Tool) answer(facts []string) string {
	list := []map[string]string{}
	for _, fact := range facts {
		list = append(list, map[string]string{t.Args["text"]: fact})
	}
	b, _ := json.Marshal(map[string]any{t.Answers: list}) // texts always encode
	return string(b)
}

// block writes entries of memory as the profiles show them.
func block(b *strings.Builder, name string, entries []string) {
	b.WriteString("\n<memory file=\"" + name + "\">\n")
	for _, e := range entries {
		b.WriteString("- " + strings.Join(strings.Fields(e), " ") + "\n")
	}
	b.WriteString("</memory>\n")
}

// shown are the entries of a store that a prompt shows: what stands between the line of
// its heading and what ends it.
func (s *Store) shown(prompt string, ends Pattern) []string {
	if s.Heading.Regexp == nil {
		return nil
	}
	at := s.Heading.FindStringIndex(prompt)
	if at == nil {
		return nil
	}
	rest := prompt[at[1]:]
	if ends.Regexp != nil {
		if end := ends.FindStringIndex(rest); end != nil {
			rest = rest[:end[0]]
		}
	}
	return s.split(rest)
}

// made is a call of the product's as the model made it; its name is "" where the model
// did not.
func (h *heard) made(c *model.Call) model.Call {
	out := model.Call{ID: c.ID}
	if name, ours := strings.CutPrefix(c.Name, h.product.MCPPrefix); ours {
		out.Name, out.Args = name, c.Args
		return out
	}
	k := h.product.Tool(c.Name)
	if k == nil {
		return out
	}
	out.Name = k.known()
	arg := func(name, value string) {
		if value != "" {
			out.Args = append(out.Args, model.Arg{Name: name, Value: value})
		}
	}
	switch k.Does {
	case gate.Recalls:
		arg("query", k.get(c, "query"))
	case gate.Writes:
		arg("path", k.get(c, "path"))
		// A passage that was written anew begins with itself, where text was added to it.
		arg("content", strings.TrimPrefix(strings.TrimPrefix(k.get(c, "text"), k.get(c, "old")), "\n"))
		arg("mode", "append")
	case gate.Stores:
		op := k.get(c, "op")
		for ours, theirs := range k.Ops {
			if theirs == op && out.Name == "memory" {
				op = ours
			}
		}
		arg("target", k.get(c, "store"))
		arg("action", op)
		arg("name", k.get(c, "name"))
		arg("content", k.get(c, "text"))
		arg("old_text", k.get(c, "old"))
	}
	return out
}

// say says the model's calls in the product's tools. Where a file has to be read before it
// can be added to, that comes first and alone: the model is asked again, and makes the
// same calls.
func (h *heard) say(calls []model.Call) []model.Call {
	var out, reads []model.Call
	for _, c := range calls {
		t := world.Find(c.Name)
		k := h.tool(c.Name)
		switch {
		case t != nil && t.Memory() && k == nil:
			continue // it is not on offer here
		case k == nil:
			c.Name = h.product.MCPPrefix + c.Name
			out = append(out, c)
		case k.Does == gate.Writes:
			said, read := h.file(k, c)
			if read {
				reads = append(reads, said)
			} else {
				out = append(out, said)
			}
		default:
			op := c.Get("action")
			out = append(out, k.call(map[string]string{"query": c.Get("query"), "op": cmp.Or(k.Ops[op], op),
				"store": c.Get("target"), "text": k.whole(c), "old": c.Get("old_text"), "name": c.Get("name")}))
		}
	}
	if len(reads) > 0 {
		return reads
	}
	return out
}

// tool is the product's tool on offer that does what one of the catalog does. Of those
// that write files it is the one that writes them whole.
func (h *heard) tool(known string) *Tool {
	return h.offered(func(k *Tool) bool {
		return k.known() == known && (k.Does != gate.Writes || k.Args["old"] == "" && k.Args["path"] != "")
	})
}

func (h *heard) offered(is func(*Tool) bool) *Tool {
	for i := range h.offers {
		if k := h.product.Tool(h.offers[i].Name); k != nil && is(k) {
			return k
		}
	}
	return nil
}

// file adds to a file: by a passage that is written anew where the file is not empty,
// else whole. read says that the call is one that reads the file first.
func (h *heard) file(write *Tool, c model.Call) (said model.Call, read bool) {
	path, text := c.Get("path"), c.Get("content")
	if m := h.message(); m != nil && m.Into != "" {
		path = strings.ReplaceAll(m.Into, "{today}", h.today)
	}
	reads := h.offered(func(k *Tool) bool { return k.Does == gate.Reads && k.Args["path"] != "" })
	edits := h.offered(func(k *Tool) bool { return k.Does == gate.Writes && k.Args["old"] != "" })
	was, known := h.files[path]
	switch {
	case reads == nil || edits == nil || h.message() != nil: // a file that only grows
		return write.call(map[string]string{"path": path, "text": text}), false
	case !known:
		return reads.call(map[string]string{"path": path}), true
	case strings.TrimSpace(was) == "":
		return write.call(map[string]string{"path": path, "text": text}), false
	}
	was = strings.TrimRight(was, " \n")
	last := was[strings.LastIndexByte(was, '\n')+1:]
	if strings.Count(was, last) > 1 {
		last = was
	}
	text = last + "\n" + strings.TrimRight(text, "\n")
	return edits.call(map[string]string{"path": path, "old": last, "text": text}), false
}

// message is what the file says of the newest message of the user's role; nil is the
// user's own.
func (h *heard) message() *Message {
	for i := range h.product.Messages {
		if m := &h.product.Messages[i]; h.is != "" && m.Is == h.is {
			return m
		}
	}
	return nil
}

// whole is the text that a call stores. A product's skill is a file with a head.
func (k *Tool) whole(c model.Call) string {
	text := c.Get("content")
	if k.Whole == "" || c.Get("name") == "" {
		return text
	}
	return strings.NewReplacer("{name}", c.Get("name"), "{text}", text).Replace(k.Whole)
}

// call makes a call of a tool by what its arguments mean.
func (k *Tool) call(means map[string]string) model.Call {
	c := model.Call{Name: k.Name}
	lists := map[string]map[string]string{}
	var order []string
	for _, what := range []string{"op", "store", "path", "destination", "query", "name", "command", "old", "text"} {
		name, value := k.Args[what], means[what]
		if name == "" || value == "" {
			continue
		}
		if list, texts := strings.CutSuffix(name, "[]"); texts {
			b, _ := json.Marshal([]string{value})
			c.Args = append(c.Args, model.Arg{Name: list, Value: string(b)})
			continue
		}
		list, member, listed := strings.Cut(name, "[].")
		if !listed {
			c.Args = append(c.Args, model.Arg{Name: name, Value: value})
			continue
		}
		if lists[list] == nil {
			lists[list] = map[string]string{}
			order = append(order, list)
		}
		lists[list][member] = value
	}
	for _, name := range order {
		b, _ := json.Marshal([]map[string]string{lists[name]}) // texts always encode
		c.Args = append(c.Args, model.Arg{Name: name, Value: string(b)})
	}
	for _, name := range slices.Sorted(maps.Keys(k.Fixed)) {
		if name != "store" {
			c.Args = append(c.Args, model.Arg{Name: name, Value: k.Fixed[name]})
		}
	}
	return c
}

// get is an argument of a call by what it means; "" where the tool has none.
func (k *Tool) get(c *model.Call, what string) string {
	name := k.Args[what]
	list, member, listed := strings.Cut(name, "[].")
	if !listed {
		return c.Get(strings.TrimSuffix(name, "[]"))
	}
	var all []map[string]any
	if json.Unmarshal([]byte(c.Get(list)), &all) != nil || len(all) == 0 {
		return ""
	}
	s, _ := all[0][member].(string)
	return s
}

// contents are those of a file that a tool read; "" where there is none.
func (k *Tool) contents(result string) string {
	if k.Missing.Regexp != nil && k.Missing.MatchString(result) {
		return ""
	}
	return result
}

// result is what a call returned, without what the product puts around it.
func (t *Tongue) result(tool, content string) string {
	source := ""
	if w := t.product.Wraps; w.Regexp != nil {
		if m := w.FindStringSubmatch(content); m != nil {
			source, content = cmp.Or(m[1], "outside"), m[2]
		}
	}
	k := t.product.Tool(tool)
	if k != nil && k.Hits != nil {
		return k.Hits.read(content)
	}
	if k != nil && k.Shows != nil {
		content = k.Shows.read(content)
		if w := t.product.Wraps; w.Regexp != nil && source == "" {
			if m := w.FindStringSubmatch(content); m != nil {
				source, content = cmp.Or(m[1], "outside"), m[2]
			}
		}
	}
	if k == nil && t.product.MCPResult != "" {
		var of map[string]any
		if json.Unmarshal([]byte(content), &of) == nil {
			if s, ok := of[t.product.MCPResult].(string); ok {
				content = s
			}
		}
	}
	if source == "" {
		return content
	}
	// The heading says what the content is; what is wrapped begins below it.
	head, body, ok := strings.Cut(content, "\n\n")
	if !ok {
		return content
	}
	return head + "\n\n<untrusted source=\"" + source + "\">\n" + body + "\n</untrusted>"
}

// read is the answer of a search as entries of memory, oldest first. An answer that is
// none stays what it is.
func (h *Hits) read(content string) string {
	var of any
	d := json.NewDecoder(bytes.NewReader([]byte(content)))
	d.UseNumber()
	if d.Decode(&of) != nil {
		return content
	}
	list, ok := member(of, h.List).([]any)
	if !ok {
		return content
	}
	type hit struct {
		text string
		at   int64
	}
	var hits []hit
	for _, o := range list {
		s, _ := member(o, h.Text).(string)
		if h.Cut.Regexp != nil {
			s = h.Cut.ReplaceAllString(s, "")
		}
		label, _ := member(o, h.Origin).(string)
		n, _ := member(o, h.Millis).(json.Number)
		at, _ := strconv.ParseInt(string(n), 10, 64)
		for line := range strings.Lines(s) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
			if line == "" {
				continue
			}
			if slices.Contains(h.Foreign, label) && !memory.IsAttributed(line) {
				line = memory.Attribution("memory", label+" source") + line
			}
			if at > 0 {
				line = time.UnixMilli(at).UTC().Format("(2006-01-02) ") + line
			}
			hits = append(hits, hit{line, at})
		}
	}
	if len(hits) == 0 {
		return "Nothing found."
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	lines := make([]string, len(hits))
	for i, o := range hits {
		lines[i] = o.text
	}
	block(&b, "search", lines)
	return strings.TrimSpace(b.String())
}

// member is what stands in a JSON value under a path of names with dots between them.
func member(of any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, _ := of.(map[string]any)
		of = m[name]
	}
	return of
}
