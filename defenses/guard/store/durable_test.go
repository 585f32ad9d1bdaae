package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

var ctx = context.Background()

func open(t testing.TB, path string) *store.History {
	t.Helper()
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fresh(t testing.TB) *store.History { return open(t, filepath.Join(t.TempDir(), "memory.db")) }

func put(t testing.TB, s memory.Store, rs ...memory.Record) {
	t.Helper()
	if _, err := s.Commit(ctx, &memory.Batch{At: start, Cause: memory.CauseWrite, Records: rs}); err != nil {
		t.Fatal(err)
	}
}

func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func exec1(t testing.TB, db *sql.DB, q string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(ctx, q, args...); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := filepath.Join(dir, "base.db")
	open(t, base).Close()
	foreign := filepath.Join(dir, "foreign.db")
	exec1(t, raw(t, foreign), "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
	ours, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	newer := file("newer.db", ours)
	db := raw(t, newer)
	exec1(t, db, "PRAGMA journal_mode = DELETE")
	exec1(t, db, "PRAGMA user_version = 2")
	db.Close()
	for name, c := range map[string]struct {
		path string
		want error
		word string
	}{
		"a text": {file("text", []byte(strings.Repeat("# MEMORY.md\n", 100))), store.ErrForeign,
			"not a database"},
		"an empty file":        {file("empty", nil), store.ErrForeign, "remove it"},
		"another database":     {foreign, store.ErrForeign, "something else"},
		"a later version":      {newer, store.ErrNewer, "version 2"},
		"half a header":        {file("half", ours[:50]), store.ErrForeign, ""},
		"a directory":          {dir, nil, "regular file"},
		"nowhere":              {filepath.Join(dir, "no", "such"), os.ErrNotExist, ""},
		"a cut off store":      {file("cut", ours[:len(ours)/2]), nil, "malformed"},
		"zeros in its place":   {file("zeros", make([]byte, 8192)), nil, ""},
		"a header and nothing": {file("header", ours[:100]), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := os.ReadFile(c.path)
			s, err := store.Open(ctx, c.path, store.Options{})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.word) ||
				!strings.Contains(err.Error(), c.path) {
				t.Errorf("error %q", err)
			}
			if after, _ := os.ReadFile(c.path); !bytes.Equal(before, after) {
				t.Error("it was changed")
			}
		})
	}
	if _, err := store.Open(ctx, filepath.Join(dir, "none.db"), store.Options{MustExist: true}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a store that must exist: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
}

func TestReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a dir", "memory ?#%20.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	for range 3 {
		if _, err := s.NextID(ctx); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, record("r1", "k", "one"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	defer s.Close()
	if id, err := s.NextID(ctx); id != "r4" || err != nil {
		t.Errorf("the next id is %s (%v), want r4", id, err)
	}
	if r, ok, err := s.Get(ctx, "r1"); !ok || err != nil || r.Text != "one" {
		t.Errorf("%+v %v %v", r, ok, err)
	}
	ro, err := store.Open(ctx, path, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	put(t, s, record("r2", "k2", "two"))
	if r, ok, err := ro.Get(ctx, "r2"); !ok || err != nil || r.Text != "two" {
		t.Errorf("a reader beside the writer: %+v %v %v", r, ok, err)
	}
	if _, err := ro.Commit(ctx, &memory.Batch{Cause: memory.CauseReject}); err == nil ||
		!strings.Contains(err.Error(), "reading only") {
		t.Errorf("writing to it: %v", err)
	}
}

// An iteration sees one state from its beginning to its end, and keeps nobody from
// writing.
func TestReadersSeeOneState(t *testing.T) {
	s := fresh(t)
	defer s.Close()
	for i := range 50 {
		put(t, s, record(fmt.Sprint("a", i), fmt.Sprint("k", i), "x"))
	}
	n := 0
	err := s.Each(ctx, func(*memory.Record) bool {
		n++
		put(t, s, record(fmt.Sprint("b", n), fmt.Sprint("l", n), "y"))
		return true
	})
	if err != nil || n != 50 {
		t.Errorf("%d records (%v), want the 50 that there were", n, err)
	}
}

func TestWritersTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	a := open(t, path)
	defer a.Close()
	b, err := store.Open(ctx, path, store.Options{Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	put(t, a, record("r1", "k1", "one"))
	put(t, b, record("r2", "k2", "two"))
	put(t, a, record("r3", "k3", "three"))
	if last, err := b.Last(ctx); last != 3 || err != nil {
		t.Errorf("last %d (%v)", last, err)
	}
	seen := map[string]bool{}
	for range 300 {
		for _, s := range []*store.History{a, b} {
			id, err := s.NextID(ctx)
			if err != nil || seen[id] {
				t.Fatalf("id %s given out twice (%v)", id, err)
			}
			seen[id] = true
		}
	}
	other := raw(t, path)
	exec1(t, other, "BEGIN IMMEDIATE")
	if _, err := b.Commit(ctx, &memory.Batch{Cause: memory.CauseReject}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("while another writes: %v", err)
	}
	if _, ok, err := b.Get(ctx, "r1"); !ok || err != nil {
		t.Errorf("reading while another writes: %v %v", ok, err)
	}
	exec1(t, other, "ROLLBACK")
	put(t, b, record("r9", "k9", "nine"))
}

// A store that somebody else writes to is opened as what it is at that moment.
func TestOpeningBesideAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	writer := open(t, path)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_, err := writer.Commit(ctx, &memory.Batch{At: start, Cause: memory.CauseWrite,
					Records: []memory.Record{record(fmt.Sprint("r", i), fmt.Sprint("k", i), "content")}})
				if err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	var openers sync.WaitGroup
	for range 8 {
		openers.Go(func() {
			for range 50 {
				s, err := store.Open(ctx, path, store.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	openers.Wait()
	close(stop)
	<-done
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
}

// A person decides from another process while a server has the store open: its gate
// is told before its next decision.
func TestDecisionsOfAnotherProcessReachTheGate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	a, b := open(t, path), open(t, path)
	defer a.Close()
	defer b.Close()
	g := &holding{}
	m := memory.New(memory.Options{Store: a, Start: start,
		Stores: []memory.StoreSpec{{Name: "memory", Title: "MEMORY.md"}}})
	m.Guard(g)
	write := func(text string) {
		t.Helper()
		if _, err := m.Write(ctx, memory.Draft{Route: memory.RouteMemoryTool, Store: "memory", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	if _, err := store.NewCurator(b, "ana", nil).Approve(ctx, "r1", store.Approval{Why: "known"}); err != nil {
		t.Fatal(err)
	}
	write("two")
	if got, want := strings.Join(g.told, ", "), "r1 held, r1 live, r2 held"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

type holding struct {
	memory.Open
	told []string
}

func (g *holding) Write(context.Context, memory.Proposal) (memory.Verdict, error) {
	return memory.Verdict{Action: memory.Defer, Held: true}, nil
}

func (g *holding) Committed(c memory.Change) {
	g.told = append(g.told, c.Record.ID+" "+c.Record.State.String())
}

// Nothing of what was forgotten stands anywhere in the file or its log.
func TestForgettingErasesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, path)
	defer s.Close()
	// Marks of 24 bytes: wherever a page ends, most of them are whole.
	mark := func(i int) string { return fmt.Sprintf("<secret-mark-%010d>", i) }
	const marks = 400
	found := func() (n int) {
		for _, p := range []string{path, path + "-wal", path + "-journal"} {
			b, err := os.ReadFile(p)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			n += bytes.Count(b, []byte("secret-mark-"))
		}
		return n
	}
	secret := record("r1", "key "+mark(0), "")
	secret.Origin.Source = "source " + mark(1)
	secret.Lineage[0].Origin.Source = "source " + mark(1)
	for i := 2; i < marks; i++ {
		secret.Text += mark(i)
	}
	other := record("r2", "k2", strings.Repeat("ordinary ", 3000))
	put(t, s, secret)
	put(t, s, other)
	for i := range 20 { // versions and neighbours of all sizes, so that pages split
		next := secret
		next.Text = secret.Text[:len(secret.Text)*(i+1)/20]
		put(t, s, next)
		put(t, s, record(fmt.Sprint("n", i), fmt.Sprint("k", i), strings.Repeat("n", 300*i)))
	}
	if n := found(); n < marks {
		t.Fatalf("%d marks found before: the test shows nothing", n)
	}
	rec, err := s.Forget(ctx, store.Forgetting{IDs: []string{"r1"}, By: "ana", Why: "asked for"})
	if err != nil {
		t.Fatal(err)
	}
	if n := found(); n > 0 {
		t.Errorf("%d marks are still in the file", n)
	}
	for _, o := range rec.Openings {
		for _, p := range []string{path, path + "-wal"} {
			if b, _ := os.ReadFile(p); bytes.Contains(b, o.Salt) {
				t.Errorf("the salt of version %d is still in %s: content could be guessed", o.Seq, filepath.Base(p))
			}
		}
	}
	if !rec.Tombstones[0].Proves(rec.Openings[0], secret.Text) {
		t.Error("the receipt does not prove what was forgotten")
	}
	if r, ok, err := s.Get(ctx, "r2"); !ok || err != nil || r.Text != other.Text {
		t.Error("another record suffered:", ok, err)
	}
}

// A reader that looks at an old state keeps its pages in the log file. Forgetting says
// so, and opening the store again makes good.
func TestForgettingUnderAReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	s, err := store.Open(ctx, path, store.Options{Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, record("r1", "k", "the secret word is mellon"), record("r2", "k2", "x"))
	other := raw(t, path)
	exec1(t, other, "BEGIN")
	if err := other.QueryRowContext(ctx, "SELECT last FROM state").Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Forget(ctx, store.Forgetting{IDs: []string{"r1"}})
	if !errors.Is(err, store.ErrNotErased) || len(rec.Tombstones) != 1 {
		t.Fatalf("forgetting under a reader: %v, receipt %+v", err, rec)
	}
	if v, _, _ := s.Get(ctx, "r1"); v.Text != "" || v.State != memory.Retired {
		t.Errorf("the record is not forgotten: %+v", v)
	}
	exec1(t, other, "ROLLBACK")
	other.Close()
	s.Close()
	open(t, path).Close()
	b, err := os.ReadFile(path)
	if err != nil || bytes.Contains(b, []byte("mellon")) {
		t.Error("the content is still in the file", err)
	}
}

// What was changed around the store is not a memory, can be seen by whoever looks
// into it, and can be taken out.
func TestTamperedRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, path)
	defer s.Close()
	put(t, s, record("r1", "k1", "pay to account 1"), record("r2", "k2", "two"), record("r3", "k3", "three"))
	db := raw(t, path)
	var enc []byte
	if err := db.QueryRowContext(ctx, "SELECT record FROM version WHERE seq = 1").Scan(&enc); err != nil {
		t.Fatal(err)
	}
	exec1(t, db, "UPDATE version SET record = ? WHERE seq = 1",
		bytes.Replace(enc, []byte("account 1"), []byte("account 2"), 1))
	exec1(t, db, "UPDATE version SET record = x'00' WHERE seq = 2")
	for name, read := range map[string]func() error{
		"Get":     func() error { _, _, err := s.Get(ctx, "r1"); return err },
		"ByKey":   func() error { _, _, err := s.ByKey(ctx, "memory", "k2"); return err },
		"Visible": func() error { _, err := s.Visible(ctx); return err },
		"Each":    func() error { return s.Each(ctx, func(*memory.Record) bool { return true }) },
	} {
		if err := read(); !errors.Is(err, store.ErrTorn) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var got []string
	for v, err := range s.Versions(ctx, store.Filter{}) {
		got = append(got, fmt.Sprint(v.Audit.Record, " ", err == nil, " ", err == nil && v.Intact()))
	}
	if want := "r1 true false, r2 false false, r3 true true"; strings.Join(got, ", ") != want {
		t.Errorf("versions (id, readable, intact): %s, want %s", strings.Join(got, ", "), want)
	}
	if _, err := store.NewCurator(s, "ana", nil).Quarantine(ctx, store.Suspicion{IDs: []string{"r1"}},
		"tampered with"); err != nil {
		t.Error(err)
	}
	if _, err := s.Forget(ctx, store.Forgetting{IDs: []string{"r2"}}); err != nil {
		t.Error(err)
	}
	if rs, err := s.Visible(ctx); err != nil || len(rs) != 1 {
		t.Errorf("once they are taken out: %d visible (%v)", len(rs), err)
	}
}

func TestPages(t *testing.T) {
	s := fresh(t)
	data := []byte("a")
	if err := s.PutPages(ctx, "one", nil, map[string][]byte{"one": data, "two\x00": nil}); err != nil {
		t.Fatal(err)
	}
	data[0] = 'b'
	for page, was := range map[string][]byte{"one": []byte("b"), "two\x00": []byte("a"), "four": {}} {
		if err := s.PutPages(ctx, page, was, map[string][]byte{"one": []byte("x"), "four": nil}); !errors.Is(err,
			store.ErrChanged) {
			t.Errorf("written although page %q is not %q: %v", page, was, err)
		}
	}
	if err := s.PutPages(ctx, "two\x00", nil, map[string][]byte{"one": []byte("x")}); !errors.Is(err, store.ErrChanged) {
		t.Errorf("written although an empty page is there and none should be: %v", err)
	}
	if err := s.PutPages(ctx, "one", []byte("a"), map[string][]byte{"three": []byte("c")}); err != nil {
		t.Fatal(err)
	}
	if empty, ok, err := s.Page(ctx, "two\x00"); !ok || err != nil || empty == nil {
		t.Errorf("an empty page is read as none: %v, %v", ok, err)
	} else if err := s.PutPages(ctx, "two\x00", empty, nil); err != nil {
		t.Errorf("after reading an empty page: %v", err)
	}
	for page, want := range map[string]string{"one": "a", "two\x00": "", "three": "c"} {
		if got, ok, err := s.Page(ctx, page); !ok || err != nil || string(got) != want {
			t.Errorf("page %q is %q (%v, %v)", page, got, ok, err)
		}
	}
	if _, ok, err := s.Page(ctx, "four"); ok || err != nil {
		t.Errorf("a page that is not there: %v, %v", ok, err)
	}
}
