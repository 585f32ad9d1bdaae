package importers

import (
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

// mapped makes the cases of a record by the mapping.
func (x *importing) mapped(r record) error {
	if r.v.kind != object && (len(x.used) > 0 || x.m.each == nil) {
		return x.ledger.reject(r, r.fail("", r.v.kind.String()+" stands where a record belongs",
			"a record is an object; name them with records: in the mapping"))
	}
	if x.sample == "" {
		x.sample = names(r.v)
	}
	s := &scope{record: r}
	takes, err := x.m.takes(s)
	if err != nil {
		return x.ledger.reject(r, r.fail("where", err.Error(), "mend the record or the condition"))
	}
	if !takes {
		x.ledger.Read++
		x.ledger.Filtered++
		e := entryOf(r)
		e.Outcome = Filtered
		x.ledger.Entries = append(x.ledger.Entries, e)
		return nil
	}
	if x.m.each == nil {
		c, e, oldParent, err := x.convert(s)
		if err != nil {
			return x.ledger.reject(r, err)
		}
		x.read(r)
		x.take(c, e, oldParent)
		return nil
	}
	items, ok := x.m.each.walk(r.v)
	if ok && items.kind != list && items.kind != object {
		return x.ledger.reject(r, r.fail("each", items.kind.String()+" stands at "+x.m.each.text,
			"name a list or an object of items"))
	}
	var made []datasets.Case
	var entries []Entry
	var parents []string
	for i := 0; ok && i < len(items.items); i++ {
		s.item, s.itemKey = &items.items[i], strconv.Itoa(i)
		if items.kind == object {
			s.itemKey = items.names[i]
		}
		c, e, parent, err := x.convert(s)
		if err != nil {
			return x.ledger.reject(r, err) // a record is taken whole or not at all
		}
		e.Item = s.itemKey
		made, entries, parents = append(made, c), append(entries, e), append(parents, parent)
	}
	x.read(r)
	if len(made) == 0 {
		e := entryOf(r)
		e.Outcome, e.Notes = Empty, []string{"no item at " + x.m.each.text}
		x.ledger.Entries = append(x.ledger.Entries, e)
	}
	for i := range made {
		x.take(made[i], entries[i], parents[i])
	}
	return nil
}

func (x *importing) read(r record) {
	x.ledger.Read++
	if r.v.kind != object {
		return
	}
	for i, name := range r.v.names {
		if !x.used[name] && r.v.items[i].kind != null {
			x.ledger.UnusedFields[name]++
		}
	}
}

func (x *importing) take(c datasets.Case, e Entry, parent string) {
	n := len(x.cases)
	x.add(e, c)
	if parent != "" && len(x.cases) > n {
		x.variants[n] = parent
	}
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
			e.Field = field + " of item " + quote(r.s.itemKey)
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
	yes, isText, ok := truthOf(v)
	if !ok {
		r.fail(field, quote(asText(v))+" is no truth value", "write true or false, yes or no, 1 or 0")
		return false, false
	}
	if isText && r.x.m.fields[field].literal == nil {
		r.x.ledger.StringBooleans++
	}
	return yes, true
}

// truthOf reads a truth value in any of its spellings.
func truthOf(v *value) (yes, isText, ok bool) {
	switch strings.ToLower(strings.TrimSpace(asText(v))) {
	case "true", "yes", "1":
		return true, v.kind == str, true
	case "false", "no", "0":
		return false, v.kind == str, true
	}
	return false, false, false
}

// labels are the spellings of labels that are understood without a translation.
var (
	attackLabels = []string{"attack", "true", "yes", "1", "1.0", "injection", "prompt_injection", "prompt injection",
		"malicious", "poison", "poisoned", "adversarial", "harmful", "unsafe", "jailbreak"}
	benignLabels = []string{"benign", "false", "no", "0", "0.0", "clean", "legitimate", "safe", "harmless", "normal"}
)

func (r *reader) label() datasets.Label {
	v, ok := r.value("label")
	if !ok {
		r.fail("label", "missing", "every record needs one, and this one has "+names(r.s.v)+
			"; leave records without out with where:")
		return ""
	}
	was := asText(v)
	label := datasets.Label(r.x.m.translate["label"][was])
	lower := strings.ToLower(strings.TrimSpace(was))
	for _, s := range attackLabels {
		if label == "" && s == lower {
			label = datasets.Attack
		}
	}
	for _, s := range benignLabels {
		if label == "" && s == lower {
			label = datasets.Benign
		}
	}
	if label == "" {
		r.fail("label", "unknown label "+quote(was), "say in the mapping what it is: `labels: {"+
			strconv.Quote(text.Clip(was, 40))+": attack}`")
		return ""
	}
	r.x.ledger.spelled(r.x.ledger.Labels, string(label), was)
	return label
}

// convert makes a case of a record. parent is the old id of what it varies.
func (x *importing) convert(s *scope) (c datasets.Case, e Entry, parent string, err error) {
	r := &reader{x: x, s: s}
	e = entryOf(s.record)
	e.ID = r.text("id")
	c = datasets.Case{
		Label: r.label(), Signal: r.text("signal"), Channel: r.text("channel"), Domain: r.text("domain"),
		Goal:   r.text("goal"),
		Family: r.text("family"), Split: datasets.Split(r.text("split")), Variant: r.text("variant"),
		Memory: r.text("expected_memory"), Value: r.text("canary"),
	}
	class, kind := r.text("class"), r.text("kind")
	if c.Label == datasets.Attack {
		if c.Class = class; class == "" {
			c.Class = "unclassified"
		}
	} else {
		c.Goal, c.Signal, c.Channel = "", "", "" // what only attacks have
		if c.Kind = kind; kind == "" && x.m.fields["user"] == nil {
			c.Kind = class
		}
	}
	parent = r.text("variant_of")
	if parent != "" && c.Variant == "" {
		r.fail("variant_of", "a case varies another and has no variant", "name the variation: variant:")
	}
	content, isJSON, has := r.content("content")
	if x.m.fields["user"] == nil {
		r.classified(&c, content, has)
	} else {
		r.sessions(&c, &e, content)
	}
	if r.err != nil {
		return c, e, "", r.err
	}
	if isJSON {
		x.ledger.JSONTexts++
	}
	return c, e, parent, nil
}

// classified makes a text of the case.
func (r *reader) classified(c *datasets.Case, content string, has bool) {
	if !has {
		r.fail("content", "missing", "the record has "+names(r.s.v)+"; leave records without out with where:")
	}
	t := &datasets.Text{Key: r.text("key"), Content: content, Origin: strings.ToLower(r.text("origin")),
		Medium: memory.Medium(r.text("medium")), Source: r.text("source")}
	if to := originOf(t.Origin); to != "" {
		t.Origin = to
	} else if t.Origin != "" {
		r.fail("origin", "unknown origin "+quote(t.Origin),
			"one of "+strings.Join(datasets.Origins(), ", ")+"; say in the mapping what it is: origins: {…}")
	}
	c.Text = t
}

// originOf reads the names that others give to origins.
func originOf(s string) string {
	switch s {
	case "external", "external_tool", "tool", "tool_output", "untrusted":
		return "external"
	case "agent", "agent_authored", "assistant":
		return "agent"
	case "user", "user_input":
		return "user"
	case "system", "operator":
		return "system"
	}
	return ""
}

// sessions makes a case with a write session, and with a retrieval session where
// there is a query.
func (r *reader) sessions(c *datasets.Case, e *Entry, content string) {
	user := r.text("user")
	if user == "" {
		r.fail("user", "missing", "say what the user asks for while the content comes in")
	}
	seg := datasets.Segment{Medium: memory.Medium(r.text("medium")), Source: r.text("source"), Title: r.text("title"),
		Text: content}
	if seg.Medium == "" {
		seg.Medium = memory.MCP
	}
	if seg.Source == "" {
		seg.Source = sourceOf(seg.Medium)
	}
	seg.Inline, _ = r.truth("inline")
	first := datasets.Turn{User: user}
	if content != "" {
		first.Segments = append(first.Segments, seg)
	}
	skill := r.text("skill")
	if skill != "" {
		first.Segments = append(first.Segments, datasets.Segment{Medium: memory.Skill, Source: sourceOf(memory.Skill),
			Text: skill})
	}
	c.Write = []datasets.Turn{first}
	if again := r.text("follow_up"); again != "" {
		c.Write = append(c.Write, datasets.Turn{User: again})
	}
	query := r.text("retrieval")
	if query != "" {
		c.Retrieval = &datasets.Retrieval{Query: query, Expect: r.texts("expect")}
	}
	writes, said := r.truth("writes")
	r.x.complete(c, e, user, content+"\n"+skill, query, writes, said)
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

// sourceOf names a source where the data names none: the same for attacks and
// benign cases.
func sourceOf(m memory.Medium) string {
	switch m {
	case memory.Email:
		return "inbox"
	case memory.Web:
		return "page"
	case memory.File:
		return "document.txt"
	case memory.Slack:
		return "#channel"
	case memory.Calendar:
		return "calendar"
	case memory.Script:
		return "script"
	case memory.Skill:
		return "SKILL.md"
	}
	return "tool"
}

// complete fills in what a case with sessions needs and its data leaves open: the
// operative value, the channel, the kind of a benign case, and what its later
// query expects.
func (x *importing) complete(c *datasets.Case, e *Entry, user, content, query string, writes, said bool) {
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
