package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
)

// Own judges calls of an agent's own tools by what is known of these: a call that stores
// is a write, of which the agent gets what the write gate leaves; any other that changes
// something is an action. Who uses it has the memory for himself.
type Own struct {
	Mem   *memory.Memory
	Tools []Tool
	// File is the store of a path that the agent writes to; "" is no memory.
	File func(path string) string
	// Store is the store of what names none that the memory has.
	Store string
	// Told says in the model's words why a verdict stops a call; passes lets the call pass
	// all the same. id is that of a record that waits. nil leaves it to the verdict.
	Told func(v memory.Verdict, id string) (why string, passes bool)
	// From is where every value of a call comes from, where that is known no better; nil
	// looks each up.
	From *memory.Origin
}

// why is what the model is told of a verdict that stops a write; "" lets it pass.
func (o *Own) why(e *memory.Entry) string {
	if o.Told == nil {
		return e.Verdict.Told()
	}
	id := ""
	if e.Committed != nil {
		id = e.Committed.ID
	}
	why, passes := o.Told(e.Verdict, id)
	if passes {
		return ""
	}
	return why
}

// Call judges a call. The route is that of writes which come about in a purpose of the
// agent's own, such as a review; [memory.RouteNone] leaves it to the tool.
func (o *Own) Call(ctx context.Context, said string, route memory.Route, c model.Call) (Ruling, error) {
	t := &Tool{Name: c.Name, Does: Acts}
	if i := slices.IndexFunc(o.Tools, func(t Tool) bool { return t.Name == c.Name }); i >= 0 {
		t = &o.Tools[i]
	}
	switch t.Does {
	case Recalls, Reads, Asks:
		return Ruling{}, nil
	case Calls:
		return o.inner(ctx, said, route, t, c)
	case Stores, Writes:
		if t.Does == Stores || o.File != nil && o.File(t.get(&c, "path")) != "" {
			return o.stores(ctx, route, t, c)
		}
	}
	call := t.call(&c, said)
	for i := range call.Args {
		if o.From != nil {
			call.Args[i].Lineage = memory.Lineage{{Record: o.From.Source, Origin: *o.From}}
		}
	}
	v, err := o.Mem.Act(ctx, call)
	if err != nil || v.Action == memory.Allow {
		return Ruling{}, err
	}
	if o.Told != nil {
		why, passes := o.Told(v, "")
		if passes {
			return Ruling{}, nil
		}
		return Ruling{Refused: memory.Failure(why)}, nil
	}
	return Ruling{Refused: memory.Refusal(v)}, nil
}

// inner judges a call that is handed on to another tool.
func (o *Own) inner(ctx context.Context, said string, route memory.Route, t *Tool, c model.Call) (Ruling, error) {
	to, ok := t.inner(&c)
	if !ok {
		return Ruling{Refused: memory.Failure("the arguments of the call cannot be read")}, nil
	}
	if to.Name == c.Name {
		return Ruling{Refused: memory.Failure("a call that only calls")}, nil
	}
	r, err := o.Call(ctx, said, route, to)
	if r.Changed != nil {
		r.Changed = with(c, t.arg("args"), edited(t.get(&c, "args"), to.Args, r.Changed.Args))
	}
	return r, err
}

// edited is an object with the arguments that were changed.
func edited(object string, was, is []model.Arg) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &fields) != nil { // a text that holds one
		var text string
		_ = json.Unmarshal([]byte(object), &text)
		_ = json.Unmarshal([]byte(text), &fields)
	}
	for _, a := range is {
		if !slices.Contains(was, a) {
			if fields == nil {
				fields = map[string]json.RawMessage{}
			}
			fields[a.Name] = quoted(a.Value)
		}
	}
	b, _ := json.Marshal(fields)
	return string(b)
}

// with is a call with another value of an argument.
func with(c model.Call, name, value string) *model.Call {
	c.Args = slices.Clone(c.Args)
	for i := range c.Args {
		if c.Args[i].Name == name {
			c.Args[i].Value = value
		}
	}
	return &c
}

// stores judges a call that changes memory, one change or each of several.
func (o *Own) stores(ctx context.Context, route memory.Route, t *Tool, c model.Call) (Ruling, error) {
	list := t.each()
	if list == "" || c.Get(list) == "" {
		return o.change(ctx, route, t, c)
	}
	var each []json.RawMessage
	if err := json.Unmarshal([]byte(c.Get(list)), &each); err != nil {
		return Ruling{Refused: memory.Failure(fmt.Sprintf("%s is no list that can be read", list))}, nil
	}
	changed := false
	for i, raw := range each {
		args, err := model.ParseArgs(nil, "", raw)
		if err != nil {
			return Ruling{Refused: memory.Failure(fmt.Sprintf("%s has an item that cannot be read", list))}, nil
		}
		own := len(args)
		for _, a := range c.Args {
			if a.Name != list && !slices.ContainsFunc(args, func(b model.Arg) bool { return b.Name == a.Name }) {
				args = append(args, a)
			}
		}
		r, err := o.change(ctx, route, t, model.Call{Name: c.Name, Args: args})
		if err != nil || r.Refused != "" {
			return r, err
		}
		if r.Changed != nil {
			each[i], changed = json.RawMessage(edited(string(raw), args[:own], r.Changed.Args[:own])), true
		}
	}
	if !changed {
		return Ruling{}, nil
	}
	b, _ := json.Marshal(each)
	return Ruling{Changed: with(c, list, string(b))}, nil
}

// change judges one change.
func (o *Own) change(ctx context.Context, route memory.Route, t *Tool, c model.Call) (Ruling, error) {
	d := memory.Draft{Route: memory.RouteMemoryTool, Op: t.op(&c), Store: t.get(&c, "store"), Key: t.get(&c, "name"),
		Text: t.get(&c, "text"), Old: t.get(&c, "old")}
	if t.Does == Writes {
		d.Route, d.Store = memory.RouteFileTool, o.File(t.get(&c, "path"))
		if d.Text == "" && d.Old != "" {
			d.Op = memory.Remove
		}
	}
	if route != memory.RouteNone {
		d.Route = route
	}
	if o.From != nil {
		d.From = &memory.Segment{Origin: *o.From}
	}
	spec, ok := o.Mem.Spec(d.Store)
	if !ok {
		spec, _ = o.Mem.Spec(o.Store)
		d.Store = o.Store
	}
	if spec.Kind == memory.Skills {
		d.Route = memory.RouteSkill
	} else {
		d.Key = ""
	}
	if t.Does == Writes && d.Old == "" && spec.Kind != memory.Skills {
		return o.file(ctx, t, c, d)
	}
	if t.Does == Stores && d.Op != memory.Remove && d.Text == "" { // in some form that nobody told of
		return Ruling{Refused: memory.Failure(c.Name + " is refused: there is nothing in it that could be judged")}, nil
	}
	text, why, err := o.write(ctx, d)
	switch {
	case err != nil:
		return Ruling{}, err
	case why != "":
		return Ruling{Refused: memory.Failure(why)}, nil
	case text != d.Text && d.Op != memory.Remove:
		return Ruling{Changed: with(c, t.arg("text"), text)}, nil
	}
	return Ruling{}, nil
}

// file judges the new content of a whole memory file, by what is new in it. Lines that are
// blocked are left out of what the agent writes.
func (o *Own) file(ctx context.Context, t *Tool, c model.Call, d memory.Draft) (Ruling, error) {
	there, err := o.Mem.Visible(ctx)
	if err != nil {
		return Ruling{}, err
	}
	content := d.Text
	var blocked []string
	left := 0
	for _, item := range memory.Items(d.Text) {
		if !strings.ContainsFunc(item, unicode.IsLetter) && !strings.ContainsFunc(item, unicode.IsDigit) {
			continue // a rule between entries
		}
		if slices.ContainsFunc(there, func(r memory.Record) bool { return r.Text == item }) {
			left++
			continue
		}
		d.Op, d.Text = memory.Add, item
		text, why, err := o.write(ctx, d)
		switch {
		case err != nil:
			return Ruling{}, err
		case why != "":
			blocked = append(blocked, why)
			content = withoutLine(content, item)
			continue
		case text != item:
			content = strings.ReplaceAll(content, item, text)
		}
		left++
	}
	switch {
	case left == 0 && len(blocked) > 0:
		return Ruling{Refused: memory.Failure(strings.Join(blocked, "; "))}, nil
	case content != t.get(&c, "text"):
		return Ruling{Changed: with(c, t.arg("text"), content)}, nil
	}
	return Ruling{}, nil
}

// withoutLine takes the lines out of a text that say one thing.
func withoutLine(s, item string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if i := memory.Items(line); len(i) == 0 || i[0] != item {
			b.WriteString(line)
		}
	}
	return b.String()
}

// write proposes a change and returns what may be stored, or why nothing may.
func (o *Own) write(ctx context.Context, d memory.Draft) (text, why string, err error) {
	entries, err := o.Mem.Write(ctx, d)
	if err != nil {
		return "", "", err
	}
	if len(entries) == 1 && entries[0].Rejected != "" && entries[0].Proposal.Record.ID == "" {
		if d.Op != memory.Replace || d.Text == "" {
			return d.Text, "", nil // nothing new would be stored
		}
		// The agent may have what the memory has not: what is new is judged as new.
		d.Op, d.Old = memory.Add, ""
		if entries, err = o.Mem.Write(ctx, d); err != nil {
			return "", "", err
		}
	}
	var stored, blocked []string
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Rejected != "":
			text := e.Proposal.Record.Text // full: the agent's own limit decides
			if e.Verdict.Action == memory.Redact {
				text = e.Verdict.Text
			}
			stored = append(stored, text)
		case e.Committed == nil || e.Proposal.Op != memory.Remove && !e.Committed.State.Visible():
			if why := o.why(e); why != "" {
				blocked = append(blocked, why)
			} else {
				stored = append(stored, e.Proposal.Record.Text)
			}
		default:
			stored = append(stored, e.Committed.Text)
		}
	}
	if len(stored) == 0 && len(blocked) > 0 {
		return "", strings.Join(blocked, "; "), nil
	}
	if len(blocked) == 0 && len(entries) > 1 {
		return d.Text, "", nil
	}
	return strings.Join(stored, "\n"), "", nil
}
