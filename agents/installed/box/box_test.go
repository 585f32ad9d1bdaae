//go:build unix

package box_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/installed/box"
)

// each runs a test in both kinds of box.
func each(t *testing.T, f func(t *testing.T, o box.Options)) {
	t.Run("contained", func(t *testing.T) {
		if err := box.Enforced(); err != nil {
			t.Skip(err)
		}
		f(t, box.Options{Parent: parent(t)})
	})
	t.Run("open", func(t *testing.T) { f(t, box.Options{Parent: parent(t), Open: true}) })
}

// parent is a folder whose name is short enough for sockets.
func parent(t *testing.T) string {
	dir, err := os.MkdirTemp("", "box")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "b")
}

func open(t *testing.T, o box.Options) *box.Box {
	t.Helper()
	b, err := box.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func try(b *box.Box, script string) (string, error) {
	return b.Run(context.Background(), box.Command{Args: []string{"/bin/bash", "-c", script}})
}

func sh(t *testing.T, b *box.Box, script string) string {
	t.Helper()
	out, err := try(b, script)
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(out)
}

func TestProgramsHaveFoldersOfTheirOwn(t *testing.T) {
	each(t, func(t *testing.T, o box.Options) {
		b := open(t, o)
		got := sh(t, b, `echo "$HOME $TMPDIR $(pwd)"; touch "$HOME/a" "$TMPDIR/b" c`)
		if want := b.Home + " " + b.Tmp + " " + b.Work; got != want {
			t.Errorf("home, temporary folder and workspace are\n%s, not\n%s", got, want)
		}
		for _, file := range []string{filepath.Join(b.Home, "a"), filepath.Join(b.Tmp, "b"), filepath.Join(b.Work, "c")} {
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(b.Dir); !os.IsNotExist(err) {
			t.Errorf("the box is left: %v", err)
		}
	})
}

func TestWhatProgramsSayAndHowTheyEnd(t *testing.T) {
	each(t, func(t *testing.T, o box.Options) {
		b := open(t, o)
		if _, err := b.Start(box.Command{Args: []string{"/no/such/program"}}); err == nil {
			t.Error("a program that is not there was started")
		}
		out, err := try(b, "echo one; echo two >&2; exit 3")
		if err == nil || !strings.Contains(err.Error(), "exit status 3") || out != "one\ntwo\n" {
			t.Errorf("it said %q and ended with %v", out, err)
		}
		p, err := b.Start(box.Command{Args: []string{"/bin/sh", "-c", "yes | head -c 3000000; kill -9 $$"}})
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), "killed") || len(p.Output()) > 1<<20 {
			t.Errorf("it ended with %v, and %d bytes are kept", err, len(p.Output()))
		}
	})
}

func TestContainedProgramsReachNothingElse(t *testing.T) {
	if err := box.Enforced(); err != nil {
		t.Skip(err)
	}
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	other := t.TempDir() // under the temporary folder of the system
	if err := os.WriteFile(filepath.Join(other, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, box.Options{Parent: parent(t)})
	for what, script := range map[string]string{
		"a port of this machine": fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", outside.Addr().(*net.TCPAddr).Port),
		"an interface":           "grep -v 'lo:' /proc/net/dev | grep :",
		"another's file":         "cat " + filepath.Join(other, "secret"),
		"a folder outside":       "touch " + filepath.Join(wd, "made-in-a-box"),
		"a system folder":        "touch /etc/made-in-a-box",
		"a process outside":      fmt.Sprintf("kill -0 %d", os.Getpid()+100000),
		"a mount":                "mount -o remount,rw /",
	} {
		if out, err := try(b, script); err == nil {
			t.Errorf("a program reached %s: %s", what, out)
		}
	}
	got := sh(t, b, `grep CapEff /proc/self/status; ls /proc | grep -c '^[0-9]'`)
	if !strings.HasPrefix(got, "CapEff:\t0000000000000000\n") {
		t.Errorf("a program may do %s", got)
	} else if n, _ := strconv.Atoi(got[strings.LastIndexByte(got, '\n')+1:]); n > 10 {
		t.Errorf("a program sees %d processes", n)
	}
	sh(t, b, "touch /tmp/mine && ls /tmp/mine")
}

func TestKeptFoldersAreSeen(t *testing.T) {
	if err := box.Enforced(); err != nil {
		t.Skip(err)
	}
	kept := t.TempDir()
	if err := os.WriteFile(filepath.Join(kept, "tool"), []byte("tool"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := open(t, box.Options{Parent: parent(t), Keep: []string{kept}})
	if got := sh(t, b, "cat "+filepath.Join(kept, "tool")); got != "tool" {
		t.Errorf("the file holds %q", got)
	}
	if out, err := try(b, "echo x >"+filepath.Join(kept, "tool")); err == nil {
		t.Errorf("a file of the user's was changed: %s", out)
	}
}

func TestPortsLeadOutAndIn(t *testing.T) {
	each(t, func(t *testing.T, o box.Options) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "out there ", r.URL.Path)
		}))
		defer s.Close()
		port := s.Listener.Addr().(*net.TCPAddr).Port
		o.Ports = []int{port}
		b := open(t, o)
		got := sh(t, b, fmt.Sprintf(`bash -c "exec 3<>/dev/tcp/127.0.0.1/%d
printf 'GET /x HTTP/1.0\r\n\r\n' >&3; tail -n 1 <&3"`, port))
		if got != "out there /x" {
			t.Errorf("it read %q", got)
		}

		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("no python3")
		}
		in, err := b.Port()
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.Start(box.Command{Args: []string{"/usr/bin/env", "python3", "-c", fmt.Sprintf(`import socket
s = socket.create_server(("127.0.0.1", %d))
c, _ = s.accept()
c.sendall(c.recv(9).upper())`, in)}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			c, err := b.Dial(context.Background(), in)
			if err != nil {
				select {
				case <-p.Done():
					t.Fatal(p.Err(), p.Output())
				case <-time.After(10 * time.Millisecond):
				}
				continue
			}
			fmt.Fprint(c, "answer me")
			b, _ := io.ReadAll(c)
			c.Close()
			if string(b) != "ANSWER ME" {
				t.Errorf("it answers %q", b)
			}
			break
		}
	})
}

// leaver leaves processes behind in three ways, and names them.
const leaver = `(setsid sleep 1000 >/dev/null 2>&1 & echo $!)
(sleep 1000 >/dev/null 2>&1 & echo $!)
nohup sh -c 'trap "" TERM INT HUP; sleep 1000' >/dev/null 2>&1 & echo $!`

// marked are the processes of this machine that have a text in their environment.
func marked(text string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), text) {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestNothingIsLeftOfAClosedBox(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip(err)
	}
	each(t, func(t *testing.T, o box.Options) {
		b := open(t, o)
		sh(t, b, leaver)
		if left := atLeast(3, b.Dir); len(left) < 3 {
			t.Fatalf("the processes that it leaves are %v", left)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if left := marked(b.Dir); len(left) > 0 {
			t.Errorf("the processes %v are left", left)
		}
	})
}

// TestKilled is the program that TestNothingIsLeftOfAKill kills.
func TestKilled(t *testing.T) {
	dir := os.Getenv("MEMTOX_TEST_BOXES")
	if dir == "" {
		t.Skip("run by another test")
	}
	b, err := box.New(box.Options{Parent: dir, Open: os.Getenv("MEMTOX_TEST_OPEN") != ""})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, b, leaver)
	fmt.Println("in", b.Dir)
	select {}
}

// atLeast are the marked processes, once there are so many: a shell goes on before what it
// started has.
func atLeast(n int, text string) (pids []int) {
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if pids = marked(text); len(pids) >= n {
			break
		}
	}
	return pids
}

func TestNothingIsLeftOfAKill(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip(err)
	}
	each(t, func(t *testing.T, o box.Options) {
		if err := os.MkdirAll(o.Parent, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, both := range []bool{false, true} {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
			cmd.Env = append(os.Environ(), "MEMTOX_TEST_BOXES="+o.Parent)
			if o.Open {
				cmd.Env = append(cmd.Env, "MEMTOX_TEST_OPEN=1")
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var dir string
			if _, err := fmt.Fscanf(out, "in %s\n", &dir); err != nil {
				t.Fatal(err)
			}
			left := atLeast(3, dir)
			if len(left) < 3 {
				t.Fatalf("the processes that it leaves are %v", left)
			}
			if both {
				for _, pid := range children(cmd.Process.Pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if both && o.Open { // nothing is left to end them but the next start
				if boxes, _, err := box.SweepAgain(o.Parent); boxes != 1 || err != nil {
					t.Errorf("%d boxes were swept: %v", boxes, err)
				}
			}
			for deadline := time.Now().Add(time.Minute); len(marked(dir)) > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("the processes %v are left", marked(dir))
				}
			}
			if _, _, err := box.SweepAgain(o.Parent); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the folder is left: %v", err)
			}
		}
	})
}

// children are the processes that one started.
func children(of int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(of) {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestABoxInUseIsNotSwept(t *testing.T) {
	each(t, func(t *testing.T, o box.Options) {
		b := open(t, o)
		if boxes, processes, err := box.SweepAgain(o.Parent); boxes+processes != 0 || err != nil {
			t.Errorf("%d boxes and %d processes were swept: %v", boxes, processes, err)
		}
		sh(t, b, "true")
	})
}

func TestAForeignFolderOfBoxesIsRefused(t *testing.T) {
	dir := parent(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if b, err := box.New(box.Options{Parent: dir}); err == nil {
		b.Close()
		t.Error("boxes are made in a folder that anybody writes to")
	}
}

// What holds a box is not its programs' to take away, and what was never a box is nobody's to
// remove.
func TestOnlyWhatIsLeftOfABoxIsSwept(t *testing.T) {
	each(t, func(t *testing.T, o box.Options) {
		b := open(t, o)
		out, _ := try(b, `rm -f "$HOME/../owner" "$HOME/../../"*.lock; touch "$HOME/../owner"; ls "$HOME/.."`)
		if b.Contained {
			if boxes, processes, err := box.SweepAgain(o.Parent); boxes+processes != 0 || err != nil {
				t.Errorf("%d boxes and %d processes were swept: %v: %s", boxes, processes, err, out)
			}
			sh(t, b, "true")
		}
		mine := filepath.Join(o.Parent, "mine")
		if err := os.Mkdir(mine, 0o700); err != nil {
			t.Fatal(err)
		}
		if boxes, _, err := box.SweepAgain(o.Parent); boxes > 1 || err != nil {
			t.Error(boxes, err)
		}
		if _, err := os.Stat(mine); err != nil {
			t.Error(err)
		}
	})
}

// Processes are found by the name of their box as the system has it.
func TestABoxBehindALinkIsSweptWithItsProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip(err)
	}
	real := parent(t)
	if err := os.MkdirAll(real, 0o700); err != nil {
		t.Fatal(err)
	}
	link := real + "-link"
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	boxes := filepath.Join(link, "b")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
	cmd.Env = append(os.Environ(), "MEMTOX_TEST_BOXES="+boxes, "MEMTOX_TEST_OPEN=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	if _, err := fmt.Fscanf(out, "in %s\n", &dir); err != nil {
		t.Fatal(err)
	}
	if left := atLeast(3, dir); len(left) < 3 {
		t.Fatalf("the processes that it leaves are %v", left)
	}
	for _, pid := range children(cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if n, processes, err := box.SweepAgain(boxes); n != 1 || processes < 3 || err != nil {
		t.Errorf("%d boxes and %d processes were swept: %v", n, processes, err)
	}
	if left := marked(dir); len(left) > 0 {
		t.Errorf("the processes %v are left", left)
	}
}

// A program does not lead memtox to another socket than that of its box.
func TestTheSocketOfABoxIsNotItsProgramsToReplace(t *testing.T) {
	if err := box.Enforced(); err != nil {
		t.Skip(err)
	}
	b := open(t, box.Options{Parent: parent(t)})
	for _, script := range []string{`ln -sf /run/other.sock s/in`, `rm -f s/in`, `touch s/x`, `mv s t && mkdir s`} {
		if out, err := try(b, `cd "$HOME/.." && `+script); err == nil {
			t.Errorf("%s succeeds: %s", script, out)
		}
	}
	if st, err := os.Lstat(filepath.Join(b.Dir, "s", "in")); err != nil || st.Mode()&os.ModeSocket == 0 {
		t.Errorf("the socket is %v: %v", st, err)
	}
}

// A supervisor that is gone starts nothing, and says so.
func TestNothingStartsInABoxWithoutItsSupervisor(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip(err)
	}
	b := open(t, box.Options{Parent: parent(t), Open: true})
	p, err := b.Start(box.Command{Args: []string{"/bin/sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range children(os.Getpid()) {
		if wd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); wd == b.Dir {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("a program of it ended with %v", err)
	}
	if p, err := b.Start(box.Command{Args: []string{"/bin/true"}}); err == nil {
		t.Errorf("%+v was started", p)
	}
}

// flaky is a listener out of files, every other time.
type flaky struct {
	net.Listener
	n int
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.n++; f.n%2 == 1 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// A port goes on after a failure, and leads so many connections on and no more.
func TestAPortOutlivesAFailureAndItsClients(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		box.Forward(&flaky{Listener: l}, func(net.Conn) (net.Conn, error) { return net.Dial("tcp", echo.Addr().String()) })
	}()
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	answers := func() error {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		if _, err := io.WriteString(c, "x"); err != nil {
			return err
		}
		_, err = io.ReadFull(c, make([]byte, 1))
		return err
	}
	for i := range box.ManyConnections {
		if err := answers(); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if answers() == nil {
		t.Error("one too many is led on")
	}
	for _, c := range all {
		c.Close()
	}
	for deadline := time.Now().Add(time.Minute); answers() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is led on any more")
		}
	}
	l.Close()
	<-ended
}
