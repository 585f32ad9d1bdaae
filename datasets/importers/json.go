package importers

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/memtox/memtox/datasets"
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	str
	list
	object
	binary // of Parquet: bytes that are no text
)

func (k kind) String() string {
	return [...]string{"null", "a truth value", "a number", "a text", "a list", "an object",
		"bytes that are no UTF-8 text"}[k]
}

// value is one JSON value, in the order of its file. A record of CSV or Parquet is
// one too.
type value struct {
	kind  kind
	text  string   // of a text, a number (as written), true or false
	names []string // of an object, beside items
	items []value
	pos   int // where it stands, in bytes from the start of what was parsed
}

func (v *value) field(name string) (*value, bool) {
	for i, n := range v.names {
		if n == name {
			return &v.items[i], true
		}
	}
	return nil, false
}

// nameOf is what the i-th item of an object or a list stands under.
func (v *value) nameOf(i int) string {
	if v.kind == object {
		return v.names[i]
	}
	return strconv.Itoa(i)
}

// json writes the value as JSON without white space.
func (v *value) json(b *strings.Builder) {
	switch v.kind {
	case null:
		b.WriteString("null")
	case boolean, number:
		b.WriteString(v.text)
	case str:
		writeString(b, v.text)
	case binary:
		writeString(b, base64.StdEncoding.EncodeToString([]byte(v.text)))
	default:
		ends := "[]"
		if v.kind == object {
			ends = "{}"
		}
		b.WriteByte(ends[0])
		for i := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if v.kind == object {
				writeString(b, v.names[i])
				b.WriteByte(':')
			}
			v.items[i].json(b)
		}
		b.WriteByte(ends[1])
	}
}

// longEscapes writes control characters as the ids of imported cases have had them
// ever since. A pair of backslashes is no escape of what follows.
var longEscapes = strings.NewReplacer(`\\`, `\\`, `\b`, `\u0008`, `\t`, `\u0009`, `\n`, `\u000a`, `\f`, `\u000c`,
	`\r`, `\u000d`)

func writeString(b *strings.Builder, s string) {
	q, _ := jsontext.AppendQuote(nil, s) // texts are valid UTF-8
	_, _ = longEscapes.WriteString(b, string(q))
}

// maxDepth bounds how deep a foreign value may be nested.
const maxDepth = 128

// parser reads JSON values that follow each other. encoding/json takes the last of
// two equal names, and U+FFFD for a broken character, without a word.
type parser struct {
	s string
	d *jsontext.Decoder
}

func newParser(s string) *parser {
	return &parser{s, jsontext.NewDecoder(bytes.NewBufferString(s))}
}

type syntaxError struct {
	pos          int
	what, remedy string
}

func (e *syntaxError) Error() string { return e.what }

// fail makes an error of what stands behind all that was read.
func (p *parser) fail(what, remedy string) error {
	return &syntaxError{int(p.d.InputOffset()), what, remedy}
}

// next reads the next value; ok is false at the end.
func (p *parser) next() (v value, ok bool, err error) {
	v, err = p.value()
	if err == io.EOF {
		return value{}, false, nil
	}
	var broken *jsontext.SyntacticError
	if errors.As(err, &broken) {
		what, remedy := datasets.BrokenJSON(p.s, broken)
		err = &syntaxError{int(broken.ByteOffset), what, remedy}
	}
	return v, err == nil, err
}

var kindOf = map[jsontext.Kind]kind{'t': boolean, 'f': boolean, '0': number, '"': str, '[': list, '{': object}

func (p *parser) value() (v value, err error) {
	t, err := p.d.ReadToken()
	if err != nil {
		return v, err
	}
	v.pos = int(p.d.InputOffset()) // on the line on which it begins: no token has two
	switch v.kind = kindOf[t.Kind()]; v.kind {
	case null:
		return v, nil
	case boolean, number, str:
		v.text = t.String()
		return v, nil
	}
	if p.d.StackDepth() > maxDepth {
		return v, p.fail(fmt.Sprintf("nested deeper than %d levels", maxDepth), "flatten it first")
	}
	for {
		switch p.d.PeekKind() {
		case '}', ']':
			_, err = p.d.ReadToken()
			return v, err
		}
		if v.kind == object {
			name, err := p.d.ReadToken()
			if err != nil {
				return v, err
			}
			if len(v.names) > 4096 {
				return v, p.fail("an object has more than 4,096 fields",
					"is this a table of records? name it with records: in the mapping")
			}
			v.names = append(v.names, name.String())
		}
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
}

// mistake makes an error about a place in the data.
func mistake(file string, line int, field, what, remedy string) *datasets.Error {
	return &datasets.Error{File: file, Line: line, Field: field, What: what, Remedy: remedy}
}
