package seal_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
)

var (
	page = memory.Origin{Class: memory.External, Medium: memory.Web, Source: "https://pages.example/a"}
	ada  = memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "ada"}
)

// file is a store in a file with a key that seals it.
type file struct {
	t        testing.TB
	path     string
	store    *store.History
	signer   note.Signer
	verifier note.Verifier
	minute   int
}

func newFile(t testing.TB) *file {
	t.Helper()
	key, _, err := seal.GenerateKey(rand.Reader, "memtox.test/ada")
	if err != nil {
		t.Fatal(err)
	}
	f := &file{t: t, path: filepath.Join(t.TempDir(), "memory.db")}
	if f.signer, f.verifier, err = seal.ParseSigner(key); err != nil {
		t.Fatal(err)
	}
	f.open()
	t.Cleanup(func() { f.store.Close() })
	return f
}

func (f *file) open() {
	f.t.Helper()
	var err error
	if f.store, err = store.Open(ctx, f.path, store.Options{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *file) now() time.Time { return time.Date(2026, 3, 1, 9, f.minute, 0, 0, time.UTC) }

func (f *file) curator() *store.Curator { return store.NewCurator(f.store, "operator", f.now) }

func (f *file) put(id, text string, o memory.Origin, from ...string) {
	f.t.Helper()
	f.minute++
	r := memory.Record{ID: id, Store: "memory", Key: "memory/" + id, Text: text, Origin: o, Principal: "ada",
		Created: f.now(), ValidFrom: f.now(), Version: 1}
	for _, x := range from {
		r.Lineage = append(r.Lineage, memory.Link{Record: x, Origin: o})
	}
	if len(from) == 0 {
		r.Lineage = memory.Lineage{{Segment: 1, Origin: o}}
	}
	if _, err := f.store.Commit(ctx, &memory.Batch{At: f.now(), Cause: memory.CauseWrite, Route: memory.RouteMemoryTool,
		By: "ada", Records: []memory.Record{r}}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *file) snapshot(name string) store.Snapshot {
	f.t.Helper()
	f.minute++
	s, err := f.curator().Snapshot(ctx, name, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *file) ledger() *seal.Ledger { return seal.NewLedger(f.store) }

func (f *file) seal() []seal.Entry {
	f.t.Helper()
	sealed, err := f.ledger().Seal(ctx, f.signer, f.verifier)
	if err != nil {
		f.t.Fatal(err)
	}
	return sealed
}

// verify returns the problems as "check record snapshot".
func (f *file) verify(kept []byte) []string {
	f.t.Helper()
	v, err := f.ledger().Verify(ctx, f.verifier, kept)
	if err != nil {
		f.t.Fatal(err)
	}
	out := []string{}
	for _, p := range v.Problems {
		if p.Note == "" {
			f.t.Errorf("a problem without a note: %+v", p)
		}
		out = append(out, strings.Join(strings.Fields(strings.Join([]string{p.Check, p.Record, p.Snapshot}, " ")), " "))
	}
	return out
}

// tamper changes the file behind the store's back.
func (f *file) tamper(change func(*sql.DB)) {
	f.t.Helper()
	f.t.Helper()
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	change(db)
	if err := db.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

func (f *file) exec(query string, args ...any) {
	f.t.Helper()
	f.tamper(func(db *sql.DB) { f.change(db, query, args...) })
}

func (f *file) change(db *sql.DB, query string, args ...any) {
	f.t.Helper()
	res, err := db.Exec(query, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		f.t.Fatalf("%s: %d rows: %v", query, n, err)
	}
}

// rewrite changes a version and, where forge is set, its digest too, as somebody
// would who knows the format.
func (f *file) rewrite(seq uint64, forge bool, change func(*memory.Record)) {
	f.t.Helper()
	f.tamper(func(db *sql.DB) {
		var salt, enc []byte
		if err := db.QueryRow("SELECT salt, record FROM version WHERE seq = ?", int64(seq)).Scan(&salt, &enc); err != nil {
			f.t.Fatal(err)
		}
		r, err := memory.ParseCanonical(enc)
		if err != nil {
			f.t.Fatal(err)
		}
		before := r
		change(&r)
		f.change(db, "UPDATE version SET record = ?, source = ?, principal = ?, key = ?, state = ?, size = ? WHERE seq = ?",
			r.AppendCanonical(nil), []byte(r.Origin.Source), []byte(r.Principal), []byte(r.Key), int64(r.State),
			int64(len(r.Text)), int64(seq))
		for _, l := range before.Lineage {
			if l.Record != "" && r.Parent != l.Record && !cites(r, l.Record) {
				f.change(db, "DELETE FROM cite WHERE seq = ?", int64(seq))
			}
		}
		if forge {
			v := store.Version{Audit: store.Audit{Seq: seq}, Record: r, Salt: salt}
			sum := v.Sum()
			f.change(db, "UPDATE entry SET digest = ? WHERE seq = ?", sum[:], int64(seq))
		}
	})
}

// sealed is a store with three sealed snapshots and one record behind them. Entries
// of the journal: r1 1, r2 2, s1 3, r3 4, s2 5, r4 6, r1 again 7, s3 8, r5 9.
func sealed(t testing.TB) *file {
	t.Helper()
	f := newFile(t)
	f.put("r1", "The user prefers dark mode.", ada)
	f.put("r2", "Pay invoices to ACC-1.", page)
	f.snapshot("monday")
	f.put("r3", "Invoices go to ACC-1 as agreed.", page, "r2")
	f.snapshot("tuesday")
	f.put("r4", "Accounts: see r3.", page, "r3")
	f.put("r1", "The user prefers light mode.", ada)
	f.snapshot("wednesday")
	f.put("r5", "The user lives in Kyoto.", ada)
	if got := f.seal(); len(got) != 3 {
		t.Fatalf("%d snapshots sealed", len(got))
	}
	if got := f.verify(nil); len(got) != 0 {
		t.Fatalf("a sealed store: %q", got)
	}
	return f
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}

func TestSealingGoesOnWhereItStopped(t *testing.T) {
	f := sealed(t)
	if got := f.seal(); len(got) != 0 {
		t.Errorf("nothing new, and %d snapshots sealed", len(got))
	}
	f.snapshot("thursday")
	f.store.Close()
	f.open()
	got := f.seal()
	if len(got) != 1 || got[0].Number != 3 || got[0].Size != 5 || got[0].Name != "thursday" {
		t.Errorf("%+v", got)
	}
	want(t, f.verify(nil))
	// Sealed one by one or all at once, the roots are those of the records.
	records := map[string]seal.Hash{}
	for v, err := range f.store.AsOf(ctx, store.Point{Seq: got[0].Sequence}) {
		if err != nil {
			t.Fatal(err)
		}
		records[v.Record.ID] = v.Digest
	}
	tree, err := seal.Tree{}.Set(records)
	if err != nil || tree.Root() != got[0].Root {
		t.Errorf("root %s, of the records %s, %v", got[0].Root, tree.Root(), err)
	}
	snaps, err := f.store.Snapshots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range snaps {
		if len(s.Root) != 32 {
			t.Errorf("snapshot %s has root %x", s.ID, s.Root)
		}
	}
}

func TestAnEmptyStoreCanBeSealed(t *testing.T) {
	f := newFile(t)
	want(t, f.verify(nil), "signature") // never green on nothing
	f.snapshot("nothing")
	if got := f.seal(); len(got) != 1 || got[0].Size != 0 {
		t.Errorf("%+v", got)
	}
	want(t, f.verify(nil))
	d, err := f.ledger().Prove(ctx, "nothing", "r1", false)
	if err != nil || d.Proof.Present {
		t.Errorf("%+v, %v", d, err)
	}
}

// memgar's leaves leave source and metadata out.
func TestASwapOfProvenanceChangesTheRoot(t *testing.T) {
	swap := func(r *memory.Record) {
		r.Origin = ada
		r.Lineage = memory.Lineage{{Segment: 1, Origin: ada}}
	}
	for name, change := range map[string]func(*memory.Record){
		"origin":    swap,
		"principal": func(r *memory.Record) { r.Principal = "*" },
		"lineage":   func(r *memory.Record) { r.Lineage = nil },
		"asked":     func(r *memory.Record) { r.Asked = true },
		"scope":     func(r *memory.Record) { r.Scope = memory.ToolActionAllowed },
		"state":     func(r *memory.Record) { r.State = memory.Staged },
		"signature": func(r *memory.Record) { r.Signature = []byte("forged") },
		"fact time": func(r *memory.Record) { r.ValidFrom = r.ValidFrom.Add(-time.Hour) },
	} {
		f := sealed(t)
		f.rewrite(4, false, change)
		want(t, f.verify(nil), "content r3")
		// Whoever knows the format makes the digest fit; the root does not.
		f = sealed(t)
		f.rewrite(4, true, change)
		if got := f.verify(nil); !slices.Equal(got, []string{"history s2", "record r3 s2", "history s3"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// memgar's snapshots are not chained: with some deleted, the rest still verifies.
func TestADeletedSnapshotFailsVerification(t *testing.T) {
	f := sealed(t)
	f.exec("DELETE FROM snapshot WHERE n = 2")
	want(t, f.verify(nil), "snapshot s2", "snapshot s2") // the ledger and the journal both say so
	f = sealed(t)
	f.exec("DELETE FROM page WHERE name = CAST('forensics/entry/1' AS BLOB)")
	want(t, f.verify(nil), "log", "snapshot s2")
	// The last, out of the store and out of the log.
	f = sealed(t)
	f.tamper(func(db *sql.DB) {
		f.change(db, "DELETE FROM snapshot WHERE n = 3")
		f.change(db, "DELETE FROM page WHERE name = CAST('forensics/entry/2' AS BLOB)")
	})
	want(t, f.verify(nil), "log", "snapshot s3")
	// With all that follows, and the log's entries moved up.
	f = sealed(t)
	f.tamper(func(db *sql.DB) {
		f.change(db, "DELETE FROM snapshot WHERE n = 1")
		f.change(db, "DELETE FROM page WHERE name = CAST('forensics/entry/0' AS BLOB)")
		for i := 1; i < 3; i++ {
			f.change(db, "UPDATE page SET name = CAST(? AS BLOB) WHERE name = CAST(? AS BLOB)",
				fmt.Sprint("forensics/entry/", i-1), fmt.Sprint("forensics/entry/", i))
		}
	})
	if got := f.verify(nil); !slices.Contains(got, "log") {
		t.Errorf("%q", got)
	}
}

// A stripped signature passes memgar's check.
func TestAStrippedSignatureFails(t *testing.T) {
	f := sealed(t)
	signed, err := f.ledger().Checkpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(signed), "\n\n")
	for name, checkpoint := range map[string]string{"no checkpoint": "", "only its text": text + "\n",
		"no signature lines": text + "\n\n"} {
		f.exec("UPDATE page SET data = CAST(json_set(CAST(data AS TEXT), '$.checkpoint', ?) AS BLOB) WHERE name = "+
			"CAST('forensics/head' AS BLOB)", encode64(checkpoint))
		if got := f.verify(nil); !slices.Equal(got, []string{"signature"}) {
			t.Errorf("%s: %q", name, got)
		}
		if _, err := f.ledger().Seal(ctx, f.signer, f.verifier); !errors.Is(err, seal.ErrIntegrity) {
			t.Errorf("%s: sealed on: %v", name, err)
		}
	}
	// The whole head gone, and all of the ledger.
	f.exec("DELETE FROM page WHERE name = CAST('forensics/head' AS BLOB)")
	want(t, f.verify(nil), "signature")
	f.exec("DELETE FROM page")
	want(t, f.verify(nil), "signature")
}

func encode64(s string) string {
	return base64.StdEncoding.EncodeToString([]byte(s))
}

func TestAnotherKeyDoesNotVouch(t *testing.T) {
	f := sealed(t)
	other := newFile(t)
	f.verifier, f.signer = other.verifier, other.signer
	want(t, f.verify(nil), "signature")
	f.snapshot("forged")
	if _, err := f.ledger().Seal(ctx, f.signer, f.verifier); !errors.Is(err, seal.ErrIntegrity) {
		t.Errorf("sealed on with another key: %v", err)
	}
}

func TestVerifyNamesTheDivergingEntries(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(*file)
		want   []string
	}{
		"a text changed": {func(f *file) { f.rewrite(2, false, func(r *memory.Record) { r.Text = "Pay ACC-2." }) },
			[]string{"content r2"}},
		"a text and its digest": {func(f *file) { f.rewrite(2, true, func(r *memory.Record) { r.Text = "Pay ACC-2." }) },
			[]string{"history s1", "record r2 s1", "history s2", "history s3"}},
		"an old version": {func(f *file) { f.rewrite(1, true, func(r *memory.Record) { r.Text = "x" }) },
			[]string{"history s1", "record r1 s1", "history s2", "history s3"}},
		"a version that is no one": {func(f *file) { f.exec("UPDATE version SET record = x'00' WHERE seq = 4") },
			[]string{"content r3"}},
		"a record deleted": {func(f *file) { f.exec("DELETE FROM version WHERE seq = 4") },
			[]string{"journal r3", "record r3 s2"}},
		"a record deleted, with its entry": {func(f *file) {
			f.tamper(func(db *sql.DB) {
				f.change(db, "DELETE FROM version WHERE seq = 4")
				f.change(db, "DELETE FROM entry WHERE seq = 4")
			})
		}, []string{"journal", "history s2", "record r3 s2", "history s3"}},
		"a reason changed": {func(f *file) { f.exec("UPDATE entry SET why = CAST('x' AS BLOB) WHERE seq = 6") },
			[]string{"history s3"}},
		"an author changed": {func(f *file) { f.exec("UPDATE entry SET by = CAST('eve' AS BLOB) WHERE seq = 2") },
			[]string{"history s1", "history s2", "history s3"}},
		"a snapshot renamed": {func(f *file) { f.exec("UPDATE snapshot SET name = CAST('x' AS BLOB) WHERE n = 2") },
			[]string{"snapshot s2"}},
		"a snapshot moved": {func(f *file) { f.exec("UPDATE snapshot SET seq = 4 WHERE n = 2") },
			[]string{"snapshot s2", "snapshot s2"}},
		"another root": {func(f *file) { f.exec("UPDATE snapshot SET root = zeroblob(32) WHERE n = 2") },
			[]string{"snapshot s2"}},
		"a snapshot put in": {func(f *file) {
			f.exec("INSERT INTO snapshot SELECT 9, name, reason, by, 4, at, x'' FROM snapshot WHERE n = 1")
		}, []string{"snapshot s9"}},
		"a page damaged": {func(f *file) {
			f.exec("UPDATE page SET data = zeroblob(40) WHERE CAST(name AS TEXT) LIKE 'forensics/node/%'")
		}, []string{"page s1", "page s2", "page s3"}},
		"hashes damaged": {func(f *file) {
			f.exec("UPDATE page SET data = zeroblob(32) WHERE CAST(name AS TEXT) LIKE 'forensics/hash/%'")
		}, []string{"page"}},
		"an entry changed": {func(f *file) {
			f.exec("UPDATE page SET data = CAST(replace(CAST(data AS TEXT), 'tuesday', 'tuesdax') AS BLOB) WHERE name = " +
				"CAST('forensics/entry/1' AS BLOB)")
		}, []string{"log", "snapshot s2"}},
		"an entry made longer": {func(f *file) {
			f.exec("UPDATE page SET data = CAST(CAST(data AS TEXT) || ' ' AS BLOB) WHERE name = CAST('forensics/entry/1' AS BLOB)")
		}, []string{"log", "snapshot s2"}},
		"an entry put in": {func(f *file) {
			f.exec("INSERT INTO page SELECT CAST('forensics/entry/3' AS BLOB), CAST(replace(CAST(data AS TEXT), " +
				"'\"number\":2', '\"number\":3') AS BLOB) FROM page WHERE name = CAST('forensics/entry/2' AS BLOB)")
		}, []string{"log"}},
		"another's content": {func(f *file) {
			f.exec("UPDATE version SET record = (SELECT record FROM version WHERE seq = 1) WHERE seq = 4")
		}, []string{"journal r3", "index r3", "index r3"}},
		"a state in the index": {func(f *file) { f.exec("UPDATE version SET state = 3 WHERE seq = 4") },
			[]string{"index r3"}},
		"a source in the index":       {func(f *file) { f.exec("UPDATE version SET source = CAST('ada' AS BLOB) WHERE seq = 4") }, []string{"index r3"}},
		"an old version made current": {func(f *file) { f.exec("UPDATE version SET until = 9223372036854775807 WHERE seq = 1") }, []string{"index r1"}},
		"a version made old": {func(f *file) { f.exec("UPDATE version SET until = 9 WHERE seq = 4") },
			[]string{"index r3"}},
		"a derivation hidden": {func(f *file) { f.exec("DELETE FROM cite WHERE seq = 6") }, []string{"index r4"}},
		"a derivation put in": {func(f *file) { f.exec("INSERT INTO cite VALUES (CAST('r1' AS BLOB), 4)") },
			[]string{"index r3"}},
		"content said to be forgotten": {func(f *file) {
			f.rewrite(4, false, func(r *memory.Record) { *r = store.Bare(*r) })
			f.exec("UPDATE version SET forgotten = 1, salt = x'' WHERE seq = 4")
		}, []string{"forgotten r3"}},
		"the newest, unsealed": {func(f *file) { f.rewrite(9, false, func(r *memory.Record) { r.Text = "x" }) },
			[]string{"content r5"}},
		"a page of all deleted": {func(f *file) { f.exec("DELETE FROM page WHERE CAST(name AS TEXT) LIKE 'forensics/node/%'") }, []string{"page s1", "page s2", "page s3"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := sealed(t)
			c.tamper(f)
			want(t, f.verify(nil), c.want...)
		})
	}
}

func TestAForgottenContentIsNoTampering(t *testing.T) {
	f := sealed(t)
	f.minute++
	if _, err := f.curator().Forget(ctx, "the user asked", "r2"); err != nil {
		t.Fatal(err)
	}
	want(t, f.verify(nil))
	f.snapshot("after")
	f.seal()
	want(t, f.verify(nil))
	// The past still has proofs, and no content.
	d, err := f.ledger().Prove(ctx, "monday", "r2", false)
	if err != nil || !d.Proof.Present {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := f.ledger().Prove(ctx, "monday", "r2", true); err == nil || !strings.Contains(err.Error(), "forgotten") {
		t.Error(err)
	}
	// Without its tombstone it is one.
	f.exec("DELETE FROM tombstone")
	want(t, f.verify(nil), "forgotten r2", "forgotten", "forgotten r2")
}

func TestAnOlderCopyOfTheFileIsSeenByAKeptCheckpoint(t *testing.T) {
	f := sealed(t)
	f.store.Close()
	old, oldHead := must(os.ReadFile(f.path)), must(os.ReadFile(store.HeadFile(f.path)))
	f.open()
	f.snapshot("thursday")
	f.seal()
	kept, err := f.ledger().Checkpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f.snapshot("friday")
	f.seal()
	want(t, f.verify(kept)) // what was kept is a prefix of what is
	f.store.Close()
	if err := os.WriteFile(f.path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(ctx, f.path, store.Options{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("its head knows of later entries: %v", err)
	}
	if err := os.WriteFile(store.HeadFile(f.path), oldHead, 0o600); err != nil {
		t.Fatal(err)
	}
	f.open()
	want(t, f.verify(nil)) // by themselves the old files are whole
	want(t, f.verify(kept), "consistent")
	want(t, f.verify([]byte("no checkpoint")), "consistent")
	// The same number of snapshots, sealed again with other contents.
	f.snapshot("another thursday")
	f.seal()
	want(t, f.verify(kept), "consistent")
}

func TestAProofDocumentConvincesSomebodyElse(t *testing.T) {
	f := sealed(t)
	for _, c := range []struct {
		snapshot, record string
		present          bool
	}{{"monday", "r2", true}, {"monday", "r3", false}, {"s3", "r4", true}, {"wednesday", "nobody", false}} {
		for _, disclose := range []bool{false, true} {
			d, err := f.ledger().Prove(ctx, c.snapshot, c.record, disclose)
			if err != nil {
				t.Fatal(err)
			}
			data, err := seal.Encode(d)
			if err != nil {
				t.Fatal(err)
			}
			s, err := seal.CheckDocument(data, f.verifier)
			if err != nil || s.Present != c.present || s.Record != c.record || s.Snapshot.Size == 0 ||
				(s.Disclosed != nil) != (disclose && c.present) {
				t.Errorf("%+v: %+v, %v", c, s, err)
			}
			if s != nil && s.Disclosed != nil && s.Disclosed.ID != c.record {
				t.Errorf("discloses %+v", s.Disclosed)
			}
			// Not a bit of it can be another.
			for i := range data {
				bad := bytes.Clone(data)
				bad[i] ^= 1
				s, err := seal.CheckDocument(bad, f.verifier)
				if err == nil && s.Record != c.record { // the very proof of another id, which is true
					if own, _ := f.ledger().Prove(ctx, c.snapshot, s.Record, false); bytes.Equal(must(seal.Encode(own)), bad) {
						continue
					}
				}
				if !errors.Is(err, seal.ErrIntegrity) {
					t.Fatalf("byte %d of %s as %q: %+v, %v", i, data, bad[i], s, err)
				}
			}
			for _, bad := range [][]byte{append(bytes.Clone(data), ' '), append([]byte(" "), data...), data[:len(data)-1], nil} {
				if _, err := seal.CheckDocument(bad, f.verifier); !errors.Is(err, seal.ErrIntegrity) {
					t.Errorf("%q: %v", bad, err)
				}
			}
		}
	}
	if _, err := f.ledger().Prove(ctx, "friday", "r1", false); !errors.Is(err, memory.ErrNotFound) {
		t.Error(err)
	}
	f.snapshot("thursday")
	if _, err := f.ledger().Prove(ctx, "thursday", "r1", false); !errors.Is(err, seal.ErrNotSealed) {
		t.Error(err)
	}
}

func TestATamperedStoreIsNotSealedOn(t *testing.T) {
	for name, tamper := range map[string]func(*file){
		"unsealed content":   func(f *file) { f.rewrite(9, false, func(r *memory.Record) { r.Text = "x" }) },
		"a gap":              func(f *file) { f.exec("DELETE FROM entry WHERE seq = 9") },
		"the last entry":     func(f *file) { f.exec("DELETE FROM page WHERE name = CAST('forensics/entry/2' AS BLOB)") },
		"a deleted snapshot": func(f *file) { f.exec("DELETE FROM snapshot WHERE n = 2") },
		"the log's hashes": func(f *file) {
			f.exec("UPDATE page SET data = zeroblob(32) WHERE CAST(name AS TEXT) LIKE 'forensics/hash/%'")
		},
		"the tree": func(f *file) {
			f.exec("UPDATE page SET data = zeroblob(40) WHERE CAST(name AS TEXT) LIKE 'forensics/node/%'")
		},
		"a snapshot put in": func(f *file) {
			f.exec("INSERT INTO snapshot SELECT 9, name, reason, by, 4, at, x'' FROM snapshot WHERE n = 1")
		},
	} {
		f := sealed(t)
		f.snapshot("next")
		tamper(f)
		before, err := f.ledger().Checkpoint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ledger().Seal(ctx, f.signer, f.verifier); !errors.Is(err, seal.ErrIntegrity) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := f.ledger().Checkpoint(ctx); !bytes.Equal(before, after) {
			t.Errorf("%s: the log has another checkpoint", name)
		}
	}
}

func TestADamagedVersionHidesNoOther(t *testing.T) {
	f := sealed(t)
	f.exec("UPDATE version SET record = x'00' WHERE seq = 4")
	r := must(seal.NewReplay(ctx, f.store, false))
	tr, ok, err := r.TraceRecord(ctx, "r3", 0)
	if err != nil || !ok || !tr.Changes[0].Damaged || tr.Record.ID != "r3" || len(tr.Forward) != 1 {
		t.Errorf("%+v, %v, %v", tr, ok, err)
	}
	if tr, _, err := r.TraceRecord(ctx, "r4", 0); err != nil || !tr.Back[0].Damaged {
		t.Errorf("%+v, %v", tr, err)
	}
	if hits, _, err := r.Search(ctx, "kyoto", false, 0); err != nil || len(hits) != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
	if events, _, err := r.Timeline(ctx, seal.Match{}, 0); err != nil || len(events) != 6 {
		t.Errorf("%+v, %v", events, err)
	}
}

func FuzzCheckDocument(f *testing.F) {
	store := sealed(f)
	genuine := map[string]bool{}
	for _, id := range []string{"r1", "r4", "nobody"} {
		for _, disclose := range []bool{false, true} {
			d, err := store.ledger().Prove(ctx, "wednesday", id, disclose)
			if err != nil {
				f.Fatal(err)
			}
			data := must(seal.Encode(d))
			genuine[string(data)] = true
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := seal.CheckDocument(data, store.verifier)
		if err != nil || genuine[string(data)] {
			return
		}
		// Another id's absence may be true and proved by the same hashes.
		if s.Present || s.Snapshot.ID != "s3" {
			t.Fatalf("%q proves %+v", data, s)
		}
	})
}

func cites(r memory.Record, id string) bool {
	return slices.ContainsFunc(r.Lineage, func(l memory.Link) bool { return l.Record == id })
}
