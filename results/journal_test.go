package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("MEMTOX_TEST_JOURNAL"); dir != "" {
		os.Exit(journalChild(dir))
	}
	os.Exit(m.Run())
}

// testRun is a run of so many trials; of none where nobody reads it when it is finished.
func testRun(planned ...int64) *Run {
	return &Run{ID: "r1", Version: "test", Started: time.Unix(1700000000, 0).UTC(), Model: "reference:cautious",
		Split:   "all",
		Dataset: Dataset{Name: "memtox-bench", Attacks: 3, Benign: 3}, Settings: map[string]any{"limit": 6},
		Planned: append(planned, 0)[0]}
}

func transcriptOf(i int64) []byte {
	return fmt.Appendf(nil, `{"trial":%d,"text":%q}`, i, strings.Repeat(fmt.Sprintf("turn %d. ", i), int(i%50)))
}

func mustCreate(t testing.TB, dir string, o Options, planned ...int64) *Journal {
	t.Helper()
	j, err := Create(dir, testRun(planned...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func mustResume(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	j, err := Resume(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func appendTrials(t testing.TB, j *Journal, order []int64) {
	t.Helper()
	for _, i := range order {
		tr, ds := synthetic(i)
		if err := j.Append(&tr, ds, transcriptOf(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func finishedTrial(i int64) Finished {
	tr, ds := synthetic(i)
	return Finished{Trial: &tr, Decisions: ds, Transcript: transcriptOf(i)}
}

func appendTogether(t testing.TB, j *Journal, order ...int64) {
	t.Helper()
	var batch []Finished
	for _, i := range order {
		batch = append(batch, finishedTrial(i))
	}
	if err := j.AppendAll(batch); err != nil {
		t.Fatal(err)
	}
}

func upTo(n int) []int64 {
	var out []int64
	for i := range n {
		out = append(out, int64(i))
	}
	return out
}

// checkRun fails unless the directory holds exactly the trials, once each and in
// order, with their decisions and transcripts.
func checkRun(t *testing.T, dir string, want []int64) {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want = slices.Clone(want)
	slices.Sort(want)
	if int(r.Trials()) != len(want) {
		t.Errorf("Trials() = %d, want %d", r.Trials(), len(want))
	}
	n := 0
	for e, err := range r.Entries(Everything) {
		if err != nil {
			t.Fatal(err)
		}
		if n >= len(want) {
			t.Fatalf("trial %d of the plan is one too many", e.Trial.Index)
		}
		i := want[n]
		n++
		tr, ds := synthetic(i)
		if diff := cmp.Diff(tr, e.Trial); diff != "" {
			t.Fatalf("trial %d:\n%s", i, diff)
		}
		if diff := cmp.Diff(ds, e.Decisions); diff != "" {
			t.Fatalf("decisions of trial %d:\n%s", i, diff)
		}
		if n%17 != 1 {
			continue
		}
		got, err := r.Transcript(tr.ID)
		if err != nil || string(got) != string(transcriptOf(i))+"\n" {
			t.Fatalf("transcript of trial %d = %.60q, %v", i, got, err)
		}
	}
	if n != len(want) {
		t.Fatalf("%d trials, want %d", n, len(want))
	}
}

func checkFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			got = append(got, filepath.ToSlash(name))
		}
		return err
	})
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of %s:\n%s", dir, diff)
	}
}

func TestTrialsThatFinishInAnyOrderAndAtOnceAreCompactedInPlanOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "a")
	const n = 530
	j := mustCreate(t, dir, Options{PartRows: 100, SyncEvery: time.Millisecond}, 530)
	order := upTo(n)
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(a, b int) { order[a], order[b] = order[b], order[a] })
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for k := w; k < n; k += 4 {
				tr, ds := synthetic(order[k])
				for range 1 + k%2 { // some arrive twice
					if err := j.Append(&tr, ds, transcriptOf(order[k])); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	checkRun(t, dir, order) // while it is being written
	if j.Len() != n || j.Duplicates() != n/2 {
		t.Errorf("%d trials and %d duplicates, want %d and %d", j.Len(), j.Duplicates(), n, n/2)
	}
	var visited []int64
	m, err := j.Finish(func(e *Entry) error {
		visited = append(visited, e.Trial.Index)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(upTo(n), visited); diff != "" {
		t.Errorf("visited:\n%s", diff)
	}
	if m.Files[0].Rows != n || m.Files[1].Rows != 8*n || m.Files[2].Rows != n {
		t.Errorf("manifest: %+v", m.Files)
	}
	checkRun(t, dir, order)
	if err := verify(dir); err != nil {
		t.Error(err)
	}
	checkFiles(t, dir, "run.json", "manifest.json", "trials.parquet", "decisions.parquet", "transcripts/index.parquet",
		"transcripts/part-000001.jsonl.zst", "transcripts/part-000002.jsonl.zst", "transcripts/part-000003.jsonl.zst",
		"transcripts/part-000004.jsonl.zst", "transcripts/part-000005.jsonl.zst", "transcripts/part-000006.jsonl.zst")
	if err := j.Append(&Trial{ID: "0123456789abcdef"}, nil, nil); err == nil {
		t.Error("a finished journal took a trial")
	}
	if err := os.WriteFile(in(dir, trialsFile), []byte("PAR1"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := verify(dir); err == nil || !strings.Contains(err.Error(), trialsFile) {
		t.Errorf("Verify of a changed file: %v", err)
	}
}

func TestARunOfNothingIsARunOfNothing(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{})
	checkRun(t, dir, nil)
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	checkRun(t, dir, nil)
	checkFiles(t, dir, "run.json", "manifest.json", "trials.parquet", "decisions.parquet")
}

func TestCreateTouchesNothingThatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, testRun(), Options{}); !errors.Is(err, ErrNotRun) {
		t.Errorf("Create among other files: %v", err)
	}
	checkFiles(t, dir, "thesis.tex")

	dir = t.TempDir()
	j := mustCreate(t, dir, Options{})
	if _, err := Create(dir, testRun(), Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("Create over a run: %v", err)
	}
	if _, err := Resume(dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("Resume of a run that is being written: %v", err)
	}
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(dir, Options{}); !errors.Is(err, ErrFinished) {
		t.Errorf("Resume of a finished run: %v", err)
	}
	if _, err := Resume(filepath.Join(dir, "absent"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Resume of nothing: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(filepath.Join(file, "run"), testRun(), Options{}); err == nil ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("Create under a file: %v", err)
	}
}

func TestAnIDThatNoTrialHasIsRefused(t *testing.T) {
	j := mustCreate(t, t.TempDir(), Options{})
	for _, id := range []string{"", "x", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdeg"} {
		if err := j.Append(&Trial{ID: id}, nil, nil); err == nil {
			t.Errorf("a trial with id %q was taken", id)
		}
		if j.Done(id) {
			t.Errorf("Done(%q)", id)
		}
	}
	if j.Len() != 0 {
		t.Errorf("%d trials", j.Len())
	}
}

// copyDir copies a run directory, as a crash would leave it.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestATornTailCostsOneTrialWhereverItIsTorn(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 7)
	appendTrials(t, j, upTo(5))
	before := j.cur.size
	appendTrials(t, j, []int64{5})
	after := j.cur.size
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	unconfirmed(t, dir)
	whole, err := os.ReadFile(in(dir, journals.name(1)))
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) string {
		d := copyDir(t, dir)
		if err := os.WriteFile(in(d, journals.name(1)), b, 0o666); err != nil {
			t.Fatal(err)
		}
		return d
	}
	check := func(what string, b []byte, want int) {
		t.Helper()
		d := write(b)
		checkRun(t, d, upTo(want)) // readers need no recovery
		j := mustResume(t, d, Options{})
		if j.Len() != want {
			t.Fatalf("%s: %d trials are finished, want %d", what, j.Len(), want)
		}
		appendTrials(t, j, upTo(7))
		if j.Duplicates() != want {
			t.Errorf("%s: %d duplicates, want %d", what, j.Duplicates(), want)
		}
		if _, err := j.Finish(nil); err != nil {
			t.Fatal(err)
		}
		checkRun(t, d, upTo(7))
	}
	for cut := before; cut < after; cut += 41 {
		check(fmt.Sprintf("cut at %d", cut), whole[:cut], 5)
	}
	check("cut by one byte", whole[:after-1], 5)
	check("whole", whole, 6)
	check("no header", nil, 0)
	check("half a header", whole[:9], 0)
	flipped := slices.Clone(whole)
	flipped[before+100] ^= 1
	check("a flipped bit in the last record", flipped, 5)
	zeros := append(slices.Clone(whole), make([]byte, 5000)...)
	check("zeros at the end", zeros, 6)
	check("a length beyond the end", append(slices.Clone(whole), 0xff, 0xff, 0xff, 0x3f, 1, 2, 3, 4, 5), 6)
}

func TestTrialsAppendedTogether(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{PartRows: 7}, 16)
	appendTogether(t, j)
	appendTogether(t, j, 3, 1, 2, 1)
	appendTogether(t, j, 1, 3)
	if n := j.Duplicates(); n != 3 {
		t.Errorf("%d duplicates, want 3: one within a batch, two that were there", n)
	}
	none := finishedTrial(4)
	none.Transcript = nil
	if err := j.AppendAll([]Finished{none, finishedTrial(0)}); err != nil {
		t.Fatal(err)
	}
	appendTogether(t, j, 5, 6, 7, 8, 9, 10, 11, 12) // beyond what a part takes
	appendTogether(t, j, 13)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = mustResume(t, dir, Options{PartRows: 7})
	appendTogether(t, j, 13, 14, 15)
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	checkRun(t, dir, upTo(16))
	if err := verify(dir); err != nil {
		t.Error(err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Transcript(none.Trial.ID); !errors.Is(err, ErrNoTranscript) {
		t.Errorf("transcript of a trial without one: %v", err)
	}
	for _, i := range []int64{12, 2, 15, 1, 3, 8, 8} { // in any order
		f := finishedTrial(i)
		got, err := r.Transcript(f.Trial.ID)
		if err != nil || string(got) != string(f.Transcript)+"\n" {
			t.Errorf("transcript of trial %d = %.60q, %v", i, got, err)
		}
	}
}

// Wherever the writing of a batch ends, what is whole stays and the rest can be
// appended again.
func TestATornBatch(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 6)
	appendTogether(t, j, 0, 1)
	before := j.cur.size
	appendTogether(t, j, 2, 3, 4, 5)
	var ends []int64
	for _, s := range j.cur.slots {
		ends = append(ends, s.offset+s.length)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	unconfirmed(t, dir)
	for cut := before; cut < ends[5]; cut += 97 {
		d := copyDir(t, dir)
		if err := os.Truncate(in(d, journals.name(1)), cut); err != nil {
			t.Fatal(err)
		}
		want := 0
		for want < len(ends) && ends[want] <= cut {
			want++
		}
		j := mustResume(t, d, Options{})
		if j.Len() != want {
			t.Fatalf("cut at %d: %d trials are finished, want %d", cut, j.Len(), want)
		}
		appendTogether(t, j, upTo(6)...)
		if _, err := j.Finish(nil); err != nil {
			t.Fatal(err)
		}
		checkRun(t, d, upTo(6))
	}
}

// What was said of one trial's frame does not vouch for what the index says of
// another's, although it is the same frame.
func TestEachRowOfTheIndexIsHeldToItsFrame(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 3)
	appendTogether(t, j, 1, 2, 3)
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.ReadFile[indexRow](in(dir, indexFile))
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for name, damage := range map[string]func(*indexRow){
		"crc":            func(x *indexRow) { x.CRC ^= 1 },
		"length":         func(x *indexRow) { x.Length-- },
		"start":          func(x *indexRow) { x.Start = -1 },
		"end":            func(x *indexRow) { x.Size += 1 << 20 },
		"a sum too far":  func(x *indexRow) { x.Start, x.Size = math.MaxInt64, math.MaxInt64 },
		"negative":       func(x *indexRow) { x.Size = -x.Size },
		"a huge frame":   func(x *indexRow) { x.Length = math.MaxInt64 },
		"far off":        func(x *indexRow) { x.Offset = math.MaxInt64 },
		"a missing part": func(x *indexRow) { x.Part = 9 },
	} {
		changed := slices.Clone(rows)
		damage(&changed[1])
		if err := parquet.WriteFile(in(dir, indexFile), changed); err != nil {
			t.Fatal(err)
		}
		asFormat(t, dir, RunFormat)
		r, err := OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range changed {
			if _, err := r.Transcript(x.Trial); (err != nil) != (i == 1) {
				t.Errorf("%s: the transcript of row %d: %v", name, i, err)
			}
		}
		r.Close()
	}
}

// A reader does not hold on to a huge frame.
func TestAHugeFrameIsNotRemembered(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 2)
	huge, next := finishedTrial(1), finishedTrial(2)
	huge.Transcript = []byte(`"` + strings.Repeat("x", maxRemembered) + `"`)
	if err := j.AppendAll([]Finished{huge, next}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range []Finished{next, huge, next} {
		if got, err := r.Transcript(f.Trial.ID); err != nil || string(got) != string(f.Transcript)+"\n" {
			t.Errorf("a transcript of %d bytes has %d, %v", len(f.Transcript)+1, len(got), err)
		}
		if len(r.frame) > maxRemembered {
			t.Errorf("%d bytes are remembered", len(r.frame))
		}
	}
}

// Format 1 had a frame for each transcript, and an index without the place in it.
func TestAnIndexOfFormat1IsRead(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 40)
	appendTrials(t, j, upTo(40))
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	type format1 struct {
		Trial  string `parquet:"trial"`
		Index  int64  `parquet:"index,delta"`
		Part   int32  `parquet:"part"`
		Offset int64  `parquet:"offset,delta"`
		Length int64  `parquet:"length"`
		CRC    int64  `parquet:"crc32c"`
	}
	now, err := parquet.ReadFile[indexRow](in(dir, indexFile))
	if err != nil {
		t.Fatal(err)
	}
	old := make([]format1, len(now))
	for i, x := range now {
		old[i] = format1{x.Trial, x.Index, x.Part, x.Offset, x.Length, x.CRC}
	}
	if err := parquet.WriteFile(in(dir, indexFile), old); err != nil {
		t.Fatal(err)
	}
	asFormat(t, dir, 1)
	if r, err := ReadRun(dir); err != nil || r.Format != 1 {
		t.Fatalf("the run is no run of format 1: %+v, %v", r, err)
	}
	checkRun(t, dir, upTo(40))
}

func TestATranscriptThatNeverReachedTheDiskTakesItsTrialWithIt(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 6)
	appendTrials(t, j, upTo(6))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	places, err := r.readPlaces()
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := idNumber(finishedTrial(4).Trial.ID)
	cut := places[id].offset + 3
	unconfirmed(t, dir)
	if err := os.Truncate(in(dir, texts.name(1)), cut); err != nil {
		t.Fatal(err)
	}
	j = mustResume(t, dir, Options{})
	if j.Len() != 4 {
		t.Errorf("%d trials are finished, want 4", j.Len())
	}
	appendTrials(t, j, upTo(6))
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	checkRun(t, dir, upTo(6))
}

func TestAJournalOfAnotherVersionIsNotRead(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{})
	appendTrials(t, j, upTo(2))
	j.Close()
	b, _ := os.ReadFile(in(dir, journals.name(1)))
	b[len("memtox journal 1 ")] ^= 1
	if err := os.WriteFile(in(dir, journals.name(1)), b, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(dir, Options{}); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("Resume: %v", err)
	}
	if _, err := OpenReader(dir); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("OpenReader: %v", err)
	}
	if after, _ := os.ReadFile(in(dir, journals.name(1))); string(after) != string(b) {
		t.Error("the journal was changed")
	}
}

func TestEveryStepOfCompactionCanBeTheLast(t *testing.T) {
	const n = 250
	base := t.TempDir()
	j := mustCreate(t, base, Options{PartRows: 100}, 250)
	appendTrials(t, j, upTo(n))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	done := copyDir(t, base)
	if _, err := mustResume(t, done, Options{PartRows: 100}).Finish(nil); err != nil {
		t.Fatal(err)
	}
	checkRun(t, done, upTo(n))
	put := func(to string, names ...string) {
		for _, name := range names {
			b, err := os.ReadFile(in(done, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(in(to, name), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name     string
		arrange  func(dir string)
		finished bool
	}{
		{"temporary files", func(d string) {
			for _, name := range []string{trialsFile + tmpSuffix, indexFile + tmpSuffix, manifestFile + tmpSuffix} {
				os.WriteFile(in(d, name), []byte("half"), 0o666)
			}
		}, false},
		{"an index without rows", func(d string) { put(d, indexFile) }, false},
		{"decisions without trials", func(d string) { put(d, indexFile, decisionsFile) }, false},
		{"everything but the manifest", func(d string) { put(d, indexFile, decisionsFile, trialsFile) }, false},
		{"nothing tidied up", func(d string) { put(d, indexFile, decisionsFile, trialsFile, manifestFile) }, true},
		{"half tidied up", func(d string) {
			put(d, indexFile, decisionsFile, trialsFile, manifestFile)
			os.Remove(in(d, trialParts.name(1)))
			os.Remove(in(d, journals.name(3)))
		}, true},
		{"a part whose journal stayed", func(d string) {
			b, _ := os.ReadFile(in(d, journals.name(3)))
			os.WriteFile(in(d, journals.name(2)), b, 0o666)
		}, false},
		{"half a part", func(d string) {
			// What journal-3 would become, before its trials had a name.
			put(d, decisionsFile)
			os.Rename(in(d, decisionsFile), in(d, decisionParts.name(3)))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := copyDir(t, base)
			c.arrange(d)
			checkRun(t, d, upTo(n))
			j, err := Resume(d, Options{PartRows: 100})
			if c.finished {
				if !errors.Is(err, ErrFinished) {
					t.Fatalf("Resume: %v, want ErrFinished", err)
				}
			} else {
				if err != nil {
					t.Fatal(err)
				}
				if j.Len() != n {
					t.Errorf("%d trials are finished, want %d", j.Len(), n)
				}
				if _, err := j.Finish(nil); err != nil {
					t.Fatal(err)
				}
			}
			checkRun(t, d, upTo(n))
			checkFiles(t, d, "run.json", "manifest.json", "trials.parquet", "decisions.parquet", "transcripts/index.parquet",
				"transcripts/part-000001.jsonl.zst", "transcripts/part-000002.jsonl.zst", "transcripts/part-000003.jsonl.zst")
		})
	}
}

func TestAFullJournalThatWasNotCompactedBecomesAPartOnResume(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{PartRows: 1000})
	appendTrials(t, j, upTo(300))
	j.Close()
	j = mustResume(t, dir, Options{PartRows: 100})
	appendTrials(t, j, upTo(320))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	checkRun(t, dir, upTo(320))
	if !exists(in(dir, trialParts.name(1))) || exists(in(dir, journals.name(1))) {
		t.Error("journal 1 did not become a part")
	}
}

func TestOneHugeAndHostileTrialIsStored(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 1)
	tr, ds := synthetic(0)
	tr.Reason = strings.Repeat("\x1b[31m\x00<script>", 500_000)
	big := []byte(`{"text":"` + strings.Repeat("ha", 5_000_000) + `"}`)
	if err := j.Append(&tr, ds, big); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Entries(Everything) {
		if err != nil || e.Trial.Reason != tr.Reason {
			t.Errorf("%v; the reason came back as %.30q", err, e.Trial.Reason)
		}
	}
	if got, err := r.Transcript(tr.ID); err != nil || string(got) != string(big)+"\n" {
		t.Errorf("the transcript came back with %d bytes, %v", len(got), err)
	}
	if _, err := r.Transcript("0123456789abcdef"); !errors.Is(err, ErrNoTranscript) {
		t.Errorf("the transcript of no trial: %v", err)
	}
}

// killRows is how many trials the child of the kill test appends.
const killRows = 3000

// journalChild begins or resumes the run in dir, appends what is missing,
// saying so after each, and finishes.
func journalChild(dir string) int {
	o := Options{PartRows: 400, SyncEvery: 5 * time.Millisecond}
	j, err := Resume(dir, o)
	if errors.Is(err, fs.ErrNotExist) {
		j, err = Create(dir, testRun(3000), o)
	}
	if errors.Is(err, ErrFinished) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	limitFromEnvironment("MEMTOX_TEST_LIMIT")
	order := upTo(killRows)
	rand.New(rand.NewPCG(5, 5)).Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	for at, size := 0, 1; at < len(order); at, size = at+size, 1+(size+1)%7 {
		var batch []Finished
		for _, i := range order[at:min(at+size, len(order))] {
			if f := finishedTrial(i); !j.Done(f.Trial.ID) {
				batch = append(batch, f)
			}
		}
		if err := j.AppendAll(batch); err != nil {
			fmt.Fprintln(os.Stderr, err)
			j.Close()
			return 1
		}
		for _, f := range batch {
			fmt.Println(f.Trial.Index)
		}
	}
	limitFromEnvironment("MEMTOX_TEST_LIMIT_AT_END")
	if _, err := j.Finish(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func limitFromEnvironment(name string) {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		limitFileSize(n)
	}
}

func TestKilledAtAnyMomentNothingAcknowledgedIsLostOrDoubled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for kills, runs := 0, 0; kills < 20; runs++ {
		dir := filepath.Join(t.TempDir(), "run")
		acked := map[int64]bool{}
		// A slow machine may not come to the end in the time that a fast one needs:
		// it is given more after each kill.
		patience := time.Duration(1)
		for !runAndKill(t, dir, patience*time.Duration(10+rng.IntN(200))*time.Millisecond, acked) {
			kills++
			patience++
			if exists(filepath.Join(dir, runFile)) {
				checkAcknowledged(t, dir, acked)
			}
		}
		checkRun(t, dir, upTo(killRows))
		if err := verify(dir); err != nil {
			t.Error(err)
		}
	}
}

// runAndKill starts the child, kills it after a while, and adds what it
// acknowledged. It reports whether the child came to its end before that.
func runAndKill(t *testing.T, dir string, after time.Duration, acked map[int64]bool) (ended bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MEMTOX_TEST_JOURNAL="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	b, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b[:bytes.LastIndexByte(b, '\n')+1])) { // the last line may be torn
		i, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		acked[i] = true
	}
	err = cmd.Wait()
	if err != nil && cmd.ProcessState.ExitCode() > 0 {
		t.Fatalf("the child failed: %v", err)
	}
	return err == nil
}

func checkAcknowledged(t *testing.T, dir string, acked map[int64]bool) {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := map[int64]bool{}
	for e, err := range r.Entries(TrialsOnly) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[e.Trial.Index] {
			t.Fatalf("trial %d is there twice", e.Trial.Index)
		}
		seen[e.Trial.Index] = true
	}
	for i := range acked {
		if !seen[i] {
			t.Fatalf("trial %d was acknowledged and is not there", i)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name       string
		transcript []byte
	}{{"rows", nil}, {"rows and transcript", []byte(`{"text":"` +
		strings.Repeat("The quarterly report is due on Friday, says the mail from finance. ", 60) + `"}`)}} {
		b.Run(c.name, func(b *testing.B) {
			j := mustCreate(b, b.TempDir(), Options{PartRows: 1 << 30})
			tr, ds := synthetic(24)
			var n uint64
			b.ReportAllocs()
			for b.Loop() {
				n++
				tr.ID = fmt.Sprintf("%016x", n)
				if err := j.Append(&tr, ds, c.transcript); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestTextsOfAnEntryStayValidAfterTheNext(t *testing.T) {
	dir := t.TempDir()
	const n = 3000
	j := mustCreate(t, dir, Options{PartRows: 1000}, 3000)
	appendTrials(t, j, upTo(n))
	check := func(when string) {
		t.Helper()
		r, err := OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		var trials []Trial
		var calls []Decision
		for e, err := range r.Entries(Everything) {
			if err != nil {
				t.Fatal(err)
			}
			trials = append(trials, e.Trial)
			calls = append(calls, e.Decisions...)
		}
		r.Close()
		for i := range trials {
			tr, ds := synthetic(int64(i))
			if diff := cmp.Diff(tr, trials[i]) + cmp.Diff(ds, calls[8*i:8*i+8]); diff != "" {
				t.Fatalf("%s, trial %d:\n%s", when, i, diff)
			}
		}
	}
	check("from parts and journal")
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	check("from the finished run")
}

func TestADamagedParquetFileIsAnErrorAndNoPanic(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 300)
	appendTrials(t, j, upTo(300))
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	noticed := 0
	for _, name := range []string{trialsFile, decisionsFile, indexFile} {
		whole, err := os.ReadFile(in(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for try := range 120 {
			b := slices.Clone(whole)
			if try%3 == 0 {
				b = b[:rng.IntN(len(b))]
			} else {
				for range 1 + try%7 {
					b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
				}
			}
			if err := os.WriteFile(in(dir, name), b, 0o666); err != nil {
				t.Fatal(err)
			}
			if readAll(dir) != nil {
				noticed++
			}
			if verify(dir) == nil {
				t.Errorf("Verify does not see that %s changed", name)
			}
		}
		if err := os.WriteFile(in(dir, name), whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if noticed == 0 {
		t.Error("no damage was noticed while reading")
	}
	if err := readAll(dir); err != nil {
		t.Error(err)
	}
}

func readAll(dir string) error {
	r, err := OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, err := range r.Entries(Everything) {
		if err != nil {
			return err
		}
	}
	_, err = r.Transcript("0123456789abcdef")
	if errors.Is(err, ErrNoTranscript) {
		return nil
	}
	return err
}

// No crash leaves a trial in two files, but somebody who copies files about may.
func TestATrialInTwoFilesIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{}, 40)
	appendTrials(t, j, upTo(40))
	j.Close()
	b, err := os.ReadFile(in(dir, journals.name(1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in(dir, journals.name(2)), b, 0o666); err != nil {
		t.Fatal(err)
	}
	b, err = os.ReadFile(in(dir, texts.name(1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in(dir, texts.name(2)), b, 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for e, err := range r.Entries(TrialsOnly) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Trial.Index)
	}
	r.Close()
	if diff := cmp.Diff(upTo(40), got); diff != "" {
		t.Errorf("read twice:\n%s", diff)
	}
	j = mustResume(t, dir, Options{})
	if j.Len() != 40 {
		t.Errorf("%d trials, want 40", j.Len())
	}
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	checkRun(t, dir, upTo(40))
}
