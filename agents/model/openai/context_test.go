package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/internal/remote"
)

// Each server says in its own words how much its context holds; what it does not say
// is not guessed.
func TestContext(t *testing.T) {
	for name, test := range map[string]struct {
		models    string
		path, own string // what the server says elsewhere
		want      int
	}{
		"OpenAI": {`{"data":[{"id":"m","object":"model","owned_by":"openai"},{"id":"n"}]}`, "", "", 0},
		"vLLM":   {`{"data":[{"id":"n","max_model_len":1},{"id":"m","max_model_len":4096}]}`, "", "", 4096},
		"llama.cpp": {`{"data":[{"id":"/models/m.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`,
			"/props", `{"default_generation_settings":{"n_ctx":4096}}`, 4096},
		"llama.cpp, silent": {`{"data":[{"id":"m","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`, "", "",
			131072},
		"LM Studio": {`{"data":[{"id":"m","owned_by":"organization_owner"}]}`, "/api/v0/models/m",
			`{"id":"m","max_context_length":32768,"loaded_context_length":16384}`, 16384},
		"OpenRouter":             {`{"data":[{"id":"m","context_length":131072},{"id":"n"}]}`, "", "", 131072},
		"Groq":                   {`{"data":[{"id":"m","context_window":8192},{"id":"n"}]}`, "", "", 8192},
		"Mistral":                {`{"data":[{"id":"m","max_context_length":32768},{"id":"n"}]}`, "", "", 32768},
		"another model":          {`{"data":[{"id":"n","max_model_len":1},{"id":"o","max_model_len":2}]}`, "", "", 0},
		"a number that is none":  {`{"data":[{"id":"m","max_model_len":"4096"}]}`, "", "", 0},
		"a number that is wrong": {`{"data":[{"id":"m","max_model_len":-1,"context_length":2048}]}`, "", "", 2048},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/v1/models":
				_, _ = w.Write([]byte(test.models))
			case test.path != "" && r.URL.Path == test.path:
				_, _ = w.Write([]byte(test.own))
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		c := remote.New(remote.Options{Attempts: 1})
		m, err := openai.New(model.ServerOptions{Model: "m", Address: h.URL + "/v1", Client: c})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := m.Context(t.Context()); n != test.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", name, n, err, test.want)
		}
		c.Close()
		h.Close()
	}
}

// Ollama behind this protocol names no context: it is that of the model as it is loaded
// for such requests, not as somebody had it loaded before.
func TestContextOfOllama(t *testing.T) {
	for name, test := range map[string]struct {
		entry, ps string
		want      int
	}{
		"of its library": {`{"id":"m","owned_by":"library"}`,
			`{"models":[{"name":"n","context_length":1},{"name":"m","context_length":%d}]}`, 4096},
		"somebody's": {`{"id":"hf.co/u/m","owned_by":"u"}`, `{"models":[{"name":"hf.co/u/m","context_length":%d}]}`,
			4096},
		"an old one":     {`{"id":"m","owned_by":"library"}`, `{"models":[{"name":"m","size":%d}]}`, 0},
		"another server": {`{"id":"m","owned_by":"library","max_model_len":2048}`, `{}`, 2048},
	} {
		loaded := 16384 // by somebody who asked for it
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.Method + r.URL.Path {
			case "GET/v1/models":
				_, _ = w.Write([]byte(`{"data":[` + test.entry + `,{"id":"other"}]}`))
			case "POST/api/generate":
				loaded = 4096
				_, _ = w.Write([]byte(`{"done":true,"done_reason":"load"}`))
			case "GET/api/ps":
				_, _ = fmt.Fprintf(w, test.ps, loaded)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		var entry struct{ ID string }
		if err := json.Unmarshal([]byte(test.entry), &entry); err != nil {
			t.Fatal(err)
		}
		c := remote.New(remote.Options{Attempts: 1})
		m, err := openai.New(model.ServerOptions{Model: entry.ID, Address: h.URL + "/v1", Client: c})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := m.Context(t.Context()); n != test.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", name, n, err, test.want)
		}
		c.Close()
		h.Close()
	}
}
