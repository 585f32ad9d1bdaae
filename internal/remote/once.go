package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/memtox/memtox/internal/text"
)

// Once refuses a JSON object in which one of the fields stands twice: some readers
// take the first, ours the last, and what is measured must not hang on that. Names
// are compared as [json.Unmarshal] does it, without regard to case. The objects, and
// lists of objects, that stand under the names of into are held to the same; fields
// that are not named are nobody's affair. What is no object is no error.
func Once(object []byte, fields, into []string) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return err
	}
	among := func(names []string, name string) bool {
		return slices.ContainsFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
	}
	var seen []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if among(fields, name) {
			if i := slices.IndexFunc(seen, func(s string) bool { return strings.EqualFold(s, name) }); i >= 0 {
				return fmt.Errorf("the fields %s and %s are one field twice", Quote(seen[i]), Quote(name))
			}
			seen = append(seen, name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if !among(into, name) {
			continue
		}
		parts := []json.RawMessage{value}
		if len(value) > 0 && value[0] == '[' {
			parts = nil
			if err := json.Unmarshal(value, &parts); err != nil {
				return err
			}
		}
		for _, p := range parts {
			if len(p) > 0 && p[0] == '{' {
				if err := Once(p, fields, into); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Exact refuses JSON in which any object, however deep, has a name twice, or one that
// differs from another, or from one of fields, in letters' case alone: readers that
// do not take the case for the same would not see the same message. Names that are
// neither are nobody's affair.
func Exact(data []byte, fields []string) error {
	known := make(map[string]string, len(fields))
	for _, f := range fields {
		known[folded(f)] = f
	}
	d := json.NewDecoder(bytes.NewReader(data))
	var open []map[string]string // names that the objects have had; nil for a list
	name := false                // whether a name comes next
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		switch s, text := t.(string); {
		case t == json.Delim('{'):
			open, name = append(open, map[string]string{}), true
			continue
		case t == json.Delim('['):
			open, name = append(open, nil), false
			continue
		case t == json.Delim('}'), t == json.Delim(']'):
			open = open[:len(open)-1]
		case name && text:
			seen, f := open[len(open)-1], folded(s)
			if before, ok := seen[f]; ok {
				return fmt.Errorf("the fields %s and %s are one field twice", Quote(before), Quote(s))
			}
			if k, ok := known[f]; ok && k != s {
				return fmt.Errorf("the field %s is written %s", Quote(s), Quote(k))
			}
			seen[f], name = s, false
			continue
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// folded is a name in which letters' case does not count, as for [json.Unmarshal].
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// Fields are the names that JSON has for the fields of a struct, and of the structs
// in it.
func Fields(t reflect.Type) (out []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return Fields(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				out = append(out, name)
			}
			out = append(out, Fields(f.Type)...)
		}
	}
	return out
}

// Quote is what another program said, short and inert, for an error.
func Quote(s string) string {
	b, _ := json.Marshal(text.Clip(strings.ToValidUTF8(s, "\uFFFD"), 200))
	return string(b)
}
