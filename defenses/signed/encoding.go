package signed

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/memtox/memtox/agents/memory"
)

// version separates this encoding from any other that the same key may sign.
const version = "memtox record 1\x00"

// AppendEncoding appends the canonical encoding of a record: what a signature
// covers. Every field stands behind its length or has a fixed size, and lists
// stand behind their number of items, so two different records never have the
// same encoding.
//
// It covers the identity, the place, the content and the authority of a record:
// id, store, key, text, origin, lineage, principal, whether the user asked, when
// it was written and from when it holds, version, parent, scope, intents and
// trust. It leaves out what changes lawfully after the write: State (an approval
// makes a held record live), ValidTo (a later version ends it) and the signature
// itself.
func AppendEncoding(dst []byte, r *memory.Record) []byte {
	dst = append(dst, version...)
	for _, s := range [...]string{r.ID, r.Store, r.Key, r.Text, r.Principal, r.Parent} {
		dst = appendString(dst, s)
	}
	dst = appendOrigin(dst, r.Origin)
	dst = binary.AppendUvarint(dst, uint64(len(r.Lineage)))
	for _, l := range r.Lineage {
		dst = binary.AppendVarint(dst, int64(l.Segment))
		dst = appendString(dst, l.Record)
		dst = appendOrigin(dst, l.Origin)
	}
	dst = append(dst, flag(r.Asked), byte(r.Scope))
	dst = appendTime(dst, r.Created)
	dst = appendTime(dst, r.ValidFrom)
	dst = binary.AppendVarint(dst, int64(r.Version))
	dst = binary.AppendUvarint(dst, uint64(len(r.Intents)))
	for _, s := range r.Intents {
		dst = appendString(dst, s)
	}
	dst = append(dst, flag(r.Intents != nil), flag(r.Trust != nil))
	if r.Trust != nil {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(*r.Trust))
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendOrigin(dst []byte, o memory.Origin) []byte {
	dst = append(dst, byte(o.Class))
	dst = appendString(dst, string(o.Medium))
	return appendString(dst, o.Source)
}

// appendTime writes the instant, whatever its zone: a store may give it back in
// another. The zero time is far outside what Unix nanoseconds can say, hence
// seconds and nanoseconds.
func appendTime(dst []byte, t time.Time) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.Unix()))
	return binary.BigEndian.AppendUint32(dst, uint32(t.Nanosecond()))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
