package importers

import (
	"cmp"
	_ "embed"
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
	takes, err := x.m.takes(s)
	if err != nil {
		return x.ledger.reject(r, r.fail("where", err.Error(), "mend the record or the condition"))
	}
	if !takes {
		x.ledger.Read++
		x.ledger.Filtered++
		x.ledger.note(r, Filtered)
		return nil
	}
	var cases []made
	convert := func() (err error) {
		one := made{entry: entryOf(r)}
		one.entry.Item = s.itemKey
		if err = x.convert(s, &one); err == nil {
			cases = append(cases, one)
		}
		return err
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
	for _, one := range cases {
		n := len(x.cases)
		x.add(one.entry, one.Case)
		if one.parent != "" && len(x.cases) > n {
			x.variants[n] = one.parent
		}
	}
	return nil
}

// reader reads the fields of one record and remembers the first thing wrong.
type reader struct {
	x   *importing
	s   *scope
	err error
}

func (r *reader) fail(field, what, remedy string) {
	if r.err == nil {
		e := r.s.fail(field, what, remedy)
		if r.s.item != nil {
			e.Field = field + " of item " + datasets.Quote(r.s.itemKey)
		}
		r.err = e
	}
}

func (r *reader) value(field string) (*value, bool) {
	e := r.x.m.fields[field]
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
func (r *reader) text(field string) string {
	v, ok := r.value(field)
	if !ok {
		return ""
	}
	if v.kind != str && v.kind != number && v.kind != boolean {
		r.fail(field, v.kind.String()+" stands where one value belongs", "name one part of it, as in $."+field+"[0]")
		return ""
	}
	if to, ok := r.x.m.translate[field][v.text]; ok {
		return to
	}
	return v.text
}

// content is a field that may be anything: what is no text is kept as JSON.
func (r *reader) content(field string) (s string, isJSON, ok bool) {
	v, ok := r.value(field)
	if !ok {
		return "", false, false
	}
	return asText(v), v.kind == list || v.kind == object, true
}

func (r *reader) truth(field string) (yes, ok bool) {
	v, ok := r.value(field)
	if !ok {
		return false, false
	}
	truth := known(names().Truth, asText(v))
	if truth == "" {
		r.fail(field, datasets.Quote(asText(v))+" is no truth value", "write true or false, yes or no, 1 or 0")
		return false, false
	}
	if v.kind == str && !r.x.m.fields[field].literal {
		r.x.ledger.StringBooleans++
	}
	return truth == "true", true
}

func (r *reader) label() datasets.Label {
	v, ok := r.value("label")
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

// convertMapped makes a case of a record, or of an item of one.
func (x *importing) convertMapped(s *scope, c *made) error {
	r := &reader{x: x, s: s}
	c.entry.ID = r.text("id")
	c.Case = datasets.Case{
		Label: r.label(), Signal: r.text("signal"), Channel: r.text("channel"), Domain: r.text("domain"),
		Goal:   r.text("goal"),
		Family: r.text("family"), Split: datasets.Split(r.text("split")), Variant: r.text("variant"),
		Memory: r.text("expected_memory"), Value: r.text("canary"),
	}
	class, kind, sessions := r.text("class"), r.text("kind"), x.m.fields["user"] != nil
	if c.Label == datasets.Attack {
		c.Class = cmp.Or(class, "unclassified")
	} else {
		c.Goal, c.Signal, c.Channel = "", "", "" // what only attacks have
		if c.Kind = kind; !sessions {
			c.Kind = cmp.Or(kind, class)
		}
	}
	c.parent = r.text("variant_of")
	if c.parent != "" && c.Variant == "" {
		r.fail("variant_of", "a case varies another and has no variant", "name the variation: variant:")
	}
	content, isJSON, has := r.content("content")
	if sessions {
		r.sessions(c, content)
	} else {
		r.classified(&c.Case, content, has)
	}
	if r.err == nil && isJSON {
		x.ledger.JSONTexts++
	}
	return r.err
}

// classified makes a text of the case.
func (r *reader) classified(c *datasets.Case, content string, has bool) {
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
func (r *reader) sessions(c *made, content string) {
	user, again, skill := r.text("user"), r.text("follow_up"), r.text("skill")
	if user == "" {
		r.fail("user", "missing", "say what the user asks for while the content comes in")
	}
	seg := datasets.Segment{Medium: cmp.Or(memory.Medium(r.text("medium")), memory.MCP), Source: r.text("source"),
		Title: r.text("title"), Text: content}
	seg.Inline, _ = r.truth("inline")
	c.Write = session(user, again, seg, datasets.Segment{Medium: memory.Skill, Text: skill})
	query := r.text("retrieval")
	if query != "" {
		c.Retrieval = &datasets.Retrieval{Query: query, Expect: r.texts("expect")}
	}
	writes, said := r.truth("writes")
	c.complete(user+"\n"+again, content+"\n"+skill, query, writes, said)
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

func (r *reader) texts(field string) []string {
	v, ok := r.value(field)
	if !ok {
		return nil
	}
	if v.kind != list {
		return []string{asText(v)}
	}
	var out []string
	for i := range v.items {
		out = append(out, asText(&v.items[i]))
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
	if c.Value != "" && c.Retrieval != nil && len(c.Retrieval.Expect) == 0 {
		c.Retrieval.Expect = []string{c.Value}
	}
}
