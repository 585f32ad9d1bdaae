package text

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed wish.yaml
var wishYAML []byte

type wishLists struct {
	Strong, Weak, Spoken, Lead, Opening, Plainer, Negation, Denials, Between, Pointer, Pointed, Void Words
	Inside, Subject, Goes, Whose, Place, Items, Joins, Whither, Moves                                Words
	Counts, Ordinals, Asks, Adopts                                                                   []string
	Subjects, Reasons, Links, Hence, Times, Elsewhere                                                Words
	Kinds                                                                                            map[string]Words
}

var wishWords = Lists[wishLists]("wish.yaml", wishYAML)

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
	said = ownWords(said)
	var room [64]Token
	w, toks := wishWords(), AppendTokens(room[:0], said)
	asks := false
	wishAsks().Find(said, func(_, start, _ int) bool {
		asks = !takenBack(said, toks, start)
		return !asks
	})
	if asks {
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
		if !plain && !w.Weak[t.Text] && !w.Spoken[t.Text] || takenBack(said, toks, t.Start) {
			continue
		}
		if first := i == 0 || w.Lead[toks[i-1].Text] || w.Opening[toks[i-1].Text] && w.Plainer[t.Text] || breaks(said[toks[i-1].End:t.Start]); !plain && !first {
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
				if next < len(toks) && w.Elsewhere[toks[next].Text] {
					break // "put it through the script"
				}
				return true // "his mailbox", "Hanna's mailbox"
			}
			if first, _ := utf8.DecodeRuneInString(said[u.Start:]); !w.Between[u.Text] && !unicode.IsUpper(first) {
				break
			}
		}
	}
	return false
}

// takenBack reports whether a negation stands right before what begins at an offset, or "no
// need to", in its clause.
func takenBack(said string, toks []Token, start int) bool {
	n := slices.IndexFunc(toks, func(t Token) bool { return t.Start >= start })
	if n < 1 {
		return false
	}
	w, before := wishWords(), toks[max(0, n-3):n]
	for len(before) > 0 && breaks(said[before[0].End:start]) {
		before = before[1:]
	}
	return len(before) == 3 && before[0].Text == "no" && before[1].Text == "need" ||
		slices.ContainsFunc(before[max(0, len(before)-2):], func(t Token) bool { return w.Negation[t.Text] })
}

// quoted are words that somebody repeats: between quotation marks, or on a line behind >.
var quoted = regexp.MustCompile(`(?m)"[^"\n]*"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|^[ \t]*>.*$`)

// ownWords is what somebody says with what he quotes blanked.
func ownWords(s string) string {
	if !strings.ContainsAny(s, "\"“„«>") {
		return s
	}
	return quoted.ReplaceAllStringFunc(s, func(q string) string { return strings.Repeat(" ", len(q)) })
}

// Denies reports whether a text has a word that turns what it says round.
func Denies(s string) bool {
	w := wishWords()
	return slices.ContainsFunc(Tokens(Fold(s)), func(t Token) bool {
		return w.Denials[t.Text] || strings.HasSuffix(t.Text, "n't") || strings.HasSuffix(t.Text, "n’t")
	})
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
		before := i > 0 && (w.Items[toks[i-1].Text] || toks[i-1].Text == "no" && said[toks[i-1].End] == '.')
		behind := i+1 < len(toks) && w.Items[toks[i+1].Text]
		first := i == 0 || strings.ContainsAny(said[toks[i-1].End:t.Start], ".!?")
		if before || behind && slices.Contains(w.Ordinals, t.Text) || first && slices.Contains(w.Counts, t.Text) {
			out = append(out, n)
		}
	}
	return out
}

// Wish is what somebody asks to keep, of what he was shown.
type Wish struct {
	Words []string // "Please remember what they write about the account" means what has the word account
	// Kinds are the kinds of value that the first of its words names that name one: "the
	// day of the bill" and "when we pay" are a day.
	Kinds []ValueKind
}

// Meant returns what a sentence asks to keep: one thing, or several where each has a kind
// of value and words of its own, such as "the driver's number and the date of the fair".
// The wish has no words where it says only "save this". What is said beside, such as "I'll
// need that on Monday", is words alone. A sentence that asks nothing is read as a whole.
func Meant(sentence string) (wishes []Wish, beside []string) {
	w, toks := wishWords(), Tokens(sentence)
	said := make([]Token, 0, len(toks))
	asks := Wishes(sentence)
	for from := 0; from < len(toks); {
		to := from + 1
		for to < len(toks) && !strings.ContainsAny(sentence[toks[to-1].End:toks[to].Start], ",;:—–(") && !w.reason(toks[to:]) &&
			!w.goesOn(toks[to:]) {
			to++
		}
		clause := toks[from:to]
		if asks && (w.aside(clause) || w.goesOn(toks[to:])) && !Wishes(sentence[clause[0].Start:clause[len(clause)-1].End]) {
			beside = append(beside, w.content(clause)...)
		} else {
			said = append(said, clause...)
		}
		from = to
	}
	from := 0
	for i, t := range said {
		if !w.Joins[t.Text] {
			continue
		}
		if a, b := w.wish(said[from:i]), w.wish(said[i:]); w.own(a) && w.own(b) {
			wishes, from = append(wishes, a), i
		}
	}
	return append(wishes, w.wish(said[from:])), beside
}

// goesOn reports whether a wish begins that says itself what it is for: "(run it) and keep
// what it prints".
func (w *wishLists) goesOn(toks []Token) bool {
	if len(toks) == 0 || !w.Joins[toks[0].Text] {
		return false
	}
	i := 1
	for i < len(toks) && w.Lead[toks[i].Text] {
		i++
	}
	return i < len(toks) && (w.Strong[toks[i].Text] || w.Weak[toks[i].Text] || w.Spoken[toks[i].Text]) && len(w.content(toks[i:])) > 0
}

// reason reports whether a clause begins that tells why: "so I", "for when we".
func (w *wishLists) reason(toks []Token) bool {
	i := 0
	for i < len(toks) && i < 2 && (w.Reasons[toks[i].Text] || i > 0 && w.Hence[toks[i].Text]) {
		i++
	}
	return i > 0 && i < len(toks) && w.subject(toks[i].Text)
}

// aside reports whether a clause is about somebody.
func (w *wishLists) aside(clause []Token) bool {
	if w.Links[clause[0].Text] && len(clause) > 1 {
		clause = clause[1:]
	}
	return w.subject(clause[0].Text) || w.reason(clause)
}

func (w *wishLists) subject(word string) bool {
	word, _, _ = strings.Cut(strings.ReplaceAll(word, "’", "'"), "'")
	return w.Subjects[word]
}

// content are the words that say what is meant.
func (w *wishLists) content(toks []Token) (out []string) {
	for i, t := range toks {
		if t.Text == "time" && i > 0 && w.Times[toks[i-1].Text] || w.Times[t.Text] && i+1 < len(toks) && toks[i+1].Text == "time" {
			continue
		}
		if !IsStopword(t.Text) && !w.Strong[t.Text] && !w.Weak[t.Text] && !w.Spoken[t.Text] && !w.Void[t.Text] {
			out = append(out, t.Text)
		}
	}
	return out
}

func (w *wishLists) wish(toks []Token) Wish {
	out := Wish{Words: w.content(toks)}
	named := -1 // the last word that names a kind
	for i, t := range toks {
		if named >= 0 && (i > named+3 || !w.Joins[toks[i-1].Text] && !w.Joins[toks[max(i-2, 0)].Text]) {
			continue // "the phone and the mailbox" are both
		}
		if t.Text == "time" && i > 0 && w.Times[toks[i-1].Text] {
			continue
		}
		if kinds := w.names(t.Text); kinds != nil {
			named, out.Kinds = i, append(out.Kinds, kinds...)
		}
	}
	if len(out.Kinds) == 0 && whither(w.Whither, w.Moves, toks) {
		out.Kinds = []ValueKind{Account, Email, Phone, URL, Host}
	}
	return out
}

// names are the kinds of value that a word means.
func (w *wishLists) names(word string) (out []ValueKind) {
	for name, of := range w.Kinds {
		if of[word] {
			out = append(out, ValueKind(slices.Index(valueKindNames[:], name)))
		}
	}
	return out
}

// own reports whether a part of a wish can stand for itself.
func (w *wishLists) own(part Wish) bool {
	return len(part.Kinds) > 0 && slices.ContainsFunc(part.Words, func(s string) bool { return len(w.names(s)) == 0 })
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
			wishes, beside := Meant(st.Text)
			for _, w := range append(wishes, Wish{Words: beside}) {
				for _, word := range w.Words {
					meant[Stem(word)] = true
				}
			}
		}
	}
	return len(meant) == 0 || slices.ContainsFunc(Tokens(s), func(t Token) bool { return meant[Stem(t.Text)] })
}
