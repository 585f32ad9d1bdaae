package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// ollama is Ollama's chat protocol.
type ollama struct{}

func (ollama) parse(s *Server, body []byte) (request, error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role       string `json:"role"`
			Content    string `json:"content"`
			ToolName   string `json:"tool_name"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string          `json:"name"`
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools   json.RawMessage `json:"tools"`
		Stream  *bool           `json:"stream"`
		Options struct {
			Seed int64 `json:"seed"`
		} `json:"options"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("reading the request: %w", err)
	}
	if len(in.Messages) == 0 {
		return request{}, errors.New("messages is empty")
	}
	q := request{model: in.Model, stream: in.Stream == nil || *in.Stream}
	q.Seed = in.Options.Seed
	var err error
	if q.Tools, err = s.tools.parse(in.Tools); err != nil {
		return q, err
	}
	q.Messages = make([]model.Message, len(in.Messages))
	for i, m := range in.Messages {
		o := &q.Messages[i]
		if o.Role, err = role(strings.ToLower(m.Role)); err != nil {
			return q, err
		}
		o.Content = m.Content
		if o.Role == model.ToolRole {
			o.CallID, o.Name = m.ToolCallID, m.ToolName
		}
		for _, c := range m.ToolCalls {
			args, err := model.ParseArgs(q.Tools, c.Function.Name, c.Function.Arguments)
			if err != nil {
				return q, fmt.Errorf("message %d, tool call %q: %w", i, text.Clip(c.Function.Name, 60), err)
			}
			o.Calls = append(o.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Args: args})
		}
	}
	named(q.Messages)
	return q, nil
}

func (ollama) fail(w http.ResponseWriter, status int, _, message string) {
	sendJSON(w, status, map[string]string{"error": message})
}

func (ollama) streamType() string { return "application/x-ndjson" }
func (ollama) malformed() bool    { return false }

type ollamaCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type ollamaMessage struct {
	Role    string       `json:"role"`
	Content string       `json:"content"`
	Calls   []ollamaCall `json:"tool_calls,omitempty"`
}

type ollamaAnswer struct {
	Model      string        `json:"model"`
	CreatedAt  time.Time     `json:"created_at"`
	Message    ollamaMessage `json:"message"`
	Done       bool          `json:"done"`
	DoneReason string        `json:"done_reason,omitempty"`
	Prompt     int           `json:"prompt_eval_count,omitempty"`
	Completion int           `json:"eval_count,omitempty"`
}

func (ollama) line(q request, m ollamaMessage, end *model.Usage) []byte {
	a := ollamaAnswer{Model: q.model, CreatedAt: time.Unix(created, 0).UTC(), Message: m}
	if end != nil {
		a.Done, a.DoneReason, a.Prompt, a.Completion = true, "stop", end.Prompt, end.Completion
	}
	b, _ := json.Marshal(a) // strings and numbers always encode
	return append(b, '\n')
}

func ollamaCalls(q request, calls []model.Call) []ollamaCall {
	var out []ollamaCall
	for i, c := range calls {
		o := ollamaCall{ID: c.ID}
		o.Function.Index, o.Function.Name, o.Function.Arguments = i, c.Name, model.AppendArgs(nil, q.Tools, c)
		out = append(out, o)
	}
	return out
}

func (p ollama) whole(q request, r model.Reply, _ bool) []byte {
	return p.line(q, ollamaMessage{"assistant", r.Text, ollamaCalls(q, r.Calls)}, &r.Usage)
}

func (p ollama) pieces(q request, r model.Reply, _ bool) [][]byte {
	var out [][]byte
	for part := range parts(r.Text) {
		out = append(out, p.line(q, ollamaMessage{"assistant", part, nil}, nil))
	}
	for _, c := range ollamaCalls(q, r.Calls) {
		out = append(out, p.line(q, ollamaMessage{"assistant", "", []ollamaCall{c}}, nil))
	}
	return append(out, p.line(q, ollamaMessage{Role: "assistant"}, &r.Usage))
}

func (p ollama) endless(q request) []byte {
	return p.line(q, ollamaMessage{"assistant", "and ", nil}, nil)
}

func (s *Server) ollamaTags(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		Name       string         `json:"name"`
		Model      string         `json:"model"`
		ModifiedAt time.Time      `json:"modified_at"`
		Size       int64          `json:"size"`
		Digest     string         `json:"digest"`
		Details    map[string]any `json:"details"`
	}
	list := []entry{}
	for _, n := range s.names {
		list = append(list, entry{Name: n, Model: n, ModifiedAt: time.Unix(created, 0).UTC(), Details: details()})
	}
	sendJSON(w, 200, map[string]any{"models": list})
}

func details() map[string]any {
	return map[string]any{"format": "none", "family": "memtox-reference", "parameter_size": "0", "quantization_level": "none"}
}

func (s *Server) ollamaShow(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model string `json:"model"`
		Name  string `json:"name"`
	}
	body, err := readBody(w, r, s.opts.MaxBody)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		ollama{}.fail(w, http.StatusBadRequest, "", err.Error())
		return
	}
	if in.Model == "" {
		in.Model = in.Name
	}
	if _, ok := s.lookup(in.Model); !ok {
		ollama{}.fail(w, http.StatusNotFound, "", fmt.Sprintf("model %q not found", text.Clip(in.Model, 100)))
		return
	}
	sendJSON(w, 200, map[string]any{"details": details(), "model_info": map[string]any{}, "capabilities": []string{"completion", "tools", "embedding"},
		"modified_at": time.Unix(created, 0).UTC()})
}

func (s *Server) ollamaEmbed(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model string          `json:"model"`
		Input json.RawMessage `json:"input"`
	}
	body, err := readBody(w, r, s.opts.MaxBody)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	var vectors [][]float32
	tokens := 0
	if err == nil {
		vectors, tokens, err = embed(in.Input)
	}
	if err != nil {
		ollama{}.fail(w, http.StatusBadRequest, "", err.Error())
		return
	}
	if vectors == nil {
		vectors = [][]float32{}
	}
	sendJSON(w, 200, map[string]any{"model": in.Model, "embeddings": vectors, "prompt_eval_count": tokens})
}
