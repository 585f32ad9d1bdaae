package external

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy"
)

// ModelName is the name under which a [Proxy] offers its model.
const ModelName = "memtox"

// Proxy offers a model on a port of this machine in the OpenAI chat protocol, and
// keeps the prompts of each trial apart by the address that the trial was given.
type Proxy struct {
	model  model.Model
	base   string
	http   *http.Server
	served sync.WaitGroup

	mu    sync.Mutex
	tapes map[string]*tape
}

// tape is what one trial asked the model.
type tape struct {
	ctx context.Context // the trial's

	mu      sync.Mutex
	prompts [][]model.Message
	usage   model.Usage
	err     error // the first of the model
}

type tapeKey struct{}

// NewProxy starts a proxy of a model.
func NewProxy(m model.Model) (*Proxy, error) {
	p := &Proxy{model: m, tapes: map[string]*tape{}}
	s, err := proxy.New(proxy.Options{Models: map[string]model.Model{ModelName: p}})
	if err != nil {
		return nil, fmt.Errorf("making the proxy: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("making the proxy: %w", err)
	}
	p.base = "http://" + l.Addr().String()
	inner := s.Handler()
	p.http = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/t/")
		token, path, more := strings.Cut(rest, "/")
		p.mu.Lock()
		t := p.tapes[token]
		p.mu.Unlock()
		if !ok || !more || t == nil {
			http.Error(w, `{"error":{"message":"no trial is under way at this address"}}`, http.StatusNotFound)
			return
		}
		r = r.Clone(context.WithValue(r.Context(), tapeKey{}, t))
		r.URL.Path, r.URL.RawPath = "/"+path, ""
		inner.ServeHTTP(w, r)
	})}
	p.served.Go(func() { _ = p.http.Serve(l) })
	return p, nil
}

// Close stops the proxy.
func (p *Proxy) Close() error {
	err := p.http.Close()
	p.served.Wait()
	return err
}

// begin gives a trial an address of its own.
func (p *Proxy) begin(ctx context.Context) (*tape, Server, func()) {
	token, t := rand.Text(), &tape{ctx: ctx}
	p.mu.Lock()
	p.tapes[token] = t
	p.mu.Unlock()
	return t, Server{BaseURL: p.base + "/t/" + token + "/v1", Name: ModelName}, func() {
		p.mu.Lock()
		delete(p.tapes, token)
		p.mu.Unlock()
	}
}

// Next implements [model.Model] for the server: it asks in the name of the trial.
func (p *Proxy) Next(ctx context.Context, r model.Request) (model.Reply, error) {
	t, ok := ctx.Value(tapeKey{}).(*tape)
	if !ok {
		return model.Reply{}, fmt.Errorf("no trial is under way at this address")
	}
	of, cancel := context.WithCancel(t.ctx) // knows the trial, for a cassette
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	reply, err := p.model.Next(of, r)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompts = append(t.prompts, r.Messages)
	u := reply.Usage
	t.usage.Prompt += u.Prompt
	t.usage.Completion += u.Completion
	t.usage.Calls += u.Calls
	t.usage.Took += u.Took
	t.usage.Estimated = t.usage.Estimated || u.Estimated
	if err != nil && t.err == nil {
		t.err = err
	}
	return reply, err
}

// failure is the first error of the model.
func (t *tape) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// take returns what was asked since the last time.
func (t *tape) take() ([][]model.Message, model.Usage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	prompts, usage := t.prompts, t.usage
	t.prompts, t.usage = nil, model.Usage{}
	return prompts, usage, t.err
}
