package store

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/wire"
)

// Forgetting asks a store to erase records for good.
type Forgetting struct {
	IDs []string
	At  time.Time
	By  string
	Why string // stays in the log for ever: never the content
}

// Tombstone proves that a record was forgotten, without its content. The digests
// are salted and the salts are gone from the store, so nobody can find the content
// by guessing; whoever has kept the [Receipt] can show what was erased.
type Tombstone struct {
	Seq    uint64    `json:"seq"` // the entry of the log that is about it
	Record string    `json:"record"`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Why    string    `json:"why,omitempty"`
	Erased []Erased  `json:"erased"` // one a version, oldest first
}

// Erased is what is left of the content of one version.
type Erased struct {
	Seq     uint64 `json:"seq"`
	Digest  Digest `json:"digest"`  // of the version: [Version.Sum]
	Content Digest `json:"content"` // of its text alone: [SumContent]
}

// Opening is what shows that an Erased is of a certain text: the salt that the
// store destroyed. It is no secret of the store's, but with it a short content
// can be guessed.
type Opening struct {
	Record string `json:"record"`
	Seq    uint64 `json:"seq"`
	Salt   []byte `json:"salt"`
}

// Receipt is what Forget returns, and the only time that the openings can be had.
// To give it to whom the content belonged and keep no copy is up to the caller.
type Receipt struct {
	Tombstones []Tombstone `json:"tombstones"`
	Openings   []Opening   `json:"openings"`
}

// Proves reports whether a tombstone is of a record that, in the opened version,
// had exactly this text.
func (t *Tombstone) Proves(o Opening, text string) bool {
	if o.Record != t.Record {
		return false
	}
	for _, e := range t.Erased {
		if e.Seq == o.Seq {
			sum := SumContent(o.Salt, o.Seq, text)
			return subtle.ConstantTimeCompare(sum[:], e.Content[:]) == 1
		}
	}
	return false
}

// SumContent is the digest of a version's text alone: SHA-256 over "memtox content
// 1\x00", the salt, the sequence number (8 bytes, big-endian) and the text.
func SumContent(salt []byte, seq uint64, text string) Digest {
	b := make([]byte, 0, 64+len(text))
	b = append(b, "memtox content 1\x00"...)
	b = append(b, salt...)
	b = binary.BigEndian.AppendUint64(b, seq)
	return sha256.Sum256(append(b, text...))
}

// AppendCanonical appends the canonical encoding of a tombstone: "memtox tombstone
// 1\x00", then every field in the order of the struct.
func (t *Tombstone) AppendCanonical(dst []byte) []byte {
	dst = append(dst, "memtox tombstone 1\x00"...)
	dst = binary.AppendUvarint(dst, t.Seq)
	dst = wire.AppendField(dst, t.Record)
	dst = wire.AppendTime(dst, t.At)
	dst = wire.AppendField(dst, t.By)
	dst = wire.AppendField(dst, t.Why)
	dst = binary.AppendUvarint(dst, uint64(len(t.Erased)))
	for _, e := range t.Erased {
		dst = binary.AppendUvarint(dst, e.Seq)
		dst = append(dst, e.Digest[:]...)
		dst = append(dst, e.Content[:]...)
	}
	return dst
}

// SumTombstones is the digest that the first entry of a forgetting has in the log:
// SHA-256 over the canonical encodings of its tombstones, in their order.
func SumTombstones(ts []Tombstone) Digest {
	var b []byte
	for i := range ts {
		b = ts[i].AppendCanonical(b)
	}
	return sha256.Sum256(b)
}

// Bare returns what forgetting leaves of a record: which one it was, in which
// store and whose, its times, its state, and the shape of its lineage. Content,
// key, sources, signature and everything else that a person could be known by is
// gone.
func Bare(r memory.Record) memory.Record {
	bare := func(o memory.Origin) memory.Origin { return memory.Origin{Class: o.Class, Medium: o.Medium} }
	out := memory.Record{ID: r.ID, Store: r.Store, Origin: bare(r.Origin), Principal: r.Principal, Asked: r.Asked,
		Created:   r.Created,
		ValidFrom: r.ValidFrom, ValidTo: r.ValidTo, Version: r.Version, Parent: r.Parent, State: r.State, Scope: r.Scope}
	for _, l := range r.Lineage {
		out.Lineage = append(out.Lineage, memory.Link{Segment: l.Segment, Record: l.Record, Origin: bare(l.Origin)})
	}
	return out
}
