package datasets

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is a parsed template: text in which [a|b] stands for one of its
// alternatives, which may nest, and {name} for what the name refers to. A bracket
// without a bar is text. It is never changed.
type Template struct{ parts []part }

// part is a literal, a reference or a choice.
type part struct {
	literal string
	name    string
	choices []Template
}

// maxNesting bounds brackets within brackets.
const maxNesting = 16

// ParseTemplate reads a template.
func ParseTemplate(s string) (Template, error) {
	alternatives, rest, err := sequence(s, 0)
	if err != nil {
		return Template{}, fmt.Errorf("%w, near %.40q", err, rest)
	}
	return alternatives[0], nil
}

// UnmarshalText reads a template.
func (t *Template) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTemplate(string(b))
	return err
}

// sequence reads up to the end, or up to the bracket that closes the depth it is
// in. It returns its alternatives, which are one unless a bar stood at this depth, and
// what is left.
func sequence(s string, depth int) (done []Template, rest string, err error) {
	var parts []part
	for s != "" && (s[0] != ']' || depth == 0) {
		switch c := s[0]; {
		case c == '{':
			name, after, ok := strings.Cut(s[1:], "}")
			if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				return nil, s, errors.New("a brace that holds no name")
			}
			parts = append(parts, part{name: name})
			s = after
		case c == '[' && depth == maxNesting:
			return nil, s, errors.New("brackets are nested too deeply")
		case c == '[':
			inner, after, err := sequence(s[1:], depth+1)
			if err != nil {
				return nil, after, err
			}
			end := after[:min(1, len(after))] // the bracket that closes it
			switch {
			case len(inner) == 1:
				parts = append(append(append(parts, part{literal: "["}), inner[0].parts...), part{literal: end})
			case end == "":
				return nil, s, errors.New("a bracket with alternatives is not closed")
			default:
				parts = append(parts, part{choices: inner})
			}
			s = after[len(end):]
		case c == '|' && depth > 0:
			done = append(done, Template{parts})
			parts, s = nil, s[1:]
		default:
			end := strings.IndexAny(s[1:], "{[]|") + 1
			if end == 0 {
				end = len(s)
			}
			parts = append(parts, part{literal: s[:end]})
			s = s[end:]
		}
	}
	return append(done, Template{parts}), s, nil
}

// Expand returns one text of the template. resolve gives the text of a
// reference.
func (t Template) Expand(r *Rand, resolve func(name string) (string, error)) (string, error) {
	b, err := t.append(nil, r, resolve)
	return string(b), err
}

// Append appends one text of a template without references to dst.
func (t Template) Append(dst []byte, r *Rand) []byte {
	dst, _ = t.append(dst, r, func(string) (string, error) { return "", nil })
	return dst
}

func (t Template) append(dst []byte, r *Rand, resolve func(string) (string, error)) ([]byte, error) {
	for i := range t.parts {
		p := &t.parts[i]
		switch {
		case p.choices != nil:
			var err error
			if dst, err = p.choices[r.IntN(len(p.choices))].append(dst, r, resolve); err != nil {
				return dst, err
			}
		case p.name != "":
			s, err := resolve(p.name)
			if err != nil {
				return dst, err
			}
			dst = append(dst, s...)
		default:
			dst = append(dst, p.literal...)
		}
	}
	return dst, nil
}

// Capital returns s with a capital first letter.
func Capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || unicode.IsUpper(r) {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}
