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
	limit bool // the server wants max_completion_tokens
}

// New returns a model; its address goes up to and with /v1. It sends nothing.
func New(o model.ServerOptions) (*Model, error) {
	base, err := remote.BaseURL(cmp.Or(o.Address, DefaultBaseURL))
	if err != nil {
		return nil, err
	}
	m := &Model{limit: base.Hostname() == "api.openai.com"}
	return m, m.Open("openai", "text/event-stream", base, o)
}

// Next implements [model.Model].
func (m *Model) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	return model.Converse(ctx, m.Name(), req, m.Settings, m.Client.Redactor(), m.chat)
}

func (m *Model) chat(ctx context.Context, req model.Request) (model.Answer, error) {
	remote.CallOf(ctx).Judge = judge
	body, err := m.encode(req)
	if err != nil {
		return model.Answer{}, fmt.Errorf("encoding the request: %w", err)
	}
	return m.Chat(ctx, "/chat/completions", body, read)
}

// request is a chat request but for its tools.
type request struct {
	Model         string          `json:"model"`
	Messages      []turn          `json:"messages"`
	MaxTokens     int             `json:"max_tokens,omitempty"`
	MaxCompletion int             `json:"max_completion_tokens,omitempty"`
	Temperature   *float64        `json:"temperature,omitempty"`
	Stream        bool            `json:"stream"`
	StreamOptions map[string]bool `json:"stream_options,omitempty"`
	Seed          *int64          `json:"seed,omitempty"`
}

// turn is a message of a request.
type turn struct {
	Role    model.Role `json:"role"`
	Content *string    `json:"content,omitempty"`
	Calls   []made     `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

// made is a call that a model has made in an earlier turn.
type made struct {
	ID       string            `json:"id,omitempty"`
	Type     string            `json:"type"`
	Function map[string]string `json:"function"`
}

func (m *Model) encode(req model.Request) ([]byte, error) {
	r := request{Model: m.Model, Messages: turns(req), Stream: m.Stream, Temperature: m.Sent()}
	if m.Stream {
		r.StreamOptions = map[string]bool{"include_usage": true}
	}
	if m.limit {
		r.MaxCompletion = req.MaxTokens
	} else { // servers other than OpenAI's know no other name
		r.MaxTokens = req.MaxTokens
	}
	if !slices.Contains(m.Omit, "seed") {
		r.Seed = &req.Seed
	}
	body, err := json.Marshal(r)
	return model.WithTools(body, req.Tools), err
}

// turns writes an empty content out where a message has nothing else, which servers
// refuse, and then in all messages.
func turns(req model.Request) []turn {
	empty := slices.ContainsFunc(req.Messages, func(m model.Message) bool { return m.Content == "" && len(m.Calls) == 0 })
	out := make([]turn, len(req.Messages))
	for i, m := range req.Messages {
		o := &out[i]
		if o.Role = m.Role; m.Content != "" || empty {
			o.Content = &m.Content
		}
		if m.Role == model.ToolRole {
			o.CallID = m.CallID
		}
		for _, c := range m.Calls {
			o.Calls = append(o.Calls, made{c.ID, "function",
				map[string]string{"name": c.Name, "arguments": string(model.AppendArgs(nil, req.Tools, c))}})
		}
	}
	return out
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

// Models lists the models that the server offers.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	var list struct{ Data []struct{ ID string } }
	err := m.Ask(ctx, m.Base+"/models", nil, &list)
	var out []string
	for _, x := range list.Data {
		out = append(out, x.ID)
	}
	return out, err
}

// Embed returns the vectors of texts by the server's embedding interface, with
// the given model, or this one.
func (m *Model) Embed(ctx context.Context, name string, texts []string) ([][]float32, error) {
	return m.Embedding(ctx, name, texts, func(ctx context.Context, name string) ([][]float32, int, error) {
		var answer struct {
			Data []struct {
				Index     int
				Embedding []float32
			}
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		err := m.Ask(ctx, m.Base+"/embeddings",
			map[string]any{"model": name, "input": texts, "encoding_format": "float"}, &answer)
		out := make([][]float32, len(texts))
		for _, d := range answer.Data {
			if d.Index < 0 || d.Index >= len(out) {
				return nil, 0, &remote.Error{Kind: remote.Fatal,
					Err: fmt.Errorf("the answer holds vector %d of %d texts", d.Index, len(texts))}
			}
			out[d.Index] = d.Embedding
		}
		return out, answer.Usage.Prompt, err
	})
}
