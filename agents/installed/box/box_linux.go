package box

import (
	"bufio"
	"bytes"
	"context"
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
	"unsafe"
)

// Enforced says why the system cannot hold programs to a box; nil: it does. It is tried
// once, with a box.
func Enforced() error { return enforced() }

var enforced = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp(filepath.Dir(Parent()), "") // with a name short enough for sockets
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &Box{Dir: dir, Contained: true}
	for _, d := range []string{logs, sockets} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	err = b.supervise(plan{Dir: dir, Hide: Hidden(), Contained: true})
	if e := b.Close(); err == nil {
		err = e
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		err = errors.New("user.max_user_namespaces allows no more of them")
	case errors.Is(err, syscall.EPERM):
		err = errors.New("the system does not let this user make any")
	}
	if err != nil {
		return fmt.Errorf("no namespaces are to be had here: %w", err)
	}
	return nil
})

func self() string { return "/proc/self/exe" }

const nobody = 65534

// own gives the supervisor a process group, and what contains a box.
func own(c *exec.Cmd, contained bool) {
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal of the user's
	if !contained {
		return
	}
	a, uid, gid := c.SysProcAttr, os.Geteuid(), os.Getegid()
	inside := func(id int) int {
		if id == 0 {
			return nobody // or programs would keep what the supervisor may do
		}
		return id
	}
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS |
		syscall.CLONE_NEWIPC
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside(uid), HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside(gid), HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{capNetAdmin, capSysAdmin}
}

// Numbers of the system that package syscall does not have.
const (
	capNetAdmin          = 12
	capSysAdmin          = 21
	prSetChildSubreaper  = 36
	prSetNoNewPrivs      = 38
	prCapAmbient         = 47
	prCapAmbientClearAll = 4
	sysMountSetattr      = 442
	atRecursive          = 0x8000
	mountReadOnly        = 1
	openPath             = 0x200000
	atFDCWD              = -100
)

// Hidden are the folders that a box does not show: the user's, and those in which
// programs leave files for each other.
func Hidden() []string {
	var out []string
	home, _ := os.UserHomeDir()
	for _, dir := range []string{home, os.TempDir(), "/tmp", "/var/tmp", "/dev/shm", "/run"} {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != "/" && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	slices.Sort(out) // what stands in another one comes after it
	return out
}

// adopt, on the thread that starts the programs, makes this process the parent of
// whatever a program of the box leaves behind, and builds the box around it.
func adopt(p *plan) error {
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); e != 0 {
		return fmt.Errorf("adopting what programs leave behind: %w", e)
	}
	if !p.Contained {
		return nil
	}
	if err := p.mounts(); err != nil {
		return err
	}
	if err := loopback(); err != nil {
		return err
	}
	if err := p.sockets(); err != nil {
		return err
	}
	// The programs, which this thread starts, get nothing of what was needed for this.
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prCapAmbient, prCapAmbientClearAll, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("giving up what a supervisor may do: %w", e)
	}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("giving up new privileges: %w", e)
	}
	return nil
}

// mounts hides what is not the box's, and lets nothing else be written.
func (p *plan) mounts() error {
	const private = syscall.MS_NOSUID | syscall.MS_NODEV
	fail := func(doing, path string, err error) error { return fmt.Errorf("%s %s in a box: %w", doing, path, err) }
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fail("keeping changes of", "/", err)
	}
	type kept struct {
		path string
		file bool
		fd   int
	}
	var keep []kept
	for _, path := range append([]string{p.Dir}, p.Keep...) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fail("keeping", path, err)
		}
		st, err := os.Stat(real)
		if err != nil {
			return fail("keeping", path, err)
		}
		fd, err := syscall.Open(real, openPath|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fail("keeping", path, err)
		}
		defer syscall.Close(fd)
		keep = append(keep, kept{real, !st.IsDir(), fd})
	}
	slices.SortFunc(keep, func(a, b kept) int { return strings.Compare(a.path, b.path) })
	var open []string // to be written to
	for _, dir := range p.Hide {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			continue // it stood in one that is hidden already
		}
		if slices.ContainsFunc(keep, func(k kept) bool { return !k.file && within(dir, k.path) && k.path != p.Dir }) {
			continue // it is to be seen
		}
		if err := syscall.Mount("memtox", dir, "tmpfs", private, "size=256m,mode=0700"); err != nil {
			return fail("hiding", dir, err)
		}
		open = append(open, dir)
	}
	for _, k := range keep {
		if !slices.ContainsFunc(p.Hide, func(dir string) bool { return within(k.path, dir) }) && k.path != p.Dir {
			continue
		}
		if _, err := os.Stat(k.path); errors.Is(err, fs.ErrNotExist) {
			dir := k.path
			if k.file {
				dir = filepath.Dir(dir)
			}
			if err = os.MkdirAll(dir, 0o755); err == nil && k.file {
				err = os.WriteFile(k.path, nil, 0o600)
			}
			if err != nil {
				return fail("keeping", k.path, err)
			}
		}
		from := "/proc/self/fd/" + strconv.Itoa(k.fd)
		if err := syscall.Mount(from, k.path, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fail("keeping", k.path, err)
		}
	}
	if err := readOnly("/", true); err != nil { // ENOSYS: a kernel before 5.12
		return fail("closing", "/", err)
	}
	for _, dir := range append(open, p.Dir) {
		if err := readOnly(dir, false); err != nil {
			return fail("opening", dir, err)
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", private|syscall.MS_NOEXEC, ""); err != nil {
		return fail("mounting", "/proc", err)
	}
	return os.Chdir(p.Dir) // what stood there before is another folder now
}

// within reports whether a path is a folder or stands in it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// readOnly closes a mount and all below it to writing, or opens one.
func readOnly(path string, close bool) error {
	attr := struct{ set, clear, propagation, user uint64 }{}
	flags := uintptr(0)
	if close {
		attr.set, flags = mountReadOnly, atRecursive
	} else {
		attr.clear = mountReadOnly
	}
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := atFDCWD
	_, _, e := syscall.Syscall6(sysMountSetattr, uintptr(at), uintptr(unsafe.Pointer(name)), flags,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if e != 0 {
		return e
	}
	return nil
}

// loopback sets the loopback interface up.
func loopback() error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("setting the loopback up: %w", err)
	}
	defer syscall.Close(s)
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	if e != 0 {
		return fmt.Errorf("setting the loopback up: %w", e)
	}
	return nil
}

// sockets lead the ports of this machine out of the box, and connections into it.
func (p *plan) sockets() error {
	for _, port := range p.Ports {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("leading port %d out of the box: %w", port, err)
		}
		go forward(l, func(net.Conn) (net.Conn, error) { return net.Dial("unix", p.socket(strconv.Itoa(port))) })
	}
	l, err := net.Listen("unix", p.socket(into))
	if err != nil {
		return fmt.Errorf("leading into the box: %w", err)
	}
	dir := filepath.Dir(p.socket(into))
	// A program must not put a link to another socket in the place of one.
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("closing %s in a box: %w", dir, err)
	}
	if err := readOnly(dir, true); err != nil {
		return fmt.Errorf("closing %s in a box: %w", dir, err)
	}
	go forward(l, func(c net.Conn) (net.Conn, error) {
		line, err := bufio.NewReaderSize(oneByOne{c}, 16).ReadString('\n')
		if err != nil {
			return nil, err
		}
		d := net.Dialer{Timeout: 10 * time.Second}
		to, err := d.DialContext(context.Background(), "tcp", "127.0.0.1:"+strings.TrimSpace(line))
		if err == nil {
			_, err = c.Write([]byte{'\n'})
		}
		return to, err
	})
	return nil
}

// oneByOne reads no further than it is asked to.
type oneByOne struct{ io.Reader }

func (o oneByOne) Read(b []byte) (int, error) { return o.Reader.Read(b[:1]) }

// endAll ends all processes that this one started or adopted, and waits for them: the
// time that they took is then that of the box.
func endAll(groups []int) {
	defer func() {
		for err := error(nil); err == nil || err == syscall.EINTR; {
			_, err = syscall.Wait4(-1, nil, 0, nil)
		}
	}()
	if os.Getpid() == 1 { // the first of a box of its own
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	for range 100 { // what is ended may have started something meanwhile
		for _, id := range groups {
			killGroup(id)
		}
		children := descendants(os.Getpid())
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(children) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// processes calls yield with every process of the system and a file of it.
func processes(file string, yield func(pid int, content []byte)) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if b, err := os.ReadFile(filepath.Join("/proc", e.Name(), file)); err == nil {
				yield(pid, b)
			}
		}
	}
}

// descendants are the processes below one that still run.
func descendants(of int) (out []int) {
	parent := map[int]int{}
	processes("stat", func(pid int, b []byte) {
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(fields) > 1 && fields[0] != "Z" {
			parent[pid], _ = strconv.Atoi(fields[1])
		}
	})
	for pid := range parent {
		for up := parent[pid]; up > 1; up = parent[up] {
			if up == of {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

// end ends the processes that a box was left with: they have its name in their
// environment.
func end(dir string) (n int) {
	mark := []byte("\x00" + marker + "=" + dir + "\x00")
	for range 100 {
		found := false
		processes("environ", func(pid int, b []byte) {
			b = append(append([]byte{0}, b...), 0)
			if pid != os.Getpid() && bytes.Contains(b, mark) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
				n++
			}
		})
		if !found {
			return n
		}
		time.Sleep(5 * time.Millisecond)
	}
	return n
}
