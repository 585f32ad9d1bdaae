package view

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/memtox/memtox/results"
)

// packed holds the whole rows of an edition in little memory: some 300 bytes a
// trial with ten decisions. Readers of rows only stream; this is what makes any
// trial open at once. Texts that repeat stand once, numbers as varints.
type packed struct {
	edition *edition
	once    sync.Once
	err     error
	rows    map[uint64][]byte // by trial id
	texts   []string
	number  map[string]uint64
}

func newPacked(e *edition) *packed { return &packed{edition: e} }

// fill reads all rows, once.
func (p *packed) fill() {
	p.once.Do(func() {
		p.rows, p.number = make(map[uint64][]byte, p.edition.table.len()), map[string]uint64{}
		const arena = 1 << 20
		var free []byte
		var buf []byte
		p.err = p.edition.each(func(e *results.Entry) {
			var id uint64
			if _, err := fmt.Sscanf(e.Trial.ID, "%x", &id); err != nil {
				return
			}
			buf = p.appendRow(buf[:0], reflect.ValueOf(&e.Trial).Elem(), trialKinds)
			buf = binary.AppendUvarint(buf, uint64(len(e.Decisions)))
			for i := range e.Decisions {
				buf = p.appendRow(buf, reflect.ValueOf(&e.Decisions[i]).Elem(), decisionKinds)
			}
			if len(free) < len(buf) {
				free = make([]byte, max(arena, len(buf)))
			}
			n := copy(free, buf)
			p.rows[id] = free[:n:n]
			free = free[n:]
		})
		p.number = nil
	})
}

// entry returns the rows of one trial.
func (p *packed) entry(id uint64) (*results.Trial, []results.Decision, error) {
	p.fill()
	if p.err != nil {
		return nil, nil, p.err
	}
	b, ok := p.rows[id]
	if !ok {
		return nil, nil, errNoTrial
	}
	t := new(results.Trial)
	b = p.readRow(b, reflect.ValueOf(t).Elem(), trialKinds)
	n, w := binary.Uvarint(b)
	b = b[w:]
	ds := make([]results.Decision, n)
	for i := range ds {
		b = p.readRow(b, reflect.ValueOf(&ds[i]).Elem(), decisionKinds)
		ds[i].Trial, ds[i].Index = t.ID, t.Index
	}
	return t, ds, nil
}

// kind is how a field is packed.
type kind uint8

const (
	kindSkip kind = iota
	kindShared
	kindText
	kindInt
	kindBool
	kindMaybe
	kindFloat
)

// Compiled once from the row structs and never changed.
var (
	trialKinds    = kindsOf(reflect.TypeFor[results.Trial](), 0)
	decisionKinds = kindsOf(reflect.TypeFor[results.Decision](), 2) // trial and index are the trial's
)

func kindsOf(t reflect.Type, skip int) []kind {
	out := make([]kind, t.NumField())
	for i := range out {
		f := t.Field(i)
		switch {
		case i < skip:
		case f.Type.Kind() == reflect.String && strings.HasSuffix(f.Tag.Get("parquet"), ",dict"):
			out[i] = kindShared
		case f.Type.Kind() == reflect.String:
			out[i] = kindText
		case f.Type.Kind() == reflect.Int32 || f.Type.Kind() == reflect.Int64:
			out[i] = kindInt
		case f.Type.Kind() == reflect.Bool:
			out[i] = kindBool
		case f.Type == reflect.TypeFor[*bool]():
			out[i] = kindMaybe
		case f.Type == reflect.TypeFor[*float64]():
			out[i] = kindFloat
		default:
			panic("view: no way to pack a column of type " + f.Type.String())
		}
	}
	return out
}

func (p *packed) appendRow(b []byte, v reflect.Value, kinds []kind) []byte {
	for i, k := range kinds {
		f := v.Field(i)
		switch k {
		case kindShared:
			s := f.String()
			n, ok := p.number[s]
			if !ok {
				s = strings.Clone(s)
				n = uint64(len(p.texts))
				p.number[s] = n
				p.texts = append(p.texts, s)
			}
			b = binary.AppendUvarint(b, n)
		case kindText:
			b = binary.AppendUvarint(b, uint64(f.Len()))
			b = append(b, f.String()...)
		case kindInt:
			b = binary.AppendVarint(b, f.Int())
		case kindBool:
			b = append(b, flagOf(f.Bool()))
		case kindMaybe:
			flag := byte(null)
			if !f.IsNil() {
				flag = flagOf(f.Elem().Bool())
			}
			b = append(b, flag)
		case kindFloat:
			if f.IsNil() {
				b = append(b, null)
			} else {
				b = binary.LittleEndian.AppendUint64(append(b, yes), math.Float64bits(f.Elem().Float()))
			}
		}
	}
	return b
}

func (p *packed) readRow(b []byte, v reflect.Value, kinds []kind) []byte {
	for i, k := range kinds {
		f := v.Field(i)
		switch k {
		case kindShared:
			n, w := binary.Uvarint(b)
			f.SetString(p.texts[n])
			b = b[w:]
		case kindText:
			n, w := binary.Uvarint(b)
			b = b[w:]
			f.SetString(string(b[:n]))
			b = b[n:]
		case kindInt:
			n, w := binary.Varint(b)
			f.SetInt(n)
			b = b[w:]
		case kindBool:
			f.SetBool(b[0] == yes)
			b = b[1:]
		case kindMaybe:
			if b[0] != null {
				x := b[0] == yes
				f.Set(reflect.ValueOf(&x))
			}
			b = b[1:]
		case kindFloat:
			has := b[0] == yes
			b = b[1:]
			if has {
				x := math.Float64frombits(binary.LittleEndian.Uint64(b))
				f.Set(reflect.ValueOf(&x))
				b = b[8:]
			}
		}
	}
	return b
}
