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
	fields  map[string]*expr
	// translate has, by field, what a value of theirs is called here.
	translate map[string]map[string]string
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
	"user", "follow_up", "inline", "skill", "writes", "expected_memory", "canary", "retrieval", "expect",
}

// translated are the fields whose values can be translated, by the key that does.
var translated = map[string]string{"labels": "label", "classes": "class", "signals": "signal", "domains": "domain",
	"goals": "goal", "kinds": "kind", "origins": "origin", "media": "medium", "splits": "split"}

// ParseMapping reads a mapping file; file is how errors call it.
func ParseMapping(file string, data []byte) (*Mapping, error) {
	root, err := settings.Parse(file, data)
	if err != nil {
		return nil, err
	}
	m := &Mapping{fields: map[string]*expr{}, translate: map[string]map[string]string{}}
	err = root.Each(func(e settings.Entry) (err error) {
		switch {
		case e.Key == "read":
			err = m.parseSyntax(e.Value)
		case e.Key == "records":
			m.records, err = pathOf(e.Value)
		case e.Key == "each":
			m.each, err = pathOf(e.Value)
		case e.Key == "where":
			m.where, err = conditions(e.Value)
		case translated[e.Key] != "":
			m.translate[translated[e.Key]], err = translation(e.Value)
		case slices.Contains(fieldNames, e.Key):
			m.fields[e.Key], err = parseExpr(e.Value, 0)
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
	for _, must := range []string{"content", "label"} {
		if m.fields[must] == nil && !(must == "content" && m.fields["user"] != nil) {
			return nil, root.Errorf("the mapping lacks %s: say where it stands, as in `%s: $.%s`", must, must, must)
		}
	}
	full := m.fields["user"] != nil
	for _, f := range []string{"follow_up", "inline", "skill", "writes", "retrieval", "expect"} {
		if m.fields[f] != nil && !full {
			return nil, root.Errorf("%s stands in sets with two sessions only: say where the user's words stand (user:), or "+
				"leave it out", f)
		}
	}
	for _, f := range []string{"key", "origin"} {
		if m.fields[f] != nil && full {
			return nil, root.Errorf("%s belongs to texts without sessions: in a session the agent chooses the key, and "+
				"content comes from outside", f)
		}
	}
	usesItem := false
	for _, e := range m.fields {
		usesItem = usesItem || slices.ContainsFunc(e.paths, func(p *path) bool { return p.item })
	}
	if usesItem && m.each == nil {
		return nil, root.Errorf("a path begins with @, the item of each:, and there is no each:")
	}
	return m, nil
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

func pathOf(n settings.Node) (*path, error) {
	s, _, err := n.Scalar()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(s, "$") {
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

// takes reports whether the conditions keep the record.
func (m *Mapping) takes(s *scope) (bool, error) {
	for _, c := range m.where {
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
	for _, e := range m.fields {
		paths = append(paths, e.paths...)
	}
	for _, c := range m.where {
		paths = append(paths, c.of.paths...)
	}
	for _, p := range paths {
		if !p.item && len(p.steps) > 0 && !p.steps[0].at {
			out[p.steps[0].name] = true
		}
	}
	return out
}
