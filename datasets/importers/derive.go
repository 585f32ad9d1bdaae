package importers

import (
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
		rank := rankOf(v.Kind)
		if rank >= best || replaced(memory[:v.Start]) || !telling(memory, v) {
			continue
		}
		f := text.Fold(v.Text)
		if f == "" || !stands(content, f) || stands(user, f) || stands(query, f) {
			continue
		}
		best, found, kind = rank, v.Text, v.Kind.String()
	}
	return found, kind
}

func rankOf(k text.ValueKind) int {
	for i, d := range distinctive {
		if d == k {
			return i
		}
	}
	return len(distinctive)
}

// telling reports whether a value is long and rare enough to be looked for.
func telling(s string, v text.Value) bool {
	switch v.Kind {
	case text.Figure:
		digits := 0
		for i := 0; i < len(v.Text); i++ {
			if v.Text[i] >= '0' && v.Text[i] <= '9' {
				digits++
			}
		}
		return digits >= 3
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

// stands reports whether a folded text holds a folded value, not as a part of a
// longer word or number.
func stands(s, value string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], value)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+len(value):])
		first, _ := utf8.DecodeRuneInString(value)
		last, _ := utf8.DecodeLastRuneInString(value)
		if !(wordy(before) && wordy(first)) && !(wordy(after) && wordy(last)) {
			return true
		}
		from = i + 1
	}
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
