package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// ollama is Ollama's chat protocol.
type ollama struct{}

func (ollama) streams() bool      { return true }
func (ollama) malformed() bool    { return false }
func (ollama) streamType() string { return "application/x-ndjson" }

func (ollama) fail(w http.ResponseWriter, status int, _, message string) {
	sendJSON(w, status, object{"error": message})
}

// line is a piece of an answer, the last one where it has the usage.
func (ollama) line(q request, content string, calls []object, end *model.Usage) []byte {
	message := object{"role": "assistant", "content": content}
	if calls != nil {
		message["tool_calls"] = calls
	}
	a := object{"model": q.model, "created_at": time.Unix(created, 0).UTC(), "message": message, "done": end != nil}
	if end != nil {
		a["done_reason"], a["prompt_eval_count"], a["eval_count"] = "stop", end.Prompt, end.Completion
	}
	return append(encode(a), '\n')
}

func ollamaCalls(q request, calls []model.Call) []object {
	var out []object
	for i, c := range calls {
		args := json.RawMessage(model.AppendArgs(nil, q.Tools, c))
		out = append(out, object{"id": c.ID, "function": object{"index": i, "name": c.Name, "arguments": args}})
	}
	return out
}

func (p ollama) whole(q request, r model.Reply, _ bool) []byte {
	return p.line(q, r.Text, ollamaCalls(q, r.Calls), &r.Usage)
}

func (p ollama) pieces(q request, r model.Reply, _ bool) [][]byte {
	var out [][]byte
	for part := range parts(r.Text) {
		out = append(out, p.line(q, string(part), nil, nil))
	}
	for _, c := range ollamaCalls(q, r.Calls) {
		out = append(out, p.line(q, "", []object{c}, nil))
	}
	return append(out, p.line(q, "", nil, &r.Usage))
}

func (p ollama) endless(q request) []byte { return p.line(q, "and ", nil, nil) }

func (ollama) embeddings(name string, vectors [][]float32, tokens int) object {
	if vectors == nil {
		vectors = [][]float32{}
	}
	return object{"model": name, "embeddings": vectors, "prompt_eval_count": tokens}
}

var details = object{
	"format": "none", "family": "memtox-reference", "parameter_size": "0", "quantization_level": "none"}

func (s *Server) ollamaTags(w http.ResponseWriter, _ *http.Request) {
	list := []object{}
	for _, n := range s.names {
		list = append(list, object{"name": n, "model": n, "modified_at": time.Unix(created, 0).UTC(),
			"size": 0, "digest": "", "details": details})
	}
	sendJSON(w, 200, object{"models": list})
}

func (s *Server) ollamaShow(w http.ResponseWriter, r *http.Request) {
	var in struct{ Model, Name string }
	if !s.read(w, r, ollama{}, &in) {
		return
	}
	if in.Model == "" {
		in.Model = in.Name
	}
	if _, ok := s.lookup(in.Model); !ok {
		ollama{}.fail(w, http.StatusNotFound, "", fmt.Sprintf("model %q not found", text.Clip(in.Model, 100)))
		return
	}
	sendJSON(w, 200, object{"details": details, "model_info": object{},
		"capabilities": []string{"completion", "tools", "embedding"}, "modified_at": time.Unix(created, 0).UTC()})
}
