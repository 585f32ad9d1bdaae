package datasets

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/memtox/memtox/internal/settings"
)

// decodeCase reads a case from line, which holds one JSON object and perhaps
// white space. A field that no case has, a field that stands twice and invalid
// UTF-8 are errors, which encoding/json lets pass. The strings of the case do not
// keep line alive.
func decodeCase(line string) (Case, error) {
	var c Case
	err := decodeInto(line, &c, "")
	return c, err
}

// DecodeFields reads some fields of a case into c from a JSON object that has these
// alone, as strictly as a line of a file.
func DecodeFields(line string, c *Case) error { return decodeInto(line, c, "fields") }

// decodeInto reads a case, or with a name that required does not know some fields of one.
func decodeInto(line string, c *Case, name string) error {
	data := unsafe.Slice(unsafe.StringData(line), len(line)) // nothing writes to it
	if err := json.Unmarshal(data, c, json.RejectUnknownMembers(true)); err != nil {
		return malformed(line, c.ID, err)
	}
	whole, pad := (name != "" || c.ID != "" && c.Label != "") && (c.Text == nil || c.Text.Content != "") &&
		(c.Retrieval == nil || c.Retrieval.Query != ""), true
	segments := func(list []Segment) {
		for i := range list {
			whole = whole && list[i].Medium != "" && list[i].Text != ""
			pad = pad && 0 <= list[i].Pad && list[i].Pad <= math.MaxInt32
		}
	}
	for i := range c.Write {
		whole = whole && c.Write[i].User != ""
		segments(c.Write[i].Segments)
	}
	for i := range c.Inject {
		whole = whole && c.Inject[i].Text != ""
	}
	if c.Retrieval != nil {
		segments(c.Retrieval.Segments)
	}
	if !pad {
		return &Error{Case: c.ID, Field: "pad", What: "out of range", Remedy: wholeNumber}
	}
	if !whole { // an empty text may stand there
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return malformed(line, c.ID, err)
		}
		if field := missing(v, name, ""); field != "" {
			return &Error{Case: c.ID, Field: field, What: "missing", Remedy: "add it: it is never left out"}
		}
	}
	return nil
}

const wholeNumber = "write a whole number from 0 to 2147483647, without quotes"

// required are the fields that are never left out, by the field whose value, or one
// of whose values, they are of.
var required = map[string][]string{"": {"id", "label"}, "write": {"user"}, "segments": {"medium", "text"},
	"text": {"content"}, "inject": {"text"}, "retrieval": {"query"}}

// missing returns the path of a required field that is not there.
func missing(v any, name, path string) string {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if field := missing(item, name, fmt.Sprintf("%s[%d]", path, i)); field != "" {
				return field
			}
		}
	case map[string]any:
		if path != "" {
			path += "."
		}
		for _, field := range slices.Sorted(maps.Keys(v)) {
			if field := missing(v[field], field, path+field); field != "" {
				return field
			}
		}
		for _, field := range required[name] {
			if v[field] == nil {
				return path + field
			}
		}
	}
	return ""
}

// malformed says of an error of the JSON decoder what is wrong where, and what
// mends it.
func malformed(line, id string, err error) *Error {
	e := &Error{Case: id}
	var syntax *jsontext.SyntacticError
	var meaning *json.SemanticError
	switch {
	case errors.As(err, &syntax):
		e.Column, e.Field = int(syntax.ByteOffset)+1, fieldAt(syntax.JSONPointer)
		e.What, e.Remedy = BrokenJSON(line, syntax)
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &meaning):
		name := meaning.JSONPointer.LastToken()
		e.Field, e.What = fieldAt(meaning.JSONPointer.Parent()), "unknown field "+Quote(name)
		e.Column = int(meaning.ByteOffset) + 1
		known := fieldNames(meaning.GoType)
		e.Remedy = "known here: " + strings.Join(known, ", ")
		if near := settings.Nearest(name, known); near != "" {
			e.Remedy = "did you mean " + near + "?"
		}
	case errors.As(err, &meaning):
		e.Column, e.Field = int(meaning.ByteOffset)+1, fieldAt(meaning.JSONPointer)
		want := "an object"
		e.Remedy = "docs/cases.md lists every field; memtox datasets export memtox-smoke writes examples"
		switch meaning.GoType.Kind() {
		case reflect.String:
			want, e.Remedy = "a text", "write it in double quotes"
		case reflect.Bool:
			want, e.Remedy = "true or false", "write it without quotes"
		case reflect.Int:
			want, e.Remedy = "a whole number", wholeNumber
		case reflect.Slice:
			want = "a list"
		}
		found := map[jsontext.Kind]string{'"': "a text", '{': "an object", '[': "a list", '0': "a number", 't': "true",
			'f': "false"}
		e.What = "expected " + want + ", found " + found[meaning.JSONKind]
	}
	return e
}

// BrokenJSON says what is wrong with a text that is no JSON, or JSON of which two
// readers could make different things, and what mends it.
func BrokenJSON(text string, err *jsontext.SyntacticError) (what, remedy string) {
	what, remedy = "broken JSON: "+Inert(err.Err.Error()), "write one complete JSON object on the line"
	switch rest := text[min(int(err.ByteOffset), len(text)):]; {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "the field " + Quote(err.JSONPointer.LastToken()) + " stands twice", "keep one of them"
	case strings.HasSuffix(what, "after top-level value"):
		return "something follows the case's closing brace: " + Quote(rest), "put one case on each line"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "broken JSON: the line ends before the object does", remedy
	case !utf8.ValidString(text):
		return "invalid UTF-8", "save the file as UTF-8"
	case strings.Contains(what, "surrogate"):
		return "a lone surrogate is not a character", "write both halves of the pair, or U+FFFD"
	case rest != "" && rest[0] < ' ':
		return fmt.Sprintf("broken JSON: the control character U+%04X stands in a text as it is", rest[0]),
			fmt.Sprintf(`write it as \u%04x`, rest[0])
	}
	return what, remedy
}

// fieldNames are the names that JSON has for the fields of a struct.
func fieldNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// fieldAt writes a place in JSON as errors show it: write[0].user.
func fieldAt(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		switch digit := token != "" && token[0] >= '0' && token[0] <= '9'; {
		case digit:
			b.WriteString("[" + token + "]")
			continue
		case b.Len() > 0:
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}
