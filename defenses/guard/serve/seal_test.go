package serve_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/defenses/guard/store"
)

func newSealer(t testing.TB, s *store.History) *serve.Sealer {
	t.Helper()
	key, _, err := seal.GenerateKey(rand.Reader, "memtox.test/server")
	if err != nil {
		t.Fatal(err)
	}
	out := &serve.Sealer{Store: s}
	if out.Signer, out.Verifier, err = seal.ParseSigner(key); err != nil {
		t.Fatal(err)
	}
	return out
}

func put(t testing.TB, s *store.History, n int) {
	t.Helper()
	r := memory.Record{ID: fmt.Sprint("r", n), Store: "memory", Key: fmt.Sprint("k", n), Text: "tea",
		Origin: memory.Origin{Class: memory.User}, Principal: "u", Created: time.Now(), Version: 1}
	if _, err := s.Commit(context.Background(), &memory.Batch{At: time.Now(), Cause: memory.CauseWrite, By: "u",
		Records: []memory.Record{r}}); err != nil {
		t.Fatal(err)
	}
}

func TestAStoreSealsItself(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		after int
		want  []string // when it was sealed, the empty store first, with how many entries
	}{
		"by time":    {10 * time.Minute, 0, []string{" 1", "10m1s 11", "31m1s 2", "45m 2"}},
		"by changes": {0, 4, []string{" 1", "2s 5", "4s 5", "45m 5"}},
		"by both":    {10 * time.Minute, 4, []string{" 1", "2s 5", "4s 5", "10m5s 3", "31m1s 2", "45m 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := openStore(t)
				s := newSealer(t, st)
				began := time.Now()
				s.Every, s.After = c.every, c.after
				var got []string
				s.Told = func(x serve.Sealing) {
					if x.Err != nil || x.Left {
						t.Errorf("%+v", x)
					}
					got = append(got, fmt.Sprint(strings.TrimSuffix(time.Since(began).Round(time.Second).String(),
						"0s"), " ", x.Entries))
				}
				if err := s.Begin(context.Background()); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				var run sync.WaitGroup
				run.Go(func() { s.Run(ctx) })
				time.Sleep(250 * time.Millisecond) // never when the sealer looks
				for n := range 10 {
					put(t, st, n)
					time.Sleep(500 * time.Millisecond)
				}
				time.Sleep(21*time.Minute - 5*time.Second)
				put(t, st, 100)
				time.Sleep(24 * time.Minute)
				put(t, st, 200)
				cancel()
				run.Wait()
				if st, err := s.Status(context.Background()); err != nil || st.Unsealed != 0 || st.Last.Snapshot == "" {
					t.Errorf("%+v, %v", st, err)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("sealed at %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestWhatWasLeftUnsealedIsVerifiedAndSealed(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "m.db")
	st, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { st.Close() }()
	s := newSealer(t, st)
	var told []serve.Sealing
	s.Told = func(x serve.Sealing) { told = append(told, x) }
	for round := range 2 {
		for n := range 3 {
			put(t, st, 10*round+n)
		}
		if err := s.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		if len(told) != round+1 || !told[round].Left || told[round].Entries != 4 {
			t.Errorf("%+v", told)
		}
	}
	if err := s.Begin(ctx); err != nil || len(told) != 2 {
		t.Errorf("nothing was left: %+v, %v", told, err)
	}
	// What it sealed must have a signed head: one without is not taken for it.
	ledger := seal.NewLedger(st)
	put(t, st, 30)
	v, err := ledger.Verify(ctx, s.Verifier, nil)
	if err != nil || !v.OK() || v.Unsealed != 1 || v.TailSigned != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	if err := st.Sign(func([]byte) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	v, err = ledger.Verify(ctx, s.Verifier, nil)
	if err != nil || v.OK() || v.Problems[0].Check != seal.CheckSignature ||
		!strings.Contains(v.Problems[0].Note, "stripped") {
		t.Errorf("%+v, %v", v, err)
	}
	if err := s.Begin(ctx); !errors.Is(err, seal.ErrIntegrity) || len(told) != 2 {
		t.Errorf("a tail that is not sound is sealed: %v, %+v", err, told)
	}
}

// BenchmarkCommitWhileSealing is how long writers wait beside a sealer: the longest in
// milliseconds is a metric of it, with and without.
func BenchmarkCommitWhileSealing(b *testing.B) {
	for _, sealing := range []bool{false, true} {
		b.Run(fmt.Sprint("sealing=", sealing), func(b *testing.B) {
			ctx := context.Background()
			st, err := store.Open(ctx, filepath.Join(b.TempDir(), "m.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			var batch memory.Batch
			batch.Cause = memory.CauseWrite
			for n := range 100_000 {
				batch.Records = append(batch.Records, memory.Record{ID: fmt.Sprint("r", n), Store: "memory",
					Key: fmt.Sprint("k", n), Text: strings.Repeat("tea ", 20), Principal: "u", Version: 1})
			}
			if _, err := st.Commit(ctx, &batch); err != nil {
				b.Fatal(err)
			}
			s := newSealer(b, st)
			if s.After = 1 << 30; sealing {
				s.After = 256
			}
			var took []time.Duration
			if err := s.Begin(ctx); err != nil {
				b.Fatal(err)
			}
			run, stop := context.WithCancel(ctx)
			var group sync.WaitGroup
			group.Go(func() { s.Run(run) })
			sealings := 0
			s.Told = func(x serve.Sealing) { sealings++ }
			n := 100_000
			for b.Loop() {
				began := time.Now()
				put(b, st, n)
				took = append(took, time.Since(began))
				n++
			}
			stop()
			group.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-longest")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
			b.ReportMetric(float64(sealings), "sealings")
		})
	}
}
