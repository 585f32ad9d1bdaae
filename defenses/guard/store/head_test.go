package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/disk"
)

// beside is a disk on which something happens just before a link is made, and on which
// a file cannot be opened.
type beside struct {
	disk.FS
	link   func()
	closed string
}

func (d beside) Link(from, to string) error {
	if d.link != nil {
		d.link()
	}
	return d.FS.Link(from, to)
}

func (d beside) OpenFile(path string, flag int) (disk.File, error) {
	if path == d.closed {
		return nil, errors.New("killed")
	}
	return d.FS.OpenFile(path, flag)
}

// Of two that make the first head of a store the quicker one's stands, and the page says
// what it says, even if the quicker one was killed before it wrote the page.
func TestTwoMakeTheHead(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "memory.db")
	earlier, err := Open(ctx, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	// As an earlier memtox leaves it, which is writing still.
	if _, err := earlier.conn.ExecContext(ctx, "DELETE FROM page"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(HeadFile(path)); err != nil {
		t.Fatal(err)
	}
	slow := beside{FS: disk.OS, link: func() {
		for _, id := range []string{"r1", "r2", "r3"} {
			if _, err := earlier.Commit(ctx, &memory.Batch{At: time.Unix(1700000000, 0), Cause: memory.CauseWrite,
				Records: []memory.Record{{ID: id, Store: "memory", Key: id, Text: "text"}}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(ctx, path, Options{Disk: beside{FS: disk.OS, closed: HeadFile(path)}}); err == nil {
			t.Fatal("the quicker one was not killed")
		}
	}}
	s, err := Open(ctx, path, Options{Disk: slow})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if h, err := s.Head(ctx); err != nil || !h.Known || h.Now.After == 0 || h.Since != h.Now.After {
		t.Errorf("%+v, %v", h, err)
	}
}
