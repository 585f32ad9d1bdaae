package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// MaxAsks is how often the model is asked for one reply that the agent may have.
const MaxAsks = 8

// Stopped is the reply of a model that makes nothing but refused calls, or says nothing
// after one, however often it is asked.
const Stopped = "I stopped here: what I tried is not allowed."

// Judge decides what of a prompt the model sees and which calls the agent gets. Its error
// ends the request: nothing is handed on.
type Judge interface {
	// Look is shown a prompt before the model is. It may change contents in place, and put
	// other calls in the place of a message's. It returns what judges the reply: what the
	// prompt says goes with its own request, however many are under way in a session.
	Look(ctx context.Context, session string, prompt []model.Message) (Rule, error)
}

// Rule judges one call of a reply, whose id is unique in the trial.
type Rule func(ctx context.Context, c model.Call) (Ruling, error)

// Ruling is what becomes of a call.
type Ruling struct {
	// Refused is what the model is told in the agent's place; "" lets the call pass.
	Refused string
	// Changed is the call as it passes where it is not the one that the model made.
	Changed *model.Call
	// Back takes back what was noted of a call that passes, where the agent does not get it
	// after all; nil is nothing.
	Back func(context.Context) error
}

// Message is one of a prompt, with the JSON that it came as.
type Message struct {
	model.Message
	Raw     json.RawMessage   // nil where the proxy made it
	Changed bool              // Message says something else than Raw
	refusal bool              // the gate's own answer to a call
	raws    []json.RawMessage // the calls as they came
	ids     []string          // that the gate has given them
}

// Reply is a model's turn.
type Reply struct {
	model.Reply
	// Message is the turn as it came and, once the gate has judged it, as the agent may have
	// it. Its text and calls are those of Reply. Empty where the proxy made it.
	Message Message
	Finish  string // why the model ended, in its own words
}

// Ask asks a model, whose reply comes whole.
type Ask func(context.Context, []Message) (Reply, error)

// ids are how many there are: eight letters and digits.
const ids = 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36

// Counts are what a gate has seen.
type Counts struct {
	Requests, Asks, Refused, Stopped int
	// Compacted counts refused exchanges that went with what an agent compacted.
	Compacted int
}

// Gate is the gate of one agent in one trial, or of one agent outside any. It serves
// requests at once.
type Gate struct {
	Judge Judge
	// Own reports that a message of the user's role is the agent's own, and not kept; nil
	// knows of none.
	Own func(content string) bool
	// Answers is the tool by which the agent stores the reply to a message; nil knows of none.
	Answers func(content string) *Tool
	// First is the number before that of the first call. Calls of an agent that outlives the
	// gate must not get the ids of earlier ones.
	First uint64
	// Stamps are what an agent puts around the user's words and changes later.
	Stamps []*regexp.Regexp

	mu      sync.Mutex
	session string
	calls   uint64
	ledger  []*record
	lists   map[string]past
	order   []string // of lists, the newest last
	counts  Counts
}

// Session says which session the requests belong to that name none.
func (g *Gate) Session(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.session = name
}

// Counts returns what was seen so far.
func (g *Gate) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts
}

// Ask puts back what was refused, has the judge look, and asks the model until a reply
// holds something that the agent may have. offered are the names of the request's tools:
// a call of any other is refused, or a product might take its name for that of another
// tool than was judged. None are those of an agent that names no tools. The usage is that
// of the last ask, less what the agent did not send: an agent compacts by it.
func (g *Gate) Ask(ctx context.Context, session string, list []Message, offered []string, ask Ask) (Reply, error) {
	view, session := g.request(session, list)
	rule, err := g.look(ctx, session, view)
	if err != nil {
		return Reply{}, err
	}
	var open *record // of this request
	for asked := 1; ; asked++ {
		reply, err := ask(ctx, view)
		if err != nil {
			return Reply{}, err
		}
		if t := g.stores(view); t != nil {
			return g.keep(ctx, rule, t, reply)
		}
		reply.Usage.Prompt = max(0, reply.Usage.Prompt-tokens(view)+tokens(list))
		said := g.number(reply)
		rulings, err := judge(ctx, rule, offered, said.Calls)
		if err != nil {
			return Reply{}, err
		}
		passed, results := divide(said.Calls, rulings)
		silent := len(said.Calls) == 0 && strings.TrimSpace(reply.Text) == "" && endsRefused(view)
		switch {
		case silent && asked < MaxAsks:
			continue
		case len(results) > 0 && len(passed) == 0:
			view = append(view, said)
			view = append(view, results...)
			open = g.refused(open, session, g.anchor(list), append([]Message{said}, results...))
			if asked < MaxAsks {
				continue
			}
			silent = true
		case len(results) > 0:
			g.split(said, passed, results)
		}
		if silent {
			g.count(func(c *Counts) { c.Stopped++ })
			reply = Reply{Reply: model.Reply{Text: Stopped, Usage: reply.Usage}}
			said = Message{Message: model.Message{Role: model.Assistant, Content: Stopped}}
		}
		if open != nil {
			g.closes(open, passed)
		}
		said.Calls = passed
		reply.Calls, reply.Message = passed, said
		return reply, nil
	}
}

// request returns the prompt as the model is to see it, a copy, and its session.
func (g *Gate) request(session string, list []Message) ([]Message, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.Requests++
	if session == "" {
		session = g.session
	}
	return g.put(session, list), session
}

func (g *Gate) look(ctx context.Context, session string, view []Message) (Rule, error) {
	prompt := make([]model.Message, len(view))
	for i := range view {
		prompt[i] = view[i].Message
	}
	rule, err := g.Judge.Look(ctx, session, prompt)
	if err != nil {
		return nil, fmt.Errorf("looking at the prompt: %w", err)
	}
	for i := range view {
		same := func(a, b model.Call) bool { return slices.Equal(a.Args, b.Args) }
		if prompt[i].Content != view[i].Content || !slices.EqualFunc(prompt[i].Calls, view[i].Calls, same) {
			view[i].Content, view[i].Calls, view[i].Changed = prompt[i].Content, prompt[i].Calls, true
		}
	}
	return rule, nil
}

// number gives every call of a reply an id that no other of the trial has, and that every
// agent keeps: nine letters and digits.
func (g *Gate) number(r Reply) Message {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.Asks++
	m := Message{Message: model.Message{Role: model.Assistant, Content: r.Text}, Raw: r.Message.Raw, raws: r.Message.raws,
		Changed: len(r.Calls) > 0}
	for _, c := range r.Calls {
		g.calls++
		c.ID = fmt.Sprintf("m%08s", strconv.FormatUint((g.First+g.calls)%ids, 36))
		m.Calls, m.ids = append(m.Calls, c), append(m.ids, c.ID)
	}
	return m
}

func judge(ctx context.Context, rule Rule, offered []string, calls []model.Call) ([]Ruling, error) {
	out := make([]Ruling, len(calls))
	fails := func(err error) ([]Ruling, error) { // the agent gets none of them
		err = fmt.Errorf("judging a call: %w", err)
		for _, r := range slices.Backward(out) {
			if r.Back != nil {
				err = errors.Join(err, r.Back(context.WithoutCancel(ctx)))
			}
		}
		return nil, err
	}
	for i, c := range calls {
		if len(offered) > 0 && !slices.Contains(offered, c.Name) {
			out[i].Refused = memory.Failure(fmt.Sprintf("there is no tool %q: there are %s", text.Clip(c.Name, 60),
				text.Clip(strings.Join(offered, ", "), 2000)))
			continue
		}
		r, err := rule(ctx, c)
		if err != nil {
			return fails(err)
		}
		out[i] = r
		if r.Changed != nil && r.Refused == "" { // of one that is refused the model sees what it said
			r.Changed.ID = c.ID
			calls[i] = *r.Changed // the model sees it as its own
		}
	}
	if err := ctx.Err(); err != nil { // the agent gave up, and will ask again
		return fails(err)
	}
	return out, nil
}

// divide returns the calls that pass, and the results of those that do not.
func divide(calls []model.Call, rulings []Ruling) (passed []model.Call, results []Message) {
	for i, c := range calls {
		if why := rulings[i].Refused; why != "" {
			results = append(results, Message{refusal: true,
				Message: model.Message{Role: model.ToolRole, Content: why, CallID: c.ID, Name: c.Name}})
		} else {
			passed = append(passed, c)
		}
	}
	return passed, results
}

// endsRefused reports whether what the model sees last is a refusal of the gate.
func endsRefused(view []Message) bool {
	last := len(view) - 1
	return last >= 0 && view[last].refusal
}

func (g *Gate) count(f func(*Counts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.counts)
}

// tokens estimates what a list costs, in tokens.
func tokens(list []Message) int {
	n := 0
	for i := range list {
		n += 4 + model.Tokens(list[i].Content)
		for _, c := range list[i].Calls {
			n += 4
			for _, a := range c.Args {
				n += model.Tokens(a.Value)
			}
		}
	}
	return n
}
