// Command ollama-smoke runs trials through a real Ollama server, by its own and by
// its OpenAI-compatible interface.
//
//	go run ./scripts/ollama-smoke -build     builds the server once (cgo, some minutes) and keeps it
//	go run ./scripts/ollama-smoke            uses the one that was kept, or ollama on the PATH
//	go run ./scripts/ollama-smoke -if-built  does nothing where there is none
//
// The model is a random one of half a megabyte, made here: its answers are
// gibberish. What is checked is the wire: that every trial is scored, or not scored
// with a reason, that the server's tokens are counted, and that nothing hangs. The
// figures that it prints say nothing about any model.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/memtox/memtox/results/summary"
)

// version is the last that builds from the module proxy alone; later ones miss
// vendored headers.
const version = "v0.9.6"

func main() {
	build := flag.Bool("build", false, "build the server if it is not there")
	ifBuilt := flag.Bool("if-built", false, "end well where no server is there")
	bin := flag.String("ollama", "", "the server's binary")
	limit := flag.Int("limit", 10, "cases; each is run in two arms")
	flag.Parse()
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Minute)
	defer stop()
	path, err := find(ctx, *bin, *build)
	if errors.Is(err, errNone) && *ifBuilt {
		fmt.Println("ollama-smoke:", err, "- left out")
		return
	}
	if err == nil {
		err = smoke(ctx, path, *limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ollama-smoke:", err)
		os.Exit(1)
	}
}

var errNone = errors.New("there is no Ollama server here; -build builds one")

// find returns the server's binary.
func find(ctx context.Context, named string, build bool) (string, error) {
	if named != "" {
		return named, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the server: %w", err)
	}
	dir := filepath.Join(cache, "memtox", "ollama-"+version)
	kept := filepath.Join(dir, "ollama")
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	if p, err := exec.LookPath("ollama"); err == nil {
		return p, nil
	}
	if !build {
		return "", errNone
	}
	fmt.Println("building Ollama", version, "- some minutes")
	cmd := exec.CommandContext(ctx, "go", "install", "github.com/ollama/ollama@"+version)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=1", "GOFLAGS=")
	cmd.Dir, cmd.Stdout, cmd.Stderr = os.TempDir(), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the server (it needs a C compiler): %w", err)
	}
	return kept, nil
}

func smoke(ctx context.Context, ollama string, limit int) error {
	dir, err := os.MkdirTemp("", "ollama-smoke")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	memtox := filepath.Join(dir, "memtox")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", memtox, "./cmd/memtox").CombinedOutput(); err != nil {
		return fmt.Errorf("building memtox: %w: %s", err, out)
	}
	for name, content := range map[string][]byte{"tiny.gguf": tinyModel(), "Modelfile": []byte(modelfile)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	host, err := freeAddress()
	if err != nil {
		return err
	}
	env := append(os.Environ(), "OLLAMA_HOST="+host, "OLLAMA_MODELS="+filepath.Join(dir, "models"), "HOME="+dir,
		"OLLAMA_NUM_PARALLEL=2", "OLLAMA_CONTEXT_LENGTH=16384")
	server := exec.CommandContext(ctx, ollama, "serve")
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server.Dir, server.Env, server.Stdout, server.Stderr = dir, env, log, log
	if err := server.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	defer func() {
		_ = server.Process.Signal(os.Interrupt)
		end := time.AfterFunc(10*time.Second, func() { _ = server.Process.Kill() })
		_ = server.Wait()
		end.Stop()
	}()
	fail := func(err error) error {
		b, _ := os.ReadFile(log.Name())
		if len(b) > 4000 {
			b = b[len(b)-4000:]
		}
		return fmt.Errorf("%w\nthe server's log ends:\n%s", err, b)
	}
	if err := await(ctx, "http://"+host+"/api/version"); err != nil {
		return fail(err)
	}
	create := exec.CommandContext(ctx, ollama, "create", "tiny", "-f", "Modelfile")
	create.Dir, create.Env = dir, env
	if out, err := create.CombinedOutput(); err != nil {
		return fail(fmt.Errorf("making the model: %w: %s", err, out))
	}
	for _, way := range []struct{ name, model, url string }{
		{"its own interface", "ollama:tiny", "http://" + host},
		{"the OpenAI-compatible interface", "openai:tiny", "http://" + host + "/v1"},
	} {
		fmt.Printf("== %s\n", way.name)
		doctor := exec.CommandContext(ctx, memtox, "doctor", "--model", way.model, "--base-url", way.url, "--set",
			"reply_tokens=16", "--embeddings", "tiny")
		doctor.Dir, doctor.Stdout, doctor.Stderr = dir, os.Stdout, os.Stderr
		// A model of random weights calls no tools: doctor says so, with exit code 1.
		if err := doctor.Run(); err != nil && doctor.ProcessState.ExitCode() != 1 {
			return fail(fmt.Errorf("doctor: %w", err))
		}
		if err := trials(ctx, memtox, dir, way.model, way.url, limit); err != nil {
			return fail(fmt.Errorf("%s: %w", way.name, err))
		}
	}
	return nil
}

// trials runs the benchmark and checks that each trial is accounted for.
func trials(ctx context.Context, memtox, dir, model, url string, limit int) error {
	cmd := exec.CommandContext(ctx, memtox, "run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense",
		"none,keyword", "--limit", fmt.Sprint(limit),
		"--model", model, "--base-url", url, "--set", "reply_tokens=16", "--set", "trial_timeout=3m", "--set", "attempts=2",
		"--concurrency", "2", "--max-not-scored", "1000",
		"--format", "json", "--out", filepath.Join(dir, strings.ReplaceAll(model, ":", "-")))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	// 4: nothing was scored. A model of random weights talks until it is cut.
	if err != nil && cmd.ProcessState.ExitCode() != 4 {
		return fmt.Errorf("run: %w", err)
	}
	var run summary.Summary
	if err := json.Unmarshal(out, &run); err != nil {
		return fmt.Errorf("reading what run printed: %w", err)
	}
	var accounted, calls, prompt, answer, scored int64
	for _, a := range run.Arms {
		accounted, scored = accounted+a.Trials(), scored+a.Scored
		calls, prompt, answer = calls+a.Costs.ModelCalls, prompt+a.Costs.PromptTokens, answer+a.Costs.CompletionTokens
		if a.Costs.TokensEstimated {
			return errors.New("the server counts tokens, and the run estimated them")
		}
	}
	fmt.Printf("%d trials: %d scored, %d not; %d calls, %d prompt tokens, %d of answers\n", run.Trials, scored,
		accounted-scored, calls, prompt, answer)
	switch {
	case run.Trials != run.Planned || accounted != run.Planned || run.Planned == 0:
		return fmt.Errorf("%d trials were planned, %d have rows, %d are accounted for", run.Planned, run.Trials, accounted)
	case calls == 0 || prompt == 0 || answer == 0:
		return errors.New("nothing was called, or no tokens were counted")
	case !run.LLM:
		return errors.New("the run does not say that its model is a language model")
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func await(ctx context.Context, url string) error {
	for end := time.Now().Add(30 * time.Second); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server does not answer: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
