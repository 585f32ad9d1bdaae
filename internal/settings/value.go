package settings

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader is a value that reads itself.
type Reader interface{ ReadSetting(Node) error }

// Schemer is a value, or one of a list, with a JSON Schema of its own.
type Schemer interface{ SettingSchema() map[string]any }

var (
	duration    = reflect.TypeFor[time.Duration]()
	unmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// kind is what values of a type are like.
type kind struct {
	word   string         // for one in help texts; empty is the name of the type
	name   string         // for one in errors
	is     string         // what errors say that a text is not
	yaml   []string       // the types that one has in YAML
	schema map[string]any // for one in JSON
	// parse reads one. Its size is what bounds are about.
	parse func(string) (value any, size float64, err error)
}

var kinds = map[reflect.Kind]kind{
	duration.Kind(): {"DURATION", "duration", "a duration", []string{"str"}, map[string]any{"anyOf": []any{
		map[string]any{"type": "string", "pattern": `^(([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0)$`},
		map[string]any{"const": 0}}},
		func(s string) (any, float64, error) {
			d, err := time.ParseDuration(s)
			if d < 0 {
				err = errors.New("below 0")
			}
			return d, float64(d), err
		}},
	reflect.String: {"TEXT", "text", "a text", []string{"str"}, map[string]any{"type": "string"},
		func(s string) (any, float64, error) { return s, 0, nil }},
	reflect.Bool: {"", "value", "true or false", []string{"bool"}, map[string]any{"type": "boolean"},
		func(s string) (any, float64, error) {
			if s != "true" && s != "false" {
				return nil, 0, errors.New("neither")
			}
			return s == "true", 0, nil
		}},
	reflect.Int: {"N", "whole number", "a whole number", []string{"int"}, map[string]any{"type": "integer"},
		func(s string) (any, float64, error) { i, err := strconv.Atoi(s); return i, float64(i), err }},
	reflect.Uint64: {"", "whole number", "a whole number from 0 to 18446744073709551615", []string{"int"},
		map[string]any{"type": "integer", "minimum": 0},
		func(s string) (any, float64, error) { u, err := strconv.ParseUint(s, 10, 64); return u, 0, err }},
	reflect.Float64: {"NUMBER", "number", "a number", []string{"int", "float"}, map[string]any{"type": "number"},
		func(s string) (any, float64, error) {
			f, err := strconv.ParseFloat(s, 64)
			if math.IsNaN(f) || math.IsInf(f, 0) {
				err = errors.New("no number")
			}
			return f, f, err
		}},
}

func reads(t reflect.Type) bool { return reflect.PointerTo(t).Implements(reflect.TypeFor[Reader]()) }

// Value reads and changes one setting of one struct.
type Value struct {
	key *Key
	v   reflect.Value
}

// Of returns the setting's value in the struct that p points to. Changing it changes
// the struct, after the value was checked.
func (k Key) Of(p any) Value { return Value{&k, reflect.ValueOf(p).Elem().FieldByIndex(k.path)} }

// Copy gives the setting in the struct that to points to the value that it has in
// another.
func (k Key) Copy(to, from any) { k.Of(to).v.Set(k.Of(from).v) }

// List reports whether the setting has several values.
func (v Value) List() bool { _, list := v.key.element(); return list }

// Items returns the values of a list as texts, or the one value.
func (v Value) Items() []string {
	if !v.List() {
		return []string{text(v.v)}
	}
	out := []string{}
	for i := range v.v.Len() {
		out = append(out, text(v.v.Index(i)))
	}
	return out
}

// String is the value as a flag takes it.
func (v Value) String() string { return strings.Join(v.Items(), ",") }

// JSON returns the value as it stands in JSON.
func (v Value) JSON() any {
	switch {
	case v.List():
		return v.Items()
	case v.v.Type() == duration:
		return v.String()
	}
	return v.v.Interface()
}

func text(v reflect.Value) string {
	switch s := v.Interface().(type) {
	case fmt.Stringer:
		return s.String()
	case float64:
		return strconv.FormatFloat(s, 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// Set takes the text of a flag, or of a list's the texts of several flags: where one ends,
// so does its last item, whatever it may hold.
func (v Value) Set(flags ...string) error {
	if !v.List() {
		return v.set(flags[len(flags)-1])
	}
	var items []string
	for _, s := range flags {
		switch {
		case v.key.special.Split != nil:
			items = append(items, v.key.special.Split(s)...)
		case v.key.table.Texts && strings.TrimSpace(s) != "":
			items = append(items, s)
		case strings.TrimSpace(s) != "":
			items = append(items, strings.Split(s, ",")...)
		}
	}
	return v.setItems(items, "", nil)
}

func (v Value) set(s string) error {
	p, err := v.key.parse(s)
	if err == nil {
		v.v.Set(p)
	}
	return err
}

// setItems changes a list. nodes are where the items stand in a file.
func (v Value) setItems(items []string, where string, nodes []Node) error {
	out := reflect.Zero(v.v.Type())
	if len(items) > 0 || v.key.table.Texts {
		out = reflect.MakeSlice(v.v.Type(), 0, len(items))
	}
	var seen []string
	for i, s := range items {
		if nodes != nil {
			where = nodes[i].Place()
		}
		fail := func(what string) error { return &Problem{Where: where, What: what} }
		if s = strings.TrimSpace(s); s == "" {
			return fail("an empty name stands in the list")
		}
		p, err := v.key.parse(s)
		if err != nil {
			return Placed(where, err)
		}
		if slices.Contains(seen, text(p)) && !v.key.table.Texts {
			return fail(fmt.Sprintf("%q stands in the list twice", s))
		}
		seen = append(seen, text(p))
		out = reflect.Append(out, p)
	}
	v.v.Set(out)
	return nil
}

func (v Value) setJSON(data []byte) error {
	if v.List() {
		var items []string
		if err := json.Unmarshal(data, &items); err != nil {
			return err
		}
		return v.setItems(items, "", nil)
	}
	s := string(data)
	if s[0] == '"' {
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
	}
	return v.Set(s)
}

// read takes a value of a file.
func (v Value) read(n Node) error {
	err := v.readNode(n)
	if err == nil {
		return nil
	}
	p := Placed(n.Place(), err).(*Problem)
	if !strings.HasPrefix(p.What, v.key.Name) && v.key.Records == nil {
		p = &Problem{Where: p.Where, What: v.key.Name + ": " + p.What, Hint: p.Hint, Err: p.Err}
	}
	return p
}

func (v Value) readNode(n Node) error {
	if r, ok := v.v.Addr().Interface().(Reader); ok {
		return r.ReadSetting(n)
	}
	_, typ, scalar := n.Scalar()
	if v.List() && scalar == nil && typ == "null" {
		v.v.SetZero()
		return nil
	}
	if v.key.Records != nil {
		return v.readRecords(n)
	}
	if v.List() {
		nodes := []Node{n}
		if n.IsSequence() {
			nodes, _ = n.Items()
		} else if !v.key.table.Texts && scalar == nil {
			s, _, _ := n.Scalar()
			return v.Set(s)
		}
		items := make([]string, len(nodes))
		for i, item := range nodes {
			s, typ, err := item.Scalar()
			switch {
			case err != nil:
				return err
			case typ == "null":
				return item.Errorf("an empty item stands in the list")
			case v.key.table.Texts && typ != "str":
				return item.Errorf("expected a text, found %q: put it in quotes", s)
			}
			items[i] = s
		}
		return v.setItems(items, "", nodes)
	}
	of := v.v.Type()
	k, known := kinds[of.Kind()]
	if n.IsSequence() {
		return n.Errorf("a list stands where one %s belongs", cmp.Or(k.name, "value"))
	}
	s, typ, err := n.Scalar()
	switch {
	case err != nil:
		return err
	case typ == "null":
		return &Problem{What: "has no value", Hint: "leave the key out for the default"}
	case of == duration && s == "0", reflect.PointerTo(of).Implements(unmarshaler), !known, slices.Contains(k.yaml, typ):
		return v.set(s)
	case k.yaml[0] == "str":
		return &Problem{What: fmt.Sprintf("expected a %s, found the %s %s", k.name, typ, s),
			Hint: "put it in quotes if it is meant as text"}
	}
	return &Problem{What: fmt.Sprintf("%q is not %s", s, k.is)}
}

func (v Value) readRecords(n Node) error {
	items, err := n.Items()
	if err != nil {
		return err
	}
	out := reflect.MakeSlice(v.v.Type(), len(items), len(items))
	seen := map[[2]string]bool{}
	for i, item := range items {
		if d, ok := out.Index(i).Addr().Interface().(interface{ SettingDefaults() }); ok {
			d.SettingDefaults()
		}
		if err := v.key.Records.read(item, out.Index(i)); err != nil {
			return err
		}
		for _, k := range v.key.Records.Keys {
			if s := k.Of(out.Index(i).Addr().Interface()).String(); k.Unique {
				if seen[[2]string{k.Name, s}] {
					return item.Errorf("two %s have the %s %q: give each its own", v.key.Name, k.Name, s)
				}
				seen[[2]string{k.Name, s}] = true
			}
		}
	}
	v.v.Set(out)
	return nil
}

// parse makes one value of a text and checks it.
func (k *Key) parse(s string) (reflect.Value, error) {
	of, _ := k.element()
	p := reflect.New(of)
	v := p.Elem()
	bad := func(format string, args ...any) (reflect.Value, error) {
		return v, &Problem{What: fmt.Sprintf(format, args...)}
	}
	if k.special.Check != nil {
		var err error
		if s, err = k.special.Check(s); err != nil {
			return v, err
		}
	}
	if k.Choices != nil && !slices.Contains(k.Choices, s) {
		return v, Unknown("", k.Name[strings.LastIndexByte(k.Name, '.')+1:], s, k.Choices)
	}
	if u, ok := p.Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(s)); err != nil {
			return bad("%v", err)
		}
		return v, nil
	}
	kind, known := kinds[of.Kind()]
	if !known {
		return bad("nothing reads a %s", of)
	}
	plain := s
	if of.Kind() != reflect.String {
		plain = strings.TrimSpace(s)
	} else if s == "" && k.table.Texts {
		return bad("it is empty: give it a text or leave it out")
	}
	value, size, err := kind.parse(plain)
	if err != nil {
		p := &Problem{What: fmt.Sprintf("%q is not %s", s, kind.is)}
		if of == duration {
			p.Hint = "for instance 500ms or 2s"
		}
		return v, p
	}
	if k.Max != "" && (size < k.min || size > k.max) {
		return v, &Problem{What: fmt.Sprintf("%s is out of range", plain),
			Hint: fmt.Sprintf("at least %s, at most %s", k.Min, k.Max)}
	}
	v.Set(reflect.ValueOf(value).Convert(of))
	return v, nil
}
