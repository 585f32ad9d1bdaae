package installed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
)

// What the reference model does where the user says where content is: it reads it there,
// by the product's own tools, before anything else. To the model it is as if a tool of the
// catalog had brought it.

// means are what an argument of a tool means that reads by a channel.
var means = map[string]string{external.ByFile: "path", external.ByPage: "destination", external.ByShell: "command",
	external.BySkill: "name"}

// argument is what the tool of a channel is told.
func (p pointer) argument() string {
	if p.via == external.ByShell {
		return "cat " + p.at
	}
	return p.at
}

// reader is the product's tool that reads by a channel; nil is none.
func (h *heard) reader(via string) *Tool {
	if c := h.product.Channels[via]; c != nil {
		return h.offered(func(k *Tool) bool { return k.Name == c.Tool })
	}
	return nil
}

// how is how a tool that reads by a channel is told where.
func (k *Tool) how(via string) string {
	if m := means[via]; k.Args[m] != "" {
		return m
	}
	return "path"
}

// reading are the calls that read what the newest turn speaks of.
func (h *heard) reading() (out []model.Call, err error) {
	for _, p := range h.unread {
		if p.via == external.ByMCP {
			if t := called(p.at); t != nil {
				out = append(out, model.Call{Name: h.product.MCPPrefix + t.Name,
					Args: []model.Arg{{Name: t.Params[0].Name, Value: "new"}}})
			}
			continue
		}
		if p.via == external.ByInstruction {
			continue
		}
		k := h.reader(p.via)
		if k == nil {
			return nil, fmt.Errorf("it does not offer the tool that reads what comes by %s", p.via)
		}
		at := p.argument()
		if p.via == external.BySkill && k.how(p.via) == "path" {
			at = h.located(p.at)
		}
		out = append(out, k.call(map[string]string{k.how(p.via): at}))
	}
	return out, nil
}

// located is the path of a skill as the file of the product has it.
func (h *heard) located(name string) string {
	into := strings.ReplaceAll(h.product.Channels[external.BySkill].Into, "{name}", name)
	_, path, _ := strings.Cut(into, "/")
	return path
}

// reads reports whether a call reads what the user spoke of.
func (h *heard) reads(c *model.Call, p pointer) bool {
	if p.via == external.ByMCP {
		t := called(p.at)
		return t != nil && c.Name == h.product.MCPPrefix+t.Name
	}
	k := h.product.Tool(c.Name)
	return k != nil && h.product.Channels[p.via] != nil && h.product.Channels[p.via].Tool == k.Name &&
		strings.Contains(k.get(c, k.how(p.via)), p.at)
}

// called is the tool of the catalog that reads what a person calls so.
func called(what string) *world.Tool {
	for _, t := range world.Offer(nil) {
		if t.Kind == world.Reads && t.Called == what {
			return t
		}
	}
	return nil
}

// fallback is the tool of the catalog for content that says nothing of itself.
var fallback = map[string]memory.Medium{external.ByFile: memory.File, external.ByPage: memory.Web,
	external.ByShell: memory.Script, external.BySkill: memory.Skill, external.ByInstruction: memory.File,
	external.ByJob: memory.Script}

// read adds content that was read, as a tool of the catalog that brings such.
func (h *heard) read(p pointer, id, content string, add func(model.Message)) {
	head, _, _ := strings.Cut(strings.TrimLeft(content, "\n"), "\n")
	label, _, _ := strings.Cut(head, ": ")
	t := world.Headed(label)
	if t == nil {
		t = world.Reader(fallback[p.via])
	}
	add(model.Message{Role: model.Assistant, Calls: []model.Call{{ID: id, Name: t.Name,
		Args: []model.Arg{{Name: t.Params[0].Name, Value: p.at}}}}})
	add(model.Message{Role: model.ToolRole, Name: t.Name, CallID: id, Content: strings.TrimLeft(content, "\n")})
}

// shown adds what the product showed by itself of what the newest turn speaks of.
func (h *heard) shown(add func(model.Message)) {
	h.unread = slices.DeleteFunc(h.unread, func(p pointer) bool {
		c := h.product.Channels[p.via]
		if p.via != external.ByInstruction && p.via != external.ByJob || c == nil {
			return false
		}
		texts := []string{h.script}
		if p.via == external.ByInstruction {
			s := Store{Heading: c.Heading}
			texts = s.shown(h.prompt, h.product.Prompt.Ends)
		}
		for i, text := range texts {
			h.read(p, fmt.Sprintf("shown-%d-%d", len(h.req.Messages), i), text, add)
		}
		return true
	})
}

// read is the text of an answer. One that is none stays what it is.
func (s *Shows) read(content string) string {
	var of any
	d := json.NewDecoder(bytes.NewReader([]byte(content)))
	if d.Decode(&of) != nil {
		return s.cut(content)
	}
	list := []any{of}
	if s.List != "" {
		list, _ = member(of, s.List).([]any)
	}
	var out []string
	for _, o := range list {
		if text, ok := member(o, s.Text).(string); ok {
			out = append(out, s.cut(text))
		}
	}
	if out == nil {
		return content
	}
	return strings.Join(out, "\n\n")
}

func (s *Shows) cut(text string) string {
	if s.Cut.Regexp == nil {
		return text
	}
	return s.Cut.ReplaceAllString(text, "")
}
