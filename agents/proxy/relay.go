package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/internal/remote"
)

// RelayName is the name under which a [Relay] offers its model.
const RelayName = "memtox"

// Relay offers a model on a port of this machine in the OpenAI chat protocol, and
// keeps the prompts of each trial apart by the address that the trial was given.
type Relay struct {
	model  model.Model
	base   string
	stop   context.CancelFunc
	served sync.WaitGroup
	most   bounds
	tapes  sync.Map // *Tape by the token of its address
}

// Tape is what one trial asked the model, as the model saw it.
type Tape struct {
	ctx  context.Context // the trial's
	gate *gate.Gate
	most bounds

	mu      sync.Mutex
	prompts [][]model.Message
	bytes   int // of them
	usage   model.Usage
	err     error // the first of the model or of the judge
}

// bounds are what a trial may ask the model between two [Tape.Take], in requests and in bytes
// of their prompts: an agent under attack may ask for ever.
type bounds struct{ asks, bytes int }

var generous = bounds{asks: 2000, bytes: 256 << 20}

// ErrTooMuch is in the error of a trial that asked more.
var ErrTooMuch = errors.New("the agent asked its model too much in one session")

type tapeKey struct{}

var errNoTrial = errors.New("no trial is under way at this address")

// NewRelay starts a relay of a model.
func NewRelay(m model.Model) (*Relay, error) {
	r := &Relay{model: m, most: generous}
	s, err := New(Options{Models: map[string]model.Model{RelayName: r}, numbered: true})
	if err != nil {
		return nil, fmt.Errorf("making the relay: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l, err := remote.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		stop()
		return nil, fmt.Errorf("making the relay: %w", err)
	}
	r.base = "http://" + l.Addr().String()
	inner := s.Handler()
	mux := http.NewServeMux()
	mux.HandleFunc("/t/{token}/", func(w http.ResponseWriter, q *http.Request) {
		token := q.PathValue("token")
		t, ok := r.tapes.Load(token)
		if !ok {
			openAI{}.fail(w, http.StatusNotFound, "not_found_error", errNoTrial.Error())
			return
		}
		http.StripPrefix("/t/"+token, inner).ServeHTTP(w, q.WithContext(context.WithValue(q.Context(), tapeKey{}, t)))
	})
	r.stop = stop
	r.served.Go(func() { _ = remote.Serve(ctx, l, &http.Server{Handler: mux}, 0) })
	return r, nil
}

// Offer has the relay offer another model from now on: no trial is under way.
func (r *Relay) Offer(m model.Model) { r.model = m }

// Close stops the relay.
func (r *Relay) Close() {
	r.stop()
	r.served.Wait()
}

// Begin gives a trial an address of its own, up to and with /v1, until end is called. No
// prompt reaches the model and no call the agent before the gate's judge has seen it.
func (r *Relay) Begin(ctx context.Context, g *gate.Gate) (t *Tape, url string, end func()) {
	token, t := rand.Text(), &Tape{ctx: ctx, gate: g, most: r.most}
	r.tapes.Store(token, t)
	return t, r.base + "/t/" + token + "/v1", func() { r.tapes.Delete(token) }
}

// Next implements [model.Model] for the server: it asks in the name of the trial.
func (r *Relay) Next(ctx context.Context, q model.Request) (model.Reply, error) {
	t, ok := ctx.Value(tapeKey{}).(*Tape)
	if !ok {
		return model.Reply{}, errNoTrial
	}
	of, cancel := context.WithCancel(t.ctx) // knows the trial, for a cassette
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	list := make([]gate.Message, len(q.Messages))
	for i, m := range q.Messages {
		list[i].Message = m
	}
	var offered []string
	for i := range q.Tools {
		offered = append(offered, q.Tools[i].Name)
	}
	ask := func(ctx context.Context, view []gate.Message) (gate.Reply, error) {
		q := q
		q.Messages = make([]model.Message, len(view))
		for i := range view {
			q.Messages[i] = view[i].Message
		}
		if err := t.keep(q.Messages); err != nil {
			return gate.Reply{}, err
		}
		reply, err := r.model.Next(ctx, q)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.usage.Add(reply.Usage)
		return gate.Reply{Reply: reply}, err
	}
	reply, err := t.gate.Ask(of, sessionOf(ctx), list, offered, ask)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.err == nil && ctx.Err() == nil { // an agent may give up a request and ask again
		t.err = err
	}
	return reply.Reply, err
}

// keep notes a prompt, or refuses one too many.
func (t *Tape) keep(prompt []model.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	bytes := t.bytes
	for i := range prompt {
		bytes += len(prompt[i].Content)
		for _, c := range prompt[i].Calls {
			for _, a := range c.Args {
				bytes += len(a.Value)
			}
		}
	}
	if len(t.prompts) >= t.most.asks || bytes > t.most.bytes {
		return fmt.Errorf("%w: %d times, with prompts of %d bytes; %d times and %d bytes are allowed", ErrTooMuch,
			len(t.prompts)+1, bytes, t.most.asks, t.most.bytes)
	}
	t.prompts, t.bytes = append(t.prompts, prompt), bytes
	return nil
}

// Take returns what was asked since the last time, and the first error of the
// model or of the judge.
func (t *Tape) Take() ([][]model.Message, model.Usage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	prompts, usage := t.prompts, t.usage
	t.prompts, t.bytes, t.usage = nil, 0, model.Usage{}
	return prompts, usage, t.err
}

// Err is the first error of the model or of the judge.
func (t *Tape) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
