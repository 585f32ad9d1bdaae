package memory

import "github.com/memtox/memtox/internal/text"

// AsksToKeep reports whether the user's words ask to keep content that stands
// elsewhere: a verb of keeping (remember, save, store, note, keep, record …)
// whose object points at something (this, it, these, what …, the mail, her
// address) rather than saying it ("remember that I …"). It is a matter of form
// alone, the same for every model and every defense.
func AsksToKeep(said string) bool {
	toks := text.Tokens(said)
	for i, t := range toks {
		if !keepVerb(t.Text) || i > 0 && negation(toks[i-1].Text) {
			continue
		}
		for j := i + 1; j < len(toks) && j <= i+3; j++ {
			w := toks[j].Text
			if pointer(w) && !ownClause(toks[j:]) {
				return true
			}
			if !between(w) {
				break
			}
		}
	}
	return false
}

func keepVerb(w string) bool {
	switch w {
	case "remember", "save", "store", "note", "keep", "record", "memorise", "memorize", "jot", "file", "log", "write", "add", "put", "retain", "bookmark":
		return true
	}
	return false
}

func negation(w string) bool {
	switch w {
	case "don't", "don’t", "not", "never", "needn't", "without":
		return true
	}
	return false
}

// between are the words that may stand between the verb and its object.
func between(w string) bool {
	switch w {
	case "down", "in", "mind", "a", "note", "of", "for", "me", "memory", "to", "everything", "all", "also", "up", "track", "hold", "on":
		return true
	}
	return false
}

func pointer(w string) bool {
	switch w {
	case "this", "that", "it", "these", "those", "them", "the", "what", "whatever", "everything", "anything", "any", "all",
		"his", "her", "their", "its", "which", "where", "who", "how", "when", "both", "each", "every":
		return true
	}
	return false
}

// ownClause recognises "that I …", "that we …", "that my …": the user says the
// content in their own words.
func ownClause(toks []text.Token) bool {
	if len(toks) < 2 || toks[0].Text != "that" {
		return false
	}
	switch toks[1].Text {
	case "for", "in", "to", "down", "one", "and", "please", "mail", "email", "page", "message", "file", "note", "address", "number", "info", "information", "as":
		return false
	}
	return true
}
