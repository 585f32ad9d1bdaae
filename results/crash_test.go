package results

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/memtox/memtox/internal/disk/crash"
)

// schedules is how many power cuts a test tries: MEMTOX_LONG has it try 1,000.
func schedules() int {
	if os.Getenv("MEMTOX_LONG") != "" {
		return 1000
	}
	return 20
}

// What a power cut leaves of a run holds every trial that was acknowledged, no trial
// twice and none in part, whenever it comes; also one while the run is resumed after
// another.
func TestPowerCutsTakeNoAcknowledgedTrial(t *testing.T) {
	for seed := range schedules() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { powerCuts(t, uint64(seed), false) })
	}
}

// The same where a run is at its end: the cuts come while it becomes Parquet.
func TestPowerCutsWhileARunIsCompacted(t *testing.T) {
	for seed := range schedules() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { powerCuts(t, uint64(seed), true) })
	}
}

const cutTrials = 25

// created and completed are what Create and Finish acknowledge; trials by their index.
type (
	created   struct{}
	completed struct{}
)

// powerCuts has a run live, be cut off and resumed up to three times, and end.
func powerCuts(t *testing.T, seed uint64, atTheEnd bool) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seed, 7))
	base := t.TempDir()
	root := filepath.Join(base, "0")
	if err := os.Mkdir(root, 0o777); err != nil {
		t.Fatal(err)
	}
	acked := map[any]bool{}
	for life := range 1 + r.IntN(3) {
		d := crash.New(root)
		from := live(t, d, filepath.Join(root, "runs", "a"), r, acked, atTheEnd)
		if t.Failed() {
			t.Fatalf("in life %d", life)
		}
		root = filepath.Join(base, fmt.Sprint(life+1))
		for _, m := range d.Cut(t, r, from+r.IntN(d.Len()-from+1), root) {
			acked[m] = true
		}
		survived(t, filepath.Join(root, "runs", "a"), acked)
		if t.Failed() {
			t.Fatalf("after life %d", life)
		}
	}
	dir := filepath.Join(root, "runs", "a")
	if j := reopen(t, dir, Options{Disk: crash.New(root)}); j != nil {
		if t.Failed() {
			t.FailNow()
		}
		for i := range int64(cutTrials) {
			if f := finishedTrial(i); !j.Done(f.Trial.ID) {
				if err := j.AppendAll([]Finished{f}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := j.Finish(nil); err != nil {
			t.Fatal(err)
		}
	}
	acked[completed{}] = true
	survived(t, dir, acked)
	if t.Failed() {
		t.Fatal("at the end")
	}
}

// reopen resumes a run, or begins it where nothing is left of it. It returns nil for a
// run that is finished.
func reopen(t *testing.T, dir string, o Options) *Journal {
	t.Helper()
	j, err := Resume(dir, o)
	if errors.Is(err, fs.ErrNotExist) {
		j, err = Create(dir, testRun(25), o)
	}
	if errors.Is(err, ErrFinished) {
		return nil
	}
	if err != nil {
		t.Errorf("opening what the cut left: %v", err)
		return nil
	}
	return j
}

// live goes on with a run for a while. What is acknowledged is marked. It returns the
// event from which on it may be cut.
func live(t *testing.T, d *crash.Disk, dir string, r *rand.Rand, acked map[any]bool, toTheEnd bool) (from int) {
	o := Options{PartRows: 6 + r.IntN(30), SyncEvery: time.Hour, Disk: d}
	j := reopen(t, dir, o)
	if j == nil {
		return 0
	}
	defer j.Close()
	d.Mark(created{})
	for m := range acked {
		if i, ok := m.(int64); ok {
			if tr, _ := synthetic(i); !j.Done(tr.ID) {
				t.Errorf("trial %d was acknowledged and counts as not done", i)
			}
		}
	}
	var left, done []int64
	for i := range int64(cutTrials) {
		if tr, _ := synthetic(i); j.Done(tr.ID) {
			done = append(done, i)
		} else {
			left = append(left, i)
		}
	}
	r.Shuffle(len(left), func(a, b int) { left[a], left[b] = left[b], left[a] })
	if !toTheEnd {
		left = left[:r.IntN(len(left)+1)]
	}
	sync := func(f func() error) bool {
		if err := f(); err != nil {
			t.Error(err)
			return false
		}
		for _, i := range done {
			d.Mark(i)
		}
		return true
	}
	for len(left) > 0 {
		n := min(len(left), 1+r.IntN(5))
		var batch []Finished
		for _, i := range left[:n] {
			f := finishedTrial(i)
			if i%5 == 0 {
				f.Transcript = nil
			}
			batch = append(batch, f)
		}
		if err := j.AppendAll(batch); err != nil {
			t.Error(err)
			return 0
		}
		done, left = append(done, left[:n]...), left[n:]
		if r.IntN(4) == 0 && !sync(j.Sync) {
			return 0
		}
	}
	if toTheEnd || r.IntN(3) == 0 && len(done) == cutTrials {
		if toTheEnd {
			from = d.Len()
		}
		if sync(func() error { _, err := j.Finish(nil); return err }) {
			d.Mark(completed{})
		}
	} else {
		sync(j.Close)
	}
	return from
}

// survived checks what can be read of a run that nobody has resumed.
func survived(t *testing.T, dir string, acked map[any]bool) {
	t.Helper()
	rd, err := OpenReader(dir)
	if errors.Is(err, fs.ErrNotExist) && !acked[created{}] {
		return
	}
	if err != nil {
		t.Errorf("reading what the cut left: %v", err)
		return
	}
	defer rd.Close()
	var got []int64
	for e, err := range rd.Entries(Everything) {
		if err != nil {
			t.Error(err)
			return
		}
		i := e.Trial.Index
		got = append(got, i)
		f := finishedTrial(i)
		if !reflect.DeepEqual(*f.Trial, e.Trial) || len(f.Decisions) != len(e.Decisions) {
			t.Errorf("trial %d is another one", i)
		}
		switch tr, err := rd.Transcript(e.Trial.ID); {
		case i%5 == 0 && !errors.Is(err, ErrNoTranscript) && err != nil:
			t.Errorf("trial %d: %v", i, err)
		case !acked[i] && !acked[completed{}]: // resuming takes it for torn where its transcript is
		case i%5 != 0 && (err != nil || string(tr) != string(f.Transcript)+"\n"):
			t.Errorf("transcript of trial %d: %.50q, %v", i, tr, err)
		}
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) || int(rd.Trials()) != len(got) {
		t.Errorf("a trial is doubled: %d, Trials() = %d", got, rd.Trials())
	}
	for m := range acked {
		if i, ok := m.(int64); ok && !slices.Contains(got, i) {
			t.Errorf("trial %d was acknowledged and is lost", i)
		}
	}
	if acked[completed{}] || rd.Finished() {
		if !rd.Finished() || len(got) != cutTrials {
			t.Errorf("finished: %v, with %d of %d trials", rd.Finished(), len(got), cutTrials)
		}
		if err := verify(dir); err != nil {
			t.Error(err)
		}
	}
}
