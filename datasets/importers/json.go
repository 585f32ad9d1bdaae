package importers

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

// kind is the type of a value.
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
	return [...]string{"null", "a truth value", "a number", "a text", "a list", "an object", "bytes that are no UTF-8 text"}[k]
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
	case list:
		b.WriteByte('[')
		for i := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			v.items[i].json(b)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, v.names[i])
			b.WriteByte(':')
			v.items[i].json(b)
		}
		b.WriteByte('}')
	}
}

func writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	start := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			b.WriteString(s[start:i])
			start = i + 1
			if c < ' ' {
				fmt.Fprintf(b, `\u%04x`, c)
			} else {
				b.WriteByte('\\')
				b.WriteByte(c)
			}
		}
	}
	b.WriteString(s[start:])
	b.WriteByte('"')
}

// maxDepth bounds how deep a foreign value may be nested.
const maxDepth = 128

// parser reads JSON values that follow each other. encoding/json takes the last of
// two equal names, and U+FFFD for a broken character, without a word.
type parser struct {
	s     string
	i     int
	depth int
}

// syntaxError is a mistake with its place.
type syntaxError struct {
	pos          int
	what, remedy string
}

func (e *syntaxError) Error() string { return e.what }

func (p *parser) fail(pos int, what, remedy string) error { return &syntaxError{pos, what, remedy} }

// next reads the next value; ok is false at the end.
func (p *parser) next() (v value, ok bool, err error) {
	p.space()
	if p.i == len(p.s) {
		return value{}, false, nil
	}
	v, err = p.value()
	return v, err == nil, err
}

func (p *parser) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t' || p.s[p.i] == '\n' || p.s[p.i] == '\r') {
		p.i++
	}
}

func (p *parser) value() (v value, err error) {
	p.space()
	v.pos = p.i
	if p.i == len(p.s) {
		return v, p.fail(p.i, "broken JSON: it ends where a value belongs", "is the file cut off?")
	}
	switch c := p.s[p.i]; {
	case c == '"':
		v.kind = str
		v.text, err = p.str()
		return v, err
	case c == '{' || c == '[':
		if p.depth++; p.depth > maxDepth {
			return v, p.fail(p.i, fmt.Sprintf("nested deeper than %d levels", maxDepth), "flatten it first")
		}
		err = p.container(&v, c)
		p.depth--
		return v, err
	case c == '-' || c >= '0' && c <= '9':
		v.kind = number
		v.text, err = p.number()
		return v, err
	}
	for _, w := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(p.s[p.i:], w) {
			p.i += len(w)
			if w != "null" {
				v.kind, v.text = boolean, w
			}
			return v, nil
		}
	}
	r, n := utf8.DecodeRuneInString(p.s[p.i:])
	if r == utf8.RuneError && n == 1 {
		return v, p.fail(p.i, "invalid UTF-8", "save the file as UTF-8")
	}
	return v, p.fail(p.i, "broken JSON: expected a value, found "+quote(string(r)), "one JSON object on each line")
}

func (p *parser) container(v *value, open byte) error {
	v.kind = list
	end := byte(']')
	if open == '{' {
		v.kind, end = object, '}'
	}
	p.i++
	for n := 0; ; n++ {
		p.space()
		if p.i < len(p.s) && p.s[p.i] == end && n == 0 {
			p.i++
			return nil
		}
		if n > 0 {
			if p.i < len(p.s) && p.s[p.i] == end {
				p.i++
				return nil
			}
			if p.i == len(p.s) || p.s[p.i] != ',' {
				return p.fail(p.i, "broken JSON: "+v.kind.String()+" is not closed", "is the line cut off?")
			}
			p.i++
			p.space()
		}
		if v.kind == object {
			at := p.i
			if p.i == len(p.s) || p.s[p.i] != '"' {
				return p.fail(p.i, "broken JSON: a field name in double quotes is missing", "is the line cut off?")
			}
			name, err := p.str()
			if err != nil {
				return err
			}
			for _, other := range v.names {
				if other == name {
					return p.fail(at, "the field "+quote(name)+" stands twice in one object", "keep one of them")
				}
			}
			if len(v.names) > 4096 {
				return p.fail(at, "an object has more than 4,096 fields", "is this a table of records? name it with records: in the mapping")
			}
			v.names = append(v.names, name)
			p.space()
			if p.i == len(p.s) || p.s[p.i] != ':' {
				return p.fail(p.i, "broken JSON: a colon is missing after "+quote(name), "is the line cut off?")
			}
			p.i++
		}
		item, err := p.value()
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
}

func (p *parser) number() (string, error) {
	start := p.i
	digits := func() bool {
		from := p.i
		for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
			p.i++
		}
		return p.i > from
	}
	bad := func() (string, error) {
		return "", p.fail(start, "broken JSON: not a number", "write 1, 1.5 or 1e3, or put it in quotes")
	}
	if p.s[p.i] == '-' {
		p.i++
	}
	zero := p.i < len(p.s) && p.s[p.i] == '0'
	from := p.i
	if !digits() || zero && p.i-from > 1 {
		return bad()
	}
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i++
		if !digits() {
			return bad()
		}
	}
	if p.i < len(p.s) && p.s[p.i]|0x20 == 'e' {
		p.i++
		if p.i < len(p.s) && (p.s[p.i] == '+' || p.s[p.i] == '-') {
			p.i++
		}
		if !digits() {
			return bad()
		}
	}
	return p.s[start:p.i], nil
}

func (p *parser) str() (string, error) {
	start := p.i
	p.i++
	from := p.i
	var b []byte // only where there is an escape
	plain := true
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case c == '"':
			s := p.s[from:p.i]
			p.i++
			if b != nil {
				s = string(append(b, s...))
			}
			if !plain && !utf8.ValidString(s) {
				return "", p.fail(start+invalidUTF8(p.s[start:p.i]), "invalid UTF-8", "save the file as UTF-8")
			}
			return s, nil
		case c == '\\':
			b = append(b, p.s[from:p.i]...)
			var err error
			if b, err = p.escape(b); err != nil {
				return "", err
			}
			if b == nil {
				b = []byte{}
			}
			from = p.i
		case c < ' ':
			return "", p.fail(p.i, fmt.Sprintf("broken JSON: the control character %q stands bare in a text", c), `write it as \n, \t or \u00..`)
		default:
			plain = plain && c < utf8.RuneSelf
			p.i++
		}
	}
	return "", p.fail(start, "broken JSON: a text has no closing quote", "is the line cut off?")
}

func invalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return 0
}

func (p *parser) escape(b []byte) ([]byte, error) {
	at := p.i
	p.i++
	if p.i == len(p.s) {
		return nil, p.fail(at, "broken JSON: a text ends in a backslash", "is the line cut off?")
	}
	c := p.s[p.i]
	p.i++
	if k := strings.IndexByte(`"\/bfnrt`, c); k >= 0 {
		return append(b, "\"\\/\b\f\n\r\t"[k]), nil
	}
	if c != 'u' {
		return nil, p.fail(at, "broken JSON: unknown escape", `write a backslash as \\`)
	}
	r, ok := p.hex4()
	if ok && r >= 0xD800 && r < 0xE000 {
		low := rune(0)
		if r < 0xDC00 && strings.HasPrefix(p.s[p.i:], `\u`) {
			p.i += 2
			low, ok = p.hex4()
		}
		if ok && (low < 0xDC00 || low >= 0xE000) {
			return nil, p.fail(at, "a lone surrogate is not a character", "write both halves of the pair, or U+FFFD")
		}
		r = (r-0xD800)<<10 + (low - 0xDC00) + 0x10000
	}
	if !ok {
		return nil, p.fail(at, `broken JSON: \u needs four hexadecimal digits`, `write a backslash as \\`)
	}
	return utf8.AppendRune(b, r), nil
}

func (p *parser) hex4() (rune, bool) {
	if p.i+4 > len(p.s) || p.s[p.i] == '+' || p.s[p.i] == '-' || p.s[p.i] == '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 16)
	if err != nil {
		return 0, false
	}
	p.i += 4
	return rune(n), true
}

// quote shows hostile text in an error: escaped and short.
func quote(s string) string {
	short := text.Clip(s, 60)
	if short == s {
		return strconv.QuoteToGraphic(s)
	}
	return fmt.Sprintf("%s (%d bytes)", strconv.QuoteToGraphic(short), len(s))
}

// mistake makes an error about a place in the data.
func mistake(file string, line int, field, what, remedy string) *datasets.Error {
	return &datasets.Error{File: file, Line: line, Field: field, What: what, Remedy: remedy}
}
