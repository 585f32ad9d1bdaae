//go:build unix

package results

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// noFollow is for files of a run directory: no link is followed, no pipe waited for.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// Lock takes a run directory for this process. The kernel lets go of it
// when the process ends, however it ends.
func Lock(dir string) (unlock func(), err error) {
	path := in(dir, lockFile)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|noFollow, 0o666)
		if err != nil {
			if st, e := os.Lstat(path); e == nil && !st.Mode().IsRegular() {
				err = notPlain(path, st.Mode())
			}
			return nil, diskError("creating", path, err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("run directory %s: %w", dir, ErrInUse)
		}
		// some network file systems have no locks
		if err != nil && !errors.Is(err, syscall.ENOLCK) && !errors.Is(err, syscall.ENOTSUP) {
			f.Close()
			return nil, diskError("locking", path, err)
		}
		// Whoever held it before may have removed the file meanwhile.
		held, err1 := f.Stat()
		now, err2 := os.Lstat(path)
		if err1 == nil && err2 == nil && !held.Mode().IsRegular() {
			f.Close()
			return nil, notPlain(path, held.Mode())
		}
		if err1 == nil && err2 == nil && os.SameFile(held, now) {
			return func() {
				os.Remove(path)
				f.Close()
			}, nil
		}
		f.Close()
	}
}
