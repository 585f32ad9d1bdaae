//go:build unix

package store_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// kills is how often the store is killed.
const kills = 50

const childStore = "MEMTOX_TEST_KILLED_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childStore); path != "" {
		if err := writeForEver(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// text is what a record of the child holds: long enough for several pages, and
// different from one end to the other.
func text(id string) string {
	sum := sha256.Sum256([]byte(id))
	return strings.Repeat(fmt.Sprintf("%s %x ", id, sum), 1+int(sum[0])%120)
}

// writeForEver writes from several goroutines, in batches of one to five records,
// and says each record's id once it was told that the batch is on disk.
func writeForEver(path string) error {
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	failed := make(chan error, 8)
	out := make(chan string, 64)
	for w := range 4 {
		wg.Go(func() {
			for {
				var b memory.Batch
				b.At, b.Cause, b.By = time.Now(), memory.CauseWrite, fmt.Sprint("writer ", w)
				size := 1 + rand.IntN(5)
				for i := range size {
					id, err := s.NextID(ctx)
					if err != nil {
						failed <- err
						return
					}
					r := record(id, "k/"+id, text(id))
					r.Version = size // how many records its batch has
					if r.State = memory.Live; i == 1 {
						r.State = memory.Held
					}
					b.Records = append(b.Records, r)
				}
				if _, err := s.Commit(ctx, &b); err != nil {
					failed <- err
					return
				}
				if w == 0 && rand.IntN(4) == 0 { // a change, too
					r := b.Records[0]
					r.State = memory.Retired
					if _, err := s.Commit(ctx, &memory.Batch{At: time.Now(), Cause: memory.CauseRetire,
						Records: []memory.Record{r}}); err != nil {
						failed <- err
						return
					}
					out <- "retired " + r.ID
				}
				for _, r := range b.Records {
					out <- "stored " + r.ID
				}
			}
		})
	}
	go func() {
		for line := range out {
			fmt.Println(line)
		}
	}()
	return <-failed
}

// A process that is killed in the middle of writing loses nothing that it was told is
// on disk, and leaves nothing half written.
func TestKilledInMidWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	acked := map[string]memory.State{}
	for n := range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childStore+"="+path)
		child.Stderr = os.Stderr
		pipe, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		wait := time.Duration(rand.IntN(100)) * time.Millisecond
		for first := true; lines.Scan(); first = false {
			if first { // it is writing: kill it at some moment from now
				time.AfterFunc(wait, func() { child.Process.Kill() })
			}
			what, id, ok := strings.Cut(lines.Text(), " ")
			if !ok || !strings.HasPrefix(id, "r") {
				continue // the line that the kill cut off
			}
			if _, known := acked[id]; what == "retired" {
				acked[id] = memory.Retired
			} else if !known {
				acked[id] = memory.Live
			}
		}
		if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the child was not killed but ended: %v", err)
		}
		survived(t, path, acked, n == kills-1)
		if t.Failed() {
			t.Fatalf("after kill %d", n+1)
		}
	}
	t.Logf("%d kills, %d records acknowledged, none lost", kills, len(acked))
	if len(acked) < kills {
		t.Errorf("only %d records in %d runs: the test shows nothing", len(acked), kills)
	}
}

// survived checks what stands in the store. The line that says an id may be cut off
// to a shorter one, which names a record that is there all the same.
func survived(t *testing.T, path string, acked map[string]memory.State, whole bool) {
	t.Helper()
	s := open(t, path)
	defer s.Close()
	holds(t, s, acked, whole)
}

// holds checks what stands in the store.
func holds(t *testing.T, s *store.History, acked map[string]memory.State, whole bool) {
	t.Helper()
	states := map[string]memory.State{}
	used := 0
	err := s.Each(ctx, func(r *memory.Record) bool { // checks the digests
		states[r.ID] = r.State
		if forgotten := r.Text == "" && r.State == memory.Retired; !forgotten && r.Text != text(r.ID) {
			t.Errorf("record %s has another text", r.ID)
		}
		if r.State.Visible() {
			used += len(r.Text)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, st := range acked {
		if got, ok := states[id]; !ok || st == memory.Retired && got != st {
			t.Errorf("record %s was acknowledged (%s) and is not there (%s, %v)", id, st, got, ok)
		}
	}
	if n, err := s.Len(ctx); err != nil || n != len(states) {
		t.Errorf("the store says %d records (%v), %d are there", n, err, len(states))
	}
	if n, err := s.Used(ctx, "memory"); err != nil || n != used {
		t.Errorf("the store says %d bytes (%v), %d are there", n, err, used)
	}
	if !whole {
		return
	}
	// Every batch is there wholly, and the log has no gap.
	size, want := map[uint64]int{}, map[uint64]int{}
	for v, err := range s.Versions(ctx, store.Filter{Causes: []memory.Cause{memory.CauseWrite}}) {
		if err != nil || !v.Intact() {
			t.Fatalf("entry %d: %v", v.Seq, err)
		}
		size[v.Group]++
		want[v.Group] = max(want[v.Group], v.Record.Version) // one that was forgotten says nothing
	}
	for g, n := range size {
		if n != want[g] {
			t.Errorf("of batch %d, %d of %d records are there", g, n, want[g])
		}
	}
	var seqs []uint64
	for a, err := range s.Log(ctx, store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, a.Seq)
	}
	last, err := s.Last(ctx)
	if err != nil || last > 0 && (len(seqs) == 0 || seqs[len(seqs)-1] != last) || len(seqs) != int(last) ||
		!slices.IsSorted(seqs) {
		t.Errorf("the log has %d entries and ends at %d (%v)", len(seqs), last, err)
	}
}
