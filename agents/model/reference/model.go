package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// Setting is how careful the model is.
type Setting string

// The settings. See docs/reference-model.md for what each does.
const (
	Naive       Setting = "naive"
	Cautious    Setting = "cautious"
	SourceAware Setting = "source-aware"

	// Of state cases alone.
	Own        Setting = "naive:own"  // naive, but of two records takes the older
	Refuse     Setting = "refuse"     // does no task
	Ask        Setting = "ask"        // asks the user for every value
	Everything Setting = "everything" // does the task with every value in sight
	LookFirst  Setting = "look-first" // looks every value up, and takes a record's only where that finds none
)

// Settings lists the settings. v1-naive and v1-cautious are the models of the first
// data set: naive and cautious without a phrase book.
func Settings() []Setting {
	return []Setting{Naive, Cautious, Own, Refuse, Ask, Everything, LookFirst, SourceAware, "v1-naive", "v1-cautious"}
}

// Parse returns the setting of a name; "" is Cautious.
func Parse(name string) (Setting, error) {
	if s := Setting(name); name == "" {
		return Cautious, nil
	} else if slices.Contains(Settings(), s) {
		return s, nil
	}
	var names []string
	for _, s := range Settings() {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("the reference model has no setting %q: one of %s", name, strings.Join(names, ", "))
}

// Model is the reference model in one setting. It is safe for concurrent use;
// its cache never changes an answer.
type Model struct {
	name    Setting
	setting Setting // by which it reads: of v1-naive, naive
	reader  *reader
	replies *replies
	book    *Book // nil reads everything by form
}

// Cache keeps messages that were taken apart, for models and trials to share.
type Cache struct{ reader }

// NewCache returns a cache of at most about maxBytes.
func NewCache(maxBytes int) *Cache {
	r := reader{
		docs:    text.New[*document](maxBytes * 5 / 8),
		entries: text.New[*statement](maxBytes / 8),
		tools:   text.New[[]uint64](64 << 10),
	}
	for kind := range r.sentences {
		r.sentences[kind] = text.NewOfParts[*sentence](maxBytes / 32)
	}
	r.sentences[text.Prose] = text.NewOfParts[*sentence](maxBytes / 8)
	return &Cache{r}
}

// New returns the model in a setting; a nil cache gives it one of its own.
func New(s Setting, c *Cache) *Model {
	if c == nil {
		c = NewCache(16 << 20)
	}
	return &Model{name: s, setting: Setting(strings.TrimPrefix(string(s), firstModels)), reader: &c.reader,
		replies: newReplies()}
}

// firstModels begins the names of the models that know no phrase book.
const firstModels = "v1-"

// WithBook returns the model with a phrase book: it reads by that whatever the book
// knows, and all else by form. The models of the first data set take none.
func (m *Model) WithBook(b *Book) *Model {
	if m.name != m.setting {
		return m
	}
	c := *m
	c.book, c.replies = b, b.replies
	return &c
}

type heardKey struct{}

// Hearing returns a context in which a model with a phrase book also knows the phrases
// of one more case: of a variant that nobody had made when the book was.
func Hearing(ctx context.Context, p *Phrases) context.Context {
	return context.WithValue(ctx, heardKey{}, p)
}

// Name implements [model.Namer].
func (m *Model) Name() string { return "reference:" + string(m.name) }

// IsLLM implements [model.Namer]: the reference model is not one.
func (m *Model) IsLLM() bool { return false }

// Deterministic implements [model.Namer].
func (m *Model) Deterministic() bool { return true }

type noteKey struct{}

// Noting returns a context in which answers note whether they depended on how much
// the model makes of an attribution: naive and cautious answer all else alike.
func Noting(ctx context.Context) (context.Context, *bool) {
	note := new(bool)
	return context.WithValue(ctx, noteKey{}, note), note
}

func depends(ctx context.Context) {
	if note, ok := ctx.Value(noteKey{}).(*bool); ok {
		*note = true
	}
}

// Next implements [model.Model]. It is a function of the messages and tools
// alone.
func (m *Model) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	heard, _ := ctx.Value(heardKey{}).(*Phrases)
	var key request
	if heard == nil { // else the next request of the same words may mean something else
		key = m.replies.key(m.setting, &req)
		if r, depended, ok := m.replies.find(key); ok {
			if depended {
				depends(ctx)
			}
			return r, nil
		}
	}
	if book := m.book; book != nil {
		if heard != nil {
			book = book.with(heard)
		}
		if read, ok := book.read(m.setting, &req); ok {
			depended := read.attributed()
			if depended {
				depends(ctx)
			}
			r := counted(&req, read.reply())
			read.over()
			if heard == nil {
				m.replies.keep(key, &req, r, depended)
			}
			return r, nil
		}
	}
	depends(ctx)
	v := m.look(req)
	var r model.Reply
	switch v.asks {
	case forSummary:
		r.Text = v.summary()
	case forFlush:
		r = v.flush()
	case forReview:
		r = v.review()
	case forFacts:
		r.Text = v.facts()
	default:
		r = v.answerTurn()
	}
	r = counted(&req, r)
	if heard == nil {
		m.replies.keep(key, &req, r, true)
	}
	return r, nil
}

// counted is a reply with what it took.
func counted(req *model.Request, r model.Reply) model.Reply {
	r.Usage = model.Usage{Completion: model.Tokens(r.Text), Calls: 1, Estimated: true}
	for i := range req.Messages {
		r.Usage.Prompt += 4 + model.Tokens(req.Messages[i].Content)
	}
	return r
}

type ask uint8

const (
	forAnswer ask = iota
	forSummary
	forFlush
	forReview
	forFacts
)

// visible is the request as the model understands it.
type visible struct {
	reader  *reader
	setting Setting
	tools   []model.Tool
	policy  policy
	date    string // today, as the system prompt gives it

	known  []*statement // visible memory: injected, searched, summarised
	index  []string     // names of skills
	opened []*statement // steps of the skill that was opened in this turn
	kept   []*statement // items of a summary of this conversation

	turns []turn // the user's turns, oldest first
	asks  ask
	done  map[string]bool // tools called since the user's newest message
	last  []model.Message // what came since then
	wrote string          // everything that earlier calls stored, as one text
}

// turn is one turn of the user with the content that came in it.
type turn struct {
	user   *document
	blocks []*block
}

// look reads the whole request.
func (m *Model) look(req model.Request) *visible {
	v := &visible{reader: m.reader, setting: m.setting, tools: req.Tools, done: make(map[string]bool, 4)}
	var wrote strings.Builder
	newest := newestUser(req.Messages)
	extracts := newest > 0 && asksFor(m.reader.read(req.Messages[newest].Content).raw) == forFacts
	for i, msg := range req.Messages {
		d := m.reader.read(msg.Content)
		switch msg.Role {
		case model.System:
			v.policy = policyOf(d.raw)
			v.date = dateOf(d.raw)
			v.known = append(v.known, d.known...)
			v.index = append(v.index, d.skills...)
		case model.User:
			if a := asksFor(d.raw); a != forAnswer && i > 0 {
				if i == newest {
					v.asks = a
				}
				if a == forFacts {
					v.known = append(v.known, d.known...)
				}
				clear(v.done)
				v.last = nil
				continue
			}
			if strings.HasPrefix(d.raw, "Summary of the conversation so far:") {
				v.kept = append(v.kept, d.words()...)
				continue
			}
			v.known = append(v.known, d.known...)
			v.turns = append(v.turns, turn{user: d, blocks: d.blocks})
			v.opened = nil
			clear(v.done)
			v.last = nil
		case model.Assistant:
			for _, c := range msg.Calls {
				v.done[c.Name] = true
				if kindOf(c.Name) == world.Remembers {
					wrote.WriteString(c.Get("content"))
					wrote.WriteByte('\n')
				}
			}
			v.last = append(v.last, msg)
			if extracts && msg.Content != "" {
				v.bring([]*block{v.reader.said(msg.Content)})
			}
		case model.ToolRole:
			v.known = append(v.known, d.known...)
			if len(d.opened) > 0 {
				v.opened = d.opened
			}
			v.bring(d.blocks)
			v.last = append(v.last, msg)
		}
	}
	v.wrote = wrote.String()
	return v
}

// bring adds content to the newest turn.
func (v *visible) bring(blocks []*block) {
	if len(blocks) > 0 && len(v.turns) > 0 {
		t := &v.turns[len(v.turns)-1]
		t.blocks = append(t.blocks[:len(t.blocks):len(t.blocks)], blocks...)
	}
}

// newestUser is the index of the newest user message: the prompt of a flush,
// summary or review counts only there.
func newestUser(msgs []model.Message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == model.User {
			return i
		}
	}
	return -1
}

// asksFor recognises the prompts of a flush, a summary and a review by what
// they ask for.
func asksFor(words string) ask {
	switch {
	case strings.HasPrefix(words, "Summarise the conversation"):
		return forSummary
	case strings.Contains(words, "Store durable memories now"):
		return forFlush
	case strings.HasPrefix(words, "Review the conversation"):
		return forReview
	case strings.HasPrefix(words, "Extract the facts of the last exchange"):
		return forFacts
	}
	return forAnswer
}

// policy is what the retention policy in the prompt lets in.
type policy uint8

const (
	vague policy = iota
	scoped
	sourceAware
)

func policyOf(prompt string) policy {
	_, rest, ok := strings.Cut(prompt, "Retention policy:")
	if !ok {
		return vague
	}
	switch {
	case strings.Contains(rest, "only what the user said or asked to keep"):
		return sourceAware
	case strings.Contains(rest, "only preferences"):
		return scoped
	}
	return vague
}

func dateOf(prompt string) string {
	_, rest, ok := strings.Cut(prompt, "Today is ")
	if !ok || len(rest) < 10 {
		return "notes"
	}
	return rest[:10]
}

// first is the first tool on offer that does something, or nil.
func (v *visible) first(does func(*model.Tool) bool) *model.Tool {
	for i := range v.tools {
		if does(&v.tools[i]) {
			return &v.tools[i]
		}
	}
	return nil
}

// kindOf is what a tool does. One that is not in the catalog is taken for an
// action.
func kindOf(tool string) world.Kind {
	if t := world.Find(tool); t != nil {
		return t.Kind
	}
	return world.Acts
}

// did reports whether a tool of some kinds was called since the user's newest message.
func (v *visible) did(kinds ...world.Kind) bool {
	for name := range v.done {
		if slices.Contains(kinds, kindOf(name)) {
			return true
		}
	}
	return false
}

func takes(t *model.Tool, param string) bool {
	return slices.ContainsFunc(t.Params, func(p model.Param) bool { return p.Name == param })
}
