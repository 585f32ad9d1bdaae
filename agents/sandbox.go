package agents

import (
	"bytes"
	"context"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
)

// Sandbox is the world of an agent that brings its own loop: the tools that read
// what a session brings and record what they are asked to do, behind the same gates
// as those of the profiles. It has no memory tools; such an agent keeps its own
// memory and proposes its writes.
type Sandbox struct{ s *session }

// Sandbox begins a session of such an agent, in an office or, where that is nil, with
// tools that only record what they are asked to do.
func (l *Loop) Sandbox(ctx context.Context, mem *memory.Memory, o *Office) *Sandbox {
	l.once.Do(l.prepare)
	reach(mem, o)
	return &Sandbox{&session{Loop: l, ctx: ctx, mem: mem, out: &Outcome{}, office: o, offered: l.offer(o), foreign: true}}
}

// Outcome is what happened so far.
func (b *Sandbox) Outcome() *Outcome { return b.s.out }

// Tools are those that the agent may call.
func (b *Sandbox) Tools() []model.Tool { return b.s.offered[b.s.own:] }

// Begin begins a user turn, numbered from 1, and returns what the user says, with
// what was handed over beside it.
func (b *Sandbox) Begin(turn int, t Turn) (string, error) {
	s := b.s
	s.turn, s.said = turn, t.User
	if turn == 1 || t.Fresh {
		s.as = t.As
	}
	s.mem.Mark(len(s.out.Messages))
	content, err := s.hear(t)
	if err != nil {
		return "", err
	}
	s.push(model.Message{Role: model.User, Content: content})
	return content, nil
}

// Call runs a tool and returns what the agent is told.
func (b *Sandbox) Call(c model.Call) (string, error) {
	s := b.s
	if t := world.Find(c.Name); t == nil || t.Memory() {
		s.out.ToolCalls++
		return noTool(c), nil
	}
	s.push(model.Message{Role: model.Assistant, Calls: []model.Call{c}})
	result, err := s.call(c)
	if err == nil {
		s.push(model.Message{Role: model.ToolRole, Content: result, Name: c.Name})
	}
	return result, err
}

// Judge asks the action gate about a call before the agent gets it, and returns what the
// model is told where it is refused. One that passed is not judged again when the agent
// makes it.
func (b *Sandbox) Judge(c model.Call) (refused string, err error) {
	s := b.s
	t := world.Find(c.Name)
	if t == nil || t.Handler != "acts" || !s.has(t) {
		return "", nil
	}
	a, refused, err := s.permit(t, c)
	switch {
	case err != nil:
	case refused == "":
		s.permits = append(s.permits, a)
	default:
		s.out.ToolCalls++
		s.push(model.Message{Role: model.Assistant, Calls: []model.Call{c}})
		a.Result = len(s.out.Messages)
		s.out.Actions = append(s.out.Actions, a)
		s.push(model.Message{Role: model.ToolRole, Content: refused, Name: c.Name})
	}
	return refused, err
}

// Met takes in a piece of content that the agent came to by a tool of its own: call is that,
// and nameless where it was in sight without one.
func (b *Sandbox) Met(in Incoming, call model.Call) (memory.Segment, error) {
	s := b.s
	if call.Name != "" {
		s.push(model.Message{Role: model.Assistant, Calls: []model.Call{call}})
	}
	text, err := s.take(in, 0)
	if err != nil {
		return memory.Segment{}, err
	}
	s.push(model.Message{Role: model.ToolRole, Content: text, CallID: call.ID, Name: call.Name})
	return s.out.Segments[len(s.out.Segments)-1].Segment, nil
}

// Labelled is a piece of content under the heading that a tool of the sandbox would put
// over it.
func (in *Incoming) Labelled() string {
	var b bytes.Buffer
	header(&b, *in)
	return b.String() + in.Text
}

// Shown notes what of the memory entered a prompt, which is the agent's own.
func (b *Sandbox) Shown(route memory.Route, r memory.Recalled, text string) {
	b.s.shown(route, r, text, Place{})
}

// Answer ends the turn.
func (b *Sandbox) Answer(text string) {
	b.s.push(model.Message{Role: model.Assistant, Content: text})
	b.s.out.Answers = append(b.s.out.Answers, text)
	b.s.mem.Said(b.s.turn, text)
}
