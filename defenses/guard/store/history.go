package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/wire"
)

// Digest is a SHA-256 value, such as what a version is committed to by
// ([Version.Sum]). Its text is 64 lower-case hexadecimal digits, and no other spelling
// is read.
type Digest [sha256.Size]byte

// String returns the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether it is the digest of nothing.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText implements [encoding.TextMarshaler].
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Digest) UnmarshalText(b []byte) error {
	var out Digest
	if n, err := hex.Decode(out[:], b[:min(len(b), 2*len(out))]); err != nil || n != len(out) || out.String() != string(b) {
		return fmt.Errorf("%q is no digest of %d lower-case hexadecimal digits", b, 2*len(out))
	}
	*d = out
	return nil
}

// Audit is one entry of the append-only log: who changed what, when and why. An
// entry that stays for ever says nothing of the content but its digest.
type Audit struct {
	Seq   uint64       `json:"seq"`   // 1, 2, 3 …: no gaps
	Group uint64       `json:"group"` // Seq of the first entry of the batch that this one came with
	At    time.Time    `json:"at"`    // system time: never before that of the entry before
	Cause memory.Cause `json:"cause"`
	Route memory.Route `json:"route,omitempty"`
	By    string       `json:"by,omitempty"`
	Why   string       `json:"why,omitempty"`
	// Record is the id of the record that this entry gives a new version; "" for
	// an entry about a snapshot or about an operation as a whole.
	Record string `json:"record,omitempty"`
	// Snapshot is the snapshot that was taken just before the batch, or the one
	// that this entry is about.
	Snapshot string `json:"snapshot,omitempty"`
	// Target is where a rollback went back to, or the group that was undone.
	Target uint64 `json:"target,omitempty"`
	// Digest is that of the version ([Version.Sum]); that of the tombstone for
	// the first entry of a forgetting ([Tombstone.Sum]); else zero.
	Digest Digest `json:"digest,omitzero"`
}

// Version is a record as it was from one change to the next. Its system time is
// [At, Until); its fact time is the record's own [ValidFrom, ValidTo).
type Version struct {
	Audit
	Record memory.Record `json:"version"`
	// Until is the system time at which the next version replaced this one, and
	// UntilSeq that version's number; zero while it is current.
	Until    time.Time `json:"until,omitzero"`
	UntilSeq uint64    `json:"until_seq,omitempty"`
	// Salt keeps the digest from giving the content away to whoever can guess
	// it. It is destroyed with the content.
	Salt []byte `json:"salt,omitempty"`
	// Forgotten says that the content was erased: of the record only what
	// [Record.Forgotten] keeps is left. Digest is still that of the whole.
	Forgotten bool `json:"forgotten,omitempty"`
}

// SaltSize is the number of bytes of a version's salt.
const SaltSize = 16

// Sum computes the digest of a version: SHA-256 over "memtox version 1\x00", the
// salt, the sequence number (8 bytes, big-endian) and the record's canonical
// encoding. It commits to every field of the record, and to the place of the
// version in the log.
func (v *Version) Sum() Digest { return sumVersion(v.Salt, v.Seq, &v.Record) }

// Intact reports whether the version is what its digest was made of. A forgotten
// one has nothing left to check.
func (v *Version) Intact() bool { return v.Forgotten || v.Sum() == v.Digest }

func sumVersion(salt []byte, seq uint64, r *memory.Record) Digest {
	b := make([]byte, 0, 512+len(r.Text))
	b = append(b, "memtox version 1\x00"...)
	b = append(b, salt...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = r.AppendCanonical(b)
	return sha256.Sum256(b)
}

// Current reports whether no later version replaced this one.
func (v *Version) Current() bool { return v.UntilSeq == 0 }

// Holds reports whether, as far as this version knows, the record held at a fact
// time: a session could see it, or it has been superseded or removed since and
// held until then. What was never believed (held back, quarantined, rejected,
// rolled back) did not hold at any time.
func (v *Version) Holds(fact time.Time) bool {
	r := &v.Record
	switch {
	case fact.Before(r.ValidFrom):
		return false
	case !r.ValidTo.IsZero():
		return (r.State.Visible() || r.State == memory.Retired) && fact.Before(r.ValidTo)
	}
	return r.State.Visible()
}

// Snapshot names a state of the store. It costs one entry of the log.
type Snapshot struct {
	ID     string    `json:"id"` // "s1", "s2" …
	Name   string    `json:"name,omitempty"`
	Reason string    `json:"reason,omitempty"` // before what it was taken
	By     string    `json:"by,omitempty"`
	Seq    uint64    `json:"seq"` // its own entry; the state is that as of Seq
	At     time.Time `json:"at"`
	// Root commits to the state, where somebody has computed one.
	Root []byte `json:"root,omitempty"`
}

// Point is a point in system time, and optionally in fact time.
type Point struct {
	// Seq is the sequence number of the last entry that counts. 0 leaves it to
	// System.
	Seq uint64
	// System is the system time at which the last entry counts; zero, with Seq 0,
	// is now.
	System time.Time
	// Fact restricts to the records that held at a fact time ([Version.Holds]);
	// zero is every record in every state.
	Fact time.Time
}

// Filter names versions and entries of the log. The zero value names all; each
// field that is set narrows.
type Filter struct {
	ID        string // the record's
	Store     string
	Key       string
	Principal string
	Source    string // of the record's origin
	AnySource string // of its origin, or of anything in its lineage
	Contains  string // a part of the content, byte for byte
	Cites     string // a record that its lineage names, or that it supersedes
	Causes    []memory.Cause
	States    []memory.State
	From, To  uint64 // sequence numbers, both included; 0 is open
	// Since and Until bound the system time at which the version came to be:
	// Since ≤ At < Until.
	Since, Until time.Time
	Current      bool // only versions that nothing has replaced
	// Whole names every version of the records of which one is named by the rest; a part
	// of the content or a source then counts wherever it stands in the record.
	Whole bool
	Limit int // at most so many; 0 is no limit
}

// AppendCanonical appends the canonical encoding of an entry, as a log with
// proofs may commit to it: "memtox audit 1\x00", then every field in the order of
// the struct, as [memory.Record.AppendSigned] writes its own.
func (a *Audit) AppendCanonical(dst []byte) []byte {
	dst = append(dst, "memtox audit 1\x00"...)
	dst = binary.AppendUvarint(dst, a.Seq)
	dst = binary.AppendUvarint(dst, a.Group)
	dst = wire.AppendTime(dst, a.At)
	dst = append(dst, byte(a.Cause), byte(a.Route))
	for _, s := range [...]string{a.By, a.Why, a.Record, a.Snapshot} {
		dst = wire.AppendField(dst, s)
	}
	dst = binary.AppendUvarint(dst, a.Target)
	return append(dst, a.Digest[:]...)
}

// operations are the causes of batches that are one act on several records, which has
// an entry of its own before those of the records.
var operations = []memory.Cause{memory.CauseQuarantine, memory.CauseRetire, memory.CauseRollback, memory.CauseUndo,
	memory.CauseForget}

// entries lays a batch out as entries of the log, the first with the given number
// and all with the given time: an entry for the snapshot, one for an operation as a
// whole, one a record.
func entries(b *memory.Batch, first uint64, at time.Time, snapshot string) (out []Audit) {
	if b.Snapshot != nil {
		out = append(out, Audit{Seq: first, Group: first, At: at, Cause: memory.CauseSnapshot, By: b.By,
			Why: b.Snapshot.Reason, Snapshot: snapshot})
		first++
	}
	if b.Cause == memory.CauseSnapshot {
		return out
	}
	base := Audit{Group: first, At: at, Cause: b.Cause, Route: b.Route, By: b.By, Why: b.Why, Snapshot: snapshot,
		Target: b.Target}
	add := func(record string) {
		base.Seq, base.Record = first, record
		out = append(out, base)
		first++
	}
	if slices.Contains(operations, b.Cause) || len(b.Records) == 0 {
		add("")
	}
	for i := range b.Records {
		add(b.Records[i].ID)
	}
	return out
}
