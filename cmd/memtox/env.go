package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/memtox/memtox/internal/disk"
	"github.com/memtox/memtox/internal/settings"
)

// Env is everything that the command line touches of the world, so that all of
// it runs inside a test.
type Env struct {
	Getenv                         func(string) string
	Stdin                          io.Reader
	Stdout, Stderr                 io.Writer
	StdoutTerminal, StderrTerminal bool
	Width                          int // of the terminal in columns; 0 where there is none
	// screen is standard output for tables in bold type, which are inert by themselves;
	// on a terminal Stdout escapes all that it would obey.
	screen io.Writer
	// Signals carries interrupts. A command that can stop in good order takes
	// them (see interrupts); otherwise the first ends the command's context and
	// the second the process.
	Signals <-chan os.Signal
	// Kill ends the process at once; nil does nothing.
	Kill func(Code)
	Now  func() time.Time
	// Dir is what relative paths are relative to; empty is the process's own.
	Dir string
	// Disk is what the files of a run are written with; nil is the operating system's.
	Disk disk.FS

	mu     sync.Mutex
	handle func(before int)
	before int
}

// interrupts hands the signals to a command's own handler, which is told how
// many came before, until release is called.
func (e *Env) interrupts(handle func(before int)) (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handle, e.before = handle, 0
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.handle = nil
	}
}

// stoppable is for work that stops in good order: the first interrupt closes stop,
// so that nothing new is begun, the second ends the context, and the third the
// process. release must be called when the work is over. what names what is in
// flight.
func (e *Env) stoppable(ctx context.Context, what string) (_ context.Context, stop <-chan struct{}, release func()) {
	ctx, abandon := context.WithCancel(ctx)
	stopping := make(chan struct{})
	let := e.interrupts(func(before int) {
		switch before {
		case 0:
			e.say("stopping: the %s in flight are finished first; interrupt again to abandon them", what)
			close(stopping)
		case 1:
			abandon()
		default:
			if e.Kill != nil {
				e.Kill(Inconclusive)
			}
		}
	})
	return ctx, stopping, func() {
		let()
		abandon()
	}
}

// listen passes signals on until done is closed.
func (e *Env) listen(cancel func(), done <-chan struct{}) {
	for unhandled := 0; ; {
		select {
		case <-done:
			return
		case <-e.Signals:
		}
		e.mu.Lock()
		handle, before := e.handle, e.before
		e.before++
		e.mu.Unlock()
		switch {
		case handle != nil:
			handle(before)
		case unhandled == 0:
			unhandled++
			cancel()
		case e.Kill != nil:
			e.Kill(Inconclusive)
		}
	}
}

// path brings a path of the user's into the working directory.
func (e *Env) path(p string) string {
	if e.Dir == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Dir, p)
}

// output writes to a file of the user's, or to standard output where none is
// named. The file appears when it is complete; until then it has another name.
func (e *Env) output(file string, write func(io.Writer) error) error {
	if file == "" || file == "-" {
		return write(e.Stdout)
	}
	path := e.path(file)
	tmp, flags := path+".tmp", os.O_EXCL // a link of that name, which a change under review may bring, is not followed
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		tmp, flags = path, 0 // a device or a pipe has no other name
	} else if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|flags, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return &settings.Problem{Where: file, What: "there is no folder " + filepath.Dir(file), Hint: "make it first, or name another file"}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	err = write(f)
	if e := f.Close(); err == nil && e != nil {
		err = fmt.Errorf("writing %s: %w", file, e)
	}
	if tmp == path {
		return err
	}
	if err == nil {
		if err = os.Rename(tmp, path); err != nil {
			err = fmt.Errorf("writing %s: %w", file, err)
		}
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}

// maxSettingFile bounds a file that a setting names.
const maxSettingFile = 16 << 20

// readRegular reads a file that a setting names, which a run may have named: a pipe
// would wait for a writer, a device may never end, and a file may be all of the memory.
func (e *Env) readRegular(name string) ([]byte, error) {
	fail := func(what string) ([]byte, error) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New(what)}
	}
	switch st, err := os.Stat(e.path(name)); {
	case err != nil: // reading says it
	case !st.Mode().IsRegular():
		return fail("it is no regular file")
	case st.Size() > maxSettingFile:
		return fail(fmt.Sprintf("it is larger than %d MB", maxSettingFile>>20))
	}
	return e.readFile(name)
}

// readFile reads a file of the user's.
func (e *Env) readFile(name string) ([]byte, error) { return os.ReadFile(e.path(name)) }
