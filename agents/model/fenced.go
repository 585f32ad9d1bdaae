package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The fenced protocol is for models whose server has no tool calling. The tools
// stand in the system prompt, a call is a fenced block of JSON in the model's
// text, and a result comes back in a message of the user:
//
//	```tool_call
//	{"name": "send_mail", "arguments": {"to": "dana@norvik.example"}}
//	```
//
// It needs nothing but plain chat, and roles that alternate, which some chat
// templates insist on.

const fence = "tool_call"

const fencedIntro = "\n\nYou can call tools. To call one, write a block like this, with the arguments as a JSON " +
	"object, and then stop; the result comes with the next message:\n\n```" + fence +
	"\n{\"name\": \"NAME\", \"arguments\": {\"PARAMETER\": \"VALUE\"}}\n```\n\nWrite several blocks to make several " +
	"calls. Write no block when you answer without a tool. The tools are:\n"

// Fenced turns a request with tools into one without, for a model that answers
// by the fenced protocol. The request itself is not changed.
func Fenced(req Request) Request {
	out := req
	out.Tools = nil
	out.Messages = make([]Message, 0, len(req.Messages)+1)
	add := func(role Role, text string) {
		if n := len(out.Messages); n > 0 && out.Messages[n-1].Role == role {
			out.Messages[n-1].Content += "\n\n" + text
			return
		}
		out.Messages = append(out.Messages, Message{Role: role, Content: text})
	}
	tools := fencedTools(req.Tools)
	if tools != "" && (len(req.Messages) == 0 || req.Messages[0].Role != System) {
		add(System, strings.TrimPrefix(tools, "\n\n"))
		tools = ""
	}
	for _, m := range req.Messages {
		switch m.Role {
		case System:
			add(System, m.Content+tools)
			tools = ""
		case Assistant:
			var b strings.Builder
			b.WriteString(m.Content)
			for _, c := range m.Calls {
				if b.Len() > 0 {
					b.WriteString("\n\n")
				}
				b.WriteString(FencedCall(req.Tools, c))
			}
			add(Assistant, b.String())
		case ToolRole:
			add(User, "Result of "+m.Name+":\n"+m.Content)
		default:
			add(m.Role, m.Content)
		}
	}
	return out
}

// FencedCall writes one call as the fenced protocol has it.
func FencedCall(tools []Tool, c Call) string {
	name, _ := json.Marshal(c.Name)
	return "```" + fence + "\n{\"name\": " + string(name) + ", \"arguments\": " + string(AppendArgs(nil, tools, c)) +
		"}\n```"
}

func fencedTools(tools []Tool) string {
	if len(tools) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(fencedIntro)
	for _, t := range tools {
		fmt.Fprintf(&b, "\n- %s: %s Parameters: %s", t.Name, t.Description, Schema(t))
	}
	return b.String()
}

// ParseFenced finds the calls in a model's text and the text around them. Blocks
// of another kind belong to the text, but for one: a block of JSON that is
// exactly a call of one of the tools, since many models write "json" there
// whatever they are told. An error is a block that is meant as a call and cannot
// be read.
func ParseFenced(tools []Tool, text string) (rest string, calls []RawCall, err error) {
	var out strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		info, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), "```")
		if !ok || strings.Contains(info, "`") {
			out.WriteString(lines[i])
			continue
		}
		info = strings.ToLower(strings.TrimSpace(info))
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "```" {
			end++
		}
		switch info {
		case fence, "json", "tool", "tool_code", "":
		default: // a block of something else, which may hold what looks like a call
			for _, l := range lines[i:min(end+1, len(lines))] {
				out.WriteString(l)
			}
			i = end
			continue
		}
		body := strings.Join(lines[i+1:end], "")
		found, bad := fencedCalls(tools, body, info == fence)
		switch {
		case bad != nil:
			return "", nil, bad
		case len(found) == 0:
			for _, l := range lines[i:min(end+1, len(lines))] {
				out.WriteString(l)
			}
		default:
			calls = append(calls, found...)
		}
		i = end
	}
	if len(calls) == 0 {
		return text, nil, nil
	}
	return strings.TrimSpace(out.String()), calls, nil
}

// fencedCalls reads the calls of one block: an object, a list of them, or
// several in a row. certain says that the block is marked as a call.
func fencedCalls(tools []Tool, body string, certain bool) ([]RawCall, error) {
	type call struct {
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
	}
	var list []call
	d := json.NewDecoder(strings.NewReader(body))
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			if !certain {
				return nil, nil
			}
			return nil, fmt.Errorf("the block is not JSON: %w", err)
		}
		var several []call
		var one call
		if json.Unmarshal(raw, &several) == nil {
			list = append(list, several...)
		} else if err := json.Unmarshal(raw, &one); err == nil {
			list = append(list, one)
		} else if certain {
			return nil, fmt.Errorf(`the block is not {"name": …, "arguments": …}: %w`, err)
		}
	}
	var out []RawCall
	for _, c := range list {
		if c.Arguments == nil {
			c.Arguments = c.Parameters
		}
		if !certain && (c.Arguments == nil || named(tools, c.Name).Name == "") {
			return nil, nil
		}
		if c.Name == "" {
			return nil, fmt.Errorf("the block names no tool")
		}
		out = append(out, RawCall{Name: c.Name, Args: c.Arguments})
	}
	if certain && len(out) == 0 {
		return nil, fmt.Errorf("the block is empty")
	}
	return out, nil
}
