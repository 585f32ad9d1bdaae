package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
)

// newServed makes a store in the console's folder as a server leaves it that is killed:
// sealed, with a signed tail that is in the log of SQLite alone, among it a snapshot that
// is not sealed yet. It returns what files there are.
func newServed(t *testing.T, c *console) map[string][]byte {
	t.Helper()
	ctx := context.Background()
	newPoisoned(t, c)
	c.must("memory", "snapshot", "found", "--store", "memory.db", "--checkpoint", "kept")
	st, err := store.Open(ctx, filepath.Join(c.dir, "memory.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	key, err := os.ReadFile(filepath.Join(c.dir, "memory.db.signer"))
	if err != nil {
		t.Fatal(err)
	}
	signer, _, err := seal.ParseSigner(strings.TrimSpace(string(key)))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Sign(signer.Sign); err != nil {
		t.Fatal(err)
	}
	minute := 0
	curator := store.NewCurator(st, "ana", func() time.Time {
		minute++
		return time.Date(2026, 3, 3, 9, minute, 0,
			0, time.UTC)
	})
	if _, err := curator.Forget(ctx, "asked for", "r2"); err != nil {
		t.Fatal(err)
	}
	if _, err := curator.Quarantine(ctx, store.Suspicion{IDs: []string{"r3"}}, "reported"); err != nil {
		t.Fatal(err)
	}
	if _, err := curator.Snapshot(ctx, "tail", "not sealed"); err != nil {
		t.Fatal(err)
	}
	r, _, err := st.Get(ctx, "r6")
	if err == nil {
		r.ID, r.Key, r.Text = "r7", "memory/r7", "The lamps are on sale."
		_, err = st.Commit(ctx, &memory.Batch{At: time.Date(2026, 3, 3, 10, 0, 0, 0, time.UTC),
			Cause: memory.CauseWrite, By: "ada", Why: "told", Records: []memory.Record{r}})
	}
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"memory.db", "memory.db-wal", "memory.db.head", "memory.db.signer",
		"memory.db.verifier", "kept"} {
		if files[name], err = os.ReadFile(filepath.Join(c.dir, name)); err != nil || len(files[name]) == 0 {
			t.Fatalf("%s: %d bytes (%v)", name, len(files[name]), err)
		}
	}
	return files
}

// put writes the files into the console's folder, in place of all that is there.
func (c *console) put(files map[string][]byte) {
	c.t.Helper()
	old, err := filepath.Glob(filepath.Join(c.dir, "*"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			c.t.Fatal(err)
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), b, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

// One flipped bit in any file of a store: whoever reads it says what was said before, or
// ends with exit code 2 and the name of the file. MEMTOX_FLIPS says how many bits of
// them (12, or 120 with MEMTOX_LONG), MEMTOX_SEED which.
func TestAFlippedBitOfAStoreIsNeverSilent(t *testing.T) {
	number := func(name string, def int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return def
	}
	c := newConsole(t)
	files := newServed(t, c)
	readers := [][]string{
		onStore("verify", "--since", "kept"), onStore("trace", "r5"), onStore("timeline"), onStore("snapshots"),
		onStore("cohort", "USER", "--attr", "class"), onStore("search", "lamps"), onStore("diff", "found",
			"tail"), onStore("prove", "r4", "--snapshot", "found", "--disclose"),
	}
	said := func(files map[string][]byte, args []string) (Code, string) {
		c.put(files)
		return c.run(append([]string{"memory"}, args...)...), c.out.String()
	}
	before := make([]string, len(readers))
	for i, args := range readers {
		code, out := said(files, args)
		if code != Done {
			t.Fatalf("%q of the sound store: exit code %d\n%s%s", args, code, out, &c.err)
		}
		before[i] = out
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	})
	random := rand.New(rand.NewPCG(uint64(number("MEMTOX_SEED", 1)), 0))
	same, loud, silent := 0, 0, 0
	flips := number("MEMTOX_FLIPS", times(120, 12))
	for i := range flips {
		name := names[i%len(names)]
		at, bit := random.IntN(len(files[name])), random.IntN(8)
		flipped := map[string][]byte{}
		for n, b := range files {
			flipped[n] = slices.Clone(b)
		}
		flipped[name][at] ^= 1 << bit
		for j, args := range readers {
			if flips < 100 && j > 0 && j != 1+i%(len(readers)-1) {
				continue // all of them where there is time
			}
			code, out := said(flipped, args)
			told := out + c.err.String()
			switch {
			case code == Done && out == before[j]:
				same++
			case code == tampered && (strings.Contains(told, "memory.db") || strings.Contains(told, name)):
				loud++
			default:
				silent++
				t.Errorf("bit %d of byte %d of %s: %q: exit code %d\n%s", bit, at, name, args, code, told)
			}
		}
	}
	t.Logf("%d flips: %d readings as before, %d refused with the file's name, %d otherwise", flips, same, loud, silent)
}
