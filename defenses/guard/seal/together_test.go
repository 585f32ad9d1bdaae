package seal_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
)

// The environment of a process that seals beside the test.
const (
	sealedStore = "MEMTOX_TEST_SEALED_STORE"
	sealingKey  = "MEMTOX_TEST_SEALING_KEY"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(sealedStore); path != "" {
		if err := sealOften(path, os.Getenv(sealingKey)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// rounds is how many snapshots each process takes and seals.
const rounds = 25

// sealOften writes, takes a snapshot and seals, again and again, and says how many
// snapshots it was that sealed. It waits for a line on standard input, so that the
// processes begin together.
func sealOften(path, key string) error {
	signer, verifier, err := seal.ParseSigner(key)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	l := seal.NewLedger(s)
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	sealed, before := 0, ""
	for range rounds {
		id, err := s.NextID(ctx)
		if err != nil {
			return err
		}
		r := memory.Record{ID: id, Store: "memory", Key: "memory/" + id, Text: "The rota starts on Monday.", Origin: ada,
			Principal: "ada", Version: 1,
			Lineage: memory.Lineage{{Record: before, Origin: ada}}}
		before = id
		if _, err := s.Commit(ctx, &memory.Batch{At: time.Now(), Cause: memory.CauseWrite, By: "ada",
			Records: []memory.Record{r}}); err != nil {
			return err
		}
		if _, err := store.NewCurator(s, "operator", time.Now).Snapshot(ctx, "",
			fmt.Sprint("process ", os.Getpid())); err != nil {
			return err
		}
		entries, err := l.Seal(ctx, signer, verifier)
		if err != nil {
			return err
		}
		sealed += len(entries)
	}
	fmt.Println(sealed)
	return s.Close()
}

// TestSealingTogether lets processes write to one store and seal it at the same time,
// while it is verified.
func TestSealingTogether(t *testing.T) {
	key, _, err := seal.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{7}, 64)), "memtox.test/ada")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "memory.db")
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const processes = 2
	total := 0
	var begin []io.Writer
	var finish []func() error
	for range processes {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), sealedStore+"="+path, sealingKey+"="+key)
		var said bytes.Buffer
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		if _, err := out.Read(make([]byte, 64)); err != nil {
			t.Fatalf("a process did not begin: %v\n%s", err, &said)
		}
		begin = append(begin, in)
		finish = append(finish, func() error {
			n := 0
			_, err := fmt.Fscan(out, &n)
			total += n
			if err := errors.Join(err, cmd.Wait()); err != nil {
				return fmt.Errorf("%w\n%s", err, &said)
			}
			return nil
		})
	}
	for _, in := range begin {
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
	}
	_, verifier, err := seal.ParseSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	l := seal.NewLedger(s)
	ended := make(chan error, 1)
	go func() {
		var errs []error
		for _, wait := range finish {
			errs = append(errs, wait())
		}
		ended <- errors.Join(errs...)
	}()
	for n, running := 0, true; running; n++ {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
			t.Logf("verified %d times meanwhile", n)
		default:
			v, err := l.Verify(ctx, verifier, nil)
			if err != nil {
				t.Fatal(err)
			}
			if v.Sealed > 0 && !v.OK() {
				t.Errorf("while others write: %+v", v.Problems)
			}
		}
	}
	if total != processes*rounds {
		t.Errorf("the processes say that they sealed %d snapshots, of %d: some were sealed twice", total, processes*rounds)
	}
	v, err := l.Verify(ctx, verifier, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !v.OK() || v.Sealed != processes*rounds || v.Snapshots != processes*rounds {
		t.Errorf("%d of %d snapshots are sealed, with problems %+v", v.Sealed, v.Snapshots, v.Problems)
	}
	snaps, err := s.Snapshots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, snap := range snaps {
		if len(snap.Root) == 0 {
			t.Errorf("snapshot %s does not know its root", snap.ID)
		}
	}
}

// meddled is a store in which something happens at a certain moment.
type meddled struct {
	*store.History
	beforePut, beforeHead func()
}

func (m *meddled) PutPages(ctx context.Context, name string, was []byte, pages map[string][]byte) error {
	once(&m.beforePut)
	return m.History.PutPages(ctx, name, was, pages)
}

func (m *meddled) Snapshots(ctx context.Context) ([]store.Snapshot, error) {
	out, err := m.History.Snapshots(ctx)
	once(&m.beforeHead)
	return out, err
}

func (m *meddled) Page(ctx context.Context, name string) ([]byte, bool, error) {
	b, ok, err := m.History.Page(ctx, name)
	if name == "forensics/head" {
		once(&m.beforeHead)
	}
	return b, ok, err
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

// TestSealingBetween seals by hand at the two moments that matter: between what
// another sealing reads and what it writes, and while another looks at the log.
func TestSealingBetween(t *testing.T) {
	f := newFile(t)
	f.put("r1", "The rota starts on Monday.", ada)
	f.snapshot("first")
	f.seal()
	f.put("r2", "The room is 4.", ada)
	f.snapshot("second")

	m := &meddled{History: f.store}
	l := seal.NewLedger(m)
	m.beforePut = func() {
		f.put("r3", "The door is blue.", ada)
		f.snapshot("third")
		if got := f.seal(); len(got) != 2 {
			t.Errorf("the other one sealed %d snapshots, not 2", len(got))
		}
	}
	late, err := l.Seal(ctx, f.signer, f.verifier)
	if err != nil || len(late) != 0 {
		t.Errorf("the one that came too late sealed %d snapshots of those that were sealed: %v", len(late), err)
	}
	if got := f.verify(nil); len(got) > 0 {
		t.Errorf("after both sealed: %q", got)
	}

	more := func() {
		f.snapshot("")
		f.seal()
	}
	m.beforeHead = more // between the head and the snapshots
	if _, err := l.Seal(ctx, f.signer, f.verifier); err != nil {
		t.Errorf("sealing while another seals: %v", err)
	}
	m.beforeHead = more // between the head and the entries
	v, err := l.Verify(ctx, f.verifier, nil)
	if err != nil || !v.OK() {
		t.Errorf("verifying while another seals: %+v (%v)", v.Problems, err)
	}
	snaps, err := f.store.Snapshots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range snaps {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"first", "second", "third", "", ""}) {
		t.Errorf("the snapshots are %q", names)
	}
}

// restless is a store in which something happens before one of the reads.
type restless struct {
	*store.History
	reads, at int
	happens   func()
}

func (r *restless) read() {
	if r.reads++; r.reads == r.at {
		r.happens()
	}
}

func (r *restless) Page(ctx context.Context, name string) ([]byte, bool, error) {
	r.read()
	return r.History.Page(ctx, name)
}

func (r *restless) Snapshots(ctx context.Context) ([]store.Snapshot, error) {
	r.read()
	return r.History.Snapshots(ctx)
}

func (r *restless) Tombstones(ctx context.Context) ([]store.Tombstone, error) {
	r.read()
	return r.History.Tombstones(ctx)
}

func (r *restless) Journal(ctx context.Context, f store.Filter) iter.Seq2[store.Version, error] {
	return func(yield func(store.Version, error) bool) {
		r.read()
		r.History.Journal(ctx, f)(yield)
	}
}

func (r *restless) Versions(ctx context.Context, f store.Filter) iter.Seq2[store.Version, error] {
	return func(yield func(store.Version, error) bool) {
		r.read()
		r.History.Versions(ctx, f)(yield)
	}
}

// TestVerifyingWhileOthersWrite changes the store before each of the reads of a
// verification in turn: what others do lawfully is no fault, and what was changed
// behind the store's back is found all the same.
func TestVerifyingWhileOthersWrite(t *testing.T) {
	for at := 1; ; at++ {
		f := newFile(t)
		for i := range 4 {
			f.put(fmt.Sprint("r", i+1), "The rota starts on Monday.", ada)
			f.snapshot("")
		}
		f.seal()
		// Its own connections, as another process has them. What is forgotten cannot be
		// erased while the verification reads: no need to wait long for that.
		other := *f
		var err error
		if other.store, err = store.Open(ctx, f.path, store.Options{Wait: 10 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		x := &restless{History: f.store, at: at, happens: func() {
			other.put("late", "The room is 4.", ada, "r2")
			if _, err := other.curator().Forget(ctx, "asked for", fmt.Sprint("r", 1+at%4)); err != nil &&
				!errors.Is(err, store.ErrNotErased) {
				t.Fatal(err)
			}
			other.snapshot("late")
			other.seal()
			other.put("later", "The door is blue.", ada)
		}}
		l := seal.NewLedger(x)
		v, err := l.Verify(ctx, f.verifier, nil)
		if err != nil || !v.OK() {
			t.Fatalf("changed before read %d: %+v (%v)", at, v.Problems, err)
		}
		if x.reads < at { // it was over before
			if at < 10 {
				t.Errorf("a verification has only %d reads", x.reads)
			}
			other.store.Close()
			break
		}
		if err := other.store.Close(); err != nil {
			t.Fatal(err)
		}
		f.tamper(func(db *sql.DB) {
			if _, err := db.Exec("DELETE FROM entry WHERE record = ?", []byte("late")); err != nil {
				t.Fatal(err)
			}
		})
		if got := f.verify(nil); len(got) == 0 {
			t.Errorf("changed before read %d: an entry that was deleted since is not found out", at)
		}
	}
}
