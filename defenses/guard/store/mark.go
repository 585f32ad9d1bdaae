package store

import (
	"crypto/sha256"
	"fmt"

	"github.com/memtox/memtox/internal/wire"
)

// Mark says what the entries of a journal behind After, up to Entry, were.
type Mark struct {
	After, Entry uint64
	Chain        Digest
	Signature    []byte // of [Mark.Text], by the key that seals; nil for none
}

// Follow goes on with the next entry: the chain is SHA-256 over "memtox tail 1\x00",
// the chain before, the name of the snapshot that the entry is about (else ""), and
// the entry's canonical encoding.
func (m *Mark) Follow(a *Audit, snapshot string) {
	var space [512]byte
	b := append(append(space[:0], "memtox tail 1\x00"...), m.Chain[:]...)
	m.Chain, m.Entry = sha256.Sum256(a.AppendCanonical(wire.AppendField(b, snapshot))), a.Seq
}

// Text is what a signature of a mark is made of.
func (m *Mark) Text() []byte {
	return fmt.Appendf(nil, "memtox memory head 1\n%d\n%d\n%x\n", m.After, m.Entry, m.Chain)
}
