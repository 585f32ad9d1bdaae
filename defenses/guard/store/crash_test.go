//go:build unix && !race

// The race detector switches checkptr on, which takes no address of SQLite's own memory.

package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/disk/crash"
)

// What a power cut leaves of a store holds everything that was acknowledged, nothing in
// part, and is opened without a complaint, whenever it comes; also one while the store
// is opened after another. What was forgotten does not come back. MEMTOX_LONG has it
// try 1,000 of them.
func TestPowerCutsTakeNothingAcknowledged(t *testing.T) {
	n := 20
	if os.Getenv("MEMTOX_LONG") != "" {
		n = 1000
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { powerCuts(t, uint64(seed)) })
	}
}

func powerCuts(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 9))
	base := t.TempDir()
	root := filepath.Join(base, "0")
	if err := os.Mkdir(root, 0o777); err != nil {
		t.Fatal(err)
	}
	acked := map[string]memory.State{}
	forgotten := map[string]bool{}
	opened := false
	for life := range 2 + r.IntN(3) {
		path := filepath.Join(root, "memory.db")
		if _, err := os.Stat(path); opened && errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("life %d: the store is gone", life)
		}
		d := crash.New(root)
		withDisk(t, d, func() { live(t, d, path, r, acked, forgotten) })
		if t.Failed() {
			t.Fatalf("in life %d", life)
		}
		root = filepath.Join(base, fmt.Sprint(life+1))
		for _, m := range d.Cut(t, r, r.IntN(d.Len()+1), root) {
			switch what, id, _ := strings.Cut(m.(string), " "); what {
			case "opened":
				opened = true
			case "stored":
				acked[id] = memory.Live
			case "retired":
				acked[id] = memory.Retired
			case "forgotten":
				acked[id] = memory.Retired
				forgotten[id] = true
			}
		}
	}
	path := filepath.Join(root, "memory.db")
	if _, err := os.Stat(path); !opened && errors.Is(err, fs.ErrNotExist) {
		return
	}
	s := open(t, path)
	check(t, s, path, acked, forgotten)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// live opens a store, looks whether all is there, and uses it for a while.
func live(t *testing.T, d *crash.Disk, path string, r *rand.Rand, acked map[string]memory.State,
	forgotten map[string]bool) {
	s, err := store.Open(ctx, path, store.Options{Disk: d})
	if err != nil {
		t.Errorf("opening what the cut left: %v", err)
		return
	}
	defer s.Close()
	d.Mark("opened")
	check(t, s, path, acked, forgotten)
	fail := func(err error) bool {
		if err != nil {
			t.Error(err)
		}
		return err != nil
	}
	var own []memory.Record // stored in this life and not changed since
	for range r.IntN(12) {
		switch k := r.IntN(12); {
		case k < 8:
			b := memory.Batch{At: time.Unix(1700000000, 0), Cause: memory.CauseWrite}
			size := 1 + r.IntN(4)
			for range size {
				id, err := s.NextID(ctx)
				if fail(err) {
					return
				}
				rec := record(id, "k/"+id, text(id))
				rec.Version, rec.State = size, memory.Live
				b.Records = append(b.Records, rec)
			}
			if k < 3 { // many share a wait for the disk
				if _, err := s.CommitLater(ctx, &b); fail(err) {
					return
				}
				if r.IntN(2) == 0 {
					continue // nobody waits
				}
				if fail(s.Sync(ctx)) {
					return
				}
			} else if _, err := s.Commit(ctx, &b); fail(err) {
				return
			}
			for _, rec := range b.Records {
				d.Mark("stored " + rec.ID)
			}
			own = append(own, b.Records...)
		case k == 8 && len(own) > 0:
			rec := own[len(own)-1]
			own = own[:len(own)-1]
			rec.State = memory.Retired
			b := memory.Batch{At: time.Unix(1700000000, 0), Cause: memory.CauseRetire, Records: []memory.Record{rec}}
			if _, err := s.Commit(ctx, &b); fail(err) {
				return
			}
			d.Mark("retired " + rec.ID)
		case k == 9 && len(own) > 0:
			rec := own[len(own)-1]
			own = own[:len(own)-1]
			if _, err := s.Forget(ctx, store.Forgetting{At: time.Unix(1700000000, 0), IDs: []string{rec.ID}, By: "ana",
				Why: "asked"}); fail(err) {
				return
			}
			d.Mark("forgotten " + rec.ID)
		case k > 9: // as SQLite does by itself every 4 MB, and other processes do
			db, err := sql.Open("sqlite", path)
			if fail(err) {
				return
			}
			_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint("+[]string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"}[r.IntN(4)]+
				")")
			if fail(errors.Join(err, db.Close())) {
				return
			}
		}
	}
}

// check looks whether the store has what it must have, and nothing in part.
func check(t *testing.T, s *store.History, path string, acked map[string]memory.State, forgotten map[string]bool) {
	t.Helper()
	want := map[string]memory.State{}
	for id, st := range acked {
		if !forgotten[id] {
			want[id] = st
		}
	}
	holds(t, s, want, true)
	var files []byte
	for _, name := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		files = append(files, b...)
	}
	for id := range forgotten {
		if line := text(id)[:40]; bytes.Contains(files, []byte(line)) {
			t.Errorf("record %s was forgotten, and its text is in the files", id)
		}
	}
}
