package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/installed"
)

// The table as a person reads it, with a row of every state, and the exit code of each.
func TestSurfacesArePrinted(t *testing.T) {
	row := func(id, about, prompt, stored, read string) surfacesRow {
		return surfacesRow{State: "as before", Surface: installed.Surface{ID: id, About: about,
			Outcome: map[string]string{"prompt": prompt, "stored": stored, "read": read, "write": "done"}}}
	}
	r := surfacesResult{Product: "hermes", Title: "HERMES", Version: "0.20.0", Against: "0.19.0", Rows: []surfacesRow{
		row("file-memory", "a file read, then stored", "yes", "memory", "yes"),
		row("mcp-memory", "a result of an MCP tool, stored\x1b[31m", "no", "memory", "yes, wrapped"),
		row("odd", "something of late", "no", "nowhere", "no"),
		{State: "not run", Surface: installed.Surface{ID: "job", About: "a scheduled job",
			Reason: "it offers its model no tool cronjob | only memory"}}}}
	r.Rows[1].State, r.Rows[1].Was = "changed", map[string]string{"prompt": "yes", "stored": "memory", "read": "yes, wrapped",
		"write": "done"}
	r.Rows[1].Differ = installed.Differences(r.Rows[1].Was, r.Rows[1].Outcome)
	r.Rows[2].State = "new"
	c := newConsole(t)
	for _, format := range []string{"table", "markdown", "json"} {
		for n, want := range map[int]Code{1: Done, 3: BadNews, 4: Failed} {
			var out, err bytes.Buffer
			some := r
			some.Rows = r.Rows[:n]
			e := (&Env{Stdout: &out, Stderr: &err, Dir: c.dir}).surfaces(some, format, "")
			if codeOf(e) != want {
				t.Errorf("%d rows: exit code %d, not %d", n, codeOf(e), want)
			}
			if n == 4 {
				golden(t, "testdata/surfaces."+format, out.String())
			}
		}
	}
}

func TestSurfacesOfWhatDoesNotRun(t *testing.T) {
	c := newConsole(t)
	if code := c.run("surfaces", "hermes"); code != Usage ||
		!strings.Contains(c.err.String(), "memtox agents install hermes") {
		t.Errorf("absent: exit code %d: %s", code, c.err.String())
	}
	if code := c.run("surfaces", "hermes", "--only", "file-memroy"); code != Usage ||
		!strings.Contains(c.err.String(), `did you mean "file-memory"?`) {
		t.Errorf("a mistyped scenario: exit code %d: %s", code, c.err.String())
	}
	c.write("other.json", `{"product": "openclaw"}`)
	c.write("none.json", `[`)
	for file, says := range map[string]string{"other.json": `is about "openclaw", and not about "hermes"`,
		"none.json": "holds no result of memtox surfaces", "absent.json": "absent.json"} {
		if code := c.run("surfaces", "hermes", "--against", file); code != Usage || !strings.Contains(c.err.String(), says) {
			t.Errorf("--against %s: exit code %d: %s", file, code, c.err.String())
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("no box is made on Windows")
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.write("bin/hermes", "#!/bin/sh\necho 'Hermes Agent v0.19.0'\n")
	if err := os.Chmod(filepath.Join(c.dir, "bin/hermes"), 0o755); err != nil {
		t.Fatal(err)
	}
	only := []string{"surfaces", "hermes", "--at", ".", "--only", "user-memory,agents-md"}
	if code := c.run(append(only, "--out", "seen.json")...); code != Failed ||
		!strings.Contains(c.out.String(), "not run: starting it: its gateway did not start") {
		t.Errorf("a product that does not start: exit code %d: %s%s", code, c.out.String(), c.err.String())
	}
	if code := c.run(append(only, "--against", "seen.json")...); code != Failed ||
		!strings.Contains(c.out.String(), "2 scenarios: 0 as before, 2 not run") {
		t.Errorf("against that: exit code %d: %s%s", code, c.out.String(), c.err.String())
	}
}
