package text

import "strings"

// Stem returns the stem of a lower-case English word: a prefix of w, so it
// never allocates. It follows the steps of Porter's second algorithm
// (snowballstem.org, "English") but only cuts and never rewrites an ending,
// which is enough for forms of one word to meet: policy and policies both give
// polic; relate, relation and relational give relat. Words that are not ASCII
// letters come back as they are.
func Stem(w string) string {
	if n := len(w); n > 2 && w[n-1] == 's' && w[n-2] == '\'' {
		w = w[:n-2]
	}
	if len(w) <= 2 || len(w) > 40 {
		return w
	}
	for i := 0; i < len(w); i++ {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	switch w {
	case "this", "his", "was", "has", "does", "thus", "news", "always", "perhaps", "lens", "yes":
		return w
	}

	// Step 1a: plurals.
	n := len(w)
	switch {
	case w[n-1] != 's':
	case strings.HasSuffix(w, "sses"):
		w = w[:n-2]
	case strings.HasSuffix(w, "ies"):
		if n > 4 {
			w = w[:n-2]
		} else {
			w = w[:n-1]
		}
	case strings.HasSuffix(w, "us"), strings.HasSuffix(w, "ss"):
	case hasVowel(w[:n-2]):
		w = w[:n-1]
	}

	// Step 1b: past and progressive forms.
	r1 := regionAfter(w, 0)
	switch c := w[len(w)-1]; {
	case c != 'd' && c != 'g' && c != 'y':
	case strings.HasSuffix(w, "eed"):
		if len(w)-3 >= r1 {
			w = w[:len(w)-1]
		}
	case cutVerb(&w, "edly"), cutVerb(&w, "ingly"), cutVerb(&w, "ed"), cutVerb(&w, "ing"):
		if n := len(w); n > 3 && w[n-1] == w[n-2] {
			switch w[n-1] {
			case 'b', 'd', 'f', 'g', 'm', 'n', 'p', 'r', 't':
				w = w[:n-1]
			}
		}
	}

	// Steps 2 to 4: derivations. r2 is the region after r1's first syllable.
	r2 := regionAfter(w, r1)
	for _, s := range suffixesR1[w[len(w)-1]-'a'] {
		if strings.HasSuffix(w, s.ending) {
			if at := len(w) - len(s.ending); at >= r1 && len(w)-s.cut >= 3 && (s.ending != "ly" || validBeforeLy(w[at-1])) {
				w = w[:len(w)-s.cut]
			}
			break
		}
	}
	for _, s := range suffixesR2[w[len(w)-1]-'a'] {
		if strings.HasSuffix(w, s) {
			if at := len(w) - len(s); at >= r2 && at >= 3 && (s != "ion" || w[at-1] == 's' || w[at-1] == 't') {
				w = w[:at]
			}
			break
		}
	}

	// Steps 1c and 5: y, i and e at the end.
	if n := len(w); n > 2 && !isVowel(w[n-2]) {
		switch w[n-1] {
		case 'y', 'i':
			w = w[:n-1]
		case 'e':
			if hasVowel(w[:n-1]) {
				w = w[:n-1]
			}
		}
	}
	return w
}

// The endings by their last letter, longest first. cut is how much goes.
var suffixesR1 = [26][]struct {
	ending string
	cut    int
}{
	'e' - 'a': {{"icate", 3}},
	'l' - 'a': {{"ational", 5}, {"tional", 2}},
	'n' - 'a': {{"ization", 5}, {"isation", 5}, {"ication", 7}, {"ation", 3}},
	'r' - 'a': {{"ator", 2}},
	's' - 'a': {{"fulness", 4}, {"ousness", 4}, {"iveness", 4}, {"ness", 4}},
	'y' - 'a': {{"lessly", 2}, {"ically", 4}, {"fully", 2}, {"ously", 2}, {"ively", 2}, {"ently", 2}, {"antly", 2},
		{"ably", 1}, {"ally", 2}, {"ly", 2}},
}

var suffixesR2 = [26][]string{
	'c' - 'a': {"ic"},
	'e' - 'a': {"ance", "ence", "able", "ible", "ate", "ive", "ize", "ise"},
	'i' - 'a': {"iti"},
	'l' - 'a': {"ical", "ful", "al"},
	'm' - 'a': {"ism"},
	'n' - 'a': {"ion"},
	'r' - 'a': {"er"},
	's' - 'a': {"ous"},
	't' - 'a': {"ement", "ment", "ant", "ent", "at"},
	'v' - 'a': {"iv"},
	'y' - 'a': {"ity"},
	'z' - 'a': {"iz"},
}

// validBeforeLy: Porter2's "valid li-ending", and l, for the forms of -able.
func validBeforeLy(c byte) bool { return strings.IndexByte("cdeghklmnrtsy", c) >= 0 }

func cutVerb(w *string, s string) bool {
	if !strings.HasSuffix(*w, s) {
		return false
	}
	if rest := (*w)[:len(*w)-len(s)]; len(rest) >= 2 && hasVowel(rest) {
		*w = rest
		return true
	}
	return false
}

func isVowel(c byte) bool {
	return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || c == 'y'
}

func hasVowel(w string) bool {
	for i := 0; i < len(w); i++ {
		if isVowel(w[i]) && (w[i] != 'y' || i > 0) {
			return true
		}
	}
	return false
}

// regionAfter is where the region after the first consonant that follows a
// vowel begins, looking from i on (Porter's R1, and R2 from R1).
func regionAfter(w string, i int) int {
	for i++; i < len(w); i++ {
		if !isVowel(w[i]) && isVowel(w[i-1]) {
			return i + 1
		}
	}
	return len(w)
}
