// Package disk is the file operations of what must outlast a crash: run directories
// and the memory store. Tests put a file layer of their own in their place, which
// fails, or records what a power cut may leave (package crash below this one).
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// FS does what the functions of package os of these names do.
type FS interface {
	// OpenFile opens a file; one that is created has the mode 0o666 before umask.
	OpenFile(path string, flag int) (File, error)
	ReadDir(dir string) ([]fs.DirEntry, error)
	Mkdir(dir string) error
	Rename(from, to string) error
	Link(from, to string) error
	Remove(path string) error
	// SyncDir makes what was created, renamed and removed in a directory durable.
	SyncDir(dir string) error
}

// File is what is used of an [os.File].
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// OS is the operating system's.
var OS FS = system{}

type system struct{}

func (system) OpenFile(path string, flag int) (File, error) {
	f, err := os.OpenFile(path, flag, 0o666)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

func (system) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
func (system) Mkdir(dir string) error                    { return os.Mkdir(dir, 0o777) }
func (system) Rename(from, to string) error              { return os.Rename(from, to) }
func (system) Link(from, to string) error                { return os.Link(from, to) }
func (system) Remove(path string) error                  { return os.Remove(path) }

func (system) SyncDir(dir string) error {
	if runtime.GOOS == "windows" { // directories cannot be synced there
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// MkdirAll makes a directory and those above it that are missing. Its own name is
// durable then, also where it was there: what is in a directory is lost with its name.
func MkdirAll(d FS, dir string) error {
	isDir := func() bool {
		st, err := os.Stat(dir)
		return err == nil && st.IsDir()
	}
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	above := filepath.Dir(dir)
	if !isDir() {
		if above != dir {
			if err := MkdirAll(d, above); err != nil {
				return err
			}
		}
		if err := d.Mkdir(dir); err != nil && !isDir() { // nobody else has made it meanwhile
			return err
		}
	}
	if err := d.SyncDir(above); err != nil && !errors.Is(err, fs.ErrPermission) { // a directory need not be readable
		return err
	}
	return nil
}
