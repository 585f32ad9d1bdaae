package external

import (
	"context"
	"errors"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// judge is a trial as the relay sees it: the read gate is shown the memories in each prompt,
// and the action gate each call of the tools that the harness gives, before the agent gets
// it. Writes the agent asks about by itself.
type judge struct{ t *Trial }

var errOver = errors.New("the trial is over")

func (j judge) Look(ctx context.Context, _ string, prompt []model.Message) error {
	t := j.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errOver
	}
	return t.reader.Look(ctx, t.said, prompt)
}

func (j judge) Call(_ context.Context, _ string, c model.Call) (out gate.Ruling, err error) {
	t := j.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return out, errOver
	}
	if c, changed := t.reader.Undo(c); changed {
		out.Changed = &c
	}
	if t.box == nil {
		return out, nil // no tool works now
	}
	if out.Changed != nil {
		c = *out.Changed
	}
	out.Refused, err = t.box.Judge(c)
	return out, err
}

// shown notes what of the memory the read gate let into a prompt.
func (t *Trial) shown(route memory.Route, r memory.Recalled) {
	if t.box != nil {
		t.box.Shown(route, r, r.Text)
	}
}

// of is what failed at the relay: the defense, the store or else the model.
func of(err error) error {
	if _, ok := errors.AsType[*memory.GateError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*memory.StoreError](err); ok {
		return err
	}
	return &agents.ModelError{Err: err}
}
