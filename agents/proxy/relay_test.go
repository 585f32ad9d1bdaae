package proxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// passing lets everything pass.
type passing struct{}

func (passing) Look(context.Context, string, []model.Message) (gate.Rule, error) {
	return func(context.Context, model.Call) (gate.Ruling, error) { return gate.Ruling{}, nil }, nil
}

// hello is a model that says one word.
type hello struct{ asked int }

func (h *hello) Next(context.Context, model.Request) (model.Reply, error) {
	h.asked++
	return model.Reply{Text: "Hello."}, nil
}

// An agent that asks for ever fails its trial, and costs neither memory nor a paid model more
// than the bounds. What was taken counts no more.
func TestAnAgentThatAsksForEverFailsItsTrial(t *testing.T) {
	for name, c := range map[string]struct{ asks, bytes int }{"requests": {3, 1 << 20}, "bytes": {100, 3 * 1000}} {
		t.Run(name, func(t *testing.T) {
			m := &hello{}
			r, err := proxy.NewRelay(m)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			r.Bound(c.asks, c.bytes)
			tape, url, end := r.Begin(context.Background(), &gate.Gate{Judge: passing{}})
			defer end()
			ask := func() (int, string) {
				q, err := http.Post(url+"/chat/completions", "application/json",
					strings.NewReader(`{"model":"memtox","messages":[{"role":"user","content":"`+strings.Repeat("x", 1000)+`"}]}`))
				if err != nil {
					t.Fatal(err)
				}
				defer q.Body.Close()
				b, err := io.ReadAll(q.Body)
				if err != nil {
					t.Fatal(err)
				}
				return q.StatusCode, string(b)
			}
			for range 2 {
				for range 3 {
					if code, said := ask(); code != 200 {
						t.Fatal(code, said)
					}
				}
				if tape.Err() != nil {
					t.Fatal(tape.Err())
				}
				tape.Take()
			}
			for range 3 {
				ask()
			}
			if code, said := ask(); code != 500 || !strings.Contains(said, "asked its model too much") {
				t.Error(code, said)
			}
			prompts, _, err := tape.Take()
			if len(prompts) != 3 || m.asked != 9 || !errors.Is(err, proxy.ErrTooMuch) {
				t.Errorf("%d prompts are kept, the model was asked %d times: %v", len(prompts), m.asked, err)
			}
		})
	}
}
