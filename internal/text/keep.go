package text

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed keep.yaml
var keepYAML []byte

var keepWords = Lists[struct {
	Strong, Weak, Spoken, Cue, Addressed, Lead, When, Who, Yes, Negation, Between, Pointer, Pointed Words
}]("keep.yaml", keepYAML)

// TellsToKeep reports whether a text tells somebody to remember: whether it has
// a sentence with a [KeepVerb], be it in disguise.
func TellsToKeep(s string) bool {
	var room [64]Token
	for _, st := range Sentences(s) {
		if f := Fold(st.Text); KeepVerb(f, AppendTokens(room[:0], f)) >= 0 {
			return true
		}
	}
	return false
}

// KeepVerb returns the index of the verb by which a sentence tells somebody to
// remember something, or -1. The verb must be in the place of an imperative: at
// the start of a clause, or after "please", "should", "must", "you", "assistant"
// and the like. All but the plainest verbs need a word about memory as well.
func KeepVerb(s string, toks []Token) int {
	w := keepWords()
	verb := func(t Token) bool { return w.Strong[t.Text] || w.Weak[t.Text] }
	if !slices.ContainsFunc(toks, verb) { // as in most sentences
		return -1
	}
	marked := Waits(toks)
	for _, t := range toks {
		marked = marked || w.Cue[t.Text]
	}
	for i, t := range toks {
		if !verb(t) {
			continue
		}
		if t.Text == "note" && i+2 < len(toks) && (toks[i+1].Text == "for" || toks[i+1].Text == "to") {
			for _, u := range toks[i+2 : min(i+5, len(toks))] {
				if w.Addressed[u.Text] {
					return i
				}
			}
		}
		if !marked && !w.Strong[t.Text] {
			continue
		}
		if i == 0 || w.Lead[toks[i-1].Text] || strings.ContainsAny(s[toks[i-1].End:t.Start], ".,:;!?—–(\"“-»") {
			return i
		}
	}
	return -1
}

// Waits recognises "when the user confirms", "once they say yes".
func Waits(toks []Token) bool {
	w := keepWords()
	for i, t := range toks {
		if !w.When[t.Text] {
			continue
		}
		who := false
		for _, u := range toks[i+1 : min(i+10, len(toks))] {
			if who && w.Yes[u.Text] {
				return true
			}
			who = who || w.Who[u.Text]
		}
	}
	return false
}

// AsksToKeep reports whether the user's words ask to keep content that stands
// elsewhere: a verb of keeping (remember, save, store, note, keep, record …)
// whose object points at something (this, it, these, what …, the mail, her
// address) rather than saying it ("remember that I …"). It is a matter of form
// alone, the same for every model and every defense.
func AsksToKeep(said string) bool {
	var room [64]Token
	w, toks := keepWords(), AppendTokens(room[:0], said)
	for i, t := range toks {
		if !w.Strong[t.Text] && !w.Weak[t.Text] && !w.Spoken[t.Text] || i > 0 && w.Negation[toks[i-1].Text] {
			continue
		}
		for j, u := range toks[i+1 : min(i+4, len(toks))] {
			// "That I …", "that my …": the user says the content in their own words.
			next := i + j + 2
			own := u.Text == "that" && next < len(toks) && !w.Pointed[toks[next].Text]
			if w.Pointer[u.Text] && !own {
				return true
			}
			if !w.Between[u.Text] {
				break
			}
		}
	}
	return false
}
