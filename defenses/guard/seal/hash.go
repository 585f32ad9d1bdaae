package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf16"

	"github.com/go-json-experiment/json"

	"github.com/memtox/memtox/defenses/guard/store"
)

// Hash is a SHA-256 value; the zero Hash is that of an empty subtree.
type Hash = store.Digest

// Domains keep the preimages of one kind of node from being another's.
const (
	leafDomain = iota
	nodeDomain
	_ // free
	keyDomain
	_ // was that of contents
	chainDomain
)

// Key is the place of a record id in a tree.
func Key(id string) Hash {
	var space [512]byte // ids fit it, which then stays on the stack
	return sha256.Sum256(append(append(space[:0], keyDomain), id...))
}

func leafHash(key, value Hash) Hash {
	var b [1 + 2*sha256.Size]byte
	b[0] = leafDomain
	copy(b[1:], key[:])
	copy(b[1+sha256.Size:], value[:])
	return sha256.Sum256(b[:])
}

func nodeHash(leftCount uint64, left Hash, rightCount uint64, right Hash) Hash {
	var b [1 + 2*(8+sha256.Size)]byte
	b[0] = nodeDomain
	binary.BigEndian.PutUint64(b[1:], leftCount)
	copy(b[9:], left[:])
	binary.BigEndian.PutUint64(b[41:], rightCount)
	copy(b[49:], right[:])
	return sha256.Sum256(b[:])
}

// bit is the i-th bit of a key, from the most significant one.
func bit(key *Hash, i int) byte { return key[i/8] >> (7 - i%8) & 1 }

// Encode returns the one JSON form of a value: one line, with its newline, in
// ASCII, so that no id acts on a terminal. It is what proofs and entries are
// written as, and the only form that [Decode] reads. A string that is no UTF-8 is an
// error.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(b)+1)
	for _, c := range utf16.Encode([]rune(string(b))) {
		if c < 0x7f {
			out = append(out, byte(c))
		} else { // only strings hold anything else
			out = fmt.Appendf(out, `\u%04x`, c)
		}
	}
	return append(out, '\n'), nil
}

// Decode reads exactly the bytes that [Encode] writes: no other spelling of the
// same value, nothing unknown, nothing twice, nothing behind it.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	again, err := Encode(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		at := 0
		for at < min(len(again), len(data)) && again[at] == data[at] {
			at++
		}
		return fmt.Errorf("not in canonical form, which is one line of JSON exactly as it was written: bytes differ from "+
			"%d on", at)
	}
	return nil
}
