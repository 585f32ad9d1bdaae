package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The whole command: it prints an address, that address opens the page, a bare
// one does not, and an interrupt ends it.
func TestViewServesUntilInterrupted(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--limit", "12", "--agent", "hermes", "--defense", "none,keyword", "--out",
		"runs/a")
	out, in := io.Pipe()
	signals := make(chan os.Signal, 1)
	ended := make(chan Code, 1)
	go func() {
		ended <- run(context.Background(), &Env{Getenv: func(string) string { return "" }, Stdin: bytes.NewReader(nil),
			Stdout: in, Stderr: io.Discard,
			Signals: signals, Dir: c.dir, Now: time.Now}, []string{"view"})
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Fatalf("it printed %q", address)
	}
	base, token, ok := strings.Cut(address, "#token=")
	if !ok {
		t.Fatalf("it printed %q", address)
	}
	get := func(path string, headers ...string) (int, string) {
		r, err := http.NewRequest(http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			r.Header.Set("Authorization", h)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if code, page := get(""); code != http.StatusOK || !strings.Contains(page, "memtox view") || strings.Contains(page, token) {
		t.Errorf("the page: status %d, %.80s", code, page)
	}
	if code, _ := get("api/runs"); code != http.StatusForbidden {
		t.Errorf("without the token: status %d", code)
	}
	known := "Bearer " + token
	if code, list := get("api/runs", known); code != http.StatusOK || !strings.Contains(list, `"key":"a"`) {
		t.Errorf("runs: status %d, %s", code, list)
	}
	if code, rows := get("api/table?run=a", known); code != http.StatusOK || !strings.Contains(rows, `"total":24`) {
		t.Errorf("trials: status %d, %.200s", code, rows)
	}
	signals <- os.Interrupt
	select {
	case code := <-ended:
		if code != Done {
			t.Errorf("interrupted: exit code %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("an interrupt does not end it")
	}
}

func TestViewRefusesWhatItCannot(t *testing.T) {
	c := newConsole(t)
	for _, args := range [][]string{{"view"}, {"view", "nothing"}, {"view", "a", "b"}, {"view", "--port", "70000"},
		{"view", "--port", "x"}} {
		if code := c.run(args...); code != Usage || c.err.Len() == 0 {
			t.Errorf("memtox %q: exit code %d, %s", args, code, c.err.String())
		}
	}
}

// A bundle has the pages and a report of every run; a folder with something in it is not
// written to.
func TestViewWritesABundle(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--limit", "12", "--agent", "hermes", "--defense", "none,keyword", "--out",
		"runs/a")
	c.must("view", "--bundle", "site")
	for file, holds := range map[string]string{"index.html": "data-bundle", "report-0.html": "memtox report",
		"data/0-table.js": "memtoxData(", "data/0-0.js": "memtoxData("} {
		if b, err := os.ReadFile(c.dir + "/site/" + file); err != nil || !strings.Contains(string(b), holds) {
			t.Errorf("%s: %v, %.80s", file, err, b)
		}
	}
	if !strings.Contains(c.err.String(), "site/index.html") {
		t.Errorf("it says %s", c.err.String())
	}
	if code := c.run("view", "--bundle", "site"); code != Usage || !strings.Contains(c.err.String(), "name a new one") {
		t.Errorf("once more: exit code %d, %s", code, c.err.String())
	}
}

// --open hands the browser a file that only this user can read: the address with its
// token is no argument of a program.
func TestViewOpensABrowser(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the browser of this test is a script on PATH")
	}
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--limit", "12", "--agent", "hermes", "--defense", "none", "--out", "runs/a")
	bin, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	script := "#!/bin/sh\n{ stat -c %a \"$1\"; cat \"$1\"; } > " + seen + ".tmp && mv " + seen + ".tmp " + seen + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	signals := make(chan os.Signal, 1)
	ended := make(chan Code, 1)
	go func() {
		ended <- run(context.Background(), &Env{Getenv: func(string) string { return "" }, Stdin: bytes.NewReader(nil),
			Stdout: io.Discard, Stderr: io.Discard, Signals: signals, Dir: c.dir, Now: time.Now}, []string{"view", "--open"})
	}()
	var got []byte
	for until := time.Now().Add(20 * time.Second); got == nil && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		got, _ = os.ReadFile(seen)
	}
	if s := string(got); !strings.HasPrefix(s, "600\n") || !strings.Contains(s, "url=http://127.0.0.1:") {
		t.Errorf("the browser got %s", s)
	}
	signals <- os.Interrupt
	if code := <-ended; code != Done {
		t.Errorf("exit code %d", code)
	}
}
