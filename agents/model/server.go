package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/memtox/memtox/internal/remote"
)

// ServerOptions say which model of a server is asked, and how.
type ServerOptions struct {
	// Model is the name by which the server knows the model.
	Model string
	// Address is the server's; "" is the protocol's default.
	Address string
	// Key is sent as bearer token; local servers need none.
	Key remote.Secret
	// Temperature is sent with each request; nil is 0.
	Temperature *float64
	// Context is the size of the context in tokens that is asked for, where a request
	// can ask for one; 0 is the protocol's default.
	Context int
	// Omit leaves members out that the server refuses: temperature, seed, num_ctx.
	Omit []string
	// Stream asks for the answer in pieces, for gateways that cut a connection
	// on which nothing comes for long.
	Stream bool
	Settings
	// Client sends the requests. Models of one run share one.
	Client *remote.Client
	// Cassette, if it is not nil, is put between the protocol and the Client:
	// the Wrap of a cassette.Cassette. base is the path of the server's address.
	Cassette func(base string, next http.RoundTripper) http.RoundTripper
	// Replayed says that the cassette answers instead of a server.
	Replayed bool
}

// Server is a model behind a protocol over HTTP: what the protocols have in common.
// Their own models embed it.
type Server struct {
	ServerOptions
	HTTP *http.Client
	Base string // the server's address
	// Held is the server's context in tokens, once that is known.
	Held     atomic.Int64
	protocol Protocol
}

// Protocol is how a server is talked to.
type Protocol struct {
	Name   string // stands before the model's
	Stream string // the media type of a stream
	Path   string // of chat requests, below the server's address
	Encode func(Request) ([]byte, error)
	// Read reads an answer. What it says of the usage is right even beside an error.
	Read func([]byte) (Answer, *remote.Error)
	// Judge is that of [remote.Call].
	Judge func(status int, body []byte) *remote.Error
}

// Open prepares the way to a server; it sends nothing.
func (s *Server) Open(p Protocol, base *url.URL, o ServerOptions) error {
	switch {
	case o.Model == "":
		return fmt.Errorf("the model needs a name: %s:NAME", p.Name)
	case o.Client == nil:
		return fmt.Errorf("the model %s:%s needs a remote.Client", p.Name, o.Model)
	}
	o.Client.Guard(o.Key)
	rt := remote.Authorized(o.Client, o.Key)
	if o.Cassette != nil {
		rt = o.Cassette(base.Path, rt)
	}
	s.ServerOptions, s.protocol, s.Base, s.HTTP = o, p, base.String(), remote.HTTP(rt)
	return nil
}

// Sent is the temperature that requests name; nil if they name none. It is written
// out where it is 0: the server's own default is another.
func (s *Server) Sent() *float64 {
	if slices.Contains(s.Omit, "temperature") {
		return nil
	}
	return cmp.Or(s.Temperature, new(float64))
}

// Name implements [Namer].
func (s *Server) Name() string { return s.protocol.Name + ":" + s.Model }

// IsLLM implements [Namer]. Only the reference model, which memtox itself
// serves under that name, is none.
func (s *Server) IsLLM() bool { return !remote.IsReference(s.Model) }

// Deterministic implements [Namer]: temperature 0 and a seed do not make
// a server's answers repeat, a cassette does.
func (s *Server) Deterministic() bool { return s.Replayed || remote.IsReference(s.Model) }

// Next implements [Model].
func (s *Server) Next(ctx context.Context, req Request) (Reply, error) {
	return Converse(ctx, s.Name(), req, s.Settings, s.Client.Redactor(), s.chat)
}

func (s *Server) chat(ctx context.Context, req Request) (Answer, error) {
	remote.CallOf(ctx).Judge = s.protocol.Judge
	body, err := s.protocol.Encode(req)
	if err != nil {
		return Answer{}, fmt.Errorf("encoding the request: %w", err)
	}
	accept := "application/json"
	if s.Stream {
		accept = s.protocol.Stream
	}
	raw, err := s.exchange(ctx, http.MethodPost, s.Base+s.protocol.Path, accept, body)
	if err != nil {
		return Answer{}, err
	}
	a, spoilt := s.protocol.Read(raw)
	a.Sent, a.Came = body, raw
	a.Context = int(s.Held.Load())
	if spoilt != nil {
		return a, spoilt
	}
	return a, nil
}

// Ask gets, or posts a body to, what is no turn of the model, and decodes the answer.
func (s *Server) Ask(ctx context.Context, address string, body, answer any) error {
	method, data := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		data, _ = json.Marshal(body) // texts and numbers always encode
	}
	raw, err := s.exchange(ctx, method, address, "application/json", data)
	if err != nil {
		return err
	}
	return s.Refine(ctx, json.Unmarshal(raw, answer))
}

func (s *Server) exchange(ctx context.Context, method, address, accept string, body []byte) ([]byte, error) {
	raw, err := remote.Exchange(ctx, s.HTTP, method, address, accept, body)
	return raw, s.Refine(ctx, err)
}

// Refine puts package remote's own error in the place of a client library's wrapping,
// which may hold a whole URL. Other errors get a kind: an answer that the library could
// not read.
func (s *Server) Refine(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*remote.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &remote.Error{Kind: remote.Fatal, Err: errors.New(s.Client.Redactor().String(err.Error())),
		Hint: "the server's answer does not follow the protocol"}
}

// Embedding books the vectors of texts by the named model of the server, or this one:
// embed asks for them and says how many tokens that took.
func (s *Server) Embedding(ctx context.Context, name string, texts []string,
	embed func(context.Context, string) ([][]float32, int, error)) ([][]float32, error) {
	name = cmp.Or(name, s.Model)
	call := &remote.Call{Model: s.protocol.Name + ":" + name}
	for _, t := range texts {
		call.Prompt += Tokens(t)
	}
	ctx = remote.WithCall(ctx, call)
	out, tokens, err := embed(ctx, name)
	if err != nil {
		return nil, s.Refine(ctx, err)
	}
	call.Settle(tokens, 0)
	without := func(v []float32) bool { return len(v) == 0 }
	if len(out) != len(texts) || slices.ContainsFunc(out, without) {
		return nil, &remote.Error{Kind: remote.Fatal, Err: fmt.Errorf("the answer holds no vector for each of %d texts",
			len(texts))}
	}
	return out, nil
}
