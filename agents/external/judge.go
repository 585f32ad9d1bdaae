package external

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// judge is a trial as the relay sees it: the read gate is shown the memories in each prompt,
// and the action gate each call of the tools that the harness gives, before the agent gets
// it. Of the agent's own tools it judges what is known; without that the agent asks about
// its writes by itself.
type judge struct{ t *Trial }

var errOver = errors.New("the trial is over")

func (j judge) Look(ctx context.Context, _ string, prompt []model.Message) (gate.Rule, error) {
	t := j.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errOver
	}
	if err := t.meet(prompt); err != nil {
		return nil, err
	}
	_, route := t.a.opts.Says(prompt)
	said := t.said
	if err := t.reader.Look(ctx, said, prompt); err != nil {
		return nil, err
	}
	return func(ctx context.Context, c model.Call) (gate.Ruling, error) { return t.judge(ctx, said, route, c) }, nil
}

// judge judges a call of the reply to a request, by what the user had said then.
func (t *Trial) judge(ctx context.Context, said string, route memory.Route, c model.Call) (out gate.Ruling, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return out, errOver
	}
	name, ours := strings.CutPrefix(c.Name, t.a.opts.Prefix)
	ours = ours && slices.ContainsFunc(t.tools, func(o model.Tool) bool { return o.Name == name })
	does := t.a.opts.Does(c)
	c, undone := t.reader.Undo(c, !ours && (t.own == nil || does == gate.Stores || does == gate.Writes))
	switch {
	case ours && t.box == nil:
		out.Refused = memory.Failure("no session is under way")
	case ours:
		given := c
		given.Name = name
		out.Refused, err = t.box.Judge(given)
	case t.own != nil:
		out, err = t.own.Call(ctx, said, route, c)
	}
	if undone && out.Changed == nil {
		out.Changed = &c
	}
	if back := out.Back; back != nil {
		out.Back = func(ctx context.Context) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.closed {
				return nil
			}
			return back(ctx)
		}
	}
	return out, err
}

// shown notes what of the memory the read gate let into a prompt.
func (t *Trial) shown(route memory.Route, r memory.Recalled) {
	if t.box != nil {
		t.box.Shown(route, r, r.Text)
	}
}

// of is what failed at the relay: the defense, the store, the agent that asks for ever or
// else the model.
func of(err error) error {
	if errors.Is(err, proxy.ErrTooMuch) {
		return err
	}
	if _, ok := errors.AsType[*memory.GateError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*memory.StoreError](err); ok {
		return err
	}
	return &agents.ModelError{Err: err}
}
