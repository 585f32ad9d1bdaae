package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/memtox/memtox/internal/text"
)

// Options say what to run.
type ProcessOptions struct {
	// Command is the program and its arguments, see [Words].
	Command string
	// Dir is where it runs; "" is our own working directory.
	Dir string
	// Env is its whole environment, see [Environment].
	Env []string
	// Redact removes secrets from what it writes to standard error.
	Redact Redactor
	// MaxLine is the longest line that it may write, in bytes: 8 MiB.
	MaxLine int
	// Line is called with every line that it writes, without the line feed, from
	// one goroutine. The slice is valid until it returns. An error of it ends
	// the child.
	Line func([]byte) error
}

const (
	defaultMaxLine = 8 << 20
	tailBytes      = 16 << 10
	// afterlife is how long pipes are read on once the program is gone: what it
	// started may hold them open.
	afterlife = 500 * time.Millisecond
	// farewell is how long a program that closed its output may take to end, so
	// that it can be said how it did.
	farewell = 100 * time.Millisecond
)

type Child struct {
	opts      ProcessOptions
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *os.File
	errs      tail
	queue     chan []byte
	closing   chan struct{} // no more lines will be sent
	closeOnce sync.Once
	exited    chan struct{} // the program is gone, and its standard error at its end
	status    string        // how, once exited is closed
	done      chan struct{} // it is of no more use, see Err
	group     sync.WaitGroup

	mu  sync.Mutex
	err error
}

func Start(o ProcessOptions) (*Child, error) {
	if o.MaxLine <= 0 {
		o.MaxLine = defaultMaxLine
	}
	words, err := Words(o.Command)
	if err != nil {
		return nil, err
	}
	name := words[0]
	if o.Dir != "" && strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		name = filepath.Join(o.Dir, name)
	}
	c := &Child{opts: o, queue: make(chan []byte, 64), closing: make(chan struct{}), exited: make(chan struct{}),
		done: make(chan struct{})}
	c.cmd = exec.Command(name, words[1:]...)
	c.cmd.Dir, c.cmd.Env = o.Dir, append([]string{}, o.Env...)
	c.cmd.Stderr, c.cmd.WaitDelay = &c.errs, afterlife
	own(c.cmd)
	// A pipe of our own: that of exec would be closed with the program, unread.
	out, itsOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	defer itsOut.Close()
	c.out, c.cmd.Stdout = out, itsOut
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	c.group.Go(c.wait)
	c.group.Go(c.write)
	c.group.Go(c.read)
	return c, nil
}

// Send queues a line, to which it adds the line feed. It does not wait until the
// program has read it, but for a place in the queue.
func (c *Child) Send(ctx context.Context, line []byte) error {
	select {
	case <-c.done:
		return c.Err()
	default:
	}
	select {
	case c.queue <- append(line, '\n'):
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return fmt.Errorf("it does not read what it is sent: %w", context.Cause(ctx))
	}
}

// Done is closed once the program is of no more use: it ended, broke the rules,
// or was ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says why, once Done is closed; else it is nil.
func (c *Child) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Fail ends the program because of err.
func (c *Child) Fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		if words := c.lastWords(); words != "" {
			err = fmt.Errorf("%w; its last words on standard error: %s", err, words)
		}
		c.err = err
		close(c.done)
	}
	c.mu.Unlock()
	if first {
		kill(c.cmd)
		c.in.Close()
	}
}

// Close closes the program's standard input, gives it grace to end by itself,
// ends it otherwise, and returns when nothing of it is left.
func (c *Child) Close(grace time.Duration) {
	c.closeOnce.Do(func() { close(c.closing) })
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.exited:
	case <-timer.C:
	}
	c.Fail(errClosed)
	c.group.Wait()
}

var errClosed = errors.New("it was ended")

// lastWords is the last line on standard error, quoted and bounded.
func (c *Child) lastWords() string {
	s := strings.TrimSpace(c.opts.Redact.String(c.errs.kept()))
	s = s[strings.LastIndexByte(s, '\n')+1:]
	if s == "" {
		return ""
	}
	return strconv.Quote(text.Clip(strings.ToValidUTF8(s, "\uFFFD"), 200))
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	b   []byte
	cut bool // it lost its beginning
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - tailBytes; over > 0 {
		t.b, t.cut = slices.Delete(t.b, 0, over), true
	}
	return len(b), nil
}

// kept is the tail, from a line's beginning if lines were lost: what is left of
// a line may be what is left of a secret.
func (t *tail) kept() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(t.b)
	if t.cut {
		_, s, _ = strings.Cut(s, "\n")
	}
	return s
}

func (c *Child) wait() {
	err := c.cmd.Wait()
	c.status = "it ended"
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		c.status = "it ended (" + err.Error() + ")"
	}
	close(c.exited)
	// What it left running goes too, and must not keep us reading.
	kill(c.cmd)
	if c.out.SetReadDeadline(time.Now().Add(afterlife)) != nil {
		time.AfterFunc(afterlife, func() { c.out.Close() })
	}
}

func (c *Child) write() {
	defer c.in.Close()
	for {
		var line []byte
		select {
		case line = <-c.queue:
		case <-c.done:
			return
		case <-c.closing:
			select {
			case line = <-c.queue:
			default:
				return
			}
		}
		if _, err := c.in.Write(line); err != nil {
			return // why it does not read, the reader finds out
		}
	}
}

func (c *Child) read() {
	defer c.out.Close()
	torn := false
	lines := bufio.NewScanner(c.out)
	lines.Buffer(nil, c.opts.MaxLine)
	lines.Split(WholeLines(&torn))
	for lines.Scan() {
		if err := c.opts.Line(lines.Bytes()); err != nil {
			c.Fail(err)
			return
		}
	}
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		c.Fail(fmt.Errorf("it wrote a line of more than %d bytes: an answer is one line of JSON", c.opts.MaxLine))
	case torn:
		c.Fail(errors.New(c.gone() + " in the middle of a line"))
	default:
		c.Fail(errors.New(c.gone()))
	}
}

// WholeLines makes a Scanner give lines that a line feed ends, without it. torn says
// at the end that one had none.
func WholeLines(torn *bool) bufio.SplitFunc {
	return func(data []byte, atEOF bool) (int, []byte, error) {
		if n := bytes.IndexByte(data, '\n'); n >= 0 {
			return n + 1, data[:n], nil
		}
		*torn = atEOF && len(data) > 0
		return 0, nil, nil
	}
}

// gone is what became of a program that writes no more.
func (c *Child) gone() string {
	select {
	case <-c.exited:
		return c.status
	case <-time.After(farewell):
		return "it closed its standard output"
	}
}

// basics are the variables that a program needs to start at all. Everything
// else, keys above all, reaches it only by name.
func basics() []string {
	names := []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "SystemDrive", "TEMP", "TMP", "PATHEXT", "COMSPEC", "USERPROFILE", "APPDATA",
			"LOCALAPPDATA")
	}
	return names
}

// Environment is the environment of a child: the few variables that any program
// needs (PATH, HOME, the language, the folder for temporary files) and those
// that the user names. lookup reads ours; nil knows no variable. The second
// result removes the values that were named, which may be keys, from texts.
func Environment(lookup func(string) (string, bool), named []string) ([]string, Redactor, error) {
	var env []string
	var secrets []Secret
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	for _, name := range basics() {
		if v, ok := lookup(name); ok && !slices.Contains(named, name) {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range named {
		if name == "" || strings.ContainsAny(name, "=\x00 ") {
			return nil, Redactor{}, fmt.Errorf("%q cannot be the name of an environment variable", name)
		}
		v, ok := lookup(name)
		if !ok {
			return nil, Redactor{}, fmt.Errorf("the environment has no variable %s to hand on: set it, or take it out of "+
				"pass_env", name)
		}
		env = append(env, name+"="+v)
		secrets = append(secrets, NewSecret(v))
	}
	return env, Redactor{}.With(secrets...), nil
}

// Words splits a command into words as a shell does, and does nothing else that
// a shell does. Variables, wildcards, pipes and redirections mean nothing: who wants
// them writes sh -c '…'.
func Words(command string) ([]string, error) {
	if strings.ContainsRune(command, 0) {
		return nil, errors.New("the command holds a NUL character")
	}
	words, err := shellquote.Split(command)
	if err != nil {
		return nil, fmt.Errorf("the command cannot be split into words: %w", err)
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("it names no program: write exec:PROGRAM ARGUMENT …")
	}
	return words, nil
}
