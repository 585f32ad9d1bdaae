package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/results"
)

// A run through a server, recorded and replayed, is the run in process; the key
// is in nothing that it leaves behind.
func TestRemoteRunsHaveTheDigestOfTheRunInProcess(t *testing.T) {
	s, err := proxy.New(proxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	defer h.Close()

	const key = "sk-planted-4b1c77d2e9f0"
	c := newConsole(t)
	c.getenv = func(name string) string {
		return map[string]string{"OPENAI_API_KEY": key, "OLLAMA_HOST": h.URL}[name]
	}
	digest := func(args ...string) string {
		t.Helper()
		var out struct{ Digest string }
		text := c.must(append([]string{"run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense", "none,keyword",
			"--limit", "30", "--format", "json"}, args...)...)
		if err := json.Unmarshal([]byte(text), &out); err != nil || out.Digest == "" {
			t.Fatalf("no digest: %v\n%s", err, text)
		}
		return out.Digest
	}
	want := digest("--out", "here")
	for name, args := range map[string][]string{
		"openai":   {"--model", "openai:reference", "--base-url", h.URL + "/v1"},
		"ollama":   {"--model", "ollama:reference"},
		"recorded": {"--model", "openai:reference", "--base-url", h.URL + "/v1", "--record", "tape"},
	} {
		if got := digest(append(args, "--out", name)...); got != want {
			t.Errorf("%s: digest %s, in process %s", name, got, want)
		}
	}
	if m, err := results.ReadManifest(filepath.Join(c.dir, "openai")); err != nil || !strings.Contains(fmt.Sprint(m.Pace),
		"openai:reference:map[greatest:") {
		t.Errorf("what the server bore: %v, %v", m, err)
	}
	h.Close() // from here on nobody answers
	replay := []string{"--model", "openai:reference", "--base-url", h.URL + "/v1", "--replay", "tape"}
	if got := digest(append(replay, "--out", "replayed")...); got != want {
		t.Errorf("replayed: digest %s, in process %s", got, want)
	}
	// What is not on the cassette is an error of its trial, never a live call.
	if code := c.run("run", "--dataset", "memtox-smoke", "--agent", "openclaw", "--defense", "none", "--limit", "4",
		"--model", "openai:reference",
		"--base-url", h.URL+"/v1", "--replay", "tape", "--out", "other"); code != BadNews && code != Inconclusive {
		t.Errorf("replaying another run: exit code %d", code)
	}
	for _, args := range [][]string{
		{"run", "--model", "openai:", "--out", "x"},
		{"run", "--model", "reference:naive", "--record", "x", "--out", "x"},
		{"run", "--model", "openai:m", "--record", "tape", "--out", "x"},
		{"run", "--model", "openai:m", "--record", "a", "--replay", "tape", "--out", "x"},
		{"run", "--model", "openai:m", "--replay", "absent", "--out", "x"},
		{"run", "--model", "ollama:m", "--base-url", "http://[bad", "--out", "x"},
	} {
		if code := c.run(args...); code != Usage || strings.Count(c.err.String(), "\n") != 1 {
			t.Errorf("memtox %s: exit code %d, %q", strings.Join(args, " "), code, c.err.String())
		}
	}
	err = filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(key)) {
			t.Errorf("the key stands in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
