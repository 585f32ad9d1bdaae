package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/memtox/memtox/internal/text"
)

// Store keeps the records of one memory: what a trial needs, and nothing of what was
// before. [NewStore] keeps them in memory; the package defenses/guard/store in a file,
// with everything that they ever were.
//
// Whoever writes should go through a [Memory], which asks the gate. Records that a
// Store hands out are the caller's, but what they point to (Lineage, Signature,
// Intents, Trust) is shared and must not be changed.
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
	// Close releases what the store holds. A store in memory is then gone.
	Close() error
}

// Journal is a store that numbers its changes, because others write to it too, and
// that can make them last later, so that many writers share the wait for the disk.
type Journal interface {
	Store
	// CommitLater is Commit, visible to every reader at once, but lasting only
	// when a later Sync has returned without an error.
	CommitLater(ctx context.Context, b *Batch) (Committed, error)
	// Sync returns when everything committed before the call will last. An error
	// leaves that unknown; the store then refuses every further change.
	Sync(ctx context.Context) error
	// Last is the number of the newest entry of the journal; 0 when it is empty.
	Last(ctx context.Context) (uint64, error)
	// Changes visits what the entries from one number to another, both included, did
	// to records, oldest first.
	Changes(ctx context.Context, from, to uint64) iter.Seq2[Change, error]
}

// Cause says what a batch is about.
type Cause uint8

// The causes.
const (
	CauseWrite      Cause = iota // a proposal that the gate let pass, in whatever state
	CauseSeed                    // a background memory, from before the first session
	CauseInject                  // put in around the gate
	CauseApprove                 // a staged or held record made live
	CauseReject                  // a staged or held record turned down
	CauseQuarantine              // records withheld from every session
	CauseRetire                  // records retired by a predicate
	CauseRollback                // back to an earlier state
	CauseUndo                    // one earlier group of changes taken back
	CauseForget                  // content erased
	CauseSnapshot                // a snapshot taken
)

// Batch is a set of changes that become true together. What it says besides Records
// is for a store that keeps a history.
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
	// Snapshot is taken in the same step, just before the changes; nil takes none.
	Snapshot *SnapshotName
	// Records are the records as they are from now on. Each becomes a version. A
	// record that the store knows keeps its Store and Key.
	Records []Record
}

// SnapshotName is what a snapshot is called, and before what it is taken.
type SnapshotName struct{ Name, Reason string }

// Committed says where a batch stands in a store's log; zero where there is none.
type Committed struct {
	First, Last uint64 // entries of the batch, without that of its snapshot
	At          time.Time
	Snapshot    string // id of the batch's snapshot, or ""
}

// Check returns an error for a batch that no store may accept.
func (b *Batch) Check() error {
	seen := map[string]bool{}
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
		if len(b.Records) == 1 {
			break // as nearly always
		}
		if seen[r.ID] {
			return fmt.Errorf("committing: record %q is in the batch twice", r.ID)
		}
		seen[r.ID] = true
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

// SamePlace returns the error of a version that would move a record to another
// store or key, or bring a forgotten one back. Stores call it.
func SamePlace(old, r *Record, forgotten bool) error {
	switch {
	case forgotten:
		return fmt.Errorf("committing record %q: it was forgotten, and its id is not used again", r.ID)
	case old.Store != r.Store || old.Key != r.Key:
		return fmt.Errorf("committing record %q: it stands in store %q under key %q and cannot be moved to %q, %q; add a "+
			"new record",
			r.ID, text.Clip(old.Store, 40), text.Clip(old.Key, 40), text.Clip(r.Store, 40), text.Clip(r.Key, 40))
	}
	return nil
}

// ErrNotFound is in the error about a record or a snapshot that a store does not have.
var ErrNotFound = errors.New("not found")

// ErrMovedOn is in the error of an approval where the record would supersede
// something else than what its author saw.
var ErrMovedOn = errors.New("the key has moved on")
