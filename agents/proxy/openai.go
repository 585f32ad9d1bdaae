package proxy

import (
	"encoding/json"
	"iter"
	"net/http"
	"slices"

	"github.com/memtox/memtox/agents/model"
)

// object is a JSON object of an answer.
type object = map[string]any

func encode(o object) []byte {
	b, _ := json.Marshal(o) // strings and numbers always encode
	return b
}

// openAI is the OpenAI chat protocol.
type openAI struct{}

func (openAI) streams() bool      { return false }
func (openAI) malformed() bool    { return true }
func (openAI) streamType() string { return "text/event-stream" }

func (openAI) fail(w http.ResponseWriter, status int, kind, message string) {
	sendJSON(w, status, object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}})
}

func (openAI) frame(q request, kind string, choices ...object) object {
	if choices == nil {
		choices = []object{}
	}
	return object{"id": "chatcmpl-reference", "object": kind, "created": created, "model": q.model, "choices": choices,
		"system_fingerprint": "memtox-reference"}
}

func usageOf(u model.Usage) object {
	return object{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion}
}

func finish(r model.Reply) string {
	if len(r.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// arguments are those of a call as JSON, or what only begins like it.
func arguments(q request, c model.Call, bad bool) string {
	args := string(model.AppendArgs(nil, q.Tools, c))
	if bad {
		args = args[:len(args)-1] + `, "x": `
	}
	return args
}

func (p openAI) whole(q request, r model.Reply, bad bool) []byte {
	message := object{"role": "assistant", "content": r.Text}
	var calls []object
	for i, c := range r.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": arguments(q, c, bad && i == 0)}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	a := p.frame(q, "chat.completion", object{"index": 0, "message": message, "finish_reason": finish(r)})
	a["usage"] = usageOf(r.Usage)
	return encode(a)
}

func event(o object) []byte { return append(append([]byte("data: "), encode(o)...), "\n\n"...) }

func (p openAI) chunk(q request, delta object, finish any) []byte {
	return event(p.frame(q, "chat.completion.chunk", object{"index": 0, "delta": delta, "finish_reason": finish}))
}

func (p openAI) pieces(q request, r model.Reply, bad bool) [][]byte {
	out := [][]byte{p.chunk(q, object{"role": "assistant", "content": ""}, nil)}
	for part := range parts(r.Text) {
		out = append(out, p.chunk(q, object{"content": string(part)}, nil))
	}
	for i, c := range r.Calls {
		call := object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}
		out = append(out, p.chunk(q, object{"tool_calls": []object{call}}, nil))
		for part := range parts(arguments(q, c, bad && i == 0)) {
			more := object{"index": i, "function": object{"arguments": string(part)}}
			out = append(out, p.chunk(q, object{"tool_calls": []object{more}}, nil))
		}
	}
	out = append(out, p.chunk(q, object{}, finish(r)))
	if q.usage {
		a := p.frame(q, "chat.completion.chunk")
		a["usage"] = usageOf(r.Usage)
		out = append(out, event(a))
	}
	return append(out, []byte("data: [DONE]\n\n"))
}

// parts cuts a text into pieces as a model would send them, not within a
// character.
func parts(s string) iter.Seq[[]rune] { return slices.Chunk([]rune(s), 24) }

func (p openAI) endless(q request) []byte { return p.chunk(q, object{"content": "and "}, nil) }

func (openAI) embeddings(name string, vectors [][]float32, tokens int) object {
	list := []object{}
	for i, v := range vectors {
		list = append(list, object{"object": "embedding", "index": i, "embedding": v})
	}
	return object{"object": "list", "model": name, "data": list,
		"usage": object{"prompt_tokens": tokens, "total_tokens": tokens}}
}

func (s *Server) openAIModels(w http.ResponseWriter, _ *http.Request) {
	list := []object{}
	for _, n := range s.names {
		list = append(list, object{"id": n, "object": "model", "created": created, "owned_by": "memtox"})
	}
	sendJSON(w, 200, object{"object": "list", "data": list})
}
