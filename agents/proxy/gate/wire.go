package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// ParseMessage reads a message of the OpenAI chat protocol. What it says besides, such as
// pictures, stays in Raw. A call whose arguments cannot be read is an error: nobody could
// judge it.
func ParseMessage(raw json.RawMessage) (Message, error) {
	var in struct {
		Role     string            `json:"role"`
		Content  json.RawMessage   `json:"content"`
		Name     string            `json:"name"`
		CallID   string            `json:"tool_call_id"`
		Calls    []json.RawMessage `json:"tool_calls"`
		Function json.RawMessage   `json:"function_call"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Message{}, fmt.Errorf("reading a message: %w", err)
	}
	if len(in.Function) > 0 && string(in.Function) != "null" {
		return Message{}, errors.New("a message has function_call, which nothing judges: use tool_calls")
	}
	m := Message{Raw: raw}
	m.Role, m.CallID = model.Role(in.Role), in.CallID
	if m.Role == "developer" {
		m.Role = model.System
	}
	if m.Role == model.ToolRole {
		m.Name = in.Name
	}
	for _, p := range parts(in.Content) {
		m.Content += p.Text
	}
	for _, raw := range in.Calls {
		c, err := parseCall(raw)
		if err != nil {
			return m, err
		}
		m.Calls = append(m.Calls, c)
		m.raws = append(m.raws, raw)
	}
	return m, nil
}

func parseCall(raw json.RawMessage) (model.Call, error) {
	var in struct {
		ID       string `json:"id"`
		Function *struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return model.Call{}, fmt.Errorf("reading a call: %w", err)
	}
	if in.Function == nil || in.Function.Name == "" {
		return model.Call{}, errors.New("a call names no function")
	}
	args, err := model.ParseArgs(nil, "", in.Function.Args)
	if err != nil {
		return model.Call{}, fmt.Errorf("the call of %q: %w", text.Clip(in.Function.Name, 60), err)
	}
	return model.Call{ID: in.ID, Name: in.Function.Name, Args: args}, nil
}

// part is a text among the parts of a content.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func parts(content json.RawMessage) (out []part) {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []part{{"text", s}}
	}
	_ = json.Unmarshal(content, &out)
	return out
}

// Encode is the message in the OpenAI chat protocol: as it came, but for what was changed.
func (m *Message) Encode() json.RawMessage {
	if m.Raw != nil && !m.Changed {
		return m.Raw
	}
	fields := map[string]json.RawMessage{}
	if m.Raw != nil {
		_ = json.Unmarshal(m.Raw, &fields) // it was read before
	} else {
		fields["role"] = quoted(string(m.Role))
	}
	var was string
	for _, p := range parts(fields["content"]) {
		was += p.Text
	}
	if was != m.Content || fields["content"] == nil {
		fields["content"] = m.content(fields["content"])
	}
	if m.CallID != "" {
		fields["tool_call_id"] = quoted(m.CallID)
	}
	delete(fields, "tool_calls")
	if len(m.Calls) > 0 {
		var list []json.RawMessage
		for _, c := range m.Calls {
			list = append(list, m.call(c))
		}
		fields["tool_calls"], _ = json.Marshal(list)
	}
	b, _ := json.Marshal(fields)
	return b
}

// content is the changed text, with the parts beside it that are none.
func (m *Message) content(was json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(was, &list) != nil || list == nil {
		return quoted(m.Content)
	}
	one, _ := json.Marshal(part{"text", m.Content})
	out := []json.RawMessage{one}
	for _, raw := range list {
		var p part
		if json.Unmarshal(raw, &p) == nil && p.Type != "text" {
			out = append(out, raw)
		}
	}
	b, _ := json.Marshal(out)
	return b
}

// call is a call as it came, with its own id and with the arguments that were changed.
func (m *Message) call(c model.Call) json.RawMessage {
	fields, function := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	object := "{}"
	var was []model.Arg
	if raw := m.rawOf(c.ID); raw != nil {
		_ = json.Unmarshal(raw, &fields)
		_ = json.Unmarshal(fields["function"], &function)
		if of, err := parseCall(raw); err == nil {
			was = of.Args
		}
		if object = string(function["arguments"]); strings.HasPrefix(object, `"`) {
			_ = json.Unmarshal(function["arguments"], &object)
		}
	}
	if !slices.Equal(was, c.Args) || remote.Once([]byte(object), nil, nil) != nil { // one that stands twice stands once
		object = edited(object, was, c.Args)
	}
	function["name"], function["arguments"] = quoted(c.Name), quoted(object)
	fields["id"], fields["type"] = quoted(c.ID), quoted("function")
	fields["function"], _ = json.Marshal(function)
	b, _ := json.Marshal(fields)
	return b
}

// rawOf is how the call with an id came.
func (m *Message) rawOf(id string) json.RawMessage {
	for i, known := range m.ids {
		if known == id && i < len(m.raws) {
			return m.raws[i]
		}
	}
	for _, raw := range m.raws {
		if c, err := parseCall(raw); err == nil && c.ID == id {
			return raw
		}
	}
	return nil
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}
