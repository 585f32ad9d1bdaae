package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/memtox/memtox/internal/disk"
	"github.com/memtox/memtox/internal/settings"
)

// ReadKey reads a file that nobody but its owner may read.
func ReadKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch st, err := f.Stat(); {
	case err != nil:
		return nil, err
	case st.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows": // which keeps no such bits
		return nil, &settings.Problem{Where: path, What: fmt.Sprintf("others can use this key: its mode is %#o",
			st.Mode().Perm()),
			Hint: "chmod 600 " + path + "; if somebody may have read it, draw a new key and approve the records anew"}
	}
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// WriteKey puts a key's file there whole, or returns an error that is fs.ErrExist: a
// key that is there may be the only one that somebody trusts.
func WriteKey(path, text string, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".memtox-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(text + "\n")
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return putNew(disk.OS, tmp.Name(), path)
}
