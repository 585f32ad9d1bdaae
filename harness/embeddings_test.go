package harness

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// embeddingServer is the reference model's, whose vectors are the hashed ones.
func embeddingServer(t *testing.T) string {
	t.Helper()
	s, err := proxy.New(proxy.Options{})
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
	t.Cleanup(func() { stop(); <-done })
	return "http://" + l.Addr().String()
}

var embedded = []string{"split=all", "limit=40", "agent=openclaw", "defense=none,anomaly,anomaly:memgar",
	"transcripts=none"}

func TestVectorsOfAServerDecideAsTheyWouldHere(t *testing.T) {
	x, want := runAll(t, Builtin(), embedded...)
	if by := x.Resolved()["embeddings"]; by != "hashed (no language model)" {
		t.Errorf("what is not said to be no language model: %q", by)
	}
	base := embeddingServer(t)
	tape := filepath.Join(t.TempDir(), "run.tape")
	for _, kind := range []string{"openai:reference", "ollama:reference"} {
		at := base
		if strings.HasPrefix(kind, "openai") {
			at += "/v1"
		}
		remote := append([]string{"embeddings=" + kind, "embeddings_base_url=" + at}, embedded...)
		x, got := runAll(t, Builtin(), append(remote, "record="+tape)...)
		if !maps.Equal(got.outcomes(), want.outcomes()) {
			t.Errorf("%s: other outcomes than with the same vectors made here", kind)
		}
		if by := x.Resolved()["embeddings"]; by != kind+" (no language model)" {
			t.Errorf("%s is resolved as %q", kind, by)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		// Nobody listens there; and other trials are the first to ask for a text.
		gone := append([]string{"embeddings=" + kind, "embeddings_base_url=http://127.0.0.1:1/v1"}, embedded...)
		_, again := runAll(t, Builtin(), append(gone, "replay="+tape, "concurrency=7")...)
		if !maps.Equal(again.outcomes(), want.outcomes()) {
			t.Errorf("%s: the replay has other outcomes", kind)
		}
	}
}

func TestNoEmbeddingIsNoVerdict(t *testing.T) {
	const key = "sk-embeddings-0123456789abcdef"
	var answers atomic.Value
	var refuses atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s came without the key", r.URL.Path)
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			_, _ = io.WriteString(w, `{"data":[]}`)
			return
		}
		if strings.Contains(string(body), `"Hello."`) && !refuses.Load() {
			_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[1,0]}]}`) // it broke after the run had begun
			return
		}
		if answer := answers.Load().(string); answer != "" {
			_, _ = io.WriteString(w, answer)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"not for `+key+`: `+string(body[:1])+`"}}`)
	}))
	defer srv.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]string{"refused": "", "none": `{"data":[]}`,
		"zero": `{"data":[{"index":0,"embedding":[0,0]}]}`} {
		answers.Store(answer)
		tape := filepath.Join(dir, name)
		x, out := runAll(t, Builtin(), append([]string{"embeddings=openai:m", "embeddings_base_url=" + srv.URL + "/v1",
			"embeddings_key_file=" + file, "attempts=1", "record=" + tape}, embedded...)...)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		for _, e := range out.entries {
			r := e.Trial
			if r.Status == results.Scored && (r.Defense != "none" || r.Exposed) {
				t.Errorf("%s: %s under %s is scored without a vector", name, r.Case, r.Defense)
			}
			if strings.Contains(r.Reason, key) {
				t.Errorf("%s: the reason holds the key: %s", name, r.Reason)
			}
		}
		kept, err := os.ReadFile(tape + ".embeddings-openai_m")
		if err != nil || strings.Contains(string(kept), key) {
			t.Errorf("%s: the cassette: %v", name, err)
		}
		refuses.Store(true)
		c := DefaultConfig()
		c.Embeddings, c.EmbeddingsBaseURL, c.EmbeddingsKeyFile, c.Attempts = "openai:m", srv.URL+"/v1", file, 1
		_, err = Prepare(t.Context(), c, Builtin())
		if p, ok := err.(*settings.Problem); !ok || p.Where != "--embeddings" || strings.Contains(err.Error(), key) {
			t.Errorf("%s: a server that embeds nothing: %v", name, err)
		}
		refuses.Store(false)
	}
}

func TestEmbeddingsAreRefusedWhereTheyAreWrong(t *testing.T) {
	for value, want := range map[string]string{"hash": `unknown embedder "hash"`, "openai:": "names no model",
		"reference": "unknown embedder"} {
		c := DefaultConfig()
		c.Embeddings = value
		if _, err := Prepare(context.Background(), c, Builtin()); err == nil || !strings.HasPrefix(err.Error(),
			"--embeddings") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
	// A run of another embedder is another run; one of the time before embedders had names is not.
	then := map[string]any{"embeddings": "openai:a"}
	now := map[string]any{"embeddings": "hashed (no language model)"}
	if d := ResolvedDifferences(then, now); len(d) != 1 {
		t.Errorf("openai:a and hashed: %v", d)
	}
	if d := ResolvedDifferences(map[string]any{}, now); len(d) != 0 {
		t.Errorf("an older run: %v", d)
	}
	var mine, theirs = DefaultConfig(), DefaultConfig()
	mine.Embeddings = "ollama:m"
	if err := SameSettings("runs/x", theirs, mine); err == nil {
		t.Error("a run is gone on with by another embedder")
	}
	_, err := Adopt("runs/x", mine, func(c Config) (Config, error) { return c, nil })
	if _, ok := err.(*settings.Problem); !ok {
		t.Errorf("a run directory has a server asked: %v", err)
	}
}
