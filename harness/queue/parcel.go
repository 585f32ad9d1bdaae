package queue

import (
	"encoding/binary"
	"errors"
)

// parcel is a message of finished trials: for each a byte that says where its
// transcript is, the length of its row (see [results.AppendMessage]) and the row,
// the length of its transcript, packed with zstd, and the transcript.
type parcel struct {
	data      []byte
	n, failed int64
}

// Where a transcript is.
const (
	bare   byte = iota // there is none
	inside             // in the parcel
	object             // in the object store, under the trial's id
)

func (p *parcel) add(kind byte, row, packed []byte) {
	p.data = binary.AppendUvarint(append(p.data, kind), uint64(len(row)))
	p.data = append(p.data, row...)
	p.data = binary.AppendUvarint(p.data, uint64(len(packed)))
	p.data = append(p.data, packed...)
	p.n++
}

// join appends another parcel.
func (p *parcel) join(o parcel) {
	p.data = append(p.data, o.data...)
	p.n += o.n
	p.failed += o.failed
}

var errParcel = errors.New("it is malformed")

// unpack calls yield for each trial of a parcel. What it is given is a part of b.
func unpack(b []byte, yield func(kind byte, row, packed []byte) error) error {
	field := func() ([]byte, bool) {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return nil, false
		}
		f := b[k : k+int(n)]
		b = b[k+int(n):]
		return f, true
	}
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		row, ok := field()
		packed, ok2 := field()
		if !ok || !ok2 || kind > object || kind != inside && len(packed) > 0 {
			return errParcel
		}
		if err := yield(kind, row, packed); err != nil {
			return err
		}
	}
	return nil
}
