package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// openAI is the OpenAI chat protocol.
type openAI struct{}

// content is a message's text: a string, a list of parts, or nothing.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, (*string)(c))
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type != "text" {
			return fmt.Errorf("a part of a message is %q: only text is read here", text.Clip(p.Type, 40))
		}
		*c += content(p.Text)
	}
	return nil
}

func (openAI) parse(s *Server, body []byte) (request, error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role       string  `json:"role"`
			Content    content `json:"content"`
			Name       string  `json:"name"`
			ToolCallID string  `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools         json.RawMessage `json:"tools"`
		Stream        bool            `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Seed int64 `json:"seed"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("reading the request: %w", err)
	}
	if len(in.Messages) == 0 {
		return request{}, errors.New("messages is empty")
	}
	q := request{model: in.Model, stream: in.Stream, usage: in.StreamOptions.IncludeUsage}
	q.Seed = in.Seed
	var err error
	if q.Tools, err = s.tools.parse(in.Tools); err != nil {
		return q, err
	}
	q.Messages = make([]model.Message, len(in.Messages))
	for i, m := range in.Messages {
		o := &q.Messages[i]
		if o.Role, err = role(m.Role); err != nil {
			return q, err
		}
		o.Content = string(m.Content)
		if o.Role == model.ToolRole {
			o.CallID, o.Name = m.ToolCallID, m.Name
		}
		for _, c := range m.ToolCalls {
			args, err := model.ParseArgs(q.Tools, c.Function.Name, []byte(c.Function.Arguments))
			if err != nil {
				return q, fmt.Errorf("message %d, tool call %q: %w", i, text.Clip(c.Function.Name, 60), err)
			}
			o.Calls = append(o.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Args: args})
		}
	}
	named(q.Messages)
	return q, nil
}

func role(s string) (model.Role, error) {
	switch r := model.Role(s); r {
	case model.System, model.User, model.Assistant, model.ToolRole:
		return r, nil
	case "developer":
		return model.System, nil
	}
	return "", fmt.Errorf("there is no role %q: system, user, assistant, tool", text.Clip(s, 40))
}

func (openAI) fail(w http.ResponseWriter, status int, kind, message string) {
	sendJSON(w, status, map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}})
}

func (openAI) streamType() string { return "text/event-stream" }
func (openAI) malformed() bool    { return true }

type openAICall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAIUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type openAIMessage struct {
	Role    string       `json:"role,omitempty"`
	Content *string      `json:"content,omitempty"`
	Calls   []openAICall `json:"tool_calls,omitempty"`
}

type openAIChoice struct {
	Index   int            `json:"index"`
	Message *openAIMessage `json:"message,omitempty"`
	Delta   *openAIMessage `json:"delta,omitempty"`
	Finish  *string        `json:"finish_reason"`
}

type openAIAnswer struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int            `json:"created"`
	Model   string         `json:"model"`
	Choices []openAIChoice `json:"choices"`
	Usage   *openAIUsage   `json:"usage,omitempty"`
	System  string         `json:"system_fingerprint"`
}

func (openAI) frame(q request, object string, choices ...openAIChoice) openAIAnswer {
	if choices == nil {
		choices = []openAIChoice{}
	}
	return openAIAnswer{ID: "chatcmpl-reference", Object: object, Created: created, Model: q.model, Choices: choices, System: "memtox-reference"}
}

func usageOf(u model.Usage) *openAIUsage {
	return &openAIUsage{u.Prompt, u.Completion, u.Prompt + u.Completion}
}

func finish(r model.Reply) *string {
	f := "stop"
	if len(r.Calls) > 0 {
		f = "tool_calls"
	}
	return &f
}

func openAICalls(q request, calls []model.Call, bad bool) []openAICall {
	var out []openAICall
	for i, c := range calls {
		args := string(model.AppendArgs(nil, q.Tools, c))
		if bad && i == 0 {
			args = args[:len(args)-1] + `, "x": `
		}
		o := openAICall{ID: c.ID, Type: "function"}
		o.Function.Name, o.Function.Arguments = c.Name, args
		out = append(out, o)
	}
	return out
}

func (p openAI) whole(q request, r model.Reply, bad bool) []byte {
	a := p.frame(q, "chat.completion", openAIChoice{
		Message: &openAIMessage{Role: "assistant", Content: &r.Text, Calls: openAICalls(q, r.Calls, bad)}, Finish: finish(r)})
	a.Usage = usageOf(r.Usage)
	b, _ := json.Marshal(a) // strings and numbers always encode
	return b
}

func (p openAI) pieces(q request, r model.Reply, bad bool) [][]byte {
	var out [][]byte
	send := func(a openAIAnswer) {
		b, _ := json.Marshal(a)
		out = append(out, append(append([]byte("data: "), b...), "\n\n"...))
	}
	delta := func(m openAIMessage, f *string) {
		send(p.frame(q, "chat.completion.chunk", openAIChoice{Delta: &m, Finish: f}))
	}
	empty := ""
	delta(openAIMessage{Role: "assistant", Content: &empty}, nil)
	for part := range parts(r.Text) {
		delta(openAIMessage{Content: &part}, nil)
	}
	for i, c := range openAICalls(q, r.Calls, bad) {
		args := c.Function.Arguments
		c.Index, c.Function.Arguments = &i, ""
		delta(openAIMessage{Calls: []openAICall{c}}, nil)
		for part := range parts(args) {
			more := openAICall{Index: &i}
			more.Function.Arguments = part
			delta(openAIMessage{Calls: []openAICall{more}}, nil)
		}
	}
	delta(openAIMessage{}, finish(r))
	if q.usage {
		a := p.frame(q, "chat.completion.chunk")
		a.Usage = usageOf(r.Usage)
		send(a)
	}
	return append(out, []byte("data: [DONE]\n\n"))
}

// parts cuts a text into pieces as a model would send them, not within a
// character.
func parts(s string) func(func(string) bool) {
	const size = 24
	return func(yield func(string) bool) {
		for s != "" {
			n := min(size, len(s))
			for n < len(s) && s[n]&0xC0 == 0x80 {
				n++
			}
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
	}
}

func (p openAI) endless(q request) []byte {
	word := "and "
	b, _ := json.Marshal(p.frame(q, "chat.completion.chunk", openAIChoice{Delta: &openAIMessage{Content: &word}}))
	return append(append([]byte("data: "), b...), "\n\n"...)
}

func (s *Server) openAIModels(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int    `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := []entry{}
	for _, n := range s.names {
		list = append(list, entry{n, "model", created, "memtox"})
	}
	sendJSON(w, 200, map[string]any{"object": "list", "data": list})
}

func (s *Server) openAIEmbeddings(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model  string          `json:"model"`
		Input  json.RawMessage `json:"input"`
		Format string          `json:"encoding_format"`
	}
	body, err := readBody(w, r, s.opts.MaxBody)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err == nil && strings.EqualFold(in.Format, "base64") {
		err = errors.New("encoding_format is float here")
	}
	if err != nil {
		openAI{}.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	vectors, tokens, err := embed(bytes.TrimSpace(in.Input))
	if err != nil {
		openAI{}.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	type entry struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	list := []entry{}
	for i, v := range vectors {
		list = append(list, entry{"embedding", i, v})
	}
	sendJSON(w, 200, map[string]any{"object": "list", "model": in.Model, "data": list, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}})
}
