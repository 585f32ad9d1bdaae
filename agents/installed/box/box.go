// Package box holds programs that nobody trusts: folders of their own, and processes
// that end with the box, and with this process however that ends.
//
// Where Linux gives namespaces to its user, a box has its own network, which is a
// loopback and nothing else, its own processes, and a file system in which only its own
// folders can be written and the user's home is not to be seen. Elsewhere the folders
// and the processes are its own as far as the programs keep to them.
//
// A small program stands between, the supervisor: this one, started anew under another
// name. It starts the programs of the box and ends them all when the pipe to it closes,
// which the system does when this process is killed. What a kill of both leaves, [Sweep]
// finds at the next start.
package box

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/text"
)

// Options say what a box is.
type Options struct {
	// Parent is where boxes lie; "" is [Parent].
	Parent string
	// Keep are folders and files of the user's that its programs may read, where the
	// box hides what stands around them.
	Keep []string
	// Ports are those of this machine's loopback that its programs reach.
	Ports []int
	// Open makes a box without namespaces even where they are to be had.
	Open bool
}

// Box is folders and processes. Its methods may be called at once.
type Box struct {
	// Dir is the box, and in it the home, workspace and temporary folder of its programs.
	Dir, Home, Work, Tmp string
	// Contained says that the system holds the programs to the box.
	Contained bool

	lock      io.Closer
	cmd       *exec.Cmd
	in        io.WriteCloser
	errs      bytes.Buffer
	gone      chan struct{} // the supervisor is
	end       error         // why, once gone is closed
	listeners []net.Listener
	serving   sync.WaitGroup

	mu        sync.Mutex
	processes []*Process // by number
	closed    bool
}

// Command is a program to start.
type Command struct {
	Args []string
	Env  []string // beside HOME, TMPDIR and PATH
	Dir  string   // "" is the workspace
}

// Process is a program of a box.
type Process struct {
	dir     string // of its box
	log     string // in it
	started chan error
	done    chan struct{}
	err     error // once done is closed
}

// What the supervisor is told, a line each, and what it says.
type (
	plan struct {
		Dir       string
		Keep      []string
		Hide      []string
		Ports     []int
		Contained bool
	}
	order struct {
		Number    int
		Args, Env []string
		Dir, Log  string
	}
	event struct {
		Number int
		Ready  bool
		Failed string
		Ended  string
	}
)

// name is what the supervisor is called, by which this program knows that it is one.
const name = "memtox-supervisor"

// Names in a box beside the folders.
const (
	lockName = "owner"      // of the folder of boxes
	locked   = ".lock"      // behind the name of a box: beside it, where its programs do not write
	marker   = "MEMTOX_BOX" // the variable that every process of a box has
	logs     = "log"
	sockets  = "s"
	into     = "in" // the socket by which programs of the box are reached
)

// Parent is where boxes lie if nothing else is said: a folder of the user's, with a name
// short enough for sockets.
func Parent() string {
	dir := os.TempDir()
	if len(dir) > 40 && os.PathSeparator == '/' {
		dir = "/tmp"
	}
	return filepath.Join(dir, fmt.Sprintf("memtox-boxes-%d", os.Getuid()))
}

// New makes a box. Boxes whose owner is gone are swept first.
func New(o Options) (_ *Box, err error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if o.Parent == "" {
		o.Parent = Parent()
	}
	if err := Sweep(o.Parent); err != nil {
		return nil, err
	}
	dir, lock, err := place(o.Parent)
	if err != nil {
		return nil, fmt.Errorf("making a box: %w", err)
	}
	b := &Box{lock: lock, Dir: dir, Home: filepath.Join(dir, "home"), Work: filepath.Join(dir, "work"),
		Tmp: filepath.Join(dir, "tmp")}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	for _, d := range []string{b.Home, b.Work, b.Tmp, filepath.Join(dir, logs), filepath.Join(dir, sockets)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, fmt.Errorf("making a box: %w", err)
		}
	}
	b.Contained = !o.Open && Enforced() == nil
	if b.Contained {
		if err := b.reach(o.Ports); err != nil {
			return nil, err
		}
	}
	return b, b.supervise(plan{Dir: dir, Keep: o.Keep, Hide: Hidden(), Ports: o.Ports, Contained: b.Contained})
}

// place makes the folder of a box, which is locked as long as this process lives.
func place(parent string) (dir string, lock io.Closer, err error) {
	making, err := hold(filepath.Join(parent, lockName), true)
	if err != nil {
		return "", nil, err
	}
	defer making.Close()
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp(parent, "*"+locked)
	if err != nil {
		return "", nil, err
	}
	f.Close()
	dir = strings.TrimSuffix(f.Name(), locked)
	outer, err := hold(f.Name(), false)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	var inner io.Closer
	if err == nil {
		inner, err = hold(filepath.Join(dir, lockName), false) // where an earlier memtox looks
	}
	if err != nil {
		os.Remove(f.Name())
		if outer != nil {
			outer.Close()
		}
		return "", nil, err
	}
	return dir, locks{outer, inner}, nil
}

// locks are let go of at once.
type locks []io.Closer

func (l locks) Close() error {
	for _, c := range l {
		c.Close()
	}
	return nil
}

// supervise starts the supervisor.
func (b *Box) supervise(p plan) error {
	cmd := exec.Command(self())
	cmd.Args, cmd.Env, cmd.Dir = []string{name}, []string{}, b.Dir
	cmd.Stderr, cmd.WaitDelay = &b.errs, time.Second
	own(cmd, b.Contained)
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting the supervisor of a box: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("starting the supervisor of a box: %w", err)
	}
	b.cmd, b.in, b.gone = cmd, in, make(chan struct{})
	ready := make(chan error, 1)
	b.serving.Go(func() { b.listen(out, ready) })
	if err := json.NewEncoder(in).Encode(p); err != nil {
		return fmt.Errorf("starting the supervisor of a box: %w", err)
	}
	if err := <-ready; err != nil {
		return fmt.Errorf("starting the supervisor of a box: %w", err)
	}
	return nil
}

// listen takes what the supervisor says, until it is gone.
func (b *Box) listen(out io.Reader, ready chan<- error) {
	lines := json.NewDecoder(bufio.NewReader(out))
	for {
		var e event
		if err := lines.Decode(&e); err != nil {
			break
		}
		b.mu.Lock()
		var p *Process
		if e.Number >= 0 && e.Number < len(b.processes) {
			p = b.processes[e.Number]
		}
		b.mu.Unlock()
		switch {
		case e.Ready:
			ready <- nil
		case e.Number < 0:
			ready <- errors.New(line(e.Failed))
		case p == nil:
		case e.Failed != "":
			p.started <- errors.New(line(e.Failed))
		case e.Ended != "":
			p.end(errors.New("it ended: " + e.Ended))
		default:
			p.started <- nil
		}
	}
	_ = b.cmd.Wait()
	err := errors.New("the supervisor of its box is gone")
	if s := strings.TrimSpace(b.errs.String()); s != "" {
		err = fmt.Errorf("%w: %s", err, line(s))
	}
	select {
	case ready <- err:
	default:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.processes {
		p.end(err)
	}
	b.end = err
	close(b.gone)
}

func (p *Process) end(err error) {
	select {
	case <-p.done:
	default:
		p.err = err
		close(p.done)
	}
}

// Start starts a program in the box.
func (b *Box) Start(c Command) (*Process, error) {
	dir := c.Dir
	if dir == "" {
		dir = b.Work
	}
	b.mu.Lock()
	n := len(b.processes)
	p := &Process{dir: b.Dir, log: filepath.Join(logs, strconv.Itoa(n)), started: make(chan error, 1),
		done: make(chan struct{})}
	b.processes = append(b.processes, p)
	env := slices.Clone(c.Env)
	for _, v := range []string{"HOME=" + b.Home, "TMPDIR=" + b.Tmp, "PATH=" + systemPath, "LANG=C.UTF-8"} {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(env, func(set string) bool { return strings.HasPrefix(set, name+"=") }) {
			env = append(env, v)
		}
	}
	env = append(env, marker+"="+b.Dir)
	line, err := json.Marshal(order{Number: n, Args: c.Args, Env: env, Dir: dir, Log: filepath.Join(b.Dir, p.log)})
	if err == nil {
		_, err = b.in.Write(append(line, '\n'))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Args[0], err)
	}
	select {
	case err = <-p.started:
	case <-b.gone:
		err = b.end
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Args[0], err)
	}
	return p, nil
}

// Run starts a program, waits until it has ended, and returns what it printed.
func (b *Box) Run(ctx context.Context, c Command) (string, error) {
	p, err := b.Start(c)
	if err != nil {
		return "", err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return p.Output(), context.Cause(ctx)
	}
	if err := p.err; err != nil && err.Error() != "it ended: "+well {
		return p.Output(), fmt.Errorf("%s: %w", c.Args[0], err)
	}
	return p.Output(), nil
}

// well is how a program ends that did not fail.
const well = "exit status 0"

// Done is closed once the program has ended; Err says how.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the program ended, once Done is closed.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// maxLog bounds what is kept of what a program prints.
const maxLog = 1 << 20

// Output is what the program printed so far, as far as it is kept.
func (p *Process) Output() string {
	root, err := os.OpenRoot(p.dir) // the program may have put a link in its log's place
	if err != nil {
		return ""
	}
	defer root.Close()
	f, err := root.OpenFile(p.log, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	b, _ := io.ReadAll(io.LimitReader(f, 2*maxLog))
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// LastWords is the last line that the program printed, quoted and bounded.
func (p *Process) LastWords() string {
	s := strings.TrimSpace(p.Output())
	return strconv.Quote(text.Clip(s[strings.LastIndexByte(s, '\n')+1:], 300))
}

// Dial reaches a port of the loopback of the box.
func (b *Box) Dial(ctx context.Context, port int) (net.Conn, error) {
	var d net.Dialer
	if !b.Contained {
		return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}
	c, err := d.DialContext(ctx, "unix", filepath.Join(b.Dir, sockets, into))
	if err != nil {
		return nil, err
	}
	if _, err = fmt.Fprintf(c, "%d\n", port); err == nil {
		_, err = io.ReadFull(c, make([]byte, 1)) // says that the port answers
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("nothing answers at port %d of the box", port)
	}
	return c, nil
}

// Port is a port of the loopback of the box that nothing listens at.
func (b *Box) Port() (int, error) {
	if b.Contained {
		return 8700, nil // memtox takes others, see reach
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// reach lets the programs of a contained box reach ports of this machine: a socket of
// each stands in the box, and the supervisor leads to it what is sent to the port.
func (b *Box) reach(ports []int) error {
	for _, port := range ports {
		l, err := net.Listen("unix", filepath.Join(b.Dir, sockets, strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("making a box: %w", err)
		}
		b.listeners = append(b.listeners, l)
		b.serving.Go(func() {
			forward(l, func(net.Conn) (net.Conn, error) { return net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)) })
		})
	}
	return nil
}

// manyConnections are the most that a port leads on at once: further ones are closed. A
// program of a box could else use up the files that this process may open.
const manyConnections = 256

// forward leads every connection to another, until the listener is closed.
func forward(l net.Listener, to func(net.Conn) (net.Conn, error)) {
	slots := make(chan struct{}, manyConnections)
	var open sync.WaitGroup
	defer open.Wait()
	var conns sync.Map
	defer func() {
		for c := range conns.Range {
			_ = c.(net.Conn).Close()
		}
	}()
	for {
		a, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many files are open, perhaps
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			a.Close()
			continue
		}
		conns.Store(a, true)
		open.Go(func() {
			defer func() { <-slots }()
			defer conns.Delete(a)
			defer a.Close()
			z, err := to(a)
			if err != nil {
				return
			}
			defer z.Close()
			var there sync.WaitGroup
			there.Go(func() { pipe(z, a) })
			pipe(a, z)
			there.Wait()
		})
	}
}

// pipe copies until the end, and says so to whoever reads.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if c, ok := to.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
}

// Close ends all processes of the box and removes its folders.
func (b *Box) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	for _, l := range b.listeners {
		l.Close()
	}
	if b.in != nil {
		b.in.Close()
		select {
		case <-b.gone:
		case <-time.After(10 * time.Second): // it is stuck: its processes end with it
			_ = b.cmd.Process.Kill()
		}
	}
	b.serving.Wait()
	if !b.Contained {
		end(b.Dir) // what its supervisor did not find
	}
	err := remove(b.Dir)
	if b.lock != nil {
		if err == nil {
			_ = os.Remove(b.Dir + locked) // what is left of it the next start removes
		}
		b.lock.Close()
	}
	return err
}

// remove removes a folder in which somebody may have taken the right to write away.
func remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err = os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing a box: %w", err)
	}
	return nil
}

var swept sync.Map // parents, once each

// Sweep ends what is left of boxes whose owner is gone, and removes them. Of a folder
// that was swept already it does nothing.
func Sweep(parent string) error {
	if _, done := swept.LoadOrStore(parent, true); done {
		return nil
	}
	_, _, err := sweep(parent)
	return err
}

func sweep(parent string) (boxes, processes int, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return 0, 0, fmt.Errorf("making the folder of boxes: %w", err)
	}
	if err := mine(parent); err != nil {
		return 0, 0, err
	}
	making, err := hold(filepath.Join(parent, lockName), true)
	if err != nil {
		return 0, 0, fmt.Errorf("looking for boxes that were left: %w", err)
	}
	defer making.Close()
	if parent, err = filepath.EvalSymlinks(parent); err != nil { // processes have it in their environment
		return 0, 0, fmt.Errorf("looking for boxes that were left: %w", err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return 0, 0, fmt.Errorf("looking for boxes that were left: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), locked)
		if !ok || name == "" || !e.Type().IsRegular() {
			continue // no box
		}
		dir := filepath.Join(parent, name)
		lock, err := hold(dir+locked, false)
		if err != nil {
			continue // somebody works in it
		}
		processes += end(dir)
		if err := remove(dir); err == nil {
			boxes++
			_ = os.Remove(dir + locked)
		}
		lock.Close()
	}
	return boxes, processes, nil
}

// line is what another program said, in one bounded line.
func line(s string) string { return text.Clip(inert.Text(strings.Join(strings.Fields(s), " ")), 400) }
