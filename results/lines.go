package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/memtox/memtox/internal/disk"
)

// Lines is a file of a run directory that only grows, by a line at a time, such as the
// verdicts of a model that judges. Lines that say for themselves whether they are what
// was written are the caller's. It is safe for concurrent use.
type Lines struct {
	longest int

	mu   sync.Mutex
	f    disk.File
	size int64
	sync *time.Timer // nil where everything is on the disk
	err  error       // the first failure; nothing is written after it
}

// OpenLines opens such a file, or makes it, and hands its lines to take, numbered from 1.
// The last one is not whole where a death of the process has torn it; then it is cut off.
// No line is longer than longest bytes.
func OpenLines(dir, name string, longest int, take func(n int, line []byte, whole bool) error) (*Lines, error) {
	f, err := openFile(disk.OS, dir, name, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = openFile(disk.OS, dir, name, os.O_RDWR|os.O_CREATE)
	}
	if err != nil {
		return nil, err
	}
	l := &Lines{longest: longest, f: f}
	err = l.each(f, func(n int, line []byte, whole bool) error {
		if whole {
			l.size += int64(len(line)) + 1
		}
		return take(n, line, whole)
	})
	if err == nil {
		err = f.Truncate(l.size)
	}
	if err == nil {
		err = f.Sync() // the process that wrote what is kept may have died before
	}
	if err == nil {
		err = disk.OS.SyncDir(dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lines) each(r io.Reader, take func(n int, line []byte, whole bool) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, l.longest)
	s.Split(func(data []byte, atEnd bool) (int, []byte, error) {
		i := bytes.IndexByte(data, '\n') + 1
		if i == 0 && atEnd {
			i = len(data)
		}
		if i == 0 {
			return 0, nil, nil
		}
		return i, data[:i:i], nil
	})
	n := 0
	for s.Scan() {
		n++
		line, whole := bytes.CutSuffix(s.Bytes(), []byte("\n"))
		if err := take(n, line, whole); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("reading %s: line %d: %w", l.f.Name(), n+1, err)
	}
	return nil
}

// Append adds a line, which holds no end of one. When it returns nil the line survives
// the death of the process, and a moment later that of the machine.
func (l *Lines) Append(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	n, err := l.f.WriteAt(append(line, '\n'), l.size)
	if err != nil {
		_ = l.f.Truncate(l.size) // opening it anew would do that too
		l.err = diskError("writing", l.f.Name(), err)
		return l.err
	}
	l.size += int64(n)
	if l.sync == nil {
		l.sync = time.AfterFunc(DefaultSyncEvery, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.flush()
		})
	}
	return nil
}

func (l *Lines) flush() {
	if l.sync == nil {
		return
	}
	l.sync = nil
	if err := l.f.Sync(); err != nil && l.err == nil {
		l.err = diskError("syncing", l.f.Name(), err)
	}
}

// Close makes everything durable. A nil Lines has nothing.
func (l *Lines) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sync != nil {
		l.sync.Stop()
	}
	l.flush()
	return errors.Join(l.err, l.f.Close())
}
