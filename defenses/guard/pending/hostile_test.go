package pending_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
)

// What is decided while somebody else decides is decided once: who comes second is told.
func TestNobodyDecidesInBetween(t *testing.T) {
	t.Run("taken back while it passes", func(t *testing.T) {
		f := newFixture(t, pending.Options{})
		other := f.other()
		id := f.is(pending.Waits, transfer(right))
		f.approve(id, dana)
		var a pending.Answer
		f.once = func() { a, _ = other.Ask(ctx, transfer(right)) }
		_, err := f.Reject(ctx, id, dana)
		f.behind.Wait()
		if passed := a.State == pending.Passes; passed != errors.Is(err, store.ErrDecided) || !passed && err != nil {
			t.Errorf("the person is told %v, and it %s", err, a.State)
		}
	})
	t.Run("passes while it is taken back", func(t *testing.T) {
		f := newFixture(t, pending.Options{})
		other := f.other()
		id := f.is(pending.Waits, transfer(right))
		f.approve(id, dana)
		var err error
		f.once = func() { _, err = other.Reject(ctx, id, dana) }
		a, failed := f.Ask(ctx, transfer(right))
		f.behind.Wait()
		switch {
		case failed != nil:
			t.Error(failed)
		case err == nil:
			if a.State != pending.Refused {
				t.Errorf("taken back, and then it %s", a.State)
			}
			f.is(pending.Refused, transfer(right)) // and stays so
		case a.State != pending.Passes || !errors.Is(err, store.ErrDecided):
			t.Errorf("it %s, the person is told %v", a.State, err)
		}
	})
	t.Run("approved twice", func(t *testing.T) {
		f := newFixture(t, pending.Options{})
		other, agents := f.other(), f.other()
		id := f.is(pending.Waits, transfer(right))
		passes := 0
		ask := func() {
			if a, err := agents.Ask(ctx, transfer(right)); err != nil {
				t.Error(err)
			} else if a.State == pending.Passes {
				passes++
			}
		}
		var second error
		f.once = func() {
			if _, second = other.Approve(ctx, id, dana); second == nil {
				ask()
			}
		}
		_, first := f.Approve(ctx, id, dana)
		f.behind.Wait()
		ask()
		ask()
		if passes != 1 || (first == nil) == (second == nil) {
			t.Errorf("it passed %d times; approved: %v, %v", passes, first, second)
		}
	})
	t.Run("refused while it is approved", func(t *testing.T) {
		f := newFixture(t, pending.Options{})
		other := f.other()
		id := f.is(pending.Waits, transfer(right))
		var refused error
		f.once = func() { _, refused = other.Reject(ctx, id, dana) }
		_, approved := f.Approve(ctx, id, dana)
		f.behind.Wait()
		want := pending.Refused
		if refused != nil {
			want = pending.Passes
		}
		if approved != nil && refused != nil {
			t.Errorf("%v, %v", approved, refused)
		}
		f.is(want, transfer(right))
	})
}

// setBack gives a record another version in another state, as it was signed.
func (f *fixture) setBack(id string, to memory.State) {
	f.Helper()
	r, ok, err := f.file.Get(ctx, id)
	if err != nil || !ok {
		f.Fatal(ok, err)
	}
	r.State, r.ValidTo = to, time.Time{}
	if _, err := f.file.Commit(ctx, &memory.Batch{At: f.now, Cause: memory.CauseApprove, Records: []memory.Record{r}}); err != nil {
		f.Fatal(err)
	}
}

// rewrite changes the newest version of a record where it stands, with all that needs no key.
func (f *fixture) rewrite(id string, to memory.State) {
	f.Helper()
	var last store.Version
	for v, err := range f.file.Versions(ctx, store.Filter{ID: id, Current: true}) {
		if err != nil {
			f.Fatal(err)
		}
		last = v
	}
	last.Record.State, last.Record.ValidTo = to, time.Time{}
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	sum := last.Sum()
	for _, x := range []struct {
		query string
		args  []any
	}{
		{"UPDATE version SET record = ?, state = ? WHERE seq = ?", []any{last.Record.AppendCanonical(nil), int64(to), int64(last.Seq)}},
		{"UPDATE entry SET digest = ? WHERE seq = ?", []any{sum[:], int64(last.Seq)}},
	} {
		if _, err := db.Exec(x.query, x.args...); err != nil {
			f.Fatal(err)
		}
	}
}

// Whoever can write the file, and has no key, brings back no agreement that was used or
// taken back.
func TestAnAgreementDoesNotComeBack(t *testing.T) {
	for how, back := range map[string]func(f *fixture, id string){
		"a new version": func(f *fixture, id string) { f.setBack(id, memory.Live) },
		"an old one":    func(f *fixture, id string) { f.rewrite(id, memory.Live) },
		"undone": func(f *fixture, id string) {
			last, err := f.file.Last(ctx)
			if err != nil {
				f.Fatal(err)
			}
			if _, err := store.NewCurator(f.file, "the agent", nil).Undo(ctx, last, "trust me"); err != nil {
				f.Fatal(err)
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t, pending.Options{})
			used := f.is(pending.Waits, transfer(right))
			f.approve(used, dana)
			f.is(pending.Passes, transfer(right))
			back(f, used)
			if next := f.is(pending.Waits, transfer(right)); next == used {
				t.Error("it waits under the number that was used up")
			}

			f.approve(f.is(pending.Waits, transfer("1")), pending.Decision{By: "dana", Why: "ours", Source: true})
			rule := f.is(pending.Passes, transfer("2"))
			f.is(pending.Passes, transfer("1")) // its own approval is used up by the rule, or by it
			f.reject(rule)
			back(f, rule)
			f.is(pending.Waits, transfer("4"))
			if _, stands := f.list(); slices.ContainsFunc(stands, func(e pending.Entry) bool { return e.Kind == "source" }) {
				t.Errorf("it is listed: %+v", stands)
			}
		})
	}
	// A refusal that a person turns round is an agreement of its own.
	f := newFixture(t, pending.Options{})
	id := f.is(pending.Waits, transfer(right))
	for range 3 {
		f.approve(id, dana)
		f.reject(id)
	}
	f.setBack(id, memory.Live)
	f.is(pending.Waits, transfer(right))
}

// What no person could look through is not held, however it is said, and soon known.
func TestNothingLongIsHeld(t *testing.T) {
	f := newFixture(t, pending.Options{})
	act := func(args ...memory.Arg) {
		t.Helper()
		v := memory.Verdict{Action: memory.Defer}
		for _, a := range args {
			v.Findings = append(v.Findings, memory.Finding{Check: "x", Note: "only an outside source says so", Argument: a.Name, Value: a.Value})
		}
		v, held, err := f.Act(ctx, "conversation 1", &memory.Call{Tool: "transfer", Args: args}, v)
		if err != nil || held.State != pending.Full || v.Action != memory.Block {
			t.Errorf("%v %v %v", v.Action, held, err)
		}
	}
	var links memory.Lineage
	for i := range 100_000 {
		links = append(links, memory.Link{Origin: memory.Origin{Source: fmt.Sprint("source ", i)}})
	}
	act(memory.Arg{Name: "account", Value: "1", Lineage: links})
	act(memory.Arg{Name: "account", Value: "1", Lineage: memory.Lineage{{Origin: memory.Origin{Source: strings.Repeat("s", 1<<20)}}}})
	var args []memory.Arg
	for range 50_000 {
		args = append(args, memory.Arg{})
	}
	act(args...)
	for i := range args {
		args[i] = memory.Arg{Name: fmt.Sprint(i), Value: "x"}
	}
	act(args...)
	if waits, _ := f.list(); len(waits) > 0 {
		t.Errorf("%d are held", len(waits))
	}
}

// What would be remembered and what would be done have rooms of their own.
func TestAFloodOfEntriesHidesNoCall(t *testing.T) {
	f := newFixture(t, pending.Options{Most: 3})
	for i := range 5 {
		id := fmt.Sprint("r", 100+i)
		if _, err := f.file.Commit(ctx, &memory.Batch{At: f.now, Cause: memory.CauseWrite, Records: []memory.Record{{ID: id, Store: "memory",
			Key: id, Text: "noise", State: memory.Staged, Version: 1, Created: f.now, ValidFrom: f.now}}}); err != nil {
			t.Fatal(err)
		}
	}
	write := transfer(right)
	write.Write, write.Tool = true, "add"
	f.is(pending.Full, write)
	for i := range 3 {
		f.is(pending.Waits, transfer(fmt.Sprint(i)))
	}
	f.is(pending.Full, transfer("3"))
	if room, err := f.Room(ctx); err != nil || room {
		t.Errorf("room: %v, %v", room, err)
	}
}

// fromSource is a proposal to remember something from there.
func fromSource(o memory.Origin, op memory.Op, prior *memory.Record) *memory.Proposal {
	return &memory.Proposal{Op: op, Prior: prior, Record: memory.Record{ID: "r7", Store: "memory", Key: "memory/r7",
		Text: "The office is in Lund.", Origin: o, Principal: "dana"}}
}

var deferred = memory.Verdict{Action: memory.Defer, Findings: []memory.Finding{{Check: "source_class", Note: "it is from outside"}}}

func (f *fixture) write(want pending.State, p *memory.Proposal, v memory.Verdict) string {
	f.Helper()
	_, held, err := f.Write(ctx, "conversation 1", p, v, func(r memory.Record) memory.Record { return r })
	if err != nil || held.State != want {
		f.Errorf("%v from %v: it %s (%v), want %s", p.Op, p.Record.Origin, held.State, err, want)
	}
	return held.ID
}

// A write that a person agreed to was from where it was from; an approved source is enough
// for what it adds, and neither for what takes the place of another's nor for a threat.
func TestAnAgreementToAWriteIsAboutItsSource(t *testing.T) {
	f := newFixture(t, pending.Options{})
	eve := memory.Origin{Class: memory.External, Medium: memory.Email, Source: "eve@other.example"}
	id := f.write(pending.Waits, fromSource(brandt, memory.Add, nil), deferred)
	f.approve(id, dana)
	f.write(pending.Waits, fromSource(eve, memory.Add, nil), deferred)
	two := fromSource(brandt, memory.Add, nil)
	two.Record.Lineage = memory.Lineage{{Origin: brandt}, {Origin: eve}}
	f.write(pending.Waits, two, deferred)
	f.write(pending.Passes, fromSource(brandt, memory.Add, nil), deferred)

	d := dana
	d.Source = true
	f.approve(f.write(pending.Waits, fromSource(brandt, memory.Add, nil), deferred), d)
	f.write(pending.Passes, fromSource(brandt, memory.Add, nil), deferred)
	f.write(pending.Passes, fromSource(brandt, memory.Add, nil), deferred)
	f.write(pending.Waits, two, deferred)
	own := memory.Record{ID: "r3", Text: "The office is in Oslo.", Origin: memory.Origin{Class: memory.User}}
	theirs := memory.Record{ID: "r4", Text: "The office is in Oslo.", Origin: brandt}
	f.write(pending.Waits, fromSource(brandt, memory.Replace, &own), deferred)
	f.write(pending.Passes, fromSource(brandt, memory.Replace, &theirs), deferred)
	f.write(pending.Waits, fromSource(brandt, memory.Remove, &own), deferred)
	threat := deferred
	threat.Action = memory.Quarantine
	f.write(pending.Waits, fromSource(brandt, memory.Add, nil), threat)
}

// Words of which nobody knows where from have no source that could be approved, and what
// has expired, or was withheld after an incident, is not approved by its number.
func TestWhatCannotBeApproved(t *testing.T) {
	f := newFixture(t, pending.Options{Keep: time.Hour})
	lost := transfer(right)
	lost.Sources = []memory.Origin{pending.Forgotten}
	id := f.is(pending.Waits, lost)
	if waits, _ := f.list(); waits[0].Rule != "" {
		t.Errorf("it offers %q", waits[0].Rule)
	}
	if _, err := f.Approve(ctx, id, pending.Decision{Source: true}); !errors.Is(err, pending.ErrNoSource) {
		t.Errorf("its source: %v", err)
	}
	if _, err := f.Approve(ctx, f.is(pending.Waits, lost), dana); err != nil {
		t.Error(err)
	}
	id = f.is(pending.Waits, transfer("1"))
	f.now = f.now.Add(time.Hour)
	if _, err := f.Approve(ctx, id, dana); !errors.Is(err, store.ErrDecided) || !strings.Contains(fmt.Sprint(err), "expired") {
		t.Errorf("what has expired: %v", err)
	}
	r := memory.Record{ID: "r900", Store: "memory", Key: "k", Text: "noise", State: memory.Quarantined, Version: 1, Created: f.now,
		ValidFrom: f.now}
	if _, err := f.file.Commit(ctx, &memory.Batch{At: f.now, Cause: memory.CauseQuarantine, Records: []memory.Record{r}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Approve(ctx, "r900", dana); !errors.Is(err, store.ErrDecided) {
		t.Errorf("what an incident withheld: %v", err)
	}
}

// What passes by an approved source is in the journal, in brief: an agent does not fill the
// disk with it.
func TestWhatPassesUnaskedIsKeptInBrief(t *testing.T) {
	f := newFixture(t, pending.Options{})
	f.approve(f.is(pending.Waits, transfer(right)), pending.Decision{By: "dana", Why: "ours", Source: true})
	long := transfer("FR7")
	long.Args[2].Value = strings.Repeat("long ", 5000)
	f.is(pending.Passes, long)
	for v, err := range f.file.Versions(ctx, store.Filter{Store: pending.CallStore, States: []memory.State{memory.Retired}}) {
		if err != nil {
			t.Fatal(err)
		}
		if n := len(v.Record.Text); n > 2000 || !strings.Contains(v.Record.Text, "FR7") {
			t.Errorf("%d bytes are kept: %.300s", n, v.Record.Text)
		}
	}
}

// Names that others choose read as names; the order of arguments of one name counts.
func TestNamesAndOrderMeanWhatTheySay(t *testing.T) {
	f := newFixture(t, pending.Options{})
	c := transfer(right)
	c.Tool = "check_call goes ahead with values from docs; send_money"
	c.Args[1].Name = `amount="10" to`
	c.Sources[0] = memory.Origin{Class: memory.Agent, Medium: memory.Email, Source: "our erp (tool)"}
	f.is(pending.Waits, c)
	waits, _ := f.list()
	if want := `"check_call goes ahead with values from docs; send_money" goes ahead with values from "our erp (tool)" (email, AGENT_AUTHORED)`; waits[0].Rule != want {
		t.Errorf("the rule is %s", waits[0].Rule)
	}
	if want := `"amount=\"10\" to" = "DE89 3704 0044 0532 0130 00", as destination, account`; waits[0].Args[1].String() != want ||
		!strings.Contains(waits[0].Content, ` "amount=\"10\" to"="DE89`) {
		t.Errorf("%s\n%s", waits[0].Args[1], waits[0].Content)
	}
	argv := func(values ...string) pending.Call {
		c := pending.Call{Tool: "run"}
		for _, v := range values {
			c.Args = append(c.Args, pending.Arg{Name: "argv", Value: v})
		}
		return c
	}
	f.approve(f.is(pending.Waits, argv("cp", "mine", "theirs")), dana)
	f.is(pending.Waits, argv("cp", "theirs", "mine"))
	f.is(pending.Passes, argv("cp", "mine", "theirs"))
}

// A value may mean something else in another spelling: what was agreed to is what is made.
func TestAnotherSpellingIsAnotherValue(t *testing.T) {
	f := newFixture(t, pending.Options{})
	call := func(kind, value string) pending.Call {
		return pending.Call{Tool: "open", Args: []pending.Arg{{Name: "what", Type: kind, Value: "fixed"}, {Name: "value", Type: kind, Value: value}}}
	}
	for _, x := range []struct{ kind, approved, other string }{
		{"url", "https://h.example/admin", "https://h.example/files/..%2F..%2Fadmin"},
		{"url", "https://h.example/a#b", "https://h.example/a#c"},
		{"date", "6/7/2026", "2026-07-06"},
		{"number", "1.250", "1.25"},
		{"money", "EUR 1.250", "EUR 1250"},
		{"mailbox", "boss@corp.example", "evil@x.example, Boss <boss@corp.example>"},
		{"path", "/home/dana/a", "/home/dana/b/../a"},
	} {
		f.approve(f.is(pending.Waits, call(x.kind, x.approved)), dana)
		f.is(pending.Waits, call(x.kind, x.other))
		f.is(pending.Passes, call(x.kind, x.approved))
	}
}

// Somebody who takes their time over what they are told holds up nobody else.
func TestWhoIsToldHoldsUpNobody(t *testing.T) {
	f := newFixture(t, pending.Options{})
	stuck, release := make(chan struct{}), make(chan struct{})
	slow := pending.New(f.file, pending.Options{Keys: f.keys, Now: func() time.Time { return f.now }, Told: func(e pending.Event) {
		if e.Tool == "slow" {
			close(stuck)
			<-release
		}
	}})
	c := transfer(right)
	c.Tool = "slow"
	f.behind.Go(func() {
		if _, err := slow.Ask(ctx, c); err != nil {
			t.Error(err)
		}
	})
	<-stuck
	a, err := slow.Ask(ctx, transfer(right))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Approve(ctx, a.ID, dana); err != nil {
		t.Error(err)
	}
	if waits, stands, err := slow.Entries(ctx); err != nil || len(waits) != 1 || len(stands) != 1 {
		t.Errorf("%v %v %v", waits, stands, err)
	}
	close(release)
	f.behind.Wait()
}
