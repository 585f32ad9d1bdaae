package datasets

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// readYAML reads cases from YAML: a list, or a list under `cases:`, whose entries
// have the fields of a JSON line. It is the form for cases that a person writes: block texts instead of
// escapes, comments, and a line for each field.
func (s *Set) readYAML(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, MaxLine+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", Inert(s.file), err)
	}
	if len(data) > MaxLine {
		return &Error{File: s.file, What: fmt.Sprintf("the file is larger than %d MiB", MaxLine>>20),
			Remedy: "use JSON lines for sets of this size"}
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) {
			return &Error{File: s.file, Line: i + 1, What: "invalid UTF-8", Remedy: "save the file as UTF-8"}
		}
	}
	var docs []yaml.Node
	err = yaml.Load(data, &docs, yaml.WithAllDocuments())
	if err == nil && len(docs) > 1 {
		err = errors.New("a second document begins in the file")
	}
	if err != nil {
		return &Error{File: s.file, What: "broken YAML: " + Inert(err.Error()), Remedy: "mend the YAML"}
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 {
		return nil
	}
	root := docs[0].Content[0]
	if root.Kind == yaml.MappingNode && len(root.Content) == 2 && root.Content[0].Value == "cases" {
		root = root.Content[1]
	}
	if root.Kind != yaml.SequenceNode {
		return &Error{File: s.file, Line: root.Line, What: "expected a list of cases",
			Remedy: "write `cases:` and begin each case below it with `- id: …`"}
	}
	for _, n := range root.Content {
		var b bytes.Buffer
		w := yamlWriter{jsontext.NewEncoder(&b, jsontext.AllowDuplicateNames(true)), make(map[string]int)}
		at := position{line: n.Line, fields: w.lines}
		err := w.value("", "", n)
		var c Case
		if err == nil {
			c, err = decodeCase(b.String())
		}
		if e := (*Error)(nil); errors.As(err, &e) {
			e.File, e.Line, e.Column = s.file, cmp.Or(e.Line, at.of(e.Field)), 0
		}
		if err != nil {
			return err
		}
		s.Cases = append(s.Cases, c)
		s.positions = append(s.positions, at)
	}
	return nil
}

// yamlWriter turns a YAML node into the JSON that decodeCase reads, and keeps
// the line of every field. All texts stay texts, whatever YAML would make of
// `yes`, 0017 or 2026-01-02; only the fields that are no texts are left bare.
type yamlWriter struct {
	*jsontext.Encoder
	lines map[string]int
}

// put writes a token. Its text is valid UTF-8 as the whole file is.
func (w *yamlWriter) put(t jsontext.Token) { _ = w.WriteToken(t) }

func (w *yamlWriter) value(path, name string, n *yaml.Node) error {
	if path != "" {
		w.lines[path] = n.Line
	}
	fail := func(what, remedy string) error {
		return &Error{Line: n.Line, Field: path, What: what, Remedy: remedy}
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.put(jsontext.BeginObject)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return fail("a field name is not a plain word", "write name: value")
			}
			w.put(jsontext.String(key.Value))
			if err := w.value(strings.TrimPrefix(path+"."+key.Value, "."), key.Value, n.Content[i+1]); err != nil {
				return err
			}
		}
		w.put(jsontext.EndObject)
	case yaml.SequenceNode:
		w.put(jsontext.BeginArray)
		for i, item := range n.Content {
			if err := w.value(path+"["+strconv.Itoa(i)+"]", "", item); err != nil {
				return err
			}
		}
		w.put(jsontext.EndArray)
	case yaml.ScalarNode:
		bare := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
		number, notNumber := strconv.ParseUint(n.Value, 10, 64)
		switch {
		case bare && (n.Value == "" || n.Value == "~" || n.Value == "null"):
			return fail("the field has no value", "give it one or leave it out")
		case bare && name == "pad" && notNumber == nil:
			w.put(jsontext.Uint(number))
		case bare && (name == "inline" || name == "fresh" || name == "signed") && (n.Value == "true" || n.Value == "false"):
			w.put(jsontext.Bool(n.Value == "true"))
		default:
			w.put(jsontext.String(n.Value))
		}
	default:
		return fail("anchors and aliases are not used in cases", "write the value out")
	}
	return nil
}
