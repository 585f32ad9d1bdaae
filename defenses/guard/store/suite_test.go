package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// start is the system time of the first change in the suite.
var start = time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC)

var (
	page = memory.Origin{Class: memory.External, Medium: memory.Web, Source: "https://pages.example/a"}
	user = memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}
)

// record returns an ordinary record, for tests.
func record(id, key, text string) memory.Record {
	return memory.Record{ID: id, Store: "memory", Key: key, Text: text, Origin: page,
		Lineage:   memory.Lineage{{Segment: 1, Origin: page}},
		Principal: "user-1", Created: start, ValidFrom: start, Version: 1}
}

// What every [memory.Store] must show.
func TestStore(t *testing.T) {
	for name, test := range map[string]func(*testing.T, memory.Store){
		"what is put can be read":            reads,
		"nothing is kept of a refused batch": refusals,
		"a key stands for what is live":      keys,
		"ids are not given out twice":        ids,
		"every field of a record comes back": fields,
	} {
		for kind, s := range map[string]memory.Store{"a trial's": memory.NewStore(), "with a history": fresh(t)} {
			t.Run(name+", "+kind, func(t *testing.T) {
				defer s.Close()
				test(t, s)
			})
		}
	}
}

func TestHistory(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *store.History){
		"time never runs backwards":                 clock,
		"the log says who, what, when and why":      log,
		"the past can be read":                      past,
		"filters name versions":                     filters,
		"snapshots name states":                     snapshots,
		"forgetting leaves a tombstone alone":       forgetting,
		"a version is committed to by its digest":   digests,
		"iterators stop when they are told":         stops,
		"a batch of many is one group":              groups,
		"a record that comes back from retirement":  revival,
		"read as of equals a replay of the changes": func(t *testing.T, s *store.History) { s.Close(); replay(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			defer s.Close()
			test(t, s)
		})
	}
}

var sameRecord = cmpopts.EquateEmpty()

func must[T any](t failing) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func atMinute(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

func putAt(t testing.TB, s memory.Store, minute int, rs ...memory.Record) memory.Committed {
	t.Helper()
	c, err := s.Commit(ctx, &memory.Batch{At: atMinute(minute), Cause: memory.CauseWrite, Route: memory.RouteMemoryTool,
		By: "user-1", Records: rs})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func collect[T any](t testing.TB, seq func(func(T, error) bool)) []T {
	t.Helper()
	var out []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func same(t failing, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, sameRecord); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func texts(rs []memory.Record) []string {
	out := []string{}
	for _, r := range rs {
		out = append(out, r.Text)
	}
	return out
}

func versionTexts(vs []store.Version) []string {
	out := []string{}
	for _, v := range vs {
		out = append(out, v.Record.Text)
	}
	return out
}

func reads(t *testing.T, s memory.Store) {
	a, b, c := record("r1", "k1", "one"), record("r2", "k2", "two!"), record("r3", "k3", "three")
	b.State, c.Store = memory.Held, "notes"
	putAt(t, s, 0, a)
	putAt(t, s, 1, b, c)
	got, ok, err := s.Get(ctx, "r2")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	same(t, "record r2", got, b)
	if _, ok, err := s.Get(ctx, "r9"); ok || err != nil {
		t.Error("a record that was never put:", ok, err)
	}
	v := must[[]memory.Record](t)
	same(t, "visible", texts(v(s.Visible(ctx))), []string{"one", "three"})
	same(t, "visible in notes", texts(v(s.Visible(ctx, "notes"))), []string{"three"})
	same(t, "visible in two stores", texts(v(s.Visible(ctx, "notes", "memory"))), []string{"one", "three"})
	same(t, "visible in no store", texts(v(s.Visible(ctx, "skills"))), []string{})
	var all []string
	if err := s.Each(ctx, func(r *memory.Record) bool { all = append(all, r.Text); return true }); err != nil {
		t.Fatal(err)
	}
	same(t, "all", all, []string{"one", "two!", "three"})
	n := must[int](t)
	same(t, "length", n(s.Len(ctx)), 3)
	same(t, "used", n(s.Used(ctx, "memory")), 3)
	b.State = memory.Live
	putAt(t, s, 2, b)
	same(t, "used once r2 is live", n(s.Used(ctx, "memory")), 7)
	same(t, "the order of first commits", texts(v(s.Visible(ctx))), []string{"one", "two!", "three"})
	a.State = memory.Retired
	putAt(t, s, 3, a)
	same(t, "used once r1 is retired", n(s.Used(ctx, "memory")), 4)
	same(t, "length with one retired", n(s.Len(ctx)), 3)
}

func refusals(t *testing.T, s memory.Store) {
	putAt(t, s, 0, record("r1", "k", "one"))
	moved := record("r1", "other", "one")
	badState, badClass, badLink := record("r2", "k", "x"), record("r2", "k", "x"), record("r2", "k", "x")
	badState.State, badClass.Origin.Class = 9, 9
	badLink.Lineage = memory.Lineage{{Segment: 1, Origin: memory.Origin{Class: 9}}}
	good := record("r3", "k", "three")
	for name, b := range map[string]memory.Batch{
		"no id":         {Records: []memory.Record{good, record("", "k", "x")}},
		"another key":   {Records: []memory.Record{good, moved}},
		"a state":       {Records: []memory.Record{good, badState}},
		"a class":       {Records: []memory.Record{good, badClass}},
		"a link":        {Records: []memory.Record{good, badLink}},
		"twice":         {Records: []memory.Record{good, good}},
		"forgetting":    {Cause: memory.CauseForget},
		"no snapshot":   {Cause: memory.CauseSnapshot},
		"an odd cause":  {Cause: 99},
		"one too many":  {Cause: memory.CauseSnapshot, Snapshot: &memory.SnapshotName{}, Records: []memory.Record{good}},
		"a snapshotted": {Snapshot: &memory.SnapshotName{Name: "n"}, Records: []memory.Record{good, moved}},
	} {
		if _, err := s.Commit(ctx, &b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	same(t, "length", must[int](t)(s.Len(ctx)), 1)
	if h, ok := s.(*store.History); ok {
		same(t, "last", must[uint64](t)(h.Last(ctx)), uint64(1))
		same(t, "snapshots", must[[]store.Snapshot](t)(h.Snapshots(ctx)), []store.Snapshot(nil))
	}
}

func keys(t *testing.T, s memory.Store) {
	stands := func(want string) {
		t.Helper()
		r, ok, err := s.ByKey(ctx, "memory", "k")
		if err != nil || ok != (want != "") || r.ID != want {
			t.Errorf("the key stands for %q (%v, %v), want %q", r.ID, ok, err, want)
		}
	}
	with := func(id string, st memory.State) memory.Record {
		r := record(id, "k", "x")
		r.State = st
		return r
	}
	stands("")
	putAt(t, s, 0, with("r1", memory.Quarantined))
	stands("r1")
	putAt(t, s, 1, with("r2", memory.Live))
	stands("r2")
	putAt(t, s, 2, with("r3", memory.Staged))
	stands("r2") // what waits for a decision never hides what is live
	putAt(t, s, 3, with("r4", memory.Held))
	stands("r2")
	putAt(t, s, 4, with("r2", memory.Retired))
	stands("r3")
	putAt(t, s, 5, with("r3", memory.Retired))
	stands("r4")
	putAt(t, s, 6, with("r4", memory.Retired), with("r5", memory.Live))
	stands("r5")
	putAt(t, s, 7, with("r5", memory.Retired))
	stands("r1")
	putAt(t, s, 8, with("r1", memory.Retired))
	stands("")
	putAt(t, s, 9, with("r2", memory.Live))
	stands("r2")
	if _, ok, err := s.ByKey(ctx, "notes", "k"); ok || err != nil {
		t.Error("the key of another store:", ok, err)
	}
}

func ids(t *testing.T, s memory.Store) {
	seen := map[string]bool{}
	for range 600 {
		id := must[string](t)(s.NextID(ctx))
		if seen[id] {
			t.Fatal("twice:", id)
		}
		seen[id] = true
	}
	if !seen["r1"] || !seen["r600"] {
		t.Error("a new store counts r1, r2 …")
	}
	putAt(t, s, 0, record("r601", "k", "came from elsewhere"))
	same(t, "the next id", must[string](t)(s.NextID(ctx)), "r602")
}

func clock(t *testing.T, s *store.History) {
	putAt(t, s, 5, record("r1", "k1", "one"))
	c := putAt(t, s, 3, record("r2", "k2", "two"))
	if !c.At.Equal(atMinute(5)) {
		t.Errorf("committed at %s, want the time of the entry before", c.At)
	}
	for _, a := range collect(t, s.Log(ctx, store.Filter{})) {
		if !a.At.Equal(atMinute(5)) {
			t.Errorf("entry %d at %s", a.Seq, a.At)
		}
	}
}

func log(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "one"))
	held := record("r2", "k2", "two")
	held.State = memory.Held
	c, err := s.Commit(ctx, &memory.Batch{At: atMinute(1), Cause: memory.CauseQuarantine, By: "ana", Why: "drill",
		Target:   1,
		Snapshot: &memory.SnapshotName{Name: "before", Reason: "quarantine"}, Records: []memory.Record{held}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "committed", c, memory.Committed{First: 3, Last: 4, At: atMinute(1), Snapshot: "s1"})
	if _, err := s.Commit(ctx, &memory.Batch{At: atMinute(2), Cause: memory.CauseReject, By: "bo",
		Why: "nothing to it"}); err != nil {
		t.Fatal(err)
	}
	got := collect(t, s.Log(ctx, store.Filter{}))
	for i := range got {
		if (got[i].Digest == store.Digest{}) == (got[i].Record != "") {
			t.Errorf("entry %d of record %q has digest %x", got[i].Seq, got[i].Record, got[i].Digest)
		}
		got[i].Digest = store.Digest{}
	}
	same(t, "the log", got, []store.Audit{
		{Seq: 1, Group: 1, At: atMinute(0), Cause: memory.CauseWrite, Route: memory.RouteMemoryTool, By: "user-1",
			Record: "r1"},
		{Seq: 2, Group: 2, At: atMinute(1), Cause: memory.CauseSnapshot, By: "ana", Why: "quarantine", Snapshot: "s1"},
		{Seq: 3, Group: 3, At: atMinute(1), Cause: memory.CauseQuarantine, By: "ana", Why: "drill", Snapshot: "s1",
			Target: 1},
		{Seq: 4, Group: 3, At: atMinute(1), Cause: memory.CauseQuarantine, By: "ana", Why: "drill", Snapshot: "s1", Target: 1,
			Record: "r2"},
		{Seq: 5, Group: 5, At: atMinute(2), Cause: memory.CauseReject, By: "bo", Why: "nothing to it"},
	})
	seqs := func(f store.Filter) []uint64 {
		out := []uint64{}
		for _, a := range collect(t, s.Log(ctx, f)) {
			out = append(out, a.Seq)
		}
		return out
	}
	same(t, "of one cause", seqs(store.Filter{Causes: []memory.Cause{memory.CauseSnapshot, memory.CauseReject}}),
		[]uint64{2, 5})
	same(t, "of one record", seqs(store.Filter{ID: "r2"}), []uint64{4})
	same(t, "since", seqs(store.Filter{Since: atMinute(1), Until: atMinute(2)}), []uint64{2, 3, 4})
	same(t, "from and to", seqs(store.Filter{From: 2, To: 3}), []uint64{2, 3})
	same(t, "limited", seqs(store.Filter{From: 2, Limit: 1}), []uint64{2})
	same(t, "with a state", seqs(store.Filter{States: []memory.State{memory.Held}}), []uint64{4})
	same(t, "last", must[uint64](t)(s.Last(ctx)), uint64(5))
}

func past(t *testing.T, s *store.History) {
	old := record("r1", "k", "the meeting is on Monday")
	putAt(t, s, 10, old)
	retired, next := old, record("r2", "k", "the meeting is on Tuesday")
	retired.State, retired.ValidTo = memory.Retired, atMinute(20)
	next.ValidFrom, next.Version, next.Parent = atMinute(20), 2, "r1"
	putAt(t, s, 30, retired, next)
	held := record("r3", "k2", "pay at once")
	held.State = memory.Held
	putAt(t, s, 40, held)

	asOf := func(p store.Point) []string { return versionTexts(collect(t, s.AsOf(ctx, p))) }
	monday, tuesday := old.Text, next.Text
	same(t, "before everything", asOf(store.Point{System: atMinute(9)}), []string{})
	same(t, "at the first change", asOf(store.Point{System: atMinute(10)}), []string{monday})
	same(t, "as of entry 1", asOf(store.Point{Seq: 1}), []string{monday})
	same(t, "as of entry 3", asOf(store.Point{Seq: 3}), []string{monday, tuesday})
	same(t, "now", asOf(store.Point{}), []string{monday, tuesday, held.Text})
	same(t, "beyond the end", asOf(store.Point{Seq: 99}), []string{monday, tuesday, held.Text})
	// Fact time: on minute 25 the meeting was on Tuesday, but at minute 29 nobody knew.
	same(t, "of minute 25, as known at 29", asOf(store.Point{System: atMinute(29), Fact: atMinute(25)}), []string{monday})
	same(t, "of minute 25, as known now", asOf(store.Point{Fact: atMinute(25)}), []string{tuesday})
	same(t, "of minute 15, as known now", asOf(store.Point{Fact: atMinute(15)}), []string{monday})
	same(t, "of before", asOf(store.Point{Fact: atMinute(-1)}), []string{})

	then := collect(t, s.AsOf(ctx, store.Point{Seq: 1}))[0]
	if !then.Current() || !then.Until.IsZero() || then.Record.State != memory.Live {
		t.Errorf("the version as it was known then: %+v", then)
	}
	h := collect(t, s.Versions(ctx, store.Filter{ID: "r1"}))
	if len(h) != 2 || h[0].UntilSeq != 2 || !h[0].Until.Equal(atMinute(30)) || h[1].Seq != 2 || !h[1].Current() {
		t.Errorf("the history of r1: %+v", h)
	}
}

func filters(t *testing.T, s *store.History) {
	for i := range 12 {
		r := record(fmt.Sprint("r", i+1), fmt.Sprint("k", i%3), fmt.Sprintf("text %d of them, 100%% _sure_", i))
		r.Principal = fmt.Sprint("p", i%2)
		if i%4 == 0 {
			r.Origin = user
		}
		if i%6 == 5 {
			r.Store = "notes"
		}
		if i == 7 {
			r.Lineage = append(r.Lineage, memory.Link{Record: "r3", Origin: page},
				memory.Link{Record: "r30", Origin: memory.Origin{Source: "elsewhere"}})
		}
		if i == 9 {
			r.Parent = "r3"
		}
		putAt(t, s, i, r)
	}
	changed := record("r1", "k0", "text 0 once more")
	changed.Principal, changed.Origin, changed.State = "p0", user, memory.Staged
	putAt(t, s, 20, changed)
	for name, c := range map[string]struct {
		f    store.Filter
		want []string
	}{
		"id":           {store.Filter{ID: "r1"}, []string{"r1", "r1"}},
		"id, current":  {store.Filter{ID: "r1", Current: true}, []string{"r1"}},
		"no such id":   {store.Filter{ID: "r99"}, nil},
		"key":          {store.Filter{Key: "k0"}, []string{"r1", "r4", "r7", "r10", "r1"}},
		"key in store": {store.Filter{Key: "k2", Store: "notes"}, []string{"r6", "r12"}},
		"principal":    {store.Filter{Principal: "p1", Limit: 3}, []string{"r2", "r4", "r6"}},
		"source":       {store.Filter{Source: "user"}, []string{"r1", "r5", "r9", "r1"}},
		"any source":   {store.Filter{AnySource: "user"}, []string{"r1", "r5", "r9", "r1"}},
		"of a link":    {store.Filter{AnySource: "elsewhere"}, []string{"r8"}},
		"contains":     {store.Filter{Contains: "text 1"}, []string{"r2", "r11", "r12"}},
		"no wildcards": {store.Filter{Contains: "100% _s", Limit: 1}, []string{"r1"}},
		"not a match":  {store.Filter{Contains: "1_"}, nil},
		"cites":        {store.Filter{Cites: "r3"}, []string{"r8", "r10"}},
		"cites, since": {store.Filter{Cites: "r3", From: 9}, []string{"r10"}},
		"cites nobody": {store.Filter{Cites: "r1"}, nil},
		"state":        {store.Filter{States: []memory.State{memory.Staged, memory.Held}}, []string{"r1"}},
		"since":        {store.Filter{Since: atMinute(9), Until: atMinute(11)}, []string{"r10", "r11"}},
		"from":         {store.Filter{From: 12}, []string{"r12", "r1"}},
		"to":           {store.Filter{To: 2}, []string{"r1", "r2"}},
		"beyond":       {store.Filter{From: 14}, nil},
		"all of it":    {store.Filter{Key: "k0", Principal: "p0", Source: "user", Current: true}, []string{"r1"}},
	} {
		var got []string
		for _, v := range collect(t, s.Versions(ctx, c.f)) {
			got = append(got, v.Record.ID)
		}
		same(t, name, got, c.want)
	}
}

func snapshots(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "one"))
	take := func(minute int, name string) store.Snapshot {
		t.Helper()
		snap, err := takeSnapshot(ctx, s, atMinute(minute), "ana", memory.SnapshotName{Name: name, Reason: "drill"})
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	first := take(1, "monday")
	same(t, "a snapshot", first, store.Snapshot{ID: "s1", Name: "monday", Reason: "drill", By: "ana", Seq: 2,
		At: atMinute(1)})
	putAt(t, s, 2, record("r2", "k2", "two"))
	take(3, "tuesday")
	take(4, "tuesday")
	same(t, "as of the snapshot", versionTexts(collect(t, s.AsOf(ctx, store.Point{Seq: first.Seq}))), []string{"one"})
	find := must[store.Snapshot](t)
	same(t, "by name", find(s.FindSnapshot(ctx, "monday")).ID, "s1")
	same(t, "by id", find(s.FindSnapshot(ctx, "s3")).Seq, uint64(5))
	if _, err := s.FindSnapshot(ctx, "tuesday"); err == nil || !strings.Contains(err.Error(), "s3") {
		t.Errorf("a name that two snapshots have: %v", err)
	}
	if _, err := s.FindSnapshot(ctx, "friday"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a name that none has: %v", err)
	}
	if err := errors.Join(s.Seal(ctx, "s1", []byte("root")), s.Seal(ctx, "s1", []byte("root"))); err != nil {
		t.Error(err)
	}
	same(t, "root", find(s.FindSnapshot(ctx, "s1")).Root, []byte("root"))
	if s.Seal(ctx, "s1", []byte("other")) == nil || s.Seal(ctx, "s2", nil) == nil ||
		s.Seal(ctx, "s9", []byte("x")) == nil {
		t.Error("a second root, an empty one, or one of no snapshot was accepted")
	}
}

func forgetting(t *testing.T, s *store.History) {
	secret := record("r1", "contact/ana", "Ana lives at Elm Row 4.")
	secret.Signature, secret.SignedBy, secret.Intents = []byte("sig"), "key", []string{"identity"}
	putAt(t, s, 0, secret, record("r2", "k2", "The office closes at six."))
	first := collect(t, s.Versions(ctx, store.Filter{ID: "r1"}))[0]
	changed := secret
	changed.Text = "Ana lives at Oak Lane 9."
	putAt(t, s, 1, changed)
	snap := must[store.Snapshot](t)(takeSnapshot(ctx, s, atMinute(2), "ana", memory.SnapshotName{Name: "with ana"}))

	for _, ids := range [][]string{nil, {"r9"}, {"r1", "r9"}} {
		if _, err := s.Forget(ctx, store.Forgetting{IDs: ids, At: atMinute(3)}); err == nil {
			t.Errorf("forgetting %q was accepted", ids)
		}
	}
	rec, err := s.Forget(ctx, store.Forgetting{IDs: []string{"r1", "r1"}, At: atMinute(3), By: "bo", Why: "she asked"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Forget(ctx, store.Forgetting{IDs: []string{"r1"}, At: atMinute(3)}); err == nil {
		t.Error("forgotten twice")
	}
	if _, err := s.Commit(ctx, &memory.Batch{At: atMinute(4), Records: []memory.Record{secret}}); err == nil {
		t.Error("a forgotten record was put back")
	}

	stones := must[[]store.Tombstone](t)(s.Tombstones(ctx))
	if len(stones) != 1 || len(stones[0].Erased) != 2 || stones[0].By != "bo" || stones[0].Why != "she asked" ||
		!stones[0].At.Equal(atMinute(3)) {
		t.Fatalf("tombstones: %+v", stones)
	}
	same(t, "the receipt's tombstones", rec.Tombstones, stones)
	stone := stones[0]
	if stone.Erased[0].Digest != first.Digest {
		t.Error("the tombstone does not have the digest that the version had")
	}
	for i, o := range rec.Openings {
		for j, text := range []string{secret.Text, changed.Text} {
			if stone.Proves(o, text) != (i == j) {
				t.Errorf("opening %d proves text %d: %v", i, j, !(i == j))
			}
		}
		o.Salt = bytes.Repeat([]byte{1}, store.SaltSize)
		if stone.Proves(o, secret.Text) {
			t.Error("another salt proves it too")
		}
	}

	vs := collect(t, s.Versions(ctx, store.Filter{ID: "r1"}))
	if len(vs) != 3 || vs[0].Digest != first.Digest {
		t.Fatalf("versions: %+v", vs)
	}
	for _, v := range vs {
		r := v.Record
		if !v.Forgotten || v.Salt != nil || r.Text != "" || r.Key != "" || r.Origin.Source != "" ||
			r.Lineage[0].Origin.Source != "" ||
			r.Signature != nil || r.SignedBy != "" || r.Intents != nil || r.ID != "r1" || r.Origin.Class != memory.External ||
			!v.Intact() {
			t.Errorf("a forgotten version: %+v", v)
		}
	}
	if cur := vs[2]; cur.Record.State != memory.Retired || cur.Seq != stone.Seq || cur.Cause != memory.CauseForget {
		t.Errorf("the version that forgetting made: %+v", cur)
	}
	entry := collect(t, s.Log(ctx, store.Filter{Causes: []memory.Cause{memory.CauseForget}}))[0]
	if entry.Digest != store.SumTombstones(stones) {
		t.Error("the log does not commit to the tombstone")
	}
	for name, f := range map[string]store.Filter{"text": {Contains: "lives"}, "key": {Key: "contact/ana"}} {
		if got := collect(t, s.Versions(ctx, f)); len(got) > 0 {
			t.Errorf("found by %s: %+v", name, got)
		}
	}
	if _, ok, _ := s.ByKey(ctx, "memory", "contact/ana"); ok {
		t.Error("found by key")
	}
	for _, v := range collect(t, s.AsOf(ctx, store.Point{Seq: snap.Seq})) {
		if strings.Contains(v.Record.Text, "Ana") {
			t.Error("the past still has it")
		}
	}
	same(t, "what else there is", texts(must[[]memory.Record](t)(s.Visible(ctx))), []string{"The office closes at six."})
}

func digests(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "one"), record("r2", "k2", "one"))
	before := collect(t, s.Versions(ctx, store.Filter{}))
	changed := record("r1", "k1", "one")
	changed.State = memory.Held
	putAt(t, s, 1, changed)
	after := collect(t, s.Versions(ctx, store.Filter{}))
	seen := map[store.Digest]bool{}
	for i, v := range after {
		if !v.Intact() || v.Digest != v.Sum() || len(v.Salt) != store.SaltSize || seen[v.Digest] {
			t.Errorf("version %d: %+v", v.Seq, v)
		}
		seen[v.Digest] = true
		if i < len(before) && before[i].Digest != v.Digest {
			t.Errorf("the digest of version %d changed when the next one came", v.Seq)
		}
		v.Record.Text += "."
		if v.Intact() {
			t.Error("a changed text goes unnoticed")
		}
	}
}

func fields(t *testing.T, s memory.Store) {
	trust := 0.25
	r := memory.Record{ID: "r1", Key: "k\x00\xff", Store: "s'; --",
		Text:      "zwölf Boxkämpfer \x00\xff\n" + strings.Repeat("long ", 5000),
		Origin:    memory.Origin{Class: memory.Agent, Medium: memory.Skill, Source: "a\"b"},
		Lineage:   memory.Lineage{{Segment: 3, Origin: page}, {Record: "r0", Origin: user}, {Segment: -1}},
		Principal: "*", Asked: true, Created: start.Add(time.Nanosecond), ValidFrom: start.AddDate(-900, 0, 0),
		ValidTo: start.AddDate(900, 0, 0),
		Version: 7, Parent: "r0", State: memory.Staged, Scope: memory.ContextOnly, Signature: []byte{0, 1}, SignedBy: "key-1",
		Intents: []string{}, Trust: &trust}
	putAt(t, s, 0, r)
	got, _, err := s.Get(ctx, "r1")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, got); d != "" {
		t.Errorf("a full record (-want +got):\n%s", d)
	}
	var zero memory.Record
	zero.ID = "r2"
	putAt(t, s, 0, zero)
	if got, _, err = s.Get(ctx, "r2"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(zero, got); d != "" {
		t.Errorf("an empty record (-want +got):\n%s", d)
	}
}

func stops(t *testing.T, s *store.History) {
	for i := range 5 {
		putAt(t, s, i, record(fmt.Sprint("r", i), "k", "x"))
	}
	n := 0
	for range s.Log(ctx, store.Filter{}) {
		n++
		break
	}
	for range s.Versions(ctx, store.Filter{}) {
		n++
		break
	}
	for range s.AsOf(ctx, store.Point{}) {
		n++
		break
	}
	if err := s.Each(ctx, func(*memory.Record) bool { n++; return false }); err != nil || n != 4 {
		t.Errorf("%d visits (%v), want 4", n, err)
	}
	putAt(t, s, 9, record("r9", "k", "the store still works"))
}

func groups(t *testing.T, s *store.History) {
	var rs []memory.Record
	for i := range 500 {
		rs = append(rs, record(fmt.Sprint("r", i+1), fmt.Sprint("k", i), "x"))
	}
	c := putAt(t, s, 0, rs...)
	same(t, "committed", c, memory.Committed{First: 1, Last: 500, At: atMinute(0)})
	got := collect(t, s.Versions(ctx, store.Filter{}))
	for i, v := range got {
		if v.Seq != uint64(i+1) || v.Group != 1 {
			t.Fatalf("version %d of group %d", v.Seq, v.Group)
		}
	}
	if len(got) != 500 {
		t.Errorf("%d versions", len(got))
	}
	rs[3].Text, rs[4].Key = "changed", "moved"
	if _, err := s.Commit(ctx, &memory.Batch{At: atMinute(1), Records: rs}); err == nil {
		t.Error("a batch with one bad record was accepted")
	}
	r, _, err := s.Get(ctx, "r4")
	if err != nil || r.Text != "x" {
		t.Errorf("a refused batch left %q (%v)", r.Text, err)
	}
}

func revival(t *testing.T, s *store.History) {
	r := record("r1", "k", "one")
	for i := range 6 {
		r.State = memory.Live
		if i%2 == 1 {
			r.State = memory.Retired
		}
		putAt(t, s, i, r)
		putAt(t, s, i, record(fmt.Sprint("x", i), fmt.Sprint("kx", i), "y"))
	}
	same(t, "used", must[int](t)(s.Used(ctx, "memory")), 6)
	r.State = memory.Live
	putAt(t, s, 9, r)
	got := must[[]memory.Record](t)(s.Visible(ctx))
	if len(got) != 7 || got[0].ID != "r1" {
		t.Errorf("visible: %q", texts(got))
	}
	if vs := collect(t, s.Versions(ctx, store.Filter{ID: "r1"})); len(vs) != 7 ||
		!slices.IsSortedFunc(vs, func(a, b store.Version) int { return int(a.Seq) - int(b.Seq) }) {
		t.Errorf("%d versions", len(vs))
	}
}

// failing is what a testing.T and a rapid.T have in common.
type failing interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// takeSnapshot takes a snapshot: a name for the state that the store has now. It
// costs one entry of the log and copies nothing.
func takeSnapshot(ctx context.Context, s *store.History, at time.Time, by string,
	snap memory.SnapshotName) (store.Snapshot, error) {
	c, err := s.Commit(ctx, &memory.Batch{At: at, Cause: memory.CauseSnapshot, By: by, Snapshot: &snap})
	if err != nil {
		return store.Snapshot{}, err
	}
	return s.FindSnapshot(ctx, c.Snapshot)
}
