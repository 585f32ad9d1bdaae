//go:build unix

package box

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A program that is started under this name is a supervisor, whichever program links
// this package.
func init() {
	if len(os.Args) == 1 && os.Args[0] == name {
		os.Exit(supervise(os.Stdin, os.Stdout))
	}
}

func supported() error { return nil }

const systemPath = "/usr/local/bin:/usr/bin:/bin"

// hold takes the lock of a file, which lasts as long as this process at most.
func hold(path string, wait bool) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}

// mine refuses a folder that another user may have made or may write to.
func mine(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if s, ok := st.Sys().(*syscall.Stat_t); !st.IsDir() || st.Mode().Perm()&0o022 != 0 || ok && int(s.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder of this user's alone: remove it, or set TMPDIR to a folder of your own", dir)
	}
	return nil
}

// supervise starts the programs of a box until its input ends, and ends them then.
func supervise(in io.Reader, out io.Writer) int {
	runtime.LockOSThread() // see adopt
	var mu, saying sync.Mutex
	running := map[int]*program{}
	say := func(e event) {
		saying.Lock()
		defer saying.Unlock()
		b, _ := json.Marshal(e)
		_, _ = out.Write(append(b, '\n'))
	}
	orders := json.NewDecoder(bufio.NewReader(in))
	var p plan
	if err := orders.Decode(&p); err != nil {
		say(event{Number: -1, Failed: "it was not told what to do: " + err.Error()})
		return 1
	}
	if err := adopt(&p); err != nil {
		say(event{Number: -1, Failed: err.Error()})
		return 1
	}
	say(event{Number: -1, Ready: true})
	born := make(chan struct{}, 1) // there is something to wait for
	go func() {
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			switch err {
			case nil:
			case syscall.EINTR:
				continue
			default: // no child
				<-born
				continue
			}
			mu.Lock()
			p := running[pid]
			delete(running, pid)
			mu.Unlock()
			if p == nil {
				continue // adopted
			}
			said := fmt.Sprintf("exit status %d", status.ExitStatus())
			if status.Signaled() {
				said = "signal: " + status.Signal().String()
			}
			go func() {
				select {
				case <-p.printed:
				case <-time.After(afterlife): // what it started may print for ever
				}
				say(event{Number: p.number, Ended: said})
			}()
		}
	}()
	for {
		var o order
		if orders.Decode(&o) != nil {
			break
		}
		mu.Lock()
		pid, printed, err := start(&o)
		if err == nil {
			running[pid] = &program{o.Number, printed}
		}
		mu.Unlock()
		if err != nil {
			say(event{Number: o.Number, Failed: err.Error()})
			continue
		}
		say(event{Number: o.Number})
		select {
		case born <- struct{}{}:
		default:
		}
	}
	mu.Lock() // nothing more is started, and nothing waited for but by the system
	var groups []int
	for pid := range running {
		groups = append(groups, pid)
	}
	endAll(groups)
	return 0
}

// program is one that was started.
type program struct {
	number  int
	printed <-chan struct{} // closed when it prints no more
}

// afterlife is how long is waited for what a program printed, once it has ended.
const afterlife = 500 * time.Millisecond

// start starts a program in a process group of its own. What it prints goes to a file,
// as far as it is kept.
func start(o *order) (pid int, printed <-chan struct{}, err error) {
	if len(o.Args) == 0 {
		return 0, nil, fmt.Errorf("no program is named")
	}
	f, err := os.OpenFile(o.Log, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return 0, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		f.Close()
		return 0, nil, err
	}
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err == nil { // not by package os, which would wait for the program too
		defer null.Close()
		pid, err = syscall.ForkExec(o.Args[0], o.Args, &syscall.ProcAttr{Dir: o.Dir, Env: o.Env,
			Files: []uintptr{null.Fd(), w.Fd(), w.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true}})
	}
	if err != nil {
		f.Close()
		r.Close()
		return 0, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer f.Close()
		defer r.Close()
		_, _ = io.CopyN(f, r, maxLog)
		_, _ = io.Copy(io.Discard, r)
	}()
	return pid, done, nil
}

// killGroup ends a process group.
func killGroup(id int) { _ = syscall.Kill(-id, syscall.SIGKILL) }

func (p *plan) socket(name string) string { return filepath.Join(p.Dir, sockets, name) }
