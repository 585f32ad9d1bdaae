package importers

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

// path names a part of a record: $.a.b[0] or $["a name"][1] from the record on, and
// @… from the item of `each:` on. $key and @key are the name (or the place, from 0)
// under which the record or the item stands.
type path struct {
	text  string // as written
	item  bool   // begins at the item
	key   bool
	steps []step
}

type step struct {
	name  string
	index int // where isIndex
	at    bool
}

// stepForm is one step of a path.
var stepForm = regexp.MustCompile(`^(?:\.([^.\[\]"' ]+)|\["(.*?)"\]|\['(.*?)'\]|\[(\d{1,9})\])`)

func parsePath(s string) (*path, error) {
	p := &path{text: s, item: s[0] == '@', key: s[1:] == "key"}
	if p.key {
		return p, nil
	}
	for rest := s[1:]; rest != ""; {
		m := stepForm.FindStringSubmatch(rest)
		if m == nil || m[1] == "*" {
			return nil, fmt.Errorf(`%s is no path from %s on: write $.name.name[0] or $["a name"], name a whole list with `+
				`records: or each:, and begin a text that begins with %c with one more of it`, datasets.Quote(s),
				datasets.Quote(rest), s[0])
		}
		index, _ := strconv.Atoi(m[4])
		p.steps = append(p.steps, step{name: m[1] + m[2] + m[3], index: index, at: m[4] != ""})
		rest = rest[len(m[0]):]
	}
	return p, nil
}

// walk follows the steps. ok is false where something is missing, and v nil, or
// null.
func (p *path) walk(v *value) (*value, bool) {
	for _, s := range p.steps {
		switch {
		case s.at && v.kind == list && s.index < len(v.items):
			v = &v.items[s.index]
		case !s.at && v.kind == object:
			next, ok := v.field(s.name)
			if !ok {
				return nil, false
			}
			v = next
		default:
			return nil, false
		}
	}
	return v, v.kind != null
}

// scope is what an expression is read from: a record, and an item of it.
type scope struct {
	record
	item    *value
	itemKey string
}

func (s *scope) find(p *path) (*value, bool) {
	switch {
	case p.key && p.item:
		return textOf(s.itemKey), s.item != nil
	case p.key:
		return textOf(s.key), true
	case p.item && s.item == nil:
		return nil, false
	case p.item:
		return p.walk(s.item)
	}
	return p.walk(s.v)
}

// expr is what a mapping says of a field.
type expr struct {
	find    func(*scope) (v *value, ok bool, err error)
	paths   []*path
	literal bool
	found   int // in how many records it was there
}

// eval returns the value; ok is false where it is missing.
func (e *expr) eval(s *scope) (v *value, ok bool, err error) {
	v, ok, err = e.find(s)
	if v != nil { // null counts: the name is right
		e.found++
	}
	return v, ok, err
}

func pathExpr(p *path) *expr {
	return &expr{paths: []*path{p}, find: func(s *scope) (*value, bool, error) {
		v, ok := s.find(p)
		return v, ok, nil
	}}
}

func textOf(s string) *value { return &value{kind: str, text: s} }

// parseExpr reads a field of a mapping: a literal, a path, a list of alternatives,
// or a mapping with one of join, all, base64, generate.
func parseExpr(n settings.Node, depth int) (*expr, error) {
	if depth > 8 {
		return nil, n.Errorf("nested too deep")
	}
	if n.IsSequence() {
		return parseSeveral(n, depth, firstOf)
	}
	s, typ, err := n.Scalar()
	switch {
	case err != nil:
		return parseMade(n, depth)
	case typ == "null":
		return nil, n.Errorf("has no value; give a path, a text, or leave the key out")
	case typ == "str" && (strings.HasPrefix(s, "$$") || strings.HasPrefix(s, "@@")):
		s = s[1:]
	case typ == "str" && s != "" && (s[0] == '$' || s[0] == '@'):
		p, err := parsePath(s)
		if err != nil {
			return nil, n.Errorf("%v", err)
		}
		return pathExpr(p), nil
	}
	return &expr{literal: true, find: func(*scope) (*value, bool, error) { return textOf(s), true, nil }}, nil
}

// makers are the keys of expressions that make a value of others.
var makers = []string{"join", "with", "all", "base64", "generate"}

// parseMade reads an expression that makes a value of others.
func parseMade(n settings.Node, depth int) (e *expr, err error) {
	kinds, with := 0, ""
	err = n.Each(func(x settings.Entry) (err error) {
		kinds++
		switch x.Key {
		case "join":
			e, err = parseSeveral(x.Value, depth, func(list []*expr, s *scope) (*value, bool, error) {
				return joined(list, &with, s)
			})
		case "all":
			e, err = parseSeveral(x.Value, depth, together)
		case "base64":
			e, err = parseText(x.Value, depth, decode64)
		case "generate":
			e, err = parseText(x.Value, depth, generate)
		case "with":
			with, _, err = x.Value.Scalar()
			kinds--
		default:
			return x.At.Errorf("unknown key %s: one of join (and with), all, base64, generate", datasets.Quote(x.Key))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if kinds != 1 {
		return nil, n.Errorf("one of join, all, base64, generate belongs here")
	}
	return e, nil
}

// parseSeveral reads a list of expressions, of which find makes one.
func parseSeveral(n settings.Node, depth int, find func([]*expr, *scope) (*value, bool, error)) (*expr, error) {
	items, err := n.Items()
	if err == nil && len(items) == 0 {
		err = n.Errorf("an empty list; name a path")
	}
	if err != nil {
		return nil, err
	}
	var list []*expr
	e := &expr{find: func(s *scope) (*value, bool, error) { return find(list, s) }}
	for _, item := range items {
		one, err := parseExpr(item, depth+1)
		if err != nil {
			return nil, err
		}
		list, e.paths = append(list, one), append(e.paths, one.paths...)
	}
	return e, nil
}

// parseText reads an expression of whose value a function makes a text.
func parseText(n settings.Node, depth int, read func(*value) (string, error)) (*expr, error) {
	of, err := parseExpr(n, depth+1)
	if err != nil {
		return nil, err
	}
	return &expr{paths: of.paths, find: func(s *scope) (*value, bool, error) {
		v, ok, err := of.eval(s)
		if !ok || err != nil {
			return v, false, err
		}
		text, err := read(v)
		return textOf(text), err == nil, err
	}}, nil
}

// firstOf is the first that is there.
func firstOf(list []*expr, s *scope) (v *value, ok bool, err error) {
	for _, e := range list {
		next, ok, err := e.eval(s)
		if ok || err != nil {
			return next, ok, err
		}
		if next != nil {
			v = next
		}
	}
	return v, false, nil
}

// joined is those that are there, one after the other.
func joined(list []*expr, with *string, s *scope) (*value, bool, error) {
	var parts []string
	for _, e := range list {
		v, ok, err := e.eval(s)
		if err != nil {
			return nil, false, err
		}
		if ok {
			parts = append(parts, asText(v))
		}
	}
	if parts == nil {
		return nil, false, nil
	}
	return textOf(strings.Join(parts, *with)), true, nil
}

// together is the list of those that are there; of a list its items.
func together(of []*expr, s *scope) (*value, bool, error) {
	out := &value{kind: list}
	for _, e := range of {
		v, ok, err := e.eval(s)
		switch {
		case err != nil:
			return nil, false, err
		case ok && v.kind == list:
			out.items = append(out.items, v.items...)
		case ok:
			out.items = append(out.items, *v)
		}
	}
	return out, len(out.items) > 0, nil
}

const maxGenerated = 64 << 20 // bytes of a text that a generator makes

// asText is a scalar as it is written, and anything else as JSON.
func asText(v *value) string {
	switch v.kind {
	case str, number, boolean:
		return v.text
	}
	var b strings.Builder
	v.json(&b)
	return b.String()
}

func decode64(v *value) (string, error) {
	if v.kind != str {
		return "", fmt.Errorf("%s stands where a base64 text belongs", v.kind)
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v.text, "=\r\n"))
	if err != nil {
		return "", fmt.Errorf("not base64: %v", err)
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("the base64 text holds invalid UTF-8")
	}
	return string(b), nil
}

// generate makes the text that a generator describes, as in AMG's corpus:
// {"repeat": "A", "times": 3}, or a list of numbers between a prefix and a suffix.
func generate(v *value) (string, error) {
	if v.kind != object {
		return "", fmt.Errorf("%s stands where a generator belongs: an object", v.kind)
	}
	text := func(name string) string {
		if f, ok := v.field(name); ok && f.kind == str {
			return f.text
		}
		return ""
	}
	whole := func(f *value) (int, error) {
		n, err := strconv.Atoi(f.text)
		if f.kind != number || err != nil || n < 0 || n > maxGenerated {
			return 0, fmt.Errorf("%s is no whole number from 0 to %d", datasets.Quote(asText(f)), maxGenerated)
		}
		return n, nil
	}
	if times, ok := v.field("times"); ok {
		n, err := whole(times)
		if err != nil {
			return "", fmt.Errorf("times: %w", err)
		}
		unit := text("repeat")
		if unit == "" {
			return "", fmt.Errorf("repeat: a text is missing")
		}
		if len(unit)*n > maxGenerated {
			return "", fmt.Errorf("the generated text is larger than %d MiB", maxGenerated>>20)
		}
		return strings.Repeat(unit, n), nil
	}
	span, ok := v.field("int_range")
	if !ok || span.kind != list || len(span.items) != 2 {
		return "", fmt.Errorf("unknown generator with %s: know repeat and times, or prefix, join, int_range and suffix",
			fieldsOf(v))
	}
	from, err := whole(&span.items[0])
	to, err2 := whole(&span.items[1])
	if err := cmp.Or(err, err2); err != nil {
		return "", fmt.Errorf("int_range: %w", err)
	}
	var b strings.Builder
	b.WriteString(text("prefix"))
	for i := from; i < to; i++ {
		if i > from {
			b.WriteString(text("join"))
		}
		b.WriteString(strconv.Itoa(i))
		if b.Len() > maxGenerated {
			return "", fmt.Errorf("the generated text is larger than %d MiB", maxGenerated>>20)
		}
	}
	b.WriteString(text("suffix"))
	return b.String(), nil
}
