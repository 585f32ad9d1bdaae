package seal_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
)

// million opens a store of a million records in a file: every tenth derives from
// the record ten before it, in chains of a hundred. MEMTOX_BENCH_STORE names the
// file to use, or to make for the next time; to make it takes minutes.
func million(b *testing.B) *store.History {
	b.Helper()
	path := os.Getenv("MEMTOX_BENCH_STORE")
	if path == "" {
		path = filepath.Join(b.TempDir(), "memory.db")
	}
	_, err := os.Stat(path)
	st, openErr := store.Open(ctx, path, store.Options{})
	if openErr != nil {
		b.Fatal(openErr)
	}
	b.Cleanup(func() { st.Close() })
	if err == nil {
		return st
	}
	const batch = 20_000
	for i := 0; i < 1_000_000; i += batch {
		records := make([]memory.Record, batch)
		now := time.Date(2026, 3, 1, 9, 0, i/batch, 0, time.UTC)
		for j := range records {
			n := i + j
			r := memory.Record{ID: fmt.Sprintf("r%d", n), Store: "memory", Key: fmt.Sprintf("memory/r%d", n), Principal: "ada",
				Created: now, ValidFrom: now, Version: 1,
				Text: fmt.Sprintf("Record %d of many: the depot at quay %d opens at %d:30 and takes parcels until noon.", n,
					n%977, n%24),
				Origin: memory.Origin{Class: memory.External, Medium: memory.Web,
					Source: fmt.Sprintf("https://pages.example/%d", n%5000)}}
			r.Lineage = memory.Lineage{{Segment: 1, Origin: r.Origin}}
			if n%10 == 0 && n%1000 != 0 {
				r.Lineage = append(r.Lineage, memory.Link{Record: fmt.Sprintf("r%d", n-10), Origin: r.Origin})
			}
			records[j] = r
		}
		if _, err := st.CommitLater(ctx, &memory.Batch{At: now, Cause: memory.CauseWrite, Route: memory.RouteMemoryTool,
			By: "ada", Records: records}); err != nil {
			b.Fatal(err)
		}
	}
	if err := st.Sync(ctx); err != nil {
		b.Fatal(err)
	}
	return st
}

// A record in the middle of a chain of a hundred, in a file of a million.
func BenchmarkTrace1M(b *testing.B) {
	st := million(b)
	b.ReportAllocs()
	for b.Loop() {
		r, err := seal.NewReplay(ctx, st, false)
		if err != nil {
			b.Fatal(err)
		}
		t, ok, err := r.TraceRecord(ctx, "r500500", 0)
		if err != nil || !ok || len(t.Back) != 101 || len(t.Forward) != 49 {
			b.Fatalf("%d back, %d forward: %v, %v", len(t.Back), len(t.Forward), ok, err)
		}
	}
}

// One more record and a snapshot of it, sealed in the file; a proof from the file.
func BenchmarkSealAndProve1M(b *testing.B) {
	st := million(b)
	key, _, err := seal.GenerateKey(rand.Reader, "memtox.test/bench")
	if err != nil {
		b.Fatal(err)
	}
	signer, verifier, err := seal.ParseSigner(key)
	if err != nil {
		b.Fatal(err)
	}
	ledger := seal.NewLedger(st)
	now := time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)
	curator := store.NewCurator(st, "bench", func() time.Time { return now })
	seal := func() string {
		s, err := curator.Snapshot(ctx, "", "bench")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ledger.Seal(ctx, signer, verifier); err != nil {
			b.Fatal(err)
		}
		return s.ID
	}
	began := time.Now()
	last := seal()
	b.Logf("the first sealing of a million records: %s", time.Since(began).Round(time.Millisecond))
	b.Run("seal one more", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			r := memory.Record{ID: fmt.Sprintf("%s-%d-%d", last, b.N, i), Store: "memory", Key: "bench", Text: "one more",
				Created: now, ValidFrom: now}
			r.Key += r.ID
			if _, err := st.Commit(ctx, &memory.Batch{At: now, Records: []memory.Record{r}}); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			last = seal()
		}
	})
	b.Run("prove", func(b *testing.B) {
		for b.Loop() {
			d, err := ledger.Prove(ctx, last, "r777777", false)
			if err != nil || !d.Proof.Present {
				b.Fatal(err)
			}
		}
	})
	b.Run("prove absence", func(b *testing.B) {
		for b.Loop() {
			d, err := ledger.Prove(ctx, last, "nobody", false)
			if err != nil || d.Proof.Present {
				b.Fatal(err)
			}
		}
	})
}
