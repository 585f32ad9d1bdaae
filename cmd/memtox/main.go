// Memtox measures how well defenses protect a language-model agent whose
// long-term memory is attacked. See `memtox --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vbauerster/mpb/v8/cwriter"
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	env := &Env{
		Getenv: os.Getenv,
		Stdin:  os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: cwriter.IsTerminal(int(os.Stdout.Fd())), StderrTerminal: cwriter.IsTerminal(int(os.Stderr.Fd())),
		Signals: signals, Kill: func(c Code) { os.Exit(int(c)) }, Now: time.Now,
	}
	if w, _, err := cwriter.GetSize(int(os.Stdout.Fd())); err == nil && env.StdoutTerminal {
		env.Width = w
	}
	os.Exit(int(run(context.Background(), env, os.Args[1:])))
}
