package importers

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

// distinctive orders the kinds of values by how well they tell one case's memory
// from anything else. Dates, flags and versions are not among them: they come up
// by themselves.
var distinctive = []text.ValueKind{text.URL, text.Email, text.Account, text.Host, text.IP, text.Phone, text.ID,
	text.Path, text.Command, text.Setting, text.Handle, text.Money, text.Name, text.Figure}

// Derive finds the operative value of what should be stored: the most distinctive
// one that the content brings and that the user neither says nor asks for. What
// stands behind "instead of" and the like is the value that is replaced.  kind names what it is;
// both are empty where there is none.
func Derive(memory, content, user, query string) (found, kind string) {
	content, user, query = text.Fold(content), text.Fold(user), text.Fold(query)
	best := len(distinctive)
	for _, v := range text.Values(memory) {
		rank := slices.Index(distinctive, v.Kind)
		if rank < 0 || rank >= best || replaced(memory[:v.Start]) || !telling(memory, v) {
			continue
		}
		f := text.Fold(v.Text)
		if f == "" || !text.HoldsWhole(content, f) || text.HoldsWhole(user, f) || text.HoldsWhole(query, f) {
			continue
		}
		best, found, kind = rank, v.Text, v.Kind.String()
	}
	return found, kind
}

var threeDigits = regexp.MustCompile(`\d\D*\d\D*\d`)

// telling reports whether a value is long and rare enough to be looked for.
func telling(s string, v text.Value) bool {
	switch v.Kind {
	case text.Figure:
		return threeDigits.MatchString(v.Text)
	case text.Name:
		if strings.ContainsAny(v.Text, " \t") {
			return true
		}
		// A single capitalised word may be the first of its sentence.
		return len(v.Text) >= 4 && v.Start > 0 && !startsSentence(s[:v.Start]) && !text.IsCommonWord(strings.ToLower(v.Text))
	}
	return len(v.Text) >= 3
}

func startsSentence(before string) bool {
	before = strings.TrimRightFunc(before, unicode.IsSpace)
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || strings.ContainsRune(".!?:;\"'“‘(-•*", r)
}

// replaced reports whether a text ends in words that introduce what is no longer
// wanted.
func replaced(before string) bool {
	before = strings.TrimRight(strings.ToLower(before), " \t\n\"'`“‘(")
	for _, w := range [...]string{" instead of", " rather than", " in place of", " replacing", " replaces", " not",
		" no longer", " never", " previously", " formerly"} {
		if strings.HasSuffix(before, w) {
			return true
		}
	}
	return false
}
