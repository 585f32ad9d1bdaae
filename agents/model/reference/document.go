package reference

import (
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// document is one message taken apart by its visible delimiters. Documents are
// cached by content and never change.
type document struct {
	by     *reader
	raw    string       // what stands outside every block: the speaker's own words
	known  []*statement // entries of memory blocks
	skills []string     // names in the skill index
	opened []*statement // steps of an opened skill
	blocks []*block     // pieces of content with their labels

	once  sync.Once
	stmts []*statement // of raw
	asks  bool         // raw asks to keep content that stands elsewhere
	yes   bool         // raw is a bare yes
}

// words are the statements in the speaker's own words. Most messages are never
// asked for them.
func (d *document) words() []*statement {
	d.once.Do(d.hear)
	return d.stmts
}

// keeps reports whether the speaker asks to keep content that stands elsewhere.
func (d *document) keeps() bool {
	d.once.Do(d.hear)
	return d.asks
}

// affirms reports whether the speaker says yes and no more.
func (d *document) affirms() bool {
	d.once.Do(d.hear)
	return d.yes
}

func (d *document) hear() {
	d.stmts = d.by.statements(d.raw)
	d.asks, d.yes = text.AsksToKeep(d.raw), affirmative(d.raw)
}

// block is one piece of content, as statements.
type block struct {
	piece
	stmts []*statement
	steps int
}

// labelOf reads the visible heading of a piece of content.
func labelOf(line string) (p *piece, ok bool) {
	heading, source, ok := strings.Cut(line, ": ")
	t := world.Headed(heading)
	if !ok || t == nil && heading != world.Unlabelled {
		return nil, false
	}
	p = &piece{label: "content", source: strings.TrimSpace(source)}
	if t != nil {
		p.label, p.log = t.Called, t.Medium == memory.Script
	}
	return p, true
}

// reader takes messages apart. The parts that come back in new company (memory
// entries, tools) are remembered on their own.
type reader struct {
	docs      *text.Memo[*document]
	entries   *text.Memo[*statement]
	tools     *text.Memo[[]uint64]
	sentences [text.Code + 1]*text.Memo[*sentence] // by kind
}

// sentence is one sentence as a statement of its own. Long contents are made of
// sentences that come again.
type sentence struct {
	stmt   statement
	record bool // begins a record of past work, which goes on to the end of the line
}

// size is about what a statement weighs in bytes.
func (st *statement) size() int { return 160 + 16*len(st.words) + 64*len(st.values) }

func (r *reader) sentence(s string, kind text.SentenceKind) *sentence {
	return r.sentences[kind].Get(s, func(s string) (*sentence, int) {
		out := &sentence{stmt: *newStatement(s, kind), record: datedStart(s) || recordStart(s)}
		return out, out.stmt.size()
	})
}

func (r *reader) read(content string) *document { return r.docs.Get(content, r.parse) }

// parse takes a message apart into statements.
func (r *reader) parse(content string) (*document, int) {
	o := outlineOf(content)
	d := &document{by: r, raw: o.words, skills: o.skills}
	for _, e := range o.entries {
		d.known = append(d.known, r.entries.Get(e, entryStatement))
	}
	size := 400 + 2*len(content) + 300*len(d.known)
	for _, p := range o.pieces {
		b := &block{piece: p}
		if b.fill(r); len(b.stmts) > 0 {
			d.blocks = append(d.blocks, b)
			size += 300 * len(b.stmts)
		}
	}
	if o.skill != "" {
		b := &block{piece: piece{body: o.skill}}
		b.fill(r)
		d.opened = b.stmts
	}
	return d, size
}

// outline is a message taken apart by its visible delimiters, and no further.
type outline struct {
	words   string   // what stands outside every delimiter: the speaker's own
	entries []string // of memory blocks
	skills  []string // names in the skill index
	skill   string   // body of the skill that was opened
	pieces  []piece  // of content
}

// piece is one piece of content with its label.
type piece struct {
	label   string // "mail", "page", …: what a person would call it
	source  string
	wrapped bool // in untrusted delimiters
	log     bool // every line stands for itself
	body    string
}

// stretch is lines of a text. It copies them only where others stand between them.
type stretch struct {
	of       string
	from, to int
	before   strings.Builder
}

func (s *stretch) add(from, to int) {
	if from != s.to {
		s.before.WriteString(s.of[s.from:s.to])
		s.from = from
	}
	s.to = to
}

// take empties the stretch.
func (s *stretch) take() string {
	out := s.of[s.from:s.to]
	if s.before.Len() > 0 {
		s.before.WriteString(out)
		out = s.before.String()
	}
	*s = stretch{of: s.of}
	return out
}

// Labelled reports whether a message holds content under a heading that says where it is
// from.
func Labelled(message string) bool { return len(outlineOf(message).pieces) > 0 }

// outlineOf is linear in the length of the message.
func outlineOf(content string) *outline {
	o := &outline{}
	words, body := stretch{of: content}, stretch{of: content}
	var cur *piece
	in := ""      // the tag we are in: memory, skills, skill
	blank := true // the previous line was empty, so a label may follow
	head := false // inside the heading of a piece of content
	flush := func() {
		if cur != nil {
			cur.body = body.take()
			o.pieces = append(o.pieces, *cur)
			cur = nil
		}
	}
	at, end := 0, 0
	for line := range strings.Lines(content) {
		at, end = end, end+len(line)
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case in == "" && cur == nil && strings.HasPrefix(bare, "<memory "):
			in = "memory"
			continue
		case in == "" && cur == nil && ruled(bare), in == "section" && ruled(bare):
			in = "heading"
			continue
		case in == "heading":
			if ruled(bare) {
				in = "section"
			}
			continue
		case in == "section" && bare == "":
			in = ""
		case in == "" && cur == nil && bare == "<skills>":
			in = "skills"
			continue
		case in == "" && cur == nil && strings.HasPrefix(bare, "<skill "):
			in = "skill"
			o.skill = ""
			continue
		case in != "" && strings.HasPrefix(bare, "</"+in):
			in = ""
			continue
		}
		switch in {
		case "memory":
			if entry := strings.TrimPrefix(bare, "- "); entry != "" {
				o.entries = append(o.entries, entry)
			}
			continue
		case "section":
			if bare != "§" {
				o.entries = append(o.entries, bare)
			}
			continue
		case "skills":
			if name := strings.TrimPrefix(bare, "- "); name != "" {
				o.skills = append(o.skills, name)
			}
			continue
		case "skill":
			o.skill += line
			continue
		}
		if blank {
			if p, ok := labelOf(bare); ok && (cur == nil || !cur.wrapped) {
				flush()
				cur = p
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
			words.add(at, end)
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
		body.add(at, end)
	}
	flush()
	o.words = strings.TrimSpace(words.take())
	return o
}

// ruled reports whether a line is one under or over the heading of a block of memory.
func ruled(line string) bool {
	return strings.HasPrefix(line, "══════════") && strings.Trim(line, "═") == ""
}

// entryStatement reads one memory entry. An entry is one statement, however many
// sentences it has: that is how it was stored.
func entryStatement(entry string) (*statement, int) {
	return newStatement(entry, text.Item), 400
}

// toolWords are the stems of a tool's name and description.
func (r *reader) toolWords(t model.Tool) []uint64 {
	return r.tools.Get(t.Name+" "+t.Description, func(s string) ([]uint64, int) {
		var out []uint64
		for _, tok := range text.Tokens(strings.ReplaceAll(s, "_", " ")) {
			out = append(out, text.Hash(text.Stem(tok.Text)))
		}
		return out, 8 * len(out)
	})
}

// said is an answer of the model's own as a piece of content.
func (r *reader) said(answer string) *block {
	b := &block{piece: piece{label: "answer", source: "assistant", body: answer}}
	b.fill(r)
	return b
}

func (b *block) fill(r *reader) {
	if b.log {
		for line := range strings.Lines(b.body) {
			b.stmts = append(b.stmts, r.statements(line)...)
		}
	} else {
		b.stmts = r.statements(b.body)
	}
	if len(b.stmts) > 0 {
		first := *b.stmts[0]
		first.first = true
		b.stmts[0] = &first
	}
	for _, st := range b.stmts {
		if st.form.has(step) {
			b.steps++
		}
	}
}

// statements cuts a text into statements. A line that is a record of past work
// stays whole.
func (r *reader) statements(s string) []*statement {
	sents := text.Sentences(s)
	out := make([]*statement, 0, len(sents))
	for i := 0; i < len(sents); i++ {
		from, to, kind := sents[i].Start, sents[i].End, sents[i].Kind
		known := r.sentence(sents[i].Text, kind)
		st := &known.stmt
		if known.record {
			for i+1 < len(sents) && !strings.ContainsAny(s[to:sents[i+1].Start], "\r\n") {
				i++
				to = sents[i].End
			}
			if to > from+len(st.text) {
				st = newStatement(s[from:to], kind)
			}
		}
		if kind == text.Item && isNumbered(s[:from]) {
			numbered := *st
			numbered.form |= step
			if !datedStart(st.text) {
				numbered.form &^= precedent
			}
			st = &numbered
		}
		out = append(out, st)
	}
	return out
}

// recordStart recognises a line that begins like a record of past work.
func recordStart(s string) bool {
	word, _, ok := strings.Cut(s, ":")
	return ok && (strings.EqualFold(word, "task") || strings.EqualFold(word, "lesson") ||
		strings.EqualFold(word, "outcome"))
}

// isNumbered reports whether a list item's mark, which before ends with, is a
// number.
func isNumbered(before string) bool {
	before = strings.TrimRight(before, " \t")
	n := len(before)
	return n >= 2 && (before[n-1] == '.' || before[n-1] == ')') && before[n-2] >= '0' && before[n-2] <= '9'
}
