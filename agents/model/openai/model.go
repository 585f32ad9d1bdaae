package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
)

// DefaultBaseURL is where requests go if nothing else is said.
const DefaultBaseURL = "https://api.openai.com/v1"

// KeyVariables are the environment variables that may hold the key.
func KeyVariables() []string { return []string{"OPENAI_API_KEY"} }

// Model is one model of one server.
type Model struct {
	model.Server
	client *api.Client
	limit  bool // the server wants max_completion_tokens
}

// New returns a model; its address goes up to and with /v1. It sends nothing.
func New(o model.ServerOptions) (*Model, error) {
	base, err := remote.BaseURL(cmp.Or(o.Address, DefaultBaseURL))
	if err != nil {
		return nil, err
	}
	m := &Model{limit: base.Hostname() == "api.openai.com"}
	if err := m.Open(model.Protocol{Name: "openai", Stream: "text/event-stream", Path: "/chat/completions",
		Encode: m.encode, Read: read, Judge: judge}, base, o); err != nil {
		return nil, err
	}
	// The key is not part of this configuration: it is added further down.
	c := api.DefaultConfig("")
	c.BaseURL, c.HTTPClient = m.Base, m.HTTP
	m.client = api.NewClientWithConfig(c)
	return m, nil
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

// encode writes a request. It does not go through go-openai's own call: that reads
// an answer of nothing as an empty one, and leaves members of the request out.
func (m *Model) encode(req model.Request) ([]byte, error) {
	r := api.ChatCompletionRequest{Model: m.Model, Messages: messages(req), Stream: m.Stream}
	if m.Stream {
		r.StreamOptions = &api.StreamOptions{IncludeUsage: true}
	}
	if m.limit {
		r.MaxCompletionTokens = req.MaxTokens
	} else {
		r.MaxTokens = req.MaxTokens //lint:ignore SA1019 servers other than OpenAI's know no other name
	}
	if !slices.Contains(m.Omit, "seed") {
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
	if t := m.Sent(); t != nil {
		// go-openai leaves out a temperature of 0 (its issue 678), and the server would
		// take its own default.
		body = model.With(body, "temperature", strconv.AppendFloat(nil, *t, 'f', -1, 64))
	}
	return model.With(body, "tools", model.EncodeTools(req.Tools)), nil
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
		return nil, m.Refine(ctx, err)
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
	return m.Embedding(ctx, name, texts, func(ctx context.Context, name string) ([][]float32, int, error) {
		resp, err := m.client.CreateEmbeddings(ctx, api.EmbeddingRequestStrings{
			Input: texts, Model: api.EmbeddingModel(name), EncodingFormat: api.EmbeddingEncodingFormatFloat})
		if err != nil {
			return nil, 0, err
		}
		out := make([][]float32, len(texts))
		for _, d := range resp.Data {
			if d.Index < 0 || d.Index >= len(out) {
				return nil, 0, &remote.Error{Kind: remote.Fatal,
					Err: fmt.Errorf("the answer holds vector %d of %d texts", d.Index, len(texts))}
			}
			out[d.Index] = d.Embedding
		}
		return out, resp.Usage.PromptTokens, nil
	})
}
