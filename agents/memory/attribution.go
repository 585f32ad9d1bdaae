package memory

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
)

// nouns are what a prompt calls content of a medium.
var nouns = map[Medium]string{Web: "page", Email: "mail", File: "file", Slack: "message", Calendar: "invitation",
	MCP: "service", Script: "output", Skill: "skill", Tool: "tool", Peer: "agent"}

// longestSource bounds the name of a source in an attribution, in bytes.
const longestSource = 120

// Attribute puts a text into the mouth of its source, as the prompt shows it:
// `The mail from dana@norvik.example says: …`.
//
// What follows is one sentence, whatever the text was: its sentences and lines
// are joined by semicolons, and marks of lists and headings are left out. An
// attribution speaks for its own sentence, so that the second sentence of a text
// would else stand in the prompt as something that the agent knows. A text that
// names a source itself keeps that inside: only the true source is taken for the
// attribution.
func Attribute(o Origin, content string) string {
	what, src := cmp.Or(nouns[o.Medium], "content"), text.Clip(oneSentence(o.Source), longestSource)
	if o.Class == Agent { // what it said itself, from sources that nobody noted
		what, src = "answer", "an earlier session"
	}
	lead := Attribution(what, src)
	return lead + oneSentence(strings.TrimPrefix(content, lead))
}

const unnamed = "an unnamed source"

// Attribution is what stands before the words of a source.
func Attribution(what, source string) string {
	return "The " + what + " from " + cmp.Or(source, unnamed) + " says: "
}

// IsAttributed reports whether a sentence is put into the mouth of a source in
// the form that Attribute gives it.
func IsAttributed(s string) bool {
	rest, ok := strings.CutPrefix(s, "The ")
	if !ok {
		return false
	}
	i := strings.Index(rest, " says: ")
	j := strings.Index(rest, " from ")
	return i > 0 && j > 0 && j < i && i < 200
}

// oneSentence joins the sentences and lines of a text by semicolons.
func oneSentence(s string) string {
	if !manySentences(s) {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	sents := text.Sentences(s)
	for i, st := range sents {
		t := st.Text
		last := i == len(sents)-1
		if !last {
			t = strings.TrimRight(t, ".!?;")
		}
		appendUnbroken(&b, t)
		switch {
		case last:
		case strings.HasSuffix(t, ":"):
			b.WriteByte(' ')
		default:
			b.WriteString("; ")
		}
	}
	return b.String()
}

// manySentences is quick to say no.
func manySentences(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n' || c == '\r':
			return true
		case (c == '.' || c == '!' || c == '?') && i+1 < len(s), c == 0xE3, c == 0xEF:
			return true
		}
	}
	return false
}

// appendUnbroken appends a sentence without what another reader could take for
// its end: a full stop after an abbreviation is left out where a capital or a
// figure follows, and a mark inside becomes a semicolon.
func appendUnbroken(b *strings.Builder, s string) {
	from := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n' || c == '\r': // a line that only wraps
			b.WriteString(s[from:i])
			b.WriteByte(' ')
			from = i + 1
		case c == '.' || c == '!' || c == '?':
			end := i + 1
			for end < len(s) && strings.IndexByte(`"')]*_.!?`, s[end]) >= 0 {
				end++
			}
			if end >= len(s) || s[end] != ' ' && s[end] != '\t' {
				continue
			}
			if r, _ := utf8.DecodeRuneInString(strings.TrimLeft(s[end:], " \t")); c == '.' && unicode.IsLower(r) {
				continue
			}
			b.WriteString(s[from:i])
			if c != '.' {
				b.WriteByte(';')
			}
			from = i + 1
		}
	}
	b.WriteString(s[from:])
}
