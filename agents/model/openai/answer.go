package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// body is an answer, or one piece of a stream: what is read of it. What servers
// spoil is kept raw until it is known what it would have been.
type body struct {
	Choices []struct {
		Index   int      `json:"index"`
		Message *message `json:"message"`
		Delta   *message `json:"delta"`
		Finish  string   `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type message struct {
	Content json.RawMessage `json:"content"` // a string, or a list of parts
	Refusal string          `json:"refusal"`
	Calls   json.RawMessage `json:"tool_calls"`
}

type call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function *struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// empty is absent too where a gateway writes a member that has nothing to say: some
// write an empty list for an empty object.
func empty(raw json.RawMessage) bool {
	return absent(raw) || string(raw) == `""` || string(bytes.Join(bytes.Fields(raw), nil)) == "[]"
}

// read reads an answer, whole or streamed. A server that gives no answer, a part of
// one or one that contradicts itself must never look like a model that says nothing:
// each is an error. The usage is right even beside one.
func read(raw []byte) (model.Answer, *remote.Error) {
	r := reader{at: map[int]int{}}
	err := r.pieces(raw)
	r.Text = r.text.String()
	if r.Text == "" {
		r.Text = r.refusal.String()
	}
	if e := r.count(); err == nil {
		err = e
	}
	if err == nil {
		err = r.complete()
	}
	return r.Answer, err
}

// reader puts the pieces of an answer together.
type reader struct {
	model.Answer
	text, refusal strings.Builder
	seen, content bool // a message, some content
	streamed      bool
	finish        string
	at            map[int]int // index of a call in the stream → in Calls
	usage         json.RawMessage
}

func (r *reader) pieces(raw []byte) *remote.Error {
	raw = bytes.TrimSpace(raw)
	if r.streamed = !bytes.HasPrefix(raw, []byte("{")); !r.streamed {
		return r.piece(raw)
	}
	for line := range bytes.Lines(raw) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue // a comment, the name of an event
		}
		if string(data) == "[DONE]" {
			break
		}
		if err := r.piece(data); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) piece(data []byte) *remote.Error {
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		// Some servers write NaN, which is no JSON.
		e, ok := errors.AsType[*json.SyntaxError](err)
		if ok && bytes.LastIndex(data[:e.Offset], []byte(`"usage"`)) > bytes.LastIndex(data, []byte(`"choices"`)) {
			return remote.Spoilt(remote.BadUsage, "the usage is no JSON: %w", err)
		}
		return remote.Spoilt(remote.NoAnswer, "the answer does not follow the protocol: %w", err)
	}
	if !empty(b.Error) {
		return &remote.Error{Kind: remote.Transient, Err: errors.New("the server broke off with an error"),
			Text: text.Clip(string(b.Error), 1000)}
	}
	if !absent(b.Usage) {
		r.usage = b.Usage
	}
	for _, c := range b.Choices {
		if c.Index != 0 {
			continue
		}
		if c.Finish != "" {
			r.finish = c.Finish
		}
		m := c.Message
		if r.streamed {
			m = c.Delta
		}
		if m == nil {
			continue
		}
		r.seen = true
		if err := r.message(m); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) message(m *message) *remote.Error {
	r.refusal.WriteString(m.Refusal)
	if !absent(m.Content) {
		r.content = true
		var s string
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(m.Content, &s) != nil && json.Unmarshal(m.Content, &parts) != nil {
			return remote.Spoilt(remote.NoAnswer, "the content is neither a text nor a list of texts")
		}
		r.text.WriteString(s)
		for _, p := range parts {
			r.text.WriteString(p.Text)
		}
	}
	if absent(m.Calls) {
		return nil
	}
	var calls []call
	if err := json.Unmarshal(m.Calls, &calls); err != nil {
		return remote.Spoilt(remote.BrokenCall, "the tool calls do not follow the protocol: %w", err)
	}
	for i, c := range calls {
		if c.Function == nil {
			return remote.Spoilt(remote.BrokenCall, "a tool call has no function")
		}
		// Some servers number every call 0: a new id is a new call, too.
		j, n := i, len(r.Calls)
		if r.streamed {
			j = c.Index
		}
		k, ok := r.at[j]
		if !ok || c.ID != "" && r.Calls[k].ID != "" && c.ID != r.Calls[k].ID {
			r.Calls = append(r.Calls, model.RawCall{})
			r.at[j], k = n, n
		}
		o := &r.Calls[k]
		if c.ID != "" {
			o.ID = c.ID
		}
		o.Name += c.Function.Name
		var args string
		if !absent(c.Function.Args) && json.Unmarshal(c.Function.Args, &args) != nil {
			return remote.Spoilt(remote.BrokenCall, "the arguments of a tool call are no string")
		}
		o.Args = append(o.Args, args...)
	}
	return nil
}

// count reads the usage: that of the last piece that has one.
func (r *reader) count() *remote.Error {
	if absent(r.usage) {
		return nil
	}
	var u struct {
		Prompt     json.RawMessage `json:"prompt_tokens"`
		Completion json.RawMessage `json:"completion_tokens"`
		Total      json.RawMessage `json:"total_tokens"`
		Details    json.RawMessage `json:"prompt_tokens_details"`
	}
	var details struct {
		Cached json.RawMessage `json:"cached_tokens"`
	}
	err := json.Unmarshal(r.usage, &u)
	if err == nil && !empty(u.Details) {
		err = json.Unmarshal(u.Details, &details)
	}
	if err != nil {
		return remote.Spoilt(remote.BadUsage, "the usage does not follow the protocol: %w", err)
	}
	var total int
	counts := map[*int]json.RawMessage{&r.Prompt: u.Prompt, &r.Completion: u.Completion, &total: u.Total,
		&r.Cached: details.Cached}
	var bad *remote.Error
	for to, from := range counts {
		n, err := model.Count(from)
		if err != nil {
			bad, _ = errors.AsType[*remote.Error](err)
		}
		*to = n
	}
	return bad
}

// complete reports an answer that is none, or not whole.
func (r *reader) complete() *remote.Error {
	switch strings.ToLower(r.finish) {
	case "content_filter", "safety", "sensitive":
		r.Filtered = true
		return nil
	case "stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence", "end_turn", "tool_use":
	case "":
		if r.seen && r.streamed {
			return remote.Spoilt(remote.CutAnswer, "the stream ends without a finish_reason")
		}
	default: // length, max_tokens, abort, error: a server that ends otherwise did not let the model end
		return remote.Spoilt(remote.CutAnswer, "the answer ended by finish_reason %q", text.Clip(r.finish, 40))
	}
	switch {
	case !r.seen:
		return remote.Spoilt(remote.NoAnswer, "the answer holds no message")
	case strings.EqualFold(r.finish, "tool_calls") && len(r.Calls) == 0:
		return remote.Spoilt(remote.BrokenCall, "the answer ended by finish_reason tool_calls, and holds no call")
	case r.Text == "" && !r.content && len(r.Calls) == 0 && !r.streamed: // a stream says of nothing only that it ended
		return remote.Spoilt(remote.NoAnswer, "the message holds neither content nor calls")
	}
	for i := range r.Calls {
		if r.Calls[i].Name == "" {
			return remote.Spoilt(remote.BrokenCall, "a tool call names no tool")
		}
	}
	return nil
}
