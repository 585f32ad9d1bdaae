// Memtox measures how well defenses protect a language-model agent whose
// long-term memory is attacked. See `memtox --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	env := &Env{
		Getenv: os.Getenv,
		Stdin:  os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: isTerminal(os.Stdout), StderrTerminal: isTerminal(os.Stderr),
		Signals: signals, Kill: func(c Code) { os.Exit(int(c)) }, Now: time.Now,
	}
	os.Exit(int(run(context.Background(), env, os.Args[1:])))
}

// isTerminal reports whether a stream is a character device that is not the null
// device: near enough to choose between a progress bar and plain lines.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
}
