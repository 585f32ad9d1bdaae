package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// Code is an exit code. There is one table for the whole tool.
type Code int

const (
	Done         Code = iota // what was asked was done
	BadNews                  // done, and the result is bad
	Usage                    // the command line, a setting or an input is wrong
	Failed                   // the tool failed
	Inconclusive             // nothing can be said
)

// ExitCodes is the table of exit codes as help texts and the documentation show
// it.
const ExitCodes = `  0  done
  1  done, and the news is bad: trials not scored beyond --max-not-scored, a failed gate, findings
  2  usage or configuration: an unknown name, a malformed file, a directory of another run
  3  the tool failed: a full disk, a broken file, a bug
  4  inconclusive: nothing was scored, no agent proposed a write, or the run was stopped before its end`

// errInconclusive ends a command with exit code 4, errBadNews with 1.
var (
	errInconclusive = errors.New("inconclusive")
	errBadNews      = errors.New("bad news")
)

func codeOf(err error) Code {
	var p *settings.Problem
	given, _ := remote.KindOf(err)
	switch {
	case err == nil:
		return Done
	case given == remote.GivenUp:
		return Usage
	case errors.Is(err, errBadNews):
		return BadNews
	case errors.Is(err, errInconclusive), errors.Is(err, context.Canceled), remote.StopsRun(err):
		return Inconclusive
	case errors.As(err, &p), errors.Is(err, results.ErrExists), errors.Is(err, results.ErrNotRun),
		errors.Is(err, results.ErrInUse), errors.Is(err, results.ErrDangling),
		errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS),
		errors.Is(err, syscall.ENOTDIR):
		return Usage
	}
	return Failed
}

// told is an error whose message is already on the screen.
type told struct{ error }

func (t told) Unwrap() error { return t.error }

// say tells the user something in one line, which no content can break or colour.
func (e *Env) say(format string, args ...any) {
	fmt.Fprintf(e.Stderr, "memtox: %s\n", inert.Text(fmt.Sprintf(format, args...)))
}

// end says why a command ends as it does.
func (e *Env) end(code error, format string, args ...any) error {
	e.say(format, args...)
	return told{code}
}

// report prints an error that is not on the screen yet.
func (e *Env) report(err error) {
	var t told
	if err == nil || errors.As(err, &t) {
		return
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	var lines []string // several errors may be of one cause
	for l := range strings.SplitSeq(err.Error(), "\n") {
		if !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	e.say("%s", strings.Join(lines, "\n"))
}
