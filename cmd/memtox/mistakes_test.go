package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/results"
)

// mistakenServer is a server that refuses in one way: by a status, or what is asked for
// by a name that it has not. It counts what it was sent.
func mistakenServer(t *testing.T, status int) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/models") && status == http.StatusNotFound:
			_, _ = io.WriteString(w, `{"data":[{"id":"llama3.2"},{"id":"qwen3"}]}`)
		case status != 0:
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"no, by %s"}}`, r.Method)
		default:
			_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"Noted %d."},"finish_reason":"stop"}]}`,
				len(body))
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, requests
}

// What a model, a guard, a judge or an embedder is asked before the first trial says at
// once why nothing could come of the run, and nobody is asked for long.
func TestWhatDoesNotAnswerEndsTheRunBeforeItBegins(t *testing.T) {
	c := newConsole(t)
	c.getenv = func(name string) string { return map[string]string{"OPENAI_API_KEY": "sk-wrong-0123456789"}[name] }
	refused, n401 := mistakenServer(t, http.StatusUnauthorized)
	absent, n404 := mistakenServer(t, http.StatusNotFound)
	fine, _ := mistakenServer(t, 0)
	for _, test := range []struct {
		args  string
		says  []string
		count *atomic.Int64
	}{
		{"--model openai:m --base-url " + refused + "/v1",
			[]string{"--model: openai:m does not answer", "status 401", "environment variable OPENAI_API_KEY"}, n401},
		{"--model openai:lama3.2 --base-url " + absent + "/v1", []string{"status 404", "did you mean openai:llama3.2?"}, n404},
		{"--model openai:mistral --base-url " + absent + "/v1", []string{"status 404", "llama3.2, qwen3"}, n404},
		{"--defense none,judge:openai:m --set defense_base_url=" + refused + "/v1",
			[]string{"--defense", "openai:m does not answer", "status 401"}, n401},
		{"--judge llm:openai:m --set judge_base_url=" + refused + "/v1",
			[]string{"--judge: openai:m does not answer", "status 401"}, n401},
		{"--embeddings openai:m --set embeddings_base_url=" + refused + "/v1",
			[]string{"--embeddings: openai:m does not answer", "status 401"}, n401},
		{"--embeddings openai:m --set embeddings_base_url=" + fine + "/v1", []string{"--embeddings", "no vector"}, n401},
		{"--defense g=" + refused + "/screen", []string{"--defense: defense g does not answer", "status 401",
			"MEMTOX_GUARD_TOKEN"}, n401},
		{"--agent a=http://127.0.0.1:1/", []string{"--agent: agent a does not answer", "http://127.0.0.1:1",
			"connection refused", "start it first"}, n401},
	} {
		before := test.count.Load()
		code := c.run(append(strings.Fields("run --limit 50 --agent hermes --out r"), strings.Fields(test.args)...)...)
		said := c.err.String()
		if code != Usage || strings.Count(said, "\n") != 1 || test.count.Load()-before > 10 {
			t.Errorf("%s: exit code %d after %d requests: %s", test.args, code, test.count.Load()-before, said)
		}
		for _, says := range test.says {
			if !strings.Contains(said, says) {
				t.Errorf("%s does not say %q: %s", test.args, says, said)
			}
		}
		if _, err := os.Stat(filepath.Join(c.dir, "r")); err == nil {
			t.Fatalf("%s left a run behind", test.args)
		}
	}
}

// A server that turns away in the middle of a run stops it, and once that is mended the
// run goes on with what a run has that nothing befell.
func TestARunStopsWhenItsServerTurnsAway(t *testing.T) {
	c := newConsole(t)
	s, err := proxy.New(proxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var answered, refused atomic.Int64
	answered.Store(-1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answered.Add(1) > 40 {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.Handler().ServeHTTP(w, r)
	}))
	defer srv.Close()
	args := []string{"run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense", "none,keyword", "--limit", "10",
		"--concurrency", "1", "--model", "openai:reference", "--base-url", srv.URL + "/v1", "--out"}
	c.must(append(args, "whole")...)
	answered.Store(0)
	code := c.run(append(args, "r")...)
	said := c.err.String()
	if n := refused.Load(); code != Usage || n == 0 || n > 10 || !strings.Contains(said, "status 401") ||
		!strings.Contains(said, "memtox run --resume --out r") {
		t.Errorf("exit code %d after %d refusals: %s", code, n, said)
	}
	rows := 0
	for _, e := range rowsOf(t, filepath.Join(c.dir, "r")) {
		if e.Trial.Status == results.Error {
			rows++
		}
	}
	if rows > 10 {
		t.Errorf("%d trials were lost before the run stopped", rows)
	}
	answered.Store(-1000)
	c.run(append(args, "r", "--resume")...)
	whole := rowsOf(t, filepath.Join(c.dir, "whole"))
	if got := rowsOf(t, filepath.Join(c.dir, "r")); len(got) != len(whole) {
		t.Errorf("%d trials of %d after the run went on", len(got), len(whole))
	}
}
