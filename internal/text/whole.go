package text

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Whole finds a value in a text from an offset on, as a value of its own: a longer
// word, number or address that merely contains it is another one. Where there is
// none both places are -1.
func Whole(s, needle string, from int) (start, end int) {
	for from <= len(s)-len(needle) {
		i := strings.Index(s[from:], needle)
		if i < 0 {
			break
		}
		i += from
		if end := i + len(needle); opens(s[:i], needle) && closes(s[end:], needle) {
			return i, end
		}
		from = i + 1
	}
	return -1, -1
}

// opens reports whether a value can begin after this text.
func opens(before, needle string) bool {
	first, _ := utf8.DecodeRuneInString(needle)
	last, n := utf8.DecodeLastRuneInString(before)
	if n == 0 || !InWord(first) {
		return true
	}
	if InWord(last) || last == ':' && short(needle) && clock.MatchString(before) {
		return false
	}
	if !technical(needle) || !strings.ContainsRune("-_.@", last) {
		return true
	}
	prior, n := utf8.DecodeLastRuneInString(before[:len(before)-n])
	if n == 0 || !InWord(prior) {
		return true
	}
	// "pay.desk.example" is a host of desk.example; "x-desk.example" and
	// "a.dana@desk.example" belong to somebody else.
	return last == '.' && unicode.IsLetter(first) && !strings.Contains(needle, "@") ||
		last == '@' && !strings.Contains(needle, "@")
}

// clock ends in the hour of "19:12", whose minutes are no number of their own.
var clock = regexp.MustCompile(`(?:^|[^0-9.])[0-9]{1,2}:$`)

// short tells numbers that could be an hour or a minute.
func short(needle string) bool {
	return len(needle) <= 2 && digit(needle[0]) && digit(needle[len(needle)-1])
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// closes reports whether a value can end before this text.
func closes(after, needle string) bool {
	last, _ := utf8.DecodeLastRuneInString(needle)
	first, n := utf8.DecodeRuneInString(after)
	if n == 0 || !InWord(last) {
		return true
	}
	if InWord(first) || first == ':' && short(needle) && len(after) > 2 && digit(after[1]) && digit(after[2]) {
		return false
	}
	if !technical(needle) || !strings.ContainsRune("-_.@", first) {
		return true
	}
	// "desk.example.net" and "/opt/run.sh" are not "desk.example" and "/opt/run".
	following, n := utf8.DecodeRuneInString(after[n:])
	return n == 0 || !InWord(following)
}

// Says reports whether a text has a value, as a value of its own: in either case, and a
// number or a code in other groups too ("DE89 3704 …", "+44 20-7946").
func Says(s, value string) bool { return Seek(value).In(s) }

// Sought is a value that is looked for in many texts, as [Says] does.
type Sought struct {
	value, lower string
	code         string // what stands in groups; empty where there are none
}

// Seek prepares a value.
func Seek(value string) Sought { return Sought{value, strings.ToLower(value), grouped(value)} }

// In reports whether a text has the value.
func (v Sought) In(s string) bool {
	if v.value == "" {
		return false
	}
	if isASCII(s) {
		if v.inEitherCase(s) {
			return true
		}
	} else if at, _ := Whole(s, v.value, 0); at >= 0 {
		return true
	} else if at, _ := Whole(strings.ToLower(s), v.lower, 0); at >= 0 {
		return true
	}
	if v.code == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(v.code)
	before := ' '
	for i, r := range s {
		if unicode.ToLower(r) == first && !InWord(before) && runsOn(s[i:], v.code) {
			return true
		}
		before = r
	}
	return false
}

// inEitherCase is [Whole] of both in lower case, for a text that is ASCII.
func (v Sought) inEitherCase(s string) bool {
	firsts := [2]byte{v.lower[0], v.lower[0]}
	if 'a' <= firsts[1] && firsts[1] <= 'z' {
		firsts[1] -= 'a' - 'A'
	}
	for k, first := range firsts {
		if k > 0 && first == firsts[0] {
			break // it has no case
		}
		for i := 0; i+len(v.lower) <= len(s); i++ {
			at := strings.IndexByte(s[i:len(s)-len(v.lower)+1], first)
			if at < 0 {
				break
			}
			i += at
			if end := i + len(v.lower); strings.EqualFold(s[i:end], v.lower) && opens(s[:i], v.lower) && closes(s[end:], v.lower) {
				return true
			}
		}
	}
	return false
}

// groups are what people put between the groups of a number.
const groups = " -./()\u00a0\u202f"

// minGrouped is how many letters and digits a code needs to be looked for in other
// groups: a shorter one would be found in any list of numbers.
const minGrouped = 5

// grouped is a value without what stands between its groups, empty where it is no code.
func grouped(value string) string {
	digits := 0
	code := strings.Map(func(r rune) rune {
		switch {
		case InWord(r):
			if unicode.IsDigit(r) {
				digits++
			}
			return unicode.ToLower(r)
		case r == '+' || strings.ContainsRune(groups, r):
			return -1
		}
		return utf8.RuneError // no code
	}, value)
	if digits < 3 || len(code) < minGrouped || strings.ContainsRune(code, utf8.RuneError) {
		return ""
	}
	return code
}

// runsOn reports whether a text begins with a code, in any groups.
func runsOn(s, code string) bool {
	for _, r := range s {
		c, n := utf8.DecodeRuneInString(code)
		switch {
		case n == 0:
			return !InWord(r)
		case unicode.ToLower(r) == c:
			code = code[n:]
		case !strings.ContainsRune(groups, r):
			return false
		}
	}
	return code == ""
}

// InWord reports whether a rune is part of a word or a number.
func InWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// technical tells addresses, hosts, paths, numbers and codes from plain words.
func technical(needle string) bool {
	return strings.ContainsFunc(needle, func(r rune) bool {
		return unicode.IsDigit(r) ||
			strings.ContainsRune("._@/:-\\", r)
	})
}

// LastWhole is where a value begins in a text for the last time, as [Whole] finds
// it, or -1.
func LastWhole(s, value string) int {
	last := -1
	for from := 0; value != ""; {
		at, _ := Whole(s, value, from)
		if at < 0 {
			break
		}
		last, from = at, at+1
	}
	return last
}
