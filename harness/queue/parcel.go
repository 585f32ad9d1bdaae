package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/memtox/memtox/internal/wire"
)

// parcel is a message of finished trials: for each a byte that says what follows,
// the length of its row (see [results.AppendMessage]) and the row, the length of its
// transcript, packed with zstd, and the transcript. A trial that no message holds
// stands in the object store, as a parcel of its own, and the message has that
// object's name in the place of the row.
type parcel struct {
	data      []byte
	n, failed int64
}

// What follows.
const (
	bare   byte = iota // a row
	inside             // a row and its transcript
	object             // the name of an object that holds the trial
)

// objectName names a parcel of one trial: by the trial, so that whoever has it
// already need not fetch it, and by what it holds, so that the same trial from
// another worker is another object and none can be put in the place of another.
func objectName(trial string, data []byte) string {
	sum := sha256.Sum256(data)
	return trial + "." + hex.EncodeToString(sum[:16])
}

func (p *parcel) add(kind byte, row, packed []byte) {
	p.data = wire.AppendField(wire.AppendField(append(p.data, kind), row), packed)
	p.n++
}

func (p *parcel) join(o parcel) {
	p.data = append(p.data, o.data...)
	p.n += o.n
	p.failed += o.failed
}

var errParcel = errors.New("it is malformed")

// unpack calls yield for each trial of a parcel. What it is given is a part of b.
func unpack(b []byte, yield func(kind byte, row, packed []byte) error) error {
	r := wire.Reader{Rest: b}
	for len(r.Rest) > 0 {
		kind, row, packed := r.Byte(), r.Field(), r.Field()
		if r.Err != nil || kind > object || kind != inside && len(packed) > 0 {
			return errParcel
		}
		if err := yield(kind, row, packed); err != nil {
			return err
		}
	}
	return nil
}
