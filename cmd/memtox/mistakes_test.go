package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kballard/go-shellquote"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/attacks"
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

// mistakes are those that people make most, and what memtox says of each: what was done to
// what, where, and what mends it. The golden file holds the words.
func TestMistakesGetCausePlaceAndRemedy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the guards are shell scripts, and the causes are the system's own words")
	}
	c := newConsole(t)
	c.getenv = func(name string) string { return map[string]string{"OPENAI_API_KEY": "sk-wrong-0123456789"}[name] }
	refused, _ := mistakenServer(t, http.StatusUnauthorized)
	absent, _ := mistakenServer(t, http.StatusNotFound)
	c.must("run", "--limit", "5", "--agent", "hermes", "--defense", "none", "--out", "done")
	set, err := attacks.Open(t.Context(), "memtox-bench")
	if err != nil {
		t.Fatal(err)
	}
	other, err := proxy.New(proxy.Options{Book: set.Book(), Of: "other@v1"})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(other.Handler())
	defer served.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	guard := "while IFS= read -r l; do i=${l#*:}; i=${i%%,*}; case $l in *'\"op\":\"write\"'*) AT_WRITE;; " +
		"*) echo \"{\\\"id\\\":$i,\\\"name\\\":\\\"g\\\",\\\"version\\\":\\\"1\\\",\\\"ops\\\":[\\\"write\\\"]}\";; esac; done\n"
	c.write("dies.sh", strings.Replace(guard, "AT_WRITE", "exit 3", 1))
	c.write("babbles.sh", strings.Replace(guard, "AT_WRITE", "echo hello", 1))
	c.write("cases.jsonl", "{\"id\":\"a\",\"label\":\"attack\"}\n{\"id\":\"b\",\n")
	c.write("experiment.yaml", "agent: hermes\ndefence: none\n")
	c.write("mix.yaml", "attack:\n  external memory-agianst: 30\n")
	if err := errors.Join(os.Mkdir(filepath.Join(c.dir, "foreign"), 0o755), os.WriteFile(filepath.Join(c.dir, "foreign/notes"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	small := "run --limit 5 --agent hermes --defense none --concurrency 1 --out "
	known := strings.NewReplacer(refused, "http://SERVER", absent, "http://SERVER", served.URL, "http://SERVER", c.dir+"/", "",
		taken.Addr().String(), "127.0.0.1:PORT")
	var got strings.Builder
	for i, m := range []struct {
		name, args string
		code       Code
	}{
		{"a wrong key", "run --model openai:m --out x --base-url " + refused + "/v1", Usage},
		{"a wrong name of a model", "run --model openai:lama3.2 --out x --base-url " + absent + "/v1", Usage},
		{"nothing listens", "run --model ollama:m --out x --base-url http://127.0.0.1:1", Usage},
		{"no such guard", "run --defense none --defense g=exec:./gurad.sh --out x", Usage},
		{"a guard that dies", "run --limit 20 --agent hermes --concurrency 1 --defense g=exec:'sh dies.sh' --out dies", Usage},
		{"a guard that talks nonsense", "run --limit 20 --agent hermes --concurrency 1 --defense g=exec:'sh babbles.sh' --out babbles",
			Usage},
		{"a misspelt defense", "run --defense gaurd --out x", Usage},
		{"a misspelt agent", "run --agent hermse --out x", Usage},
		{"a misspelt flag", "run --defence none --out x", Usage},
		{"a misspelt command", "rnu", Usage},
		{"no such set", "run --dataset memtox-bnech --out x", Usage},
		{"a mistake in a set", "run --dataset cases.jsonl --out x", Usage},
		{"a directory of others", "run --resume --out foreign", Usage},
		{"a directory of another run", "run --limit 5 --out done", Usage},
		{"another run's settings", "run --resume --limit 6 --out done", Usage},
		{"a misspelt metric", "gate done --require none.rescueed<=3", Usage},
		{"a misspelt key", "run -f experiment.yaml --out x", Usage},
		{"a misspelt class", "run --class polcy_fact --out x", Usage},
		{"a misspelt situation", small + "x --mix mix.yaml", Usage},
		{"the model of another time", small + "v1 --model reference:v1-naive", Done},
		{"the model of another set", small + "other --model openai:reference --base-url " + served.URL + "/v1", Done},
		{"a port that is taken", "serve-model --addr " + taken.Addr().String(), Usage},
		{"a folder that is not there", "report done -o reports/may/run.html", Usage},
		{"no run", "report doen", Usage},
	} {
		args, err := shellquote.Split(m.args)
		if err != nil {
			t.Fatal(err)
		}
		if code := c.run(args...); code != m.code {
			t.Errorf("%s: exit code %d, want %d", m.name, code, m.code)
		}
		fmt.Fprintf(&got, "%d. %s\n$ memtox %s\n%s\n", i+1, m.name, known.Replace(m.args), known.Replace(c.err.String()))
	}
	c.disk, _ = failing(c.dir, 12, syscall.ENOSPC, true)
	if code := c.run(strings.Fields(small + "full")...); code != Failed {
		t.Errorf("a full disk: exit code %d", code)
	}
	fmt.Fprintf(&got, "25. a full disk\n%s", known.Replace(c.err.String()))
	golden(t, "testdata/mistakes.txt", got.String())
}
