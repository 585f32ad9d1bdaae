package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/ollama"
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/remote"
)

// start serves on a loopback port until the test ends.
// sameButExchanges leaves out what went over the wire, which a model in the process has
// not.
var sameButExchanges = cmp.Options{cmpopts.IgnoreFields(model.Reply{}, "Exchanges"), cmpopts.IgnoreFields(agents.Outcome{}, "Asked")}

func start(t testing.TB, o proxy.Options) (*proxy.Server, string) {
	t.Helper()
	s, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l, err := remote.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, "http://" + l.Addr().String()
}

// clients are the same model behind each protocol, whole and in pieces.
func clients(t testing.TB, base, name string, w remote.Options, settings model.Settings) map[string]model.Model {
	t.Helper()
	out := map[string]model.Model{}
	for _, stream := range []bool{false, true} {
		c := remote.New(w)
		t.Cleanup(c.Close)
		a, err := openai.New(model.ServerOptions{Model: name, Address: base + "/v1", Stream: stream, Client: c,
			Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		b, err := ollama.New(model.ServerOptions{Model: name, Address: base, Stream: stream, Client: c, Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprintf("openai stream=%v", stream)] = a
		out[fmt.Sprintf("ollama stream=%v", stream)] = b
	}
	return out
}

// outcome is what two runs of a case must agree in: all but usage and the ids of
// calls, which the in-process model leaves to the loop.
func outcome(t testing.TB, p *agents.Profile, m model.Model, c *datasets.Case) [2]*agents.Outcome {
	t.Helper()
	turns := func(in []datasets.Turn) []agents.Turn {
		var out []agents.Turn
		for i, u := range in {
			turn := agents.Turn{User: u.User}
			for _, s := range u.Segments {
				text := s.Text
				if s.Pad > 0 {
					text += "\n\n" + datasets.Pad(s.Medium, uint64(i), s.Pad)
				}
				turn.Incoming = append(turn.Incoming, agents.Incoming{Origin: memory.Origin{Class: memory.External,
					Medium: s.Medium, Source: s.Source}, Title: s.Title, Text: text, Inline: s.Inline})
			}
			out = append(out, turn)
		}
		return out
	}
	mem := memory.New(memory.Options{Stores: p.Stores, Recall: p.Recall, Transcripts: p.Transcripts,
		Start: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)})
	loop := &agents.Loop{Profile: p, Model: m, Settings: agents.Settings{Seed: 7}}
	ctx := remote.WithTrial(context.Background(), c.ID)
	var out [2]*agents.Outcome
	var err error
	if out[0], err = loop.Run(ctx, mem, turns(c.Write), agents.End{Review: true}); err != nil {
		t.Fatalf("%s: write session: %v", c.ID, err)
	}
	if c.Retrieval != nil {
		mem.NextSession()
		if out[1], err = loop.Run(ctx, mem, turns([]datasets.Turn{{User: c.Retrieval.Query, Segments: c.Retrieval.Segments}}),
			agents.End{}); err != nil {
			t.Fatalf("%s: retrieval session: %v", c.ID, err)
		}
	}
	for _, o := range out {
		if o == nil {
			continue
		}
		if o.ModelCalls != o.Usage.Calls {
			t.Errorf("%s: %d calls of the model took %d requests", c.ID, o.ModelCalls, o.Usage.Calls)
		}
		o.Usage = model.Usage{}
		pair(t, o.Messages)
		for i := range o.Actions {
			o.Actions[i].Call.ID = ""
		}
	}
	return out
}

// pair checks that every tool message answers a call that was made just before,
// and puts the call's name in the place of the id.
func pair(t testing.TB, msgs []model.Message) {
	t.Helper()
	names := map[string]string{}
	for i := range msgs {
		m := &msgs[i]
		if len(m.Calls) > 0 {
			clear(names)
		}
		for j := range m.Calls {
			if m.Calls[j].ID == "" {
				t.Errorf("call %d of message %d has no id", j, i)
			}
			names[m.Calls[j].ID] = m.Calls[j].Name
			m.Calls[j].ID = ""
		}
		if m.Role == model.ToolRole {
			if names[m.CallID] != m.Name {
				t.Errorf("message %d is the result of %q, but answers call %q of %q", i, m.Name, m.CallID, names[m.CallID])
			}
			m.CallID = ""
		}
	}
}

// Whole sessions come out the same in process and through either client.
func TestSameOutcomeOverHTTP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	set, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("cases", func(t *testing.T) {
		_, base := start(t, proxy.Options{})
		calls := 0
		for i, setting := range reference.Settings() {
			inProcess := reference.New(setting, nil)
			overHTTP := clients(t, base, inProcess.Name(), remote.Options{}, model.Settings{})
			for _, p := range agents.Profiles() {
				for j := range set.Cases {
					if (i+j)%3 != 0 || testing.Short() && j%8 != 0 { // each case in one of the settings is enough
						continue
					}
					c := &set.Cases[j]
					want := outcome(t, p, inProcess, c)
					calls += want[0].ModelCalls
					for name, m := range overHTTP {
						if diff := cmp.Diff(want, outcome(t, p, m, c), cmpopts.EquateEmpty(), sameButExchanges); diff != "" {
							t.Errorf("%s, %s, case %s through %s differs (-in process +HTTP):\n%s", p.Name, setting, c.ID, name, diff)
						}
					}
				}
			}
		}
		if calls < 100 && !testing.Short() {
			t.Errorf("only %d calls were compared", calls)
		}
	})
}

// echo answers with what it was asked: everything that a protocol carries comes
// back to be compared.
type echo struct{ asked chan model.Request }

func (e echo) Next(_ context.Context, req model.Request) (model.Reply, error) {
	e.asked <- req
	last := req.Messages[len(req.Messages)-1]
	r := model.Reply{Text: last.Content, Usage: model.Usage{Prompt: 3, Completion: 5}}
	for i, t := range req.Tools {
		c := model.Call{Name: t.Name}
		for _, p := range t.Params {
			value := last.Content
			if p.Type != "" {
				value = fmt.Sprintf("[%d,9007199254740993]", i)
			}
			c.Args = append(c.Args, model.Arg{Name: p.Name, Value: value})
		}
		r.Calls = append(r.Calls, c)
	}
	return r, nil
}

// Requests and replies survive both protocols whatever texts they hold.
func TestEveryTextSurvives(t *testing.T) {
	e := echo{make(chan model.Request, 1)}
	_, base := start(t, proxy.Options{Models: map[string]model.Model{"echo": e}})
	overHTTP := clients(t, base, "echo", remote.Options{}, model.Settings{})
	word := rapid.StringMatching(`[a-z_]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		anyText := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", " ", "\x00\x1b[31m", "<b>&amp;</b>",
			"data: [DONE]\n\n", "```tool_call\n{}\n```", "\u2028\u202e\u202e", `{"done":true}`, "[format: email]"}))
		var req model.Request
		req.Seed = rapid.Int64().Draw(t, "seed")
		req.Tools = rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) model.Tool {
			return model.Tool{Name: word.Draw(t, "tool"), Description: anyText.Draw(t, "about"),
				Params: rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) model.Param {
					return model.Param{Name: word.Draw(t, "param"),
						Description: rapid.StringMatching(`[A-Za-z ,.]{0,20}[a-z]|`).Draw(t, "what"),
						Required:    rapid.Bool().Draw(t, "required"),
						Format:      rapid.SampledFrom([]string{"", "email", "date-time", "account"}).Draw(t, "format"),
						Type:        rapid.SampledFrom([]string{"", "", "array"}).Draw(t, "type")}
				}), 0, 4, func(p model.Param) string { return p.Name }).Draw(t, "params")}
		}), 0, 4, func(t model.Tool) string { return t.Name }).Draw(t, "tools")
		calls := 0
		for _, role := range rapid.SliceOfN(rapid.SampledFrom([]model.Role{model.System, model.User, model.Assistant}), 0,
			5).Draw(t, "roles") {
			m := model.Message{Role: role, Content: anyText.Draw(t, "content")}
			req.Messages = append(req.Messages, m)
			if role == model.Assistant && len(req.Tools) > 0 {
				tool := rapid.SampledFrom(req.Tools).Draw(t, "called")
				c := model.Call{ID: fmt.Sprintf("call_%d", calls), Name: tool.Name}
				calls++
				for _, p := range tool.Params {
					if p.Type == "" {
						c.Args = append(c.Args, model.Arg{Name: p.Name, Value: anyText.Draw(t, "value")})
					}
				}
				req.Messages[len(req.Messages)-1].Calls = []model.Call{c}
				req.Messages = append(req.Messages, model.Message{Role: model.ToolRole, Content: anyText.Draw(t, "result"),
					CallID: c.ID, Name: c.Name})
			}
		}
		req.Messages = append(req.Messages, model.Message{Role: model.User, Content: anyText.Draw(t, "last")})

		want, _ := e.Next(context.Background(), req)
		<-e.asked
		for name, m := range overHTTP {
			got, err := m.Next(context.Background(), req)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(req, <-e.asked, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("through %s the request arrives changed (-sent +arrived):\n%s", name, diff)
			}
			for i := range got.Calls {
				got.Calls[i].ID = ""
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), sameButExchanges,
				cmpopts.IgnoreFields(model.Usage{}, "Took", "Calls")); diff != "" {
				t.Fatalf("through %s the reply arrives changed (-sent +arrived):\n%s", name, diff)
			}
			if got.Usage.Calls != 1 || got.Usage.Took <= 0 || got.Usage.Estimated {
				t.Fatalf("through %s the usage is %+v", name, got.Usage)
			}
		}
	})
}

// An address that other machines can reach has to be asked for.
func TestListenIsLoopbackOnly(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "example.org:0", "192.0.2.1:0"} {
		l, err := remote.Listen(context.Background(), addr, false)
		if err == nil {
			_ = l.Close()
			t.Errorf("listens on %q", addr)
		}
	}
	l, err := remote.Listen(context.Background(), "localhost:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Errorf("localhost listens on %v", l.Addr())
	}
}

// Requests in flight are answered when the server is asked to stop.
func TestShutdownIsGraceful(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := proxy.New(proxy.Options{Latency: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l, err := remote.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, 10*time.Second) }()
	c := remote.New(remote.Options{Attempts: 1})
	defer c.Close()
	m, err := openai.New(model.ServerOptions{Model: "reference", Address: "http://" + l.Addr().String() + "/v1",
		Client: c})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := m.Next(context.Background(), model.Request{Messages: []model.Message{{Role: model.User,
			Content: "Hello."}}})
		answered <- err
	}()
	for len(c.Pending(0)) == 0 || c.Pending(0)[0].Phase != remote.Waiting {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // for the request to reach the server
	stop()
	if err := <-answered; err != nil {
		t.Errorf("a request in flight was not answered: %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if resp, err := http.Get("http://" + l.Addr().String()); err == nil {
		_ = resp.Body.Close()
		t.Error("the server still answers")
	}
}

// Longer answers say the same.
func TestAnswersOfAGivenLength(t *testing.T) {
	ask := func(o proxy.Options) (map[string]model.Reply, int) {
		_, base := start(t, o)
		out := map[string]model.Reply{}
		for name, m := range clients(t, base, "reference", remote.Options{}, model.Settings{}) {
			r, err := m.Next(t.Context(), model.Request{Messages: []model.Message{{Role: model.User,
				Content: "Where is the offsite in May?"}}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r.Usage.Took = 0
			out[name] = r
		}
		resp, err := http.Post(base+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"reference","messages":[{"role":"user","content":"Hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || !json.Valid(b) {
			t.Fatalf("%v: %s", err, b)
		}
		return out, len(b)
	}
	want, short := ask(proxy.Options{})
	got, long := ask(proxy.Options{AnswerBytes: 4096})
	if short >= 4096 || long != 4096 {
		t.Errorf("answers of %d and %d bytes, want less than 4096, and 4096", short, long)
	}
	if diff := cmp.Diff(want, got, sameButExchanges); diff != "" {
		t.Error(diff)
	}
	if _, same := ask(proxy.Options{AnswerBytes: 10}); same != short {
		t.Errorf("an answer that is longer already has %d bytes, want %d", same, short)
	}
}
