package defenses

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
var openKinds = []string{"exec", "http", "https", "judge"}

// Open reports whether the spec names somebody else's program, service or model
// rather than a defense of this process.
func (s Spec) Open() bool { return slices.Contains(openKinds, s.Kind) }

var (
	// specForm is name, "=", kind, ":" and the rest, which ends in the place. An equals
	// sign behind the kind belongs to the argument.
	specForm = regexp.MustCompile(`(?s)^(?:([^=:@]*)(=))?([^:@]*)(:?)(.*)$`)
	nameForm = regexp.MustCompile(`^[\w.+-]{1,64}$`)
	wordForm = regexp.MustCompile(`^[A-Za-z]+$`)
)

// Parse reads a spec:
//
//	[name=]kind[:argument][@place]
//
// for instance keyword, keyword:relaxed@read or strict=guard:strict.yaml. The
// place is input, write, read or act. What follows exec:, http:, https: and
// judge: is taken as it stands, up to a place at its very end.
func Parse(spec string) (Spec, error) {
	if strings.TrimSpace(spec) == "" {
		return Spec{}, errors.New("a defense has an empty spec: write [name=]kind[:argument][@place], such as keyword@input")
	}
	f := specForm.FindStringSubmatch(strings.TrimSpace(spec))
	s, colon := Spec{Name: f[1], Kind: f[3], Argument: f[5]}, f[4] != ""
	if err := checkName(s.Name); err != nil && f[2] != "" {
		return s, fmt.Errorf("defense %q: %w", spec, err)
	}
	if s.Kind == "" {
		return s, fmt.Errorf("defense %q: no defense is named: write [name=]kind[:argument][@place]", spec)
	}
	if at := strings.LastIndexByte(s.Argument, '@'); at >= 0 {
		word := s.Argument[at+1:]
		err := s.Place.UnmarshalText([]byte(word))
		switch {
		case err == nil:
			s.Argument = s.Argument[:at]
		case !colon || !s.Open() && wordForm.MatchString(word):
			// A file name may hold an at sign; a bare word behind one is a
			// mistyped place.
			return s, fmt.Errorf("defense %q: %w", spec, err)
		}
	}
	if colon && s.Argument == "" {
		return s, fmt.Errorf("defense %q: nothing follows the colon: give an argument or leave the colon out", spec)
	}
	return s, nil
}

// UnmarshalText reads a spec.
func (s *Spec) UnmarshalText(b []byte) (err error) {
	*s, err = Parse(string(b))
	return err
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
	if ok {
		scheme += "//"
	} else {
		scheme, rest = "", address
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
	return slices.Contains(openKinds, head)
}

func checkName(s string) error {
	if !nameForm.MatchString(s) {
		return fmt.Errorf("the name %q must be 1 to 64 letters, digits, '.', '_', '+' or '-'", s)
	}
	return nil
}
