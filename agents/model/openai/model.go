package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	api "github.com/sashabaranov/go-openai"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
)

// DefaultBaseURL is where requests go if nothing else is said.
const DefaultBaseURL = "https://api.openai.com/v1"

// KeyVariables are the environment variables that may hold the key.
func KeyVariables() []string { return []string{"OPENAI_API_KEY"} }

// Options say which model is asked, and how.
type Options struct {
	// Model is the name by which the server knows the model.
	Model string
	// BaseURL is the server's address up to and with /v1; "" is DefaultBaseURL.
	BaseURL string
	// Key is sent as bearer token; local servers need none.
	Key remote.Secret
	// Temperature is sent with each request; nil is 0.
	Temperature *float64
	// Extra are further members of each request: top_k, min_p, num_ctx,
	// reasoning_effort, whatever the server knows.
	Extra map[string]any
	// Omit leaves members out that the server refuses: temperature, seed.
	Omit []string
	// Stream asks for the answer in pieces, for gateways that cut a connection
	// on which nothing comes for long.
	Stream bool
	model.Settings
	// Client sends the requests. Models of one run share one.
	Client *remote.Client
	// Cassette, if it is not nil, is put between the protocol and the Client:
	// the Wrap of a cassette.Cassette. base is the path of the server's address.
	Cassette func(base string, next http.RoundTripper) http.RoundTripper
	// Replayed says that the cassette answers instead of a server.
	Replayed bool
}

// Model is one model of one server.
type Model struct {
	opts    Options
	http    *http.Client
	client  *api.Client
	base    string // URL of the server
	tools   model.ToolList
	fixed   []byte // members of every request that go-openai would not send
	limit   bool   // the server wants max_completion_tokens
	seed    bool
	context atomic.Int64 // the server's context, once it was asked for
}

// New returns a model. It sends nothing.
func New(o Options) (*Model, error) {
	if o.Model == "" {
		return nil, errors.New("an OpenAI-compatible model needs a name: openai:NAME")
	}
	if o.Client == nil {
		return nil, errors.New("an OpenAI-compatible model needs a remote.Client")
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	base, err := remote.BaseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	o.Client.Guard(o.Key)
	m := &Model{opts: o, seed: !slices.Contains(o.Omit, "seed")}
	m.limit = base.Hostname() == "api.openai.com"
	if m.fixed, err = members(o); err != nil {
		return nil, err
	}
	var rt http.RoundTripper = remote.Authorized(o.Client, o.Key)
	if o.Cassette != nil {
		rt = o.Cassette(base.Path, rt)
	}
	// The key is not part of this configuration: Authorized adds it further down.
	m.http, m.base = remote.HTTP(rt), base.String()
	c := api.DefaultConfig("")
	c.BaseURL, c.HTTPClient = base.String(), m.http
	m.client = api.NewClientWithConfig(c)
	return m, nil
}

// reserved are the members of a request that Extra cannot set.
func reserved(name string) bool {
	switch name {
	case "model", "messages", "tools", "stream", "stream_options", "seed", "temperature", "max_tokens", "max_completion_tokens", "n":
		return true
	}
	return false
}

// members encodes what goes into every request beside what go-openai sends. The
// temperature is among them since go-openai leaves out one of 0 (its issue 678),
// and the server would take its own default.
func members(o Options) ([]byte, error) {
	var b bytes.Buffer
	add := func(name string, v any) error {
		if slices.Contains(o.Omit, name) {
			return nil
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		k, _ := json.Marshal(name)
		j, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encoding the option %q of the model: %w", name, err)
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(j)
		return nil
	}
	t := 0.0
	if o.Temperature != nil {
		t = *o.Temperature
	}
	if err := add("temperature", t); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		if reserved(name) {
			return nil, fmt.Errorf("the option %q of the model cannot be set here: it has a setting of its own", name)
		}
		if err := add(name, o.Extra[name]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// withContent writes empty contents out: go-openai leaves them away, and servers
// refuse a message without one.
func withContent(body []byte) ([]byte, error) {
	var top map[string]json.RawMessage
	var msgs []map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return nil, fmt.Errorf("patching the request: %w", err)
	}
	if err := json.Unmarshal(top["messages"], &msgs); err != nil {
		return nil, fmt.Errorf("patching the messages of the request: %w", err)
	}
	for _, m := range msgs {
		if m["content"] == nil {
			m["content"] = json.RawMessage(`""`)
		}
	}
	b, err := json.Marshal(msgs)
	if err != nil {
		return nil, fmt.Errorf("patching the messages of the request: %w", err)
	}
	top["messages"] = b
	return json.Marshal(top)
}

// Name implements [model.Namer].
func (m *Model) Name() string { return "openai:" + m.opts.Model }

// IsLLM implements [model.Namer]. Only the reference model, which memtox itself
// serves under that name, is none.
func (m *Model) IsLLM() bool { return !remote.IsReference(m.opts.Model) }

// Deterministic implements [model.Namer]: temperature 0 and a seed do not make
// a server's answers repeat, a cassette does.
func (m *Model) Deterministic() bool { return m.opts.Replayed || remote.IsReference(m.opts.Model) }

// Next implements [model.Model].
func (m *Model) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	return model.Converse(ctx, m.Name(), req, m.opts.Settings, m.opts.Client.Redactor(), m.chat)
}

// chat sends one request. It does not go through go-openai's own call: that reads
// an answer of nothing as an empty one, and leaves members of the request out.
func (m *Model) chat(ctx context.Context, req model.Request) (model.Answer, error) {
	remote.CallOf(ctx).Judge = judge
	body, err := m.encode(req)
	if err != nil {
		return model.Answer{}, fmt.Errorf("encoding the request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return model.Answer{}, m.refine(ctx, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if m.opts.Stream {
		r.Header.Set("Accept", "text/event-stream")
	}
	resp, err := m.http.Do(r)
	if err != nil {
		return model.Answer{}, m.refine(ctx, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return model.Answer{}, m.refine(ctx, err)
	}
	a, spoilt := read(raw)
	a.Context = int(m.context.Load())
	if spoilt != nil {
		return a, spoilt
	}
	return a, nil
}

func (m *Model) encode(req model.Request) ([]byte, error) {
	r := api.ChatCompletionRequest{Model: m.opts.Model, Messages: messages(req), Stream: m.opts.Stream}
	if m.opts.Stream {
		r.StreamOptions = &api.StreamOptions{IncludeUsage: true}
	}
	if m.limit {
		r.MaxCompletionTokens = req.MaxTokens
	} else {
		r.MaxTokens = req.MaxTokens //lint:ignore SA1019 servers other than OpenAI's know no other name
	}
	if m.seed {
		seed := int(req.Seed)
		r.Seed = &seed
	}
	body, err := json.Marshal(r)
	empty := func(x model.Message) bool { return x.Content == "" && len(x.Calls) == 0 }
	if err == nil && slices.ContainsFunc(req.Messages, empty) {
		body, err = withContent(body)
	}
	if err != nil {
		return nil, err
	}
	if tools := m.tools.JSON(req.Tools); tools != nil { // encoded once for all requests
		body = remote.Splice(body, append([]byte(`"tools":`), tools...))
	}
	return remote.Splice(body, m.fixed), nil
}

func (m *Model) refine(ctx context.Context, err error) error {
	return model.Refine(ctx, m.opts.Client.Redactor(), err)
}

// judge recognises what servers say with an ordinary status: a tool call that
// they could not read (Groq, llama.cpp), a content filter (Azure), and with success
// an answer that may be there when it is asked for again.
func judge(status int, body []byte) *remote.Error {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(body, []byte(w)) })
	}
	switch {
	case status < 300:
		if k, says := insideSuccess(body); says {
			return &remote.Error{Kind: k}
		}
		if _, err := read(body); err != nil && err.Kind.Retryable() {
			return err
		}
	case status == http.StatusBadRequest && has("content_filter", "content_policy_violation"):
		return &remote.Error{Kind: remote.Filtered}
	case status >= 400 && has("tool_use_failed", "Failed to parse tool call", "error parsing tool call"):
		return &remote.Error{Kind: remote.Malformed}
	}
	return nil
}

// insideSuccess recognises an error that comes with a status of success, as
// gateways send it that have a server behind them.
func insideSuccess(body []byte) (remote.Kind, bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte(`{"error"`)) {
		return 0, false
	}
	var e struct {
		Error *struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == nil {
		return 0, false
	}
	switch code, err := strconv.Atoi(strings.Trim(string(e.Error.Code), `"`)); {
	case err == nil && code == http.StatusTooManyRequests:
		return remote.RateLimited, true
	case err == nil && code >= 400 && code < 500:
		return remote.Fatal, true
	}
	return remote.Transient, true
}

func messages(req model.Request) []api.ChatCompletionMessage {
	out := make([]api.ChatCompletionMessage, len(req.Messages))
	for i, m := range req.Messages {
		o := &out[i]
		o.Role, o.Content = string(m.Role), m.Content
		if m.Role == model.ToolRole {
			o.ToolCallID = m.CallID
		}
		for _, c := range m.Calls {
			o.ToolCalls = append(o.ToolCalls, api.ToolCall{ID: c.ID, Type: api.ToolTypeFunction, Function: api.FunctionCall{
				Name: c.Name, Arguments: string(model.AppendArgs(nil, req.Tools, c))}})
		}
	}
	return out
}

// Models lists the models that the server offers.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	list, err := m.client.ListModels(ctx)
	if err != nil {
		return nil, m.refine(remote.WithCall(ctx, &remote.Call{}), err)
	}
	var out []string
	for _, x := range list.Models {
		out = append(out, x.ID)
	}
	return out, nil
}

// Embed returns the vectors of texts by the server's embedding interface, with
// the given model, or this one.
func (m *Model) Embed(ctx context.Context, name string, texts []string) ([][]float32, error) {
	if name == "" {
		name = m.opts.Model
	}
	call := &remote.Call{Model: "openai:" + name}
	for _, t := range texts {
		call.Prompt += model.Tokens(t)
	}
	ctx = remote.WithCall(ctx, call)
	resp, err := m.client.CreateEmbeddings(ctx, api.EmbeddingRequestStrings{Input: texts, Model: api.EmbeddingModel(name), EncodingFormat: api.EmbeddingEncodingFormatFloat})
	if err != nil {
		return nil, m.refine(ctx, err)
	}
	call.Settle(resp.Usage.PromptTokens, 0)
	out := make([][]float32, len(texts))
	for _, d := range resp.Data {
		if d.Index < 0 || d.Index >= len(out) {
			return nil, &remote.Error{Kind: remote.Fatal, Err: fmt.Errorf("the answer holds vector %d of %d texts", d.Index, len(texts))}
		}
		out[d.Index] = d.Embedding
	}
	for i, v := range out {
		if len(v) == 0 {
			return nil, &remote.Error{Kind: remote.Fatal, Err: fmt.Errorf("the answer holds no vector of text %d of %d", i+1, len(texts))}
		}
	}
	return out, nil
}
