package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// The checks of [Ledger.Verify].
const (
	CheckContent    = "content"    // a version is not what its digest was made of
	CheckForgotten  = "forgotten"  // a content is gone, and no tombstone says so
	CheckJournal    = "journal"    // the journal has a gap, goes back in time, or an entry without its version
	CheckHistory    = "history"    // the journal up to a sealed snapshot is not the one that was sealed
	CheckRecord     = "record"     // a record of a sealed snapshot is another, is missing or was added
	CheckRoot       = "root"       // the records give another root than was sealed, and no page says which
	CheckSnapshot   = "snapshot"   // a snapshot is missing, changed or was put in
	CheckLog        = "log"        // the log of snapshots is not the one that was signed
	CheckSignature  = "signature"  // the log is not signed by the expected key
	CheckConsistent = "consistent" // the log does not continue the one of a kept checkpoint
	CheckIndex      = "index"      // what the store looks records up by is not what they say
	CheckFile       = "file"       // the file, or one beside it, is damaged: what is named may not be all
	CheckPage       = "page"       // a page of a tree is damaged or missing: proofs of that snapshot fail
)

// Problem is one thing that is not as it was sealed.
type Problem struct {
	Check    string `json:"check"`
	Record   string `json:"record,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
	Seq      uint64 `json:"seq,omitempty"` // entry of the journal
	Note     string `json:"note"`
}

// Verification is the result of verifying a store.
type Verification struct {
	Entries   uint64 `json:"entries"` // of the journal
	Versions  uint64 `json:"versions"`
	Records   int    `json:"records"`
	Forgotten int    `json:"forgotten"` // versions whose content was erased
	Snapshots int    `json:"snapshots"`
	Sealed    int    `json:"sealed"`
	// Unsealed are the entries of the journal behind the last sealed snapshot.
	Unsealed uint64 `json:"unsealed_entries"`
	// Chained are those of them that the head of the store vouches for, and
	// TailSigned those that it vouches for with a signature of SignedBy.
	Chained    uint64 `json:"chained_entries"`
	TailSigned uint64 `json:"signed_entries"`
	// Signed says that the log's checkpoint has a right signature of the key SignedBy.
	Signed   bool   `json:"signed"`
	SignedBy string `json:"signed_by,omitempty"`
	// Since is the size of the kept checkpoint that the log was compared with.
	Since    int64     `json:"since,omitempty"`
	Problems []Problem `json:"problems"`
	// More is the number of problems that are not listed.
	More int `json:"more_problems,omitempty"`
}

// OK reports whether nothing is wrong.
func (v *Verification) OK() bool { return len(v.Problems) == 0 }

// maxProblems is how many problems are listed.
const maxProblems = 1000

// add notes a problem; its note is a format and what it is about.
func (v *Verification) add(p Problem, note string, args ...any) {
	if len(v.Problems) >= maxProblems {
		v.More++
		return
	}
	p.Note = fmt.Sprintf(note, args...)
	v.Problems = append(v.Problems, p)
}

// Verify reads everything and names what is not as it was sealed. Without a
// verifier's key signatures are not checked, which the result says (Signed); kept
// is a signed checkpoint from earlier, or nil. An error is one of reading, not a
// finding. Others may write, seal and forget meanwhile; what they add is verified the
// next time.
func (l *Ledger) Verify(ctx context.Context, verifier note.Verifier, kept []byte) (*Verification, error) {
	out := &Verification{Problems: []Problem{}}
	err := l.verify(ctx, out, verifier, kept)
	if errors.Is(err, store.ErrDamaged) {
		out.add(Problem{Check: CheckFile}, "%v", err)
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("verifying a store: %w", err)
	}
	return out, nil
}

func (l *Ledger) verify(ctx context.Context, out *Verification, verifier note.Verifier, kept []byte) error {
	v := openVault(ctx, l.store)
	entries, err := l.log(ctx, out, v, verifier, kept)
	if err != nil {
		return err
	}
	// After the log, which a signed head is not behind, and before the journal, which
	// has whatever the head knows of.
	t, err := l.tail(ctx)
	if err != nil {
		return err
	}
	// After the log: every snapshot that it has is there.
	snaps, err := snapshots(ctx, l.store)
	if err != nil {
		return err
	}
	out.Snapshots = len(snaps)
	out.snapshots(snaps, entries)
	if err := out.records(ctx, l.store, v, entries, t); err != nil {
		return err
	}
	if err := l.store.CheckIndex(ctx, func(seq uint64, record, what string) {
		out.add(Problem{Check: CheckIndex, Record: record, Seq: seq}, "%s", what)
	}); err != nil {
		return err
	}
	out.tail(t, entries, verifier)
	if !out.OK() {
		return nil // what follows says less of where it is
	}
	return l.store.CheckFile(ctx, func(what string) { out.add(Problem{Check: CheckFile}, "%s", what) })
}

// log begins a verification with the log of snapshots, and returns the log's
// entries. Head and entries are many pages: what was read while somebody else sealed
// is read anew, else their entries would look like entries that were put in.
func (l *Ledger) log(ctx context.Context, out *Verification, v *vault, verifier note.Verifier,
	kept []byte) (entries []Entry, err error) {
	before, _, err := l.store.Page(ctx, headPage)
	for err == nil {
		*out = Verification{Problems: []Problem{}}
		if entries, err = out.log(v, verifier, kept); err != nil {
			break
		}
		var after []byte
		if after, _, err = l.store.Page(ctx, headPage); err == nil && bytes.Equal(before, after) {
			return entries, nil
		}
		before = after
	}
	return nil, err
}

// log verifies the log of snapshots and returns its entries, in order.
func (v *Verification) log(r *vault, verifier note.Verifier, kept []byte) (entries []Entry, err error) {
	bad := func(err error) { v.add(Problem{Check: CheckLog}, "%v", err) }
	h, err := r.head()
	if err != nil {
		bad(err)
	}
	own := &MemoryHashes{}
	log := NewLog(0, own)
	whole := true
	for n := int64(0); len(v.Problems) < maxProblems; n++ {
		e, err := r.entry(n)
		missing := errors.Is(err, errNoPage)
		if missing && n >= h.Size {
			break
		}
		switch {
		case missing:
			bad(fmt.Errorf("entry %d of the log is missing: a sealed snapshot was taken out", n))
		case errors.Is(err, ErrIntegrity):
			bad(err)
		case err != nil:
			return nil, err
		default:
			entries = append(entries, *e)
			if whole {
				if err := log.Append(e); err != nil {
					return nil, err
				}
			}
			continue
		}
		whole = false
	}
	v.Sealed = len(entries)
	v.signature(h, log, whole, verifier)
	if kept != nil {
		if err := v.consistent(h, log, whole, verifier, kept); err != nil {
			v.add(Problem{Check: CheckConsistent}, "%v", err)
		}
	}
	// The stored hashes, of which proofs are made.
	if whole && v.OK() && !sameHashes(log.Len(), own, r) {
		v.add(Problem{Check: CheckPage}, "the hashes of the log are damaged: proofs from it fail")
	}
	return entries, nil
}

func (v *Verification) signature(h head, log *Log, whole bool, verifier note.Verifier) {
	bad := func(note string, args ...any) { v.add(Problem{Check: CheckSignature}, note, args...) }
	switch {
	case len(h.Checkpoint) > 0:
	case h.Origin != "" || h.Size > 0 || log.Len() > 0:
		bad(stripped)
		return
	case verifier != nil:
		bad("nothing was ever sealed here, or all of it was taken out")
	}
	if verifier == nil || len(h.Checkpoint) == 0 {
		return
	}
	c, err := OpenCheckpoint(h.Checkpoint, verifier)
	switch {
	case err != nil:
		bad("%v", err)
		return
	case c.Origin != h.Origin:
		bad("the checkpoint is of log %q, and this is %q", c.Origin, h.Origin)
		return
	}
	v.Signed, v.SignedBy = true, verifier.Name()
	root, err := log.Root(min(c.Size, log.Len()))
	switch {
	case !whole: // the log's own problem is named already
	case c.Size != log.Len():
		v.add(Problem{Check: CheckLog}, "the log has %d snapshots, and %d were signed: snapshots were taken out or put in",
			log.Len(), c.Size)
	case err != nil || root != c.Root:
		v.add(Problem{Check: CheckLog}, "the log's entries give root %s, and %s was signed: an entry was changed", root,
			c.Root)
	}
}

// consistent compares the log with a checkpoint that was kept elsewhere.
func (v *Verification) consistent(h head, log *Log, whole bool, verifier note.Verifier, kept []byte) error {
	if verifier == nil {
		return errors.New("a kept checkpoint cannot be checked without the verifier's key")
	}
	old, err := OpenCheckpoint(kept, verifier)
	if err != nil {
		return fmt.Errorf("the kept checkpoint: %w", err)
	}
	v.Since = old.Size
	if !whole {
		return nil
	}
	now := Checkpoint{Origin: h.Origin, Size: log.Len()}
	if now.Root, err = log.Root(now.Size); err != nil {
		return err
	}
	var proof []Hash
	if old.Size <= now.Size {
		if proof, err = log.ProveConsistency(old.Size); err != nil {
			return err
		}
	}
	return CheckConsistency(proof, old, now)
}

// snapshots compares the store's snapshots with the log's entries.
func (v *Verification) snapshots(snaps []store.Snapshot, entries []Entry) {
	byID := map[string]*store.Snapshot{}
	last := uint64(0)
	for i := range snaps {
		byID[snaps[i].ID] = &snaps[i]
	}
	sealed := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		sealed[e.ID] = true
		last = max(last, e.Sequence)
		s := byID[e.ID]
		bad := func(note string, args ...any) {
			v.add(Problem{Check: CheckSnapshot, Snapshot: e.ID, Seq: e.Sequence}, note, args...)
		}
		switch {
		case s == nil:
			bad("it was sealed, and the store does not have it: it was deleted")
		case s.Seq != e.Sequence || !s.At.Equal(e.Time) || s.Name != e.Name || s.Reason != e.Reason || s.By != e.By:
			bad("its name, reason, author, time or place in the journal is not what was sealed")
		case len(s.Root) > 0 && string(s.Root) != string(e.Root[:]):
			bad("the store has root %x, and %s was sealed", s.Root, e.Root)
		}
	}
	for _, s := range snaps {
		if !sealed[s.ID] && s.Seq <= last {
			v.add(Problem{Check: CheckSnapshot, Snapshot: s.ID, Seq: s.Seq},
				"it stands before a sealed snapshot and is not sealed itself: it was put in")
		}
	}
}

// records replays the journal and compares the records of every sealed snapshot
// with its root.
func (v *Verification) records(ctx context.Context, st Store, r *vault, entries []Entry, t *tail) error {
	// Each of these is a read of its own, and others may write between them. The
	// journal is the first to be opened: whatever it tells of, the rest has, and what
	// the rest has more is not about it.
	next, stop := iter.Pull2(st.Journal(ctx, store.Filter{}))
	defer stop()
	a, torn, more := next()
	w := walk{Verification: v, erased: map[uint64]store.Digest{}, tombs: map[uint64]store.Tombstone{},
		graves: map[uint64]string{}, changed: map[string]Hash{}, told: map[string]bool{},
		snapshots: map[string]store.Snapshot{}}
	list, err := st.Tombstones(ctx)
	if err != nil {
		return fmt.Errorf("listing tombstones: %w", err)
	}
	for _, t := range list {
		w.tombs[t.Seq] = t
		for _, e := range t.Erased {
			w.erased[e.Seq] = e.Digest
		}
	}
	snaps, err := st.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, s := range snaps {
		w.snapshots[s.ID] = s
	}
	var space []byte
	var h Hash
	var saved Tree
	at := 0
	for ; more; a, torn, more = next() {
		if a.Seq == 0 {
			return fmt.Errorf("reading the journal: %w", torn)
		}
		w.entry(&a, torn)
		t.follow(&a.Audit, w.snapshots)
		space = a.AppendCanonical(space[:0])
		h = Chain(h, space)
		for at < len(entries) && entries[at].Sequence == a.Seq {
			if saved, err = w.sealed(r, &entries[at], h, saved); err != nil {
				return err
			}
			at++
		}
	}
	for _, t := range list {
		if _, unmet := w.tombs[t.Seq]; unmet && t.Seq <= w.last.Seq {
			w.add(Problem{Check: CheckForgotten, Record: t.Record, Seq: t.Seq}, "a tombstone without its entry in the journal")
		}
	}
	for ; at < len(entries); at++ {
		w.add(Problem{Check: CheckHistory, Snapshot: entries[at].ID, Seq: entries[at].Sequence},
			"the journal ends before it, or lacks its entry: entries were deleted")
	}
	if err := w.grow(); err != nil {
		return err
	}
	w.Entries, w.Records = w.last.Seq, int(w.tree.Len())
	w.Unsealed = w.Entries
	if n := len(entries); n > 0 {
		w.Unsealed -= min(w.Entries, entries[n-1].Sequence)
	}
	return nil
}

// walk is the state of the replay.
type walk struct {
	*Verification
	last      store.Audit
	erased    map[uint64]store.Digest    // versions that tombstones account for
	tombs     map[uint64]store.Tombstone // those whose forgetting has not been met
	graves    map[uint64]string          // the versions that forgetting itself made, which never had content
	changed   map[string]Hash            // digests of the newest versions since the last sealed snapshot
	tree      Tree                       // of the records without these changes
	told      map[string]bool            // records whose divergence is named
	snapshots map[string]store.Snapshot
}

// entry checks one entry of the journal and its version, which may be torn.
func (w *walk) entry(v *store.Version, torn error) {
	a := &v.Audit
	bad := func(check, note string, args ...any) {
		w.add(Problem{Check: check, Record: a.Record, Seq: a.Seq}, note, args...)
	}
	if a.Seq != w.last.Seq+1 {
		w.add(Problem{Check: CheckJournal, Seq: w.last.Seq + 1}, "entries %d to %d are missing", w.last.Seq+1, a.Seq-1)
	}
	if a.At.Before(w.last.At) {
		w.add(Problem{Check: CheckJournal, Seq: a.Seq}, "its time is before that of the entry before")
	}
	w.last = *a
	if s, ok := w.snapshots[a.Snapshot]; a.Cause == memory.CauseSnapshot && (!ok || s.Seq != a.Seq) {
		w.add(Problem{Check: CheckSnapshot, Snapshot: a.Snapshot, Seq: a.Seq},
			"the journal says that it was taken, and the store does not have it: it was deleted")
	}
	if a.Cause == memory.CauseForget && a.Record == "" {
		var stones []store.Tombstone
		for seq := a.Seq + 1; ; seq++ {
			t, ok := w.tombs[seq]
			if !ok {
				break
			}
			stones = append(stones, t)
			w.graves[seq] = t.Record
			delete(w.tombs, seq)
		}
		if a.Digest != store.SumTombstones(stones) {
			bad(CheckForgotten, "the tombstones of this forgetting are missing or changed")
		}
	}
	there := v.Record.ID != "" || torn != nil
	if a.Record == "" {
		if there {
			w.add(Problem{Check: CheckJournal, Record: v.Record.ID, Seq: a.Seq},
				"a version without an entry in the journal: it was put in")
		}
		return
	}
	if !there {
		bad(CheckJournal, "the version that this entry of the journal is about is missing: it was deleted")
		return
	}
	w.Versions++
	switch {
	case torn != nil:
		bad(CheckContent, "%v", torn)
	case v.Record.ID != a.Record:
		bad(CheckJournal, "the version is of record %q, and the journal says another", v.Record.ID)
	case v.Forgotten:
		w.Forgotten++
		if w.erased[v.Seq] != v.Digest && w.graves[v.Seq] != a.Record {
			bad(CheckForgotten, "its content is gone, and no tombstone says that it was forgotten")
		}
	case v.Sum() != v.Digest:
		bad(CheckContent, "its content, origin or other fields were changed behind the store's back")
	}
	w.changed[a.Record] = v.Digest
}

// sealed compares the records as they are now in the replay with a sealed snapshot.
// It returns the snapshot's own tree.
func (w *walk) sealed(r *vault, e *Entry, h Hash, before Tree) (Tree, error) {
	if h != e.History {
		w.add(Problem{Check: CheckHistory, Snapshot: e.ID, Seq: e.Sequence},
			"the journal up to this snapshot is not the one that was sealed: entries were changed, deleted or put in")
	}
	if err := w.grow(); err != nil {
		return before, err
	}
	own := Open(e.Root, e.Size, r)
	// Reads every page of this tree that the tree before does not share.
	if err := Diff(before, own, func(TreeChange) error { return nil }); err != nil {
		w.add(Problem{Check: CheckPage, Snapshot: e.ID}, "%v", err)
		if w.tree.Root() != e.Root {
			w.add(Problem{Check: CheckRoot, Snapshot: e.ID},
				"the records give root %s, and %s was sealed; the pages that would say which are damaged", w.tree.Root(), e.Root)
		}
		return before, nil
	}
	err := Diff(own, w.tree, func(c TreeChange) error {
		if w.told[c.ID] {
			return nil
		}
		w.told[c.ID] = true
		note := "it is not the record that was sealed"
		switch {
		case c.New.IsZero():
			note = "it was sealed, and the store does not have it: it was deleted"
		case c.Old.IsZero():
			note = "the store has it as of then, and it was not sealed: it was put in"
		}
		w.add(Problem{Check: CheckRecord, Record: c.ID, Snapshot: e.ID}, "%s", note)
		return nil
	})
	return own, err
}

// grow brings the tree of the replay up to its state.
func (w *walk) grow() (err error) {
	w.tree, err = w.tree.Set(w.changed)
	clear(w.changed)
	return err
}
