package pending_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/defenses/signed"
)

var ctx = context.Background()

// fixture is a list with a clock of its own.
type fixture struct {
	*testing.T
	*pending.List
	path string
	keys *signed.Keyring
	now  time.Time
	// once is done, by nobody else than another process, when the clock is next read.
	once    func()
	behind  sync.WaitGroup
	told    []pending.Event
	o       pending.Options
	file    *store.History
	telling sync.Mutex
}

func newFixture(t *testing.T, o pending.Options) *fixture {
	f := &fixture{T: t, path: filepath.Join(t.TempDir(), "held.db"), keys: signed.Fresh(), o: o,
		now: time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC)}
	f.again()
	t.Cleanup(func() { f.file.Close() })
	return f
}

// again opens the list anew, as another process would.
func (f *fixture) again() {
	f.Helper()
	if f.file != nil {
		f.file.Close()
	}
	var err error
	if f.file, err = store.Open(ctx, f.path, store.Options{}); err != nil {
		f.Fatal(err)
	}
	o := f.o
	o.Keys, o.Now, o.Told = f.keys, f.clock, func(e pending.Event) {
		f.telling.Lock() // whoever asks at once is told of at once
		defer f.telling.Unlock()
		f.told = append(f.told, e)
	}
	f.List = pending.New(f.file, o)
}

// clock has somebody else act between what the list reads and what it makes of it. Where
// nobody else can act just then, they wait, and act behind it.
func (f *fixture) clock() time.Time {
	if do := f.once; do != nil {
		f.once = nil
		done := make(chan struct{})
		f.behind.Go(func() { defer close(done); do() })
		select {
		case <-done:
		case <-time.After(300 * time.Millisecond):
		}
	}
	return f.now
}

// other is the same list in another process.
func (f *fixture) other() *pending.List {
	f.Helper()
	s, err := store.Open(ctx, f.path, store.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	now := f.now
	return pending.New(s, pending.Options{Keys: f.keys, Now: func() time.Time { return now }})
}

var brandt = memory.Origin{Class: memory.External, Medium: memory.Email, Source: "billing@brandt.example"}

func transfer(account string) pending.Call {
	return pending.Call{Of: "conversation 1", Principal: "dana", Tool: "transfer", Args: []pending.Arg{
		{Name: "payee", Value: "Brandt Optik", Role: memory.Recipient},
		{Name: "account", Value: account, Role: memory.Destination, Type: "account"},
		{Name: "note", Value: "the June invoice", Role: memory.Content}},
		Request: "Pay Brandt Optik.", Sources: []memory.Origin{brandt}, Why: []string{"only an outside source says so"}}
}

const right = "DE89 3704 0044 0532 0130 00"

// is asks and checks what became of a call.
func (f *fixture) is(want pending.State, c pending.Call) string {
	f.Helper()
	a, err := f.Ask(ctx, c)
	if err != nil {
		f.Fatal(err)
	}
	if a.State != want {
		f.Errorf("%s %.60q: it %s (%s), want %s", c.Tool, c.Args[1].Value, a.State, a.Why, want)
	}
	return a.ID
}

var dana = pending.Decision{By: "dana", Why: "checked by phone"}

func (f *fixture) approve(id string, d pending.Decision) {
	f.Helper()
	if _, err := f.Approve(ctx, id, d); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) reject(id string) {
	f.Helper()
	if _, err := f.Reject(ctx, id, dana); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) list() (waits, stands []pending.Entry) {
	f.Helper()
	waits, stands, err := f.Entries(ctx)
	if err != nil {
		f.Fatal(err)
	}
	return waits, stands
}

func TestACallWaitsPassesOnceAndWaitsAgain(t *testing.T) {
	f := newFixture(t, pending.Options{})
	id := f.is(pending.Waits, transfer(right))
	if again := f.is(pending.Waits, transfer(right)); again != id {
		t.Errorf("the same call is held as %s and as %s", id, again)
	}
	waits, _ := f.list()
	if len(waits) != 1 || waits[0].ID != id || waits[0].Request != "Pay Brandt Optik." || waits[0].Source != brandt.Source ||
		waits[0].Why != "only an outside source says so" ||
		waits[0].Content != `transfer payee="Brandt Optik" account="DE89 3704 0044 0532 0130 00" note="the June invoice"` ||
		waits[0].Rule != "transfer goes ahead with values from billing@brandt.example (email)" {
		t.Errorf("a person sees %+v", waits)
	}
	f.again()
	f.approve(id, dana)
	f.again()
	if _, stands := f.list(); len(stands) != 1 || stands[0].State != "approved" {
		t.Errorf("an approval that was not used is not listed: %+v", stands)
	}
	if got := f.is(pending.Passes, transfer(right)); got != id {
		t.Errorf("%s passes as %s", id, got)
	}
	f.again()
	if next := f.is(pending.Waits, transfer(right)); next == id {
		t.Error("it is held under a number that was used up")
	}
}

func TestOnlyTheSameCallPasses(t *testing.T) {
	for name, change := range map[string]func(*pending.Call){
		"another tool":         func(c *pending.Call) { c.Tool = "transfer_all" },
		"another account":      func(c *pending.Call) { c.Args[1].Value = "GB29 NWBK 6016 1331 9268 19" },
		"another payee":        func(c *pending.Call) { c.Args[0].Value = "brandt optik" },
		"another note":         func(c *pending.Call) { c.Args[2].Value += ", and the May invoice" },
		"one argument more":    func(c *pending.Call) { c.Args = append(c.Args, pending.Arg{Name: "amount", Value: "1"}) },
		"one argument less":    func(c *pending.Call) { c.Args = c.Args[:2] },
		"names turned round":   func(c *pending.Call) { c.Args[0].Name, c.Args[2].Name = c.Args[2].Name, c.Args[0].Name },
		"another conversation": func(c *pending.Call) { c.Of = "conversation 2" },
		"somebody else":        func(c *pending.Call) { c.Principal = "eve" },
		"a write":              func(c *pending.Call) { c.Write = true },
		"letters that look alike": func(c *pending.Call) {
			c.Args[0].Value = strings.ReplaceAll(c.Args[0].Value, "a", "а")
		},
		"a line break":              func(c *pending.Call) { c.Args[2].Value = "the June\ninvoice" },
		"another role":              func(c *pending.Call) { c.Args[0].Role = memory.Content },
		"a letter that nobody sees": func(c *pending.Call) { c.Args[2].Value = "the\u200b June invoice" },
	} {
		f := newFixture(t, pending.Options{})
		f.approve(f.is(pending.Waits, transfer(right)), dana)
		c := transfer(right)
		if change(&c); f.is(pending.Waits, c) == "" {
			t.Errorf("%s: no number", name)
		}
		// The same in another order and spelling.
		same := transfer(" DE89370400440532013000")
		same.Args[0], same.Args[2] = same.Args[2], same.Args[0]
		same.Args[0].Value = "the June   invoice \r\n"
		f.is(pending.Passes, same)
	}
}

func TestWhatIsRefusedIsNotAskedAgain(t *testing.T) {
	f := newFixture(t, pending.Options{Keep: time.Hour})
	id := f.is(pending.Waits, transfer(right))
	f.reject(id)
	if got := f.is(pending.Refused, transfer(right)); got != id {
		t.Errorf("refused as %s, want %s", got, id)
	}
	if waits, stands := f.list(); len(waits) != 0 || len(stands) != 1 || stands[0].State != "refused" ||
		stands[0].Why != dana.Why {
		t.Errorf("%+v %+v", waits, stands)
	}
	f.approve(id, dana) // the person thinks better of it
	f.is(pending.Passes, transfer(right))
	id = f.is(pending.Waits, transfer(right))
	f.approve(id, dana)
	f.reject(id) // before it was made
	f.is(pending.Refused, transfer(right))
	f.now = f.now.Add(time.Hour)
	if next := f.is(pending.Waits, transfer(right)); next == id {
		t.Error("a refusal stands for ever")
	}
}

func TestNothingWaitsForEver(t *testing.T) {
	f := newFixture(t, pending.Options{Keep: time.Hour})
	first := f.is(pending.Waits, transfer(right))
	f.now = f.now.Add(time.Hour)
	if waits, _ := f.list(); len(waits) != 0 {
		t.Errorf("it still waits: %+v", waits)
	}
	second := f.is(pending.Waits, transfer(right))
	if first == second {
		t.Error("it still waits")
	}
	f.approve(second, dana)
	f.now = f.now.Add(time.Hour)
	if _, stands := f.list(); len(stands) != 0 {
		t.Errorf("it still stands: %+v", stands)
	}
	f.is(pending.Waits, transfer(right)) // the approval has expired
	log := f.journal()
	for _, want := range []string{"memtox: expired: nobody decided", "dana: checked by phone",
		"memtox: expired: it was approved and not made"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

func (f *fixture) journal() string {
	f.Helper()
	var b strings.Builder
	for a, err := range f.file.Log(ctx, store.Filter{}) {
		if err != nil {
			f.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s: %s\n", a.Record, a.By, a.Why)
	}
	return b.String()
}

func TestWhatWaitsIsBounded(t *testing.T) {
	f := newFixture(t, pending.Options{Most: 3, Bytes: 1000, Keep: time.Hour})
	for i := range 3 {
		f.is(pending.Waits, transfer(fmt.Sprint(i)))
	}
	f.is(pending.Full, transfer("3"))
	f.is(pending.Waits, transfer("1")) // it is there already
	f.is(pending.Full, transfer(strings.Repeat("x", 1000)))
	waits, _ := f.list()
	if len(waits) != 3 {
		t.Fatalf("%d wait", len(waits))
	}
	f.reject(waits[0].ID)
	f.is(pending.Waits, transfer("3"))
	f.is(pending.Full, transfer("4"))
	f.now = f.now.Add(time.Hour)
	f.is(pending.Waits, transfer("4"))
	if last := f.told[len(f.told)-1]; last.Answer != pending.Waits || last.Tool != "transfer" {
		t.Errorf("told %+v", last)
	}
}

func TestASourceIsApprovedForOneToolAndTakenBack(t *testing.T) {
	f := newFixture(t, pending.Options{})
	d := dana
	d.Source = true
	f.approve(f.is(pending.Waits, transfer(right)), d)
	f.again()
	f.is(pending.Passes, transfer(right))
	rule := f.is(pending.Passes, transfer("GB29 NWBK 6016 1331 9268 19"))
	_, stands := f.list()
	if len(stands) != 2 || stands[1].ID != rule || stands[1].Kind != "source" ||
		stands[1].Content != "transfer goes ahead with values from billing@brandt.example (email)" || stands[1].By != "dana" {
		t.Fatalf("%+v", stands)
	}
	other := transfer("1")
	other.Tool = "send_mail"
	f.is(pending.Waits, other)
	two := transfer("2")
	two.Sources = append(two.Sources, memory.Origin{Class: memory.External, Medium: memory.Web, Source: "evil.example"})
	f.is(pending.Waits, two)
	agents := transfer("3")
	agents.Sources = nil
	f.is(pending.Waits, agents)
	spoofed := transfer("4")
	spoofed.Sources[0].Medium = memory.Web
	f.is(pending.Waits, spoofed)
	if _, err := f.Approve(ctx, f.is(pending.Waits, agents), d); !errors.Is(err, pending.ErrNoSource) {
		t.Errorf("no source is approved: %v", err)
	}
	if !strings.Contains(f.journal(), "passed: its source is approved by "+rule) {
		t.Errorf("what passed by a rule is not in the log:\n%s", f.journal())
	}
	f.reject(rule)
	f.again()
	f.is(pending.Waits, transfer("5"))
}

// Whoever can write into the file, and has no key, agrees to nothing.
func TestAnApprovalNeedsTheKey(t *testing.T) {
	f := newFixture(t, pending.Options{})
	id := f.is(pending.Waits, transfer(right))
	curator := store.NewCurator(f.file, "the agent", nil)
	if _, err := curator.Approve(ctx, id, store.Approval{Why: "trust me"}); err != nil {
		t.Fatal(err)
	}
	id = f.is(pending.Waits, transfer(right))
	other := pending.New(f.file, pending.Options{Keys: signed.Fresh()})
	if _, err := other.Approve(ctx, id, dana); !errors.Is(err, store.ErrTorn) {
		t.Errorf("with another key: %v", err)
	}
	r, _, err := f.file.Get(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	r.State, r.Scope = memory.Live, memory.ToolActionAllowed
	r.Signature, r.SignedBy = signed.Fresh().Signer("person").Sign(r)
	rule := memory.Record{ID: "r900", Store: pending.SourceStore, Key: "x", Text: "{}", State: memory.Live,
		Scope: memory.ToolActionAllowed, Version: 1}
	if _, err := f.file.Commit(ctx, &memory.Batch{At: f.now, Cause: memory.CauseApprove, Records: []memory.Record{r,
		rule}}); err != nil {
		t.Fatal(err)
	}
	f.is(pending.Waits, transfer(right))
	if _, stands := f.list(); len(stands) != 0 {
		t.Errorf("a rule that nobody signed is listed: %+v", stands)
	}
}

// Of many that ask at once, in two processes, one passes.
func TestAnApprovalIsUsedOnce(t *testing.T) {
	f := newFixture(t, pending.Options{})
	second, err := store.Open(ctx, f.path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	lists := []*pending.List{f.List, pending.New(second, pending.Options{Keys: f.keys, Now: func() time.Time { return f.now }})}
	f.o.Told = nil
	for range 5 {
		f.approve(f.is(pending.Waits, transfer(right)), dana)
		var wg sync.WaitGroup
		passes := make(chan string, 16)
		for i := range 16 {
			wg.Go(func() {
				a, err := lists[i%2].Ask(ctx, transfer(right))
				if err != nil {
					t.Error(err)
				}
				if a.State == pending.Passes {
					passes <- a.ID
				}
			})
		}
		wg.Wait()
		if len(passes) != 1 {
			t.Errorf("it passed %d times", len(passes))
		}
		waits, _ := f.list()
		for _, w := range waits {
			f.reject(w.ID)
		}
		f.now = f.now.Add(pending.DefaultKeep)
	}
}

// Entries that no session sees give way where too much waits, and no sooner; those that
// sessions see, and what an incident response withheld, never do.
func TestEntriesThatNobodySeesGiveWay(t *testing.T) {
	f := newFixture(t, pending.Options{Most: 4, Keep: time.Hour})
	put := func(id string, cause memory.Cause, s memory.State) {
		t.Helper()
		if _, err := f.file.Commit(ctx, &memory.Batch{At: f.now, Cause: cause, Records: []memory.Record{{ID: id, Store: "memory",
			Key: id, Text: "text of " + id, State: s, Version: 1, Created: f.now, ValidFrom: f.now}}}); err != nil {
			t.Fatal(err)
		}
	}
	put("r101", memory.CauseWrite, memory.Staged)
	put("r102", memory.CauseWrite, memory.Quarantined)
	put("r103", memory.CauseWrite, memory.Held)
	put("r104", memory.CauseQuarantine, memory.Quarantined)
	f.now = f.now.Add(time.Hour)
	room := func(want bool) {
		t.Helper()
		if got, err := f.Room(ctx); err != nil || got != want {
			t.Errorf("room: %v %v, want %v", got, err, want)
		}
	}
	state := func(id string) memory.State {
		r, _, err := f.file.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return r.State
	}
	room(true)
	put("r105", memory.CauseWrite, memory.Quarantined)
	if waits, _ := f.list(); len(waits) != 4 {
		t.Errorf("%d wait", len(waits))
	}
	room(true) // two of them gave way
	for id, want := range map[string]memory.State{"r101": memory.Staged, "r102": memory.Retired, "r103": memory.Retired,
		"r104": memory.Quarantined, "r105": memory.Quarantined} {
		if got := state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	put("r106", memory.CauseWrite, memory.Staged)
	put("r107", memory.CauseWrite, memory.Staged)
	room(false)
	f.is(pending.Waits, transfer(right)) // entries fill their own room, and no call's
}
