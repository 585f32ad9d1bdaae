package openai

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/memtox/memtox/agents/model"
)

// sizes are the members by which servers say how many tokens a model's context
// holds, in its entry of /v1/models or elsewhere.
type sizes struct {
	ID            string
	Owner         string          `json:"owned_by"`
	MaxModelLen   json.RawMessage `json:"max_model_len"`         // vLLM, SGLang
	Loaded        json.RawMessage `json:"loaded_context_length"` // LM Studio
	ContextLength json.RawMessage `json:"context_length"`        // OpenRouter, Together
	ContextWindow json.RawMessage `json:"context_window"`        // Groq
	Max           json.RawMessage `json:"max_context_length"`    // Mistral, LM Studio
	Meta          struct {
		Context json.RawMessage `json:"n_ctx"`
		Trained json.RawMessage `json:"n_ctx_train"` // llama.cpp
	} `json:"meta"`
	Settings struct {
		Context json.RawMessage `json:"n_ctx"` // llama.cpp, in /props
	} `json:"default_generation_settings"`
}

func (s *sizes) context() int {
	for _, raw := range []json.RawMessage{s.Settings.Context, s.MaxModelLen, s.Meta.Context, s.Loaded,
		s.ContextLength, s.ContextWindow, s.Max, s.Meta.Trained} {
		if n, err := model.Count(raw); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// Context asks the server how many tokens its context for the model holds: 0 is what
// it does not say. Answers to prompts that fill it are errors from then on.
func (m *Model) Context(ctx context.Context) (int, error) {
	var list struct{ Data []sizes }
	if err := m.Ask(ctx, m.Base+"/models", nil, &list); err != nil {
		return 0, err
	}
	n := 0
	for _, s := range list.Data {
		// A server with one model gives it to whoever asks, by whatever name.
		if s.ID != m.Model && s.ID != m.Model+":latest" && len(list.Data) > 1 {
			continue
		}
		n = s.context()
		// Two servers say elsewhere what they really give.
		elsewhere := map[string]string{
			"llamacpp": "/props", "organization_owner": "/api/v0/models/" + url.PathEscape(s.ID)}[s.Owner]
		var real sizes
		if elsewhere != "" && m.Ask(ctx, strings.TrimSuffix(m.Base, "/v1")+elsewhere, nil, &real) == nil &&
			real.context() > 0 {
			n = real.context()
		}
		if n == 0 && (s.Owner == "library" || s.Owner != "" && strings.Contains("/"+s.ID, "/"+s.Owner+"/")) {
			n = m.ofOllama(ctx, s.ID)
		}
		break
	}
	m.Held.Store(int64(n))
	return n, nil
}

// ofOllama asks an Ollama behind this protocol, which owns its models by their
// namespace. Here no request can name the context that it wants, and a longer prompt
// is cut without a word. What the context is shows when the model is loaded as it is
// for such requests: whatever context it was loaded with before is given up then.
func (m *Model) ofOllama(ctx context.Context, id string) int {
	var running struct {
		Models []struct {
			Name    string          `json:"name"`
			Context json.RawMessage `json:"context_length"`
		} `json:"models"`
	}
	root := strings.TrimSuffix(m.Base, "/v1")
	load := map[string]any{"model": id, "stream": false}
	if m.Ask(ctx, root+"/api/generate", load, new(json.RawMessage)) != nil ||
		m.Ask(ctx, root+"/api/ps", nil, &running) != nil {
		return 0
	}
	for _, r := range running.Models {
		if n, err := model.Count(r.Context); err == nil && r.Name == id {
			return n
		}
	}
	return 0
}
