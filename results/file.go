package results

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/memtox/memtox/internal/disk"
)

// A run directory may come from somebody else. Nothing in it leads elsewhere: a
// symbolic link is not followed, and a pipe or a device is not opened, for that
// could wait for ever. The directory itself may be a link of the user's.

// openFile opens a file of a run directory. A file that is to be created is a new
// one: with O_TRUNC whatever has its name goes first.
func openFile(d disk.FS, dir, name string, flag int) (disk.File, error) {
	path := in(dir, name)
	if strings.HasPrefix(name, transcriptsDir+"/") {
		if err := plainFolder(in(dir, transcriptsDir)); err != nil {
			return nil, err
		}
	}
	if flag&os.O_CREATE != 0 {
		if flag&os.O_TRUNC != 0 {
			if err := d.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		return d.OpenFile(path, flag|os.O_EXCL) // which follows no link
	}
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, notPlain(path, before.Mode())
	}
	f, err := d.OpenFile(path, flag|noFollow)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() { // put there meanwhile
		err = notPlain(path, st.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// WriteFile replaces a small file of a run directory that this package does not know,
// in one step. What has its name may lead elsewhere: it goes.
func WriteFile(dir, name string, b []byte) error {
	_, err := writeFile(disk.OS, dir, name, b)
	return err
}

// CheckFolder refuses a folder of a run directory in which there is anything but
// folders and regular files. It need not be there.
func CheckFolder(dir, name string) error {
	return filepath.WalkDir(in(dir, name), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking into %s: %w", path, err)
		}
		if !e.IsDir() && !e.Type().IsRegular() || path == in(dir, name) && !e.IsDir() {
			return notPlain(path, e.Type())
		}
		return nil
	})
}

// plainFolder refuses what is no folder where one may be.
func plainFolder(path string) error {
	if st, err := os.Lstat(path); err == nil && !st.IsDir() {
		return notPlain(path, st.Mode())
	}
	return nil
}

func notPlain(path string, mode fs.FileMode) error {
	kind := "no regular file"
	switch {
	case mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case mode.IsDir():
		kind = "a folder"
	case mode.IsRegular():
		kind = "no folder"
	}
	return fmt.Errorf("opening %s: it is %s, and nothing in a run directory leads elsewhere; put what belongs there in "+
		"its place, or use another directory", path, kind)
}

// readFile reads a small file of a run directory.
func readFile(dir, name string) ([]byte, error) {
	f, err := openFile(disk.OS, dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRunFile+1))
	if err == nil && len(b) > maxRunFile {
		err = fmt.Errorf("larger than %d MB; this is no file of memtox", maxRunFile>>20)
	}
	return b, err
}

// describe reads the whole of an opened file.
func describe(f disk.File) (file File, err error) {
	h := sha256.New()
	file.Bytes, err = io.Copy(h, io.NewSectionReader(f, 0, 1<<62))
	file.SHA256 = hex.EncodeToString(h.Sum(nil))
	return file, err
}

// Changed is the error for a file of a run directory, or for a line of one, that is
// not what memtox wrote.
func Changed(path, format string, args ...any) error {
	return fmt.Errorf("reading %s: the file is damaged or was changed: %s; bring a sound copy of the directory, or run "+
		"again into another one",
		path, fmt.Sprintf(format, args...))
}
