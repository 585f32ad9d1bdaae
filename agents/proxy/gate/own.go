package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
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
	// Gone is the id of a record that somebody took back and whose content a text has, "" for
	// none: it is not stored again. nil knows of none.
	Gone func(text string) string

	done []*memory.Entry // that a call has committed so far
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
// agent's own, such as a review; [memory.RouteNone] leaves it to the tool. What was
// committed of a call that does not pass is taken back.
func (o *Own) Call(ctx context.Context, said string, route memory.Route, c model.Call) (Ruling, error) {
	o.done = nil
	r, err := o.call(ctx, said, route, c)
	done := o.done
	back := func(ctx context.Context) error {
		for _, e := range slices.Backward(done) {
			if err := o.Mem.TakeBack(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case len(done) == 0:
	case err != nil || r.Refused != "":
		err = errors.Join(err, back(context.WithoutCancel(ctx)))
	default:
		r.Back = back
	}
	return r, err
}

func refused(format string, args ...any) Ruling {
	return Ruling{Refused: memory.Failure(fmt.Sprintf(format, args...))}
}

func (o *Own) call(ctx context.Context, said string, route memory.Route, c model.Call) (Ruling, error) {
	t := &Tool{Name: c.Name, Does: Acts}
	if i := slices.IndexFunc(o.Tools, func(t Tool) bool { return t.Name == c.Name }); i >= 0 {
		t = &o.Tools[i]
	} else if i := slices.IndexFunc(o.Tools, func(t Tool) bool { return bare(t.Name) == bare(c.Name) }); i >= 0 {
		return refused("there is no tool %q: is it %s?", text.Clip(c.Name, 60), o.Tools[i].Name), nil
	}
	switch t.Does {
	case Recalls, Reads, Asks:
		return Ruling{}, nil
	case Calls:
		return o.inner(ctx, said, route, t, c)
	case Stores:
		return o.stores(ctx, route, t, c)
	case Writes:
		path, patch := t.get(&c, "path"), t.get(&c, "patch")
		switch {
		case patch != "":
			if t.get(&c, "text") != "" || t.get(&c, "old") != "" {
				return refused("%s is refused: it has a patch and a text beside it, give one of them", c.Name), nil
			}
			return o.patch(ctx, said, route, t, c, patch)
		case path == "":
			return refused("%s is refused: it says of no file that it writes it", c.Name), nil
		case o.file(path) != "":
			return o.stores(ctx, route, t, c)
		}
	}
	return o.acts(ctx, said, t, c)
}

// bare is a name as products compare it that mend names.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// file is the store of a path; "" is no memory.
func (o *Own) file(path string) string {
	if o.File == nil || path == "" {
		return ""
	}
	return o.File(path)
}

// acts judges a call that is an action.
func (o *Own) acts(ctx context.Context, said string, t *Tool, c model.Call) (Ruling, error) {
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

// inner judges a call that is handed on to another tool. What stands beside its arguments
// may be handed on with them.
func (o *Own) inner(ctx context.Context, said string, route memory.Route, t *Tool, c model.Call) (Ruling, error) {
	to, ok := t.inner(&c)
	if !ok {
		return refused("the arguments of the call cannot be read"), nil
	}
	if to.Name == c.Name {
		return refused("a call that only calls"), nil
	}
	n := len(to.Args)
	for _, a := range c.Args {
		switch {
		case a.Name == t.arg("name") || a.Name == t.arg("args"):
		case has(to.Args[:n], a.Name):
			return refused("the argument %s stands in the call and beside it", text.Clip(a.Name, 60)), nil
		default:
			to.Args = append(to.Args, a)
		}
	}
	r, err := o.call(ctx, said, route, to)
	if r.Changed != nil {
		is := r.Changed.Args
		r.Changed = with(c, t.arg("args"), edited(t.get(&c, "args"), to.Args[:n], is[:n]))
		for _, a := range is[n:] {
			r.Changed = with(*r.Changed, a.Name, a.Value)
		}
	}
	return r, err
}

func has(args []model.Arg, name string) bool {
	return slices.ContainsFunc(args, func(a model.Arg) bool { return a.Name == name })
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
	var each []json.RawMessage
	if list != "" && c.Get(list) != "" {
		if err := json.Unmarshal([]byte(c.Get(list)), &each); err != nil {
			return refused("%s is no list that can be read", list), nil
		}
	}
	if len(each) == 0 {
		return o.change(ctx, route, t, c)
	}
	if t.get(&c, "text") != "" || t.get(&c, "old") != "" { // which of both counts the product knows
		return refused("%s is refused: it has %s and a text beside it, put all into %s", c.Name, list, list), nil
	}
	changed := false
	for i, raw := range each {
		args, err := model.ParseArgs(nil, "", raw)
		if err != nil {
			return refused("%s has an item that cannot be read", list), nil
		}
		own := len(args)
		for _, a := range c.Args {
			if a.Name != list && !has(args, a.Name) {
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

// change judges one change: each of the texts that it has.
func (o *Own) change(ctx context.Context, route memory.Route, t *Tool, c model.Call) (out Ruling, err error) {
	names := slices.DeleteFunc(t.names("text"), func(name string) bool { return c.Get(name) == "" })
	if len(names) == 0 {
		names = []string{t.arg("text")}
	}
	for _, name := range names {
		r, err := o.one(ctx, route, t, c, name)
		if err != nil || r.Refused != "" {
			return r, err
		}
		if r.Changed != nil {
			c, out.Changed = *r.Changed, r.Changed
		}
	}
	return out, nil
}

// one judges one text of a change, by the name of its argument.
func (o *Own) one(ctx context.Context, route memory.Route, t *Tool, c model.Call, name string) (Ruling, error) {
	d := memory.Draft{Route: memory.RouteMemoryTool, Op: t.op(&c), Store: t.get(&c, "store"), Key: t.get(&c, "name"),
		Text: c.Get(name), Old: t.get(&c, "old")}
	if t.Does == Writes {
		d.Route, d.Store = memory.RouteFileTool, o.file(t.get(&c, "path"))
		if d.Text == "" && d.Old != "" {
			d.Op = memory.Remove
		}
	}
	d, kind := o.draft(route, d)
	if kind != memory.Skills {
		d.Key = ""
	} else if d.Key != "" { // a file or a passage of a skill is not all of it
		if path := t.get(&c, "path"); path != "" && t.Does == Stores {
			d.Key += "/" + path
		}
		if d.Old != "" && d.Text != "" {
			d.Key += ": " + text.Clip(d.Old, 80)
		}
	}
	if kind == memory.Skills && d.Key == "" {
		return refused("%s is refused: a skill needs a name", c.Name), nil
	}
	// Its text may stand in some form that nobody told of.
	if d.Text == "" && d.Op != memory.Remove && (t.Does == Stores || !has(c.Args, name)) {
		return refused("%s is refused: there is nothing in it that could be judged", c.Name), nil
	}
	if t.Does == Writes && kind != memory.Skills {
		if d.Old == "" {
			content, blocked, left, err := o.lines(ctx, d, nil)
			switch {
			case err != nil:
				return Ruling{}, err
			case left == 0 && len(blocked) > 0:
				return refused("%s", strings.Join(blocked, "; ")), nil
			case content != d.Text:
				return Ruling{Changed: with(c, name, content)}, nil
			}
			return Ruling{}, nil
		}
		p, err := o.passage(ctx, d)
		if err != nil {
			return Ruling{}, err
		}
		if p != nil {
			return o.edit(ctx, d, p, c, name)
		}
	}
	stored, why, err := o.write(ctx, d)
	switch {
	case err != nil:
		return Ruling{}, err
	case why != "":
		return refused("%s", why), nil
	case stored != d.Text && d.Op != memory.Remove:
		return Ruling{Changed: with(c, name, stored)}, nil
	}
	return Ruling{}, nil
}

// draft completes a draft by what is known of its store, and returns the store's kind.
func (o *Own) draft(route memory.Route, d memory.Draft) (memory.Draft, memory.Kind) {
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
	}
	return d, spec.Kind
}

// passage is what an edit changes: whole lines, each of which is an entry.
type passage struct {
	old         []memory.Record
	text        string // that takes the place of them
	part        bool   // the edit changes a part of the one line
	first, last string // what stands before and behind that part
}

// passage finds what an edit changes, or nil where that cannot be told for sure: its lines
// are not each one entry, or a part of one entry alone.
func (o *Own) passage(ctx context.Context, d memory.Draft) (*passage, error) {
	there, err := o.Mem.Visible(ctx)
	if err != nil {
		return nil, err
	}
	there = slices.DeleteFunc(there, func(r memory.Record) bool { return r.Store != d.Store })
	p := &passage{text: d.Text}
	if d.Text != "" && strings.HasSuffix(d.Old, "\n") != strings.HasSuffix(d.Text, "\n") {
		return nil, nil // it joins lines, or parts one
	}
	lines := strings.Split(strings.TrimSuffix(d.Old, "\n"), "\n")
	for _, line := range lines {
		item := entry(line)
		if item == "" {
			return nil, nil
		}
		of := slices.DeleteFunc(slices.Clone(there), func(r memory.Record) bool { return !strings.Contains(r.Text, item) })
		if len(of) != 1 { // it may stand in either
			return nil, nil
		}
		r := of[0]
		if slices.ContainsFunc(p.old, func(x memory.Record) bool { return x.ID == r.ID }) {
			continue // it stands there twice
		}
		if r.Text == item {
			p.old = append(p.old, r)
			continue
		}
		if len(lines) > 1 || strings.Count(r.Text, d.Old) != 1 || strings.Contains(r.Text, "\n") {
			return nil, nil
		}
		p.old, p.part = append(p.old, r), true
		p.first, p.last, _ = strings.Cut(r.Text, d.Old)
		p.text = p.first + d.Text + p.last
	}
	return p, nil
}

// entry is what a line of a memory file says.
func entry(line string) string {
	if items := memory.Items(line); len(items) == 1 {
		return items[0]
	}
	return strings.TrimSpace(line)
}

// edit judges an edit of whole lines, or of a part of one as the line that comes of it. Where
// a line may not be stored, nothing of the edit may.
func (o *Own) edit(ctx context.Context, d memory.Draft, p *passage, c model.Call, name string) (Ruling, error) {
	d.Text, d.Op = p.text, memory.Add
	content, blocked, _, err := o.lines(ctx, d, p.old)
	switch {
	case err != nil:
		return Ruling{}, err
	case len(blocked) > 0:
		return refused("%s", strings.Join(blocked, "; ")), nil
	case content == p.text:
		return Ruling{}, nil
	case !p.part:
		return Ruling{Changed: with(c, name, content)}, nil
	}
	before, found := strings.CutPrefix(content, p.first)
	part, also := strings.CutSuffix(before, p.last)
	if !found || !also || len(p.first)+len(p.last) > len(content) {
		return refused("%s is refused: a part of the line may not be stored, give the whole line", c.Name), nil
	}
	return Ruling{Changed: with(c, name, part)}, nil
}

// lines judges the new content of a memory file, or of a passage of one in the place of
// entries, by what is new in it, line by line. Lines that are blocked are left out of what the
// agent writes; left are the others, headings and rules aside.
func (o *Own) lines(ctx context.Context, d memory.Draft, old []memory.Record) (content string, blocked []string, left int, err error) {
	there, err := o.Mem.Visible(ctx)
	if err != nil {
		return "", nil, 0, err
	}
	known := map[string]string{} // what may stand for an entry
	for i := range there {
		if there[i].Store == d.Store {
			known[there[i].Text] = there[i].Text
		}
	}
	var gone []memory.Record
	for _, r := range old {
		if !slices.ContainsFunc(slices.Collect(strings.Lines(d.Text)), func(line string) bool { return entry(line) == r.Text }) {
			delete(known, r.Text)
			gone = append(gone, r)
		}
	}
	var b strings.Builder
	route := d.Route
	for line := range strings.Lines(d.Text) {
		item, heading := entry(line), 1
		if len(memory.Items(line)) == 1 {
			heading = 0
		}
		says := strings.ContainsFunc(item, func(r rune) bool { return !unicode.IsSpace(r) && !strings.ContainsRune(rules, r) })
		stored, there := known[item]
		if says && !there {
			d.Op, d.Text, d.Record, d.Route = memory.Add, item, "", route
			if heading == 0 && len(gone) > 0 {
				d.Op, d.Record, gone = memory.Replace, gone[0].ID, gone[1:]
			}
			if heading > 0 && (route == memory.RouteFlush || route == memory.RouteCompaction) {
				d.Route = memory.RouteFileTool // what those routes bring has no headings
			}
			var why string
			if stored, why, err = o.write(ctx, d); err != nil {
				return "", nil, 0, err
			}
			if why != "" {
				blocked = append(blocked, why)
				continue
			}
			known[item], known[stored] = stored, stored
		}
		if says {
			line = strings.Replace(line, item, stored, 1)
			left += 1 - heading
		}
		b.WriteString(line)
	}
	for _, r := range gone {
		d.Op, d.Text, d.Record, d.Route = memory.Remove, "", r.ID, route
		_, why, err := o.write(ctx, d)
		if err != nil {
			return "", nil, 0, err
		}
		if why != "" {
			blocked = append(blocked, why)
		}
	}
	return b.String(), blocked, left, nil
}

// rules are of what lines are made that say nothing.
const rules = "-*_=#§—–•·.+~|>"

// heads are the lines of a patch that name files, with whatever a product takes for a space.
var heads = regexp.MustCompile(`(?i)^\*\*\*[\s\v\pZ]*(?:(?:(add|update|delete|move)[\s\v\pZ]+(?:file|to)[\s\v\pZ]*:(.*))|` +
	`(?:begin|end)[\s\v\pZ]+(?:patch|of[\s\v\pZ]+file))$`)

// patch judges a patch of files in the form that begins with "*** Begin Patch": what it adds
// where one of them is memory, and an action where one is not.
func (o *Own) patch(ctx context.Context, said string, route memory.Route, t *Tool, c model.Call, patch string) (Ruling,
	error) {
	store, others, move := "", false, false
	lines := strings.SplitAfter(patch, "\n")
	for _, line := range lines {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "***") {
			continue
		}
		head := heads.FindStringSubmatch(line)
		switch {
		case head == nil:
			return refused("%s is refused: its patch has a line %q that cannot be read", c.Name,
				text.Clip(line, 80)), nil
		case head[1] == "":
			continue
		}
		for path := range strings.SplitSeq(head[2], "->") {
			of := o.file(path)
			others = others || of == ""
			store = cmp.Or(store, of)
		}
		move = move || strings.EqualFold(head[1], "move")
	}
	switch {
	case store == "" && !others:
		return refused("%s is refused: its patch names no file that can be read", c.Name), nil
	case store != "" && move:
		return refused("%s is refused: what it moves is memory, and cannot be judged", c.Name), nil
	}
	var out Ruling
	if store != "" {
		var added strings.Builder
		adds := func(line string) bool { return strings.HasPrefix(line, "+") }
		for _, line := range lines {
			if adds(line) {
				added.WriteString(strings.TrimRight(line[1:], "\r\n") + "\n")
			}
		}
		d, _ := o.draft(route, memory.Draft{Route: memory.RouteFileTool, Store: store, Text: added.String()})
		content, blocked, _, err := o.lines(ctx, d, nil)
		switch {
		case err != nil:
			return Ruling{}, err
		case len(blocked) > 0:
			return refused("%s", strings.Join(blocked, "; ")), nil
		case content != added.String():
			is := strings.SplitAfter(content, "\n")
			if len(is) != strings.Count(added.String(), "\n")+1 {
				return refused("%s is refused: a part of what it adds may not be stored", c.Name), nil
			}
			for i := range lines {
				if adds(lines[i]) {
					lines[i], is = "+"+is[0], is[1:]
				}
			}
			out.Changed = with(c, t.the(&c, "patch"), strings.Join(lines, ""))
			c = *out.Changed
		}
	}
	if others {
		r, err := o.acts(ctx, said, t, c)
		if err != nil || r.Refused != "" {
			return r, err
		}
	}
	return out, nil
}

// write proposes a change and returns what may be stored, or why nothing may.
func (o *Own) write(ctx context.Context, d memory.Draft) (text, why string, err error) {
	if d.Op != memory.Remove && o.Gone != nil {
		if id := o.Gone(d.Text); id != "" {
			return "", id + " was taken back: it may not be stored again", nil
		}
	}
	entries, err := o.propose(ctx, d)
	if err != nil {
		return "", "", err
	}
	if len(entries) == 1 && entries[0].Rejected != "" && entries[0].Proposal.Record.ID == "" {
		if d.Op != memory.Replace || d.Text == "" {
			return d.Text, "", nil // nothing new would be stored
		}
		// The agent may have what the memory has not: what is new is judged as new.
		d.Op, d.Old, d.Record = memory.Add, "", ""
		if entries, err = o.propose(ctx, d); err != nil {
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

// propose proposes a change, and notes what of it a session sees from now on.
func (o *Own) propose(ctx context.Context, d memory.Draft) ([]memory.Entry, error) {
	entries, err := o.Mem.Write(ctx, d)
	for i := range entries {
		e := &entries[i]
		if e.Committed != nil && (e.Proposal.Op == memory.Remove || e.Committed.State.Visible()) {
			o.done = append(o.done, e)
		}
	}
	return entries, err
}
