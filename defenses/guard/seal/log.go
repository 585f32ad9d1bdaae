package seal

import (
	"crypto/sha256"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// Entry is one snapshot as the log keeps it.
type Entry struct {
	Number int64     `json:"number"` // place in the log, from 0
	ID     string    `json:"id"`     // the snapshot's, in its store
	Name   string    `json:"name,omitempty"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	Time   time.Time `json:"time"` // when it was taken, in UTC
	// Sequence is the last entry of the store's journal that the snapshot shows.
	Sequence uint64 `json:"sequence"`
	// History commits to the journal up to there, as [Chain] does.
	History Hash   `json:"history"`
	Size    uint64 `json:"size"` // records
	Root    Hash   `json:"root"` // of the tree of those records
}

// Encode returns the entry's one JSON form, which is what the log commits to.
func (e *Entry) Encode() ([]byte, error) {
	own := *e
	own.Time = e.Time.UTC().Round(0)
	return Encode(&own)
}

// ParseEntry reads an entry from the bytes that Encode wrote, and from no others.
func ParseEntry(data []byte) (*Entry, error) {
	var e Entry
	if err := Decode(data, &e); err != nil {
		return nil, fmt.Errorf("reading a snapshot's entry: %w", err)
	}
	if _, offset := e.Time.Zone(); offset != 0 || e.Number < 0 {
		return nil, fmt.Errorf("reading a snapshot's entry: number %d, time %s: the number counts from 0 and the time is "+
			"in UTC", e.Number, e.Time.Format(time.RFC3339Nano))
	}
	return &e, nil
}

// Chain commits to one entry of a journal more than before does: SHA-256(0x05 ‖
// before ‖ entry). Of an empty journal it is the zero Hash. It shows that nothing
// was taken out, put in or reordered.
func Chain(before Hash, entry []byte) Hash {
	var space [512]byte
	return sha256.Sum256(append(append(append(space[:0], chainDomain), before[:]...), entry...))
}

// Hashes keeps the interior hashes of a log: about two for each entry, by the
// numbers of [tlog.StoredHashIndex].
type Hashes interface {
	tlog.HashReader
	// WriteHashes adds hashes behind the last, which is number at-1.
	WriteHashes(at int64, h []tlog.Hash) error
}

// Log is an append-only log of snapshots, a Merkle tree as in RFC 6962. Its n-th
// state is a prefix of every later one, and [Log.ProveConsistency] shows it.
type Log struct {
	size   int64
	hashes Hashes
}

// NewLog returns the log of so many entries whose hashes are kept there.
func NewLog(size int64, hashes Hashes) *Log { return &Log{size, hashes} }

// Len is the number of entries.
func (l *Log) Len() int64 { return l.size }

// Append adds an entry; its number must be the next.
func (l *Log) Append(e *Entry) error {
	if e.Number != l.size {
		return fmt.Errorf("appending snapshot %d to a log of %d", e.Number, l.size)
	}
	data, err := e.Encode()
	if err != nil {
		return err
	}
	h, err := tlog.StoredHashes(l.size, data, l.hashes)
	if err != nil {
		return fmt.Errorf("appending snapshot %d: %w", e.Number, err)
	}
	if err := l.hashes.WriteHashes(tlog.StoredHashIndex(0, l.size), h); err != nil {
		return fmt.Errorf("appending snapshot %d: %w", e.Number, err)
	}
	l.size++
	return nil
}

// Root is the hash of the log's first n entries.
func (l *Log) Root(n int64) (Hash, error) {
	if n < 0 || n > l.size {
		return Hash{}, fmt.Errorf("the log has %d snapshots, not %d", l.size, n)
	}
	h, err := tlog.TreeHash(n, l.hashes)
	return Hash(h), err
}

// ProveEntry shows that entry i is in the log as it stands.
func (l *Log) ProveEntry(i int64) ([]Hash, error) {
	p, err := tlog.ProveRecord(l.size, i, l.hashes)
	return hashes[Hash](p), err
}

// CheckEntry checks what ProveEntry gave against a checkpoint that the caller
// trusts: its size and root. It accepts exactly that proof.
func CheckEntry(e *Entry, proof []Hash, size int64, root Hash) error {
	data, err := e.Encode()
	if err != nil {
		return err
	}
	if err := tlog.CheckRecord(hashes[tlog.Hash](proof), size, tlog.Hash(root), e.Number, tlog.RecordHash(data)); err != nil {
		return fmt.Errorf("%w: snapshot %d is not in the log of %d with root %s: %w", ErrProof, e.Number, size, root, err)
	}
	return nil
}

// ProveConsistency shows that the log's first n entries have not changed since.
func (l *Log) ProveConsistency(n int64) ([]Hash, error) {
	if n == 0 {
		return nil, nil
	}
	p, err := tlog.ProveTree(l.size, n, l.hashes)
	return hashes[Hash](p), err
}

// CheckConsistency checks that the log of one checkpoint is a prefix of that of
// a later one.
func CheckConsistency(proof []Hash, old, new Checkpoint) error {
	switch {
	case old.Origin != new.Origin:
		return fmt.Errorf("%w: the checkpoints are of two logs, %q and %q", ErrProof, old.Origin, new.Origin)
	case old.Size > new.Size:
		return fmt.Errorf("%w: the log had %d snapshots and has %d: it was cut", ErrProof, old.Size, new.Size)
	case old.Size == 0:
		if len(proof) > 0 {
			return fmt.Errorf("%w: the empty log needs no proof, and one of %d hashes is there", ErrProof, len(proof))
		}
		return nil
	}
	if err := tlog.CheckTree(hashes[tlog.Hash](proof), new.Size, tlog.Hash(new.Root), old.Size, tlog.Hash(old.Root)); err != nil {
		return fmt.Errorf("%w: the first %d snapshots are not those of the earlier checkpoint: %w", ErrProof, old.Size, err)
	}
	return nil
}

// hashes are those of a proof as another package calls them.
func hashes[To, From ~[sha256.Size]byte](p []From) []To {
	out := make([]To, len(p))
	for i, h := range p {
		out[i] = To(h)
	}
	return out
}

// MemoryHashes keeps a log's hashes in memory. The zero value is the empty log's.
type MemoryHashes struct{ all []tlog.Hash }

// ReadHashes implements [tlog.HashReader].
func (m *MemoryHashes) ReadHashes(at []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(at))
	for i, n := range at {
		if n < 0 || n >= int64(len(m.all)) {
			return nil, fmt.Errorf("the log has no hash %d", n)
		}
		out[i] = m.all[n]
	}
	return out, nil
}

// WriteHashes implements [Hashes].
func (m *MemoryHashes) WriteHashes(_ int64, h []tlog.Hash) error {
	m.all = append(m.all, h...)
	return nil
}
