package memory

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/memtox/memtox/internal/wire"
)

// The two forms of the one encoding, each behind its name and version, so that
// neither can be taken for the other nor for anything else that a key may sign.
const (
	signedForm = "memtox record 1\x00"
	wholeForm  = "memtox whole record 1\x00"
)

// AppendSigned appends what a signature of a record covers: its identity, place,
// content and authority. It is the canonical encoding without what changes
// lawfully after the write, namely State (an approval makes a held record live),
// ValidTo (a later version ends it) and the signature itself.
//
// Every field stands behind its length or has a fixed size, and lists stand
// behind their number of items, so two different records never have the same
// encoding. Numbers are as short as they can be; times are instants (seconds and
// nanoseconds since 1970), whatever their zone, for a store may give them back in
// another.
func (r *Record) AppendSigned(dst []byte) []byte {
	dst = append(dst, signedForm...)
	for _, s := range [...]string{r.ID, r.Store, r.Key, r.Text, r.Principal, r.Parent} {
		dst = wire.AppendField(dst, s)
	}
	dst = appendOrigin(dst, r.Origin)
	dst = binary.AppendUvarint(dst, uint64(len(r.Lineage)))
	for _, l := range r.Lineage {
		dst = binary.AppendVarint(dst, int64(l.Segment))
		dst = wire.AppendField(dst, l.Record)
		dst = appendOrigin(dst, l.Origin)
	}
	dst = append(dst, flag(r.Asked), byte(r.Scope))
	dst = wire.AppendTime(dst, r.Created)
	dst = wire.AppendTime(dst, r.ValidFrom)
	dst = binary.AppendVarint(dst, int64(r.Version))
	dst = binary.AppendUvarint(dst, uint64(len(r.Intents)))
	for _, s := range r.Intents {
		dst = wire.AppendField(dst, s)
	}
	dst = append(dst, flag(r.Intents != nil), flag(r.Trust != nil))
	if r.Trust != nil {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(*r.Trust))
	}
	return dst
}

// AppendCanonical appends the canonical encoding of the whole record: the signed
// part, then State, ValidTo and the signature. Digests and stores use it;
// [ParseCanonical] reads it back.
func (r *Record) AppendCanonical(dst []byte) []byte {
	dst = append(dst, wholeForm...)
	dst = r.AppendSigned(dst)
	dst = append(dst, byte(r.State))
	dst = wire.AppendTime(dst, r.ValidTo)
	dst = binary.AppendUvarint(dst, uint64(len(r.Signature)))
	dst = append(dst, r.Signature...)
	return wire.AppendField(dst, r.SignedBy)
}

func appendOrigin(dst []byte, o Origin) []byte {
	dst = append(dst, byte(o.Class))
	dst = wire.AppendField(dst, string(o.Medium))
	return wire.AppendField(dst, o.Source)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// ParseCanonical reads what AppendCanonical wrote, and nothing else: it accepts
// exactly one encoding of each record, to the last byte. Times come back in UTC,
// and an empty lineage or signature as nil.
func ParseCanonical(b []byte) (Record, error) {
	d := decoder{wire.Reader{Rest: b}}
	d.form(wholeForm)
	d.form(signedForm)
	var r Record
	for _, s := range [...]*string{&r.ID, &r.Store, &r.Key, &r.Text, &r.Principal, &r.Parent} {
		*s = string(d.Field())
	}
	r.Origin = d.origin()
	if n := d.count(5); n > 0 {
		r.Lineage = make(Lineage, n)
		for i := range r.Lineage {
			r.Lineage[i] = Link{Segment: int(d.Varint()), Record: string(d.Field()), Origin: d.origin()}
		}
	}
	r.Asked, r.Scope = d.flag(), Scope(d.oneOf(len(scopeNames), "scope"))
	r.Created, r.ValidFrom = d.Time(), d.Time()
	r.Version = int(d.Varint())
	n := d.count(1)
	if n > 0 {
		r.Intents = make([]string, n)
		for i := range r.Intents {
			r.Intents[i] = string(d.Field())
		}
	}
	switch given := d.flag(); {
	case given && n == 0:
		r.Intents = []string{}
	case !given && n > 0:
		d.Fail("intents that are said not to be there")
	}
	if d.flag() {
		if b := d.Bytes(8); b != nil {
			t := math.Float64frombits(binary.BigEndian.Uint64(b))
			r.Trust = &t
		}
	}
	r.State = State(d.oneOf(len(stateNames), "state"))
	r.ValidTo = d.Time()
	if b := d.Field(); len(b) > 0 {
		r.Signature = slices.Clone(b)
	}
	r.SignedBy = string(d.Field())
	if len(d.Rest) > 0 {
		d.Fail("bytes after its end")
	}
	if d.Err != nil {
		return Record{}, fmt.Errorf("reading a record of %d bytes: at byte %d: %w", len(b), len(b)-len(d.Rest), d.Err)
	}
	return r, nil
}

// decoder reads canonical encodings. After the first error everything is zero.
type decoder struct{ wire.Reader }

func (d *decoder) form(name string) {
	if rest, ok := bytes.CutPrefix(d.Rest, []byte(name)); ok {
		d.Rest = rest
	} else {
		d.Fail(fmt.Sprintf("it does not begin with %q", name))
	}
}

// count reads the number of items that follow, each of so many bytes or more:
// that bounds what a broken encoding can make us reserve.
func (d *decoder) count(size int) int {
	n := d.Uvarint()
	if n > uint64(len(d.Rest)/size) {
		d.Fail("a length beyond its end")
		return 0
	}
	return int(n)
}

func (d *decoder) flag() bool { return d.oneOf(2, "flag") == 1 }

func (d *decoder) oneOf(n int, what string) byte {
	c := d.Byte()
	if int(c) >= n {
		d.Fail("an unknown " + what)
		return 0
	}
	return c
}

func (d *decoder) origin() Origin {
	return Origin{Class: Class(d.oneOf(len(classNames), "source class")), Medium: Medium(d.Field()),
		Source: string(d.Field())}
}
