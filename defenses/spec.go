package defenses

import (
	"fmt"
	"strings"

	"github.com/memtox/memtox/internal/settings"
)

// Spec is a parsed spec of a defense.
type Spec struct {
	Name     string // given by the user; may be empty
	Kind     string // the registered defense
	Argument string // what follows the colon
	Place    Place  // Own without a placement
}

// openKinds are defenses whose argument is a command, an address or a model
// that may hold commas, equals signs and at signs of its own. It is part of the
// grammar, so that a list is split alike whether or not they are registered.
var openKinds = [...]string{"exec", "http", "https", "judge"}

func isOpen(kind string) bool {
	for _, k := range openKinds {
		if kind == k {
			return true
		}
	}
	return false
}

// Open reports whether the spec names somebody else's program, service or model
// rather than a defense of this process.
func (s Spec) Open() bool { return isOpen(s.Kind) }

// Parse reads a spec:
//
//	[name=]kind[:argument][@place]
//
// for instance keyword, keyword:relaxed@read or strict=guard:strict.yaml. The
// place is input, write, read or act. What follows exec:, http:, https: and
// judge: is taken as it stands, up to a place at its very end.
func Parse(spec string) (Spec, error) {
	var s Spec
	rest := strings.TrimSpace(spec)
	if rest == "" {
		return s, fmt.Errorf("a defense has an empty spec: write [name=]kind[:argument][@place], such as keyword@input")
	}
	// An equals sign behind the kind belongs to the argument.
	if i := strings.IndexAny(rest, "=:@"); i >= 0 && rest[i] == '=' {
		s.Name, rest = rest[:i], rest[i+1:]
		if !validName(s.Name) {
			return s, fmt.Errorf("defense %q: the name %q must be 1 to 64 letters, digits, '.', '_', '+' or '-'", spec, s.Name)
		}
	}
	end := strings.IndexAny(rest, ":@")
	if end < 0 {
		end = len(rest)
	}
	s.Kind, rest = rest[:end], rest[end:]
	if s.Kind == "" {
		return s, fmt.Errorf("defense %q: no defense is named: write [name=]kind[:argument][@place]", spec)
	}
	colon := strings.HasPrefix(rest, ":")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		word := rest[at+1:]
		place, ok := placeNamed(word)
		switch {
		case ok:
			s.Place, rest = place, rest[:at]
		case !colon || !isOpen(s.Kind) && letters(word):
			// A file name may hold an at sign; a bare word behind one is a
			// mistyped place.
			msg := fmt.Sprintf("defense %q: unknown place %q: one of @input, @write, @read, @act", spec, "@"+word)
			if n := settings.Nearest(word, placeNames[1:]); n != "" {
				msg = fmt.Sprintf("defense %q: unknown place %q: did you mean @%s? (@input, @write, @read, @act)", spec, "@"+word,
					n)
			}
			return s, fmt.Errorf("%s", msg)
		}
	}
	if colon {
		s.Argument = rest[1:]
		if s.Argument == "" {
			return s, fmt.Errorf("defense %q: nothing follows the colon: give an argument or leave the colon out", spec)
		}
	}
	return s, nil
}

// String returns the spec in the form that Parse reads.
func (s Spec) String() string {
	if s.Name != "" {
		return s.Name + "=" + s.bare()
	}
	return s.bare()
}

// shown is the spec in a message: an address without what may be a secret in it,
// a user with a password, or a query.
func (s Spec) shown() string {
	if s.Kind == "http" || s.Kind == "https" || strings.Contains(s.Argument, "://") {
		s.Argument = withoutSecrets(s.Argument)
	}
	return s.String()
}

// withoutSecrets hides in an address what stands before its last at sign, and what
// follows its path.
func withoutSecrets(address string) string {
	scheme, rest, ok := strings.Cut(address, "//")
	if !ok {
		scheme, rest = "", address
	} else {
		scheme += "//"
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = "…" + rest[i:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i+1] + "…"
	}
	return scheme + rest
}

// Label is what tables call the defense: its name, or the spec without one.
func (s Spec) Label() string {
	if s.Name != "" {
		return s.Name
	}
	return s.bare()
}

func (s Spec) bare() string {
	out := s.Kind
	if s.Argument != "" {
		out += ":" + s.Argument
	}
	if s.Place != Own {
		out += "@" + s.Place.String()
	}
	return out
}

// SplitList splits a comma list of specs, up to the first whose argument may
// hold commas: that one takes the rest. Empty items are left out.
func SplitList(list string) []string {
	var out []string
	for rest := strings.TrimSpace(list); rest != ""; {
		if opensRest(rest) {
			return append(out, rest)
		}
		item, tail, _ := strings.Cut(rest, ",")
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
		rest = strings.TrimSpace(tail)
	}
	return out
}

// opensRest reports whether the spec at the start of list takes all of it.
func opensRest(list string) bool {
	head, _, ok := strings.Cut(list, ":")
	if !ok || strings.ContainsAny(head, ",@") {
		return false
	}
	if _, kind, named := strings.Cut(head, "="); named {
		head = kind
	}
	return isOpen(head)
}

func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '+' ||
			c == '-') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func letters(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return s != ""
}
