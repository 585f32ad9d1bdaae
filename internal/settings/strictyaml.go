// Package settings reads the YAML files that people write for memtox. It is
// stricter than YAML: one document, a mapping at the top, no key twice, no
// aliases (a few bytes of them can stand for gigabytes), a bounded size. Every
// error says file, line and column.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxSize is the largest file that is read, in bytes. Settings are written by
// hand, and the parser takes quadratic time for some malformed texts: at this
// size a fifth of a second.
const MaxSize = 256 << 10

// Node is one value of a file, which knows where it stands.
type Node struct {
	file string
	n    *yaml.Node
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Key   string
	At    Node // the key itself, for errors about it
	Value Node
}

// Parse reads a whole file. An empty one is an empty mapping.
func Parse(file string, data []byte) (Node, error) {
	if len(data) > MaxSize {
		return Node{}, &Problem{Where: file,
			What: fmt.Sprintf("%d bytes are too many for a settings file (at most %d)", len(data), MaxSize)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return Node{file, &yaml.Node{Kind: yaml.MappingNode}}, nil
	case err != nil:
		return Node{}, syntax(file, err)
	}
	if err := dec.Decode(&more); err == nil {
		return Node{}, Node{file, &more}.Errorf("a second document begins here; a file holds one")
	} else if !errors.Is(err, io.EOF) {
		return Node{}, syntax(file, err)
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return Node{file, &yaml.Node{Kind: yaml.MappingNode}}, nil
	}
	if root.Kind != yaml.MappingNode {
		return Node{}, Node{file, root}.Errorf("expected `key: value` lines, found %s", shape(root))
	}
	if err := check(file, root); err != nil {
		return Node{}, err
	}
	return Node{file, root}, nil
}

// syntax turns an error of the YAML reader into ours, with its place.
func syntax(file string, err error) error {
	at, text := file, strings.TrimPrefix(err.Error(), "yaml: ")
	var one *yaml.LoadError
	var many *yaml.LoadErrors
	if errors.As(err, &many) && len(many.Errors) > 0 {
		one = many.Errors[0]
	}
	if one != nil || errors.As(err, &one) {
		at, text = place(file, one.Mark.Line, one.Mark.Column), one.Message
	}
	return &Problem{Where: at, What: "not valid YAML: " + strings.ReplaceAll(text, "\n", " ")}
}

// place is file:line:column, as far as it is known.
func place(file string, line, column int) string {
	switch {
	case line == 0:
		return file
	case column == 0:
		return fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

// check walks the tree for what YAML allows and we do not.
func check(file string, n *yaml.Node) error {
	at := Node{file, n}
	switch n.Kind {
	case yaml.AliasNode:
		return at.Errorf("aliases are not supported: write the value out")
	case yaml.MappingNode:
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				return Node{file, k}.Errorf("a key must be a plain word, found %s", shape(k))
			}
			if line, twice := seen[k.Value]; twice {
				return Node{file, k}.Errorf("key %q stands here again; it is already set on line %d", k.Value, line)
			}
			seen[k.Value] = k.Line
		}
	}
	for _, c := range n.Content {
		if err := check(file, c); err != nil {
			return err
		}
	}
	return nil
}

func (n Node) Place() string { return place(n.file, n.n.Line, n.n.Column) }

func (n Node) At() (line, column int) { return n.n.Line, n.n.Column }

// Errorf makes a [Problem] of the node.
func (n Node) Errorf(format string, args ...any) *Problem {
	return &Problem{Where: n.Place(), What: fmt.Sprintf(format, args...)}
}

// Entries returns the keys of a mapping in the order of the file.
func (n Node) Entries() ([]Entry, error) {
	if n.n.Kind != yaml.MappingNode {
		return nil, n.Errorf("expected `key: value` lines, found %s", shape(n.n))
	}
	out := make([]Entry, 0, len(n.n.Content)/2)
	for i := 0; i+1 < len(n.n.Content); i += 2 {
		out = append(out, Entry{n.n.Content[i].Value, Node{n.file, n.n.Content[i]}, Node{n.file, n.n.Content[i+1]}})
	}
	return out, nil
}

// Each hands over the keys of a mapping in the order of the file, up to the first error.
func (n Node) Each(take func(Entry) error) error {
	entries, err := n.Entries()
	for i := 0; i < len(entries) && err == nil; i++ {
		err = take(entries[i])
	}
	return err
}

func (n Node) IsSequence() bool { return n.n.Kind == yaml.SequenceNode }

func (n Node) Items() ([]Node, error) {
	if n.n.Kind != yaml.SequenceNode {
		return nil, n.Errorf("expected a list, found %s", shape(n.n))
	}
	out := make([]Node, len(n.n.Content))
	for i, c := range n.n.Content {
		out[i] = Node{n.file, c}
	}
	return out, nil
}

// Scalar returns the text of a plain value and its YAML type: str, int, float,
// bool or null.
func (n Node) Scalar() (text, typ string, err error) {
	if n.n.Kind != yaml.ScalarNode {
		return "", "", n.Errorf("expected one value, found %s", shape(n.n))
	}
	return n.n.Value, strings.TrimPrefix(n.n.ShortTag(), "!!"), nil
}

// shape is what errors call a node.
func shape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "nothing"
		}
		if v := n.Value; len(v) <= 40 {
			return fmt.Sprintf("%q", v)
		}
		return "a text"
	}
	return "something else"
}

// Decode reads a file into a struct: strict as [Parse] is, and every key must be
// one of the struct's. It is for files that are part of the program.
func Decode(file string, data []byte, into any) error {
	if _, err := Parse(file, data); err != nil {
		return err
	}
	if err := yaml.Load(data, into, yaml.WithKnownFields()); err != nil {
		p := syntax(file, err).(*Problem)
		p.What = strings.TrimPrefix(p.What, "not valid YAML: ")
		return p
	}
	return nil
}
