package results

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// A message carries a finished trial from one process to another: the fingerprint
// of the row structs, and a record as the journal has it.

// ErrMessage: what came is no finished trial that this version can read.
var ErrMessage = errors.New("no finished trial of this version of memtox")

// AppendMessage appends a finished trial for [ParseMessage].
func AppendMessage(b []byte, t *Trial, ds []Decision) []byte {
	b = append(b, rowFingerprint...)
	return appendRecord(b, place{}, t, ds)
}

// ParseMessage reads what AppendMessage wrote. It takes memory in proportion to
// the message, whatever that claims, and an error is an [ErrMessage].
func ParseMessage(b []byte, e *Entry) error {
	rest, ok := strings.CutPrefix(string(b), rowFingerprint)
	if !ok {
		return fmt.Errorf("%w: it begins %.8q, not %q", ErrMessage, b, rowFingerprint)
	}
	if len(rest) < recordHeader {
		return fmt.Errorf("%w: it is cut", ErrMessage)
	}
	payload := b[len(rowFingerprint)+recordHeader:]
	head := b[len(rowFingerprint):]
	if int64(binary.LittleEndian.Uint32(head)) != int64(len(payload)) ||
		binary.LittleEndian.Uint32(head[4:]) != crc32.Checksum(payload, castagnoli) {
		return fmt.Errorf("%w: it is damaged", ErrMessage)
	}
	*e = Entry{}
	if err := newDecoder().record(payload, 0, e); err != nil || e.at.length > 0 {
		return fmt.Errorf("%w: it is malformed", ErrMessage)
	}
	if _, ok := idNumber(e.Trial.ID); !ok {
		return fmt.Errorf("%w: %w", ErrMessage, badID(e.Trial.ID))
	}
	return nil
}
