package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memtox/memtox/internal/disk/crash"
)

// Whatever call to the disk fails in a journal of 25 trials that becomes four parts,
// and then in the resuming of it, what was taken is not lost and nothing is doubled, no
// directory looks finished that is not, and the error names a file. MEMTOX_LONG has
// each call fail, reads of one file but the first two left out.
func TestAJournalWhoseDiskFailsAtAnyCallIsResumed(t *testing.T) {
	step := 1
	if os.Getenv("MEMTOX_LONG") == "" {
		step = 31
	}
	for k, more := 1, true; more; k += step {
		fault := []error{syscall.EIO, syscall.ENOSPC}[k%2]
		t.Run(fmt.Sprintf("%v at %d", fault, k), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a")
			if more = fillAll(t, dir, int64(k), fault); !more {
				return
			}
			fillAll(t, dir, int64(k)/2+1, fault) // resuming fails, too
			fillAll(t, dir, 0, nil)
			survived(t, dir, map[any]bool{completed{}: true})
		})
	}
}

// fillAll begins or resumes a run, has it take what it lacks and finishes it, with the
// k-th call failing. It reports whether there were as many.
func fillAll(t *testing.T, dir string, k int64, fault error) bool {
	t.Helper()
	d := crash.New(filepath.Dir(dir))
	var mu sync.Mutex
	var calls int64
	reads := map[string]int{}
	d.Fail = func(call, path string) error {
		mu.Lock()
		defer mu.Unlock()
		if call == "read" {
			if reads[path]++; reads[path] > 2 { // the hundreds of the same file are alike
				return nil
			}
		}
		if calls++; calls == k {
			return fault
		}
		return nil
	}
	taken := map[any]bool{}
	err := func() error {
		o := Options{PartRows: 6, SyncEvery: time.Hour, Disk: d}
		j, err := Resume(dir, o)
		if errors.Is(err, os.ErrNotExist) {
			j, err = Create(dir, testRun(25), o)
		}
		if err != nil {
			return err
		}
		defer j.Close()
		for i := int64(0); i < cutTrials; i += 2 {
			for n := i; n < min(i+2, cutTrials); n++ {
				f := finishedTrial(n)
				if n%5 == 0 {
					f.Transcript = nil
				}
				if j.Done(f.Trial.ID) {
					taken[n] = true
				} else if err := j.AppendAll([]Finished{f}); err != nil {
					return err
				} else {
					taken[n] = true
				}
			}
			if err := j.Sync(); err != nil {
				return err
			}
		}
		_, err = j.Finish(nil)
		return err
	}()
	switch {
	case errors.Is(err, ErrFinished):
		err = nil
	case err != nil && (k == 0 || !errors.Is(err, fault) || !strings.Contains(err.Error(), dir)):
		t.Errorf("the error is %v", err)
	case err == nil && exists(dir):
		taken[completed{}] = true
	}
	taken[created{}] = len(taken) > 0
	survived(t, dir, taken)
	return calls >= k && k > 0
}

// Whoever leaves off in the middle is not held up by what is read ahead of him.
func TestReadingAheadEndsWithItsReader(t *testing.T) {
	for try := range 50 {
		ended := false
		from := entries(func(yield func(*Entry, error) bool) {
			defer func() { ended = true }()
			var e Entry
			for i := range 8 * rowBatch {
				if i > rowBatch && i%64 == 0 {
					time.Sleep(50 * time.Microsecond)
				}
				if !yield(&e, nil) {
					return
				}
			}
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range ahead(from) {
				break
			}
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatalf("try %d: it hangs", try)
		}
		if !ended {
			t.Fatal("it still reads")
		}
	}
}

// A panic of what is read ahead comes to the reader, who can catch it.
func TestAPanicWhileReadingAheadIsTheReaders(t *testing.T) {
	from := entries(func(yield func(*Entry, error) bool) {
		var e Entry
		for range rowBatch + 7 {
			yield(&e, nil)
		}
		panic("a page that contradicts itself")
	})
	read := 0
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "contradicts itself") || read != rowBatch+7 {
			t.Errorf("after %d entries: %s", read, p)
		}
	}()
	for range ahead(from) {
		read++
	}
}
