package results

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyRow fills every field of a row struct.
func anyRow(rt *rapid.T, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		name := v.Type().Field(i).Name
		switch f.Interface().(type) {
		case string:
			f.SetString(rapid.StringOf(rapid.Rune()).Draw(rt, name))
		case int32:
			f.SetInt(int64(rapid.Int32().Draw(rt, name)))
		case int64:
			f.SetInt(rapid.Int64().Draw(rt, name))
		case bool:
			f.SetBool(rapid.Bool().Draw(rt, name))
		case *bool:
			if rapid.Bool().Draw(rt, name+"?") {
				b := rapid.Bool().Draw(rt, name)
				f.Set(reflect.ValueOf(&b))
			}
		case *float64:
			if rapid.Bool().Draw(rt, name+"?") {
				x := rapid.Float64().Draw(rt, name)
				f.Set(reflect.ValueOf(&x))
			}
		default:
			rt.Fatalf("field %s has a type that this test does not fill", name)
		}
	}
}

func anyEntry(rt *rapid.T) *Entry {
	var e Entry
	anyRow(rt, reflect.ValueOf(&e.Trial).Elem())
	e.Decisions = make([]Decision, rapid.IntRange(0, 5).Draw(rt, "decisions"))
	for i := range e.Decisions {
		anyRow(rt, reflect.ValueOf(&e.Decisions[i]).Elem())
		e.Decisions[i].Trial, e.Decisions[i].Index = e.Trial.ID, e.Trial.Index
	}
	if rapid.Bool().Draw(rt, "transcript") {
		e.at = place{offset: rapid.Int64Range(0, 1<<60).Draw(rt, "offset"),
			length: rapid.Int64Range(1, 1<<40).Draw(rt, "length"), crc: rapid.Uint32().Draw(rt, "crc"),
			start: rapid.Int64Range(0, 1<<40).Draw(rt, "start"), size: rapid.Int64Range(1, 1<<40).Draw(rt, "size")}
	}
	return &e
}

func TestARecordComesBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := anyEntry(rt)
		b := appendRecord([]byte("before"), e.at, &e.Trial, e.Decisions)[len("before"):]
		if n := binary.LittleEndian.Uint32(b); int(n) != len(b)-recordHeader {
			rt.Fatalf("the record says %d bytes and has %d", n, len(b)-recordHeader)
		}
		// Left-overs of an earlier record must not shine through.
		var got Entry
		d := newDecoder()
		other := anyEntry(rt)
		if err := d.record(appendRecord(nil, other.at, &other.Trial, other.Decisions)[recordHeader:], 0, &got); err != nil {
			rt.Fatal(err)
		}
		if err := d.record(b[recordHeader:], 0, &got); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(*e, got, cmp.AllowUnexported(Entry{}, place{}), equateEmptyDecisions()); diff != "" {
			rt.Fatalf("the record changed:\n%s", diff)
		}
	})
}

func equateEmptyDecisions() cmp.Option {
	return cmp.FilterValues(func(a, b []Decision) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())
}

func TestACutOrChangedPayloadIsRefusedOrReadButNeverPanics(t *testing.T) {
	tr, ds := synthetic(24)
	b := appendRecord(nil, place{offset: 7, length: 9, size: 5}, &tr, ds)[recordHeader:]
	var e Entry
	d := newDecoder()
	for n := range b {
		if err := d.record(b[:n], 0, &e); err == nil {
			t.Fatalf("a payload cut to %d of %d bytes was read", n, len(b))
		}
	}
	for i := range b {
		for _, x := range []byte{0xff, 0x80, 0x01} {
			c := append([]byte(nil), b...)
			c[i] ^= x
			_ = d.record(c, 0, &e) // a checksum guards real records
		}
	}
	if err := d.record(append(b[:len(b):len(b)], 0), 0, &e); err == nil {
		t.Error("a payload with a byte too many was read")
	}
}

func TestTextThatIsNotUTF8IsStoredAsUTF8(t *testing.T) {
	tr, _ := synthetic(1)
	tr.Reason = "bad \xff\xfe bytes"
	var e Entry
	if err := newDecoder().record(appendRecord(nil, place{}, &tr, nil)[recordHeader:], 0, &e); err != nil {
		t.Fatal(err)
	}
	if want := "bad \uFFFD bytes"; e.Trial.Reason != want {
		t.Errorf("stored %q, want %q", e.Trial.Reason, want)
	}
}

func BenchmarkEncode(b *testing.B) {
	tr, ds := synthetic(24)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendRecord(buf[:0], place{offset: 1 << 20, length: 3000}, &tr, ds)
	}
	b.ReportMetric(float64(len(buf)), "bytes/trial")
}

func BenchmarkDecode(b *testing.B) {
	tr, ds := synthetic(24)
	buf := appendRecord(nil, place{offset: 1 << 20, length: 3000}, &tr, ds)
	var e Entry
	d := newDecoder()
	b.ReportAllocs()
	for b.Loop() {
		if err := d.record(buf[recordHeader:], 0, &e); err != nil {
			b.Fatal(err)
		}
	}
}
