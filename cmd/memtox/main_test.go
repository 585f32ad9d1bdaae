package main

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/memtox/memtox/internal/disk"
)

// asMain makes the test binary behave as memtox itself, for tests that need a
// process to kill.
const asMain = "MEMTOX_TEST_AS_MAIN"

// long has the tests that kill, fail and wait do so at length. They take minutes then,
// and .ci/run sets it; without it they do the same a few times.
var long = os.Getenv("MEMTOX_LONG") != ""

// times is how often a test does something: at length or not.
func times(atLength, inShort int) int {
	if long {
		return atLength
	}
	return inShort
}

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	if dir := os.Getenv(asQueue); dir != "" {
		serveQueue(dir, os.Getenv(asQueue+"_ADDR"))
	}
	os.Exit(m.Run())
}

// console is a command line in a test: its streams, its directory, its clock.
type console struct {
	t        testing.TB
	dir      string
	signals  chan os.Signal
	terminal bool
	getenv   func(string) string
	out, err bytes.Buffer
	disk     disk.FS
}

func newConsole(t testing.TB) *console {
	return &console{t: t, dir: t.TempDir(), signals: make(chan os.Signal, 4), getenv: func(string) string { return "" }}
}

// run runs one command and returns its exit code. The streams hold what it
// printed.
func (c *console) run(args ...string) Code {
	c.t.Helper()
	c.out.Reset()
	c.err.Reset()
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	return run(context.Background(), &Env{
		Getenv: c.getenv,
		Stdin:  bytes.NewReader(nil), Stdout: &c.out, Stderr: &c.err,
		StdoutTerminal: c.terminal, StderrTerminal: c.terminal,
		Signals: c.signals, Dir: c.dir, Disk: c.disk,
		Now: func() time.Time { clock = clock.Add(time.Second); return clock },
	}, args)
}

// must runs a command that has to end well.
func (c *console) must(args ...string) string {
	c.t.Helper()
	if code := c.run(args...); code != Done {
		c.t.Fatalf("memtox %q: exit code %d\n%s%s", args, code, c.out.String(), c.err.String())
	}
	return c.out.String()
}

func (c *console) write(name, content string) {
	c.t.Helper()
	if err := os.WriteFile(c.dir+"/"+name, []byte(content), 0o644); err != nil {
		c.t.Fatal(err)
	}
}
