package seal

import (
	"context"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// Attended is the reason of a snapshot that a server sealed which also signs what it
// writes: behind such a one stands a signed head.
const Attended = "sealed in service, with a signed head"

// tail is what a store's head says of its journal, and what the journal gives.
type tail struct {
	store.Head
	own [2]store.Mark // of Now and Signed, as the journal gives them
}

func (l *Ledger) tail(ctx context.Context) (*tail, error) {
	h, err := l.store.Head(ctx)
	return &tail{h, [2]store.Mark{{After: h.Now.After}, {After: h.Signed.After}}}, err
}

// follow goes on with an entry of the journal.
func (t *tail) follow(a *store.Audit, snapshots map[string]store.Snapshot) {
	name := ""
	if a.Cause == memory.CauseSnapshot {
		name = snapshots[a.Snapshot].Name
	}
	for i, m := range []store.Mark{t.Now, t.Signed} {
		if a.Seq > m.After && a.Seq <= m.Entry {
			t.own[i].Follow(a, name)
		}
	}
}

// tail compares the journal with the head of the store.
func (v *Verification) tail(t *tail, entries []Entry, verifier note.Verifier) {
	bad := func(check string, seq uint64, format string, args ...any) {
		v.add(Problem{Check: check, Seq: seq}, format, args...)
	}
	attended, last := uint64(0), uint64(0)
	for i := range entries {
		if last = max(last, entries[i].Sequence); entries[i].Reason == Attended {
			attended = max(attended, entries[i].Sequence)
		}
	}
	if !t.Known {
		if attended > 0 {
			bad(CheckSignature, attended, "the server that sealed entry %d signed the head of the store, and the store says "+
				"that it "+
				"has none: it was taken out, and nothing vouches for the entries behind %d", attended, last)
		}
		return
	}
	if t.Now.After > max(t.Since, last) {
		bad(CheckJournal, t.Now.After,
			"the head of the store was taken away and made anew: nothing vouches for entries %d to %d; "+
				"look at them, then memtox memory snapshot vouches for them", max(t.Since, last)+1, t.Now.After)
	}
	for i, m := range []store.Mark{t.Now, t.Signed} {
		switch {
		case v.Entries < m.Entry:
			bad(CheckJournal, m.Entry,
				"the journal ends with entry %d, and the head of the store knows of entry %d: the last ones were deleted",
				v.Entries, m.Entry)
		case t.own[i].Chain != m.Chain && !v.OK(): // what is named already may be all of it
		case t.own[i].Chain != m.Chain:
			bad(CheckJournal, m.After+1,
				"entries %d to %d are not those that were written: some were changed, deleted, put in or put in another order",
				m.After+1, m.Entry)
		default:
			continue
		}
		break // of the same
	}
	v.Chained = t.Now.Entry - min(t.Now.Entry, max(last, t.Now.After))
	switch {
	case verifier == nil:
	case len(t.Signed.Signature) == 0 && attended == 0:
	case len(t.Signed.Signature) == 0:
		bad(CheckSignature, attended,
			"the server that sealed entry %d signed the head of the store, and it is not signed: its signature was stripped",
			attended)
	case !verifier.Verify(t.Signed.Text(), t.Signed.Signature):
		bad(CheckSignature, t.Signed.Entry, "the signature of the head of the store is not one of %s", verifier.Name())
	case t.Signed.Entry < attended:
		bad(CheckSignature, t.Signed.Entry,
			"the head of the store was signed before entry %d was sealed: it is an older one", attended)
	default:
		v.TailSigned = t.Signed.Entry - min(t.Signed.Entry, max(last, t.Signed.After))
	}
}

// sameHashes reports whether all hashes of a log that are kept are those of its entries.
func sameHashes(size int64, own tlog.HashReader, kept *vault) bool {
	all := make([]int64, tlog.StoredHashCount(size))
	for i := range all {
		all[i] = int64(i)
	}
	a, errA := own.ReadHashes(all)
	b, errB := kept.ReadHashes(all)
	return errA == nil && errB == nil && slices.Equal(a, b)
}
