package remote

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Call is one logical request of a model, retries included: what the layers
// below need to know of it, and what they found.
type Call struct {
	// Model names the model, for messages.
	Model string
	// Prompt and Reply are the tokens that the request is expected to take.
	Prompt, Reply int
	Price         Price
	// Judge may overrule what a status means: it returns nil where it has nothing
	// to say. Of its error kind, cause and hint are taken over.
	Judge func(status int, body []byte) *Error
	// Most is the most attempts of this call, where that is fewer than of others.
	Most int

	// Attempts is how many requests were sent.
	Attempts int
	// Took is the time of the attempts, Waited that in queues and between them.
	Took, Waited time.Duration
	// Body is the last whole body, of a success or not. It is not to be changed.
	Body []byte
	// Chunks are the pieces in which a stream came.
	Chunks []Chunk

	settle func(prompt, completion int)
}

// Chunk is one piece of a stream: how many bytes, and when they came, counted
// from when the request was sent.
type Chunk struct {
	Bytes int
	At    time.Duration
}

// Settle tells the limits what the call really took. It may be called once or
// not at all; an answer whose cost is unknown counts as expected.
func (c *Call) Settle(prompt, completion int) {
	if c.settle != nil {
		c.settle(prompt, completion)
		c.settle = nil
	}
}

type callKey struct{}
type trialKey struct{}

func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Trial is what a cassette and a progress line know of a trial: its id, which
// is different for each epoch and arm, and how often it has asked the same.
type Trial struct {
	ID string
	// Messages and Tokens are what the agent's model has written and taken, where the
	// trial has bounds on them.
	Messages, Tokens atomic.Int64

	mu sync.Mutex
	n  map[[32]byte]int
}

// Nth counts how often this trial has made the request with this hash, from 1.
func (t *Trial) Nth(hash [32]byte) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[[32]byte]int{}
	}
	t.n[hash]++
	return t.n[hash]
}

// WithTrial says which trial the calls of this context belong to. Every start
// of a trial needs a context of its own: it is what tells its first request
// from a second one that is the same.
func WithTrial(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, trialKey{}, &Trial{ID: id})
}

func TrialOf(ctx context.Context) *Trial {
	t, _ := ctx.Value(trialKey{}).(*Trial)
	return t
}
