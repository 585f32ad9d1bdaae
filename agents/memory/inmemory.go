package memory

import (
	"context"
	"slices"
	"strconv"
)

// inMemory is the Store of a trial. It is not safe for concurrent use: a trial has
// one goroutine.
type inMemory struct {
	records []Record // in the order of first commits
	byID    map[string]int32
	byKey   map[storeKey][]int32 // records of a key that are not retired, oldest first
	ids     int
	shown   []Record // that look has returned
}

type storeKey struct{ store, key string }

// NewStore returns an empty store in memory, which keeps nothing of what was before.
// It is not safe for concurrent use.
func NewStore() Store {
	const usual = 16 // records that a trial holds
	return &inMemory{byID: make(map[string]int32, usual), byKey: make(map[storeKey][]int32, usual),
		records: make([]Record, 0, usual)}
}

// empty forgets everything but the room that it took.
func (s *inMemory) empty() {
	clear(s.byID)
	clear(s.byKey)
	s.records, s.shown, s.ids = again(s.records), again(s.shown), 0
}

func (s *inMemory) Close() error { return nil }

func (s *inMemory) Get(_ context.Context, id string) (Record, bool, error) {
	i, ok := s.byID[id]
	if !ok {
		return Record{}, false, nil
	}
	return s.records[i], true, nil
}

func (s *inMemory) ByKey(_ context.Context, store, key string) (Record, bool, error) {
	var best *Record
	for _, i := range slices.Backward(s.byKey[storeKey{store, key}]) {
		if r := &s.records[i]; best == nil || precedence(r.State) > precedence(best.State) {
			best = r
		}
	}
	if best == nil {
		return Record{}, false, nil
	}
	return *best, true, nil
}

// precedence says which of the records of a key stands for it.
func precedence(s State) int {
	switch s {
	case Live:
		return 2
	case Staged:
		return 1
	}
	return 0
}

func (s *inMemory) Visible(_ context.Context, stores ...string) ([]Record, error) {
	return slices.Clone(s.look(stores)), nil
}

// look is Visible for those who are done with the list before the next call.
func (s *inMemory) look(stores []string) []Record {
	s.shown = s.shown[:0]
	for i := range s.records {
		if r := &s.records[i]; r.State.Visible() && (len(stores) == 0 || slices.Contains(stores, r.Store)) {
			s.shown = append(s.shown, *r)
		}
	}
	return s.shown
}

func (s *inMemory) Each(_ context.Context, yield func(*Record) bool) error {
	for i := range s.records {
		if !yield(&s.records[i]) {
			break
		}
	}
	return nil
}

func (s *inMemory) Len(context.Context) (int, error) { return len(s.records), nil }

func (s *inMemory) Used(_ context.Context, store string) (n int, err error) {
	for i := range s.records {
		if r := &s.records[i]; r.Store == store && r.State.Visible() {
			n += len(r.Text)
		}
	}
	return n, nil
}

func (s *inMemory) NextID(context.Context) (string, error) {
	for {
		s.ids++
		id := "r" + strconv.Itoa(s.ids)
		if _, taken := s.byID[id]; !taken {
			return id, nil
		}
	}
}

func (s *inMemory) Commit(_ context.Context, b *Batch) (Committed, error) {
	if err := b.Check(); err != nil {
		return Committed{}, err
	}
	for i := range b.Records {
		r := &b.Records[i]
		if j, known := s.byID[r.ID]; known {
			if err := SamePlace(&s.records[j], r, false); err != nil {
				return Committed{}, err
			}
		}
	}
	for i := range b.Records {
		s.put(&b.Records[i])
	}
	return Committed{At: b.At}, nil
}

// put adds a record, or puts it in its own place.
func (s *inMemory) put(r *Record) {
	key := storeKey{r.Store, r.Key} // which a record keeps
	i, known := s.byID[r.ID]
	listed := known && s.records[i].State != Retired
	if !known {
		i = int32(len(s.records))
		s.byID[r.ID] = i
		s.records = append(s.records, *r)
	} else {
		s.records[i] = *r
	}
	switch at, _ := slices.BinarySearch(s.byKey[key], i); {
	case listed && r.State == Retired:
		s.byKey[key] = slices.Delete(s.byKey[key], at, at+1)
	case !listed && r.State != Retired:
		s.byKey[key] = slices.Insert(s.byKey[key], at, i)
	}
}
