package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/memtox/memtox/internal/text"
)

// Store keeps records and everything that they ever were. Nothing in it is
// overwritten: a change of a record is a new [Version] with the system time at
// which it became true, and each change has an entry in an append-only log
// ([Audit]). [NewStore] keeps it in memory, the package durable in one file;
// both show the same behaviour, which the tests of package durable hold them to.
//
// Whoever writes should go through a [Memory], which asks the gate, or through
// a [Curator], which tells it. Records that a Store hands out are the caller's,
// but what they point to (Lineage, Signature, Intents, Trust) is shared and must
// not be changed.
//
// An implementation says for itself whether it is safe for concurrent use.
type Store interface {
	// Get returns the current version of a record, in whatever state.
	Get(ctx context.Context, id string) (Record, bool, error)
	// ByKey returns the record that stands for a key now: the live one; failing
	// that the newest staged one; failing that the newest that is held or
	// quarantined. What waits for a decision never hides what is live.
	ByKey(ctx context.Context, store, key string) (Record, bool, error)
	// Visible returns the records of the named stores that a session can see, in
	// the order of first commits. No names means every store.
	Visible(ctx context.Context, stores ...string) ([]Record, error)
	// Each visits the current version of every record, in every state, in the
	// order of first commits, until yield returns false. The store must not be
	// changed from within yield, nor the record kept by reference.
	Each(ctx context.Context, yield func(*Record) bool) error
	// Len is the number of records in every state.
	Len(ctx context.Context) (int, error)
	// Used is the number of bytes of all visible entries of a store.
	Used(ctx context.Context, store string) (int, error)
	// NextID returns an id that no record has had: "r1", "r2" …
	NextID(ctx context.Context) (string, error)

	// Commit makes a batch true, wholly or not at all, and returns once it will
	// survive whatever this store promises to survive. The batch may be used
	// again afterwards.
	Commit(ctx context.Context, b *Batch) (Committed, error)
	// Forget erases records: their content leaves every version. What stays is
	// the tombstone.
	Forget(ctx context.Context, f Forgetting) (Receipt, error)

	// Last is the sequence number of the newest entry of the log; 0 when it is
	// empty.
	Last(ctx context.Context) (uint64, error)
	// Log visits the entries of the log that the filter names, oldest first.
	// Fields of a filter that only versions have exclude entries without one.
	Log(ctx context.Context, f Filter) iter.Seq2[Audit, error]
	// Versions visits the versions that the filter names, oldest first.
	Versions(ctx context.Context, f Filter) iter.Seq2[Version, error]
	// AsOf visits every record as it stood at a point in time, in the order of
	// first commits.
	AsOf(ctx context.Context, p Point) iter.Seq2[Version, error]
	// Snapshots lists the snapshots, oldest first.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	// Seal sets the root of a snapshot, once. Another root for a snapshot that
	// has one is an error.
	Seal(ctx context.Context, snapshot string, root []byte) error
	// Tombstones lists what was forgotten, oldest first.
	Tombstones(ctx context.Context) ([]Tombstone, error)

	// Close releases what the store holds. A store in memory is then gone.
	Close() error
}

// Grouped is a store that can commit now and make it last later, so that many
// writers share the wait for the disk.
type Grouped interface {
	Store
	// CommitLater is Commit, visible to every reader at once, but lasting only
	// when a later Sync has returned without an error.
	CommitLater(ctx context.Context, b *Batch) (Committed, error)
	// Sync returns when everything committed before the call will last. An error
	// leaves that unknown; the store then refuses every further change.
	Sync(ctx context.Context) error
}

// Pager is a store that also keeps named pages for others, in the same place and
// with the same promise: the nodes of a tree over the records, say. Forgetting does
// not touch them, so they must hold nothing that content can be guessed from.
type Pager interface {
	// Page returns a page and whether there is one of that name.
	Page(ctx context.Context, name string) (data []byte, ok bool, err error)
	// PutPages stores pages, in place of older ones of the same names, all or none,
	// as long as the page of one name still is as the caller read it (nil: there was
	// none). Else the error wraps [ErrChanged]: somebody else, perhaps in another
	// process, has written since.
	PutPages(ctx context.Context, name string, was []byte, pages map[string][]byte) error
}

// ErrChanged is what PutPages of a [Pager] returns when the pages that the caller's
// rest on are no longer the ones that it read.
var ErrChanged = errors.New("the pages were changed meanwhile")

// Batch is a set of changes that become true together.
type Batch struct {
	// At is the system time. The log's time never runs backwards: an earlier time
	// than that of the last entry is raised to it.
	At    time.Time
	Cause Cause
	Route Route
	By    string // who
	Why   string // a reason for people; never the content
	// Target is the sequence number that a rollback goes back to, or the group
	// that an undoing undoes.
	Target uint64
	// Snapshot is taken in the same step, just before the changes; nil takes
	// none. Name, Reason and Root count; the rest is filled in by the store.
	Snapshot *Snapshot
	// Records are the records as they are from now on. Each becomes a version. A
	// record that the store knows keeps its Store and Key.
	Records []Record
}

// Committed says where a batch stands in the log.
type Committed struct {
	First, Last uint64 // entries of the batch, without that of its snapshot
	At          time.Time
	Snapshot    string // id of the batch's snapshot, or ""
}

// Operation reports whether batches of this cause are one act on several records,
// which has an entry of its own before those of the records.
func (c Cause) Operation() bool {
	switch c {
	case CauseQuarantine, CauseRetire, CauseRollback, CauseUndo, CauseForget:
		return true
	}
	return false
}

// Check returns an error for a batch that no store may accept.
func (b *Batch) Check() error {
	var seen map[string]struct{}
	for i := range b.Records {
		r := &b.Records[i]
		switch {
		case r.ID == "":
			return errors.New("committing: a record without an id")
		case int(r.State) >= len(stateNames):
			return fmt.Errorf("committing record %q: there is no state %d", r.ID, r.State)
		case int(r.Scope) >= len(scopeNames):
			return fmt.Errorf("committing record %q: there is no scope %d", r.ID, r.Scope)
		case !r.Origin.known():
			return fmt.Errorf("committing record %q: there is no source class %d", r.ID, r.Origin.Class)
		}
		for _, l := range r.Lineage {
			if !l.Origin.known() {
				return fmt.Errorf("committing record %q: its lineage has no source class %d", r.ID, l.Origin.Class)
			}
		}
		twice := false
		if len(b.Records) <= 8 { // the usual batch has one or two
			for j := range i {
				twice = twice || b.Records[j].ID == r.ID
			}
		} else {
			if seen == nil {
				seen = make(map[string]struct{}, len(b.Records))
			}
			_, twice = seen[r.ID]
			seen[r.ID] = struct{}{}
		}
		if twice {
			return fmt.Errorf("committing: record %q is in the batch twice", r.ID)
		}
	}
	switch {
	case int(b.Cause) >= len(causeNames):
		return fmt.Errorf("committing: there is no cause %d", b.Cause)
	case b.Cause == CauseSnapshot && (b.Snapshot == nil || len(b.Records) > 0):
		return errors.New("committing: a snapshot is taken alone, and has a name or a reason")
	case b.Cause == CauseForget:
		return errors.New("committing: forgetting needs Forget, which erases the content too")
	}
	return nil
}

func (o Origin) known() bool { return int(o.Class) < len(classNames) }

// StoreError is an error of the store. Like a GateError it is an error of the
// trial: neither a detection nor an allow.
type StoreError struct {
	Doing string // what was being done
	Err   error
}

// Error implements error.
func (e *StoreError) Error() string { return fmt.Sprintf("the store failed at %s: %v", e.Doing, e.Err) }

// Unwrap returns the store's own error.
func (e *StoreError) Unwrap() error { return e.Err }

// ErrNotFound is what a Curator returns for a record or a snapshot that the
// store does not have.
var ErrNotFound = errors.New("not found")

// FindSnapshot returns the snapshot with an id, or with a name if only one has
// it. The error of an unknown one wraps [ErrNotFound].
func FindSnapshot(ctx context.Context, s Store, name string) (Snapshot, error) {
	all, err := s.Snapshots(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	var found []Snapshot
	for _, have := range all {
		if have.ID == name {
			return have, nil
		}
		if have.Name == name {
			found = append(found, have)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Snapshot{}, fmt.Errorf("snapshot %q: %w; the store has %d", text.Clip(name, 80), ErrNotFound, len(all))
	}
	return Snapshot{}, fmt.Errorf("snapshot %q: %d snapshots have that name, the newest is %s; give the id", text.Clip(name, 80), len(found), found[len(found)-1].ID)
}
