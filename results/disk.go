package results

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/memtox/memtox/internal/disk"
)

// diskError says what was being written and, where the cause is known, what
// would mend it.
func diskError(doing, path string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = ": the disk is full; free some space and go on with --resume, nothing that was finished is lost"
	case errors.Is(err, syscall.EFBIG):
		hint = ": the file would be larger than allowed here (ulimit -f); raise the limit and go on with --resume"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		hint = ": choose a directory that may be written to with --out"
	}
	var pe *fs.PathError // the path stands in front already
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s %s: %w%s", doing, path, err, hint)
}

// syncDir makes renames and removals in dir durable.
func syncDir(d disk.FS, dir string) error {
	if err := d.SyncDir(dir); err != nil {
		return diskError("syncing", dir, err)
	}
	return nil
}

// newFile is a file that gets its name once it is whole and on the disk.
type newFile struct {
	disk      disk.FS
	dir, name string
	f         disk.File
	sum       hash.Hash
	size      int64
}

func createFile(d disk.FS, dir, name string) (*newFile, error) {
	f, err := openFile(d, dir, name+tmpSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return nil, diskError("creating", in(dir, name)+tmpSuffix, err)
	}
	return &newFile{disk: d, dir: dir, name: name, f: f, sum: sha256.New()}, nil
}

func (n *newFile) Write(b []byte) (int, error) {
	k, err := n.f.Write(b)
	n.sum.Write(b[:k])
	n.size += int64(k)
	return k, err
}

// close makes the file durable, still under its temporary name.
func (n *newFile) close() (File, error) {
	err := n.f.Sync()
	if e := n.f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return File{}, diskError("writing", n.f.Name(), err)
	}
	return File{Name: n.name, Bytes: n.size, SHA256: hex.EncodeToString(n.sum.Sum(nil))}, nil
}

// publish gives the file its name, after close.
func (n *newFile) publish() error {
	path := in(n.dir, n.name)
	if err := n.disk.Rename(path+tmpSuffix, path); err != nil {
		return diskError("renaming to", path, err)
	}
	return syncDir(n.disk, filepath.Dir(path))
}

// abandon removes the temporary file. It may follow anything.
func (n *newFile) abandon() {
	n.f.Close()
	n.disk.Remove(in(n.dir, n.name) + tmpSuffix)
}

// writeFile replaces a small file in one step: whoever reads it sees the old
// content or the new one.
func writeFile(d disk.FS, dir, name string, b []byte) (file File, err error) {
	f, err := createFile(d, dir, name)
	if err != nil {
		return File{}, err
	}
	if _, err = f.Write(b); err != nil {
		err = diskError("writing", in(dir, name), err)
	}
	if err == nil {
		file, err = f.close()
	}
	if err == nil {
		err = f.publish()
	}
	if err != nil {
		f.abandon()
	}
	return file, err
}

// dangling returns the path, or the nearest one above it, if it is a symbolic link
// to nothing, else "".
func dangling(path string) string {
	for {
		if st, err := os.Lstat(path); err == nil {
			if _, err := os.Stat(path); st.Mode()&os.ModeSymlink != 0 && errors.Is(err, os.ErrNotExist) {
				return path
			}
			return ""
		}
		up := filepath.Dir(path)
		if up == path {
			return ""
		}
		path = up
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
