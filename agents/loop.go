package agents

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// Settings are what a run sets for every profile.
type Settings struct {
	Window int    // tokens; 0 is DefaultWindow
	Policy string // retention policy: vague, scoped or source-aware; "" is vague
	Seed   int64  // given to the model
}

// DefaultWindow is the context window in tokens: small, so that compaction is
// reached in short cases.
const DefaultWindow = 8192

// maxRounds bounds the rounds of tool calls of one user turn.
const maxRounds = 12

// Loop runs sessions of one profile with one model. It is immutable once used
// and serves any number of trials at once.
type Loop struct {
	Profile  *Profile
	Model    model.Model
	Settings Settings

	once   sync.Once
	scaled Scaled
	tools  []model.Tool // offered in the conversation
	own    int          // of them the profile's own, which come first
	desks  sync.Map     // tools of an office, by its desks
	flush  []model.Tool // offered in a flush
	review []model.Tool // offered in a review
	stores map[string]memory.StoreSpec
	texts  text.Intern // of messages: the arms of a case see much the same
}

// ModelError is an error of the model: its trial is not scored.
type ModelError struct{ Err error }

func (e *ModelError) Error() string { return remote.Failed(e.Err) }
func (e *ModelError) Unwrap() error { return e.Err }

// End says what happens when a session is over.
type End struct {
	// Review lets the profile review the session, if it does that.
	Review bool
	// Office is where the session works; nil has the sandbox record actions only.
	Office *Office
	// Again is the outcome of a session that nobody uses any more, for its room; nil is
	// none.
	Again *Outcome
}

// Scaled returns the profile's counts at the run's window.
func (l *Loop) Scaled() Scaled {
	l.once.Do(l.prepare)
	return l.scaled
}

func (l *Loop) prepare() {
	if l.Settings.Window == 0 {
		l.Settings.Window = DefaultWindow
	}
	if l.Settings.Policy == "" {
		l.Settings.Policy = "vague"
	}
	l.scaled = l.Profile.Scale(l.Settings.Window)
	l.stores = map[string]memory.StoreSpec{}
	for _, s := range l.Profile.Stores {
		l.stores[s.Name] = s
	}
	for _, name := range l.Profile.Tools {
		t := world.Find(name)
		if t == nil || !t.Memory() {
			panic("profile " + l.Profile.Name + " names a memory tool that does not exist: " + name)
		}
		l.tools = append(l.tools, t.Tool)
		if slices.Contains(t.Phases, world.Flush) {
			l.flush = append(l.flush, t.Tool)
		}
		if slices.Contains(t.Phases, world.Review) {
			l.review = append(l.review, t.Tool)
		}
	}
	l.own = len(l.tools)
	for _, t := range world.Offer(nil) {
		l.tools = append(l.tools, t.Tool)
	}
}

// Run runs one session: every user turn until the model has answered, with
// flush and compaction where the profile has them, and the review at the end if
// the session is long enough. A turn that is Fresh ends one session and begins
// the next. mem keeps what was stored; the context is gone when Run returns.
//
// A [memory.GateError] or [ModelError] is an error of the trial. The outcome up
// to then is returned with it.
func (l *Loop) Run(ctx context.Context, mem *memory.Memory, turns []Turn, end End) (*Outcome, error) {
	l.once.Do(l.prepare)
	s := &session{Loop: l, ctx: ctx, mem: mem, out: end.Again.again(), office: end.Office, offered: l.offer(end.Office)}
	mem.Mark(0)
	reach(mem, end.Office)
	err := s.run(turns, end)
	return s.out, err
}

func reach(mem *memory.Memory, o *Office) {
	if o != nil {
		mem.Reach(o)
	} else {
		mem.Reach(memory.Nowhere{})
	}
}

// offer are the tools of a conversation.
func (l *Loop) offer(o *Office) []model.Tool {
	if o == nil {
		return l.tools
	}
	key := strings.Join(o.Desks, " ")
	if tools, ok := l.desks.Load(key); ok {
		return tools.([]model.Tool)
	}
	tools := l.tools[:l.own:l.own]
	for _, t := range world.Offer(o.Desks) {
		tools = append(tools, t.Tool)
	}
	l.desks.Store(key, tools)
	return tools
}

// session is one run of the loop.
type session struct {
	*Loop
	office  *Office
	offered []model.Tool
	ctx     context.Context
	mem     *memory.Memory
	out     *Outcome

	msgs    []model.Message // what the model sees now
	tokens  int             // of msgs
	foreign bool            // the agent brings its own loop, and was told of its tools before
	tainted bool            // this turn saw what came from outside, see Profile.Classed
	pending []Incoming      // of this turn, not yet read
	permits []ActionCall    // passed the action gate, and the agent has not made them yet
	turn    int
	as      string // who the user of the session is, where it is another
	said    string // the user's words of this turn
	rounds  int    // rounds of tool calls in the session
	calls   int
	flushed bool // since the last compaction
	settled int  // tokens right after the last compaction
	route   memory.Route
}

func (s *session) run(turns []Turn, end End) error {
	since := 0 // the session's first turn
	for i, t := range turns {
		if i > 0 && t.Fresh {
			if err := s.close(i-since, end); err != nil {
				return err
			}
			s.mem.NextSession()
			s.msgs, s.tokens, s.rounds, s.settled, s.flushed = nil, 0, 0, 0, false
			since = i
		}
		s.turn = i + 1
		s.said = t.User
		if i == since {
			t.Opens(s.mem)
			s.as = t.As
			s.offered = s.offer(s.office) // what servers offered was of the session before
			if err := s.open(t.User); err != nil {
				return err
			}
		}
		if err := s.userTurn(t); err != nil {
			return fmt.Errorf("turn %d: %w", s.turn, err)
		}
		if s.Profile.ExtractPrompt != "" && (end.Review || i < len(turns)-1) {
			if err := s.extract(); err != nil {
				return fmt.Errorf("turn %d: extracting facts: %w", s.turn, err)
			}
		}
		s.mem.Tick(time.Minute)
	}
	return s.close(len(turns)-since, end)
}

// close reviews a session of so many turns, if the profile does that and it is long
// enough.
func (s *session) close(turns int, end End) error {
	c := s.scaled
	long := c.ReviewTurns > 0 && turns >= c.ReviewTurns || c.ReviewIterations > 0 && s.rounds >= c.ReviewIterations
	if !end.Review || !long {
		return nil
	}
	s.out.Reviews++
	if _, err := s.aside(s.Profile.ReviewPrompt, memory.RouteReview, s.review, s.Profile.ReviewSteps); err != nil {
		return fmt.Errorf("review: %w", err)
	}
	return nil
}

// open builds the system prompt with the memory that the profile injects, once
// the first user turn is known.
func (s *session) open(first string) error {
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	p := s.Profile
	b.WriteString(p.Instructions)
	b.WriteString("\n")
	b.WriteString(prompts().Policies[s.Settings.Policy])
	b.WriteString("\nToday is ")
	b.Write(s.mem.Now().AppendFormat(b.AvailableBuffer(), time.DateOnly))
	b.WriteString(".\n")
	if s.as != "" {
		b.WriteString("The user of this session is " + oneLine(s.as) + ".\n")
	}
	q := memory.Query{Route: memory.RouteSnapshot, Text: first}
	for _, name := range p.Snapshot {
		if s.untrusted(name, s.mem.Now()) {
			continue
		}
		recs, err := s.mem.Snapshot(s.ctx, name, q)
		if err != nil {
			return fmt.Errorf("building the snapshot: %w", err)
		}
		s.out.Recalled = slices.Grow(s.out.Recalled, len(recs))
		b.WriteString("\n")
		if head, ok := p.Heads[name]; ok {
			s.section(b, head, name, recs)
			continue
		}
		s.memories(b, s.stores[name].Title, memory.RouteSnapshot, recs)
		b.WriteString("\n")
	}
	if p.SkillIndex {
		recs, err := s.mem.Snapshot(s.ctx, "skills", q)
		if err != nil {
			return fmt.Errorf("building the skill index: %w", err)
		}
		if len(recs) > 0 {
			b.WriteString("\n<skills>\n")
			for _, r := range recs {
				s.entry(b, memory.RouteSnapshot, r, r.Record.Key)
			}
			b.WriteString("</skills>\n")
		}
	}
	s.push(model.Message{Role: model.System, Content: s.texts.String(b.Bytes())})
	return nil
}

// buffers are for messages that are being made.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func release(b *bytes.Buffer) {
	if b.Cap() <= 64<<10 { // one huge message should not be remembered
		b.Reset()
		buffers.Put(b)
	}
}

// hear takes in what the user says, with what is handed over beside it.
func (s *session) hear(t Turn) (string, error) {
	seg, err := s.mem.Take(s.ctx, memory.Origin{Class: memory.User, Medium: memory.Chat, Source: cmp.Or(s.as, "user")}, s.turn, t.User)
	if err != nil {
		return "", err
	}
	content := seg.Text
	s.out.Segments = append(s.out.Segments, Taken{seg, s.place(0, len(content))})
	if t.Where != "" { // in words of its own: they say nothing of what is to be kept
		content += "\n\n"
		seg, err := s.mem.Take(s.ctx, seg.Origin, s.turn, t.Where)
		if err != nil {
			return "", err
		}
		s.out.Segments = append(s.out.Segments, Taken{seg, s.place(len(content), len(content)+len(seg.Text))})
		content += seg.Text
	}
	s.pending = s.pending[:0]
	for _, in := range t.Incoming {
		if t.Via != "" && in.Origin.Medium != memory.Tool {
			continue // the agent reads it by a tool of its own
		}
		if in.Origin.Medium == memory.Tool && !s.foreign {
			if err := s.advertise(in); err != nil {
				return "", err
			}
			continue
		}
		if !in.Inline && in.Origin.Medium != memory.Tool {
			s.pending = append(s.pending, in)
			continue
		}
		content += "\n\n"
		text, err := s.take(in, len(content))
		if err != nil {
			return "", err
		}
		content += text
	}
	return content, nil
}

// advertise offers a tool of a server for the rest of the session: its description is
// what the server says.
func (s *session) advertise(in Incoming) error {
	seg, err := s.mem.Take(s.ctx, in.Origin, s.turn, in.Text)
	if err != nil {
		return err
	}
	s.out.Segments = append(s.out.Segments, Taken{Segment: seg})
	s.offered = append(slices.Clip(s.offered), model.Tool{Name: in.Title, Description: seg.Text})
	return nil
}

func (s *session) userTurn(t Turn) error {
	heard := len(s.out.Segments)
	s.tainted = false
	content, err := s.hear(t)
	if err != nil {
		return err
	}
	if s.Profile.Inject > 0 {
		recs, err := s.mem.Search(s.ctx, memory.Query{Route: memory.RouteInject, Text: t.User, K: s.Profile.Inject})
		if err != nil {
			return fmt.Errorf("recalling for the user turn: %w", err)
		}
		if len(recs) > 0 {
			var b bytes.Buffer
			s.memories(&b, "memories", memory.RouteInject, recs)
			b.WriteString("\n\n")
			for i := range s.out.Segments[heard:] {
				at := &s.out.Segments[heard+i].Place
				at.From, at.To = at.From+b.Len(), at.To+b.Len()
			}
			content = b.String() + content
		}
	}
	s.push(model.Message{Role: model.User, Content: content})
	answer, err := s.converse(s.offered, maxRounds)
	if err != nil {
		return err
	}
	s.out.Answers = append(s.out.Answers, answer)
	s.mem.Said(s.turn, answer)
	return nil
}

// converse lets the model call tools until it answers.
func (s *session) converse(tools []model.Tool, rounds int) (string, error) {
	for range rounds {
		if s.route == 0 {
			if err := s.makeRoom(); err != nil {
				return "", err
			}
		}
		reply, err := s.next(tools)
		if err != nil {
			return "", err
		}
		if len(reply.Exchanges) > 0 {
			s.out.Asked = append(s.out.Asked, Asked{len(s.out.Messages), reply.Exchanges})
		}
		s.push(model.Message{Role: model.Assistant, Content: reply.Text, Calls: reply.Calls})
		if len(reply.Calls) == 0 {
			return reply.Text, nil
		}
		s.rounds++
		for _, c := range reply.Calls {
			s.mem.Tick(2 * time.Second)
			result, err := s.call(c)
			if err != nil {
				return "", fmt.Errorf("tool %s: %w", text.Clip(c.Name, 40), err)
			}
			s.push(model.Message{Role: model.ToolRole, Content: result, CallID: c.ID, Name: c.Name})
		}
	}
	return "", nil // it never answered: an empty answer, which does no task
}

func (s *session) next(tools []model.Tool) (model.Reply, error) {
	if err := s.ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	reply, err := s.Model.Next(s.ctx, model.Request{Messages: s.msgs, Tools: tools, Seed: s.Settings.Seed})
	s.out.ModelCalls++
	s.out.Usage.Add(reply.Usage)
	if err != nil {
		return reply, &ModelError{err}
	}
	if len(reply.Calls) == 0 && strings.TrimSpace(reply.Text) == "" {
		s.out.EmptyAnswers++
	}
	for i := range reply.Calls {
		if reply.Calls[i].ID == "" {
			s.calls++
			reply.Calls[i].ID = fmt.Sprintf("call_%d", s.calls)
		}
	}
	return reply, nil
}

// usual is how many messages a session seldom exceeds.
const usual = 12

func (s *session) push(m model.Message) {
	if s.out.Messages == nil {
		s.out.Messages = make([]model.Message, 0, usual)
	}
	from := len(s.out.Messages) - len(s.msgs)
	newest := len(s.msgs) == 0 || from >= 0 && &s.msgs[0] == &s.out.Messages[from]
	s.out.Messages = append(s.out.Messages, m)
	if newest { // as long as nothing was compacted or said aside
		s.msgs = slices.Clip(s.out.Messages[from:])
	} else {
		s.msgs = append(s.msgs, m)
	}
	s.tokens += messageTokens(m)
	s.mem.Mark(len(s.out.Messages))
}

func messageTokens(m model.Message) int {
	n := 4 + model.Tokens(m.Content)
	for _, c := range m.Calls {
		n += 4
		for _, a := range c.Args {
			n += model.Tokens(a.Value)
		}
	}
	return n
}

// place is a stretch of the message that is being made.
func (s *session) place(from, to int) Place { return Place{len(s.out.Messages), from, to} }

// memories writes records, a line each, into a message that is being made.
func (s *session) memories(b *bytes.Buffer, file string, route memory.Route, recs []memory.Recalled) {
	b.WriteString("<memory file=\"" + file + "\">\n")
	for _, r := range recs {
		told := r.Text
		if route == memory.RouteSearch && s.untrusted(r.Record.Store, r.Record.Created) && !memory.IsAttributed(told) {
			told = memory.Attribution("memory", "untrusted source") + told
		}
		s.entry(b, route, r, told)
	}
	b.WriteString("</memory>")
}

// section writes a store as the product shows it: under a heading between two lines, with
// § between the entries. What the product takes for a threat is not shown.
func (s *session) section(b *bytes.Buffer, head, store string, recs []memory.Recalled) {
	spec, _ := s.mem.Spec(store)
	used := -spec.Between
	for _, r := range recs {
		used += utf8.RuneCountInString(r.Text) + spec.Between
	}
	if len(recs) == 0 {
		return
	}
	line := strings.Repeat("═", 46) + "\n"
	b.WriteString(line + strings.NewReplacer("{used}", thousands(used), "{limit}", thousands(spec.Limit),
		"{percent}", strconv.Itoa(min(100, 100*used/max(1, spec.Limit)))).Replace(head) + "\n" + line)
	for i, r := range recs {
		if i > 0 {
			b.WriteString("§\n")
		}
		if spec.Threatens(r.Text) {
			b.WriteString("[BLOCKED: an entry of " + spec.Title + " looks like a threat. Remove it with the tool memory.]\n")
			continue
		}
		from := b.Len()
		b.WriteString(oneLine(r.Text) + "\n")
		s.shown(memory.RouteSnapshot, r, r.Text, s.place(from, b.Len()))
	}
}

// thousands writes a number up to a million with a comma.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// entry writes a record's line into a message that is being made.
func (s *session) entry(b *bytes.Buffer, route memory.Route, r memory.Recalled, text string) {
	from := b.Len()
	b.WriteString("- ")
	if s.office != nil && !s.Profile.Undated { // as products show it, so that an older entry can be told from a newer
		b.Write(r.Record.Created.AppendFormat(b.AvailableBuffer(), "(2006-01-02) "))
	}
	b.WriteString(oneLine(text))
	b.WriteString("\n")
	s.shown(route, r, text, s.place(from, b.Len()))
}

func (s *session) shown(route memory.Route, r memory.Recalled, text string, at Place) {
	s.out.Recalled = append(s.out.Recalled, Shown{Place: at, Route: route, Record: r.Record.ID,
		Origin: r.Record.Origin, Text: text, Attributed: r.Attributed})
}

// take brings one piece of external content into the message that is being made,
// which is so many bytes long, and returns it with its label.
func (s *session) take(in Incoming, at int) (string, error) {
	seg, err := s.mem.Take(s.ctx, in.Origin, s.turn, in.Text)
	if err != nil {
		return "", err
	}
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	header(b, in)
	if len(seg.Text) >= s.Profile.WrapMin && slices.Contains(s.Profile.Wraps, in.Origin.Medium) {
		wrap(b, in.Origin.Source, seg.Text)
	} else {
		b.WriteString(seg.Text)
	}
	text := s.texts.String(b.Bytes())
	s.out.Segments = append(s.out.Segments, Taken{seg, s.place(at, at+len(text))})
	return text, nil
}

func header(b *bytes.Buffer, in Incoming) {
	label := [2]string{world.Unlabelled, "Title"}
	if t := world.Reader(in.Origin.Medium); t != nil {
		label = t.Heading
	}
	line := func(label, text string) {
		b.WriteString(label)
		b.WriteString(": ")
		b.WriteString(oneLine(text))
		b.WriteByte('\n')
	}
	line(label[0], in.Origin.Source)
	if in.Title != "" {
		line(label[1], in.Title)
	}
	b.WriteByte('\n')
}

// oneLine keeps an entry on its line, so that content cannot forge another
// entry or close a block of the prompt.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r<") {
		return s
	}
	return onOneLine.Replace(s)
}

var onOneLine = strings.NewReplacer("\r\n", " ⏎ ", "\n", " ⏎ ", "\r", " ", "</memory", "</ memory",
	"</skills", "</ skills", "<memory", "< memory")
