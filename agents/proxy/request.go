package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// request is a chat request.
type request struct {
	model  string
	stream bool
	usage  bool // a stream ends with the usage
	// session is what the client calls the conversation, where it does.
	session string
	model.Request
}

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

// parse reads a chat request. It has the fields of both protocols: what one of
// them lacks is empty.
func parse(body []byte, p protocol) (request, error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role       string  `json:"role"`
			Content    content `json:"content"`
			Name       string  `json:"name"`
			ToolName   string  `json:"tool_name"`
			ToolCallID string  `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string          `json:"name"`
					Arguments json.RawMessage `json:"arguments"` // an object, or the text of one
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools         json.RawMessage `json:"tools"`
		Stream        *bool           `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Session string `json:"prompt_cache_key"`
		Seed    int64  `json:"seed"`
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
	q := request{model: in.Model, stream: p.streams(), usage: in.StreamOptions.IncludeUsage, session: in.Session}
	if in.Stream != nil {
		q.stream = *in.Stream
	}
	q.Seed = cmp.Or(in.Seed, in.Options.Seed)
	var err error
	if q.Tools, err = model.ParseTools(in.Tools); err != nil {
		return q, err
	}
	q.Messages = make([]model.Message, len(in.Messages))
	called := map[string]string{} // tools by the ids of calls: OpenAI's protocol leaves the name out of a result
	for i, m := range in.Messages {
		o := &q.Messages[i]
		if o.Role, err = role(strings.ToLower(m.Role)); err != nil {
			return q, err
		}
		o.Content = string(m.Content)
		if o.Role == model.ToolRole {
			o.CallID, o.Name = m.ToolCallID, cmp.Or(m.Name, m.ToolName, called[m.ToolCallID])
		}
		for _, c := range m.ToolCalls {
			args, err := model.ParseArgs(q.Tools, c.Function.Name, c.Function.Arguments)
			if err != nil {
				return q, fmt.Errorf("message %d, tool call %q: %w", i, text.Clip(c.Function.Name, 60), err)
			}
			o.Calls = append(o.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Args: args})
			called[c.ID] = c.Function.Name
		}
	}
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

type sessionKey struct{}

func withSession(ctx context.Context, name string) context.Context {
	if name == "" {
		return ctx
	}
	return context.WithValue(ctx, sessionKey{}, name)
}

func sessionOf(ctx context.Context) string {
	name, _ := ctx.Value(sessionKey{}).(string)
	return name
}
