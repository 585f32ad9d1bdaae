package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/internal/remote"
)

func summary(list []model.Check) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Name+":"+c.State.String())
	}
	return strings.Join(out, " ")
}

// mute is a model that ignores tools and seeds.
type mute struct{ calls int }

func (m *mute) Next(context.Context, model.Request) (model.Reply, error) {
	m.calls++
	return model.Reply{Text: fmt.Sprintf("<think>\nhm</think> Answer %d.\x1b[2J", m.calls),
		Usage: model.Usage{Prompt: 1, Completion: 1}}, nil
}

func TestExamine(t *testing.T) {
	_, base := start(t, proxy.Options{})
	for name, m := range clients(t, base, "reference", remote.Options{}, model.Settings{}) {
		got := model.Examine(context.Background(), m.(model.Subject), model.Examination{Warm: m})
		// The reference model has no temperature, so a seed changes nothing.
		if s := summary(got); s != "reachable:ok model:ok context:skipped answers:ok usage:ok tools:ok results:ok "+
			"repeats:ok seed:warning embeddings:ok" {
			t.Errorf("%s: %s\n%+v", name, s, got)
		}
	}
	_, base = start(t, proxy.Options{Models: map[string]model.Model{"mute": &mute{}}})
	m := clients(t, base, "mute", remote.Options{}, model.Settings{})["openai stream=false"]
	got := model.Examine(context.Background(), m.(model.Subject), model.Examination{Warm: m, Embeddings: "-"})
	if s := summary(got); s != "reachable:ok model:ok context:skipped answers:ok usage:ok thinking:warning "+
		"tools:failed repeats:warning seed:warning embeddings:skipped" {
		t.Errorf("%s\n%+v", s, got)
	}
	for _, c := range got {
		if strings.Contains(c.Detail, "\x1b") {
			t.Errorf("the detail %q holds a control character", c.Detail)
		}
	}

	c := remote.New(remote.Options{Attempts: 1})
	defer c.Close()
	unknown, err := openai.New(model.ServerOptions{Model: "gpt", Address: base + "/v1", Client: c})
	if err != nil {
		t.Fatal(err)
	}
	if s := summary(model.Examine(context.Background(), unknown,
		model.Examination{})); s != "reachable:ok model:warning context:skipped answers:failed" {
		t.Errorf("a model that is not there: %s", s)
	}
	nobody, err := openai.New(model.ServerOptions{Model: "gpt", Address: "http://127.0.0.1:1/v1",
		Client: remote.New(remote.Options{Attempts: 1, Timeout: time.Second})})
	if err != nil {
		t.Fatal(err)
	}
	got = model.Examine(context.Background(), nobody, model.Examination{})
	if s := summary(got); s != "reachable:failed" || !strings.Contains(got[0].Detail, "is a server listening") {
		t.Errorf("no server: %s %+v", s, got)
	}
}
