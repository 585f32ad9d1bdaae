package datasets

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is a parsed template. It is never changed.
type Template struct{ parts []part }

// part is a literal, a reference or a choice.
type part struct {
	literal string
	name    string
	capital bool
	offset  int
	choices []Template
}

// Error is a mistake in a template.
type PatternError struct {
	Offset int // in bytes
	What   string
	Remedy string
}

// Error implements error.
func (e *PatternError) Error() string { return e.What + "; " + e.Remedy }

// Ref is one reference {name} of a template.
type Ref struct {
	Name   string
	Offset int // of its brace, in bytes
}

// maxNesting bounds brackets within brackets.
const maxNesting = 16

// Parse reads a template.
func Parse(s string) (Template, error) {
	p := parser{s: s}
	alternatives, err := p.sequence(0)
	if err != nil {
		return Template{}, err
	}
	return alternatives[0], nil
}

// UnmarshalText reads a template.
func (t *Template) UnmarshalText(b []byte) (err error) {
	*t, err = Parse(string(b))
	return err
}

type parser struct {
	s string
	i int
}

// sequence reads up to the end, or up to the bracket that closes the depth it is
// in. It returns its alternatives: one, unless a bar stood at this depth.
func (p *parser) sequence(depth int) ([]Template, error) {
	var (
		done  []Template
		parts []part
	)
	literal := func(s string) { parts = append(parts, part{literal: s}) }
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '\\' && p.i+1 < len(p.s) && strings.IndexByte(`\{}[]|`, p.s[p.i+1]) >= 0:
			literal(p.s[p.i+1 : p.i+2])
			p.i += 2
		case c == '{':
			ref, err := p.reference()
			if err != nil {
				return nil, err
			}
			parts = append(parts, ref)
		case c == '}':
			return nil, &PatternError{p.i, "a closing brace without an opening one", `write \} for a brace in the text`}
		case c == '[' && depth == maxNesting:
			return nil, &PatternError{p.i, "brackets are nested too deeply", "use a named rule"}
		case c == '[':
			at := p.i
			p.i++
			inner, err := p.sequence(depth + 1)
			if err != nil {
				return nil, err
			}
			closed := p.i < len(p.s)
			if !closed && len(inner) > 1 {
				return nil, &PatternError{at, "a bracket with alternatives is not closed",
					`close it with ], or write \[ for a bracket in the text`}
			}
			if len(inner) > 1 {
				parts = append(parts, part{choices: inner, offset: at})
			} else { // a bracket without alternatives is text
				literal("[")
				parts = append(parts, inner[0].parts...)
				if closed {
					literal("]")
				}
			}
			p.i = min(p.i+1, len(p.s))
		case c == ']' && depth > 0:
			return append(done, Template{parts}), nil
		case c == '|' && depth > 0:
			done = append(done, Template{parts})
			parts = nil
			p.i++
		default:
			end := p.i + 1
			for end < len(p.s) && strings.IndexByte(`\{}[]|`, p.s[end]) < 0 {
				end++
			}
			literal(p.s[p.i:end])
			p.i = end
		}
	}
	return append(done, Template{parts}), nil
}

func (p *parser) reference() (part, error) {
	at := p.i
	rest := p.s[at+1:]
	end := strings.IndexByte(rest[:min(len(rest), 80)], '}')
	if end < 0 {
		return part{}, &PatternError{at, "a brace is not closed", `write {name}, or \{ for a brace in the text`}
	}
	name := rest[:end]
	p.i = at + 1 + end + 1
	name, capital := strings.CutPrefix(name, "^")
	if !IsName(name) {
		return part{}, &PatternError{at, fmt.Sprintf("%.40q is no name", name),
			`write {name} with small letters, digits, _ and one dot, or \{ for a brace in the text`}
	}
	return part{name: name, capital: capital, offset: at}, nil
}

// IsName reports whether s can stand in {s}: words of small letters, digits and
// underscores, of which a dot may separate a second.
func IsName(s string) bool {
	first, second, dotted := strings.Cut(s, ".")
	word := func(w string) bool {
		for i := range len(w) {
			c := w[i]
			if c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
				return false
			}
		}
		return w != ""
	}
	return word(first) && (!dotted || word(second))
}

// Refs returns all references of the template, in order.
func (t Template) Refs() []Ref {
	var refs []Ref
	for _, p := range t.parts {
		if p.name != "" {
			refs = append(refs, Ref{p.name, p.offset})
		}
		for _, c := range p.choices {
			refs = append(refs, c.Refs()...)
		}
	}
	return refs
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
			if p.capital {
				s = Capital(s)
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
