package main

import (
	"io"
	"os"
	"path/filepath"
	"time"
)

// Env is everything that the command line touches of the world, so that all of
// it runs inside a test.
type Env struct {
	Getenv                         func(string) string
	Stdin                          io.Reader
	Stdout, Stderr                 io.Writer
	StdoutTerminal, StderrTerminal bool
	// Signals carries interrupts: the first stops a run, the second abandons what
	// is in flight.
	Signals <-chan os.Signal
	Now     func() time.Time
	// Dir is what relative paths are relative to; empty is the process's own.
	Dir string
}

// path brings a path of the user's into the working directory.
func (e *Env) path(p string) string {
	if e.Dir == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Dir, p)
}

// readFile reads a file of the user's.
func (e *Env) readFile(name string) ([]byte, error) { return os.ReadFile(e.path(name)) }
