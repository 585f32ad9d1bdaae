package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// Hash is a SHA-256 value. Its text is 64 lower-case hexadecimal digits, and no
// other spelling is read.
type Hash [sha256.Size]byte

// String returns the hash in lower-case hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hash) UnmarshalText(b []byte) error {
	var out Hash
	if len(b) != hex.EncodedLen(len(out)) {
		return fmt.Errorf("a hash has %d hexadecimal digits, not %d", hex.EncodedLen(len(out)), len(b))
	}
	if _, err := hex.Decode(out[:], b); err != nil || out.String() != string(b) {
		return fmt.Errorf("%q is no hash in lower-case hexadecimal", b)
	}
	*h = out
	return nil
}

// IsZero reports the hash of an empty subtree.
func (h Hash) IsZero() bool { return h == Hash{} }

// Domains keep the preimages of one kind of node from being another's.
const (
	leafDomain = iota
	nodeDomain
	_ // free
	keyDomain
	valueDomain
	chainDomain
)

// Key is the place of a record id in a tree.
func Key(id string) Hash { return sum(keyDomain, id) }

// Value is what a leaf holds of a record's canonical encoding.
func Value(content []byte) Hash { return sum(valueDomain, content) }

func sum[T string | []byte](domain byte, b T) Hash {
	// Ids and most records fit the array, which then stays on the stack.
	var space [512]byte
	return sha256.Sum256(append(append(space[:0], domain), b...))
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
// written as, and the only form that [Decode] reads.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	ascii := true
	for _, c := range b.Bytes() {
		ascii = ascii && c < 0x7f
	}
	if ascii {
		return b.Bytes(), nil
	}
	// Only strings hold anything else.
	out := make([]byte, 0, b.Len()+b.Len()/2)
	for _, r := range b.String() {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out, nil
}

// Decode reads exactly the bytes that [Encode] writes: no other spelling of the
// same value, nothing unknown, nothing twice, nothing behind it.
func Decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	again, err := Encode(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return fmt.Errorf("not in canonical form, which is one line of JSON exactly as it was written: bytes differ from %d on", common(again, data))
	}
	return nil
}

func common(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
