package ollama_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/ollama"
	"github.com/memtox/memtox/internal/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted answers one request after the other and keeps them.
type scripted struct {
	mu      sync.Mutex
	answers []string // a body, or "STATUS body"
	bodies  []string
	headers []http.Header
	paths   []string
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies, s.headers, s.paths = append(s.bodies, string(b)), append(s.headers, r.Header),
		append(s.paths, r.Method+" "+r.URL.Path)
	a := s.answers[min(len(s.bodies), len(s.answers))-1]
	status := 200
	if !strings.HasPrefix(a, "{") {
		_, _ = fmt.Sscan(a, &status)
		a = a[4:]
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.Contains(string(b), `"stream":true`) {
		w.Header().Set("Content-Type", "application/x-ndjson")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, a)
}

func start(t *testing.T, o model.ServerOptions, answers ...string) (*ollama.Model, *scripted) {
	t.Helper()
	s := &scripted{answers: answers}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	o.Address, o.Model = h.URL, "m"
	o.Client = remote.New(remote.Options{Attempts: 2, Backoff: time.Millisecond})
	t.Cleanup(o.Client.Close)
	m, err := ollama.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

var (
	tools = []model.Tool{{Name: "send_mail", Description: "Send <b>.",
		Params: []model.Param{{Name: "to", Format: "email", Required: true}, {Name: "amount", Type: "integer"}}}}
	hello = model.Request{Seed: 42, Messages: []model.Message{{Role: model.User, Content: "Hello."}}}
)

const ok = `{"message":{"role":"assistant","content":"Hi."},"done":true,"prompt_eval_count":11,"eval_count":2}`

func canonical(t *testing.T, s string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

func TestBodyOnTheWire(t *testing.T) {
	half := 0.5
	for name, test := range map[string]struct {
		o    model.ServerOptions
		req  model.Request
		want string
	}{
		"plain": {model.ServerOptions{}, hello, `{"model":"m","messages":[{"role":"user","content":"Hello."}],"stream":false,"truncate":false,"shift":false,"options":{"temperature":0,"seed":42,"num_ctx":16384}}`},
		"options": {model.ServerOptions{Temperature: &half, Context: 4096, Omit: []string{"seed"},
			Settings: model.Settings{MaxTokens: 100}}, hello,
			`{"model":"m","messages":[{"role":"user","content":"Hello."}],"stream":false,"truncate":false,"shift":false,"options":{"temperature":0.5,"num_ctx":4096,"num_predict":100}}`},
		"a conversation": {model.ServerOptions{Omit: []string{"temperature", "num_ctx"}},
			model.Request{Tools: tools, Messages: []model.Message{
				{Role: model.System, Content: "Be good."}, {Role: model.User},
				{Role: model.Assistant, Calls: []model.Call{{ID: "c1", Name: "send_mail",
					Args: []model.Arg{{Name: "to", Value: "a@b.example"}, {Name: "amount", Value: "12345678901234567890"}}}}},
				{Role: model.ToolRole, CallID: "c1", Name: "send_mail"}}},
			`{"model":"m","stream":false,"truncate":false,"shift":false,"options":{"seed":0},"messages":[{"role":"system","content":"Be good."},{"role":"user","content":""},
			{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"index":0,"name":"send_mail","arguments":{"to":"a@b.example","amount":12345678901234567890}}}]},
			{"role":"tool","content":"","tool_name":"send_mail","tool_call_id":"c1"}],
			"tools":[{"type":"function","function":{"name":"send_mail","description":"Send <b>.","parameters":{"type":"object","properties":{"to":{"type":"string","description":"[format: email]"},"amount":{"type":"integer"}},"required":["to"]}}}]}`},
	} {
		m, s := start(t, test.o, ok)
		r, err := m.Next(context.Background(), test.req)
		if err != nil || r.Text != "Hi." {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if diff := cmp.Diff(canonical(t, test.want), canonical(t, s.bodies[0])); diff != "" {
			t.Errorf("%s (-want +sent):\n%s", name, diff)
		}
	}
}

// Answers as servers really send them.
func TestAnswers(t *testing.T) {
	call := func(args string) string {
		return `{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"send_mail","arguments":` +
			args + `}}]},"done":true}`
	}
	for name, test := range map[string]struct {
		answers []string
		stream  bool
		want    string // text|calls, or an error's kind and text
		sent    int
	}{
		"a call": {[]string{call(`{"amount":12345678901234567890,"to":"a@b.example"}`)}, false,
			`|send_mail to=a@b.example amount=12345678901234567890`, 1},
		"arguments as a string":         {[]string{call(`"{\"to\":\"x\"}"`)}, false, `|send_mail to=x`, 1},
		"arguments of another kind":     {[]string{call(`["x"]`), call(`{"to":"x"}`)}, false, `|send_mail to=x`, 2},
		"thinking apart":                {[]string{`{"message":{"role":"assistant","content":"Hi","thinking":"They greet."},"done":true}`}, false, `Hi|`, 1},
		"the parser failed, then right": {[]string{`500 {"error":"error parsing tool call: raw='{\"to', err=unexpected end of JSON input"}`, call(`{"to":"x"}`)}, false, `|send_mail to=x`, 2},
		"the parser failed twice":       {[]string{`500 {"error":"error parsing tool call: raw='{\"to', err=unexpected end of JSON input"}`}, false, `malformed tool call: error parsing tool call: raw='{"to`, 2},
		"no such model": {[]string{`404 {"error":"model 'm' not found"}`}, false,
			`fatal: model 'm' not found`, 1},
		"stream": {[]string{"{\"message\":{\"content\":\"Hi " +
			"\"}}\n{\"message\":{\"content\":\"there\",\"tool_calls\":[{\"function\":{\"name\":\"a\",\"arguments\":{}}}]}}\n{\"done\":true}\n"}, true, `Hi there|a`, 1},
		"stream that is cut": {[]string{"{\"message\":{\"content\":\"Hi\"}}\n",
			"{\"message\":{\"content\":\"Hi\"},\"done\":true}\n"}, true, `Hi|`, 2},
		"stream with an error": {[]string{"{\"message\":{\"content\":\"Hi\"}}\n{\"error\":\"out of memory\"}\n"}, true,
			`transient: out of memory`, 2},
		"stream, the parser failed": {[]string{"{\"error\":\"error parsing tool call: raw=''\"}\n", ok}, true, `Hi.|`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := start(t, model.ServerOptions{Stream: test.stream}, test.answers...)
			req := hello
			req.Tools = tools
			r, err := m.Next(context.Background(), req)
			got := r.Text + "|"
			for _, c := range r.Calls {
				got += c.Name
				for _, a := range c.Args {
					got += " " + a.Name + "=" + a.Value
				}
			}
			if err != nil {
				e, ok := err.(*remote.Error)
				if !ok {
					t.Fatalf("error %v (%T), want a *remote.Error", err, err)
				}
				got = e.Kind.String() + ": " + e.Text
			}
			if got != test.want && (err == nil || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got %q, error %v; want %q", got, err, test.want)
			}
			if len(s.bodies) != test.sent || r.Usage.Calls != test.sent {
				t.Errorf("%d requests were sent, usage says %d, want %d", len(s.bodies), r.Usage.Calls, test.sent)
			}
		})
	}
}

// An answer that the server spoilt is none: an error with its kind.
func TestSpoiltAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		stream bool
		kind   remote.Kind
	}{
		"null message":      {`{"message":null,"done":true}`, false, remote.NoAnswer},
		"no message":        {`{"done":true}`, false, remote.NoAnswer},
		"null content":      {`{"message":{"role":"assistant","content":null},"done":true}`, false, remote.NoAnswer},
		"content is a list": {`{"message":{"content":[]},"done":true}`, false, remote.NoAnswer},
		"it loaded only": {`{"message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}`, false,
			remote.NoAnswer},
		"length": {`{"message":{"content":"Hi"},"done":true,"done_reason":"length","prompt_eval_count":70}`,
			false, remote.CutAnswer},
		"not done": {`{"message":{"content":"Hi"}}`, false, remote.CutAnswer},
		"stream, length": {"{\"message\":{\"content\":\"Hi\"}}\n{\"done\":true,\"done_reason\":\"length\"}\n", true,
			remote.CutAnswer},
		"tokens as a string": {`{"message":{"content":"Hi"},"done":true,"eval_count":"2"}`, false, remote.BadUsage},
		"tokens below 0":     {`{"message":{"content":"Hi"},"done":true,"prompt_eval_count":-2}`, false, remote.BadUsage},
		"calls are no list":  {`{"message":{"content":"","tool_calls":"send_mail"},"done":true}`, false, remote.BrokenCall},
		"no name": {`{"message":{"content":"","tool_calls":[{"function":{"arguments":{}}}]},"done":true}`, false,
			remote.BrokenCall},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := start(t, model.ServerOptions{Stream: test.stream}, test.answer)
			r, err := m.Next(context.Background(), hello)
			want := 1
			if test.kind.Retryable() {
				want = 2
			}
			if k, known := remote.KindOf(err); !known || k != test.kind || len(s.bodies) != want {
				t.Errorf("%+v, %v after %d requests; want %s after %d", r, err, len(s.bodies), test.kind, want)
			}
		})
	}
	m, _ := start(t, model.ServerOptions{}, `{"message":{"content":""},"done":true,"done_reason":"stop"}`)
	if r, err := m.Next(context.Background(), hello); err != nil || r.Text != "" {
		t.Errorf("an empty answer: %+v, %v", r, err)
	}
}

// The context is what the model was trained for, and no more than is asked for. What
// the server does not say is not guessed.
func TestContext(t *testing.T) {
	for show, want := range map[string][2]int{ // with num_ctx sent (4096), and left out
		`{}`: {0, 0},
		`{"model_info":{"general.architecture":"llama","llama.context_length":2048}}`:                           {2048, 2048},
		`{"model_info":{"llama.context_length":131072},"parameters":"stop   \"<s>\"\nnum_ctx          8192\n"}`: {4096, 8192},
		`{"model_info":{"llama.context_length":131072}}`: {4096,
			131072},
		`{"model_info":{"llama.context_length":"2048"},"parameters":"num_ctx much"}`: {0, 0},
	} {
		for i, omit := range [][]string{nil, {"num_ctx"}} {
			m, _ := start(t, model.ServerOptions{Context: 4096, Omit: omit}, show)
			if n, err := m.Context(context.Background()); n != want[i] || err != nil {
				t.Errorf("%s, without %v: %d, %v; want %d", show, omit, n, err, want[i])
			}
		}
	}
}

// The key is sent as a bearer token and stands nowhere else.
func TestKey(t *testing.T) {
	const key = "planted-9f3b7c1d5e"
	m, s := start(t, model.ServerOptions{Key: remote.NewSecret(key)}, `401 {"error":"unauthorized: `+key+`"}`)
	_, err := m.Next(context.Background(), hello)
	if got := s.headers[0].Get("Authorization"); got != "Bearer "+key {
		t.Errorf("authorization %q", got)
	}
	if all := fmt.Sprintf("%v %+v %#v %v %+v %#v", err, err, err, m, m, m); err == nil ||
		strings.Contains(all, "planted") {
		t.Errorf("the key shows: %s", all)
	}
}

func TestHost(t *testing.T) {
	for in, want := range map[string]string{
		"": "http://127.0.0.1:11434", "localhost": "http://localhost:11434", "gpu-box:8080": "http://gpu-box:8080",
		":8080":   "http://127.0.0.1:8080",
		"0.0.0.0": "http://127.0.0.1:11434", "0.0.0.0:80": "http://127.0.0.1:80", "[::1]:9": "http://[::1]:9",
		"::1": "http://[::1]:11434", "http://h": "http://h:80",
		"https://h": "https://h:443", "https://h:1/p/": "https://h:1/p", " 192.0.2.1:5 ": "http://192.0.2.1:5",
		"h/p":     "http://h:11434/p",
		"ftp://h": "", "h:99999": "", "h:x": "", "http://u:p@h": "", "u:secret@h": "", "h?key=secret": "",
	} {
		u, err := ollama.Host(in)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q is taken as %v", in, u)
		case want == "" && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error repeats a secret: %v", in, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q becomes %v, error %v; want %s", in, u, err, want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	c := remote.New(remote.Options{})
	for says, o := range map[string]model.ServerOptions{
		"needs a name":          {Client: c},
		"needs a remote.Client": {Model: "m"},
	} {
		if _, err := ollama.New(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
}
