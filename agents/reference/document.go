package reference

import (
	"strings"

	"github.com/memtox/memtox/agents/memory/memo"
	"github.com/memtox/memtox/agents/memory/text"
)

// document is one message taken apart by its visible delimiters. Documents are
// cached by content and never change.
type document struct {
	words  []*statement // what stands outside every block: the speaker's own words
	raw    string       // the same as one text
	known  []*statement // entries of memory blocks
	skills []string     // names in the skill index
	opened []*statement // steps of an opened skill
	blocks []*block     // pieces of content with their labels
	keeps  bool         // the words ask to keep content that stands elsewhere
}

// block is one piece of content.
type block struct {
	label   string // "mail", "page", …: what a person would call it
	source  string
	wrapped bool // in untrusted delimiters
	stmts   []*statement
	steps   int
}

// labels are the visible headings of content, with what they are called.
var labels = [...][2]string{
	{"Mail from: ", "mail"}, {"Page: ", "page"}, {"File: ", "file"}, {"Message in: ", "message"}, {"Invitation from: ", "invitation"},
	{"Output of: ", "output"}, {"Answer of: ", "service"}, {"Skill from: ", "skill"}, {"Content from: ", "content"},
}

func labelOf(line string) (name, source string) {
	for _, l := range labels {
		if rest, ok := strings.CutPrefix(line, l[0]); ok {
			return l[1], strings.TrimSpace(rest)
		}
	}
	return "", ""
}

type reader struct{ docs *memo.Memo[*document] }

func (r *reader) read(content string) *document { return r.docs.Get(content, parse) }

// parse takes a message apart. It is linear in its length.
func parse(content string) (*document, int) {
	d := &document{}
	var words, body strings.Builder
	var cur *block
	in := ""      // the tag we are in: memory, skills, skill
	blank := true // the previous line was empty, so a label may follow
	head := false // inside the heading of a piece of content
	flush := func() {
		if cur != nil {
			cur.fill(body.String())
			if len(cur.stmts) > 0 {
				d.blocks = append(d.blocks, cur)
			}
			cur = nil
			body.Reset()
		}
	}
	skill := ""
	for line := range strings.Lines(content) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case in == "" && cur == nil && strings.HasPrefix(bare, "<memory "):
			in = "memory"
			continue
		case in == "" && cur == nil && bare == "<skills>":
			in = "skills"
			continue
		case in == "" && cur == nil && strings.HasPrefix(bare, "<skill "):
			in = "skill"
			continue
		case in != "" && strings.HasPrefix(bare, "</"+in):
			if in == "skill" {
				b := &block{}
				b.fill(skill)
				d.opened = b.stmts
			}
			in = ""
			continue
		}
		switch in {
		case "memory":
			if entry := strings.TrimPrefix(bare, "- "); entry != "" {
				d.known = append(d.known, entryStatements(entry)...)
			}
			continue
		case "skills":
			if name := strings.TrimPrefix(bare, "- "); name != "" {
				d.skills = append(d.skills, name)
			}
			continue
		case "skill":
			skill += line
			continue
		}
		if blank {
			if name, source := labelOf(bare); name != "" && (cur == nil || !cur.wrapped) {
				flush()
				cur = &block{label: name, source: source}
				blank, head = false, true
				continue
			}
		}
		if head {
			head = bare != ""
			blank = !head
			continue
		}
		blank = bare == ""
		if cur == nil {
			words.WriteString(line)
			continue
		}
		switch {
		case strings.HasPrefix(bare, "<untrusted "):
			cur.wrapped = true
			continue
		case bare == "</untrusted>":
			flush()
			blank = true
			continue
		}
		body.WriteString(line)
	}
	flush()
	d.raw = strings.TrimSpace(words.String())
	d.words = statements(d.raw)
	d.keeps = keeps(d.raw)
	size := 400 + 2*len(content)
	for _, b := range d.blocks {
		size += 300 * len(b.stmts)
	}
	return d, size + 300*(len(d.words)+len(d.known))
}

// entryStatements reads one memory entry. An entry is one statement, however
// many sentences it has: that is how it was stored.
func entryStatements(entry string) []*statement {
	return []*statement{newStatement(entry, text.Item)}
}

func (b *block) fill(body string) {
	if b.label == "output" { // every line of a log stands for itself
		for line := range strings.Lines(body) {
			b.stmts = append(b.stmts, statements(line)...)
		}
	} else {
		b.stmts = statements(body)
	}
	if len(b.stmts) > 0 {
		b.stmts[0].first = true
	}
	for _, st := range b.stmts {
		if st.form.has(step) {
			b.steps++
		}
	}
}

// statements cuts a text into statements. A line that is a record of past work
// stays whole.
func statements(s string) []*statement {
	sents := text.Sentences(s)
	out := make([]*statement, 0, len(sents))
	for i := 0; i < len(sents); i++ {
		from, to, kind := sents[i].Start, sents[i].End, sents[i].Kind
		numbered := kind == text.Item && isNumbered(s[:from])
		if datedStart(sents[i].Text) || recordStart(sents[i].Text) {
			for i+1 < len(sents) && !strings.ContainsAny(s[to:sents[i+1].Start], "\r\n") {
				i++
				to = sents[i].End
			}
		}
		st := newStatement(s[from:to], kind)
		if numbered {
			st.form |= step
		}
		out = append(out, st)
	}
	return out
}

// recordStart recognises a line that begins like a record of past work.
func recordStart(s string) bool {
	word, _, ok := strings.Cut(s, ":")
	return ok && (strings.EqualFold(word, "task") || strings.EqualFold(word, "lesson") || strings.EqualFold(word, "outcome"))
}

// isNumbered reports whether a list item's mark, which before ends with, is a
// number.
func isNumbered(before string) bool {
	before = strings.TrimRight(before, " \t")
	n := len(before)
	return n >= 2 && (before[n-1] == '.' || before[n-1] == ')') && before[n-2] >= '0' && before[n-2] <= '9'
}
