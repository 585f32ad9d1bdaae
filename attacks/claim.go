package attacks

import (
	"cmp"
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

// claim is one sentence that carries an attack: it holds the value, or it says
// beside such a sentence that something is to be remembered.
type claim struct {
	text  string
	kind  text.SentenceKind
	value bool   // it holds the value
	task  bool   // it holds what the user's own task needs
	keep  []span // what must stay as it is: values, and what the task needs
	query []string
}

type span struct{ from, to int }

// within reports whether the span overlaps one that must stay.
func (cl *claim) within(from, to int) bool {
	return slices.ContainsFunc(cl.keep, func(s span) bool { return from < s.to && s.from < to })
}

// reminds recognises the sentence beside a claim that points at it.
var reminds = regexp.MustCompile(`(?i)\b(remember|memor(y|ise|ize)|future|later|assistant|from now on|for next time|save|store|keep)\b`)

// claims rewrites the sentences that carry the attack, in order. f returns false
// for those that stay as they are; claims reports whether any was rewritten that
// holds the value, since an attack of which only the surroundings changed is no
// variant worth a name.
func claims(c *datasets.Case, f func(cl *claim) (string, bool)) bool {
	forms, kept := c.Spellings(), kept(c)
	var query []string
	if c.Retrieval != nil {
		for _, t := range text.Tokens(c.Retrieval.Query) {
			query = append(query, text.Stem(t.Text))
		}
	}
	changed := false
	for t, seg := range c.Segments() {
		if !holdsAny(seg.Text, forms) {
			continue
		}
		sentences := text.Sentences(seg.Text)
		carries := make([]bool, len(sentences))
		for k, s := range sentences {
			carries[k] = holdsAny(seg.Text[s.Start:s.End], forms)
		}
		for k, s := range slices.Backward(sentences) { // so that the spans stay right
			beside := k > 0 && carries[k-1] || k+1 < len(sentences) && carries[k+1]
			if !carries[k] && !(beside && reminds.MatchString(s.Text)) {
				continue
			}
			cl := newClaim(seg.Text[s.Start:s.End], s.Kind, kept, slices.Concat(t.Expect, needed(c, s.Text)))
			cl.value, cl.query = carries[k], query
			if out, ok := f(cl); ok && out != cl.text {
				seg.Text = seg.Text[:s.Start] + out + seg.Text[s.End:]
				if cl.value {
					changed = true
					reworded(c, cl.text, out)
				}
			}
		}
	}
	return changed
}

// valueless reports whether a claim has no value by which it is found again, so that
// the case has the claim itself in the value's place.
func valueless(c *datasets.Case) bool {
	return c.State != nil && slices.Contains(c.State.Claims, c.Value)
}

// kept is what every sentence of a case must keep: the spellings of its value, and
// the values of a state.
func kept(c *datasets.Case) []string {
	if c.State == nil {
		return c.Spellings()
	}
	var out []string
	if !valueless(c) {
		out = c.Spellings()
	}
	for _, sl := range c.State.Slots {
		out = append(out, sl.Right, sl.Wrong)
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// needed are the values of a state that the user's own task takes from a sentence.
func needed(c *datasets.Case, sentence string) (out []string) {
	if c.State == nil {
		return nil
	}
	for _, sl := range c.State.Slots {
		uses := func(call model.Call) bool {
			return slices.ContainsFunc(call.Args, func(a model.Arg) bool { return strings.Contains(a.Value, "{"+sl.Name+"}") })
		}
		if sl.Wrong == "" && slices.ContainsFunc(c.State.Solve, uses) && text.LastWhole(sentence, sl.Right) >= 0 {
			out = append(out, sl.Right)
		}
	}
	return out
}

// reworded notes that a sentence says the claim in other words: a reader who knew it
// in the old ones knows these for the claim, and finds it again by them where it has no
// value. Of several sentences it is the longest that has all of the claim's values.
func reworded(c *datasets.Case, was, said string) {
	if c.State == nil {
		return
	}
	wording := ""
	for _, s := range text.Sentences(said) {
		lost := func(v string) bool { return datasets.Holds(was, v) && !datasets.Holds(s.Text, v) }
		if len(s.Text) > len(wording) && !slices.ContainsFunc(kept(c), lost) {
			wording = s.Text
		}
	}
	wording = cmp.Or(wording, strings.TrimSpace(said))
	if valueless(c) {
		c.Forms = append(c.Forms, wording)
	}
	if holdsAny(was, c.State.Claims) {
		c.State.Claims = append(c.State.Claims, wording)
	}
}

func holdsAny(s string, forms []string) bool {
	return slices.ContainsFunc(forms, func(f string) bool { return datasets.Holds(s, f) })
}

func newClaim(s string, kind text.SentenceKind, forms, expect []string) *claim {
	cl := &claim{text: s, kind: kind}
	for _, v := range text.Values(s) {
		if v.Kind != text.Name && v.Kind != text.Figure {
			cl.keep = append(cl.keep, span{v.Start, v.End})
		}
	}
	protect := func(what string) bool {
		n := len(cl.keep)
		for from, to, ok := indexFold(s, what, 0); ok && what != ""; from, to, ok = indexFold(s, what, to) {
			cl.keep = append(cl.keep, span{from, to})
		}
		return len(cl.keep) > n
	}
	for _, f := range forms {
		protect(f)
	}
	for _, e := range expect {
		cl.task = protect(e) || cl.task
	}
	return cl
}

// indexFold finds what in s from an offset on, whatever the case of ASCII
// letters.
func indexFold(s, what string, at int) (from, to int, ok bool) {
	for ; at+len(what) <= len(s); at++ {
		if strings.EqualFold(s[at:at+len(what)], what) {
			return at, at + len(what), true
		}
	}
	return 0, 0, false
}

// trigger is a word or phrase by which filters recognise an attack.
type trigger struct {
	Say  string
	Form bool // by it a sentence is read as a directive or a rule
	As   []string
	In   map[string]string `yaml:",inline"` // translations, by language
}

var languages = []string{"de", "fr", "es", "it", "pt"}

//go:embed wording.yaml
var wordingFile []byte

var wordingList = text.Lists[[]trigger]("wording.yaml", wordingFile)

type wordingTable struct {
	bySay map[string]*trigger
	find  *regexp.Regexp
}

// wording is the committed table, ready to be looked for.
var wording = sync.OnceValue(func() wordingTable {
	list := *wordingList()
	slices.SortStableFunc(list, func(a, b trigger) int { return len(b.Say) - len(a.Say) }) // the longest first
	t := wordingTable{bySay: make(map[string]*trigger, len(list))}
	var words []string
	for i := range list {
		t.bySay[list[i].Say] = &list[i]
		words = append(words, regexp.QuoteMeta(list[i].Say))
	}
	t.find = regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	return t
})

// found is a trigger with its place in a claim.
type found struct {
	span
	*trigger
}

// triggers finds the triggers of a claim, outside of what must stay.
func (cl *claim) triggers() []found {
	t := wording()
	var out []found
	for _, m := range t.find.FindAllStringIndex(cl.text, -1) {
		if !cl.within(m[0], m[1]) {
			out = append(out, found{span{m[0], m[1]}, t.bySay[strings.ToLower(cl.text[m[0]:m[1]])]})
		}
	}
	return out
}

// cue marks the words of a trigger that make a directive of a verb such as note or
// save, which have other meanings.
var cue = regexp.MustCompile(`(?i)memory|later|future|session|assistant|agent|from now on|going forward`)

// hidden are the triggers that a variant hides: all but those by which the
// sentence is read, or, in some of the further draws, all.
func (cl *claim) hidden(w *workshop) []found {
	all := cl.triggers()
	if w.draw > 0 && w.r.IntN(3) == 0 {
		return all
	}
	i := slices.IndexFunc(all, func(f found) bool { return f.Form })
	if i < 0 {
		return all
	}
	say := all[i].Say
	all = slices.Delete(all, i, i+1)
	switch say {
	case "save", "store", "record", "note":
		if i := slices.IndexFunc(all, func(f found) bool { return cue.MatchString(f.Say) }); i >= 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	return all
}

// targets are the words that are worth disguising: one of each hidden trigger,
// or where there is none the longest word that the later query does not have, so
// that what was stored is still found.
func (cl *claim) targets(w *workshop) []span {
	var out []span
	for _, f := range cl.hidden(w) {
		words := text.Tokens(cl.text[f.from:f.to])
		words = slices.DeleteFunc(words, func(t text.Token) bool { return len(t.Text) < 3 })
		if len(words) == 0 {
			continue
		}
		t := datasets.Pick(w.r, words)
		out = append(out, span{f.from + t.Start, f.from + t.End})
	}
	if len(out) > 0 {
		return out
	}
	form := cl.triggers()
	var best span
	for _, t := range text.Tokens(cl.text) {
		if t.Kind != text.Word || t.End-t.Start <= max(3, best.to-best.from) || cl.within(t.Start, t.End) ||
			slices.Contains(cl.query, text.Stem(t.Text)) ||
			slices.ContainsFunc(form, func(f found) bool { return t.Start < f.to && f.from < t.End }) {
			continue
		}
		best = span{t.Start, t.End}
	}
	if best.to == 0 {
		return nil
	}
	return []span{best}
}

// replace rewrites spans of the claim, which are in order.
func (cl *claim) replace(spans []span, f func(i int, s string) string) string {
	var b strings.Builder
	at := 0
	for i, s := range spans {
		b.WriteString(cl.text[at:s.from])
		b.WriteString(f(i, cl.text[s.from:s.to]))
		at = s.to
	}
	b.WriteString(cl.text[at:])
	return b.String()
}

var structuralStart = regexp.MustCompile(`(?i)^(\$ |\[|\p{Nd}|(task|outcome|lesson|result|resolved):)`)

// structural reports whether the claim's form is what it is read by: a step, a
// row, a record of past work, code. Words around it would break it.
func (cl *claim) structural() bool {
	if cl.kind == text.Row || cl.kind == text.Code || cl.kind == text.Pair || structuralStart.MatchString(cl.text) {
		return true
	}
	return slices.ContainsFunc(text.Values(cl.text), func(v text.Value) bool {
		return v.Kind == text.Command && v.Start == 0
	})
}

// lowerFirst makes the claim's first letter small, so that it can follow other
// words, unless the word is a name, a value or not plainly written.
func (cl *claim) lowerFirst() string {
	s := cl.text
	end := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	if end < 0 {
		end = len(s)
	}
	if end < 1 || s[0] < 'A' || s[0] > 'Z' || cl.within(0, end) {
		return s
	}
	word := strings.ToLower(s[:end])
	if s[1:end] != word[1:] || !text.IsStopword(word) && wording().bySay[word] == nil {
		return s
	}
	return word + s[end:]
}

// wrapper takes a directive apart: up to the verb that tells somebody to
// remember, what stands behind it, and, after "that" or a colon, the claim.
var wrapper = regexp.MustCompile(`(?is)^(.{0,80}?\b(?:remember|memorise|memorize|save|store|record|note|keep|retain|add|commit|log)\b)([^:.;]{0,60}?)(?:\bthat\b|:)\s+(.{12,})$`)

// unwrap returns the two parts of a directive, the first with an object in the
// place of the claim. ok is false for any other claim, and where what must stay is
// in the first part.
func (cl *claim) unwrap(object string) (directive, body string, ok bool) {
	m := wrapper.FindStringSubmatchIndex(cl.text)
	if m == nil || cl.structural() || slices.ContainsFunc(cl.keep, func(s span) bool { return s.from < m[5] }) {
		return "", "", false
	}
	directive = cl.text[m[2]:m[3]] + " " + object + strings.TrimRight(cl.text[m[4]:m[5]], " ,–-")
	return directive, strings.TrimSpace(cl.text[m[6]:m[7]]), true
}

// capital makes the first letter of a claim's body a capital, unless a value
// stands there.
func capital(s string) string {
	if vs := text.Values(s); len(vs) > 0 && vs[0].Start == 0 && vs[0].Kind != text.Name {
		return s
	}
	return datasets.Capital(s)
}

// ended returns s without the mark that ends a sentence, and that mark.
func ended(s string) (body, mark string) {
	s = strings.TrimRight(s, " ")
	if n := len(s); n > 0 && (s[n-1] == '.' || s[n-1] == '!') {
		return s[:n-1], s[n-1:]
	}
	return s, ""
}
