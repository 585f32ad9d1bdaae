package signed_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/defensetest"
	"github.com/memtox/memtox/defenses/signed"
)

func TestStopsNothingThatTheAgentWrites(t *testing.T) {
	tr := defensetest.Open(t, signed.New(), defensetest.FromUser("seeded"))
	rs := []memory.Record{tr.View.Records[0]}
	for _, text := range defensetest.Hostile() {
		v, r := tr.Write(defensetest.External(text))
		if v.Action != memory.Allow {
			t.Errorf("writing %.40q: %s", text, v.Action)
		}
		rs = append(rs, r)
	}
	for i, d := range tr.Read("q", rs...) {
		if d.Action != memory.Allow {
			t.Errorf("reading %.40q: %+v", rs[i].Text, d)
		}
	}
}

func TestStopsWhatIsWrittenAround(t *testing.T) {
	tr := defensetest.Open(t, signed.New())
	_, r := tr.Write(defensetest.FromUser("Pay to account 1."))
	other := defensetest.Open(t, signed.New())
	other.View.TheSeed++
	gate, err := signed.New().Open(context.Background(), other.View)
	if err != nil {
		t.Fatal(err)
	}
	other.Gate = gate
	_, foreign := other.Write(defensetest.FromUser("Pay to account 1."))
	unsigned := r
	unsigned.Signature, unsigned.SignedBy = nil, ""
	for name, c := range map[string]struct {
		r     memory.Record
		check string
	}{"no signature": {unsigned, signed.Missing}, "another key": {foreign, signed.Wrong}} {
		d := tr.Read("q", c.r)[0]
		if d.Action != memory.Quarantine || d.Findings[0].Check != c.check {
			t.Errorf("%s: %+v", name, d)
		}
	}
	// Past turns were never written by the agent.
	if d := tr.Recall(memory.Query{Route: memory.RouteTranscript}, unsigned)[0]; d.Action != memory.Allow {
		t.Errorf("a past turn: %+v", d)
	}
}

// Every field of a record changes the encoding, but for those that change
// lawfully. A field that is added later fails here until somebody decides.
func TestEncodingCoversEveryField(t *testing.T) {
	free := map[string]bool{"State": true, "ValidTo": true, "Signature": true, "SignedBy": true}
	trust := 0.5
	full := memory.Record{ID: "r1", Key: "k", Store: "s", Text: "t",
		Origin:  memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "x"},
		Lineage: memory.Lineage{{Segment: 1}}, Principal: "p", Asked: true, Created: defensetest.Start,
		ValidFrom: defensetest.Start,
		ValidTo:   defensetest.Start, Version: 2, Parent: "r0", State: memory.Held, Scope: memory.ContextOnly,
		Signature: []byte{1}, SignedBy: "k",
		Intents: []string{"payment"}, Trust: &trust}
	whole := full.AppendSigned(nil)
	typ := reflect.TypeFor[memory.Record]()
	for i := range typ.NumField() {
		changed := full
		reflect.ValueOf(&changed).Elem().Field(i).SetZero()
		same := bytes.Equal(whole, changed.AppendSigned(nil))
		if name := typ.Field(i).Name; same != free[name] {
			t.Errorf("clearing %s: encoding unchanged is %t, want %t", name, same, free[name])
		}
	}
}

func TestEncodingIsUnambiguous(t *testing.T) {
	seen := map[string]memory.Record{}
	zero := 0.0
	for _, r := range []memory.Record{
		{}, {Key: "a", Text: "bc"}, {Key: "ab", Text: "c"}, {Text: "abc"}, {Key: "abc"}, {Store: "a", Key: "b"}, {Key: "a|b"},
		{Key: "a", Text: "|b"},
		{Intents: []string{}}, {Intents: []string{""}}, {Intents: []string{"a", "b"}}, {Intents: []string{"ab"}},
		{Trust: &zero},
		{Lineage: memory.Lineage{{Segment: 1}, {Record: "a"}}}, {Lineage: memory.Lineage{{Segment: 1, Record: "a"}}},
		{Lineage: memory.Lineage{{}}},
		{Created: time.Unix(0, 0)}, {ValidFrom: time.Unix(0, 0)}, {Version: 1}, {Asked: true}, {Scope: memory.ContextOnly},
	} {
		enc := string(r.AppendSigned(nil))
		if other, ok := seen[enc]; ok {
			t.Errorf("%+v and %+v have one encoding", r, other)
		}
		seen[enc] = r
	}
	// The same instant in another zone is the same record.
	utc := memory.Record{Created: defensetest.Start}
	local := memory.Record{Created: defensetest.Start.In(time.FixedZone("", 3600))}
	if !bytes.Equal(utc.AppendSigned(nil), local.AppendSigned(nil)) {
		t.Error("the zone of a time changes the encoding")
	}
}

func TestConformance(t *testing.T) { defensetest.Conformance(t, signed.New(), true) }

func BenchmarkWrite(b *testing.B) {
	for _, stored := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			g := defensetest.Seeded(b, signed.New(), defensetest.Filled(stored))
			p := memory.Proposal{Record: defensetest.External(strings.Repeat("x", 300))}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Write(context.Background(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	v := defensetest.Filled(100)
	g := defensetest.Seeded(b, signed.New(), v)
	cs := make([]memory.Candidate, len(v.Records))
	for i, r := range v.Records {
		cs[i] = memory.Candidate{Record: r}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Read(context.Background(), memory.Query{}, cs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(cs)), "ns/record")
}
