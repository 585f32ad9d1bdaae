package memory_test

import (
	"testing"

	"github.com/memtox/memtox/agents/memory"
)

// Two commands that share a word are not one, and whose a value is depends on who
// said all of it.
func TestAnArgumentIsOfWhoeverSaidAllOfIt(t *testing.T) {
	var call memory.Call
	m := newMemory(memory.Options{Observer: func(e *memory.Event) {
		if e.Moment == memory.AtAct {
			call = *e.Call
		}
	}})
	for _, r := range []memory.Record{
		{Store: "memory", Text: "The camera is cleared with `scp delivery.tar flundiden.example:/srv/77`.", Origin: fromUser},
		{Store: "memory", Text: "The punt was seen with `scp stock.tar lackmore.example:/srv/91`.", Origin: fromMail},
	} {
		m.Inject(r)
	}
	if _, err := m.Snapshot(ctx, "memory", memory.Query{}); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]memory.Class{
		"scp delivery.tar flundiden.example:/srv/77": memory.User,
		"scp stock.tar lackmore.example:/srv/91":     memory.External,
		"scp delivery.tar lackmore.example:/srv/91":  memory.External,
	} {
		if _, err := m.Act(ctx, memory.Call{Tool: "run_command",
			Args: []memory.Arg{{Name: "command", Value: command, Role: memory.Command}}}); err != nil {
			t.Fatal(err)
		}
		l := call.Args[0].Lineage
		if got := l.Least(fromUser).Class; got != want || want == memory.User && len(l) != 1 {
			t.Errorf("%s: %s by %+v, want %s", command, got, l, want)
		}
	}
}

// An attribution brings the name of the source into the context: a sender's
// address that ends up in a call comes from the record.
func TestTheNameOfASourceComesFromItsRecord(t *testing.T) {
	var call memory.Call
	m := newMemory(memory.Options{Observer: func(e *memory.Event) {
		if e.Moment == memory.AtAct {
			call = *e.Call
		}
	}})
	m.Guard(&verdicts{read: func(memory.Candidate) memory.Decision { return memory.Decision{Attribute: true} }})
	id := m.Inject(memory.Record{Store: "memory", Text: "The survey is due on Friday.", Origin: fromMail}).ID
	if _, err := m.Snapshot(ctx, "memory", memory.Query{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Act(ctx, memory.Call{Tool: "send_mail",
		Args: []memory.Arg{{Name: "to", Value: fromMail.Source, Role: memory.Recipient}}}); err != nil {
		t.Fatal(err)
	}
	if l := call.Args[0].Lineage; len(l) != 1 || l[0].Record != id {
		t.Errorf("lineage %+v, want record %s", l, id)
	}
}

// The oracle of the exact mode knows the case and not the session; that the user
// asked to keep something is a matter of the session.
func TestTheOracleDoesNotForgetThatTheUserAsked(t *testing.T) {
	m := newMemory(memory.Options{Lineage: memory.Exact, Truth: func(string) (memory.Lineage, bool) {
		return memory.Lineage{{Origin: fromMail}}, true
	}})
	take(t, m, fromUser, 1, "Please keep what the mail says.")
	take(t, m, fromMail, 1, "The canteen opens at nine.")
	r := write(t, m, add("The canteen opens at nine."))[0].Proposal.Record
	if !r.Asked || r.Origin.Source != fromMail.Source || r.Lineage[0].Segment != 2 {
		t.Errorf("%+v: want asked, from segment 2", r)
	}
}
