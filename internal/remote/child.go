package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

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

// Child is a running program.
type Child struct {
	opts          ProcessOptions
	cmd           *exec.Cmd
	in, out, errs *os.File
	queue         chan []byte
	closing       chan struct{} // no more lines will be sent
	closeOnce     sync.Once
	exited        chan struct{} // the program is gone
	status        string        // how, once exited is closed
	quiet         chan struct{} // its standard error is at its end
	done          chan struct{} // it is of no more use, see Err
	group         sync.WaitGroup

	mu   sync.Mutex
	err  error
	tail []byte
	cut  bool // the tail lost its beginning
}

// Start runs the program.
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
		quiet: make(chan struct{}), done: make(chan struct{})}
	c.cmd = exec.Command(name, words[1:]...)
	c.cmd.Dir, c.cmd.Env = o.Dir, append([]string{}, o.Env...)
	own(c.cmd)
	var pipes [6]*os.File
	for i := 0; i < 6; i += 2 {
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			closeAll(pipes[:])
			return nil, fmt.Errorf("starting %s: %w", words[0], err)
		}
	}
	c.cmd.Stdin, c.in, c.out, c.cmd.Stdout, c.errs, c.cmd.Stderr = pipes[0], pipes[1], pipes[2], pipes[3], pipes[4],
		pipes[5]
	if err := c.cmd.Start(); err != nil {
		closeAll(pipes[:])
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	closeAll([]*os.File{pipes[0], pipes[3], pipes[5]})
	c.group.Go(c.wait)
	c.group.Go(c.write)
	c.group.Go(c.read)
	c.group.Go(c.listen)
	return c, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
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

// Stderr is the end of what it wrote to standard error, without secrets.
func (c *Child) Stderr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opts.Redact.String(c.kept())
}

// kept is the tail, from a line's beginning if lines were lost: what is left of
// a line may be what is left of a secret.
func (c *Child) kept() string {
	s := string(c.tail)
	if c.cut {
		_, s, _ = strings.Cut(s, "\n")
	}
	return s
}

// lastWords is the last line on standard error, quoted and bounded.
func (c *Child) lastWords() string {
	s := strings.TrimSpace(c.opts.Redact.String(c.kept()))
	s = s[strings.LastIndexByte(s, '\n')+1:]
	if s == "" {
		return ""
	}
	return strconv.Quote(text.Clip(strings.ToValidUTF8(s, "\uFFFD"), 200))
}

func (c *Child) wait() {
	err := c.cmd.Wait()
	c.status = "it ended"
	if err != nil {
		c.status = "it ended (" + err.Error() + ")"
	}
	close(c.exited)
	// What it left running goes too, and must not keep us reading.
	kill(c.cmd)
	late := time.Now().Add(afterlife)
	for _, f := range []*os.File{c.out, c.errs} {
		if f.SetReadDeadline(late) != nil {
			time.AfterFunc(afterlife, func() { f.Close() })
		}
	}
}

func (c *Child) write() {
	defer c.in.Close()
	for {
		select {
		case line := <-c.queue:
			if _, err := c.in.Write(line); err != nil {
				return // why it does not read, the reader finds out
			}
			continue
		default:
		}
		select {
		case line := <-c.queue:
			if _, err := c.in.Write(line); err != nil {
				return
			}
		case <-c.done:
			return
		case <-c.closing:
			if len(c.queue) == 0 {
				return
			}
		}
	}
}

func (c *Child) read() {
	defer c.out.Close()
	r := bufio.NewReaderSize(c.out, 64<<10)
	var long []byte // a line that does not fit the reader
	for {
		part, err := r.ReadSlice('\n')
		if len(long)+len(part) > c.opts.MaxLine {
			c.Fail(fmt.Errorf("it wrote a line of more than %d bytes: an answer is one line of JSON", c.opts.MaxLine))
			return
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if err != nil {
			if len(long)+len(part) > 0 {
				c.Fail(c.gone("in the middle of a line"))
			} else {
				c.Fail(c.gone(""))
			}
			return
		}
		line := part[:len(part)-1]
		if long != nil {
			line = append(long, line...)
			long = nil
		}
		if err := c.opts.Line(line); err != nil {
			c.Fail(err)
			return
		}
	}
}

// gone is the error of a program that writes no more.
func (c *Child) gone(where string) error {
	what := "it closed its standard output"
	select {
	case <-c.exited:
		what = c.status
	case <-time.After(farewell):
	}
	if where != "" {
		what += " " + where
	}
	select { // its last words may still be on the way
	case <-c.quiet:
	case <-time.After(farewell):
	}
	return errors.New(what)
}

func (c *Child) listen() {
	defer close(c.quiet)
	defer c.errs.Close()
	buf := make([]byte, 4<<10)
	for {
		n, err := c.errs.Read(buf)
		c.mu.Lock()
		c.tail = append(c.tail, buf[:n]...)
		if over := len(c.tail) - tailBytes; over > 0 {
			c.tail = append(c.tail[:0], c.tail[over:]...)
			c.cut = true
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}
