package text

import (
	"encoding/binary"
	"hash/maphash"
	"strings"
	"sync"
)

const shards = 16

// Memo maps texts to values. The zero value is not usable; see [New].
type Memo[T any] struct {
	seed  maphash.Seed
	limit int // bytes a generation of a shard
	parts bool
	shard [shards]shard[T]
}

// A shard has two generations. A text that is used again moves to the young
// one; what was not used while the young one filled up is dropped.
type shard[T any] struct {
	mu         sync.Mutex
	young, old map[uint64]known[T]
	bytes      int
	_          [24]byte // keep neighbours off one cache line
}

// known is a text and its value under the text's hash. Of two texts with one hash the
// later takes the place.
type known[T any] struct {
	text  string
	value T
	size  int // in bytes, with what build said
}

// New returns a memo for texts of at most about maxBytes in all. The weight of a
// value beside its text is what build says.
func New[T any](maxBytes int) *Memo[T] {
	m := &Memo[T]{seed: maphash.MakeSeed(), limit: max(maxBytes/shards/2, 1)}
	for i := range m.shard {
		m.shard[i].young = make(map[uint64]known[T])
	}
	return m
}

// NewOfParts returns a memo for texts that are parts of longer ones. It copies
// what it keeps, so that a sentence does not keep its whole document.
func NewOfParts[T any](maxBytes int) *Memo[T] {
	m := New[T](maxBytes)
	m.parts = true
	return m
}

// Get returns the value of s, making it with build where it is not known. size
// is what the value weighs in bytes. Two goroutines may build the same value at
// once; build must be a pure function of s.
func (m *Memo[T]) Get(s string, build func(string) (value T, size int)) T {
	h := m.hash(s)
	sh := &m.shard[h%shards]
	sh.mu.Lock()
	k, ok := sh.young[h]
	if !ok || k.text != s {
		if k, ok = sh.old[h]; ok && k.text == s {
			sh.add(h, k, m.limit)
		}
	}
	sh.mu.Unlock()
	if ok && k.text == s {
		return k.value
	}
	if m.parts {
		s = strings.Clone(s)
	}
	v, size := build(s)
	sh.mu.Lock()
	sh.add(h, known[T]{s, v, len(s) + size}, m.limit)
	sh.mu.Unlock()
	return v
}

// hash of a long text is that of its length and of pieces that stand at even distances in it.
// Get compares the texts themselves.
func (m *Memo[T]) hash(s string) uint64 {
	const pieces, size = 8, 24
	if len(s) <= 2*pieces*size {
		return maphash.String(m.seed, s)
	}
	var b [pieces*size + 8]byte
	at := binary.LittleEndian.AppendUint64(b[:0], uint64(len(s)))
	for i := range pieces {
		from := i * (len(s) - size) / (pieces - 1)
		at = append(at, s[from:from+size]...)
	}
	return maphash.Bytes(m.seed, at)
}

func (sh *shard[T]) add(h uint64, k known[T], limit int) {
	if sh.bytes+k.size > limit && len(sh.young) > 0 {
		sh.old, sh.young, sh.bytes = sh.young, make(map[uint64]known[T]), 0
	}
	sh.bytes += k.size - sh.young[h].size
	sh.young[h] = k
}
