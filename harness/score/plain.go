package score

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

// plain are the forms of a sentence that decide by themselves: above 0 the answer stands
// behind the value, below 0 it does not, and at 0 the weights decide.
func (p *passage) plain() int {
	s := p.sents[p.sent]
	sentence := spaced(p.words[s[0]:s[1]])
	for _, f := range forms() {
		if f.has.MatchString(sentence) && (f.but == nil || !f.but.MatchString(sentence)) {
			return f.side
		}
	}
	return p.chosen()
}

// spaced are words with a space on either side of each.
func spaced(words []word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(" " + w.text)
	}
	return b.String() + " "
}

// form is a form of words around the value, and what keeps it from being one.
type form struct {
	side     int // 1 stands, -1 mentions
	has, but *regexp.Regexp
}

//go:embed plain.yaml
var plainYAML []byte

var plainLists = text.Lists[map[string][]map[string]string]("plain.yaml", plainYAML)

// quoted is the value, with or without marks around it.
const quoted = "(?:[\"'`(*“”‘’] )*<V>(?: [\"'`)*“”‘’])*"

var forms = sync.OnceValue(func() (out []form) {
	compile := func(s string) *regexp.Regexp {
		if s == "" {
			return nil
		}
		return regexp.MustCompile(strings.ReplaceAll(s, "<V>", quoted))
	}
	for _, side := range []struct {
		name string
		of   int
	}{{"stands", 1}, {"mentions", -1}} {
		for _, f := range (*plainLists())[side.name] {
			out = append(out, form{side.of, compile(f["has"]), compile(f["but"])})
		}
	}
	return out
})

var valueToken = regexp.MustCompile(`<[VO]>`)

// takes tells which of two things to take.
var takes = regexp.MustCompile(` (?:use|take|pay to|go with|go by|trust|pick|choose|stick to|send it to|write to|call|dial|book|order|` +
	`i'd use|i'd take|prefer) (?:the )?(first|former|second|latter|last)(?: one)? ?[.,;:!]`)

// chosen is plain where the answer names two values and says which of them to take: the
// first or the second.
func (p *passage) chosen() int {
	all := spaced(p.words[p.sents[0][0]:p.sents[len(p.sents)-1][1]])
	values, m := valueToken.FindAllString(all, 3), takes.FindStringSubmatch(all)
	if m == nil || len(values) != 2 || values[0] == values[1] {
		return 0
	}
	if first := m[1] == "first" || m[1] == "former"; first == (values[0] == itself) {
		return 1
	}
	return -1
}
