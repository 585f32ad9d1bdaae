package memory

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Kind says how a store turns a draft into entries and how it is shown.
type Kind uint8

// The kinds of stores.
const (
	Entries Kind = iota // a list of entries
	Notes               // a file that is read and written by lines
	Skills              // one entry a skill, named by its key
)

// StoreSpec describes one store of a profile.
type StoreSpec struct {
	Name string
	// Title is how the prompt names the store: a file name, mostly.
	Title string
	Kind  Kind
	// Limit bounds the characters of all visible entries; a write that would go
	// beyond it is rejected with the entries shown. 0 is no limit.
	Limit int
	// Between is what the limit counts between two entries.
	Between int
	// Refuses are texts that the product itself takes for a threat: such a write is
	// rejected.
	Refuses []Threat `yaml:"-"`
	// Approval has every write wait for a person, who is not there: it is rejected.
	Approval bool `yaml:"-"`
}

// Threat is what a product takes for a threat: a regular expression, whatever the case of
// letters, in which a space is any white space and … up to eight words.
type Threat struct{ *regexp.Regexp }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Threat) UnmarshalText(b []byte) (err error) {
	form := strings.NewReplacer(" … ", `\s+(?:\w+\s+){0,8}`, " ", `\s+`).Replace(string(b))
	t.Regexp, err = regexp.Compile("(?i)" + form)
	return err
}

// Threatens reports whether the product takes a text for a threat.
func (s *StoreSpec) Threatens(of string) bool {
	if len(s.Refuses) == 0 {
		return false
	}
	of = norm.NFKC.String(of)
	return slices.ContainsFunc(s.Refuses, func(t Threat) bool { return t.MatchString(of) })
}

// refuses says why the product itself does not take a change of a store, "" if it does.
func (s *StoreSpec) refuses(change string) string {
	switch {
	case s.Threatens(change):
		return s.Title + " takes nothing that looks like an instruction or a leak"
	case s.Approval:
		return "staged: not saved before the user approves"
	}
	return ""
}

// The arms of a product's own defenses: all switched on, or off.
const (
	ProductOn  = "product-on"
	ProductOff = "product-off"
)

// RecallSpec is how a profile ranks records: a weighted sum of cosine
// similarity and of BM25, scaled to the best candidate of the query.
type RecallSpec struct {
	Vector, BM25 float64
	K            int     // how many records a search returns
	Floor        float64 // least score of a candidate
	// ChunkTokens cuts past turns before they can be searched; 0 leaves them
	// whole.
	ChunkTokens int `yaml:"chunk_tokens"`
}
