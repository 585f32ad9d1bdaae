package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/memtox/memtox/results"
)

// shelf is a Sink that keeps everything in memory.
type shelf struct {
	mu      sync.Mutex
	entries map[string]results.Entry
	scripts map[string][]byte
}

func newShelf() *shelf {
	return &shelf{entries: map[string]results.Entry{}, scripts: map[string][]byte{}}
}

func (s *shelf) Done(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.entries[id]
	return ok
}

func (s *shelf) Append(t *results.Trial, ds []results.Decision, transcript []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.entries[t.ID]; twice {
		return fmt.Errorf("trial %s was run twice", t.ID)
	}
	s.entries[t.ID] = results.Entry{Trial: *t, Decisions: ds}
	s.scripts[t.ID] = slices.Clone(transcript)
	return nil
}

// trials are the rows in the order of the plan.
func (s *shelf) trials() []results.Trial {
	var out []results.Trial
	for _, e := range s.entries {
		out = append(out, e.Trial)
	}
	slices.SortFunc(out, func(a, b results.Trial) int { return int(a.Index - b.Index) })
	return out
}

// runAll runs an experiment with the built-in catalog and the given settings.
func runAll(t testing.TB, cat Catalog, settings ...string) (*Experiment, *shelf) {
	t.Helper()
	c := DefaultConfig()
	for _, s := range settings {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Prepare(context.Background(), c, cat)
	if err != nil {
		t.Fatal(err)
	}
	out := newShelf()
	if err := x.Run(context.Background(), out, new(Progress), nil); err != nil {
		t.Fatal(err)
	}
	return x, out
}
