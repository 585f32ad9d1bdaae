package memory

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/memtox/memtox/internal/text"
)

// inMemory is the Store of a trial. It is not safe for concurrent use: a trial
// has one goroutine.
//
// The newest version of each record stands in records; the log has one small entry
// a change and keeps the record as it was before only where something replaced it.
// A store that nothing is replaced in costs hardly more than a list.
type inMemory struct {
	records []Record // as they are now, in the order of first commits
	slots   []slot   // one a record
	byID    map[string]int32
	byKey   map[storeKey]int32 // newest record of a key that is not retired
	used    map[string]int
	log     []entry // entry i has sequence number i+1
	snaps   []Snapshot
	tombs   []Tombstone
	ids     int
	pages   map[string][]byte
}

type storeKey struct{ store, key string }

type slot struct {
	last  int32 // entry of the current version
	older int32 // next older record of the same key that is not retired, or none
	key   string
}

const none = -1

type entry struct {
	at       time.Time
	group    uint64
	target   uint64
	by, why  string
	snapshot string
	slot     int32 // none: an entry without a version
	prev     int32 // entry of the version before, or none
	next     int32 // entry of the version that replaced this one, or 0
	cause    Cause
	route    Route
	old      *Record // the record as it was, once it is replaced
	seal     *seal   // once somebody asked for it
}

type seal struct {
	digest    Digest
	salt      []byte
	forgotten bool
}

// NewStore returns an empty store in memory. It is not safe for concurrent use.
func NewStore() Store {
	const usual = 16 // records that a trial holds
	return &inMemory{byID: make(map[string]int32, usual), byKey: make(map[storeKey]int32, usual), used: make(map[string]int, 4),
		records: make([]Record, 0, usual), slots: make([]slot, 0, usual), log: make([]entry, 0, 2*usual)}
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
	for ; i != none; i = s.slots[i].older {
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
func (s *inMemory) Last(context.Context) (uint64, error)           { return uint64(len(s.log)), nil }
func (s *inMemory) Snapshots(context.Context) ([]Snapshot, error)  { return slices.Clone(s.snaps), nil }
func (s *inMemory) Tombstones(context.Context) ([]Tombstone, error) {
	return slices.Clone(s.tombs), nil
}

// Page and PutPages implement [Pager].
func (s *inMemory) Page(_ context.Context, name string) ([]byte, bool, error) {
	data, ok := s.pages[name]
	return data, ok, nil
}

func (s *inMemory) PutPages(_ context.Context, name string, was []byte, pages map[string][]byte) error {
	if now, ok := s.pages[name]; ok != (was != nil) || !bytes.Equal(now, was) {
		return fmt.Errorf("storing %d pages: %w", len(pages), ErrChanged)
	}
	if s.pages == nil {
		s.pages = make(map[string][]byte, len(pages))
	}
	for name, data := range pages {
		s.pages[name] = append([]byte{}, data...) // never nil, which stands for no page
	}
	return nil
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
		j, known := s.byID[r.ID]
		if !known {
			continue
		}
		if err := SamePlace(&s.records[j], r, s.sealed(s.slots[j].last)); err != nil {
			return Committed{}, err
		}
	}
	return s.commit(b), nil
}

// SamePlace returns the error of a version that would move a record to another
// store or key, or bring a forgotten one back. Stores call it.
func SamePlace(old, r *Record, forgotten bool) error {
	switch {
	case forgotten:
		return fmt.Errorf("committing record %q: it was forgotten, and its id is not used again", r.ID)
	case old.Store != r.Store || old.Key != r.Key:
		return fmt.Errorf("committing record %q: it stands in store %q under key %q and cannot be moved to %q, %q; add a new record",
			r.ID, text.Clip(old.Store, 40), text.Clip(old.Key, 40), text.Clip(r.Store, 40), text.Clip(r.Key, 40))
	}
	return nil
}

func (s *inMemory) sealed(e int32) bool { return s.log[e].seal != nil && s.log[e].seal.forgotten }

// commit applies a checked batch.
func (s *inMemory) commit(b *Batch) Committed {
	at := b.At
	if n := len(s.log); n > 0 && at.Before(s.log[n-1].at) {
		at = s.log[n-1].at
	}
	e := entry{at: at, by: b.By, cause: b.Cause, route: b.Route, why: b.Why, target: b.Target, slot: none, prev: none}
	if b.Snapshot != nil {
		snap := *b.Snapshot
		snap.ID, snap.By, snap.At, snap.Seq = "s"+strconv.Itoa(len(s.snaps)+1), b.By, at, uint64(len(s.log)+1)
		s.snaps = append(s.snaps, snap)
		e.snapshot = snap.ID
		own := e
		own.cause, own.route, own.why, own.target, own.group = CauseSnapshot, RouteNone, snap.Reason, 0, snap.Seq
		s.log = append(s.log, own)
	}
	out := Committed{First: uint64(len(s.log) + 1), At: at, Snapshot: e.snapshot}
	if b.Cause == CauseSnapshot {
		out.First--
		out.Last = out.First
		return out
	}
	e.group = out.First
	if b.Cause.Operation() || len(b.Records) == 0 {
		s.log = append(s.log, e)
	}
	for i := range b.Records {
		s.put(&b.Records[i], e)
	}
	out.Last = uint64(len(s.log))
	return out
}

// put gives a record a new version.
func (s *inMemory) put(r *Record, e entry) {
	at := int32(len(s.log))
	i, known := s.byID[r.ID]
	if !known {
		i = int32(len(s.records))
		s.byID[r.ID] = i
		s.records = append(s.records, *r)
		s.slots = append(s.slots, slot{last: at, older: none, key: r.Key})
	} else {
		old := s.records[i]
		e.prev = s.slots[i].last
		s.log[e.prev].old, s.log[e.prev].next = &old, at
		s.count(&old, -1)
		if old.State != Retired {
			s.unlink(i)
		}
		s.records[i], s.slots[i].last = *r, at
	}
	e.slot = i
	s.log = append(s.log, e)
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
		s.slots[i].older = head
		s.byKey[k] = i
		return
	}
	at := head
	for s.slots[at].older > i {
		at = s.slots[at].older
	}
	s.slots[i].older = s.slots[at].older
	s.slots[at].older = i
}

func (s *inMemory) unlink(i int32) {
	k := storeKey{s.records[i].Store, s.records[i].Key}
	older := s.slots[i].older
	s.slots[i].older = none
	if head := s.byKey[k]; head != i {
		for s.slots[head].older != i {
			head = s.slots[head].older
		}
		s.slots[head].older = older
	} else if older == none {
		delete(s.byKey, k)
	} else {
		s.byKey[k] = older
	}
}

func (s *inMemory) audit(i int32) Audit {
	e := &s.log[i]
	a := Audit{Seq: uint64(i) + 1, Group: e.group, At: e.at, Cause: e.cause, Route: e.route, By: e.by, Why: e.why,
		Snapshot: e.snapshot, Target: e.target}
	if e.slot != none {
		a.Record = s.records[e.slot].ID
		a.Digest = s.seal(i).digest
	} else if e.seal != nil {
		a.Digest = e.seal.digest
	}
	return a
}

// seal draws the salt of a version the first time that somebody asks for its
// digest: a trial never does, and stays reproducible to the byte.
func (s *inMemory) seal(i int32) *seal {
	e := &s.log[i]
	if e.seal == nil {
		salt := make([]byte, SaltSize)
		rand.Read(salt)
		e.seal = &seal{salt: salt, digest: sumVersion(salt, uint64(i)+1, s.record(i))}
	}
	return e.seal
}

// record is the record as the entry's version has it.
func (s *inMemory) record(i int32) *Record {
	if e := &s.log[i]; e.old != nil {
		return e.old
	}
	return &s.records[s.log[i].slot]
}

func (s *inMemory) version(i int32) Version {
	e := &s.log[i]
	v := Version{Audit: s.audit(i), Record: *s.record(i), Salt: e.seal.salt, Forgotten: e.seal.forgotten}
	if e.next != 0 {
		v.Until, v.UntilSeq = s.log[e.next].at, uint64(e.next)+1
	}
	return v
}

// span is the entries that a filter's bounds leave, from included, to excluded.
func (s *inMemory) span(f *Filter) (from, to int) {
	to = len(s.log)
	if f.From > 0 {
		from = int(min(f.From-1, uint64(to)))
	}
	if f.To > 0 {
		to = int(min(f.To, uint64(to)))
	}
	if !f.Since.IsZero() {
		from = max(from, sort.Search(len(s.log), func(i int) bool { return !s.log[i].at.Before(f.Since) }))
	}
	if !f.Until.IsZero() {
		to = min(to, sort.Search(len(s.log), func(i int) bool { return !s.log[i].at.Before(f.Until) }))
	}
	return from, to
}

func (s *inMemory) Log(ctx context.Context, f Filter) iter.Seq2[Audit, error] {
	return func(yield func(Audit, error) bool) {
		if f.OfVersions() {
			for v, err := range s.Versions(ctx, f) {
				if !yield(v.Audit, err) {
					return
				}
			}
			return
		}
		from, to := s.span(&f)
		n := 0
		for i := from; i < to; i++ {
			if f.ID != "" && (s.log[i].slot == none || s.records[s.log[i].slot].ID != f.ID) || len(f.Causes) > 0 && !slices.Contains(f.Causes, s.log[i].cause) {
				continue
			}
			if n++; !yield(s.audit(int32(i)), nil) || n == f.Limit {
				return
			}
		}
	}
}

func (s *inMemory) Versions(_ context.Context, f Filter) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		n := 0
		give := func(i int32) bool {
			v := s.version(i)
			if !f.Matches(&v) {
				return true
			}
			n++
			return yield(v, nil) && n != f.Limit
		}
		if f.ID != "" {
			slot, ok := s.byID[f.ID]
			if !ok {
				return
			}
			var chain []int32
			for i := s.slots[slot].last; i != none; i = s.log[i].prev {
				chain = append(chain, i)
			}
			for _, i := range slices.Backward(chain) {
				if !give(i) {
					return
				}
			}
			return
		}
		from, to := s.span(&f)
		for i := from; i < to; i++ {
			// A look at the bare record first: most filters name few versions, and
			// a digest costs far more than the look.
			if s.log[i].slot != none && f.mayMatch(s.record(int32(i))) && !give(int32(i)) {
				return
			}
		}
	}
}

// mayMatch reports whether a filter could name a version of this record.
func (f *Filter) mayMatch(r *Record) bool {
	return (f.Store == "" || f.Store == r.Store) && (f.Key == "" || f.Key == r.Key) &&
		(f.Principal == "" || f.Principal == r.Principal) && (f.Source == "" || f.Source == r.Origin.Source) &&
		(f.AnySource == "" || r.From(f.AnySource)) && (f.Cites == "" || r.Cites(f.Cites)) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State))
}

func (s *inMemory) AsOf(_ context.Context, p Point) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		last := int32(len(s.log))
		switch {
		case p.Seq > 0:
			last = int32(min(p.Seq, uint64(last)))
		case !p.System.IsZero():
			last = int32(sort.Search(len(s.log), func(i int) bool { return s.log[i].at.After(p.System) }))
		}
		for i := range s.slots {
			at := s.slots[i].last
			for at != none && at >= last {
				at = s.log[at].prev
			}
			if at == none {
				continue
			}
			v := s.version(at)
			// What came after the point was not known then.
			if v.UntilSeq > uint64(last) {
				v.Until, v.UntilSeq = time.Time{}, 0
			}
			if (p.Fact.IsZero() || v.Holds(p.Fact)) && !yield(v, nil) {
				return
			}
		}
	}
}

func (s *inMemory) Seal(_ context.Context, id string, root []byte) error {
	for i := range s.snaps {
		if s.snaps[i].ID == id {
			return SetRoot(&s.snaps[i], root)
		}
	}
	return fmt.Errorf("sealing snapshot %q: %w", text.Clip(id, 80), ErrNotFound)
}

// SetRoot sets a snapshot's root, or returns the error of one that has another.
// Stores call it.
func SetRoot(s *Snapshot, root []byte) error {
	switch {
	case len(root) == 0:
		return fmt.Errorf("sealing snapshot %s: the root is empty", s.ID)
	case len(s.Root) > 0 && !slices.Equal(s.Root, root):
		return fmt.Errorf("sealing snapshot %s: it already has another root (%x)", s.ID, s.Root)
	}
	s.Root = slices.Clone(root)
	return nil
}

func (s *inMemory) Forget(_ context.Context, f Forgetting) (Receipt, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(f.IDs)))
	if len(ids) == 0 {
		return Receipt{}, errors.New("forgetting: no record is named")
	}
	for _, id := range ids {
		i, ok := s.byID[id]
		if !ok {
			return Receipt{}, fmt.Errorf("forgetting record %q: %w", text.Clip(id, 80), ErrNotFound)
		}
		if s.sealed(s.slots[i].last) {
			return Receipt{}, fmt.Errorf("forgetting record %q: it is forgotten already", id)
		}
	}
	b := Batch{At: f.At, Cause: CauseForget, By: f.By, Why: f.Why}
	var out Receipt
	for n, id := range ids {
		i := s.byID[id]
		t := Tombstone{Seq: uint64(len(s.log) + 2 + n), Record: id, By: f.By, Why: f.Why}
		for at := s.slots[i].last; at != none; at = s.log[at].prev {
			seq, sealed, r := uint64(at)+1, s.seal(at), s.record(at)
			t.Erased = append(t.Erased, Erased{Seq: seq, Digest: sealed.digest, Content: SumContent(sealed.salt, seq, r.Text)})
			out.Openings = append(out.Openings, Opening{Record: id, Seq: seq, Salt: sealed.salt})
		}
		slices.Reverse(t.Erased)
		out.Tombstones = append(out.Tombstones, t)
		last := s.records[i]
		last.State = Retired
		b.Records = append(b.Records, last)
	}
	slices.Reverse(out.Openings)
	c := s.commit(&b)
	for n := range out.Tombstones {
		t := &out.Tombstones[n]
		t.At = c.At
		i := s.byID[t.Record]
		for at := s.slots[i].last; at != none; at = s.log[at].prev {
			e := &s.log[at]
			bare := s.record(at).Forgotten()
			if e.old != nil {
				e.old = &bare
			} else {
				s.records[i] = bare
			}
			if e.seal == nil { // the version that the forgetting itself made
				e.seal = &seal{digest: sumVersion(nil, uint64(at)+1, &bare)}
			}
			e.seal.salt, e.seal.forgotten = nil, true
		}
	}
	s.log[c.First-1].seal = &seal{digest: SumTombstones(out.Tombstones)}
	s.tombs = append(s.tombs, out.Tombstones...)
	return out, nil
}
