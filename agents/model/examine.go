package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// Subject is a model that can be examined before a run.
type Subject interface {
	Model
	Namer
	// Models lists what the server offers.
	Models(context.Context) ([]string, error)
	Embedder
}

// State is how a check came out.
type State uint8

// The states of a check.
const (
	Passed State = iota
	Warned       // a run is possible, with what Detail says
	Failed       // a run is not possible as it is set
	Skipped
)

// String names the state.
func (s State) String() string { return [...]string{"ok", "warning", "failed", "skipped"}[s] }

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Check is one thing that was examined.
type Check struct {
	// Name is reachable, model, context, answers, usage, thinking, tools, results, repeats, seed or embeddings.
	Name   string `json:"check"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // what would mend it
}

// Examination says what is examined beside the model itself.
type Examination struct {
	// Warm is the same model at a temperature above 0, where a seed makes a
	// difference; nil skips the check.
	Warm Model
	// Embeddings names the model of the server that embeds; "-" skips the check,
	// "" is the model itself.
	Embeddings string
	// Window is the context in tokens that a run would fill; 0 is none.
	Window int
	// Fenced says that the model is talked to by the fenced protocol, for hints.
	Fenced bool
}

// examined is a task that any model, the reference model too, does with the
// tool that it is offered.
var examined = Request{
	Seed: 1,
	Tools: []Tool{{Name: "send_mail", Description: "Send, forward or reply to a mail (email).",
		Params: []Param{{Name: "to", Format: "email", Required: true}, {Name: "subject"}, {Name: "body"}}}},
	Messages: []Message{
		{Role: System, Content: "You are an assistant. Use the tools to do what the user asks."},
		{Role: User, Content: "Send a mail to dana@norvik.example that says the garden is open."},
	},
}

// Examine tries a model: about eight small requests. It stops early where the
// rest would only fail for the same reason.
func Examine(ctx context.Context, m Subject, x Examination) []Check {
	e := &examiner{ctx: ctx, m: m, x: x}
	if !e.reachable() {
		return e.out
	}
	e.context()
	if !e.answers() {
		return e.out
	}
	e.tools()
	e.repeats()
	e.seed()
	e.embeddings()
	return e.out
}

type examiner struct {
	ctx context.Context
	m   Subject
	x   Examination
	out []Check
}

func (e *examiner) say(name string, s State, detail, hint string) {
	e.out = append(e.out, Check{name, s, remote.Inert(detail, 400), hint})
}

// reachable asks for the server's models. A server without a list may still
// chat.
func (e *examiner) reachable() bool {
	list, err := e.m.Models(e.ctx)
	if err != nil {
		we, ok := errors.AsType[*remote.Error](err)
		if ok && (we.Status == http.StatusNotFound || we.Status == http.StatusMethodNotAllowed ||
			we.Status == http.StatusNotImplemented) {
			e.say("reachable", Passed, "the server answers, but lists no models", "")
			e.say("model", Skipped, "the server lists no models", "")
			return true
		}
		e.say("reachable", Failed, err.Error(), "")
		return false
	}
	e.say("reachable", Passed, fmt.Sprintf("the server offers %d models", len(list)), "")
	_, name, _ := strings.Cut(e.m.Name(), ":")
	if slices.Contains(list, name) || slices.Contains(list, name+":latest") {
		e.say("model", Passed, name+" is there", "")
		return true
	}
	some := list[:min(len(list), 8)]
	e.say("model", Warned, fmt.Sprintf("%s is not among the models that the server lists: %s", name,
		strings.Join(some, ", ")), "check the name; some gateways serve models that they do not list")
	return true
}

// Sized is a model whose server may say how many tokens its context holds; 0 is what
// it does not say.
type Sized interface {
	Context(context.Context) (int, error)
}

func (e *examiner) context() {
	s, ok := e.m.(Sized)
	if !ok {
		return
	}
	switch n, err := s.Context(e.ctx); {
	case err != nil || n == 0:
		e.say("context", Skipped, "the server does not say how many tokens its context holds", "")
	default:
		hint, fits := Fits(e.x.Window, n)
		if fits {
			e.say("context", Passed, fmt.Sprintf("%d tokens", n), "")
		} else {
			says := fmt.Sprintf("the server's context holds %d tokens, the window of a run is %d", n, e.x.Window)
			e.say("context", Failed, says, hint)
		}
	}
}

// Fits reports whether a server's context holds a window, and where it does not what
// would mend that. A context of 0 is not known.
func Fits(window, context int) (hint string, ok bool) {
	if context == 0 || window <= context {
		return "", true
	}
	return fmt.Sprintf("--set window=%d, or give the server a larger context (num_ctx, OLLAMA_CONTEXT_LENGTH, "+
		"--max-model-len, --ctx-size)",
		context), false
}

func (e *examiner) answers() bool {
	r, err := e.m.Next(e.ctx, Request{Seed: 1, Messages: []Message{{Role: User,
		Content: "Hello. Answer with one short sentence."}}})
	if err != nil {
		hint := ""
		if we, ok := errors.AsType[*remote.Error](err); ok && we.Status == http.StatusBadRequest {
			hint = "if the server refuses a member of the request (temperature, seed), leave it out"
		}
		e.say("answers", Failed, err.Error(), hint)
		return false
	}
	if r.Text == "" {
		e.say("answers", Warned, "the answer is empty", "raise the bound on tokens if the model thinks before it answers")
	} else {
		e.say("answers", Passed, fmt.Sprintf("in %d ms", r.Usage.Took.Milliseconds()), "")
	}
	if r.Usage.Estimated {
		e.say("usage", Warned, "the server counts no tokens: they are estimated", "")
	} else {
		e.say("usage", Passed, fmt.Sprintf("%d + %d tokens", r.Usage.Prompt, r.Usage.Completion), "")
	}
	if strings.HasPrefix(strings.TrimSpace(r.Text), "<think>") {
		e.say("thinking", Warned, "the model's reasoning stands in its answer and would be judged with it",
			"strip it, or let the server part it (a reasoning parser)")
	}
	return true
}

// tools asks for a call, and sends its result.
func (e *examiner) tools() {
	hint := "use the fenced-JSON protocol"
	if e.x.Fenced {
		hint = "the model does not follow the protocol: choose another one"
	}
	r, err := e.m.Next(e.ctx, examined)
	if err != nil {
		e.say("tools", Failed, err.Error(), hint)
		return
	}
	if len(r.Calls) == 0 || r.Calls[0].Name != "send_mail" ||
		!strings.Contains(r.Calls[0].Get("to"), "dana@norvik.example") {
		e.say("tools", Failed, "asked to send a mail, the model did not call the tool rightly: "+
			text.Clip(spelledReply(r), 200), hint)
		return
	}
	e.say("tools", Passed, "a tool is called rightly", "")
	for i := range r.Calls {
		if r.Calls[i].ID == "" {
			r.Calls[i].ID = fmt.Sprintf("call_%d", i+1)
		}
	}
	next := examined
	next.Messages = append(slices.Clone(examined.Messages), Message{Role: Assistant, Content: r.Text, Calls: r.Calls})
	for _, c := range r.Calls {
		next.Messages = append(next.Messages, Message{Role: ToolRole, CallID: c.ID, Name: c.Name,
			Content: `{"success":true}`})
	}
	if _, err := e.m.Next(e.ctx, next); err != nil {
		e.say("results", Failed, "the result of a tool is refused: "+err.Error(), hint)
		return
	}
	e.say("results", Passed, "the result of a tool is taken", "")
}

func spelledReply(r Reply) string {
	var b strings.Builder
	b.WriteString(r.Text)
	for _, c := range r.Calls {
		b.WriteString(" " + c.Name + string(AppendArgs(nil, nil, c)))
	}
	return b.String()
}

// open is a request with many good answers.
func open(seed int64) Request {
	return Request{Seed: seed, MaxTokens: 512, Messages: []Message{{Role: User,
		Content: "Invent a name for a ship and say in one sentence what became of it."}}}
}

func (e *examiner) repeats() {
	same, err := sameTwice(e.ctx, e.m, 1, 1)
	switch {
	case err != nil:
		e.say("repeats", Warned, err.Error(), "")
	case same:
		e.say("repeats", Passed, "the same request got the same answer twice", "")
	default:
		e.say("repeats", Warned, "the same request got two answers: results of single trials will not repeat",
			"record a cassette, and run several epochs")
	}
}

func (e *examiner) seed() {
	if e.x.Warm == nil {
		e.say("seed", Skipped, "", "")
		return
	}
	same, err := sameTwice(e.ctx, e.x.Warm, 7, 7)
	other := false
	if err == nil {
		other, err = sameTwice(e.ctx, e.x.Warm, 7, 8)
	}
	switch {
	case err != nil:
		e.say("seed", Warned, err.Error(), "")
	case same && !other:
		e.say("seed", Passed, "the seed decides the answer", "")
	case same:
		e.say("seed", Warned, "another seed changes nothing: it, or the temperature, is ignored", "")
	default:
		e.say("seed", Warned, "the seed is ignored: the same seed got two answers", "")
	}
}

func sameTwice(ctx context.Context, m Model, a, b int64) (bool, error) {
	x, err := m.Next(ctx, open(a))
	if err != nil {
		return false, err
	}
	y, err := m.Next(ctx, open(b))
	return x.Text == y.Text, err
}

func (e *examiner) embeddings() {
	if e.x.Embeddings == "-" {
		e.say("embeddings", Skipped, "", "")
		return
	}
	v, err := e.m.Embed(e.ctx, e.x.Embeddings, []string{"a garden", "a harbour"})
	if err != nil {
		e.say("embeddings", Warned, err.Error(), "the built-in vectors need no server")
		return
	}
	for _, x := range v {
		sum := 0.
		for _, f := range x {
			sum += float64(f) * float64(f)
		}
		if len(x) != len(v[0]) || !(sum > 0) || math.IsInf(sum, 0) {
			e.say("embeddings", Warned, fmt.Sprintf("the vectors cannot be used: lengths %d and %d, squared norm %g", len(v[0]),
				len(x), sum), "")
			return
		}
	}
	e.say("embeddings", Passed, fmt.Sprintf("vectors of %d numbers", len(v[0])), "")
}
