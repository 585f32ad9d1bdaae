package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// MemgarEntry is one entry of memgar's snapshots.
type MemgarEntry struct {
	ID          string
	ContentHash string // lower-case hexadecimal; its text is what a leaf hashes
}

// Memgar is memgar's Merkle tree (memgar/merkle.py), hash for hash:
//
//	leaf = SHA-256("L:" ‖ id ‖ "|" ‖ text of the content hash)
//	node = SHA-256("I:" ‖ left ‖ right)
//
// Entries are sorted by the bytes of their ids; of an id that stands there twice
// the last wins; the orphan of an odd level is paired with itself; the root of no
// entry is empty.
//
// Its proofs carry no index and no size, and its leaves leave source and metadata
// out: use [Tree] for anything that memgar did not make.
type Memgar struct {
	entries []MemgarEntry // sorted
	levels  [][]Hash      // from the leaves up
}

// NewMemgar builds the tree of a snapshot. It keeps no reference to the entries.
func NewMemgar(entries []MemgarEntry) *Memgar {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b MemgarEntry) int { return strings.Compare(a.ID, b.ID) })
	m := &Memgar{entries: sorted[:0]}
	var level []Hash
	var space []byte
	for i, e := range sorted {
		if i+1 < len(sorted) && sorted[i+1].ID == e.ID {
			continue
		}
		var leaf Hash
		leaf, space = memgarLeaf(space[:0], e.ID, e.ContentHash)
		m.entries, level = append(m.entries, e), append(level, leaf)
	}
	m.levels = [][]Hash{level}
	for len(level) > 1 {
		next := make([]Hash, (len(level)+1)/2)
		for i := range next {
			left := level[2*i]
			next[i] = memgarNode(left[:], level[min(2*i+1, len(level)-1)][:])
		}
		m.levels = append(m.levels, next)
		level = next
	}
	return m
}

func memgarLeaf(space []byte, id, contentHash string) (Hash, []byte) {
	space = append(append(append(append(space, "L:"...), id...), '|'), contentHash...)
	return sha256.Sum256(space), space
}

func memgarNode(left, right []byte) Hash {
	var space [2 + 2*sha256.Size]byte
	return sha256.Sum256(append(append(append(space[:0], "I:"...), left...), right...))
}

// Depth is the number of levels above the leaves.
func (m *Memgar) Depth() int { return len(m.levels) - 1 }

// Root is the root in hexadecimal; empty for no entry.
func (m *Memgar) Root() string {
	if len(m.entries) == 0 {
		return ""
	}
	return m.levels[m.Depth()][0].String()
}

// MemgarProof is a proof in memgar's form.
type MemgarProof struct {
	EntryID     string          `json:"entry_id"`
	ContentHash string          `json:"content_hash"`
	LeafHash    string          `json:"leaf_hash"`
	Siblings    []MemgarSibling `json:"siblings"` // from the leaf up
	Root        string          `json:"root"`
}

// MemgarSibling is one step of a proof; in memgar's JSON [position, hash].
type MemgarSibling struct {
	Position int // 0: it stands on the left; 1: on the right
	Hash     string
}

// Prove returns the proof of an entry, or false if there is none.
func (m *Memgar) Prove(id string) (MemgarProof, bool) {
	i, found := slices.BinarySearchFunc(m.entries, id,
		func(e MemgarEntry, id string) int { return strings.Compare(e.ID, id) })
	if !found {
		return MemgarProof{}, false
	}
	p := MemgarProof{EntryID: id, ContentHash: m.entries[i].ContentHash, LeafHash: m.levels[0][i].String(),
		Siblings: []MemgarSibling{}, Root: m.Root()}
	for _, level := range m.levels[:m.Depth()] {
		s := MemgarSibling{Position: 1 - i%2}
		s.Hash = level[min(i^1, len(level)-1)].String()
		p.Siblings = append(p.Siblings, s)
		i /= 2
	}
	return p, true
}

// MemgarExpect is what a verifier knows; nil fields are not compared.
type MemgarExpect struct{ EntryID, ContentHash, Root *string }

// Verify answers as memgar does, and accepts what memgar accepts: positions that
// are neither 0 nor 1, a mirrored orphan, hexadecimal digits in any spelling,
// and, where the verifier expects no root, a root that the proof brings along. An
// error stands where memgar raises one: a sibling that is not hexadecimal.
func (p *MemgarProof) Verify(expect MemgarExpect) (bool, error) {
	for _, c := range [...]struct {
		want *string
		got  string
	}{{expect.EntryID, p.EntryID}, {expect.ContentHash, p.ContentHash}, {expect.Root, p.Root}} {
		if c.want != nil && *c.want != c.got {
			return false, nil
		}
	}
	at, _ := memgarLeaf(nil, p.EntryID, p.ContentHash)
	if at.String() != p.LeafHash {
		return false, nil
	}
	for i, s := range p.Siblings {
		sibling, err := pythonHex(s.Hash)
		if err != nil {
			return false, fmt.Errorf("verifying a proof of entry %q: sibling %d: %w", p.EntryID, i, err)
		}
		if s.Position == 0 {
			at = memgarNode(sibling, at[:])
		} else {
			at = memgarNode(at[:], sibling)
		}
	}
	return at.String() == p.Root, nil
}

// pythonHex reads what Python's bytes.fromhex reads: white space may stand
// between bytes, and digits have any case.
func pythonHex(s string) ([]byte, error) {
	var out []byte
	var err error
	for _, digits := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\r\v\f", r) }) {
		if out, err = hex.AppendDecode(out, []byte(digits)); err != nil {
			return nil, fmt.Errorf("%q is not hexadecimal", digits)
		}
	}
	return out, nil
}
