package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// What a curator, a Memory and a Shared do with a store.
func TestCurator(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *store.History){
		"rollback":                           rollback,
		"rollback and forgetting":            rollbackForgotten,
		"undo":                               undo,
		"quarantine since a time":            quarantine,
		"retire if":                          retireIf,
		"pending, approve and reject":        decisions,
		"approving what has moved on":        movedOn,
		"the gate is told":                   told,
		"a Memory snapshots before risk":     risks,
		"a Memory learns of others' changes": others,
		"a Memory takes up what is there":    resume,
		"64 writers":                         writers,
		"rollback equals the past":           func(t *testing.T, s *store.History) { s.Close(); rollbackReplay(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			defer s.Close()
			test(t, s)
		})
	}
}

// curator's clock ticks a minute a look, from minute 100 on.
func curator(s *store.History) *store.Curator {
	minute := 99
	return store.NewCurator(s, "ana", func() time.Time { minute++; return atMinute(minute) })
}

func visible(t testing.TB, s *store.History) []string {
	t.Helper()
	return texts(must[[]memory.Record](t)(s.Visible(ctx)))
}

func with(r memory.Record, st memory.State) memory.Record {
	r.State = st
	return r
}

func rollback(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "one"), record("r2", "k2", "two"))
	c := curator(s)
	snap := must[store.Snapshot](t)(c.Snapshot(ctx, "good", "drill"))
	old := with(record("r1", "k1", "one"), memory.Retired)
	old.ValidTo = atMinute(101)
	next := record("r3", "k1", "poison")
	next.Parent, next.Version = "r1", 2
	putAt(t, s, 101, old, next)
	putAt(t, s, 102, with(record("r2", "k2", "two"), memory.Quarantined))

	out := must[store.Outcome](t)(c.Rollback(ctx, store.Point{Seq: snap.Seq}, "poisoned"))
	same(t, "outcome", out, store.Outcome{Seq: 8, Snapshot: "s2", Changed: []string{"r1", "r3", "r2"},
		Revived: []string{"r1", "r2"}})
	same(t, "visible", visible(t, s), []string{"one", "two"})
	event := collect(t, s.Log(ctx, store.Filter{From: 8, To: 8}))[0]
	event.Digest, event.At = store.Digest{}, time.Time{}
	same(t, "the event", event, store.Audit{Seq: 8, Group: 8, Cause: memory.CauseRollback, Route: memory.RouteOperator,
		By: "ana", Why: "poisoned", Snapshot: "s2", Target: snap.Seq})
	same(t, "the log keeps what was", len(collect(t, s.Log(ctx, store.Filter{}))), 11)
	r3, _, _ := s.Get(ctx, "r3")
	if r3.State != memory.Retired || !r3.ValidTo.Equal(r3.ValidFrom) {
		t.Errorf("what came later: %+v; it should count as never having held", r3)
	}
	same(t, "of that minute, as known now", versionTexts(collect(t, s.AsOf(ctx, store.Point{Fact: atMinute(101)}))),
		[]string{"one", "two"})
	same(t, "of that minute, as known then", versionTexts(collect(t,
		s.AsOf(ctx, store.Point{Seq: 6, Fact: atMinute(101)}))), []string{"poison"})

	// The rollback is a change like any other: it can be taken back.
	must[store.Outcome](t)(c.Rollback(ctx, store.Point{Seq: 7}, "no, it was right"))
	same(t, "visible after going forward again", visible(t, s), []string{"poison"})
	must[store.Outcome](t)(c.Rollback(ctx, store.Point{System: atMinute(100)}, "by time"))
	same(t, "visible after going back by time", visible(t, s), []string{"one", "two"})
	out = must[store.Outcome](t)(c.Rollback(ctx, store.Point{System: atMinute(1000)}, "nothing came later"))
	if len(out.Changed) > 0 || out.Seq == 0 {
		t.Errorf("a rollback with nothing to do: %+v", out)
	}
	for _, p := range []store.Point{{}, {Seq: 1 << 40}, {Fact: atMinute(1)}} {
		if _, err := c.Rollback(ctx, p, ""); err == nil {
			t.Errorf("rolling back to %+v was accepted", p)
		}
	}
	must[store.Outcome](t)(c.Rollback(ctx, store.Point{System: atMinute(-1)}, "to before everything"))
	same(t, "visible before everything", visible(t, s), []string{})
}

func rollbackForgotten(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "secret"), record("r2", "k2", "two"))
	c := curator(s)
	snap := must[store.Snapshot](t)(c.Snapshot(ctx, "", ""))
	must[store.Receipt](t)(c.Forget(ctx, "asked for", "r1"))
	out := must[store.Outcome](t)(c.Rollback(ctx, store.Point{Seq: snap.Seq}, "drill"))
	if len(out.Changed) > 0 || len(out.Kept) != 1 || out.Kept[0].Record != "r1" {
		t.Errorf("outcome %+v: what was forgotten stays forgotten", out)
	}
	same(t, "visible", visible(t, s), []string{"two"})
	if _, err := c.Undo(ctx, snap.Seq+1, "drill"); err == nil || !strings.Contains(err.Error(), "cannot be undone") {
		t.Error("a forgetting was undone:", err)
	}
}

func undo(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "one"), record("r2", "k2", "two"), record("r3", "k3", "three"))
	c := curator(s)
	out := must[store.Outcome](t)(c.Quarantine(ctx, store.Suspicion{IDs: []string{"r1", "r2"}}, "drill"))
	putAt(t, s, 200, with(record("r2", "k2", "two, changed"), memory.Held))
	back := must[store.Outcome](t)(c.Undo(ctx, out.Seq, "false alarm"))
	if !slices.Equal(back.Changed, []string{"r1"}) || len(back.Kept) != 1 || back.Kept[0].Record != "r2" {
		t.Errorf("undone: %+v", back)
	}
	same(t, "visible", visible(t, s), []string{"one", "three"})
	must[store.Outcome](t)(c.Undo(ctx, back.Seq, "no alarm was false"))
	same(t, "visible after undoing the undoing", visible(t, s), []string{"three"})
	must[store.Outcome](t)(c.Undo(ctx, 1, "the very first"))
	same(t, "visible once the first group is undone", visible(t, s), []string{})
	for _, seq := range []uint64{2, 9999} {
		if _, err := c.Undo(ctx, seq, ""); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("undoing from entry %d, where no group begins: %v", seq, err)
		}
	}
}

func quarantine(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "the account is A"), record("r2", "k2", "old"))
	chain := func(minute int, from, to, text string) {
		old, _, _ := s.Get(ctx, from)
		old.State = memory.Retired
		r := record(to, "k1", text)
		r.Parent = from
		putAt(t, s, minute, old, r)
	}
	chain(10, "r1", "r3", "the account is B")
	chain(11, "r3", "r4", "the account is C")
	putAt(t, s, 12, record("r5", "system.rule", "protected"), with(record("r6", "k6", "held"), memory.Held),
		record("r7", "k7", "harmless"))
	c := curator(s)
	rule := store.Suspicion{Since: atMinute(10), Protected: []string{"system.*"}, Restore: true,
		If: func(v store.Version) bool { return v.Record.Text != "harmless" }}
	out := must[store.Outcome](t)(c.Quarantine(ctx, rule, "compromised at minute 10"))
	same(t, "changed", out.Changed, []string{"r4", "r6", "r1"})
	same(t, "revived", out.Revived, []string{"r1"})
	if len(out.Kept) != 1 || out.Kept[0].Record != "r5" {
		t.Errorf("kept %+v", out.Kept)
	}
	same(t, "visible", visible(t, s), []string{"the account is A", "old", "protected", "harmless"})
	same(t, "the snapshot before it", versionTexts(collect(t,
		s.AsOf(ctx, store.Point{Seq: out.Seq - 1, Fact: atMinute(50)}))),
		[]string{"old", "the account is C", "protected", "harmless"})
	must[store.Outcome](t)(c.Undo(ctx, out.Seq, "false alarm"))
	same(t, "visible once it is undone", visible(t, s), []string{"old", "the account is C", "protected", "harmless"})
	if _, err := c.Quarantine(ctx, store.Suspicion{IDs: []string{"r99"}}, ""); !errors.Is(err, memory.ErrNotFound) {
		t.Error("quarantining a record that is not there:", err)
	}
	out = must[store.Outcome](t)(c.Quarantine(ctx, store.Suspicion{IDs: []string{"r4"}}, "without bringing anything back"))
	same(t, "visible without restoring", visible(t, s), []string{"old", "protected", "harmless"})
}

func retireIf(t *testing.T, s *store.History) {
	for i := range 6 {
		putAt(t, s, i, record(fmt.Sprint("r", i), fmt.Sprint("k.", i), fmt.Sprint("text ", i)))
	}
	putAt(t, s, 7, with(record("r6", "k.6", "text 6"), memory.Retired))
	c := curator(s)
	asked := 0
	out := must[store.Outcome](t)(c.RetireIf(ctx, store.Retirement{Protected: []string{"*.1"},
		If: func(r memory.Record) (bool, error) {
			asked++
			r.Lineage[0].Segment = 99 // must not reach the store
			switch r.ID {
			case "r2":
				return true, errors.New("cannot tell")
			case "r3":
				panic("oh")
			case "r4":
				return false, nil
			}
			return true, nil
		}}, "expired"))
	same(t, "changed", out.Changed, []string{"r0", "r5"})
	kept := map[string]string{}
	for _, k := range out.Kept {
		kept[k.Record] = k.Why
	}
	same(t, "kept", kept, map[string]string{"r1": `its key "k.1" is protected`, "r2": "the predicate failed: cannot tell",
		"r3": "the predicate failed: panic: oh"})
	if asked != 5 {
		t.Errorf("the predicate was asked %d times, want 5", asked)
	}
	same(t, "visible", visible(t, s), []string{"text 1", "text 2", "text 3", "text 4"})
	if r, _, _ := s.Get(ctx, "r4"); r.Lineage[0].Segment != 1 {
		t.Error("the predicate changed a record")
	}
	snap := must[store.Snapshot](t)(s.FindSnapshot(ctx, out.Snapshot))
	event := collect(t, s.Log(ctx, store.Filter{From: out.Seq, To: out.Seq}))[0]
	if event.Snapshot != snap.ID || snap.Seq != out.Seq-1 || event.Why != "expired" {
		t.Errorf("event %+v, snapshot %+v", event, snap)
	}
	must[store.Outcome](t)(c.Rollback(ctx, store.Point{Seq: snap.Seq}, "too eager"))
	same(t, "visible after going back", len(visible(t, s)), 6)
	if _, err := c.RetireIf(ctx, store.Retirement{}, ""); err == nil {
		t.Error("no predicate was accepted")
	}
}

// waiting are the records that wait for a decision.
func waiting(t *testing.T, s *store.History) (out []store.Version) {
	t.Helper()
	for v, err := range s.Versions(ctx, store.Filter{States: []memory.State{memory.Staged, memory.Held}, Current: true}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func decisions(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k1", "the account is A"))
	repl := with(record("r2", "k1", "the account is B"), memory.Held)
	repl.Parent, repl.ValidFrom = "r1", atMinute(5)
	putAt(t, s, 5, repl)
	putAt(t, s, 6, with(record("r3", "k3", "staged"), memory.Staged))
	c := curator(s)
	pending := func() (ids []string) {
		for _, v := range waiting(t, s) {
			ids = append(ids, v.Record.ID)
		}
		return ids
	}
	same(t, "pending", pending(), []string{"r2", "r3"})
	r := must[memory.Record](t)(c.Approve(ctx, "r2", store.Approval{Why: "the supplier confirmed it"}))
	if r.State != memory.Live {
		t.Errorf("approved: %+v", r)
	}
	same(t, "visible", visible(t, s), []string{"the account is B", "staged"})
	old, _, _ := s.Get(ctx, "r1")
	if old.State != memory.Retired || !old.ValidTo.Equal(atMinute(5)) {
		t.Errorf("what it replaced: %+v", old)
	}
	must[memory.Record](t)(c.Reject(ctx, "r3", "nobody knows it"))
	same(t, "pending when all is decided", len(pending()), 0)
	same(t, "visible", visible(t, s), []string{"the account is B"})
	var said []string
	for _, a := range collect(t, s.Log(ctx, store.Filter{Causes: []memory.Cause{memory.CauseApprove,
		memory.CauseReject}})) {
		said = append(said, fmt.Sprint(a.Cause, " ", a.Record, " ", a.By, ": ", a.Why))
	}
	same(t, "the log", said, []string{"approve r1 ana: the supplier confirmed it",
		"approve r2 ana: the supplier confirmed it", "reject r3 ana: nobody knows it"})
	for _, id := range []string{"r2", "r3", "r99"} {
		_, err1 := c.Approve(ctx, id, store.Approval{})
		_, err2 := c.Reject(ctx, id, "")
		if err1 == nil || err2 == nil {
			t.Errorf("deciding about %s: %v, %v", id, err1, err2)
		}
	}
}

func movedOn(t *testing.T, s *store.History) {
	putAt(t, s, 0, record("r1", "k", "A"))
	repl := with(record("r2", "k", "B"), memory.Held)
	repl.Parent = "r1"
	putAt(t, s, 1, repl)
	putAt(t, s, 2, with(record("r1", "k", "A"), memory.Retired), record("r3", "k", "C"))
	c := curator(s)
	if _, err := c.Approve(ctx, "r2", store.Approval{}); !errors.Is(err, memory.ErrMovedOn) {
		t.Errorf("approving over what its author never saw: %v", err)
	}
	same(t, "visible", visible(t, s), []string{"C"})
	for name, amend := range map[string]func(*memory.Record) error{
		"text":  func(r *memory.Record) error { r.Text = "D"; return nil },
		"state": func(r *memory.Record) error { r.State = memory.Staged; return nil },
		"error": func(*memory.Record) error { return errors.New("no key") },
	} {
		if _, err := c.Approve(ctx, "r2", store.Approval{Anyway: true, Amend: amend}); err == nil {
			t.Errorf("amending: %s was accepted", name)
		}
	}
	r := must[memory.Record](t)(c.Approve(ctx, "r2", store.Approval{Anyway: true, Amend: func(r *memory.Record) error {
		r.Scope, r.SignedBy, r.Signature = memory.PlanningAllowed, "k2", []byte{1}
		return nil
	}}))
	if r.Scope != memory.PlanningAllowed || r.SignedBy != "k2" {
		t.Errorf("amended: %+v", r)
	}
	same(t, "visible", visible(t, s), []string{"B"})
}

// spy is a gate that notes what it is told and gives the verdict that a test wants.
type spy struct {
	memory.Open
	verdict func(memory.Proposal) memory.Verdict
	view    memory.View
	told    []string
}

func (g *spy) Write(_ context.Context, p memory.Proposal) (memory.Verdict, error) {
	if g.verdict == nil {
		return memory.Verdict{}, nil
	}
	return g.verdict(p), nil
}

func (g *spy) Committed(c memory.Change) {
	s := fmt.Sprint(c.Op, " ", c.Record.ID, " ", c.Record.State)
	if c.Prior != nil {
		s += " after " + c.Prior.ID
	}
	g.told = append(g.told, s)
}

func (g *spy) heard() []string {
	out := g.told
	g.told = nil
	return out
}

func newMemory(s *store.History, g memory.Gate) *memory.Memory {
	m := memory.New(memory.Options{Store: s, Start: atMinute(50), Stores: []memory.StoreSpec{
		{Name: "memory", Title: "MEMORY.md"}, {Name: "skills", Title: "skills", Kind: memory.Skills}}})
	m.Guard(g)
	return m
}

func write(t testing.TB, m *memory.Memory, d memory.Draft) {
	t.Helper()
	if d.Store == "" {
		d.Store = "memory"
	}
	if _, err := m.Write(ctx, d); err != nil {
		t.Fatal(err)
	}
}

func told(t *testing.T, s *store.History) {
	g := &spy{verdict: func(p memory.Proposal) memory.Verdict {
		if strings.Contains(p.Record.Text, "hold") {
			return memory.Verdict{Action: memory.Defer, Held: true,
				Findings: []memory.Finding{{Check: "a"}, {Check: "b"}, {Check: "a"}}}
		}
		return memory.Verdict{}
	}}
	m := newMemory(s, g)
	write(t, m, memory.Draft{Text: "one"})
	write(t, m, memory.Draft{Text: "hold this"})
	write(t, m, memory.Draft{Text: "hold that"})
	same(t, "told of writes", g.heard(), []string{"add r1 live", "add r2 held", "add r3 held"})
	c := curator(s)
	same(t, "why it is pending", waiting(t, s)[0].Why, "defer: a, b")
	must[memory.Record](t)(c.Approve(ctx, "r2", store.Approval{}))
	must[memory.Record](t)(c.Reject(ctx, "r3", ""))
	write(t, m, memory.Draft{Text: "next"})
	same(t, "told of decisions", g.heard(), []string{"replace r2 live after r2", "remove r3 retired after r3",
		"add r4 live"})
	q := must[store.Outcome](t)(c.Quarantine(ctx, store.Suspicion{IDs: []string{"r1"}}, ""))
	must[store.Outcome](t)(c.Undo(ctx, q.Seq, ""))
	must[store.Receipt](t)(c.Forget(ctx, "", "r1"))
	write(t, m, memory.Draft{Text: "two"})
	same(t, "told of acts", g.heard(), []string{"replace r1 quarantined after r1", "replace r1 live after r1",
		"remove r1 retired after r1", "add r5 live"})
	if err := m.Withdraw(ctx, "r5", "its owner said so"); err != nil {
		t.Fatal(err)
	}
	same(t, "told of a withdrawal", g.heard(), []string{"remove r5 retired after r5"})
	write(t, m, memory.Draft{Text: "three"})
	same(t, "told once only", g.heard(), []string{"add r6 live"})
}

func risks(t *testing.T, s *store.History) {
	block := false
	g := &spy{verdict: func(memory.Proposal) memory.Verdict {
		if block {
			return memory.Verdict{Action: memory.Block}
		}
		return memory.Verdict{}
	}}
	m := newMemory(s, g)
	reasons := func() []string {
		out := []string{}
		for _, snap := range must[[]store.Snapshot](t)(s.Snapshots(ctx)) {
			out = append(out, snap.Reason)
		}
		return out
	}
	write(t, m, memory.Draft{Text: "one"})
	if _, err := m.Take(ctx, page, 1, "The page says many things.\nIt says them twice."); err != nil {
		t.Fatal(err)
	}
	write(t, m, memory.Draft{Text: "The page says many things."})
	same(t, "without risk", reasons(), []string{})
	last := must[uint64](t)(s.Last(ctx))
	block = true
	batch := memory.Draft{Route: memory.RouteFlush, Text: "The page says many things.\nIt says them twice."}
	write(t, m, batch)
	same(t, "a blocked batch leaves nothing in the log", must[uint64](t)(s.Last(ctx)), last)
	block = false
	write(t, m, batch)
	same(t, "an external batch", reasons(), []string{"external batch"})
	write(t, m, memory.Draft{Route: memory.RouteCompaction, Text: "Summary."})
	m.NextSession()
	write(t, m, memory.Draft{Text: "two"})
	write(t, m, memory.Draft{Text: "three"})
	same(t, "all", reasons(), []string{"external batch", "compaction", "session start"})
	snap := must[store.Snapshot](t)(s.FindSnapshot(ctx, "s3"))
	var before []string
	for v := range s.AsOf(ctx, store.Point{Seq: snap.Seq}) {
		before = append(before, v.Record.Text)
	}
	same(t, "the session's snapshot", before[len(before)-1], "Summary.")
}

func others(t *testing.T, s *store.History) {
	g := &spy{}
	m := newMemory(s, g)
	write(t, m, memory.Draft{Text: "one"})
	g.heard()
	putAt(t, s, 90, with(record("x1", "k", "held by somebody"), memory.Held))
	if _, err := curator(s).Approve(ctx, "x1", store.Approval{}); err != nil {
		t.Fatal(err)
	}
	write(t, m, memory.Draft{Text: "two"})
	same(t, "told", g.heard(), []string{"add x1 held", "replace x1 live after x1", "add r2 live"})
	write(t, m, memory.Draft{Text: "three"})
	same(t, "told once only", g.heard(), []string{"add r3 live"})
}

func resume(t *testing.T, s *store.History) {
	r := record("r1", "k1", "one")
	r.Lineage[0].Segment = 41
	putAt(t, s, 0, r, with(record("r2", "k2", "two"), memory.Retired), with(record("r3", "k3", "three"), memory.Held))
	g := &spy{}
	m := newMemory(s, g)
	if err := m.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, "told", g.heard(), []string{"add r1 live", "add r3 held"})
	seg, err := m.Take(ctx, user, 1, "I like tea.")
	if err != nil || seg.ID != 42 {
		t.Errorf("segment %d (%v): the numbers of segments are not used again", seg.ID, err)
	}
	write(t, m, memory.Draft{Text: "I like tea."})
	same(t, "told of the write alone", g.heard(), []string{"add r4 live"})
}

// writers has 64 goroutines write through one Shared while others read and curate.
func writers(t *testing.T, s *store.History) {
	const n, each = 64, 6
	g := &spy{}
	shared := memory.NewShared(memory.Options{Store: s, Start: atMinute(0), Recall: memory.RecallSpec{BM25: 1},
		Stores: []memory.StoreSpec{{Name: "memory", Title: "MEMORY.md"}}})
	g.view = shared.View()
	shared.Guard(g)
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			session := shared.Session(fmt.Sprint("user-", w))
			for i := range each {
				text := fmt.Sprintf("Writer %d says number %d.", w, i)
				err := session.Do(ctx, func(m *memory.Memory) error {
					if _, err := m.Take(ctx, user, 1, text); err != nil {
						return err
					}
					_, err := m.Write(ctx, memory.Draft{Route: memory.RouteMemoryTool, Store: "memory", Text: text})
					return err
				})
				if err != nil {
					t.Error(err)
				}
				err = session.Do(ctx, func(m *memory.Memory) error {
					got, err := m.Search(ctx, memory.Query{Text: text, K: 400})
					if err == nil && len(got) == 0 {
						err = errors.New("what was written is not found")
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			if _, err := store.NewCurator(s, "ana", nil).Snapshot(ctx, fmt.Sprint("after ", w), "drill"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for v := range s.Versions(ctx, store.Filter{}) {
		seen[v.Record.Principal+v.Record.Text] = true
	}
	if len(seen) != n*each || len(g.told) != n*each {
		t.Errorf("%d records, %d told of, want %d", len(seen), len(g.told), n*each)
	}
}

// rollbackReplay checks, over random changes, that a rollback to any point gives the
// state of that point again, but for what was forgotten and what came later.
func rollbackReplay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := fresh(t)
		defer s.Close()
		var m model
		for range rapid.IntRange(1, 20).Draw(rt, "changes") {
			m.step(rt, s)
		}
		seq := rapid.Uint64Range(1, uint64(len(m.log))).Draw(rt, "back to")
		var want []string
		for _, r := range m.asOf(store.Point{Seq: seq}) {
			if r.State.Visible() && !m.forgotten(r.ID) {
				want = append(want, r.ID+r.Text)
			}
		}
		out, err := curator(s).Rollback(ctx, store.Point{Seq: seq}, "drill")
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		rs, err := s.Visible(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		for _, r := range rs {
			got = append(got, r.ID+r.Text)
		}
		same(rt, "visible", got, want)
		if last, _ := s.Last(ctx); last != uint64(len(m.log)+2+len(out.Changed)) {
			rt.Errorf("the log has %d entries after a rollback of %d records from %d", last, len(out.Changed), len(m.log))
		}
	})
}

// While a person decides nobody else makes anything live under the key: not in this
// process, nor in another.
func TestNothingComesBetweenAnApproval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s, other := open(t, path), open(t, path)
	putAt(t, s, 0, record("r1", "k", "A"))
	for _, id := range []string{"r2", "r3"} {
		repl := with(record(id, "k", id), memory.Held)
		repl.Parent = "r1"
		putAt(t, s, 1, repl)
	}
	var behind sync.WaitGroup
	var second error
	once := sync.OnceFunc(func() {
		done := make(chan struct{})
		behind.Go(func() {
			defer close(done)
			_, second = curator(other).Approve(ctx, "r3", store.Approval{})
		})
		select { // where the other must wait, it comes behind us
		case <-done:
		case <-time.After(300 * time.Millisecond):
		}
	})
	_, first := store.NewCurator(s, "ana", func() time.Time { once(); return start }).Approve(ctx, "r2", store.Approval{})
	behind.Wait()
	if (first == nil) == (second == nil) || !errors.Is(errors.Join(first, second), memory.ErrMovedOn) {
		t.Errorf("approved: %v, %v", first, second)
	}
	if live := visible(t, s); len(live) != 1 {
		t.Errorf("live under one key: %q", live)
	}
}

// between acts while its gate is asked about a write.
type between struct {
	memory.Open
	act func()
}

func (b between) Write(context.Context, memory.Proposal) (memory.Verdict, error) {
	b.act()
	return memory.Verdict{}, nil
}

// What a person approves while the agent's own replacement is judged stands: the agent is
// told that it has come too late.
func TestAnApprovalComesBetweenAWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s, other := open(t, path), open(t, path)
	old := record("r1", "k", "A")
	repl := with(record("r2", "k", "B"), memory.Held)
	repl.Parent = "r1"
	putAt(t, s, 0, old)
	putAt(t, s, 1, repl)
	m := memory.New(memory.Options{Stores: []memory.StoreSpec{{Name: old.Store}}, Store: s, Principal: old.Principal})
	m.Guard(between{act: func() {
		if _, err := curator(other).Approve(ctx, "r2", store.Approval{}); err != nil {
			t.Error(err)
		}
	}})
	_, err := m.Write(ctx, memory.Draft{Route: memory.RouteMemoryTool, Op: memory.Replace, Store: old.Store, Record: "r1", Text: "C"})
	if !errors.Is(err, memory.ErrMovedOn) {
		t.Errorf("the agent is told: %v", err)
	}
	same(t, "visible", visible(t, s), []string{"B"})
}

// A journal that is shorter than this process has seen it is no journal to go on with.
func TestAJournalThatLostItsEndIsNotWrittenTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := open(t, path)
	putAt(t, s, 0, record("r1", "k", "A"))
	putAt(t, s, 1, record("r2", "l", "B"))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{"DELETE FROM version WHERE seq = 2", "DELETE FROM entry WHERE seq = 2", "UPDATE state SET last = 1, records = 1"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	r := record("r3", "m", "C")
	if _, err := s.Commit(ctx, &memory.Batch{At: start, Records: []memory.Record{r}}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("writing goes on: %v", err)
	}
}
