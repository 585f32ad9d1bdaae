package memory_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memtox/memtox/agents/memory"
)

func fullRecord() memory.Record {
	trust := 0.5
	at := time.Date(2026, 6, 1, 9, 0, 0, 1, time.UTC)
	return memory.Record{ID: "r1", Key: "k", Store: "s", Text: "t",
		Origin:  memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "x"},
		Lineage: memory.Lineage{{Segment: 1, Origin: fromMail}, {Record: "r0"}}, Principal: "p", Asked: true, Created: at,
		ValidFrom: at.Add(1),
		ValidTo:   at.Add(2), Version: 2, Parent: "r0", State: memory.Held, Scope: memory.ContextOnly, Signature: []byte{1},
		SignedBy: "k",
		Intents:  []string{"payment", ""}, Trust: &trust}
}

// Every field of a record is in its canonical encoding and comes back. A field that is
// added later fails here until the encoding has it.
func TestCanonicalEncodingHasEveryField(t *testing.T) {
	full := fullRecord()
	enc := full.AppendCanonical(nil)
	back, err := memory.ParseCanonical(enc)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(full, back); d != "" {
		t.Errorf("there and back (-want +got):\n%s", d)
	}
	typ := reflect.TypeFor[memory.Record]()
	for i := range typ.NumField() {
		changed := full
		field := reflect.ValueOf(&changed).Elem().Field(i)
		if field.IsZero() {
			t.Errorf("%s is not set in the test's record", typ.Field(i).Name)
		}
		field.SetZero()
		got := changed.AppendCanonical(nil)
		if bytes.Equal(enc, got) {
			t.Errorf("%s is not in the encoding", typ.Field(i).Name)
		}
		back, err := memory.ParseCanonical(got)
		if err != nil {
			t.Errorf("without %s: %v", typ.Field(i).Name, err)
		} else if d := cmp.Diff(changed, back); d != "" {
			t.Errorf("without %s (-want +got):\n%s", typ.Field(i).Name, d)
		}
	}
}

// The encoding is a promise: signatures, digests and files rest on it.
func TestCanonicalEncodingStaysAsItIs(t *testing.T) {
	full := fullRecord()
	const want = "6d656d746f782077686f6c65207265636f7264203100" + "6d656d746f78207265636f7264203100" +
		"027231" + "0173" + "016b" + "0174" + "0170" + "027230" + // id, store, key, text, principal, parent
		"02" + "0463686174" + "0178" + // origin
		"02" + "02" + "00" + "00" + "05656d61696c" + "1364616e61406e6f7276696b2e6578616d706c65" + // lineage
		"00" + "027230" + "00" + "00" + "00" +
		"01" + "01" + // asked, scope
		"000000006a1d4a10" + "00000001" + "000000006a1d4a10" + "00000002" + // created, valid from
		"04" + "02" + "077061796d656e74" + "00" + "01" + "01" + "3fe0000000000000" + // version, intents, trust
		"02" + "000000006a1d4a10" + "00000003" + "0101" + "016b" // state, valid to, signature, key id
	if got := hex.EncodeToString(full.AppendCanonical(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.HasPrefix(want[44:], hex.EncodeToString(full.AppendSigned(nil))) {
		t.Error("the signed form is not the first part of the whole one")
	}
}

func TestParseCanonicalRefuses(t *testing.T) {
	full := fullRecord()
	enc := full.AppendCanonical(nil)
	for i := range enc {
		if _, err := memory.ParseCanonical(enc[:i]); err == nil {
			t.Errorf("cut off after %d bytes: accepted", i)
		}
	}
	if _, err := memory.ParseCanonical(append(bytes.Clone(enc), 0)); err == nil {
		t.Error("a byte too many: accepted")
	}
	if _, err := memory.ParseCanonical(full.AppendSigned(nil)); err == nil {
		t.Error("the signed form: accepted")
	}
	// A length that is not written in the shortest way.
	long := bytes.Replace(enc, []byte("\x02r1\x01s"), []byte("\x82\x00r1\x01s"), 1)
	if _, err := memory.ParseCanonical(long); err == nil {
		t.Error("a number longer than it need be: accepted")
	}
}

// Two records have the same encoding only if they are the same.
func TestCanonicalEncodingIsUnambiguous(t *testing.T) {
	short := rapid.StringOfN(rapid.SampledFrom([]rune("a\x00\x01")), 0, 3, -1)
	origin := rapid.Custom(func(t *rapid.T) memory.Origin {
		return memory.Origin{Class: memory.Class(rapid.IntRange(0, 3).Draw(t, "class")),
			Medium: memory.Medium(short.Draw(t, "medium")), Source: short.Draw(t, "source")}
	})
	link := rapid.Custom(func(t *rapid.T) memory.Link {
		return memory.Link{Segment: rapid.IntRange(-2, 200).Draw(t, "segment"), Record: short.Draw(t, "record"),
			Origin: origin.Draw(t, "origin")}
	})
	record := rapid.Custom(func(t *rapid.T) memory.Record {
		r := memory.Record{ID: short.Draw(t, "id"), Key: short.Draw(t, "key"), Store: short.Draw(t, "store"),
			Text:   short.Draw(t, "text"),
			Origin: origin.Draw(t, "origin"), Principal: short.Draw(t, "principal"),
			Version: rapid.IntRange(-1, 1).Draw(t, "version"),
			State:   memory.State(rapid.IntRange(0, 4).Draw(t, "state")), SignedBy: short.Draw(t, "signed by"),
			Created: time.Unix(rapid.Int64Range(-2, 2).Draw(t, "sec"), rapid.Int64Range(0, 2).Draw(t, "nsec")).UTC()}
		if n := rapid.IntRange(0, 2).Draw(t, "links"); n > 0 {
			for range n {
				r.Lineage = append(r.Lineage, link.Draw(t, "link"))
			}
		}
		if rapid.Bool().Draw(t, "intents?") {
			r.Intents = append([]string{}, rapid.SliceOfN(short, 0, 2).Draw(t, "intents")...)
		}
		if rapid.Bool().Draw(t, "trust?") {
			f := rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0.5, math.Inf(1)}).Draw(t, "trust")
			r.Trust = &f
		}
		if s := short.Draw(t, "signature"); s != "" {
			r.Signature = []byte(s)
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := record.Draw(t, "a"), record.Draw(t, "b")
		if reflect.DeepEqual(a, b) != bytes.Equal(a.AppendCanonical(nil), b.AppendCanonical(nil)) &&
			!(a.Trust != nil && b.Trust != nil && *a.Trust == 0 && *b.Trust == 0) {
			t.Fatalf("records %+v and %+v", a, b)
		}
		back, err := memory.ParseCanonical(a.AppendCanonical(nil))
		if err != nil || !reflect.DeepEqual(a, back) {
			t.Fatalf("%+v came back as %+v: %v", a, back, err)
		}
	})
}

// Whatever parses is the one encoding of what it parses to.
func FuzzParseCanonical(f *testing.F) {
	full := fullRecord()
	f.Add(full.AppendCanonical(nil))
	f.Add((&memory.Record{}).AppendCanonical(nil))
	f.Add((&memory.Record{ID: "r1", Text: "\x00\xff", Intents: []string{}}).AppendCanonical(nil))
	f.Add([]byte("memtox whole record 1\x00memtox record 1\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := memory.ParseCanonical(b)
		if err != nil {
			return
		}
		if got := r.AppendCanonical(nil); !bytes.Equal(got, b) {
			t.Errorf("%x parses to %+v, whose encoding is %x", b, r, got)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	r := fullRecord()
	r.Text = strings.Repeat("Ana signs for the budget. ", 12)
	enc := r.AppendCanonical(nil)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			enc = r.AppendCanonical(enc[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := memory.ParseCanonical(enc); err != nil {
				b.Fatal(err)
			}
		}
	})
}
