package seal_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
)

// attended is a store with a sealed snapshot, and entries 5 to 9 behind it that a
// process with the key wrote.
func attended(t *testing.T) *file {
	f := newFile(t)
	f.put("r1", "The depot opens at nine.", ada)
	f.put("r2", "The quay is closed.", page)
	f.snapshot("monday")
	f.seal()
	if err := f.store.Sign(f.signer.Sign); err != nil {
		t.Fatal(err)
	}
	f.put("r3", "Invoices go to the contract's account.", ada)
	f.put("r4", "Procedure: pay.", page)
	f.snapshot("not sealed")
	f.put("r5", "The fair is on Friday.", page)
	f.put("r6", "The lamps are on sale.", page)
	return f
}

func TestDamageOfTheUnsealedTailIsFound(t *testing.T) {
	want(t, attended(t).verify(nil))
	remove := func(f *file, seqs ...int) {
		f.tamper(func(db *sql.DB) {
			for _, n := range seqs {
				f.change(db, "DELETE FROM version WHERE seq = ?", n)
				f.change(db, "DELETE FROM entry WHERE seq = ?", n)
			}
		})
	}
	for name, c := range map[string]struct {
		tamper func(*file)
		want   []string
	}{
		"a reason changed": {func(f *file) { f.exec("UPDATE entry SET why = CAST('x' AS BLOB) WHERE seq = 5") },
			[]string{"journal"}},
		"an author changed": {func(f *file) { f.exec("UPDATE entry SET by = CAST('eve' AS BLOB) WHERE seq = 8") },
			[]string{"journal"}},
		"a version forged": {func(f *file) { f.rewrite(5, true, func(r *memory.Record) { r.Text = "Pay ACC-2." }) },
			[]string{"journal"}},
		"a snapshot renamed": {func(f *file) { f.exec("UPDATE snapshot SET name = CAST('x' AS BLOB) WHERE n = 2") },
			[]string{"journal"}},
		"an entry dropped": {func(f *file) { remove(f, 5) }, []string{"journal"}},
		"two entries swapped": {func(f *file) {
			f.tamper(func(db *sql.DB) {
				for _, table := range []string{"entry", "version"} {
					for _, x := range [][2]int{{4, 99}, {5, 4}, {99, 5}} {
						f.change(db, "UPDATE "+table+" SET seq = ? WHERE seq = ?", x[1], x[0])
					}
				}
			})
		}, []string{"content r4", "content r3", "index r3", "index r4"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := attended(t)
			c.tamper(f)
			got := f.verify(nil)
			for _, w := range c.want {
				if !slices.Contains(got, w) {
					t.Errorf("problems %q, want %q", got, c.want)
				}
			}
		})
	}
	// The last entries, with or without the counter that counts them.
	for _, counted := range []bool{false, true} {
		f := attended(t)
		f.store.Close()
		db, err := sql.Open("sqlite", f.path)
		if err != nil {
			t.Fatal(err)
		}
		f.change(db, "DELETE FROM version WHERE seq >= 7")
		f.change(db, "DELETE FROM entry WHERE seq >= 7")
		if counted {
			f.change(db, "UPDATE state SET last = 6, records = 4, at = (SELECT at FROM entry WHERE seq = 6)")
			f.change(db, "UPDATE used SET bytes = (SELECT sum(size) FROM version)")
		}
		db.Close()
		if _, err := store.Open(ctx, f.path, store.Options{}); counted && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("it is opened for writing: %v", err)
		}
		if f.store, err = store.Open(ctx, f.path, store.Options{ReadOnly: true}); err != nil {
			t.Fatal(err)
		}
		if got := f.verify(nil); !slices.Contains(got, "journal") {
			t.Errorf("problems %q", got)
		}
	}
}

// Somebody who knows all formats and has no key.
func TestTheHeadOfTheTailCannotBeForged(t *testing.T) {
	f := attended(t)
	head, err := os.ReadFile(store.HeadFile(f.path))
	if err != nil {
		t.Fatal(err)
	}
	// An entry is rewritten, and a head made by a process without the key. That is what
	// an approval from the command line is: the signature of before is kept.
	f.rewrite(5, true, func(r *memory.Record) { r.Text = "Pay ACC-2." })
	f.store.Close()
	if err := os.Remove(store.HeadFile(f.path)); err != nil {
		t.Fatal(err)
	}
	f.open()
	f.put("r9", "One more.", page)
	want(t, f.verify(nil), "journal") // it was made anew, and the store knows since when it had one
	if err := os.WriteFile(store.HeadFile(f.path), head, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, f.verify(nil), "journal")
	// Somebody else's signature.
	f, other := attended(t), newFile(t)
	if err := f.store.Sign(other.signer.Sign); err != nil {
		t.Fatal(err)
	}
	want(t, f.verify(nil), "signature")
}

// An approval by a process without the key goes on with the chain, and the signature
// of what was before stays good.
func TestProcessesWithAndWithoutTheKeyShareAHead(t *testing.T) {
	f := attended(t)
	other, err := store.Open(ctx, f.path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 3 {
		if _, err := store.NewCurator(other, "ana", f.now).RetireIf(ctx,
			store.Retirement{If: func(memory.Record) (bool, error) { return false, nil }}, "looked"); err != nil {
			t.Fatal(err)
		}
		v, err := f.ledger().Verify(ctx, f.verifier, nil)
		if err != nil || !v.OK() || v.Chained != v.Unsealed || v.TailSigned >= v.Unsealed {
			t.Fatalf("%+v, %v", v, err)
		}
		f.put(fmt.Sprint("n", v.Entries), "x", page)
		if v, err = f.ledger().Verify(ctx, f.verifier, nil); err != nil || !v.OK() || v.TailSigned != v.Unsealed {
			t.Fatalf("%+v, %v", v, err)
		}
	}
}

// A store of before there were heads is taken up as it is: what it had is vouched for as
// it was, what comes in from now on by the head.
func TestAStoreWithoutAHeadIsTakenUp(t *testing.T) {
	f := attended(t)
	f.store.Close()
	if err := os.Remove(store.HeadFile(f.path)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		t.Fatal(err)
	}
	f.change(db, "DELETE FROM page WHERE name = CAST('durable/head' AS BLOB)")
	db.Close()
	if f.store, err = store.Open(ctx, f.path, store.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	want(t, f.verify(nil))
	f.store.Close()
	f.open()
	want(t, f.verify(nil))
	f.put("r7", "One more.", page)
	v, err := f.ledger().Verify(ctx, f.verifier, nil)
	if err != nil || !v.OK() || v.Chained != 1 || v.Unsealed != 6 {
		t.Errorf("%+v, %v", v, err)
	}
	f.exec("UPDATE entry SET why = CAST('x' AS BLOB) WHERE record = CAST('r7' AS BLOB)")
	if got := f.verify(nil); !strings.Contains(strings.Join(got, " "), "journal") {
		t.Errorf("%q", got)
	}
}

// A server has signed the head: a store that says that it never had one, as one of before
// there were heads does, was robbed of it.
func TestAStoreThatAServerSealedHasAHead(t *testing.T) {
	for _, removed := range []bool{false, true} {
		t.Run(fmt.Sprint("the file too: ", removed), func(t *testing.T) {
			f := attended(t)
			if _, err := store.NewCurator(f.store, "server", f.now).Snapshot(ctx, "", seal.Attended); err != nil {
				t.Fatal(err)
			}
			f.seal()
			f.put("r7", "One more.", ada)
			want(t, f.verify(nil))
			f.store.Close()
			db, err := sql.Open("sqlite", f.path)
			if err != nil {
				t.Fatal(err)
			}
			f.change(db, "UPDATE entry SET by = CAST('eve' AS BLOB) WHERE record = CAST('r7' AS BLOB)")
			f.change(db, "DELETE FROM page WHERE name = CAST('durable/head' AS BLOB)")
			db.Close()
			if removed {
				if err := os.Remove(store.HeadFile(f.path)); err != nil {
					t.Fatal(err)
				}
			}
			if f.store, err = store.Open(ctx, f.path, store.Options{ReadOnly: true}); err != nil {
				t.Fatal(err)
			}
			want(t, f.verify(nil), "signature")
		})
	}
}
