package datasets

import (
	"bytes"
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
		return fmt.Errorf("reading %s: %w", inert(s.file), err)
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
	root, err := parseYAML(data)
	if err != nil {
		return &Error{File: s.file, What: "broken YAML: " + inert(err.Error()), Remedy: "mend the YAML"}
	}
	if root == nil {
		return nil
	}
	if root.Kind == yaml.MappingNode && len(root.Content) == 2 && root.Content[0].Value == "cases" {
		root = root.Content[1]
	}
	if root.Kind != yaml.SequenceNode {
		return &Error{File: s.file, Line: root.Line, What: "expected a list of cases",
			Remedy: "write `cases:` and begin each case below it with `- id: …`"}
	}
	for _, n := range root.Content {
		w := yamlWriter{lines: make(map[string]int)}
		err := w.value("", "", n)
		var c Case
		if err == nil {
			c, err = decodeCase(string(w.b))
		}
		if err != nil {
			e, ok := err.(*Error)
			if !ok {
				return err
			}
			e.File, e.Column = s.file, 0
			if e.Line == 0 {
				e.Line = n.Line
				for f := e.Field; f != ""; f = f[:max(strings.LastIndexAny(f, ".["), 0)] {
					if line, ok := w.lines[f]; ok {
						e.Line = line
						break
					}
				}
			}
			return e
		}
		s.Cases = append(s.Cases, c)
		s.positions = append(s.positions, position{line: n.Line, fields: w.lines})
	}
	return nil
}

func parseYAML(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); err != io.EOF {
		if err == nil {
			err = fmt.Errorf("a second document begins in the file")
		}
		return nil, err
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0], nil
	}
	return nil, nil
}

// yamlWriter turns a YAML node into the JSON that decodeCase reads, and keeps
// the line of every field. All texts stay texts, whatever YAML would make of
// `yes`, 0017 or 2026-01-02; only the fields that are no texts are left bare.
type yamlWriter struct {
	b     []byte
	lines map[string]int
}

func (w *yamlWriter) value(path, name string, n *yaml.Node) error {
	if path != "" {
		w.lines[path] = n.Line
	}
	fail := func(what, remedy string) error {
		return &Error{Line: n.Line, Field: path, What: what, Remedy: remedy}
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.b = append(w.b, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return fail("a field name is not a plain word", "write name: value")
			}
			w.quote(key.Value)
			w.b = append(w.b, ':')
			if err := w.value(strings.TrimPrefix(path+"."+key.Value, "."), key.Value, n.Content[i+1]); err != nil {
				return err
			}
		}
		w.b = append(w.b, '}')
	case yaml.SequenceNode:
		w.b = append(w.b, '[')
		for i, item := range n.Content {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			if err := w.value(path+"["+strconv.Itoa(i)+"]", "", item); err != nil {
				return err
			}
		}
		w.b = append(w.b, ']')
	case yaml.ScalarNode:
		bare := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
		if bare && (n.Value == "" || n.Value == "~" || n.Value == "null") {
			return fail("the field has no value", "give it one or leave it out")
		}
		if bare && (name == "pad" && digits(n.Value) || (name == "inline" || name == "fresh" || name == "signed") &&
			(n.Value == "true" || n.Value == "false")) {
			w.b = append(w.b, n.Value...)
			break
		}
		w.quote(n.Value)
	default:
		return fail("anchors and aliases are not used in cases", "write the value out")
	}
	return nil
}

// quote appends a text, which is valid UTF-8 as the whole file is.
func (w *yamlWriter) quote(s string) { w.b, _ = jsontext.AppendQuote(w.b, s) }

func digits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}
