package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/memtox/memtox/internal/text"
)

// Once refuses a JSON object in which one of the fields stands twice: some readers
// take the first, ours the last, and what is measured must not hang on that. Names
// are compared as [json.Unmarshal] does it, without regard to case. The objects, and
// lists of objects, that stand under the names of into are held to the same; fields
// that are not named are nobody's affair; nil names all. What is no object is no error.
func Once(object []byte, fields, into []string) error {
	known, parts := spellings(fields), spellings(into)
	return eachName(object, func(_, fold string) (counts, enter bool, err error) {
		return fields == nil || known[fold] != "", parts[fold] != "", nil
	})
}

// Exact refuses JSON in which any object, however deep, has a name twice, or one that
// differs from another, or from one of fields, in letters' case alone: readers that
// do not take the case for the same would not see the same message. Names that are
// neither are nobody's affair.
func Exact(data []byte, fields []string) error {
	known := spellings(fields)
	return eachName(data, func(name, fold string) (counts, enter bool, err error) {
		if k := known[fold]; k != "" && k != name {
			err = fmt.Errorf("the field %s is written %s", Quote(name), Quote(k))
		}
		return true, true, err
	})
}

// eachName refuses objects in which a name stands twice. look says of a name, and of
// the same without letters' case, whether it counts, whether what stands under it is
// read too, and what else is wrong with it.
func eachName(data []byte, look func(name, fold string) (counts, enter bool, err error)) error {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var value func() error
	value = func() error {
		kind := d.PeekKind()
		if kind != '{' && kind != '[' {
			return d.SkipValue()
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		seen := map[string]string{}
		for d.PeekKind() != '}' && d.PeekKind() != ']' {
			enter := true
			if kind == '{' {
				t, err := d.ReadToken()
				if err != nil {
					return err
				}
				name := t.String()
				fold := folded(name)
				counts, into, err := look(name, fold)
				if before, ok := seen[fold]; ok && counts {
					return fmt.Errorf("the fields %s and %s are one field twice", Quote(before), Quote(name))
				}
				if err != nil {
					return err
				}
				seen[fold], enter = name, into
			}
			next := d.SkipValue
			if enter {
				next = value
			}
			if err := next(); err != nil {
				return err
			}
		}
		_, err := d.ReadToken()
		return err
	}
	return value()
}

// spellings are names by what they are without letters' case.
func spellings(names []string) map[string]string {
	out := make(map[string]string, len(names))
	for _, n := range names {
		out[folded(n)] = n
	}
	return out
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
