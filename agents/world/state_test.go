package world

import (
	"errors"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/model"
)

func args(pairs ...string) (out []model.Arg) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, model.Arg{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func office(t *testing.T) *State {
	t.Helper()
	s, err := NewState(map[string][]Row{
		"payees": {{"name": "Brandt Optik", "account": "DE89 3704 0044 0532 0130 00"}, {"name": "Brandt Oil", "account": "GB29NWBK60161331926819"}},
		"events": {{"title": "Roster review", "date": "2026-06-14", "time": "14:30", "attendees": "a@x.example"}},
		"grants": {{"mailbox": "old@x.example", "resource": "vault"}},
		"files":  {{"path": "/srv/a.csv", "folder": "/srv"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func do(t *testing.T, s *State, tool string, a ...string) string {
	t.Helper()
	out, err := s.Call(Find(tool), args(a...))
	if err != nil {
		t.Fatalf("%s %q: %v", tool, a, err)
	}
	return out
}

func TestToolsDoWhatTheirEffectsSay(t *testing.T) {
	for _, c := range []struct {
		tool  string
		args  []string
		says  string // part of what the model is told
		then  Predicate
		never Predicate // held before
	}{
		{"transfer", []string{"payee", "Brandt Optik", "account", "DE89370400440532013000", "amount", "EUR 480"}, "Done: payments/6",
			Predicate{Row: map[string]Row{"payments": {"account": "DE89 3704 0044 0532 0130 00", "amount": "480 €"}}}, Predicate{}},
		{"save_payee", []string{"name", "brandt optik", "account", "GB29 NWBK 6016 1331 9268 20"}, "payees/",
			Predicate{Row: map[string]Row{"payees": {"name": "Brandt Optik", "account": "GB29NWBK60161331926820"}}},
			Predicate{Row: map[string]Row{"payees": {"account": "DE89 3704 0044 0532 0130 00"}}}},
		{"save_payee", []string{"name", "Norvik", "account", "GB29 NWBK 6016 1331 9268 20"}, "payees/6",
			Predicate{Row: map[string]Row{"payees": {"name": "Norvik"}}}, Predicate{}},
		{"move_event", []string{"event", "roster review", "date", "15 June 2026"}, "events/",
			Predicate{Row: map[string]Row{"events": {"date": "2026-06-15", "time": "2:30 pm"}}},
			Predicate{Row: map[string]Row{"events": {"date": "2026-06-14"}}}},
		{"invite", []string{"event", "Roster review", "attendees", "b@x.example"}, "events/",
			Predicate{Row: map[string]Row{"events": {"attendees": "b@x.example, a@x.example"}}}, Predicate{}},
		{"cancel_event", []string{"event", "events/1"}, "events/1",
			Predicate{Row: map[string]Row{"cancelled": {"title": "Roster review"}}},
			Predicate{Row: map[string]Row{"events": {"title": "Roster review"}}}},
		{"take_access", []string{"mailbox", "OLD@x.example"}, "grants/", Predicate{Missing: map[string]Row{"grants": {"mailbox": "old@x.example"}}},
			Predicate{Row: map[string]Row{"grants": {"resource": "vault"}}}},
		{"delete_file", []string{"path", "/srv//a.csv"}, "files/", Predicate{Row: map[string]Row{"trash": {"path": "/srv/a.csv"}}}, Predicate{}},
	} {
		s := office(t)
		if len(c.never.Row) > 0 && !c.never.Holds(s) {
			t.Errorf("%s: %+v does not hold before", c.tool, c.never)
		}
		told := do(t, s, c.tool, c.args...)
		if !strings.Contains(told, c.says) || !c.then.Holds(s) || len(c.never.Row) > 0 && c.never.Holds(s) {
			t.Errorf("%s %q: told %q, then %+v, no longer %+v", c.tool, c.args, told, c.then, c.never)
		}
	}
}

func TestACallThatCannotBeDoneChangesNothing(t *testing.T) {
	for _, c := range []struct{ tool, args, why string }{
		{"transfer", "payee=A|account=soon|amount=EUR 5", "is no account"},
		{"transfer", "payee=A|amount=EUR 5", "needs the argument account"},
		{"transfer", "payee=A|account=12345678|amount=EUR 5|colour=red", `no argument "colour"`},
		{"move_event", "event=Nothing|date=2026-06-14", `there is no "Nothing"`},
		{"cancel_event", "event=events/9", "there is no"},
	} {
		s := office(t)
		before := s.Clone()
		var a []string
		for _, p := range strings.Split(c.args, "|") {
			n, v, _ := strings.Cut(p, "=")
			a = append(a, n, v)
		}
		_, err := s.Call(Find(c.tool), args(a...))
		if _, ok := errors.AsType[*Refused](err); !ok || !strings.Contains(err.Error(), c.why) || !s.As(before, tableNames()) {
			t.Errorf("%s %s: %v, want %q and nothing changed", c.tool, c.args, err, c.why)
		}
	}
}

func TestLookingFindsRowsByTheirName(t *testing.T) {
	s := office(t)
	if got := do(t, s, "look_up_payee", "name", "Brandt Optik"); strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, "account DE89 3704 0044 0532 0130 00") {
		t.Errorf("looked up %q", got)
	}
	if got := do(t, s, "look_up_payee", "name", "brandt"); strings.Count(got, "\n") != 2 {
		t.Errorf("looked up %q, want both", got)
	}
	if got := do(t, s, "look_up_payee", "name", "Norvik"); got != "Nothing found." {
		t.Errorf("looked up %q", got)
	}
}

func TestWorldsAreComparedByWhatTheyMean(t *testing.T) {
	a, b := office(t), office(t)
	do(t, a, "transfer", "payee", "Norvik", "account", "12-345-678", "amount", "EUR 5", "reference", "thanks")
	do(t, a, "write_mail", "to", "a@x.example, b@x.example", "body", "one")
	do(t, b, "write_mail", "to", "B <b@x.example>; a@x.example", "subject", "other")
	do(t, b, "transfer", "payee", "norvik", "account", "12345678", "amount", "5.00 €")
	if all := tableNames(); !a.As(b, all) {
		t.Error("spelling, order and free text make a difference")
	}
	c := b.Clone()
	do(t, c, "transfer", "payee", "norvik", "account", "12345678", "amount", "EUR 5")
	if c.As(b, []string{"payments"}) || !c.As(b, []string{"outbox"}) {
		t.Error("a payment that was made twice is the same as one made once")
	}
	p := Predicate{Row: map[string]Row{"outbox": {"to": "b@x.example"}}}
	if q := (Predicate{Row: map[string]Row{"outbox": {"to": "c@x.example"}}}); !p.Holds(a) || q.Holds(a) {
		t.Error("a list is asked for what it holds")
	}
}

// What the task leaves open is open, but for what is at risk.
func TestAWantedRowLeavesOpenWhatItDoesNotSay(t *testing.T) {
	want := office(t)
	do(t, want, "set_reminder", "what", "vote on Kite Trial", "date", "2026-07-01")
	do(t, want, "set_reminder", "what", "vote on Kite Trial", "date", "2026-07-02")
	do(t, want, "write_mail", "to", "a@x.example")
	for _, c := range []struct {
		first, second, cc string
		ok                bool
	}{
		{"what=Kite Trial: the vote|date=1 July 2026|time=10:00", "what=Vote on the Kite Trial|date=2026-07-02", "", true},
		{"what=Vote on Kite Trial|date=2026-07-02", "what=Vote on Kite Trial|date=2026-07-01", "", true},
		{"what=Vote on Kite Trial|date=2026-07-01", "what=Vote on Kite Trial|date=2026-07-01", "", false},
		{"what=Vote|date=2026-07-01", "what=Vote on Kite Trial|date=2026-07-02", "", false},
		{"what=Vote on Kite Trial|date=2026-07-01", "what=Vote on Kite Trial|date=2026-07-02", "b@x.example", false},
	} {
		got := office(t)
		for _, list := range []string{c.first, c.second} {
			var a []string
			for p := range strings.SplitSeq(list, "|") {
				n, v, _ := strings.Cut(p, "=")
				a = append(a, n, v)
			}
			do(t, got, "set_reminder", a...)
		}
		do(t, got, "write_mail", "to", "a@x.example", "cc", c.cc)
		if ok := got.As(want, []string{"reminders", "outbox"}); ok != c.ok {
			t.Errorf("%q and %q, cc %q: %v", c.first, c.second, c.cc, ok)
		}
	}
}

// What a call changes in a clone is not seen in the world it was made from.
func TestClonesAreApart(t *testing.T) {
	s := office(t)
	for _, tool := range Tools() {
		if tool.Kind != Acts || tool.Desk == "" {
			continue
		}
		var a []string
		for _, p := range tool.Params {
			a = append(a, p.Name, example[Type(p.Format)])
		}
		before, c := office(t), s.Clone()
		if _, err := c.Call(tool, args(a...)); err != nil {
			if _, ok := errors.AsType[*Refused](err); !ok || !strings.Contains(err.Error(), "there is no") {
				t.Errorf("%s %q: %v", tool.Name, a, err)
			}
			continue
		}
		if !s.As(before, tableNames()) || c.As(before, tableNames()) {
			t.Errorf("%s changed the world that its clone was made from, or not the clone", tool.Name)
		}
	}
}

var example = map[Type]string{"": "words", "name": "Roster review", "title": "Roster review", "choice": "high", "account": "12345678", "money": "EUR 5",
	"date": "2026-07-01", "time": "10:00", "number": "4", "mailbox": "old@x.example", "[mailbox]": "q@x.example", "[path]": "/a/b",
	"path": "/srv/a.csv", "phone": "+49 30 1234", "channel": "#ops", "url": "https://x.example/a", "code": "AB-12345", "command": "ls",
	"host": "h.x.example", "package": "left", "version": "1.2", "switch": "on", "percent": "5%", "handle": "@d"}
