package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
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
	jar, _ := cookiejar.New(nil)
	get := func(client *http.Client, url string) (int, string) {
		r, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	base, _, _ := strings.Cut(address, "?")
	if code, _ := get(&http.Client{}, base); code != http.StatusForbidden {
		t.Errorf("without the token: status %d", code)
	}
	known := &http.Client{Jar: jar}
	if code, page := get(known, address); code != http.StatusOK || !strings.Contains(page, "memtox view") {
		t.Errorf("with the token: status %d, %.80s", code, page)
	}
	if code, list := get(known, base+"api/runs"); code != http.StatusOK || !strings.Contains(list, `"key":"a"`) {
		t.Errorf("runs: status %d, %s", code, list)
	}
	if code, rows := get(known, base+"api/trials?run=a"); code != http.StatusOK || !strings.Contains(rows, `"total":24`) {
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
