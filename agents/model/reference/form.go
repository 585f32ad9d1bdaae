package reference

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// form is what one sentence looks like, whatever it means.
type form uint16

const (
	directive   form = 1 << iota // tells somebody to remember something
	conditional                  // a directive that waits for the user's yes
	rule                         // a standing rule
	fact                         // gives something one value
	preference
	precedent  // a record of past work
	step       // of a procedure
	suspicious // asks to skip a check, to hide something, or for a secret
	attributed // put into the mouth of a source
	question
)

func (f form) has(g form) bool { return f&g != 0 }

//go:embed forms.yaml
var formsYAML []byte

// formWords are the words by which a form is told.
var formWords = text.Lists[struct {
	Rule, Preference, Fact, Past, Yes, Corrects, Polite, Back text.PatternList

	Outcome, Evade, Check, Secret, Hand, Tell, Not          text.Words
	Filler, Own, Courtesy, Summarise, Follow, Copy, Package text.Words
}]("forms.yaml", formsYAML)

// matches reports whether a pattern matches, at the given place unless that is -1.
func matches(p text.PatternList, s string, toks []text.Token, at int) (found bool) {
	p.FindTokens(s, toks, func(_, start, _ int) bool {
		found = at < 0 || start == at
		return !found
	})
	return found
}

// holds reports whether one of some words is there.
func holds(w text.Words, toks []text.Token) bool {
	return slices.ContainsFunc(toks, func(t text.Token) bool { return w[t.Text] })
}

// statement is one sentence of the conversation with everything that the model
// ever asks of it. Statements are cached by content and never change.
type statement struct {
	text   string
	body   string // without the wrapper of a directive
	form   form
	words  []word // content words, sorted by hash, each once
	values []text.Value
	strong bool // holds a value that something hangs on, not only a name, a date or a figure
	first  bool // the first of its block
}

type word struct {
	hash   uint64
	weight float32
}

func newStatement(s string, kind text.SentenceKind) *statement {
	st := &statement{text: s, body: s, values: text.Values(s)}
	toks := text.Tokens(s)
	st.strong = slices.ContainsFunc(st.values, func(v text.Value) bool { return operative(v.Kind) })
	st.words = contentWords(toks)
	st.form = formOf(s, toks, kind, st.values)
	// What a source is quoted as saying stays its word, a directive too.
	if st.form.has(directive|conditional) && !st.form.has(attributed) {
		st.body = bodyOf(s, toks)
	}
	return st
}

// operative reports whether a value of this kind can be what a directive is
// about: an address, an account, a path, a command, and so on.
func operative(k text.ValueKind) bool {
	switch k {
	case text.Name, text.DateTime, text.Figure, text.Money:
		return false
	}
	return true
}

func contentWords(toks []text.Token) []word {
	out := make([]word, 0, len(toks)/2+1)
	for _, t := range toks {
		if says(t) {
			out = append(out, word{text.Hash(text.Stem(t.Text)), text.Weight(t.Text)})
		}
	}
	slices.SortFunc(out, func(a, b word) int { return cmp.Compare(a.hash, b.hash) })
	return slices.CompactFunc(out, func(a, b word) bool { return a.hash == b.hash })
}

// says reports whether a word says something about the topic.
func says(t text.Token) bool {
	return t.Kind != text.Word || !text.IsStopword(t.Text) && !formWords().Filler[t.Text]
}

// bears is the share of the request's content words, by weight, that the
// statement has.
func (st *statement) bears(request []word) float64 {
	var all, have float32
	i := 0
	for _, w := range request {
		all += w.weight
		for i < len(st.words) && st.words[i].hash < w.hash {
			i++
		}
		if i < len(st.words) && st.words[i].hash == w.hash {
			have += w.weight
		}
	}
	if all == 0 {
		return 0
	}
	return float64(have / all)
}

func formOf(s string, toks []text.Token, kind text.SentenceKind, values []text.Value) form {
	if len(toks) == 0 {
		return 0
	}
	var f form
	is := func(g form, yes bool) {
		if yes {
			f |= g
		}
	}
	is(attributed, memory.IsAttributed(s))
	is(question, strings.HasSuffix(s, "?"))
	is(directive, text.KeepVerb(s, toks) >= 0)
	is(conditional, f.has(directive) && text.Waits(toks))
	is(rule, matches(formWords().Rule, s, toks, -1))
	is(preference, matches(formWords().Preference, s, toks, -1))
	is(precedent, isPrecedent(s, toks, kind))
	is(step, isStep(s, kind, values))
	is(fact, isFact(s, toks, kind, values))
	is(suspicious, isSuspicious(toks))
	return f
}

func isPrecedent(s string, toks []text.Token, kind text.SentenceKind) bool {
	w := formWords()
	return holds(w.Outcome, toks) &&
		(datedStart(s) || kind == text.Item && !strings.Contains(s, "`") || matches(w.Past, s, toks, toks[0].Start))
}

// datedStart reports whether a line begins with a date, perhaps in brackets or
// behind a bullet.
func datedStart(s string) bool {
	s = strings.TrimLeft(s, "-*•[( ")
	vs := text.Values(s[:min(len(s), 40)])
	return len(vs) > 0 && vs[0].Kind == text.DateTime && vs[0].Start == 0
}

func isStep(s string, kind text.SentenceKind, values []text.Value) bool {
	return slices.ContainsFunc(values, func(v text.Value) bool { return v.Kind == text.Command }) || kind == text.Code ||
		strings.HasPrefix(s, "$ ") || strings.HasPrefix(strings.ToLower(s[:min(len(s), 8)]), "step ")
}

func isFact(s string, toks []text.Token, kind text.SentenceKind, values []text.Value) bool {
	named := func(v text.Value) bool { // "setting of the gateway: mode=open"
		return v.Start > 2 && s[v.Start-2:v.Start] == ": "
	}
	return len(values) > 0 && (kind == text.Pair || kind == text.Row || slices.ContainsFunc(values, named) ||
		matches(formWords().Fact, s, toks, -1))
}

// isSuspicious recognises a sentence that asks to skip a check, to hand over a
// secret or to keep somebody in the dark.
func isSuspicious(toks []text.Token) bool {
	w := formWords()
	evade, secret, hand := false, false, false
	for i, t := range toks {
		if evade && w.Check[t.Text] || i > 0 && w.Tell[t.Text] && w.Not[toks[i-1].Text] {
			return true
		}
		evade = evade || w.Evade[t.Text]
		secret = secret || w.Secret[t.Text]
		hand = hand || w.Hand[t.Text]
	}
	return secret && hand
}

// bodyOf drops the wrapper of a directive: what stands before "that" or before a
// colon.
func bodyOf(s string, toks []text.Token) string {
	v := text.KeepVerb(s, toks)
	if v < 0 {
		return s
	}
	end := toks[v].End
	colon := strings.Index(s[end:], ": ")
	for _, t := range toks[v+1 : min(v+9, len(toks))] {
		if t.Text != "that" || colon >= 0 && end+colon < t.Start {
			continue
		}
		if rest := strings.TrimSpace(s[t.End:]); len(contentWords(text.Tokens(rest))) > 1 {
			return rest
		}
		return s
	}
	if colon >= 0 && colon < 90 {
		if rest := strings.TrimSpace(s[end+colon+1:]); len(contentWords(text.Tokens(rest))) > 1 {
			return rest
		}
	}
	return s
}

// affirmative recognises a bare yes.
func affirmative(s string) bool {
	toks := text.Tokens(s)
	return len(toks) > 0 && len(toks) <= 12 && matches(formWords().Yes, s, toks, toks[0].Start)
}
