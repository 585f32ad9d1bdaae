package defenses

import (
	"encoding/binary"
	"strings"

	"github.com/memtox/memtox/agents/memory"
)

// signature is what one part of a chain signed.
type signature struct {
	part int
	by   string
	sig  []byte
}

// joined marks the key id of a record that several parts of a chain signed.
const joined = "chain:"

// joinSignatures puts the signatures of several parts into one record field:
// a lone one as it is; several as, for each, the number of the part, the length
// and the text of the key id, the length and the bytes of the signature.
func joinSignatures(list []signature) (sig []byte, by string) {
	switch len(list) {
	case 0:
		return nil, ""
	case 1:
		return list[0].sig, list[0].by
	}
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.by
		sig = binary.AppendUvarint(sig, uint64(s.part))
		sig = binary.AppendUvarint(sig, uint64(len(s.by)))
		sig = append(sig, s.by...)
		sig = binary.AppendUvarint(sig, uint64(len(s.sig)))
		sig = append(sig, s.sig...)
	}
	return sig, joined + strings.Join(ids, "+")
}

// own returns the record with the signature that part i of the chain gave it,
// or with none if it gave none. A record whose joined signatures are malformed
// (only a store that was tampered with holds such) has none.
func own(r memory.Record, i int) memory.Record {
	if !strings.HasPrefix(r.SignedBy, joined) {
		return r
	}
	b := r.Signature
	r.Signature, r.SignedBy = nil, ""
	unsigned := r
	for len(b) > 0 {
		part, n := binary.Uvarint(b)
		if n <= 0 {
			return unsigned
		}
		by, rest, ok := cutBytes(b[n:])
		if !ok {
			return unsigned
		}
		sig, rest, ok := cutBytes(rest)
		if !ok {
			return unsigned
		}
		if part == uint64(i) {
			r.Signature, r.SignedBy = sig, string(by)
		}
		b = rest
	}
	return r
}

// cutBytes reads a length and as many bytes.
func cutBytes(b []byte) (head, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	b = b[n:]
	return b[:size:size], b[size:], true
}
