package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// Options are the settings of a server.
type Options struct {
	// Latency is the time from a request to its answer; the model's own work is
	// part of it.
	Latency time.Duration
	// RateLimit is the most chat requests a second; more are answered 429 with
	// Retry-After. 0 is no limit.
	RateLimit float64
	// RetryAfter is what a 429 asks to wait; it is sent in whole seconds,
	// rounded up. 0 is one second; below 0 the header is left out.
	RetryAfter time.Duration
	// Faults are the shares of chat requests that go wrong.
	Faults Faults
	// Seed draws the faults.
	Seed uint64
	// AnswerBytes lengthens answers that are not streamed to this many bytes, by a
	// field that no client reads: real answers are longer than the reference
	// model's. 0 leaves them as they are.
	AnswerBytes int
	// MaxBody is the longest request in bytes: 16 MiB.
	MaxBody int64
	// Models answer by name; nil is the reference model in its settings.
	Models map[string]model.Model
	// Book is the phrase book that the reference model reads by; nil has it read
	// everything by form.
	Book *reference.Book
	// Of names the set of the Book: it is listed as reference@NAME, so that a run of
	// another set can tell.
	Of string
	// Hint is told, once, what keeps the reference model from reading what a client shows
	// it; nil tells nobody.
	Hint func(string)

	numbered bool // the model gives ids to its calls
}

const (
	defaultMaxBody = 16 << 20
	// version is what /api/version says: the version of Ollama's protocol that
	// is spoken here.
	version = "0.17.4"
	// created is the time stamp of every answer, so that answers repeat to the
	// byte.
	created = 1767225600 // 2026-01-01T00:00:00Z
)

// Server answers requests. Make one with New.
type Server struct {
	opts   Options
	models map[string]model.Model
	names  []string
	chaos  chaos
	rate   *rate.Limiter // nil is no limit
	done   chan struct{} // closed when the server stops: endless answers end
	stop   sync.Once
	hinted sync.Once
}

// New returns a server.
func New(o Options) (*Server, error) {
	if err := o.Faults.check(); err != nil {
		return nil, err
	}
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	s := &Server{opts: o, models: o.Models, names: slices.Sorted(maps.Keys(o.Models)), done: make(chan struct{})}
	s.chaos.opts = &s.opts
	if o.RateLimit > 0 { // a second's worth at once
		s.rate = rate.NewLimiter(rate.Limit(o.RateLimit), max(1, int(o.RateLimit)))
	}
	if s.models == nil {
		cache := reference.NewCache(64 << 20)
		add := func(name string, set reference.Setting) {
			m := reference.New(set, cache)
			if o.Book != nil {
				m = m.WithBook(o.Book)
			}
			s.models[name], s.names = m, append(s.names, name)
		}
		s.models = map[string]model.Model{}
		add("reference", reference.Cautious)
		for _, set := range reference.Settings() {
			add("reference:"+string(set), set)
		}
		if o.Of != "" {
			add("reference@"+o.Of, reference.Cautious)
		}
	}
	return s, nil
}

// Handler returns the server's handler.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat(openAI{}))
	mux.HandleFunc("POST /v1/embeddings", s.embed(openAI{}))
	mux.HandleFunc("GET /v1/models", s.openAIModels)
	mux.HandleFunc("POST /api/chat", s.chat(ollama{}))
	mux.HandleFunc("POST /api/embed", s.embed(ollama{}))
	mux.HandleFunc("GET /api/tags", s.ollamaTags)
	mux.HandleFunc("POST /api/show", s.ollamaShow)
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		sendJSON(w, 200, object{"version": version})
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "memtox reference model")
	})
	return mux
}

// Serve answers on a listener until ctx is over, then lets requests in flight
// finish for at most grace.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	srv := &http.Server{Handler: s.Handler(), ReadTimeout: time.Minute}
	srv.RegisterOnShutdown(func() { s.stop.Do(func() { close(s.done) }) })
	if err := remote.Serve(ctx, l, srv, grace); err != nil && !errors.Is(err, remote.ErrCutOff) {
		return err
	}
	return nil
}

// Stats returns counts so far.
func (s *Server) Stats() Stats {
	s.chaos.mu.Lock()
	defer s.chaos.mu.Unlock()
	return s.chaos.s
}

// lookup finds the model of a request; Ollama's clients may add a tag.
func (s *Server) lookup(name string) (model.Model, bool) {
	m, ok := s.models[name]
	if !ok {
		m, ok = s.models[strings.TrimSuffix(name, ":latest")]
	}
	return m, ok
}

// protocol is one of the two ways to ask.
type protocol interface {
	// streams says that an answer is streamed where the request says nothing of it.
	streams() bool
	// malformed reports whether a malformed call is an answer of the protocol
	// (OpenAI) or an error of the server (Ollama).
	malformed() (inAnswer bool)
	// streamType is the content type of a stream.
	streamType() string
	// fail writes an error.
	fail(w http.ResponseWriter, status int, kind, message string)
	// whole encodes an answer; bad makes its first tool call malformed.
	whole(q request, r model.Reply, bad bool) []byte
	// pieces encodes an answer as a stream.
	pieces(q request, r model.Reply, bad bool) [][]byte
	// endless is a piece that can be sent for ever.
	endless(q request) []byte
	// embeddings is the answer with the vectors of some texts.
	embeddings(model string, vectors [][]float32, tokens int) object
}

// chat answers the chat requests of a protocol.
func (s *Server) chat(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		body, err := readBody(w, r, s.opts.MaxBody)
		if err != nil {
			p.fail(w, http.StatusRequestEntityTooLarge, "invalid_request_error", err.Error())
			return
		}
		q, err := parse(body, p)
		if err != nil {
			p.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
			return
		}
		m, ok := s.lookup(q.model)
		if !ok {
			p.fail(w, http.StatusNotFound, "not_found_error",
				fmt.Sprintf("model %q not found; there are %s", text.Clip(q.model, 100), strings.Join(s.names, ", ")))
			return
		}
		if s.rate != nil && !s.rate.Allow() {
			s.chaos.limited()
			s.tooMany(w, p)
			return
		}
		s.hint(q.Messages)
		fault := s.chaos.draw(body)
		reply, err := m.Next(withSession(r.Context(), q.session), q.Request)
		if err != nil {
			p.fail(w, http.StatusInternalServerError, "server_error", remote.Failed(err))
			return
		}
		if !s.opts.numbered {
			reply.Calls = number(q.Messages, reply.Calls)
		}
		if wait := s.opts.Latency - time.Since(began); wait > 0 {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return
			case <-s.done:
			}
		}
		s.answer(w, r, p, q, reply, fault)
	}
}

// answer sends a reply, or goes wrong as drawn.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p protocol, q request, reply model.Reply, fault Fault) {
	if fault == MalformedCall && len(q.Tools) == 0 {
		fault = NoFault // nothing to call
	}
	s.chaos.count(fault)
	switch fault {
	case ServerError:
		p.fail(w, http.StatusInternalServerError, "server_error", "injected fault")
		return
	case TooMany:
		s.tooMany(w, p)
		return
	case BadRequest:
		p.fail(w, http.StatusBadRequest, "invalid_request_error", "injected fault")
		return
	case Hang:
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		return
	case Endless:
		s.endless(w, r, p, q)
		return
	}
	bad := fault == MalformedCall
	if bad && !p.malformed() {
		p.fail(w, http.StatusInternalServerError, "server_error",
			`error parsing tool call: raw='{"to": "dana@', err=unexpected end of JSON input`)
		return
	}
	if bad && len(reply.Calls) == 0 {
		reply = model.Reply{Calls: []model.Call{{ID: "call_0", Name: q.Tools[0].Name}}, Usage: reply.Usage}
	}
	if q.stream {
		w.Header().Set("Content-Type", p.streamType())
		pieces := p.pieces(q, reply, bad)
		for i, b := range pieces {
			if (fault == Cut || fault == Truncated) && i >= len(pieces)/2 {
				if fault == Cut {
					cut(w)
				}
				return
			}
			if _, err := w.Write(b); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
		return
	}
	body := pad(p.whole(q, reply, bad), s.opts.AnswerBytes)
	w.Header().Set("Content-Type", "application/json")
	switch fault {
	case Truncated: // the length fits, the JSON does not
		body = body[:len(body)/2]
	case Cut: // the length promises more than comes
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		cut(w)
		return
	}
	_, _ = w.Write(body)
}

// pad lengthens a JSON object to n bytes.
func pad(b []byte, n int) []byte {
	const before, after = `,"padding":"`, `"}`
	end := bytes.LastIndexByte(b, '}')
	missing := n - len(b) - len(before) - len(after) + 1
	if end < 0 || missing < 0 {
		return b
	}
	return slices.Concat(b[:end], []byte(before), bytes.Repeat([]byte("x"), missing), []byte(after), b[end+1:])
}

// cut breaks the connection.
func cut(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
		return
	}
	panic(http.ErrAbortHandler) // HTTP/2 has no connection to take over
}

// endless sends an answer that never ends.
func (s *Server) endless(w http.ResponseWriter, r *http.Request, p protocol, q request) {
	w.Header().Set("Content-Type", p.streamType())
	piece := p.endless(q)
	if !q.stream {
		w.Header().Set("Content-Type", "application/json")
		piece = []byte(strings.Repeat(" ", 256))
	}
	for {
		if _, err := w.Write(piece); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(time.Millisecond):
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		}
	}
}

func (s *Server) tooMany(w http.ResponseWriter, p protocol) {
	if after := s.opts.RetryAfter; after >= 0 {
		secs := max(1, (after+time.Second-1)/time.Second)
		w.Header().Set("Retry-After", fmt.Sprint(int64(secs)))
	}
	p.fail(w, http.StatusTooManyRequests, "rate_limit_error", "too many requests")
}

// number gives calls ids that are unique in the conversation.
func number(msgs []model.Message, calls []model.Call) []model.Call {
	calls = slices.Clone(calls) // a model may hand out what it keeps
	n := 0
	for _, m := range msgs {
		n += len(m.Calls)
	}
	for i := range calls {
		n++
		calls[i].ID = fmt.Sprintf("call_%d", n)
	}
	return calls
}

func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("the request has more than the %d bytes allowed", long.Limit)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return b, nil
}

func sendJSON(w http.ResponseWriter, status int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(o))
}

// read reads the body of a request that is not a chat, or answers what is wrong.
func (s *Server) read(w http.ResponseWriter, r *http.Request, p protocol, into any) bool {
	body, err := readBody(w, r, s.opts.MaxBody)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		p.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
	}
	return err == nil
}

// maxInputs bounds the texts of one embedding request.
const maxInputs = 4096

// embed answers with the built-in vectors of a request's input: a text or a list.
func (s *Server) embed(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model  string          `json:"model"`
			Input  json.RawMessage `json:"input"`
			Format string          `json:"encoding_format"`
		}
		if !s.read(w, r, p, &in) {
			return
		}
		var one string
		var all []string
		wrong := ""
		switch {
		case strings.EqualFold(in.Format, "base64"):
			wrong = "encoding_format is float here"
		case json.Unmarshal(in.Input, &one) == nil:
			all = []string{one}
		case json.Unmarshal(in.Input, &all) != nil:
			wrong = "input is a text or a list of texts"
		case len(all) > maxInputs:
			wrong = fmt.Sprintf("input has %d texts of %d allowed", len(all), maxInputs)
		}
		if wrong != "" {
			p.fail(w, http.StatusBadRequest, "invalid_request_error", wrong)
			return
		}
		var vectors [][]float32
		tokens := 0
		for _, s := range all {
			vectors = append(vectors, text.Hashing{}.Embed(s))
			tokens += model.Tokens(s)
		}
		sendJSON(w, 200, p.embeddings(in.Model, vectors, tokens))
	}
}
