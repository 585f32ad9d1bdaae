package summary

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"

	"github.com/memtox/memtox/internal/wire"
)

// multiset is a digest of digests that does not depend on their order: the
// number of them and the sum, modulo 2²⁵⁶, of the SHA-256 of each. Trials
// finish in any order and may be too many to sort. It guards against differing
// outcomes, not against somebody who looks for collisions.
type multiset struct {
	n uint64
	s [4]uint64
}

func (m *multiset) add(digest string) {
	h := sha256.Sum256([]byte("memtox trial outcome\x00" + digest))
	var carry uint64
	for i := range m.s {
		m.s[i], carry = bits.Add64(m.s[i], binary.LittleEndian.Uint64(h[8*i:]), carry)
	}
	m.n++
}

func (m *multiset) sum() string {
	b := []byte("memtox arm 1\x00")
	b = binary.LittleEndian.AppendUint64(b, m.n)
	for _, w := range m.s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// runDigest covers the names and digests of the arms, in the order of their
// names.
func runDigest(arms []Arm) string {
	order := make([]*Arm, len(arms))
	for i := range arms {
		order[i] = &arms[i]
	}
	slices.SortFunc(order, func(a, b *Arm) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent),
			cmp.Compare(a.Defense, b.Defense))
	})
	b := []byte("memtox run 1\x00")
	for _, a := range order {
		for _, s := range []string{a.Agent, a.Defense, a.Digest} {
			b = wire.AppendField(b, s)
		}
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
