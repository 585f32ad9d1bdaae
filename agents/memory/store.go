package memory

import "slices"

// store keeps a trial's records in the order of commits. It is not safe for
// concurrent use: a trial has one goroutine.
type store struct {
	records []Record
	byID    map[string]int
	byKey   map[storeKey]int // current (visible or held) record of a key
}

type storeKey struct{ store, key string }

func newStore() *store {
	return &store{byID: make(map[string]int, 16), byKey: make(map[storeKey]int, 16)}
}

func (s *store) put(r Record) {
	if i, ok := s.byID[r.ID]; ok {
		s.records[i] = r
	} else {
		s.byID[r.ID] = len(s.records)
		s.records = append(s.records, r)
	}
	if r.State != Retired {
		s.byKey[storeKey{r.Store, r.Key}] = s.byID[r.ID]
	}
}

func (s *store) get(id string) (Record, bool) {
	i, ok := s.byID[id]
	if !ok {
		return Record{}, false
	}
	return s.records[i], true
}

func (s *store) retire(id string, change func(*Record)) {
	i, ok := s.byID[id]
	if !ok {
		return
	}
	r := &s.records[i]
	r.State = Retired
	change(r)
	k := storeKey{r.Store, r.Key}
	if s.byKey[k] == i {
		delete(s.byKey, k)
	}
}

// visible returns the records of the named stores that a session can see, in
// the order of commits. No names means every store.
func (s *store) visible(stores ...string) []Record {
	var out []Record
	for i := range s.records {
		if r := &s.records[i]; r.State.Visible() && (len(stores) == 0 || slices.Contains(stores, r.Store)) {
			out = append(out, *r)
		}
	}
	return out
}
