package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// reading is a request that the phrase book understands.
type reading struct {
	setting Setting
	book    *Book
	tools   []model.Tool
	policy  policy
	date    string

	here    []*Phrases // of the user's turns in sight
	now     string     // the newest turn of the user
	since   []model.Message
	seen    []source // visible memory and content, oldest first
	skills  []string
	asks    ask
	newest  int           // place in seen of the newest turn
	wrote   []*model.Call // that stored something
	refused []string      // of that, what was not stored
	done    []string      // tools called since the newest turn

	sights []*sight // of the messages
	values map[string]string
	given  map[string]source
}

// readings are those that are over, for their room.
var readings = sync.Pool{New: func() any {
	return &reading{values: map[string]string{}, given: map[string]source{}}
}}

// over gives the room back.
func (r *reading) over() {
	clear(r.seen)
	clear(r.sights)
	clear(r.wrote)
	clear(r.values)
	clear(r.given)
	if cap(r.seen) <= 1<<12 { // one huge request should not be remembered
		*r = reading{seen: r.seen[:0], sights: r.sights[:0], wrote: r.wrote[:0], done: r.done[:0],
			values: r.values, given: r.given}
		readings.Put(r)
	}
}

// source is a text in sight that may offer values.
type source struct {
	text       string
	date       string // on which it was noted, if that is shown
	attributed bool
	own        bool // in the user's words of this session
	content    bool // of this session, not of memory
	steps      bool // lines of an opened skill
	at         int  // place since the newest turn, of what was found out there
	keep       bool // of a turn in which the user asks to keep what it says
}

// read returns the request as the book understands it; ok is false where the book
// has none of the user's turns.
func (b *Book) read(setting Setting, req *model.Request) (r *reading, ok bool) {
	r = readings.Get().(*reading)
	r.setting, r.book, r.tools = setting, b, req.Tools
	newest := newestUser(req.Messages)
	keeps := false
	add := func(o *sight) {
		from := len(r.seen)
		r.seen = append(r.seen, o.sources...)
		for i := from; keeps && i < len(r.seen); i++ {
			r.seen[i].keep = r.seen[i].content
		}
		r.skills = append(r.skills, o.skills...)
	}
	sources := 0
	for i := range req.Messages {
		o := b.seen.Get(req.Messages[i].Content, sightOf)
		r.sights = append(r.sights, o)
		sources += len(o.sources) + 1
	}
	r.seen = slices.Grow(r.seen, sources)
	extracts := newest > 0 && asksFor(r.sights[newest].words) == forFacts
	for _, t := range req.Tools {
		if world.Find(t.Name) == nil { // some server's: what it says of itself is content
			r.seen = append(r.seen, source{text: t.Description, content: true})
		}
	}
	for i := range req.Messages {
		m, o := &req.Messages[i], r.sights[i]
		switch m.Role {
		case model.System:
			r.policy, r.date = policyOf(o.words), dateOf(o.words)
			add(o)
		case model.User:
			if a := asksFor(o.words); a != forAnswer && i > 0 {
				if i == newest {
					r.asks = a
				}
				if a == forFacts {
					add(o)
				}
				r.since, r.done = nil, r.done[:0]
				continue
			}
			if rest, ok := strings.CutPrefix(o.words, "Summary of the conversation so far:"); ok {
				for line := range strings.Lines(rest) {
					r.seen = append(r.seen, source{text: strings.TrimPrefix(strings.TrimSpace(line), "- "), content: true})
				}
				continue
			}
			r.now, r.newest = o.spoken, len(r.seen)
			r.since, r.done = nil, r.done[:0]
			keeps = false
			r.meet(b.of(r.now))
			for _, p := range r.here {
				keeps = keeps || p.has(r.now) && p.turn(r.now).Keeps
			}
			add(o)
			r.seen = append(r.seen, source{text: o.words, own: true, content: true})
			if keeps { // what was read before is meant
				for j := range r.seen {
					r.seen[j].keep = r.seen[j].keep || r.seen[j].content
				}
			}
		case model.Assistant:
			for j := range m.Calls {
				c := &m.Calls[j]
				r.done = append(r.done, c.Name)
				if kindOf(c.Name) == world.Remembers {
					r.wrote = append(r.wrote, c)
				}
			}
			r.cameTo(req.Messages, i)
			if extracts && m.Content != "" {
				r.seen = append(r.seen, source{text: m.Content, content: true, keep: keeps})
			}
		case model.ToolRole:
			r.cameTo(req.Messages, i)
			add(o)
			if strings.HasPrefix(m.Content, `{"success":false`) {
				if text := r.tried(m.CallID); text != "" {
					r.refused = append(r.refused, text)
				}
			}
			if k := kindOf(m.Name); k == world.Looks || k == world.Asks {
				r.seen = append(r.seen, source{text: m.Content, content: true, at: len(r.since) - 1})
			}
		}
	}
	if len(r.here) == 0 {
		r.over()
		return nil, false
	}
	return r, true
}

// cameTo adds a message to those since the newest turn, which as a rule stand one behind
// the other.
func (r *reading) cameTo(all []model.Message, i int) {
	if n := len(r.since); n == 0 || n <= i && &r.since[n-1] == &all[i-1] {
		r.since = all[i-n : i+1 : i+1]
		return
	}
	r.since = append(r.since, all[i])
}

// tried is what the last call of an id wanted to store.
func (r *reading) tried(id string) string {
	for _, c := range slices.Backward(r.wrote) {
		if c.ID == id {
			return c.Get("content")
		}
	}
	return ""
}

// sight is what stands in one message.
type sight struct {
	words, spoken string // outside every delimiter; as a turn is looked up
	skills        []string
	sources       []source
}

func sightOf(content string) (*sight, int) {
	o := outlineOf(content)
	s := &sight{words: o.words, spoken: spoken(o.words), skills: o.skills}
	for _, e := range o.entries {
		from := source{text: e}
		if len(e) > 13 && e[0] == '(' && e[11] == ')' {
			from.date, from.text = e[1:11], e[13:]
		}
		from.attributed = memory.IsAttributed(from.text)
		s.sources = append(s.sources, from)
	}
	for _, p := range o.pieces {
		s.sources = append(s.sources, source{text: p.body, content: true})
	}
	if o.skill != "" {
		s.sources = append(s.sources, source{text: o.skill, steps: true, attributed: memory.IsAttributed(o.skill)})
	}
	return s, 200 + len(content) + 64*len(s.sources)
}

// meet takes the phrases of a turn to those in sight. Turns such as "Yes, fine." stand
// in those of many cases: the one that the session is about is meant.
func (r *reading) meet(found []*Phrases) {
	both := slices.DeleteFunc(slices.Clone(found), func(p *Phrases) bool { return !slices.Contains(r.here, p) })
	if len(both) == 0 {
		both = append(r.here, found...)
	}
	r.here = both
}

// of are the phrases in which a turn of the user stands.
func (b *Book) of(words string) []*Phrases {
	out := b.spokenIn(words)
	if p := b.task(words); p != nil {
		out = append(out[:len(out):len(out)], p)
	}
	return out
}

// attributed reports whether anything that the model sees is attributed.
func (r *reading) attributed() bool {
	return slices.ContainsFunc(r.seen, func(s source) bool { return s.attributed })
}

func (r *reading) reply() model.Reply {
	switch r.asks {
	case forSummary:
		var b strings.Builder
		for _, e := range r.known(true) {
			b.WriteString("- " + e.text + "\n")
		}
		return model.Reply{Text: cmp.Or(b.String(), "- Nothing of note.")}
	case forFlush, forReview:
		if len(r.done) == 0 {
			if calls := r.writes(r.asks == forReview); len(calls) > 0 {
				return model.Reply{Calls: calls}
			}
		}
		return model.Reply{Text: noReply}
	case forFacts:
		return model.Reply{Text: r.facts()}
	}
	if p := r.book.task(r.now); p != nil {
		return r.task(p)
	}
	return r.turn()
}

// turn answers a turn of the user that is no task: read what it is about, keep
// what is worth keeping.
func (r *reading) turn() model.Reply {
	if len(r.since) == 0 {
		if calls := r.reads(); len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	if !r.did(world.Remembers) {
		if calls := r.writes(false); len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	said := r.known(true)
	if len(said) == 0 {
		return model.Reply{Text: "All right."}
	}
	var lines []string
	for _, e := range said[max(0, len(said)-3):] {
		lines = append(lines, e.text)
	}
	return model.Reply{Text: strings.Join(lines, "\n")}
}

func (r *reading) did(k world.Kind) bool {
	return slices.ContainsFunc(r.done, func(name string) bool { return kindOf(name) == k })
}

// reads are the calls that bring what the newest turn is about.
func (r *reading) reads() []model.Call {
	var out []model.Call
	for _, p := range r.book.of(r.now) {
		for _, m := range p.turn(r.now).Reads {
			t := world.Reader(m)
			if t == nil || !r.offers(t.Name) || slices.ContainsFunc(out, func(c model.Call) bool { return c.Name == t.Name }) {
				continue
			}
			out = append(out, model.Call{Name: t.Name, Args: []model.Arg{{Name: t.Params[0].Name, Value: r.now}}})
		}
	}
	return out
}

func (r *reading) offers(tool string) bool {
	return slices.ContainsFunc(r.tools, func(t model.Tool) bool { return t.Name == tool })
}

// facts are what the newest exchange says and visible memory does not hold.
func (r *reading) facts() string {
	out, all := r.again(""), r.seen
	r.seen = all[r.newest:]
	said := r.known(false)
	r.seen = all
	for _, e := range said {
		if !r.remembers(e.text) {
			out = append(out, e)
		}
	}
	return bulleted(out)
}

// known are the sentences of this session that the book knows and that the
// retention policy lets in, oldest first. A summary has them whatever the policy.
func (r *reading) known(all bool) []entry {
	var out []entry
	for _, s := range r.seen {
		if !s.content {
			continue
		}
		if !all && r.policy == sourceAware && !s.own && !s.keep {
			continue
		}
		for _, p := range r.here {
			for _, line := range r.book.sentences(p, s.text) {
				if !slices.ContainsFunc(out, func(e entry) bool { return e.text == line }) {
					out = append(out, entry{text: line, user: s.own})
				}
			}
		}
	}
	return out
}

// memoBytes bounds the texts whose sentences are kept: those of the cases that are
// worked on.
const memoBytes = 4 << 20

// lines are the sentences of a text that phrases know, by the phrases.
type lines struct {
	mu sync.Mutex
	by map[*Phrases][]string
}

// sentences are [sentencesKnown], read once.
func (b *Book) sentences(p *Phrases, s string) []string {
	if b.known == nil {
		return sentencesKnown(p, s)
	}
	l := b.known.Get(s, func(string) (*lines, int) { return &lines{by: map[*Phrases][]string{}}, 256 })
	l.mu.Lock()
	defer l.mu.Unlock()
	out, ok := l.by[p]
	if !ok {
		out = sentencesKnown(p, s)
		l.by[p] = out
	}
	return out
}

// sentencesKnown are the sentences of a text that the phrases know, each on one
// line.
func sentencesKnown(p *Phrases, s string) []string {
	if !p.knows(s) {
		return nil
	}
	var out []string
	for _, st := range text.Sentences(s) {
		if line := oneLine(st.Text); p.knows(line) {
			out = append(out, p.noted(line))
		}
	}
	if len(out) == 0 { // a sentence that is cut in two where none ends
		out = append(out, oneLine(s))
	}
	return out
}

// noted is a sentence as a note that can be understood, and found, by itself: where it
// does not name most of what its value is of, that stands before it.
func (p *Phrases) noted(line string) string {
	for i := range p.Slots {
		s := &p.Slots[i]
		if s.offered(line) != "" && !names(line, s.Called) {
			return s.Called + ": " + line
		}
	}
	return line
}

// names reports whether a sentence has three of five of the words of what something is
// called, but for stop words.
func names(sentence, called string) bool {
	have := map[string]bool{}
	for _, t := range text.Tokens(sentence) {
		have[text.Stem(t.Text)] = true
	}
	n, all := 0, 0
	for _, t := range text.Tokens(called) {
		if text.IsStopword(t.Text) {
			continue
		}
		if all++; have[text.Stem(t.Text)] {
			n++
		}
	}
	return 5*n >= 3*all
}

// writes are the calls that keep what is not kept yet.
func (r *reading) writes(review bool) []model.Call {
	var wrote strings.Builder
	for _, c := range r.wrote {
		wrote.WriteString(c.Get("content"))
		wrote.WriteByte('\n')
	}
	v := &visible{tools: r.tools, date: r.date, wrote: wrote.String()}
	asked := r.asked()
	entries := r.again(v.wrote)
	for _, e := range r.known(false) {
		if (!v.has(e.text) || asked(e.text)) && !r.remembers(e.text) {
			entries = append(entries, e)
		}
	}
	calls := v.calls(entries)
	if t := v.writer(true); review && t != nil {
		for _, p := range r.here {
			if p.Skill == "" {
				continue
			}
			var b strings.Builder
			for i, step := range r.procedure(p) {
				fmt.Fprintf(&b, "%d. %s\n", i+1, step)
			}
			if b.Len() > 0 {
				calls = append(calls, callOf(t, map[string]string{"action": "create", "name": p.Skill, "content": b.String()}))
			}
		}
	}
	return calls
}

// again are the entries of memory that ask to be noted again, once a session.
func (r *reading) again(wrote string) (out []entry) {
	for _, s := range r.seen {
		if s.content || !r.takes(s, nil) || strings.Contains(wrote, s.text) {
			continue
		}
		if slices.ContainsFunc(r.here, func(p *Phrases) bool { return p.repeats(s.text) }) &&
			!slices.ContainsFunc(out, func(e entry) bool { return e.text == s.text }) {
			out = append(out, entry{text: s.text})
		}
	}
	return out
}

// asked says which sentences were refused when they were written, and are what the user
// asks to keep now: these are tried once more.
func (r *reading) asked() func(string) bool {
	if len(r.refused) == 0 || r.did(world.Remembers) || !text.Wishes(r.now) {
		return func(string) bool { return false }
	}
	return func(s string) bool {
		line := oneLine(s)
		return slices.ContainsFunc(r.refused, func(o string) bool { return strings.Contains(o, line) }) && text.Means(r.now, s)
	}
}

// remembers reports whether visible memory holds a sentence already.
func (r *reading) remembers(s string) bool {
	return slices.ContainsFunc(r.seen, func(o source) bool { return !o.content && strings.Contains(o.text, s) })
}

// procedure are the lines of the content that teaches what the phrases know.
func (r *reading) procedure(p *Phrases) []string {
	for _, s := range r.seen {
		if !s.content || s.own || !p.knows(s.text) {
			continue
		}
		var out []string
		for _, st := range text.Sentences(s.text) {
			if line := oneLine(st.Text); st.Kind == text.Item || p.knows(line) {
				out = append(out, line)
			}
		}
		return out
	}
	return nil
}

// task does what the user asks.
func (r *reading) task(p *Phrases) model.Reply {
	if r.setting == Refuse {
		return model.Reply{Text: "I would rather not do that."}
	}
	if len(r.since) == 0 {
		if calls := append(r.recalls(p), r.reads()...); len(calls) > 0 {
			return model.Reply{Calls: calls}
		}
	}
	left := map[string]bool{} // texts that are not taken again
	var fill filling
	var plan []model.Call
	var refused []model.Call
	for attempt := 0; ; {
		fill = r.fill(p, left)
		if fill.ask != nil {
			return model.Reply{Calls: []model.Call{*fill.ask}}
		}
		if p.Asks != "" {
			return r.tell(p, fill)
		}
		plan = fill.calls
		vetoed, fresh, learned := false, false, false
		for i, c := range plan {
			out := r.outcome(c)
			if !out.refused(fill.from[i]) {
				continue
			}
			vetoed = true
			if !slices.ContainsFunc(refused, func(o model.Call) bool { return same(o, c) }) {
				refused, fresh = append(refused, c), true
			}
			for _, from := range fill.from[i] {
				if out.about(from) && !left[from.text] {
					left[from.text], learned = true, true
				}
			}
		}
		if !vetoed {
			break
		}
		if fresh {
			attempt++ // the same call with what another record says is no new one
		}
		if attempt == 2 || !learned {
			return model.Reply{Text: "I was not allowed to do that, so I stopped."}
		}
	}
	var todo []model.Call
	for i, c := range plan {
		if out := r.outcome(c); (!out.tried || out.old(fill.from[i])) && r.offers(c.Name) {
			todo = append(todo, c)
		}
	}
	if len(todo) > 0 {
		return model.Reply{Calls: todo}
	}
	if len(plan) == 0 {
		return model.Reply{Text: "I do not know what that needs."}
	}
	var names []string
	for _, c := range plan {
		names = append(names, c.Name)
	}
	return model.Reply{Text: "Done: " + strings.Join(names, ", ") + "."}
}

// recalls are the calls that search memory for the request and for each thing that it
// leaves open, and open a skill of the right name.
func (r *reading) recalls(p *Phrases) []model.Call {
	var out []model.Call
	if t := r.recall(); t != nil {
		search := func(query string) {
			out = append(out, model.Call{Name: t.Name, Args: []model.Arg{{Name: "query", Value: query}}})
		}
		search(r.now)
		open := append(slotsOfAll(p.Calls), p.Asks)
		for i := range p.Slots {
			if s := &p.Slots[i]; slices.Contains(open, s.Name) && s.Called != "" {
				search(s.Called)
			}
		}
	}
	if opens := world.Reader(memory.Skill).Name; p.Skill != "" && slices.Contains(r.skills, p.Skill) && r.offers(opens) {
		out = append(out, model.Call{Name: opens, Args: []model.Arg{{Name: "name", Value: p.Skill}}})
	}
	return out
}

// recall is the tool that searches a store of memory, or nil.
func (r *reading) recall() *model.Tool {
	for i := range r.tools {
		tool := &r.tools[i]
		if t := world.Find(tool.Name); t != nil && t.Kind == world.Recalls && takes(tool, "query") && len(t.Stores) > 0 {
			return tool
		}
	}
	return nil
}

// outcome is what became of a call in this turn, when it was made last.
type outcome struct {
	tried, ok bool
	at        int             // place of the call since the newest turn
	of        []model.Refused // arguments, where the refusal says so
}

// old reports whether a call was refused before something that it is made of now was
// found out.
func (o *outcome) old(from []giver) bool {
	return o.tried && !o.ok && slices.ContainsFunc(from, func(g giver) bool { return o.about(g) && g.at > o.at })
}

func (o *outcome) refused(from []giver) bool { return o.tried && !o.ok && !o.old(from) }

// about reports whether a refusal may be one of what was given.
func (o *outcome) about(g giver) bool {
	return len(o.of) == 0 || slices.ContainsFunc(o.of, func(f model.Refused) bool {
		return f.Argument == g.arg && (f.Value == "" || g.value == "" || strings.Contains(f.Value, g.value))
	})
}

// same reports whether two calls are one: clients put arguments in an order of their own.
func same(a, b model.Call) bool {
	return a.Name == b.Name && len(a.Args) == len(b.Args) &&
		!slices.ContainsFunc(a.Args, func(x model.Arg) bool { return !slices.Contains(b.Args, x) })
}

// outcome finds what became of a call in this turn.
func (r *reading) outcome(c model.Call) (out outcome) {
	for i, m := range r.since {
		for j, made := range m.Calls {
			if !same(c, made) {
				continue
			}
			n := 0 // its answer is the j-th after the message, or has its id
			for _, a := range r.since[i+1:] {
				if a.Role != model.ToolRole {
					break
				}
				if made.ID != "" && a.CallID == made.ID || (made.ID == "" || a.CallID == "") && n == j {
					out = outcome{tried: true, at: i}
					var told struct{ Refused []model.Refused }
					out.ok = !strings.Contains(a.Content, `"success":false`)
					if !out.ok && json.Unmarshal([]byte(a.Content), &told) == nil {
						out.of = told.Refused
					}
					break
				}
				n++
			}
		}
	}
	return out
}

// filling is how a task is done with what is in sight.
type filling struct {
	calls  []model.Call
	from   [][]giver // what gave each call its values
	values map[string]string
	given  map[string]source
	ask    *model.Call // what has to be found out first
}

// fill gives each slot a value by the setting's rule.
func (r *reading) fill(p *Phrases, left map[string]bool) filling {
	clear(r.values)
	clear(r.given)
	f := filling{values: r.values, given: r.given}
	for i := range p.Slots {
		s := &p.Slots[i]
		from, value := r.choose(p, s, left)
		if value == "" && r.needs(p, s.Name, left) {
			f.ask = r.findOut(s)
			if f.ask != nil && kindOf(f.ask.Name) == world.Asks && p.Asks != "" && r.setting != Ask {
				f.ask = nil // whoever asks does not know
			}
			if f.ask != nil {
				return f
			}
		}
		if value != "" {
			f.values[s.Name], f.given[s.Name] = value, from
		}
	}
	calls := p.Calls
	var steps []taken
	for _, step := range p.Steps {
		for _, from := range r.seen {
			if r.takes(from, left) && step.said(from.text) && !p.early(from.text, r.date) {
				calls = Drop(Merge(calls, step.Calls), step.Drops)
				steps = append(steps, taken{step.Calls, from})
				for _, name := range slotsOfAll(step.Calls) {
					f.given[name] = from
				}
				break
			}
		}
	}
	for _, c := range calls {
		full, ok := filled(c, f.values)
		if !ok {
			continue
		}
		var from []giver
		for _, a := range c.Args {
			for _, name := range slotsOf(model.Call{Args: []model.Arg{a}}) {
				from = append(from, giver{a.Name, f.given[name].text, f.values[name], f.given[name].at})
			}
		}
		for _, s := range steps {
			for _, a := range s.args(c) {
				from = append(from, giver{arg: a, text: s.from.text})
			}
		}
		f.calls, f.from = append(f.calls, full), append(f.from, from)
		if r.setting == Everything {
			f.calls, f.from = r.others(p, c, f)
		}
	}
	return f
}

// taken is a step that a source adds to the task.
type taken struct {
	calls []model.Call
	from  source
}

// args are the arguments of a call that the step brought.
func (t *taken) args(c model.Call) (out []string) {
	for _, o := range t.calls {
		if o.Name != c.Name {
			continue
		}
		for _, a := range o.Args {
			if strings.Contains(c.Get(a.Name), a.Value) {
				out = append(out, a.Name)
			}
		}
	}
	return out
}

// giver is a text that gave an argument its value.
type giver struct {
	arg, text string
	value     string // of its slot
	at        int    // place since the newest turn, of what was found out there
}

func slotsOfAll(calls []model.Call) (out []string) {
	for _, c := range calls {
		out = append(out, slotsOf(c)...)
	}
	return out
}

// others adds a call for every value that is in sight.
func (r *reading) others(p *Phrases, c model.Call, f filling) (calls []model.Call, from [][]giver) {
	calls, from = f.calls, f.from
	for i := range p.Slots {
		for _, src := range r.seen {
			values := map[string]string{}
			for k, v := range f.values {
				values[k] = v
			}
			v := p.Slots[i].offered(src.text)
			if v == "" {
				continue
			}
			values[p.Slots[i].Name] = v
			full, ok := filled(c, values)
			known := func(o model.Call) bool { return o.Name == full.Name && slices.Equal(o.Args, full.Args) }
			if ok && !slices.ContainsFunc(calls, known) {
				calls, from = append(calls, full), append(from, nil)
			}
		}
	}
	return calls, from
}

// needs reports whether the task, with the steps that are in sight, leaves a slot
// open.
func (r *reading) needs(p *Phrases, name string, left map[string]bool) bool {
	if p.Asks == name || slices.Contains(slotsOfAll(p.Calls), name) {
		return true
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		return slices.Contains(slotsOfAll(s.Calls), name) &&
			slices.ContainsFunc(r.seen, func(from source) bool { return r.takes(from, left) && s.said(from.text) && !p.early(from.text, r.date) })
	})
}

// takes reports whether the setting acts on a source.
func (r *reading) takes(s source, left map[string]bool) bool {
	return !left[s.text] && !(s.attributed && r.setting == Cautious)
}

// choose takes a slot's value from what is in sight: the newest of memory, for
// [Own] the oldest; what was looked up or answered where memory has none, and first
// of all for the settings that look or ask first.
func (r *reading) choose(p *Phrases, s *Slot, left map[string]bool) (from source, value string) {
	rank := func(o source) int {
		switch {
		case o.content && !o.own && (r.setting == LookFirst || r.setting == Ask):
			return 2
		case o.content:
			return 0
		}
		return 1
	}
	for _, o := range r.seen {
		if !r.takes(o, left) || r.setting == Ask && rank(o) < 2 || p.early(o.text, r.date) {
			continue
		}
		v := s.offered(o.text)
		if v == "" {
			continue
		}
		newer := value == "" || o.date >= from.date
		if r.setting == Own {
			newer = value == "" || o.date < from.date
		}
		if value == "" || rank(o) > rank(from) || rank(o) == rank(from) && newer {
			from, value = o, v
		}
	}
	if r.setting == LookFirst && rank(from) < 2 && s.Looks != nil && r.offers(s.Looks.Name) && !r.looked(s) {
		return source{}, ""
	}
	return from, value
}

func (r *reading) looked(s *Slot) bool {
	return r.outcome(*s.Looks).tried
}

// findOut is the call that finds a slot's value: in memory by what a person calls it,
// in the world, else from the user. It is nil where all were tried.
func (r *reading) findOut(s *Slot) *model.Call {
	if t := r.recall(); t != nil && r.setting != Ask && r.setting != LookFirst {
		c := model.Call{Name: t.Name, Args: []model.Arg{{Name: "query", Value: s.Called}}}
		if !r.outcome(c).tried {
			return &c
		}
	}
	if s.Looks != nil && r.offers(s.Looks.Name) && !r.looked(s) && r.setting != Ask {
		return s.Looks
	}
	for _, t := range r.tools {
		if kindOf(t.Name) != world.Asks {
			continue
		}
		c := model.Call{Name: t.Name, Args: []model.Arg{{Name: t.Params[0].Name, Value: "Which is " + s.Called + "?"}}}
		if !r.outcome(c).tried {
			return &c
		}
	}
	return nil
}

// tell answers a question: what the model takes for true it asserts, what it does
// not it tells with its source.
func (r *reading) tell(p *Phrases, f filling) model.Reply {
	s := p.slot(p.Asks)
	says := func(value string) string { return "It is " + value + "." }
	var answer []string
	if v := f.values[p.Asks]; v != "" {
		answer = append(answer, says(v))
	}
	told := ""
	for _, from := range r.seen {
		v := s.offered(from.text)
		switch {
		case v == "":
		case r.setting == Everything && !slices.Contains(answer, says(v)):
			answer = append(answer, says(v))
		case from.attributed:
			told = from.text + " I could not confirm that."
		}
	}
	return model.Reply{Text: cmp.Or(strings.Join(answer, " "), told, "I do not know.")}
}
