package text

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// Words is a set of words. In a YAML file it is one text with white space
// between them.
type Words map[string]bool

// In reports whether one of the tokens is among the words.
func (w Words) In(toks []string) bool {
	return slices.ContainsFunc(toks, func(t string) bool { return w[t] })
}

// UnmarshalText reads words with white space between them.
func (w *Words) UnmarshalText(b []byte) error {
	*w = Words{}
	for s := range strings.FieldsSeq(string(b)) {
		(*w)[s] = true
	}
	return nil
}

// PatternList is [Patterns] that a YAML file lists.
type PatternList struct{ *Patterns }

// UnmarshalYAML reads a list of patterns.
func (p *PatternList) UnmarshalYAML(n *yaml.Node) (err error) {
	var sources []string
	if err = n.Decode(&sources); err == nil {
		p.Patterns, err = NewPatterns(sources)
	}
	return err
}

// Form is a regular expression that a whole text must match.
type Form struct{ re *regexp.Regexp }

// UnmarshalText compiles a regular expression.
func (f *Form) UnmarshalText(b []byte) (err error) {
	f.re, err = regexp.Compile("^(?s:" + string(b) + ")$")
	return err
}

// Is reports whether s has the form.
func (f Form) Is(s string) bool { return f.re.MatchString(s) }

// Lists returns the word lists of a YAML file that is part of the program. It is
// read when they are first asked for; one that cannot be read is a mistake of
// the program, and panics.
func Lists[T any](name string, file []byte) func() *T {
	return sync.OnceValue(func() *T {
		v := new(T)
		if err := yaml.Load(file, v, yaml.WithKnownFields()); err != nil {
			panic(name + ": " + err.Error())
		}
		return v
	})
}
