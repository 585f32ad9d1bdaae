package seal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/defenses/guard/store"
)

// ErrIntegrity is in the error of everything that finds a store or a vault to be
// other than what was sealed.
var ErrIntegrity = errors.New("integrity")

// ErrNotSealed is in the error about a snapshot that the ledger does not have.
var ErrNotSealed = errors.New("not sealed")

// Ledger seals a store's snapshots and proves what they held.
//
// Sealing a snapshot computes the root of a tree over every record as of that
// snapshot, in every state, and a hash chain over the store's journal up to there;
// puts both into an append-only log; and signs the log. A leaf of the tree is the
// digest of the record's version ([store.Version.Sum]), which covers every field:
// content, origin, lineage, principal, times, state, signature.
//
// What happened before a snapshot was sealed is not protected by it. Who can write
// the store and has the signing key can seal anything; keep the key where the agent
// cannot read it, and a checkpoint where nobody can change it: only that shows that
// a whole file was replaced by an older copy of itself.
type Ledger struct{ store Store }

// Store is what a ledger uses of a [store.History].
type Store interface {
	Snapshots(context.Context) ([]store.Snapshot, error)
	FindSnapshot(ctx context.Context, name string) (store.Snapshot, error)
	Seal(ctx context.Context, snapshot string, root []byte) error
	Tombstones(context.Context) ([]store.Tombstone, error)
	Journal(context.Context, store.Filter) iter.Seq2[store.Version, error]
	Versions(context.Context, store.Filter) iter.Seq2[store.Version, error]
	Head(context.Context) (store.Head, error)
	Page(ctx context.Context, name string) (data []byte, ok bool, err error)
	PutPages(ctx context.Context, name string, was []byte, pages map[string][]byte) error
	CheckIndex(ctx context.Context, told func(seq uint64, record, what string)) error
	CheckFile(ctx context.Context, told func(what string)) error
}

// NewLedger returns the ledger of a store. It is kept in the store's pages.
func NewLedger(st Store) *Ledger { return &Ledger{st} }

// Checkpoint returns the signed state of the log, or nil before the first sealing.
func (l *Ledger) Checkpoint(ctx context.Context) ([]byte, error) {
	h, err := openVault(ctx, l.store).head()
	return h.Checkpoint, err
}

// Sealed returns the last entry of the journal that the log seals; 0 for none.
func (l *Ledger) Sealed(ctx context.Context) (uint64, error) {
	v := openVault(ctx, l.store)
	h, err := v.head()
	if err != nil || h.Size == 0 {
		return 0, err
	}
	e, err := v.entry(h.Size - 1)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrIntegrity, err)
	}
	return e.Sequence, nil
}

// Seal seals every snapshot that is not sealed yet, oldest first, and returns
// their entries. It costs O(log n) for each record that changed since the last.
//
// It goes on only from a checkpoint that the same key has signed and that fits the
// log; else the error wraps [ErrIntegrity]. Any number of processes may seal at the
// same time: what is written counts only as long as the log is still the one that
// it continues. Whoever comes too late begins anew with what is left, so of the
// processes one returns each entry.
func (l *Ledger) Seal(ctx context.Context, signer note.Signer, verifier note.Verifier) ([]Entry, error) {
	for {
		sealed, err := l.seal(ctx, signer, verifier)
		switch {
		// Each time somebody else has sealed something, so this ends.
		case errors.Is(err, store.ErrChanged) && ctx.Err() == nil:
		case err != nil:
			return nil, fmt.Errorf("sealing snapshots: %w", err)
		default:
			return sealed, nil
		}
	}
}

func (l *Ledger) seal(ctx context.Context, signer note.Signer, verifier note.Verifier) ([]Entry, error) {
	// The head first. What it says of entries, hashes and pages never changes, and
	// every snapshot that it counts is there when they are listed.
	v := openVault(ctx, l.store)
	h, err := v.head()
	if err != nil {
		return nil, err
	}
	snaps, err := snapshots(ctx, l.store)
	if err != nil {
		return nil, err
	}
	now, err := l.state(v, h, verifier)
	if err != nil {
		return nil, err
	}
	log := NewLog(now.Size, v)
	var last Entry
	if now.Size > 0 {
		e, err := v.entry(now.Size - 1)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIntegrity, err)
		}
		last = *e
	}
	old := 0
	for old < len(snaps) && now.Size > 0 && snaps[old].Seq <= last.Sequence {
		old++
	}
	if int64(old) != now.Size {
		return nil, fmt.Errorf("%w: the store has %d snapshots up to %s, and %d were sealed: some were put in or deleted",
			ErrIntegrity, old, last.ID, now.Size)
	}
	var sealed []Entry
	tree := Open(last.Root, last.Size, v)
	for _, s := range snaps[old:] {
		e := Entry{Number: log.Len(), ID: s.ID, Name: s.Name, Reason: s.Reason, By: s.By, Time: s.At, Sequence: s.Seq}
		if e.History, tree, err = l.advance(ctx, last, tree, s.Seq); err != nil {
			return nil, err
		}
		e.Size, e.Root = tree.Len(), tree.Root()
		if err := log.Append(&e); err != nil {
			return nil, err
		}
		if err := v.putEntry(&e); err != nil {
			return nil, err
		}
		if tree, err = tree.Save(v, v.putNode); err != nil {
			return nil, err
		}
		if now.Origin == "" {
			// Two stores have no history in common: digests in it are salted.
			now.Origin = "memtox memory log " + e.History.String()
		}
		sealed, last = append(sealed, e), e
	}
	if len(sealed) > 0 {
		now.Size = log.Len()
		if now.Root, err = log.Root(now.Size); err != nil {
			return nil, err
		}
		h = head{Origin: now.Origin, Size: now.Size}
		if h.Checkpoint, err = now.Sign(signer); err != nil {
			return nil, err
		}
		if err := v.putHead(h); err != nil {
			return nil, err
		}
		if err := v.save(); err != nil {
			return nil, err
		}
	}
	// A crash before this is made good by the next sealing.
	for n, s := range snaps {
		if len(s.Root) > 0 {
			continue
		}
		e, err := v.entry(int64(n))
		if err != nil {
			return sealed, fmt.Errorf("%w: %w", ErrIntegrity, err)
		}
		if err := l.store.Seal(ctx, e.ID, e.Root[:]); err != nil {
			return sealed, err
		}
	}
	return sealed, nil
}

// state returns the log's checkpoint after checking that it is signed and that the
// log's hashes fit it.
func (l *Ledger) state(v *vault, h head, verifier note.Verifier) (Checkpoint, error) {
	if len(h.Checkpoint) == 0 {
		if h.Origin != "" || h.Size != 0 {
			return Checkpoint{}, fmt.Errorf("%w: %s", ErrIntegrity, stripped)
		}
		return Checkpoint{}, nil
	}
	now, err := OpenCheckpoint(h.Checkpoint, verifier)
	if err != nil {
		return now, fmt.Errorf("%w: %w", ErrIntegrity, err)
	}
	root, err := NewLog(now.Size, v).Root(now.Size)
	switch {
	case err != nil:
		return now, fmt.Errorf("%w: the hashes of the log: %w", ErrIntegrity, err)
	case root != now.Root:
		return now, fmt.Errorf("%w: the hashes of the log give root %s, and %s was signed", ErrIntegrity, root, now.Root)
	}
	return now, nil
}

const stripped = "the log has no checkpoint: its signature was stripped"

// snapshots lists the snapshots of a store in the order of its journal.
func snapshots(ctx context.Context, st Store) ([]store.Snapshot, error) {
	snaps, err := st.Snapshots(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	slices.SortFunc(snaps, func(a, b store.Snapshot) int { return cmp.Compare(a.Seq, b.Seq) })
	return snaps, nil
}

// advance continues the chain over the journal, and the tree, from a sealed snapshot to
// an entry.
func (l *Ledger) advance(ctx context.Context, last Entry, tree Tree, to uint64) (Hash, Tree, error) {
	changed := map[string]Hash{}
	var space []byte
	h, next := last.History, last.Sequence+1
	for v, err := range l.store.Journal(ctx, store.Filter{From: next, To: to}) {
		switch {
		case err != nil:
			return h, tree, fmt.Errorf("reading the journal: %w", err)
		case v.Seq != next:
			return h, tree, fmt.Errorf("%w: the journal has no entry %d", ErrIntegrity, next)
		case v.Audit.Record != "" && !v.Intact():
			return h, tree, fmt.Errorf("%w: entry %d: record %q is not what it was when it was committed", ErrIntegrity, v.Seq,
				v.Audit.Record)
		case v.Audit.Record != "":
			changed[v.Audit.Record] = v.Digest
		}
		space = v.AppendCanonical(space[:0])
		h = Chain(h, space)
		next++
	}
	if next != to+1 {
		return h, tree, fmt.Errorf("%w: the journal has no entry %d", ErrIntegrity, next)
	}
	tree, err := tree.Set(changed)
	return h, tree, integrity(err)
}

// integrity marks an error that damaged pages caused.
func integrity(err error) error {
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrIntegrity, err)
	}
	return err
}
