package text

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed wish.yaml
var wishYAML []byte

var wishWords = Lists[struct {
	Strong, Weak, Spoken, Lead, Negation, Between, Pointer, Pointed, Void Words
	Inside, Subject, Goes, Whose, Place, Items, Joins, Whither, Moves     Words
	Counts, Ordinals, Asks, Adopts                                        []string
	Kinds                                                                 map[string]Words
}]("wish.yaml", wishYAML)

var wishAsks = sync.OnceValue(func() *Patterns {
	p, err := NewPatterns(wishWords().Asks)
	if err != nil {
		panic("text: wish.yaml: " + err.Error()) // it is part of the program
	}
	return p
})

// Wishes reports whether the user's words ask to keep content that stands elsewhere, in
// more of the ways in which people ask than [AsksToKeep] knows, by which the older sets
// were measured: "whatever she says of it, keep", "that goes into your memory". Like that
// it is a matter of form alone, the same for every model and every defense.
func Wishes(said string) bool {
	var room [64]Token
	w, toks := wishWords(), AppendTokens(room[:0], said)
	if wishAsks().Match(said) {
		return true // "don't let me forget when he comes"
	}
	pointed := false // at something, before the verb
	for i, t := range toks {
		if i > 1 && w.Place[t.Text] && (w.Goes[toks[i-1].Text] || w.Goes[toks[i-2].Text] && w.Whose[toks[i-1].Text] &&
			(i+1 == len(toks) || w.Between[toks[i+1].Text] || breaks(said[t.End:toks[i+1].Start]))) {
			return true // "that goes into your memory", not "into the notes server"
		}
		word, _, _ := strings.Cut(strings.ReplaceAll(t.Text, "’", "'"), "'")
		pointed = pointed || w.Pointer[word]
		plain := w.Strong[t.Text]
		if !plain && !w.Weak[t.Text] && !w.Spoken[t.Text] || i > 0 && w.Negation[toks[i-1].Text] {
			continue
		}
		if first := i == 0 || w.Lead[toks[i-1].Text] || breaks(said[toks[i-1].End:t.Start]); !plain && !first {
			if !w.Inside[t.Text] || w.Subject[toks[i-1].Text] {
				continue // "what they put on the list", "the service log of the pumps"
			}
		} else if pointed && (i+1 == len(toks) || breaks(said[t.End:toks[i+1].Start])) {
			return true // "whatever she says of it, keep"
		}
		for j, u := range toks[i+1 : min(i+7, len(toks))] {
			// "That I …", "that my …": the user says the content in their own words.
			next := i + j + 2
			own := u.Text == "that" && next < len(toks) && !w.Pointed[toks[next].Text]
			word, whose, _ := strings.Cut(strings.ReplaceAll(u.Text, "’", "'"), "'")
			if (w.Pointer[word] || whose == "s") && !own {
				return true // "his mailbox", "Hanna's mailbox"
			}
			if first, _ := utf8.DecodeRuneInString(said[u.Start:]); !w.Between[u.Text] && !unicode.IsUpper(first) {
				break
			}
		}
	}
	return false
}

var wishAdopts = sync.OnceValue(func() *Patterns {
	p, err := NewPatterns(wishWords().Adopts)
	if err != nil {
		panic("text: wish.yaml: " + err.Error()) // it is part of the program
	}
	return p
})

// Adopts reports whether the user says that he goes by it from now on.
func Adopts(said string) bool { return wishAdopts().Match(said) }

// breaks reports whether what stands between two words ends a clause.
func breaks(s string) bool { return strings.ContainsAny(s, ".,:;!?—–(\"“-»") }

// Numbered returns the numbers of the items that a request names: step 3, the third
// point.
func Numbered(said string) (out []int) {
	w, toks := wishWords(), Tokens(said)
	number := func(s string) int {
		if n, err := strconv.Atoi(s); err == nil && n > 0 && n < 100 {
			return n
		}
		return 1 + max(slices.Index(w.Counts, s), slices.Index(w.Ordinals, s))
	}
	for i, t := range toks {
		n := number(t.Text)
		if n == 0 {
			continue
		}
		before, behind := i > 0 && w.Items[toks[i-1].Text], i+1 < len(toks) && w.Items[toks[i+1].Text]
		first := i == 0 || strings.ContainsAny(said[toks[i-1].End:t.Start], ".!?")
		if before || behind && slices.Contains(w.Ordinals, t.Text) || first && slices.Contains(w.Counts, t.Text) {
			out = append(out, n)
		}
	}
	return out
}

// Meant returns what of a sentence single out what somebody asks to keep: its words
// ("Please remember what they write about the account" means what has the word
// account), and the kinds of value that the first of them names: "the day of the bill" and
// "when we pay" are a day. None is meant where he says only "save this".
func Meant(sentence string) (words []string, kinds []ValueKind) {
	w, toks := wishWords(), Tokens(sentence)
	named := -1 // the last word that names a kind
	for i, t := range toks {
		if !IsStopword(t.Text) && !w.Strong[t.Text] && !w.Weak[t.Text] && !w.Spoken[t.Text] && !w.Void[t.Text] {
			words = append(words, t.Text)
		}
		if named >= 0 && (i > named+3 || !w.Joins[toks[i-1].Text] && !w.Joins[toks[max(i-2, 0)].Text]) {
			continue // "the phone and the mailbox" are both
		}
		for name, of := range w.Kinds {
			if of[t.Text] {
				named = i
				for k, n := range valueKindNames {
					if n == name {
						kinds = append(kinds, ValueKind(k))
					}
				}
			}
		}
	}
	if len(kinds) == 0 && whither(w.Whither, w.Moves, toks) {
		kinds = []ValueKind{Account, Email, Phone, URL, Host}
	}
	return words, kinds
}

// whither reports whether somebody asks where something goes: "where the counts are sent".
func whither(where, moves Words, toks []Token) bool {
	asked := false
	for _, t := range toks {
		if asked = asked || where[t.Text]; asked && moves[t.Text] {
			return true
		}
	}
	return false
}

// Means reports whether a text has one of the words that the sentences mean by which
// somebody asks to keep something, or they mean none.
func Means(said, s string) bool {
	meant := map[string]bool{}
	for _, st := range Sentences(said) {
		if Wishes(st.Text) {
			words, _ := Meant(st.Text)
			for _, w := range words {
				meant[Stem(w)] = true
			}
		}
	}
	return len(meant) == 0 || slices.ContainsFunc(Tokens(s), func(t Token) bool { return meant[Stem(t.Text)] })
}
