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
	older   []int32  // of each record: the next older one of the same key that is not retired, or none
	byID    map[string]int32
	byKey   map[storeKey]int32 // newest record of a key that is not retired
	used    map[string]int
	ids     int
}

type storeKey struct{ store, key string }

const none = -1

// NewStore returns an empty store in memory, which keeps nothing of what was before.
// It is not safe for concurrent use.
func NewStore() Store {
	const usual = 16 // records that a trial holds
	return &inMemory{byID: make(map[string]int32, usual), byKey: make(map[storeKey]int32, usual),
		used:    make(map[string]int, 4),
		records: make([]Record, 0, usual), older: make([]int32, 0, usual)}
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
	i, ok := s.byKey[storeKey{store, key}]
	if !ok {
		return Record{}, false, nil
	}
	best := i
	for ; i != none; i = s.older[i] {
		if precedence(s.records[i].State) > precedence(s.records[best].State) {
			best = i
		}
	}
	return s.records[best], true, nil
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
	shown := func(r *Record) bool {
		return r.State.Visible() && (len(stores) == 0 || slices.Contains(stores, r.Store))
	}
	n := 0
	for i := range s.records {
		if shown(&s.records[i]) {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	out := make([]Record, 0, n)
	for i := range s.records {
		if shown(&s.records[i]) {
			out = append(out, s.records[i])
		}
	}
	return out, nil
}

func (s *inMemory) Each(_ context.Context, yield func(*Record) bool) error {
	for i := range s.records {
		if !yield(&s.records[i]) {
			break
		}
	}
	return nil
}

func (s *inMemory) Len(context.Context) (int, error)               { return len(s.records), nil }
func (s *inMemory) Used(_ context.Context, st string) (int, error) { return s.used[st], nil }

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
	i, known := s.byID[r.ID]
	if !known {
		i = int32(len(s.records))
		s.byID[r.ID] = i
		s.records = append(s.records, *r)
		s.older = append(s.older, none)
	} else {
		old := &s.records[i]
		s.count(old, -1)
		if old.State != Retired {
			s.unlink(i)
		}
		*old = *r
	}
	s.count(r, 1)
	if r.State != Retired {
		s.link(i)
	}
}

func (s *inMemory) count(r *Record, sign int) {
	if r.State.Visible() {
		s.used[r.Store] += sign * len(r.Text)
	}
}

// link puts a record among those of its key that are not retired, newest first.
func (s *inMemory) link(i int32) {
	k := storeKey{s.records[i].Store, s.records[i].Key}
	head, ok := s.byKey[k]
	if !ok || head < i {
		if !ok {
			head = none
		}
		s.older[i] = head
		s.byKey[k] = i
		return
	}
	at := head
	for s.older[at] > i {
		at = s.older[at]
	}
	s.older[i] = s.older[at]
	s.older[at] = i
}

func (s *inMemory) unlink(i int32) {
	k := storeKey{s.records[i].Store, s.records[i].Key}
	older := s.older[i]
	s.older[i] = none
	if head := s.byKey[k]; head != i {
		for s.older[head] != i {
			head = s.older[head]
		}
		s.older[head] = older
	} else if older == none {
		delete(s.byKey, k)
	} else {
		s.byKey[k] = older
	}
}
