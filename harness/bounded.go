package harness

import (
	"context"
	"fmt"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
)

// bounded holds a model to what it may write and take in one trial.
type bounded struct {
	model.Model
	tokens, messages int64 // 0 is no bound
}

// bounded is the model under the bounds that the settings give a trial.
func (c *Config) bounded(m model.Model) model.Model {
	if c.TrialTokens == 0 && c.TrialMessages == 0 {
		return m
	}
	return bounded{m, int64(c.TrialTokens), int64(c.TrialMessages)}
}

func (b bounded) Unwrap() model.Model { return b.Model }

// Next implements [model.Model]. The error is that of a trial beyond its bounds.
func (b bounded) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	reply, err := b.Model.Next(ctx, req)
	t := remote.TrialOf(ctx)
	if err != nil || t == nil {
		return reply, err
	}
	messages, tokens := t.Messages.Add(1), t.Tokens.Add(int64(reply.Usage.Prompt+reply.Usage.Completion))
	switch {
	case b.messages > 0 && messages > b.messages:
		err = fmt.Errorf("it wrote more messages than trial_messages (%d) allows", b.messages)
	case b.tokens > 0 && tokens > b.tokens:
		err = fmt.Errorf("it took %d tokens, more than trial_tokens (%d) allows", tokens, b.tokens)
	}
	return reply, err
}
