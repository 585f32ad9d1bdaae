package importers

import (
	"cmp"
	_ "embed"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

//go:embed names.yaml
var namesFile []byte

// names are what others call what has another name here.
var names = text.Lists[struct {
	Labels, Origins, Truth map[string][]string
	Sources                map[memory.Medium]string
	MPBench                struct {
		Classes, Domains map[string]string
		Goals            []struct{ Word, Goal string }
		Fields           []string
	} `yaml:"mpbench"`
}]("names.yaml", namesFile)

// known is the name here of what others call something, or "".
func known(spellings map[string][]string, theirs string) string {
	theirs = strings.ToLower(strings.TrimSpace(theirs))
	for ours, list := range spellings {
		if slices.Contains(list, theirs) {
			return ours
		}
	}
	return ""
}

// made is a case with what the ledger says of it.
type made struct {
	datasets.Case
	entry  Entry
	parent string // old id of what it varies
	twin   string // old id of its twin
}

// mapped makes the cases of a record by the mapping. A record is taken whole or not
// at all.
func (x *importing) mapped(r record) error {
	if r.v.kind != object && (len(x.used) > 0 || x.m.each == nil) {
		return x.ledger.reject(r, r.fail("", r.v.kind.String()+" stands where a record belongs",
			"a record is an object; name them with records: in the mapping"))
	}
	if x.sample == "" {
		x.sample = fieldsOf(r.v)
	}
	s := &scope{record: r}
	keep, err := takes(x.m.where, s)
	if err != nil {
		return x.ledger.reject(r, r.fail("where", err.Error(), "mend the record or the condition"))
	}
	if !keep {
		x.ledger.Read++
		x.ledger.Filtered++
		x.ledger.note(r, Filtered)
		return nil
	}
	var cases []made
	convert := func() error {
		one := made{entry: entryOf(r)}
		one.entry.Item = s.itemKey
		if err := x.convert(s, &one); err != nil {
			return err
		}
		cases = append(cases, one)
		if x.m.twin == nil {
			return nil
		}
		if keep, err := takes(x.m.twinWhere, s); err != nil || !keep {
			return err
		}
		two := made{entry: one.entry}
		two.entry.Twin, two.entry.Value, two.entry.From, two.entry.NotToStore, two.entry.Notes = true, "", "", "", nil
		if two.Label = datasets.Benign; one.Label == datasets.Benign {
			two.Label = datasets.Attack
		}
		if err := x.fill(s, &two, x.m.twin, "twin."); err != nil {
			return err
		}
		if two.Label == one.Label {
			return s.fail("twin.label", "the twin has the same label", "of a twin and its case one is an attack and the other is benign")
		}
		cases, x.twinned = append(cases, two), true
		return nil
	}
	if x.m.each == nil {
		err = convert()
	} else if items, ok := x.m.each.walk(r.v); ok && items.kind != list && items.kind != object {
		err = r.fail("each", items.kind.String()+" stands at "+x.m.each.text, "name a list or an object of items")
	} else if ok {
		for i := 0; i < len(items.items) && err == nil; i++ {
			s.item, s.itemKey = &items.items[i], items.nameOf(i)
			err = convert()
		}
	}
	if err != nil {
		return x.ledger.reject(r, err)
	}
	x.ledger.Read++
	for i, name := range r.v.names {
		if !x.used[name] && r.v.items[i].kind != null {
			x.ledger.UnusedFields[name]++
		}
	}
	if len(cases) == 0 {
		x.ledger.note(r, Empty, "no item at "+x.m.each.text)
	}
	before := 0
	for _, one := range cases {
		n := len(x.cases)
		i := x.add(one.entry, one.Case)
		if one.parent != "" && i == n {
			x.variants[i] = one.parent
		}
		if one.twin != "" && i == n {
			x.twins[i] = one.twin
		}
		if one.entry.Twin && !x.pair(before, i) {
			e := &x.ledger.Entries[len(x.ledger.Entries)-1]
			e.Notes = append(e.Notes, "a copy of it is the twin of another case: this one has none")
		}
		before = i
	}
	return nil
}

// reader reads the fields of one record and remembers the first thing wrong.
type reader struct {
	x   *importing
	s   *scope
	f   *filling
	at  string // before the names of fields in errors
	err error
}

func (r *reader) fail(field, what, remedy string) {
	if r.err == nil {
		field = r.at + field
		e := r.s.fail(field, what, remedy)
		if r.s.item != nil {
			e.Field = field + " of item " + datasets.Quote(r.s.itemKey)
		}
		r.err = e
	}
}

func (r *reader) eval(e *expr, field string) (*value, bool) {
	if e == nil || r.err != nil {
		return nil, false
	}
	v, ok, err := e.eval(r.s)
	if err != nil {
		r.fail(field, err.Error(), "mend the record or the mapping")
		return nil, false
	}
	if ok && v.kind == binary {
		r.fail(field, v.kind.String()+" stand where a text belongs", "write texts as strings, or map another column")
		return nil, false
	}
	return v, ok
}

// text is a scalar field, translated; "" where it is missing.
func (r *reader) text(field string) string { return r.textOf(r.f.fields[field], field, field) }

// textOf is a scalar, translated as the field called name is; "" where it is missing.
func (r *reader) textOf(e *expr, name, field string) string {
	v, ok := r.eval(e, field)
	if !ok {
		return ""
	}
	if v.kind != str && v.kind != number && v.kind != boolean {
		r.fail(field, v.kind.String()+" stands where one value belongs", "name one part of it, as in "+someName(e)+"[0]")
		return ""
	}
	if to, ok := r.x.m.translate[name][v.text]; ok {
		return to
	}
	return v.text
}

// someName is how an expression is written, as far as it is one path.
func someName(e *expr) string {
	if len(e.paths) > 0 {
		return e.paths[0].text
	}
	return "$.name"
}

// contentOf may be anything: what is no text is kept as JSON.
func (r *reader) contentOf(e *expr, field string) (s string, isJSON, ok bool) {
	v, ok := r.eval(e, field)
	if !ok {
		return "", false, false
	}
	return asText(v), v.kind == list || v.kind == object, true
}

func (r *reader) truth(field string) (yes, ok bool) { return r.truthOf(r.f.fields[field], field) }

func (r *reader) truthOf(e *expr, field string) (yes, ok bool) {
	v, ok := r.eval(e, field)
	if !ok {
		return false, false
	}
	truth := known(names().Truth, asText(v))
	if truth == "" {
		r.fail(field, datasets.Quote(asText(v))+" is no truth value", "write true or false, yes or no, 1 or 0")
		return false, false
	}
	if v.kind == str && !e.literal {
		r.x.ledger.StringBooleans++
	}
	return truth == "true", true
}

func (r *reader) label() datasets.Label {
	v, ok := r.eval(r.f.fields["label"], "label")
	if !ok {
		r.fail("label", "missing", "every record needs one, and this one has "+fieldsOf(r.s.v)+
			"; leave records without out with where:")
		return ""
	}
	was := asText(v)
	label := datasets.Label(cmp.Or(r.x.m.translate["label"][was], known(names().Labels, was)))
	if label == "" {
		r.fail("label", "unknown label "+datasets.Quote(was), "say in the mapping what it is: `labels: {"+
			strconv.Quote(text.Clip(was, 40))+": attack}`")
		return ""
	}
	r.x.ledger.spelled(r.x.ledger.Labels, string(label), was)
	return label
}

// fill makes a case as f says. at stands before the names of fields in errors.
func (x *importing) fill(s *scope, c *made, f *filling, at string) error {
	r := &reader{x: x, s: s, f: f, at: at}
	c.entry.ID = r.text("id")
	label := c.Label
	if f.fields["label"] != nil || label == "" {
		label = r.label()
	}
	c.Case = datasets.Case{
		Label: label, Signal: r.text("signal"), Channel: r.text("channel"), Domain: r.text("domain"),
		Goal:   r.text("goal"),
		Family: r.text("family"), Split: datasets.Split(r.text("split")), Variant: r.text("variant"),
		Memory: r.text("expected_memory"), Value: r.text("canary"), Forms: r.textsOf(f.fields["forms"], "forms"),
	}
	class, kind := r.text("class"), r.text("kind")
	if c.Label == datasets.Attack {
		c.Class = cmp.Or(class, "unclassified")
	} else {
		c.Goal, c.Signal = "", "" // what only attacks have
		if c.Channel != "C4" {    // a legitimate skill's
			c.Channel = ""
		}
		if c.Kind = kind; !f.sessions() {
			c.Kind = cmp.Or(kind, class)
		}
	}
	c.twin = r.text("twin")
	c.parent = r.text("variant_of")
	if c.parent != "" && c.Variant == "" {
		r.fail("variant_of", "a case varies another and has no variant", "name the variation: variant:")
	}
	if f.sessions() {
		r.sessions(c)
	} else {
		r.classified(&c.Case)
	}
	return r.err
}

// content is a text, or JSON of what is none.
func (r *reader) content() (s string, ok bool) {
	s, isJSON, ok := r.contentOf(r.f.fields["content"], "content")
	if isJSON {
		r.x.ledger.JSONTexts++
	}
	return s, ok
}

func (r *reader) classified(c *datasets.Case) {
	content, has := r.content()
	if !has {
		r.fail("content", "missing", "the record has "+fieldsOf(r.s.v)+"; leave records without out with where:")
	}
	t := &datasets.Text{Key: r.text("key"), Content: content, Origin: strings.ToLower(r.text("origin")),
		Medium: memory.Medium(r.text("medium")), Source: r.text("source")}
	if to := known(names().Origins, t.Origin); to != "" {
		t.Origin = to
	} else if t.Origin != "" {
		r.fail("origin", "unknown origin "+datasets.Quote(t.Origin),
			"one of "+strings.Join(datasets.Origins(), ", ")+"; say in the mapping what it is: origins: {…}")
	}
	c.Text = t
}

// sessions makes a case with a write session, and with a retrieval session where
// there is a query.
func (r *reader) sessions(c *made) {
	if r.f.shapes["write"] == nil && r.f.fields["write"] == nil {
		r.plain(c)
	}
	if query := r.f.fields["retrieval"]; query != nil {
		if v, ok := r.eval(query, "retrieval"); ok && v.kind != object {
			if q := r.text("retrieval"); q != "" {
				c.Retrieval = &datasets.Retrieval{Query: q, Expect: r.textsOf(r.f.fields["expect"], "expect"), Forbids: r.text("forbids")}
			}
		}
	}
	r.structured(c)
	if r.err != nil {
		return
	}
	var user, content, query strings.Builder
	for i := range c.Write {
		user.WriteString(c.Write[i].User + "\n")
	}
	for _, s := range c.Segments() {
		s.Source = cmp.Or(s.Source, names().Sources[s.Medium], "tool")
		content.WriteString(s.Text + "\n")
	}
	if c.Retrieval != nil {
		query.WriteString(c.Retrieval.Query)
		for i := range c.Retrieval.Segments {
			s := &c.Retrieval.Segments[i]
			s.Source = cmp.Or(s.Source, names().Sources[s.Medium], "tool")
		}
	}
	writes, said := r.truth("writes")
	c.complete(user.String(), content.String(), query.String(), writes, said)
}

// plain is a write session of one turn, or two, and what comes in with the first.
func (r *reader) plain(c *made) {
	user, again, skill := r.text("user"), r.text("follow_up"), r.text("skill")
	content, _ := r.content()
	if user == "" {
		r.fail("user", "missing", "say what the user asks for while the content comes in")
	}
	seg := datasets.Segment{Medium: cmp.Or(memory.Medium(r.text("medium")), memory.MCP), Source: r.text("source"),
		Title: r.text("title"), Text: content}
	seg.Inline, _ = r.truth("inline")
	c.Write = session(user, again, seg, datasets.Segment{Medium: memory.Skill, Text: skill})
}

// structured reads the fields that have parts, as a line of a case file is read.
func (r *reader) structured(c *made) {
	o := &value{kind: object}
	put := func(name string, v *value) {
		o.names, o.items = append(o.names, name), append(o.items, *v)
	}
	for _, name := range []string{"write", "inject", "retrieval", "state"} {
		switch v, ok := r.eval(r.f.fields[name], name); {
		case ok && (name == "state" || v.kind == object):
			put(name, v)
		case r.f.shapes[name] == nil:
		case name != "retrieval":
			if v := r.parts(r.f.shapes[name], name); len(v.items) > 0 {
				put(name, v)
			} else if name == "write" {
				r.fail(name, "no turn of the user", "say where the user's words stand, or leave the record out with where:")
			}
		default:
			if v, ok := r.part(r.f.shapes[name][0], name, true); ok {
				put(name, v)
			}
		}
	}
	if r.err != nil || len(o.names) == 0 {
		return
	}
	var b strings.Builder
	o.json(&b)
	if err := datasets.DecodeFields(b.String(), &c.Case); err != nil {
		var e *datasets.Error
		if errors.As(err, &e) {
			r.fail(e.Field, e.What, e.Remedy)
			return
		}
		r.err = err
	}
}

// session is a write session: what the user says, and what comes in with its first
// turn.
func session(user, again string, in ...datasets.Segment) []datasets.Turn {
	first := datasets.Turn{User: user}
	for _, s := range in {
		if s.Text != "" {
			s.Source = cmp.Or(s.Source, names().Sources[s.Medium], "tool")
			first.Segments = append(first.Segments, s)
		}
	}
	if again == "" {
		return []datasets.Turn{first}
	}
	return []datasets.Turn{first, {User: again}}
}

// textsOf are the texts of a list, or the only one.
func (r *reader) textsOf(e *expr, field string) []string {
	v, ok := r.eval(e, field)
	if !ok {
		return nil
	}
	items := []value{*v}
	if v.kind == list {
		items = v.items
	}
	var out []string
	for i := range items {
		if t := asText(&items[i]); t != "" && items[i].kind != null { // anything holds an empty text
			out = append(out, t)
		}
	}
	return out
}

// complete fills in what a case with sessions needs and its data leaves open: the
// operative value, the channel, the kind of a benign case, and what its later
// query expects.
func (c *made) complete(user, content, query string, writes, said bool) {
	e := &c.entry
	if c.Label == datasets.Attack {
		if c.Value == "" && c.Memory != "" {
			c.Value, e.From = Derive(c.Memory, content, user, query)
			e.Value = c.Value
		}
		if info, ok := datasets.Info(c.Class); ok && c.Channel == "" {
			c.Channel = info.Channel
		}
		return
	}
	if said && !writes || !said && c.Kind == "" {
		c.Kind = datasets.KindNothing
	}
	if c.Kind == datasets.KindNothing || c.Kind == datasets.KindTriggers {
		if c.Memory != "" {
			e.NotToStore = c.Memory
			c.Memory, c.Value = "", ""
		}
		return
	}
	asks := text.AsksToKeep(user)
	if c.Memory == "" {
		e.Notes = append(e.Notes, "a legitimate write, and it does not say which")
	} else if c.Value == "" {
		if c.Value, e.From = Derive(c.Memory, content, "", query); c.Value == "" {
			c.Value, e.From = Derive(c.Memory, user, "", query)
		}
		e.Value = c.Value
	}
	if c.Kind == "" {
		switch {
		case asks:
			c.Kind = datasets.KindAsked
		case strings.TrimSpace(content) == "" || c.Value != "" && datasets.Holds(user, c.Value):
			c.Kind = datasets.KindUser
		default:
			c.Kind = datasets.KindUnasked
		}
	}
	if c.Value != "" && c.Retrieval != nil && len(c.Retrieval.Expect) == 0 && c.State == nil {
		c.Retrieval.Expect = []string{c.Value}
	}
}
