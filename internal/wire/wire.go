// Package wire appends and takes the fields of compact encodings: numbers are varints,
// texts stand behind their length, times are instants.
package wire

import (
	"encoding/binary"
	"errors"
	"time"
)

// AppendField appends a text with its length, so that no two lists of texts are the
// same bytes.
func AppendField[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendTime appends an instant, whatever its zone. The zero time is far outside what
// Unix nanoseconds can say, hence seconds and nanoseconds.
func AppendTime(dst []byte, t time.Time) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.Unix()))
	return binary.BigEndian.AppendUint32(dst, uint32(t.Nanosecond()))
}

// Reader takes fields from the beginning of an encoding, which may claim anything: it
// takes no memory for it. After the first field that is not there all are zero.
type Reader struct {
	Rest []byte // what was not taken yet
	Err  error  // what was wrong first
}

// Fail notes what is wrong.
func (r *Reader) Fail(what string) {
	if r.Err == nil {
		r.Err = errors.New(what)
	}
}

// Bytes takes n bytes, which are a part of the encoding; nil where there are fewer.
func (r *Reader) Bytes(n uint64) []byte {
	if r.Err != nil || n > uint64(len(r.Rest)) {
		r.Fail("it is cut off")
		return nil
	}
	out := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return out
}

// Byte takes one byte.
func (r *Reader) Byte() byte {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Uvarint takes a number in its shortest form.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if r.Err != nil || n <= 0 || n > 1 && r.Rest[n-1] == 0 {
		r.Fail("a number that is cut off, too large or longer than it need be")
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Varint takes a number that may be negative.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Field takes what stands behind its length.
func (r *Reader) Field() []byte { return r.Bytes(r.Uvarint()) }

// Time takes an instant, in UTC.
func (r *Reader) Time() time.Time {
	b := r.Bytes(12)
	if b == nil {
		return time.Time{}
	}
	sec, nsec := int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint32(b[8:])
	if nsec >= 1e9 {
		r.Fail("a time with a billion nanoseconds or more")
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}
