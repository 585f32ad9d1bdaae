package results

import (
	"errors"
	"fmt"
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

// writeFile replaces a small file in one step: whoever reads it sees the old
// content or the new one.
func writeFile(d disk.FS, dir, name string, b []byte) error {
	path := in(dir, name)
	tmp := path + tmpSuffix
	f, err := openFile(d, dir, name+tmpSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return diskError("creating", tmp, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = d.Rename(tmp, path)
	}
	if err != nil {
		d.Remove(tmp)
		return diskError("writing", path, err)
	}
	return syncDir(d, filepath.Dir(path))
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
