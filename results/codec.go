package results

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/wire"
)

// A journal record is
//
//	length  uint32, little endian: bytes of the payload
//	crc     uint32: CRC-32C of the payload
//	payload place of the transcript, fields of the Trial in order,
//	        number of decisions, fields of each Decision in order
//
// Numbers are varints, texts have their length before them. The fields are
// taken from the structs, so that rows and journal cannot drift apart; the
// header of a journal file holds a fingerprint of both structs.

const recordHeader = 8

// maxRecord bounds what a length may claim before anything is allocated.
const maxRecord = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// layout says how the fields of a row struct are encoded.
type layout struct {
	dict  []bool // by field: the text repeats from row to row, share its memory
	skip  int    // leading fields that are not encoded
	print string // names and types, for the fingerprint
}

// Compiled once from the structs and never changed.
var (
	trialLayout    = makeLayout(reflect.TypeFor[Trial](), 0)
	decisionLayout = makeLayout(reflect.TypeFor[Decision](), 2) // trial and index are the trial's
	rowFingerprint = fmt.Sprintf("%08x", crc32.Checksum([]byte(trialLayout.print+"|"+decisionLayout.print), castagnoli))
)

func makeLayout(t reflect.Type, skip int) layout {
	l := layout{skip: skip}
	for i, name := range Columns(t) {
		f := t.Field(i)
		l.dict = append(l.dict, strings.HasSuffix(f.Tag.Get("parquet"), ",dict"))
		l.print += fmt.Sprintf("%s %s;", name, f.Type)
	}
	return l
}

// Columns are the names of the columns of a row struct, by field.
func Columns(row reflect.Type) []string {
	names := make([]string, row.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(row.Field(i).Tag.Get("parquet"), ",")
	}
	return names
}

// appendRow appends the fields of v.
func (l *layout) appendRow(b []byte, v reflect.Value) []byte {
	for i := l.skip; i < len(l.dict); i++ {
		f := v.Field(i)
		switch f.Kind() {
		case reflect.String:
			b = wire.AppendField(b, validText(f.String()))
		case reflect.Int32, reflect.Int64:
			b = binary.AppendVarint(b, f.Int())
		case reflect.Bool:
			b = append(b, bit(f.Bool()))
		default:
			switch p := f.Interface().(type) {
			case *bool:
				b = append(b, optional(p))
			case *float64:
				if b = append(b, bit(p != nil)); p != nil {
					b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*p))
				}
			default:
				panic("results: no encoding for a field of type " + f.Type().String())
			}
		}
	}
	return b
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func optional(b *bool) byte {
	if b == nil {
		return 2
	}
	return bit(*b)
}

// validText replaces what is not UTF-8: a Parquet text column may hold nothing
// else, and readers of other languages refuse the file.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// place is where a transcript stands: its frame in transcripts/part-N.jsonl.zst,
// and its line in what the frame unpacks to. Without a transcript length is 0.
type place struct {
	part   int
	offset int64
	length int64
	crc    uint32
	start  int64
	size   int64 // 0: the whole frame, as format 1 had it
}

// appendRecord appends one record. The decisions' trial and index are not
// written: they are the trial's.
func appendRecord(b []byte, at place, t *Trial, ds []Decision) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(at.length))
	if at.length > 0 {
		b = binary.AppendUvarint(b, uint64(at.offset))
		b = binary.LittleEndian.AppendUint32(b, at.crc)
		b = binary.AppendUvarint(b, uint64(at.start))
		b = binary.AppendUvarint(b, uint64(at.size))
	}
	b = trialLayout.appendRow(b, reflect.ValueOf(t).Elem())
	b = binary.AppendUvarint(b, uint64(len(ds)))
	v := reflect.ValueOf(ds)
	for i := range ds {
		b = decisionLayout.appendRow(b, v.Index(i))
	}
	payload := b[start+recordHeader:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// decoder reads the payload of one record.
type decoder struct {
	wire.Reader
	shared map[string]string // texts that repeat, one copy each
}

// maxShared bounds the memory of shared texts.
const maxShared = 1 << 16

func newDecoder() *decoder { return &decoder{shared: map[string]string{}} }

// text reads a text; before is what the same field of the row before had.
func (d *decoder) text(share bool, before string) string {
	b := d.Field()
	if string(b) == before {
		return before
	}
	if !share {
		return string(b)
	}
	if s, ok := d.shared[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(d.shared) < maxShared {
		d.shared[s] = s
	}
	return s
}

func (d *decoder) row(l *layout, v reflect.Value) {
	for i := l.skip; i < len(l.dict); i++ {
		f := v.Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString(d.text(l.dict[i], f.String()))
		case reflect.Int32, reflect.Int64:
			n := d.Varint()
			if f.OverflowInt(n) {
				d.Fail("a number that is too large")
				return
			}
			f.SetInt(n)
		case reflect.Bool:
			f.SetBool(d.Byte() == 1)
		default:
			c := d.Byte()
			f.SetZero()
			if f.Type() == reflect.TypeFor[*bool]() {
				if c < 2 {
					b := c == 1
					f.Set(reflect.ValueOf(&b))
				}
			} else if c == 1 {
				if b := d.Bytes(8); b != nil {
					x := math.Float64frombits(binary.LittleEndian.Uint64(b))
					f.Set(reflect.ValueOf(&x))
				}
			}
		}
	}
}

// place reads where the transcript is.
func (d *decoder) place(part int) place {
	at := place{part: part, length: int64(d.Uvarint())}
	if at.length == 0 {
		return place{}
	}
	at.offset = int64(d.Uvarint())
	if b := d.Bytes(4); b != nil {
		at.crc = binary.LittleEndian.Uint32(b)
	}
	at.start, at.size = int64(d.Uvarint()), int64(d.Uvarint())
	if at.length < 0 || at.offset < 0 || at.start < 0 || at.size <= 0 {
		d.Fail("a transcript that stands nowhere")
	}
	return at
}

// record decodes a payload into e, whose decisions are reused.
func (d *decoder) record(payload []byte, part int, e *Entry) error {
	d.Reader = wire.Reader{Rest: payload}
	e.at = d.place(part)
	d.row(&trialLayout, reflect.ValueOf(&e.Trial).Elem())
	n := d.Uvarint()
	// A field has a byte at least: a count that is only claimed costs no memory.
	if d.Err != nil || n > uint64(len(d.Rest)/(len(decisionLayout.dict)-decisionLayout.skip)) {
		return errBadRecord
	}
	e.Decisions = resize(e.Decisions, int(n))
	v := reflect.ValueOf(e.Decisions)
	for i := range e.Decisions {
		d.row(&decisionLayout, v.Index(i))
		e.Decisions[i].Trial, e.Decisions[i].Index = e.Trial.ID, e.Trial.Index
	}
	if d.Err != nil || len(d.Rest) > 0 {
		return errBadRecord
	}
	return nil
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
