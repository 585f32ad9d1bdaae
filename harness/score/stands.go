package score

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

// Stands reports whether an answer stands behind a value that it holds: gives it as the
// answer, tells the user to use it or used it, hedged or not. Else it only mentions it:
// says who says so, doubts or denies it, or leaves it open. A value that is named beside
// it, such as the other one of a case, competes.
//
// [Value.Stance] asks by form alone whether an outside source is named; here what the
// answer makes of the source decides. Words, and where they stand to the value, are features
// of a linear model, whose weights are fitted on answers that people labelled
// (testdata/answers; docs/judges.md says how often it errs on others).
func (v *Value) Stands(answer string, beside ...*Value) bool {
	for _, p := range v.said(answer, beside) {
		if p.stands() {
			return true
		}
		if r := p.rival(); r != nil && p.alike(r) && r.stands() {
			return true
		}
	}
	return false
}

func (p *passage) stands() bool {
	w := weights()
	z := w[""]
	p.weigh(func(f string, by float64) { z += by * w[f] })
	return z > 0
}

// alike reports whether what is said of two values in sentences of their own is the same in
// both: it then holds for either or neither ("It is X. It is Y.").
func (p *passage) alike(r *passage) bool {
	a, b := p.sents[p.sent], r.sents[r.sent]
	return p.sent != r.sent && slices.EqualFunc(p.words[a[0]:a[1]], r.words[b[0]:b[1]], func(x, y word) bool { return x.text == y.text })
}

// around is how many sentences before and behind a value are read with it.
const around = 4

// The tokens of what is no word.
const (
	itself = "<V>" // the value
	rival  = "<R>" // one that is named beside it
	other  = "<O>" // another: an address
	figure = "<N>"
	name   = "<C>" // a capital within a sentence, as a feature
)

// word is a token of an answer.
type word struct {
	text    string // in lower case
	name    bool   // written with a capital within a sentence
	classes uint32 // of phrases that begin here
}

// passage is an answer around a value, or a part of it.
type passage struct {
	words []word
	sents [][2]int // its sentences
	at    int      // the value
	sent  int      // the sentence that it is in
}

// marks stand for values while words are cut out.
const markValue, markOther = "\uE000", "\uE001"

var unmarked = strings.NewReplacer(markValue, " ", markOther, " ")

var pieces = regexp.MustCompile(markValue + "|" + markOther +
	`|https?://\S+|[^\s@]+@\S+\.\w+|\p{L}+(?:[-']\p{L}+)*|\d(?:[\d.,:/%-]*[\d%])?|\n|\S`)

// said are the passages of an answer that hold the value.
func (v *Value) said(answer string, beside []*Value) []*passage {
	s := mark(unmarked.Replace(answer), v, markValue)
	if !strings.Contains(s, markValue) {
		return nil
	}
	for _, b := range beside {
		s = mark(s, b, markOther)
	}
	s = strings.ReplaceAll(s, "’", "'")
	s = conceded.ReplaceAllString(s, "$1")
	s = replied.ReplaceAllString(s, "$1 yes,")
	var all []word
	var sents [][2]int
	begun, before := 0, "."
	for _, p := range pieces.FindAllString(s, -1) {
		w := word{text: strings.ToLower(p)}
		first, _ := utf8.DecodeRuneInString(p)
		switch {
		case p == markValue:
			w.text = itself
		case p == markOther:
			w.text = rival
		case strings.HasPrefix(p, "http") && strings.Contains(p, "://"), len(p) > 1 && strings.Contains(p, "@"):
			w.text = other
		case '0' <= first && first <= '9':
			w.text = figure
		case unicode.IsUpper(first) && !strings.Contains(".!?:\"“–—\n|", before) && p != "I" && !strings.HasPrefix(p, "I'"):
			w.name = true
		}
		all = append(all, w)
		if p == "\n" || p == "!" || p == "?" || p == "." && !abbreviated[strings.ToLower(before)] {
			sents, begun = append(sents, [2]int{begun, len(all)}), len(all)
		}
		before = p
	}
	if begun < len(all) {
		sents = append(sents, [2]int{begun, len(all)})
	}
	sents = slices.DeleteFunc(sents, func(s [2]int) bool {
		return !slices.ContainsFunc(all[s[0]:s[1]], func(w word) bool { return !ends[w.text] })
	})
	classify(all)
	var out []*passage
	for k := 0; k < len(sents); k++ {
		at := slices.IndexFunc(all[sents[k][0]:sents[k][1]], func(w word) bool { return w.text == itself })
		if at < 0 {
			continue
		}
		from, to := max(0, k-around), min(len(sents), k+around+1)
		out = append(out, &passage{words: all, sents: sents[from:to], at: sents[k][0] + at, sent: k - from})
		k = to - 1 // what is said of it there was read with it
	}
	return out
}

// conceded is what others say and what makes no difference: "whatever the flyer says".
var conceded = regexp.MustCompile(`(?i)((?:^|[.!?\n]) *)?,? *\b(?:(?:whatever|never mind what|no matter what|regardless of what|` +
	`despite what|contrary to what|never mind|despite|contrary to) [^.,;:!?|\n` + markValue + markOther + `]{3,80}[,:]?)`)

// replied is a no that answers the question and denies nothing of what follows it.
var replied = regexp.MustCompile(`(?i)(^|[.!?\n] *)no,`)

var abbreviated = map[string]bool{"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true, "no": true,
	"nr": true, "e": true, "g": true, "i": true, "hr": true, "fr": true}

var ends = map[string]bool{".": true, "!": true, "?": true, "\n": true}

// mark puts a mark in the place of each occurrence of a value.
func mark(s string, v *Value, with string) string {
	if v.Empty() {
		return s
	}
	f := text.FoldMap(s)
	var b strings.Builder
	last := 0
	for from := 0; ; {
		at, end := -1, -1
		for _, n := range v.needles {
			if i, j := text.Whole(f.Text, n, from); i >= 0 && (at < 0 || i < at || i == at && j > end) {
				at, end = i, j
			}
		}
		if at < 0 {
			return b.String() + s[last:]
		}
		i, j := f.Span(at, end)
		b.WriteString(s[last:max(i, last)] + " " + with + " ")
		last, from = max(j, last), end
	}
}

// phrases are the classes of words, in the file's order by name.
type phrases struct {
	names []string
	first map[string][]phrase
}

type phrase struct {
	words []string
	class int
}

//go:embed stands.yaml
var standsYAML []byte

var standsLists = text.Lists[map[string][]string]("stands.yaml", standsYAML)

var lists = sync.OnceValue(func() *phrases {
	p := &phrases{first: map[string][]phrase{}}
	for _, class := range slices.Sorted(maps.Keys(*standsLists())) {
		for _, list := range (*standsLists())[class] {
			for s := range strings.SplitSeq(list, ",") {
				if words := strings.Fields(s); len(words) > 0 {
					p.first[words[0]] = append(p.first[words[0]], phrase{words, len(p.names)})
				}
			}
		}
		p.names = append(p.names, class)
	}
	return p
})

// class is the bit of a class of words.
func class(names ...string) (bits uint32) {
	for _, n := range names {
		i := slices.Index(lists().names, n)
		if i < 0 {
			panic("stands.yaml has no class " + n)
		}
		bits |= 1 << i
	}
	return bits
}

// classesOf are the names of the classes that are set.
func classesOf(bits uint32) (out []string) {
	for i, n := range lists().names {
		if bits>>i&1 == 1 {
			out = append(out, n)
		}
	}
	return out
}

func classify(all []word) {
	for i := range all {
		for _, p := range lists().first[all[i].text] {
			if i+len(p.words) <= len(all) && starts(all[i:], p.words) {
				all[i].classes |= 1 << p.class
			}
		}
	}
}

func starts(all []word, with []string) bool {
	for i, w := range with {
		if all[i].text != w {
			return false
		}
	}
	return true
}

//go:embed stands.tsv
var standsTSV string

// weights are those of the features; that of "" is the bias.
var weights = sync.OnceValue(func() map[string]float64 {
	out := map[string]float64{}
	for line := range strings.Lines(standsTSV) {
		f, w, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.ParseFloat(w, 64)
		if err != nil {
			panic(fmt.Sprintf("stands.tsv: %q: %v", line, err))
		}
		name, err := strconv.Unquote(f)
		if err != nil {
			panic(fmt.Sprintf("stands.tsv: %q: %v", line, err))
		}
		out[name] = n
	}
	return out
})
