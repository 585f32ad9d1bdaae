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
	// Each call of a model outside the process is in the transcript as it went over the wire.
	for name, wire := range map[string]string{"openai": `"choices"`, "ollama": `"done_reason"`, "here": ""} {
		r, err := results.OpenReader(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		answers, calls := 0, 0
		for e, err := range r.Entries(results.TrialsOnly) {
			if err != nil {
				t.Fatal(err)
			}
			line, err := r.Transcript(e.Trial.ID)
			if err != nil || bytes.Contains(line, []byte(key)) {
				t.Fatalf("%s: %v, or the key stands in it: %s", name, err, line)
			}
			script, err := results.ParseTranscript(line)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range script.Sessions {
				for _, m := range s.Messages {
					if m.Role == "assistant" {
						answers++
					}
					for _, x := range m.Exchanges {
						if calls++; m.Role != "assistant" || !strings.Contains(x.Sent, `"messages"`) ||
							!strings.Contains(x.Answered, wire) || x.Prompt == 0 || x.Requests != 1 || x.Micros == 0 {
							t.Fatalf("%s: %s has the call %+v", name, m.Role, x)
						}
					}
				}
			}
		}
		if want := map[bool]int{true: answers}[wire != ""]; calls != want || answers == 0 {
			t.Errorf("%s: %d answers of the model, %d calls", name, answers, calls)
		}
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
