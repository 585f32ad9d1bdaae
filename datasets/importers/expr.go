package importers

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

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

// parsePath reads a path.
func parsePath(s string) (*path, error) {
	p := &path{text: s, item: s[0] == '@'}
	rest := s[1:]
	if rest == "key" {
		p.key = true
		return p, nil
	}
	bad := func(what string) error {
		return fmt.Errorf(`%s is no path: %s; write $.name.name[0] or $["a name"], and a text that begins with %c with one more of it in front`, quote(s), what, s[0])
	}
	for rest != "" {
		switch {
		case rest[0] == '.':
			rest = rest[1:]
			n := strings.IndexAny(rest, ".[")
			if n < 0 {
				n = len(rest)
			}
			if n == 0 || rest[:n] == "*" || strings.ContainsAny(rest[:n], "]\"' ") {
				return nil, bad("a name belongs after the point")
			}
			p.steps = append(p.steps, step{name: rest[:n]})
			rest = rest[n:]
		case strings.HasPrefix(rest, `["`) || strings.HasPrefix(rest, `['`):
			end := strings.Index(rest[2:], rest[1:2]+"]")
			if end < 0 {
				return nil, bad("the bracket is not closed")
			}
			p.steps = append(p.steps, step{name: rest[2 : 2+end]})
			rest = rest[end+4:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, bad("the bracket is not closed")
			}
			n, err := strconv.ParseUint(rest[1:end], 10, 31)
			if err != nil {
				return nil, bad("a whole number or a name in quotes belongs into the brackets (a whole list is named with " +
					"records: or each:)")
			}
			p.steps = append(p.steps, step{index: int(n), at: true})
			rest = rest[end+1:]
		default:
			return nil, bad("a point or a bracket belongs there")
		}
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
		return &value{kind: str, text: s.itemKey}, s.item != nil
	case p.key:
		return &value{kind: str, text: s.key}, true
	case p.item && s.item == nil:
		return nil, false
	case p.item:
		return p.walk(s.item)
	}
	return p.walk(s.v)
}

// expr is what a mapping says of a field.
type expr struct {
	literal *string
	path    *path
	first   []*expr // the first that is there
	join    []*expr // those that are there, one after the other
	with    string
	base64  *expr
	repeat  *expr // a generator: {"repeat","times"} or {"prefix","join","int_range","suffix"}
	found   int   // in how many records it was there
}

// parseExpr reads a field of a mapping: a literal, a path, a list of alternatives,
// or a mapping with one of join, base64, generate.
func parseExpr(n settings.Node, depth int) (*expr, error) {
	if depth > 8 {
		return nil, n.Errorf("nested too deep")
	}
	several := func(n settings.Node) ([]*expr, error) {
		items, err := n.Items()
		if err != nil {
			return nil, err
		}
		var out []*expr
		for _, item := range items {
			e, err := parseExpr(item, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		if len(out) == 0 {
			return nil, n.Errorf("an empty list; name a path")
		}
		return out, nil
	}
	if n.IsSequence() {
		list, err := several(n)
		return &expr{first: list}, err
	}
	if s, typ, err := n.Scalar(); err == nil {
		switch {
		case typ == "null":
			return nil, n.Errorf("has no value; give a path, a text, or leave the key out")
		case typ == "str" && (strings.HasPrefix(s, "$$") || strings.HasPrefix(s, "@@")):
			s = s[1:]
			return &expr{literal: &s}, nil
		case typ == "str" && s != "" && (s[0] == '$' || s[0] == '@'):
			p, err := parsePath(s)
			if err != nil {
				return nil, n.Errorf("%v", err)
			}
			return &expr{path: p}, nil
		}
		return &expr{literal: &s}, nil
	}
	entries, err := n.Entries()
	if err != nil {
		return nil, err
	}
	e := &expr{}
	kinds := 0
	for _, x := range entries {
		var err error
		switch x.Key {
		case "join":
			e.join, err = several(x.Value)
			kinds++
		case "with":
			e.with, _, err = x.Value.Scalar()
		case "base64":
			e.base64, err = parseExpr(x.Value, depth+1)
			kinds++
		case "generate":
			e.repeat, err = parseExpr(x.Value, depth+1)
			kinds++
		default:
			return nil, x.At.Errorf("unknown key %s: one of join (and with), base64, generate", quote(x.Key))
		}
		if err != nil {
			return nil, err
		}
	}
	if kinds != 1 {
		return nil, n.Errorf("one of join, base64, generate belongs here")
	}
	return e, nil
}

// paths visits every path of the expression.
func (e *expr) paths(f func(*path)) {
	if e == nil {
		return
	}
	if e.path != nil {
		f(e.path)
	}
	for _, sub := range append(append([]*expr{e.base64, e.repeat}, e.first...), e.join...) {
		sub.paths(f)
	}
}

const maxGenerated = 64 << 20 // bytes of a text that a generator makes

// eval returns the value; ok is false where it is missing.
func (e *expr) eval(s *scope) (v *value, ok bool, err error) {
	defer func() {
		if v != nil { // null counts: the name is right
			e.found++
		}
	}()
	switch {
	case e.literal != nil:
		return &value{kind: str, text: *e.literal}, true, nil
	case e.path != nil:
		v, ok = s.find(e.path)
		return v, ok, nil
	case e.first != nil:
		for _, sub := range e.first {
			next, ok, err := sub.eval(s)
			if ok || err != nil {
				return next, ok, err
			}
			if next != nil {
				v = next
			}
		}
		return v, false, nil
	case e.join != nil:
		var parts []string
		for _, sub := range e.join {
			v, ok, err := sub.eval(s)
			if err != nil {
				return nil, false, err
			}
			if ok {
				parts = append(parts, asText(v))
			}
		}
		if len(parts) == 0 {
			return nil, false, nil
		}
		return &value{kind: str, text: strings.Join(parts, e.with)}, true, nil
	case e.base64 != nil:
		v, ok, err = e.base64.eval(s)
		if !ok || err != nil {
			return v, false, err
		}
		text, err := decode64(v)
		return &value{kind: str, text: text}, err == nil, err
	}
	v, ok, err = e.repeat.eval(s)
	if !ok || err != nil {
		return v, false, err
	}
	text, err := generate(v)
	return &value{kind: str, text: text}, err == nil, err
}

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
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, v.text)
	b, err := base64.StdEncoding.DecodeString(clean)
	if err != nil {
		if b, err = base64.RawStdEncoding.DecodeString(clean); err != nil {
			return "", fmt.Errorf("not base64: %v", err)
		}
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
			return 0, fmt.Errorf("%s is no whole number from 0 to %d", quote(asText(f)), maxGenerated)
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
			names(v))
	}
	from, err := whole(&span.items[0])
	if err != nil {
		return "", fmt.Errorf("int_range: %w", err)
	}
	to, err := whole(&span.items[1])
	if err != nil {
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
