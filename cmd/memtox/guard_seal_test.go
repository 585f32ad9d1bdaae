package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unsealed verifies the store in the console's folder.
func unsealed(t *testing.T, c *console) (sealed int, entries uint64) {
	t.Helper()
	var v struct {
		Sealed  int
		Entries uint64 `json:"unsealed_entries"`
		Signed  uint64 `json:"signed_entries"`
	}
	if err := json.Unmarshal([]byte(c.must("memory", "verify", "--store", "m.db", "--format", "json")),
		&v); err != nil {
		t.Fatal(err)
	}
	if v.Signed != v.Entries {
		t.Errorf("%d of %d entries are signed", v.Signed, v.Entries)
	}
	return v.Sealed, v.Entries
}

// speak starts a server on m.db in the console's folder and says hello.
func speak(t *testing.T, c *console, args ...string) *served {
	t.Helper()
	s := serveGuardIn(t, c.dir, nil, append([]string{"--mcp", "--store", "m.db"}, args...)...)
	s.ask(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *served) remember(t *testing.T, text string) {
	t.Helper()
	if a := s.ask(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add_memory","arguments":{"content":%q}}}`, text)); strings.Contains(fmt.Sprint(a), "isError:true") {
		t.Fatal(a)
	}
}

func TestGuardServeSealsItsStore(t *testing.T) {
	c := newConsole(t)
	s := speak(t, c)
	s.remember(t, "The user prefers green tea.")
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	s.ends(t, Done)
	// It sealed the empty store, and the guard took a snapshot of its own before the first
	// write.
	if sealed, entries := unsealed(t, c); sealed != 3 || entries != 0 {
		t.Errorf("at its end: %d snapshots, %d entries unsealed", sealed, entries)
	}
	// One that is killed leaves a tail, which the next verifies and seals.
	s = speak(t, c)
	s.remember(t, "The user lives in Kyoto.")
	s.cmd.Process.Kill()
	s.cmd.Wait()
	if _, entries := unsealed(t, c); entries != 2 {
		t.Errorf("%d entries unsealed", entries)
	}
	s = speak(t, c)
	if log := s.stderr.String(); !strings.Contains(log, "verified and sealed what another process had left unsealed") ||
		!strings.Contains(log, `"entries":3`) {
		t.Error(log)
	}
	if sealed, entries := unsealed(t, c); sealed != 5 || entries != 0 {
		t.Errorf("%d snapshots, %d entries unsealed", sealed, entries)
	}
	a := s.ask(t, `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"memory://status"}}`)
	if text := fmt.Sprint(a); !strings.Contains(text, `"unsealed_entries":0`) || !strings.Contains(text, `"left":true`) {
		t.Error(text)
	}
	s.remember(t, "The user rides a bicycle.")
	s.cmd.Process.Kill()
	s.cmd.Wait()
	// A tail that was tampered with is not: nothing vouches for it then.
	db, err := sql.Open("sqlite", filepath.Join(c.dir, "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE entry SET by = CAST('eve' AS BLOB) WHERE seq = (SELECT max(seq) FROM entry)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if code := c.run("guard", "serve", "--mcp", "--store",
		"m.db"); code != Failed || !strings.Contains(c.err.String(), "m.db is not served") ||
		!strings.Contains(c.err.String(), "memory verify") {
		t.Errorf("exit code %d\n%s", code, &c.err)
	}
	if code := c.run("memory", "verify", "--store", "m.db"); code != tampered {
		t.Errorf("exit code %d\n%s%s", code, &c.out, &c.err)
	}
	// What the error says goes: the loss is accepted, and vouched for anew.
	if err := os.Remove(filepath.Join(c.dir, "m.db.head")); err != nil {
		t.Fatal(err)
	}
	c.must("memory", "snapshot", "--store", "m.db")
	unsealed(t, c)
	s = speak(t, c)
	s.in.Close()
	s.ends(t, Done)
}

func TestASealingKeyThatOthersMayReadIsRefused(t *testing.T) {
	c := newConsole(t)
	newPoisoned(t, c)
	c.must("memory", "snapshot", "--store", "memory.db")
	key := filepath.Join(c.dir, "memory.db.signer")
	for _, mode := range []os.FileMode{0o640, 0o604, 0o602, 0o620} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"memory", "snapshot"}, {"memory", "snapshot", "--key", "memory.db.signer"},
			{"guard", "serve", "--mcp"}, {"guard", "serve", "--mcp", "--seal-key", "memory.db.signer"}} {
			if code := c.run(append(args, "--store",
				"memory.db")...); code == Done || code == Failed || !strings.Contains(c.err.String(), "chmod 600") {
				t.Errorf("mode %o: %q: exit code %d\n%s", mode, args, code, &c.err)
			}
		}
	}
}

// A message that no reader would take the same is refused to the end of the wire.
func TestGuardServeOverMCPRefusesWhatIsReadInTwoWays(t *testing.T) {
	s := speak(t, newConsole(t))
	a := s.ask(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add_memory","arguments":{"content":"tea","Content":"coffee"}}}`)
	if !strings.Contains(fmt.Sprint(a), "one field twice") {
		t.Error(a)
	}
	s.remember(t, "The user prefers green tea.")
}
