package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

func entry(i int) memory.Record {
	r := record("r"+strconv.Itoa(i+1), "memory/r"+strconv.Itoa(i+1),
		fmt.Sprintf("Project %d is kept in room %d and reviewed every %d weeks; its budget is settled in the spring, and "+
			"Ana signs for it.", i, i%97, i%5+1))
	r.Principal = fmt.Sprint("user-", i%100)
	r.Origin.Source = fmt.Sprintf("https://pages.example/%d", i%10_000)
	return r
}

func BenchmarkCommit(b *testing.B) {
	for name, commit := range map[string]func(*store.History, *memory.Batch) error{
		"on disk": func(s *store.History, x *memory.Batch) error { _, err := s.Commit(ctx, x); return err },
		"later":   func(s *store.History, x *memory.Batch) error { _, err := s.CommitLater(ctx, x); return err },
	} {
		b.Run(name, func(b *testing.B) {
			s := fresh(b)
			defer s.Close()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := commit(s, &memory.Batch{At: start, Records: []memory.Record{entry(i)}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Writers that share the wait for the disk, as behind a memory.Shared.
func BenchmarkCommit64Writers(b *testing.B) {
	s := fresh(b)
	defer s.Close()
	shared := memory.NewShared(memory.Options{Store: s, Stores: []memory.StoreSpec{{Name: "memory"}}, Clock: time.Now})
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		session := shared.Session("")
		for pb.Next() {
			err := session.Do(ctx, func(m *memory.Memory) error {
				_, err := m.Write(ctx, memory.Draft{Route: memory.RouteMemoryTool, Store: "memory",
					Text: "Ana signs for the budget."})
				return err
			})
			if err != nil {
				b.Error(err)
			}
		}
	})
}

// million is a store of 1,000,000 records. MEMTOX_BENCH_STORE names a file to make it
// in and find it again.
func million(b *testing.B) *store.History {
	n := 1_000_000
	if testing.Short() {
		n = 10_000
	}
	path := os.Getenv("MEMTOX_BENCH_STORE")
	if path == "" {
		path = filepath.Join(b.TempDir(), "million.db")
	}
	s := open(b, path)
	have, err := s.Len(ctx)
	if err != nil {
		b.Fatal(err)
	}
	batch := memory.Batch{}
	for i := have; i < n; i++ {
		batch.Records = append(batch.Records, entry(i))
		if len(batch.Records) == 5000 || i == n-1 {
			batch.At = start.Add(time.Duration(i) * time.Second)
			if _, err := s.CommitLater(ctx, &batch); err != nil {
				b.Fatal(err)
			}
			batch.Records = batch.Records[:0]
		}
	}
	if err := s.Sync(ctx); err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkMillion(b *testing.B) {
	s := million(b)
	defer s.Close()
	n, err := s.Len(ctx)
	if err != nil {
		b.Fatal(err)
	}
	count := func(f store.Filter) func(int) (int, error) {
		return func(int) (got int, err error) {
			for _, err := range s.Versions(ctx, f) {
				if err != nil {
					return 0, err
				}
				got++
			}
			return got, nil
		}
	}
	at := start.Add(time.Duration(n/2) * time.Second)
	for _, c := range []struct {
		name string
		do   func(i int) (int, error)
	}{
		{"get", func(i int) (int, error) {
			_, _, err := s.Get(ctx, "r"+strconv.Itoa(i*7919%n+1))
			return 1, err
		}},
		{"by key", func(i int) (int, error) {
			_, _, err := s.ByKey(ctx, "memory", "memory/r"+strconv.Itoa(i*7919%n+1))
			return 1, err
		}},
		{"history of an id", func(i int) (int, error) {
			return count(store.Filter{ID: "r" + strconv.Itoa(i*7919%n+1)})(i)
		}},
		{"history of a key", func(i int) (int, error) {
			return count(store.Filter{Key: "memory/r" + strconv.Itoa(i*7919%n+1)})(i)
		}},
		{"100 of a source", count(store.Filter{Source: "https://pages.example/77", Limit: 100})},
		{"1000 of a principal", count(store.Filter{Principal: "user-7", Limit: 1000})},
		{"1000 since a time", count(store.Filter{Since: at, Limit: 1000})},
		{"a principal since a time", count(store.Filter{Principal: "user-7", Since: at, Limit: 1000})},
		{"pending", count(store.Filter{States: []memory.State{memory.Staged, memory.Held}, Current: true})},
		{"first 100 as of", func(int) (got int, err error) {
			for _, err := range s.AsOf(ctx, store.Point{System: at}) {
				if got++; err != nil || got == 100 {
					return got, err
				}
			}
			return got, nil
		}},
		{"snapshot", func(int) (int, error) {
			_, err := takeSnapshot(ctx, s, at, "ana", memory.SnapshotName{Name: "bench"})
			return 1, err
		}},
		{"commit", func(int) (int, error) {
			r := entry(1)
			_, err := s.Commit(ctx, &memory.Batch{At: at, Records: []memory.Record{r}})
			return 1, err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			got := 0
			for i := 0; b.Loop(); i++ {
				var err error
				if got, err = c.do(i); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(got), "found")
		})
	}
}
