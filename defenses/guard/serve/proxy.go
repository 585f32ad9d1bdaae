package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// ProxyOptions configure a [Proxy].
type ProxyOptions struct {
	Memory *Memory // what the agent stores, as far as it stores it by calls of its model
	// Upstream is the address of the model's server, up to and with /v1.
	Upstream string
	// Client asks it; nil is the default one.
	Client *http.Client
	Agent  gate.Agent
	Limits Limits
}

// Proxy stands between an agent and its model's server: the guard is shown each prompt, and
// judges each call of a reply before the agent gets it. It speaks the OpenAI chat protocol;
// what it cannot judge it does not hand on.
type Proxy struct {
	o    ProxyOptions
	gate *gate.Gate

	mu    sync.Mutex
	talks map[string]*talk
	order []string // of talks, by when they were last used

	gone withdrawn
}

// maxTalks bounds the sessions of an agent that are remembered at once.
const maxTalks = 256

// maxTalkBytes bounds what the contexts of all of them hold together.
const maxTalkBytes = 512 << 20

// talk is a session of the agent.
type talk struct {
	client *Client
	bytes  int // of its context, when it was last looked at; the proxy's lock guards it

	mu     sync.Mutex
	reader gate.Reader
	taken  map[[32]byte]taken // what came into the context, by the hash of what it is known by
}

// taken is a content of the context as the model may see it; "" for as it came.
type taken struct{ as string }

// NewProxy makes a proxy. No request is sent before one comes.
func NewProxy(o ProxyOptions) *Proxy {
	o.Client = cmp.Or(o.Client, http.DefaultClient)
	p := &Proxy{o: o, talks: map[string]*talk{}}
	p.gate = o.Agent.Gate(p)
	p.gate.First = rand.Uint64()
	return p
}

// Counts are what the proxy has seen so far.
func (p *Proxy) Counts() gate.Counts { return p.gate.Counts() }

// Handler answers chat requests, and hands on the list of models and embeddings. Any other
// way to ask a model is refused: nothing would be judged.
func (p *Proxy) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.chat)
	mux.HandleFunc("GET /v1/models", p.pass)
	mux.HandleFunc("POST /v1/embeddings", p.pass)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		proxyError(w, http.StatusNotFound, "the guard's proxy has no "+text.Clip(r.URL.Path, 100)+": an agent asks "+
			"/v1/chat/completions, where its calls can be judged")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := refused(r, ""); why != "" {
			proxyError(w, http.StatusForbidden, why)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func proxyError(w http.ResponseWriter, status int, why string) {
	send(w, status, map[string]any{"error": map[string]any{"message": why, "type": "guard", "param": nil, "code": nil}})
}

// request is a chat request: what the proxy reads of it, and all of it.
type request struct {
	list    []gate.Message
	tools   []string // their names
	session string
	stream  bool
	usage   bool // a stream ends with the usage
	fields  map[string]json.RawMessage
}

func readChat(body []byte) (q request, err error) {
	var in struct {
		Messages []json.RawMessage `json:"messages"`
		Session  string            `json:"prompt_cache_key"`
		Stream   bool              `json:"stream"`
		Options  struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		N         int             `json:"n"`
		Functions json.RawMessage `json:"functions"`
		Tools     []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := errors.Join(json.Unmarshal(body, &in), json.Unmarshal(body, &q.fields)); err != nil {
		return q, fmt.Errorf("reading the request: %w", err)
	}
	switch {
	case len(in.Messages) == 0:
		return q, errors.New("messages is empty")
	case in.N > 1:
		return q, errors.New("n is more than 1: one answer is judged at a time")
	case len(in.Functions) > 0:
		return q, errors.New("functions: calls are judged as tools")
	}
	q.session, q.stream, q.usage = in.Session, in.Stream, in.Options.Usage
	for _, t := range in.Tools {
		q.tools = append(q.tools, t.Function.Name)
	}
	for _, raw := range in.Messages {
		m, err := gate.ParseMessage(raw)
		if err != nil {
			return q, err
		}
		q.list = append(q.list, m)
	}
	return q, nil
}

func (p *Proxy) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, p.o.Limits.filled().Body))
	if err != nil {
		proxyError(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	q, err := readChat(body)
	if err != nil {
		proxyError(w, http.StatusBadRequest, err.Error())
		return
	}
	var last map[string]json.RawMessage // the upstream's newest answer
	ask := func(ctx context.Context, view []gate.Message) (reply gate.Reply, err error) {
		reply, last, err = p.ask(ctx, r, q, view)
		return reply, err
	}
	reply, err := p.gate.Ask(r.Context(), q.session, q.list, q.tools, ask)
	if status := (*statusError)(nil); errors.As(err, &status) { // the upstream's own no
		w.Header().Set("Content-Type", "application/json")
		if status.after != "" {
			w.Header().Set("Retry-After", status.after)
		}
		w.WriteHeader(status.code)
		_, _ = w.Write(status.body)
		return
	}
	if err != nil {
		proxyError(w, http.StatusInternalServerError, err.Error())
		return
	}
	p.answer(w, q, reply, last)
}

// statusError is an answer of the upstream that is none of the model.
type statusError struct {
	code  int
	after string
	body  []byte
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the model's server answered %d: %s", e.code, text.Clip(string(e.body), 300))
}

// send sends a request on, with the agent's own headers.
func (p *Proxy) send(ctx context.Context, r *http.Request, path string, body io.Reader) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, r.Method, strings.TrimSuffix(p.o.Upstream, "/")+path, body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		if !slices.Contains(notPassed, name) {
			out.Header[name] = values
		}
	}
	return p.o.Client.Do(out)
}

// notPassed are headers that are of one connection, or say what the client could read.
var notPassed = []string{"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Accept-Encoding",
	"Content-Length", "Proxy-Authorization", "Proxy-Connection"}

// ask asks the upstream for a whole reply.
func (p *Proxy) ask(ctx context.Context, r *http.Request, q request, view []gate.Message) (out gate.Reply,
	body map[string]json.RawMessage, err error) {
	var messages []json.RawMessage
	for i := range view {
		messages = append(messages, view[i].Encode())
	}
	fields := map[string]json.RawMessage{}
	for name, value := range q.fields {
		if name != "stream_options" {
			fields[name] = value
		}
	}
	fields["stream"] = json.RawMessage("false")
	if fields["messages"], err = json.Marshal(messages); err != nil {
		return out, nil, err
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return out, nil, err
	}
	resp, err := p.send(ctx, r, "/chat/completions", bytes.NewReader(b))
	if err != nil {
		return out, nil, fmt.Errorf("asking the model's server: %w", err)
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return out, nil, fmt.Errorf("reading the model's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return out, nil, &statusError{resp.StatusCode, resp.Header.Get("Retry-After"), b}
	}
	var in struct {
		Choices []struct {
			Message json.RawMessage `json:"message"`
			Finish  string          `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := remote.Exact(b, judged); err != nil { // the agent might read it otherwise
		return out, nil, fmt.Errorf("the model's answer can be read in two ways: %w", err)
	}
	if err := errors.Join(json.Unmarshal(b, &in), json.Unmarshal(b, &body)); err != nil || len(in.Choices) == 0 {
		return out, nil, fmt.Errorf("the model's server answered what is no chat completion: %s", text.Clip(string(b), 200))
	}
	if out.Message, err = gate.ParseMessage(in.Choices[0].Message); err != nil {
		return out, nil, fmt.Errorf("the model's answer: %w", err)
	}
	out.Text, out.Calls, out.Finish = out.Message.Content, out.Message.Calls, in.Choices[0].Finish
	out.Usage = model.Usage{Prompt: in.Usage.Prompt, Completion: in.Usage.Completion}
	return out, body, nil
}

// judged are the fields of an answer that say what the agent will do.
var judged = []string{"choices", "message", "content", "tool_calls", "function_call", "function", "name", "arguments"}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// answer sends a reply as it was asked for: whole, or as a stream.
func (p *Proxy) answer(w http.ResponseWriter, q request, reply gate.Reply, body map[string]json.RawMessage) {
	finish := "stop"
	if len(reply.Calls) > 0 {
		finish = "tool_calls"
	} else if reply.Finish == "length" || reply.Finish == "content_filter" {
		finish = reply.Finish
	}
	message := reply.Message.Encode()
	usage := map[string]json.RawMessage{}
	_ = json.Unmarshal(body["usage"], &usage)
	if len(usage) > 0 {
		usage["prompt_tokens"] = fmt.Append(nil, reply.Usage.Prompt)
		usage["total_tokens"] = fmt.Append(nil, reply.Usage.Prompt+reply.Usage.Completion)
		body["usage"], _ = json.Marshal(usage)
	}
	if !q.stream {
		body["choices"], _ = json.Marshal([]any{map[string]any{"index": 0, "message": message, "finish_reason": finish}})
		send(w, http.StatusOK, body)
		return
	}
	used := body["usage"]
	delete(body, "usage")
	body["object"] = json.RawMessage(`"chat.completion.chunk"`)
	w.Header().Set("Content-Type", "text/event-stream")
	piece := func(choices ...any) {
		body["choices"], _ = json.Marshal(append([]any{}, choices...))
		b, _ := json.Marshal(body)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
	}
	delta := map[string]json.RawMessage{}
	_ = json.Unmarshal(message, &delta)
	if calls := delta["tool_calls"]; calls != nil { // each says in a stream which it is
		var list []map[string]json.RawMessage
		_ = json.Unmarshal(calls, &list)
		for i := range list {
			list[i]["index"] = fmt.Append(nil, i)
		}
		delta["tool_calls"], _ = json.Marshal(list)
	}
	piece(map[string]any{"index": 0, "delta": delta, "finish_reason": nil})
	piece(map[string]any{"index": 0, "delta": struct{}{}, "finish_reason": finish})
	if q.usage && used != nil {
		body["usage"] = used
		piece()
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// pass hands a request on that asks no chat model.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) {
	resp, err := p.send(r.Context(), r, strings.TrimPrefix(r.URL.Path, "/v1"),
		http.MaxBytesReader(w, r.Body, p.o.Limits.filled().Body))
	if err != nil {
		proxyError(w, http.StatusBadGateway, err.Error())
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(resp.Body, maxAnswer))
}

// talk is that of a session; the one not used for longest makes room for a new one.
func (p *Proxy) talk(session string) *talk {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.talks[session]
	if t == nil {
		t = &talk{client: p.o.Memory.NewClient(), taken: map[[32]byte]taken{}}
		p.talks[session] = t
	}
	p.order = append(slices.DeleteFunc(p.order, func(s string) bool { return s == session }), session)
	bytes := 0
	for _, t := range p.talks {
		bytes += t.bytes
	}
	for len(p.order) > 1 && (len(p.order) > maxTalks || bytes > maxTalkBytes) {
		bytes -= p.talks[p.order[0]].bytes
		delete(p.talks, p.order[0])
		p.order = p.order[1:]
	}
	return t
}

// Look implements [gate.Judge]. What the user said and what tools returned comes into the
// conversation through the input gate, once; records in the prompt through the read gate.
func (p *Proxy) Look(ctx context.Context, session string, prompt []model.Message) (gate.Rule, error) {
	t := p.talk(session)
	t.mu.Lock()
	defer t.mu.Unlock()
	said, route := p.o.Agent.Says(prompt)
	bytes := 0
	err := t.client.do(ctx, memory.Origin{}, func(m *memory.Memory, _ memory.Origin) error {
		if len(m.Window()) == 0 || len(t.taken) > MaxContext {
			clear(t.taken) // the conversation's context was forgotten
		}
		seen := map[[32]byte]int{}
		calls := map[string]model.Call{} // by their ids
		for i := range prompt {
			msg := &prompt[i]
			for _, c := range msg.Calls {
				calls[c.ID] = c
			}
			origin, ok := p.origin(calls, msg)
			if !ok || msg.Content == "" {
				continue
			}
			key := sha256.Sum256(fmt.Appendf(nil, "%s %q %s", origin.Class, msg.CallID, msg.Content))
			seen[key]++
			key = sha256.Sum256(fmt.Append(key[:], seen[key]))
			as, known := t.taken[key]
			if !known {
				seg, err := m.Take(ctx, origin, i, msg.Content)
				if err != nil {
					return err
				}
				if seg.Text != msg.Content {
					as.as = seg.Text
				}
				t.taken[key] = as
			}
			msg.Content = cmp.Or(as.as, msg.Content)
		}
		_, bytes, _ = m.Context()
		var err error
		if t.reader.Mem = m; p.o.Memory.history != nil {
			if t.reader.Gone, err = p.gone.list(ctx, p.o.Memory.history); err != nil {
				return err
			}
		}
		return t.reader.Look(ctx, said, prompt)
	})
	p.mu.Lock()
	t.bytes = bytes
	p.mu.Unlock()
	return func(ctx context.Context, c model.Call) (gate.Ruling, error) { return p.judge(ctx, t, said, route, c) }, err
}

// origin is where a message comes from; none is that of the agent itself, or of its memory.
func (p *Proxy) origin(calls map[string]model.Call, m *model.Message) (memory.Origin, bool) {
	switch m.Role {
	case model.User:
		if p.o.Agent.User != nil {
			if _, own, _ := p.o.Agent.User(m.Content); own {
				return memory.Origin{}, false
			}
		}
		return memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}, true
	case model.ToolRole:
		c := calls[m.CallID]
		name := cmp.Or(m.Name, c.Name)
		switch c.Name = name; p.o.Agent.Does(c) {
		case gate.Recalls, gate.Stores, gate.Writes:
			return memory.Origin{}, false
		case gate.Asks:
			return memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}, true
		}
		return memory.Origin{Class: memory.External, Medium: memory.Tool, Source: text.Clip(cmp.Or(name, "a tool"), 100)}, true
	}
	return memory.Origin{}, false
}

// judge judges a call of the reply to a request, by what that said.
func (p *Proxy) judge(ctx context.Context, t *talk, said string, route memory.Route, c model.Call) (out gate.Ruling, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.client.do(ctx, memory.Origin{Class: memory.Agent}, func(m *memory.Memory, o memory.Origin) error {
		does := p.o.Agent.Does(c)
		c, undone := t.reader.Undo(c, does == gate.Stores || does == gate.Writes)
		own := gate.Own{Mem: m, Tools: p.o.Agent.Own, File: p.o.Agent.File, Store: StoreName, Told: toldWhy,
			Gone: t.reader.GoneIn}
		if o.Class == memory.External { // nobody can tell any more where a value comes from
			own.From = &o
		}
		if out, err = own.Call(ctx, said, route, c); undone && out.Changed == nil {
			out.Changed = &c
		}
		return err
	})
	if back := out.Back; back != nil {
		out.Back = func(ctx context.Context) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			return t.client.do(ctx, memory.Origin{}, func(*memory.Memory, memory.Origin) error { return back(ctx) })
		}
	}
	return out, err
}

// withdrawn are entries that somebody took back after a session had seen them: refused,
// retired, quarantined or rolled back. An agent that keeps its own memory may have them
// still.
type withdrawn struct {
	mu      sync.Mutex
	seen    uint64 // the last entry of the journal that was looked at
	records map[string]memory.Record
}

// list are all of a store now.
func (w *withdrawn) list(ctx context.Context, h *store.History) ([]memory.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, err := h.Last(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for what was taken back: %w", err)
	}
	causes := []memory.Cause{memory.CauseReject, memory.CauseQuarantine, memory.CauseRetire, memory.CauseRollback,
		memory.CauseUndo}
	f := store.Filter{Store: StoreName, From: w.seen + 1, To: last, Current: true}
	if w.records == nil {
		w.records = map[string]memory.Record{}
		f.Causes = causes
	}
	if last > w.seen {
		for v, err := range h.Versions(ctx, f) {
			switch {
			case err != nil:
				return nil, fmt.Errorf("looking for what was taken back: %w", err)
			case slices.Contains(causes, v.Cause) && !v.Record.State.Visible() && v.Record.Text != "":
				w.records[v.Record.ID] = v.Record
			default:
				delete(w.records, v.Record.ID)
			}
		}
		w.seen = last
	}
	return slices.SortedFunc(maps.Values(w.records), func(a, b memory.Record) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// toldWhy says why a call is stopped, with the number under which it waits for a person.
func toldWhy(v memory.Verdict, id string) (why string, passes bool) {
	var notes []string
	for _, f := range v.Findings {
		if f.Check == pending.Check && f.Argument == string(pending.Passes) {
			return "", true
		}
		note := f.Note
		if f.Argument != "" && f.Check != pending.Check {
			note = f.Argument + ": " + note
		}
		notes = append(notes, cmp.Or(note, f.Check))
	}
	if id != "" && v.Action != memory.Block {
		notes = append(notes, "it waits for a person's decision, as "+id)
	}
	return "not allowed: " + strings.Join(notes, "; "), false
}
