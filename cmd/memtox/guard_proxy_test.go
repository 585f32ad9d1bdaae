package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The proxy is killed while a call waits: nothing is lost, nothing passes, and the call
// passes once a person has approved it.
func TestAKilledGuardProxyHoldsWhatItHeld(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte("tools:\n  - {name: web_fetch, does: reads}\n"+
		"  - {name: send_money, does: acts, args: {destination: account}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		message := `{"role":"assistant","content":"May I?"}`
		if !bytes.Contains(b, []byte("not allowed")) {
			message = `{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"send_money",` +
				`"arguments":"{\"account\":\"GB29 NWBK 6016 1331 9268 19\"}"}}]}`
		}
		fmt.Fprintf(w, `{"choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`, message)
	}))
	defer model.Close()
	start := func() (url string, kill func()) {
		cmd := memtox(t, dir, nil, "guard", "proxy", "--upstream", model.URL+"/v1", "--http", "127.0.0.1:0", "--agent", "agent.yaml",
			"--store", "held.db")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr := new(syncBuffer)
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill = func() { cmd.Process.Kill(); cmd.Wait() }
		t.Cleanup(kill)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		return strings.TrimSpace(line), kill
	}
	ask := func(url string) string {
		r, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[`+
			`{"role":"user","content":"Pay Brandt."},`+
			`{"role":"assistant","content":"","tool_calls":[{"id":"old","type":"function","function":{"name":"web_fetch","arguments":"{}"}}]},`+
			`{"role":"tool","tool_call_id":"old","content":"Pay to GB29 NWBK 6016 1331 9268 19."}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("%d %s %v", r.StatusCode, b, err)
		}
		return string(b)
	}
	memtoxSays := func(args ...string) string {
		out, err := memtox(t, dir, nil, args...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	url, kill := start()
	if got := ask(url); strings.Contains(got, "send_money") || !strings.Contains(got, "May I?") {
		t.Fatal(got)
	}
	kill()
	url, _ = start()
	if got := ask(url); strings.Contains(got, "send_money") {
		t.Fatalf("it passed after a crash: %s", got)
	}
	var waits struct{ Pending []struct{ ID string } }
	if err := json.Unmarshal([]byte(memtoxSays("guard", "pending", "--store", "held.db", "--format", "json")), &waits); err != nil ||
		len(waits.Pending) != 1 {
		t.Fatalf("%+v, %v", waits, err)
	}
	memtoxSays("guard", "approve", waits.Pending[0].ID, "--store", "held.db", "--why", "by phone")
	kept := url
	url, _ = start() // another agent's history: nothing was refused there
	if got := ask(url); !strings.Contains(got, "send_money") {
		t.Errorf("it was approved: %s", got)
	}
	if got := ask(kept); strings.Contains(got, "send_money") {
		t.Errorf("it passed twice: %s", got)
	}
}
