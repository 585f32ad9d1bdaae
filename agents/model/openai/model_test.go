package openai_test

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
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/internal/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted answers one request after the other and keeps them.
type scripted struct {
	mu      sync.Mutex
	answers []string // a body, or "STATUS body"
	bodies  []string
	headers []http.Header
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies, s.headers = append(s.bodies, string(b)), append(s.headers, r.Header)
	a := s.answers[min(len(s.bodies), len(s.answers))-1]
	status := 200
	if !strings.HasPrefix(a, "{") && !strings.HasPrefix(a, "data:") {
		_, _ = fmt.Sscan(a, &status)
		a = a[4:]
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(a, "data:") {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, a)
}

func start(t *testing.T, o model.ServerOptions, answers ...string) (*openai.Model, *scripted) {
	t.Helper()
	s := &scripted{answers: answers}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	o.Address = h.URL + "/v1"
	if o.Model == "" {
		o.Model = "m"
	}
	o.Client = remote.New(remote.Options{Attempts: 2, Backoff: time.Millisecond})
	t.Cleanup(o.Client.Close)
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

var (
	tools = []model.Tool{{Name: "send_mail", Description: "Send <b>.",
		Params: []model.Param{{Name: "to", Format: "email", Required: true}, {Name: "body"}}}}
	hello = model.Request{Seed: 42, Messages: []model.Message{{Role: model.User, Content: "Hello."}}}
)

const ok = `{"choices":[{"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":2}}`

func canonical(t *testing.T, s string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

// The body on the wire, whole: go-openai would leave out a temperature of 0 and
// empty contents.
func TestBodyOnTheWire(t *testing.T) {
	half := 0.5
	for name, test := range map[string]struct {
		o    model.ServerOptions
		req  model.Request
		want string
	}{
		"plain": {model.ServerOptions{}, hello, `{"model":"m","messages":[{"role":"user","content":"Hello."}],"stream":false,"temperature":0,"seed":42}`},
		"options": {model.ServerOptions{Temperature: &half, Settings: model.Settings{MaxTokens: 100}}, hello,
			`{"model":"m","messages":[{"role":"user","content":"Hello."}],"stream":false,"temperature":0.5,"seed":42,"max_tokens":100}`},
		"omit": {model.ServerOptions{Omit: []string{"temperature", "seed"}}, hello,
			`{"model":"m","messages":[{"role":"user","content":"Hello."}],"stream":false}`},
		"a conversation": {model.ServerOptions{Omit: []string{"temperature"}},
			model.Request{Tools: tools, MaxTokens: 7, Messages: []model.Message{
				{Role: model.System, Content: "Be good."}, {Role: model.User},
				{Role: model.Assistant, Calls: []model.Call{{ID: "c1", Name: "send_mail",
					Args: []model.Arg{{Name: "to", Value: "a@b.example"}}}}},
				{Role: model.ToolRole, CallID: "c1", Name: "send_mail"}, {Role: model.Assistant},
				{Role: model.User, Content: "And?"}}},
			`{"model":"m","stream":false,"seed":0,"max_tokens":7,"messages":[{"role":"system","content":"Be good."},{"role":"user","content":""},
			{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"send_mail","arguments":"{\"to\":\"a@b.example\"}"}}]},
			{"role":"tool","content":"","tool_call_id":"c1"},{"role":"assistant","content":""},{"role":"user","content":"And?"}],
			"tools":[{"type":"function","function":{"name":"send_mail","description":"Send <b>.","parameters":{"type":"object","properties":{"to":{"type":"string","description":"[format: email]"},"body":{"type":"string"}},"required":["to"]}}}]}`},
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

func TestOptionsAreChecked(t *testing.T) {
	c := remote.New(remote.Options{})
	for says, o := range map[string]model.ServerOptions{
		"needs a name":           {Client: c},
		"needs a remote.Client":  {Model: "m"},
		"holds a user or passwo": {Model: "m", Client: c, Address: "https://u:p@h/v1"},
	} {
		if _, err := openai.New(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
}

// Usage is the server's, and estimated where it gives none.
func TestUsage(t *testing.T) {
	m, _ := start(t, model.ServerOptions{}, "500 {}", ok)
	r, err := m.Next(context.Background(), hello)
	if err != nil || r.Usage.Prompt != 11 || r.Usage.Completion != 2 || r.Usage.Estimated || r.Usage.Calls != 2 ||
		r.Usage.Took <= 0 {
		t.Errorf("usage %+v, error %v", r.Usage, err)
	}
	m, _ = start(t, model.ServerOptions{}, `{"choices":[{"message":{"role":"assistant","content":"Twelve bytes"}}]}`)
	r, err = m.Next(context.Background(), hello)
	if err != nil || r.Usage.Prompt != 4+2 || r.Usage.Completion != 3 || !r.Usage.Estimated || r.Usage.Calls != 1 {
		t.Errorf("usage %+v, error %v", r.Usage, err)
	}
}

// Answers as servers really send them.
func TestAnswers(t *testing.T) {
	call := func(id, args string) string {
		return fmt.Sprintf(`{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"send_mail","arguments":%s}}]},"finish_reason":"tool_calls"}]}`, id, args)
	}
	stream := func(chunks ...string) string {
		s := ""
		for _, c := range chunks {
			s += `data: {"choices":[` + c + "]}\n\n"
		}
		return s + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\n\ndata: [DONE]\n\n"
	}
	for name, test := range map[string]struct {
		answers []string
		stream  bool
		want    string // text|call args, or an error's kind and text
		sent    int
	}{
		"a call": {[]string{call("c1", `"{\"body\":\"x\",\"to\":\"a@b.example\"}"`)}, false,
			`|c1 send_mail to=a@b.example body=x`, 1},
		"no arguments":     {[]string{call("c1", `""`)}, false, `|c1 send_mail`, 1},
		"content in parts": {[]string{`{"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"Hi "},{"type":"text","text":"there"}]}}]}`}, false, `Hi there|`, 1},
		"a refusal": {[]string{`{"choices":[{"message":{"role":"assistant","content":null,"refusal":"I won't."}}]}`},
			false, `I won't.|`, 1},
		"reasoning apart": {[]string{`{"choices":[{"message":{"role":"assistant","content":"Hi","reasoning_content":"They greet."}}]}`}, false, `Hi|`, 1},
		"malformed, then right": {[]string{call("c1", `"{\"to\": \"a@"`), call("c2", `"{\"to\":\"a@b.example\"}"`)},
			false, `|c2 send_mail to=a@b.example`, 2},
		"malformed twice": {[]string{call("c1", `"{\"to\": \"a@"`)}, false,
			`malformed tool call: send_mail {"to": "a@`, 2},
		"arguments not a string": {[]string{call("c1", `{"to":"a@b.example"}`)}, false, `broken tool call: `, 1},
		"the server could not read it": {[]string{`400 {"error":{"message":"tool_use_failed: bad","code":"tool_use_failed"}}`,
			ok}, false, `Hi.|`, 2},
		"filtered prompt": {[]string{`400 {"error":{"message":"no","code":"content_filter"}}`}, false,
			`filtered: no`, 1},
		"filtered answer":   {[]string{`{"choices":[{"message":{"role":"assistant","content":"I"},"finish_reason":"content_filter"}]}`}, false, `filtered: I`, 1},
		"a gateway's error": {[]string{`{"error":{"code":502,"message":"upstream"}}`, ok}, false, `Hi.|`, 2},
		"a gateway's refusal": {[]string{`{"error":{"code":402,"message":"no credit"}}`}, false,
			`fatal: no credit`, 1},
		"a gateway's limit": {[]string{`{"error":{"code":"429","message":"slow down"}}`}, false,
			`rate limit: slow down`, 2},
		"no choice":                      {[]string{`{"choices":[]}`}, false, `no answer: {"choices":[]}`, 2},
		"an error that says nothing":     {[]string{`{"error":"","choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`}, false, `Hi.|`, 1},
		"details that are an empty list": {[]string{`{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":70,"completion_tokens":2,"prompt_tokens_details":[]}}`}, false, `Hi.|`, 1},
		"another protocol":               {[]string{`{"choices":"none"}`}, false, `no answer: {"choices":"none"}`, 2},
		"stream": {[]string{stream(`{"delta":{"role":"assistant","content":""}}`,
			`{"delta":{"content":"Hi "}}`, `{"delta":{"content":"there"}}`, `{"delta":{},"finish_reason":"stop"}`)}, true,
			`Hi there|`, 1},
		"stream of calls": {[]string{stream(`{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"send_mail","arguments":""}}]}}`,
			`{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"send_mail","arguments":"{\"to\":"}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"\"x\"}"}}]},"finish_reason":"stop"}`)}, true,
			`|c1 send_mail|c2 send_mail to=x`, 1},
		"stream of calls all numbered 0": {[]string{stream(`{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"send_mail","arguments":"{}"}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"name":"send_mail","arguments":"{}"}}]},"finish_reason":"tool_calls"}`)}, true, `|c1 send_mail|c2 send_mail`, 1},
		"stream that is cut": {[]string{"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n",
			stream(`{"delta":{"content":"Hi"},"finish_reason":"stop"}`)}, true, `Hi|`, 2},
		"stream without choices": {[]string{stream()}, true, `no answer: `, 2},
		"a stream of nothing": {[]string{stream(`{"delta":{"role":"assistant"}}`,
			`{"delta":{},"finish_reason":"stop"}`)}, true, `|`, 1},
		"whole where a stream was asked for": {[]string{ok}, true, `Hi.|`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := start(t, model.ServerOptions{Stream: test.stream}, test.answers...)
			req := hello
			req.Tools = tools
			r, err := m.Next(context.Background(), req)
			got := r.Text + "|"
			for i, c := range r.Calls {
				if i > 0 {
					got += "|"
				}
				got += c.ID + " " + c.Name
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

// An answer that a server spoilt is none: an error with its kind, tried again where
// that may help.
func TestSpoiltAnswers(t *testing.T) {
	call := func(calls string) string {
		return `{"choices":[{"message":{"content":null,"tool_calls":` + calls + `},"finish_reason":"tool_calls"}]}`
	}
	said := func(finish string) string {
		return `{"choices":[{"message":{"content":"Hi."},"finish_reason":` + finish +
			`}],"usage":{"prompt_tokens":70,"completion_tokens":2}}`
	}
	usage := func(u string) string {
		return `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],"usage":` + u + `}`
	}
	for name, test := range map[string]struct {
		answer string
		stream bool
		kind   remote.Kind
	}{
		"no JSON":      {`<html>`, false, remote.NoAnswer},
		"null message": {`{"choices":[{"message":null,"finish_reason":"stop"}]}`, false, remote.NoAnswer},
		"no message":   {`{"choices":[{"finish_reason":"stop"}]}`, false, remote.NoAnswer},
		"null choices": {`{"choices":null}`, false, remote.NoAnswer},
		"no choices":   {`{"id":"x"}`, false, remote.NoAnswer},
		"null content": {`{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`, false,
			remote.NoAnswer},
		"content is a number": {`{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}`, false,
			remote.NoAnswer},
		"length":                 {said(`"length"`), false, remote.CutAnswer},
		"aborted":                {said(`"abort"`), false, remote.CutAnswer},
		"a bound of the gateway": {said(`"MAX_TOKENS"`), false, remote.CutAnswer},
		"a call cut within":      {`{"choices":[{"message":{"tool_calls":[{"function":{"name":"send_mail","arguments":"{\"to"}}]},"finish_reason":"length"}]}`, false, remote.CutAnswer},
		"stream, length":         {"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n", true, remote.CutAnswer},
		"stream without a reason": {"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n", true,
			remote.CutAnswer},
		"stream without an end": {"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n", true,
			remote.Transient},
		"stream that breaks off": {"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: " +
			"{\"error\":{\"message\":\"gone\"}}\n\ndata: [DONE]\n\n", true, remote.Transient},
		"stream with a broken line": {"data: {\"choices\":[{\"delta\":{\"con\n\ndata: " +
			"{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", true, remote.NoAnswer},
		"stream, usage is a list":    {"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}],\"usage\":[]}\n\ndata: [DONE]\n\n", true, remote.BadUsage},
		"tokens as a string":         {usage(`{"prompt_tokens":"70"}`), false, remote.BadUsage},
		"tokens below 0":             {usage(`{"prompt_tokens":70,"completion_tokens":-1}`), false, remote.BadUsage},
		"more tokens than there are": {usage(`{"prompt_tokens":1e300}`), false, remote.BadUsage},
		"a part of a token":          {usage(`{"prompt_tokens":70.5}`), false, remote.BadUsage},
		"tokens that are no number":  {usage(`{"prompt_tokens":NaN}`), false, remote.BadUsage},
		"a sum that is a string": {usage(`{"prompt_tokens":70,"completion_tokens":1,"total_tokens":"71"}`), false,
			remote.BadUsage},
		"usage is a text":              {usage(`"70"`), false, remote.BadUsage},
		"details that are a number":    {usage(`{"prompt_tokens":70,"prompt_tokens_details":7}`), false, remote.BadUsage},
		"details that are a list":      {usage(`{"prompt_tokens":70,"prompt_tokens_details":[7]}`), false, remote.BadUsage},
		"an error in words":            {`{"error":"overloaded","choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`, false, remote.Transient},
		"calls are no list":            {call(`"send_mail"`), false, remote.BrokenCall},
		"a call without function":      {call(`[{"id":"c1"}]`), false, remote.BrokenCall},
		"a call without a name":        {call(`[{"function":{"name":null,"arguments":"{}"}}]`), false, remote.BrokenCall},
		"arguments are a number":       {call(`[{"function":{"name":"send_mail","arguments":7}}]`), false, remote.BrokenCall},
		"calls are promised, not sent": {call(`[]`), false, remote.BrokenCall},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := start(t, model.ServerOptions{Stream: test.stream}, test.answer)
			req := hello
			req.Tools = tools
			r, err := m.Next(context.Background(), req)
			want := 1
			if test.kind.Retryable() {
				want = 2
			}
			if k, known := remote.KindOf(err); !known || k != test.kind || len(s.bodies) != want {
				t.Errorf("%+v, %v after %d requests; want %s after %d", r, err, len(s.bodies), test.kind, want)
			}
			if test.kind == remote.CutAnswer && strings.Contains(test.answer, "usage") && r.Usage.Prompt != 70 {
				t.Errorf("the tokens of a cut answer are not counted: %+v", r.Usage)
			}
		})
	}
}

// The key is sent as a bearer token and stands nowhere else.
func TestKey(t *testing.T) {
	const key = "sk-planted-9f3b7c1d5e"
	m, s := start(t, model.ServerOptions{Key: remote.NewSecret(key)},
		`401 {"error":{"message":"Incorrect API key provided: `+key+`"}}`)
	_, err := m.Next(context.Background(), hello)
	if got := s.headers[0].Get("Authorization"); got != "Bearer "+key {
		t.Errorf("authorization %q", got)
	}
	if all := fmt.Sprintf("%v %+v %#v %v %+v %#v", err, err, err, m, m, m); err == nil ||
		strings.Contains(all, "planted") {
		t.Errorf("the key shows: %s", all)
	}
	hidden := strings.Replace(key, "s", `\u0073`, 1)
	m, _ = start(t, model.ServerOptions{Key: remote.NewSecret(key)},
		`{"choices":[{"message":{"content":"Hi"},"finish_reason":"`+hidden+`"}]}`)
	if _, err := m.Next(context.Background(), hello); err == nil || strings.Contains(err.Error(), "planted") {
		t.Errorf("the key shows, or is a reason to finish: %v", err)
	}
	m, s = start(t, model.ServerOptions{}, ok)
	if _, err := m.Next(context.Background(), hello); err != nil || s.headers[0].Get("Authorization") != "" {
		t.Errorf("without a key: error %v, authorization %q", err, s.headers[0].Get("Authorization"))
	}
}

func TestNames(t *testing.T) {
	c := remote.New(remote.Options{})
	for _, test := range []struct {
		o         model.ServerOptions
		llm, same bool
	}{
		{model.ServerOptions{Model: "gpt-oss-120b"}, true, false},
		{model.ServerOptions{Model: "gpt-oss-120b", Replayed: true}, true, true},
		{model.ServerOptions{Model: "reference:naive"}, false, true}, {model.ServerOptions{Model: "reference"}, false, true},
		{model.ServerOptions{Model: "referenced"}, true, false},
	} {
		test.o.Client = c
		m, err := openai.New(test.o)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name() != "openai:"+test.o.Model || m.IsLLM() != test.llm || m.Deterministic() != test.same {
			t.Errorf("%s: LLM %v, deterministic %v", m.Name(), m.IsLLM(), m.Deterministic())
		}
	}
}
