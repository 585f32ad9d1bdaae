package importers

import (
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

// Mapping says which part of a foreign record is which field of a case.
type Mapping struct {
	syntax syntax // of a ready mapping; empty takes the command's

	records *path
	each    *path
	where   []condition
	filling
	// twin is what the mapping says of a second case of each record, which has the
	// other label; nil where it makes none.
	twin      *filling
	twinWhere []condition
	// translate has, by field, what a value of theirs is called here.
	translate map[string]map[string]string
}

// filling says what the fields of a case are filled with.
type filling struct {
	fields map[string]*expr
	shapes map[string][]*shape
}

// condition keeps the records whose value is one of is, or none of not.
type condition struct {
	of      *expr
	is, not []string
	present *bool
}

// fieldNames are the fields that a mapping can fill, as they are documented.
var fieldNames = []string{
	"id", "label", "content", // every set
	"key", "origin", "medium", "source", "title", // where the content stands and comes from
	"class", "signal", "channel", "domain", "goal", "kind", "family", "split", "variant", "variant_of", // how it is sorted
	// sets with two sessions
	"user", "follow_up", "inline", "skill", "writes", "expected_memory", "canary", "forms", "retrieval", "expect", "forbids",
	"write", "inject", "state", "twin",
}

// loose are the fields of a session that is not written turn by turn.
var loose = []string{"user", "follow_up", "content", "medium", "source", "title", "inline", "skill"}

// translated are the fields whose values can be translated, by the key that does.
var translated = map[string]string{"labels": "label", "classes": "class", "signals": "signal", "domains": "domain",
	"goals": "goal", "kinds": "kind", "origins": "origin", "media": "medium", "splits": "split"}

// ParseMapping reads a mapping file; file is how errors call it.
func ParseMapping(file string, data []byte) (*Mapping, error) {
	root, err := settings.Parse(file, data)
	if err != nil {
		return nil, err
	}
	m := &Mapping{filling: filling{map[string]*expr{}, map[string][]*shape{}}, translate: map[string]map[string]string{}}
	err = root.Each(func(e settings.Entry) (err error) {
		switch {
		case e.Key == "read":
			err = m.parseSyntax(e.Value)
		case e.Key == "records":
			m.records, err = pathOf(e.Value, "$")
		case e.Key == "each":
			m.each, err = pathOf(e.Value, "$")
		case e.Key == "where":
			m.where, err = conditions(e.Value)
		case translated[e.Key] != "":
			m.translate[translated[e.Key]], err = translation(e.Value)
		case e.Key == "twin" && isMapping(e.Value):
			return nil // once everything else is known
		case slices.Contains(fieldNames, e.Key):
			err = m.parseField(e)
		default:
			known := append([]string{"read", "records", "each", "where"}, fieldNames...)
			err = settings.Unknown(e.At.Place(), "key", e.Key, append(known, slices.Sorted(maps.Keys(translated))...))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for from, to := range m.translate["label"] {
		if to != string(datasets.Attack) && to != string(datasets.Benign) {
			return nil, root.Errorf("labels: %s becomes %s: one of attack, benign", datasets.Quote(from), datasets.Quote(to))
		}
	}
	if err := m.check(root); err != nil {
		return nil, err
	}
	err = root.Each(func(e settings.Entry) error {
		if e.Key != "twin" || m.fields["twin"] != nil {
			return nil
		}
		return m.parseTwin(e.Value)
	})
	if err != nil {
		return nil, err
	}
	usesItem := false
	m.uses(func(u use) {
		usesItem = usesItem || !u.bound && slices.ContainsFunc(u.paths, func(p *path) bool { return p.item })
	})
	if usesItem && m.each == nil {
		return nil, root.Errorf("a path begins with @, the item of each:, and there is no each:")
	}
	return m, nil
}

// parseField reads what a field of a case is filled with.
func (f *filling) parseField(e settings.Entry) (err error) {
	of := shapes[e.Key]
	switch {
	case of == nil, e.Key == "retrieval" && (!isMapping(e.Value) || makesText(e.Value)):
		f.fields[e.Key], err = parseExpr(e.Value, 0)
	case e.Key == "retrieval":
		var one *shape
		if one, err = parseShape(e.Value, of); err == nil && (one.each != nil || one.where != nil) {
			err = e.Value.Errorf("a case has one later session: leave each: and where: out")
		}
		f.shapes[e.Key] = []*shape{one}
	default:
		f.shapes[e.Key], err = parseShapes(e.Value, of)
	}
	return err
}

// sessions reports whether the case has sessions, and is no text alone.
func (f *filling) sessions() bool { return f.fields["user"] != nil || f.shapes["write"] != nil }

// check refuses what cannot be meant together.
func (f *filling) check(n settings.Node) error {
	for _, must := range []string{"content", "label"} {
		if f.fields[must] == nil && !(must == "content" && f.sessions()) {
			return n.Errorf("the mapping lacks %s: say where it stands, as in `%s: $.%s`", must, must, must)
		}
	}
	for _, name := range loose {
		if f.shapes["write"] != nil && f.fields[name] != nil {
			return n.Errorf("%s stands beside write:, which has the turns of the user and their segments: leave one of them out", name)
		}
	}
	for _, name := range []string{"expect", "forbids"} {
		if f.shapes["retrieval"] != nil && f.fields[name] != nil {
			return n.Errorf("%s belongs under retrieval: here", name)
		}
	}
	for _, name := range []string{"follow_up", "inline", "skill", "writes", "retrieval", "expect", "forbids", "inject", "state"} {
		if (f.fields[name] != nil || f.shapes[name] != nil) && !f.sessions() {
			return n.Errorf("%s stands in sets with two sessions only: say where the user's words stand (user: or write:), or "+
				"leave it out", name)
		}
	}
	for _, name := range []string{"key", "origin"} {
		if f.fields[name] != nil && f.sessions() {
			return n.Errorf("%s belongs to texts without sessions: in a session the agent chooses the key, and "+
				"content comes from outside; a segment under write: may have an origin", name)
		}
	}
	return nil
}

// parseTwin reads what the twin of each case has instead.
func (m *Mapping) parseTwin(n settings.Node) error {
	t := &filling{maps.Clone(m.fields), maps.Clone(m.shapes)}
	delete(t.fields, "label") // the other one
	own := filling{map[string]*expr{}, map[string][]*shape{}}
	err := n.Each(func(e settings.Entry) (err error) {
		switch {
		case e.Key == "where":
			m.twinWhere, err = conditions(e.Value)
		case e.Key != "twin" && e.Key != "variant_of" && slices.Contains(fieldNames, e.Key):
			err = own.parseField(e)
		default:
			known := slices.DeleteFunc(slices.Clone(fieldNames), func(s string) bool { return s == "twin" || s == "variant_of" })
			err = settings.Unknown(e.At.Place(), "key", e.Key, append(known, "where"))
		}
		return err
	})
	if err != nil {
		return err
	}
	for name := range shapes { // whichever way the twin says it
		if own.fields[name] != nil {
			delete(t.shapes, name)
		}
		if own.shapes[name] != nil {
			delete(t.fields, name)
		}
	}
	if own.shapes["write"] != nil {
		for _, name := range loose {
			delete(t.fields, name)
		}
	}
	if own.shapes["retrieval"] != nil {
		delete(t.fields, "expect")
		delete(t.fields, "forbids")
	}
	if own.fields["canary"] != nil {
		delete(t.fields, "forms")
	}
	maps.Copy(t.fields, own.fields)
	maps.Copy(t.shapes, own.shapes)
	delete(t.fields, "variant_of")
	m.twin = t
	checked := &filling{maps.Clone(t.fields), t.shapes}
	checked.fields["label"] = m.fields["label"]
	return checked.check(n)
}

// isMapping reports whether a value of a mapping file has keys.
func isMapping(n settings.Node) bool {
	if n.IsSequence() {
		return false
	}
	_, _, err := n.Scalar()
	return err != nil
}

// makesText reports whether a value with keys is an expression.
func makesText(n settings.Node) bool {
	makes := false
	_ = n.Each(func(e settings.Entry) error {
		makes = makes || slices.Contains(makers, e.Key)
		return nil
	})
	return makes
}

func (f *filling) uses(at string, yield func(use)) {
	for name, e := range f.fields {
		yield(use{at + name, e, false, true})
	}
	for name, all := range f.shapes {
		for _, s := range all {
			s.uses(at+name, false, yield)
		}
	}
}

// uses yields those of the twin too.
func (m *Mapping) uses(yield func(use)) {
	m.filling.uses("", yield)
	if m.twin != nil {
		m.twin.uses("twin.", yield)
	}
}

func (m *Mapping) parseSyntax(n settings.Node) error {
	s, _, err := n.Scalar()
	if err != nil {
		return err
	}
	m.syntax = syntax(s)
	if m.syntax != lines && m.syntax != whole && m.syntax != table && m.syntax != columns {
		return n.Errorf("unknown syntax %s: one of jsonl, json, csv, parquet", datasets.Quote(s))
	}
	return nil
}

// pathOf reads a path that begins with one of marks.
func pathOf(n settings.Node, marks string) (*path, error) {
	s, _, err := n.Scalar()
	if err != nil {
		return nil, err
	}
	if s == "" || !strings.Contains(marks, s[:1]) {
		return nil, n.Errorf("%s is no path: write $.name, or $ for the whole", datasets.Quote(s))
	}
	p, err := parsePath(s)
	if err != nil {
		return nil, n.Errorf("%v", err)
	}
	return p, nil
}

func translation(n settings.Node) (map[string]string, error) {
	out := map[string]string{}
	return out, n.Each(func(e settings.Entry) error {
		s, typ, err := e.Value.Scalar()
		if err == nil && typ == "null" {
			return e.Value.Errorf("has no value: say what %s is called here", datasets.Quote(e.Key))
		}
		out[e.Key] = s
		return err
	})
}

// conditions reads where: a list of {path, is} or {path, not}.
func conditions(n settings.Node) ([]condition, error) {
	items, err := n.Items()
	if err != nil {
		return nil, err
	}
	var out []condition
	for _, item := range items {
		var c condition
		err := item.Each(func(e settings.Entry) (err error) {
			switch e.Key {
			case "path":
				c.of, err = parseExpr(e.Value, 0)
			case "is":
				c.is, err = texts(e.Value)
			case "not":
				c.not, err = texts(e.Value)
			case "present":
				var s, typ string
				if s, typ, err = e.Value.Scalar(); err == nil && typ != "bool" {
					err = e.Value.Errorf("expected true or false")
				}
				yes := s == "true"
				c.present = &yes
			default:
				err = settings.Unknown(e.At.Place(), "key", e.Key, []string{"path", "is", "not", "present"})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if c.of == nil || c.is == nil && c.not == nil && c.present == nil {
			return nil, item.Errorf("a condition has a path, and is, not or present")
		}
		out = append(out, c)
	}
	return out, nil
}

func texts(n settings.Node) ([]string, error) {
	if !n.IsSequence() {
		s, _, err := n.Scalar()
		return []string{s}, err
	}
	items, err := n.Items()
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, item := range items {
		s, _, err := item.Scalar()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// takes reports whether the conditions keep the record, or the item.
func takes(where []condition, s *scope) (bool, error) {
	for _, c := range where {
		v, ok, err := c.of.eval(s)
		if err != nil {
			return false, err
		}
		if c.present != nil && ok != *c.present {
			return false, nil
		}
		t := ""
		if ok {
			t = asText(v)
		}
		if c.is != nil && !(ok && slices.Contains(c.is, t)) || c.not != nil && ok && slices.Contains(c.not, t) {
			return false, nil
		}
	}
	return true, nil
}

// used are the names of a record's own fields that the mapping reads.
func (m *Mapping) used() map[string]bool {
	out := map[string]bool{}
	var paths []*path
	if m.each != nil {
		paths = append(paths, m.each)
	}
	m.uses(func(u use) { paths = append(paths, u.paths...) })
	for _, c := range slices.Concat(m.where, m.twinWhere) {
		paths = append(paths, c.of.paths...)
	}
	for _, p := range paths {
		if !p.item && len(p.steps) > 0 && !p.steps[0].at {
			out[p.steps[0].name] = true
		}
	}
	return out
}
