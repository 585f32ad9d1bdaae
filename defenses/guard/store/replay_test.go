package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// replay checks, over random changes, that reading as of any point gives what a
// naive model gives that keeps every change and replays them from the start.
func replay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := fresh(t)
		defer s.Close()
		var m model
		n := rapid.IntRange(1, 25).Draw(rt, "changes")
		for range n {
			m.step(rt, s)
		}
		for range 8 {
			p := store.Point{Seq: rapid.Uint64Range(0, uint64(len(m.log))+1).Draw(rt, "seq")}
			if rapid.Bool().Draw(rt, "by time") {
				p = store.Point{System: atMinute(rapid.IntRange(-1, 40).Draw(rt, "system time"))}
			}
			if rapid.Bool().Draw(rt, "facts") {
				p.Fact = atMinute(rapid.IntRange(-1, 40).Draw(rt, "fact time"))
			}
			var got []memory.Record
			for v, err := range s.AsOf(ctx, p) {
				if err != nil {
					rt.Fatal(err)
				}
				got = append(got, v.Record)
			}
			same(rt, fmt.Sprintf("as of %+v", p), got, m.asOf(p))
		}
		var now []memory.Record
		if err := s.Each(ctx, func(r *memory.Record) bool { now = append(now, *r); return true }); err != nil {
			rt.Fatal(err)
		}
		same(rt, "now", now, m.asOf(store.Point{}))
		var used int
		for _, r := range now {
			if r.State.Visible() {
				used += len(r.Text)
			}
		}
		same(rt, "used", must[int](rt)(s.Used(ctx, "memory")), used)
		for _, key := range []string{"k0", "k1", "k2"} {
			got, ok, err := s.ByKey(ctx, "memory", key)
			want, have := stands(now, key)
			if err != nil || ok != have || got.ID != want.ID {
				rt.Errorf("key %s stands for %q (%v, %v), want %q", key, got.ID, ok, err, want.ID)
			}
		}
	})
}

// model is a list of all changes; entry i has sequence number i+1.
type model struct {
	log    []change
	minute int
	ids    int
}

type change struct {
	at        time.Time
	record    *memory.Record // nil: an entry without a version
	forgotten string
}

func (m *model) step(t *rapid.T, s *store.History) {
	m.minute += rapid.IntRange(-2, 3).Draw(t, "minutes")
	when := atMinute(m.minute)
	if n := len(m.log); n > 0 && when.Before(m.log[n-1].at) {
		when = m.log[n-1].at
	}
	known := m.asOf(store.Point{})
	b := memory.Batch{At: atMinute(m.minute), Cause: memory.CauseWrite}
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0:
		b.Cause, b.Snapshot = memory.CauseSnapshot, &memory.SnapshotName{Name: "x"}
		m.log = append(m.log, change{at: when})
	case kind == 1 && len(known) > 0:
		r := rapid.SampledFrom(known).Draw(t, "forgotten")
		if m.forgotten(r.ID) {
			return
		}
		if _, err := s.Forget(ctx, store.Forgetting{IDs: []string{r.ID}, At: atMinute(m.minute)}); err != nil {
			t.Fatal(err)
		}
		r.State = memory.Retired
		m.log = append(m.log, change{at: when}, change{at: when, record: &r, forgotten: r.ID})
		return
	default:
		if kind == 2 {
			b.Snapshot = &memory.SnapshotName{Reason: "before"}
			m.log = append(m.log, change{at: when})
		}
		if kind == 3 {
			b.Cause = memory.CauseRetire
			m.log = append(m.log, change{at: when})
		}
		for range rapid.IntRange(1, 3).Draw(t, "records") {
			var r memory.Record
			if len(known) > 0 && rapid.Bool().Draw(t, "known") {
				r = rapid.SampledFrom(known).Draw(t, "record")
			} else {
				m.ids++
				r = record(fmt.Sprint("r", m.ids), fmt.Sprint("k", m.ids%3), "")
			}
			if m.forgotten(r.ID) || slices.ContainsFunc(b.Records, func(o memory.Record) bool { return o.ID == r.ID }) {
				continue
			}
			r.Text = rapid.StringN(0, 6, 12).Draw(t, "text")
			r.State = memory.State(rapid.IntRange(0, 4).Draw(t, "state"))
			r.ValidFrom = atMinute(rapid.IntRange(0, 30).Draw(t, "from"))
			if r.ValidTo = (time.Time{}); rapid.Bool().Draw(t, "ends") {
				r.ValidTo = atMinute(rapid.IntRange(0, 40).Draw(t, "to"))
			}
			b.Records = append(b.Records, r)
			m.log = append(m.log, change{at: when, record: &r})
		}
		if len(b.Records) == 0 && kind != 3 {
			m.log = append(m.log, change{at: when}) // the batch is an entry of its own
		}
	}
	if _, err := s.Commit(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if last := must[uint64](t)(s.Last(ctx)); last != uint64(len(m.log)) {
		t.Fatalf("the log has %d entries, want %d", last, len(m.log))
	}
}

func (m *model) forgotten(id string) bool {
	return slices.ContainsFunc(m.log, func(c change) bool { return c.forgotten == id })
}

func (m *model) asOf(p store.Point) []memory.Record {
	var out []memory.Record
	for i, c := range m.log {
		if p.Seq > 0 && uint64(i) >= p.Seq || p.Seq == 0 && !p.System.IsZero() && c.at.After(p.System) {
			break
		}
		if c.record == nil {
			continue
		}
		r := *c.record
		if m.forgotten(r.ID) {
			r = store.Bare(r)
		}
		if j := slices.IndexFunc(out, func(o memory.Record) bool { return o.ID == r.ID }); j >= 0 {
			out[j] = r
		} else {
			out = append(out, r)
		}
	}
	if !p.Fact.IsZero() {
		out = slices.DeleteFunc(out, func(r memory.Record) bool { return !(&store.Version{Record: r}).Holds(p.Fact) })
	}
	return out
}

// stands is the record that stands for a key, looked for the plain way.
func stands(rs []memory.Record, key string) (best memory.Record, ok bool) {
	for _, states := range [][]memory.State{{memory.Held, memory.Quarantined}, {memory.Staged}, {memory.Live}} {
		for _, r := range rs {
			if r.Key == key && slices.Contains(states, r.State) {
				best, ok = r, true
			}
		}
	}
	return best, ok
}
