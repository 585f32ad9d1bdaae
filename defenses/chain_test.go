package defenses_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/defenses/defensetest"
	"github.com/memtox/memtox/defenses/memoryguard"
	"github.com/memtox/memtox/defenses/signed"
)

// fake is a defense made of functions; what is nil allows.
type fake struct {
	memory.Open
	input     func(memory.Segment) memory.Verdict
	write     func(memory.Proposal) memory.Verdict
	read      func(memory.Candidate) memory.Decision
	act       func(memory.Call) memory.Verdict
	committed *int
}

func (f *fake) defense() defenses.Defense {
	return defenses.Func(func(context.Context, memory.View) (memory.Gate, error) { return f, nil })
}

func (f *fake) part(name string, screens ...defenses.Place) defenses.Part {
	return defenses.Part{Name: name, Defense: f.defense(), Screens: screens}
}

func (f *fake) Input(_ context.Context, s memory.Segment) (v memory.Verdict, err error) {
	if f.input != nil {
		v = f.input(s)
	}
	return v, nil
}

func (f *fake) Write(_ context.Context, p memory.Proposal) (v memory.Verdict, err error) {
	if f.write != nil {
		v = f.write(p)
	}
	return v, nil
}

func (f *fake) Read(_ context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	if f.read != nil {
		for i, c := range cs {
			out[i] = f.read(c)
		}
	}
	return out, nil
}

func (f *fake) Act(_ context.Context, c memory.Call) (v memory.Verdict, err error) {
	if f.act != nil {
		v = f.act(c)
	}
	return v, nil
}

func (f *fake) Committed(memory.Change) {
	if f.committed != nil {
		*f.committed++
	}
}

func answers(v memory.Verdict) *fake {
	return &fake{write: func(memory.Proposal) memory.Verdict { return v }}
}

// cut redacts a word wherever it stands.
func cut(word string) *fake {
	without := func(s string) (string, bool) { return strings.ReplaceAll(s, word, "_"), strings.Contains(s, word) }
	return &fake{
		input: func(s memory.Segment) (v memory.Verdict) {
			if text, found := without(s.Text); found {
				v = memory.Verdict{Action: memory.Redact, Text: text, Findings: []memory.Finding{{Check: word}}}
			}
			return v
		},
		write: func(p memory.Proposal) (v memory.Verdict) {
			if text, found := without(p.Record.Text); found {
				v = memory.Verdict{Action: memory.Redact, Text: text, Findings: []memory.Finding{{Check: word}}}
			}
			return v
		},
		read: func(c memory.Candidate) (d memory.Decision) {
			if text, found := without(c.Record.Text); found {
				d = memory.Decision{Verdict: memory.Verdict{Action: memory.Redact, Text: text}, Rank: 1}
			}
			return d
		},
	}
}

func TestStrictestVerdictWins(t *testing.T) {
	for _, a := range []memory.Action{memory.Allow, memory.Redact, memory.Defer, memory.Quarantine, memory.Block} {
		for _, b := range []memory.Action{memory.Allow, memory.Redact, memory.Defer, memory.Quarantine, memory.Block} {
			tr := defensetest.Open(t, defenses.Chain(answers(memory.Verdict{Action: a}).part("a"),
				answers(memory.Verdict{Action: b}).part("b")))
			if got := tr.Judge(tr.Proposal(defensetest.FromUser("x"))).Action; got != max(a, b) {
				t.Errorf("%s and %s give %s", a, b, got)
			}
		}
	}
}

func TestRedactionsCompose(t *testing.T) {
	tr := defensetest.Open(t, defenses.Chain(cut("one").part("1"), cut("two").part("2"), cut("five").part("5")))
	v := tr.Judge(tr.Proposal(defensetest.FromUser("one two three")))
	if v.Action != memory.Redact || v.Text != "_ _ three" || len(v.Findings) != 2 {
		t.Errorf("write: %+v", v)
	}
	if v := tr.Input(memory.Segment{Text: "two ones"}); v.Action != memory.Redact || v.Text != "_ _s" {
		t.Errorf("input: %+v", v)
	}
	d := tr.Read("q", defensetest.FromUser("one two three"), defensetest.FromUser("three"))
	if d[0].Text != "_ _ three" || d[0].Rank != 2 || d[1].Action != memory.Allow || d[1].Text != "" {
		t.Errorf("read: %+v", d)
	}
}

func TestADeferredRedactionStagesWhatIsLeft(t *testing.T) {
	// Staged as it came, the record would show sessions the content that was cut
	// out.
	tr := defensetest.Open(t, defenses.Chain(cut("one").part("1"),
		answers(memory.Verdict{Action: memory.Defer}).part("d")))
	v, r := tr.Write(defensetest.FromUser("one two"))
	if v.Action != memory.Defer || r.State != memory.Staged || r.Text != "_ two" {
		t.Errorf("%+v, state %s, text %q", v, r.State, r.Text)
	}
}

func TestABlockEndsTheQuestions(t *testing.T) {
	asked := 0
	counting := &fake{write: func(memory.Proposal) memory.Verdict { asked++; return memory.Verdict{} }}
	tr := defensetest.Open(t, defenses.Chain(answers(memory.Verdict{Action: memory.Quarantine}).part("q"),
		counting.part("1"),
		answers(memory.Verdict{Action: memory.Block}).part("b"), counting.part("2")))
	tr.Write(defensetest.FromUser("x"))
	if asked != 1 {
		t.Errorf("the parts around a block were asked %d times, want once", asked)
	}
}

func TestAStoppedCandidateIsNotShownToTheNext(t *testing.T) {
	block := &fake{read: func(c memory.Candidate) (d memory.Decision) {
		if c.Record.Text == "bad" {
			d.Action = memory.Block
		}
		return d
	}}
	var saw []string
	next := &fake{read: func(c memory.Candidate) memory.Decision {
		saw = append(saw, c.Record.Text)
		return memory.Decision{Rank: len(saw), Attribute: true}
	}}
	tr := defensetest.Open(t, defenses.Chain(block.part("b"), next.part("n")))
	d := tr.Read("q", defensetest.FromUser("a"), defensetest.FromUser("bad"), defensetest.FromUser("c"))
	if !reflect.DeepEqual(saw, []string{"a", "c"}) || d[0].Rank != 1 || d[1].Action != memory.Block || d[2].Rank != 2 ||
		!d[2].Attribute {
		t.Errorf("the next saw %q; decisions %+v", saw, d)
	}
}

func TestScopeScoreAndDoubtMerge(t *testing.T) {
	tr := defensetest.Open(t, defenses.Chain(
		answers(memory.Verdict{Scope: memory.PlanningAllowed, Score: -2, HasScore: true, Unsure: true}).part("a"),
		answers(memory.Verdict{Scope: memory.ContextOnly, Score: -3, HasScore: true}).part("b"),
		answers(memory.Verdict{Score: 9}).part("c")))
	v := tr.Judge(tr.Proposal(defensetest.FromUser("x")))
	if v.Scope != memory.ContextOnly || v.Score != -2 || !v.HasScore || !v.Unsure {
		t.Errorf("%+v", v)
	}
	tr = defensetest.Open(t, defenses.Chain(answers(memory.Verdict{Unsure: true}).part("a"),
		answers(memory.Verdict{Action: memory.Block}).part("b")))
	if v := tr.Judge(tr.Proposal(defensetest.FromUser("x"))); v.Unsure {
		t.Errorf("a blocked write is not unsure: %+v", v)
	}
}

func TestEveryPartHearsOfEveryCommit(t *testing.T) {
	var a, b int
	tr := defensetest.Open(t, defenses.Chain((&fake{committed: &a}).part("a"), (&fake{committed: &b}).part("b")),
		defensetest.FromUser("seed"))
	tr.Write(defensetest.FromUser("x"))
	if a != 2 || b != 2 {
		t.Errorf("commits heard: %d and %d, want 2 each", a, b)
	}
}

func TestErrorsNameThePart(t *testing.T) {
	broken := defenses.Func(func(context.Context, memory.View) (memory.Gate, error) { return failing{}, nil })
	tr := defensetest.Open(t, defenses.Chain(defenses.Part{Name: "outer", Defense: broken}))
	_, err := tr.Gate.Write(context.Background(), memory.Proposal{})
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "defense outer at the write gate") {
		t.Error(err)
	}
	_, err = tr.Gate.Read(context.Background(), memory.Query{}, make([]memory.Candidate, 2))
	if err == nil || !strings.Contains(err.Error(), "2 candidates went in, 0 decisions came back") {
		t.Error(err)
	}
}

var errBroken = errors.New("broken")

type failing struct{ memory.Open }

func (failing) Write(context.Context, memory.Proposal) (memory.Verdict, error) {
	return memory.Verdict{}, errBroken
}

func (failing) Read(context.Context, memory.Query, []memory.Candidate) ([]memory.Decision, error) {
	return nil, nil
}

func TestASignatureCoversWhatIsStored(t *testing.T) {
	// The redaction comes after the part that signs.
	both := []defenses.Place{defenses.Write, defenses.Read}
	tr := defensetest.Open(t, defenses.Chain(defenses.Part{Name: "signed", Defense: signed.New(), Screens: both},
		cut("one").part("cut", both...)))
	v, r := tr.Write(defensetest.FromUser("one two"))
	if v.Action != memory.Redact || r.Text != "_ two" {
		t.Fatalf("%+v", v)
	}
	if d := tr.Read("q", r); d[0].Action != memory.Allow {
		t.Errorf("reading the redacted record: %+v", d[0])
	}
}

func TestSeveralSignaturesAreStoredInOneAndTakenApart(t *testing.T) {
	both := []defenses.Place{defenses.Write, defenses.Read}
	inner := defenses.Chain(defenses.Part{Name: "published", Defense: memoryguard.New(), Screens: both},
		defenses.Part{Name: "signed", Defense: signed.New(), Screens: both})
	for name, d := range map[string]defenses.Defense{
		"chain": inner,
		"chain in a chain": defenses.Chain(defenses.Part{Name: "inner", Defense: inner, Screens: both},
			defenses.Part{Name: "outer", Defense: signed.New(), Screens: both}),
	} {
		t.Run(name, func(t *testing.T) {
			seed := defensetest.FromUser("The user has a dog.")
			tr := defensetest.Open(t, d, seed)
			_, r := tr.Write(defensetest.FromUser("The user has a cat."))
			if !strings.HasPrefix(r.SignedBy, "chain:") {
				t.Errorf("signed by %q", r.SignedBy)
			}
			for i, d := range tr.Read("q", tr.View.Records[0], r) {
				if d.Action != memory.Allow {
					t.Errorf("reading record %d: %+v", i, d)
				}
			}
			for cutAt := range r.Signature {
				bad := r
				bad.Signature = bytes.Clone(r.Signature[:cutAt])
				if d := tr.Read("q", bad); d[0].Action != memory.Quarantine {
					t.Fatalf("reading a record whose signature was cut at %d: %+v", cutAt, d[0])
				}
			}
		})
	}
}

func TestChainsConform(t *testing.T) {
	both := []defenses.Place{defenses.Write, defenses.Read}
	defensetest.Conformance(t, defenses.Chain(defenses.Part{Name: "signed", Defense: signed.New(), Screens: both},
		cut("all").part("cut", both...), defenses.Part{Name: "published", Defense: memoryguard.New(), Screens: both}), false)
	defensetest.Conformance(t, defenses.Chain(), true)
}

func TestPlacementAsksInTheFormThatADefenseKnows(t *testing.T) {
	var got memory.Proposal
	writer := &fake{write: func(p memory.Proposal) memory.Verdict {
		got = p
		if strings.Contains(p.Record.Text, "bad") {
			return memory.Verdict{Action: memory.Block, Findings: []memory.Finding{{Check: "bad"}}}
		}
		return memory.Verdict{}
	}}
	place := func(p defenses.Place, screens ...defenses.Place) *defensetest.Trial {
		d, err := defenses.At(writer.defense(), p, screens)
		if err != nil {
			t.Fatal(err)
		}
		return defensetest.Open(t, d)
	}
	origin := memory.Origin{Class: memory.External, Medium: memory.Email, Source: "a@b.example"}

	in := place(defenses.Input, defenses.Write)
	if v := in.Input(memory.Segment{ID: 3, Text: "bad news", Origin: origin}); v.Action != memory.Block ||
		len(v.Findings) != 1 {
		t.Errorf("input: %+v", v)
	}
	if r := got.Record; r.Text != "bad news" || r.Origin != origin || r.Lineage[0].Segment != 3 ||
		r.Principal != "user-1" || got.Route != memory.RouteNone {
		t.Errorf("a segment is proposed as %+v", got)
	}
	if v, _ := in.Write(defensetest.External("bad")); v.Action != memory.Allow {
		t.Errorf("placed at input, it screens a write too: %+v", v)
	}

	at := place(defenses.Read, defenses.Write)
	if d := at.Read("q", defensetest.External("good"), defensetest.External("bad")); d[0].Action != memory.Allow ||
		d[1].Action != memory.Block {
		t.Errorf("read: %+v", d)
	}
	if v, _ := at.Write(defensetest.External("bad")); v.Action != memory.Allow {
		t.Errorf("placed at read, it screens a write too: %+v", v)
	}

	act := place(defenses.Act, defenses.Write)
	call := memory.Call{Tool: "send", Args: []memory.Arg{{Name: "to", Value: "good"},
		{Name: "body", Value: "bad", Lineage: memory.Lineage{{Record: "r1", Origin: origin}}}}}
	if v := act.Act(call); v.Action != memory.Block {
		t.Errorf("act: %+v", v)
	}
	if got.Record.Origin != origin {
		t.Errorf("an argument is proposed with origin %+v", got.Record.Origin)
	}
	if _, err := defenses.At((&fake{}).defense(), defenses.Write, []defenses.Place{defenses.Act}); err == nil ||
		!strings.Contains(err.Error(), "screens act only") {
		t.Error(err)
	}

	reader := &fake{read: func(c memory.Candidate) (d memory.Decision) {
		if c.Record.Text == "bad" {
			d.Action = memory.Quarantine
		}
		return d
	}}
	d, err := defenses.At(reader.defense(), defenses.Write, []defenses.Place{defenses.Read})
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := defensetest.Open(t, d).Write(defensetest.External("bad")); v.Action != memory.Quarantine {
		t.Errorf("a reader at write: %+v", v)
	}
}

func TestASignerPlacedAtReadStillSigns(t *testing.T) {
	b, err := builtin.New().Build("signed@read", defenses.Env{})
	if err != nil {
		t.Fatal(err)
	}
	tr := defensetest.Open(t, b.Defense)
	_, r := tr.Write(defensetest.External("x"))
	if d := tr.Read("q", r, defensetest.External("written around")); d[0].Action != memory.Allow ||
		d[1].Action != memory.Quarantine {
		t.Errorf("%+v", d)
	}
	defensetest.Conformance(t, b.Defense, true)
}

func TestAPlacedChainPlacesItsParts(t *testing.T) {
	writer := &fake{write: func(memory.Proposal) memory.Verdict { return memory.Verdict{Action: memory.Block} }}
	c := defenses.Chain(writer.part("w", defenses.Write))
	d, err := defenses.At(c, defenses.Input, []defenses.Place{defenses.Input, defenses.Write, defenses.Read, defenses.Act})
	if err != nil {
		t.Fatal(err)
	}
	tr := defensetest.Open(t, d)
	if v := tr.Input(memory.Segment{Text: "x"}); v.Action != memory.Block {
		t.Errorf("input: %+v", v)
	}
	if v, _ := tr.Write(defensetest.External("x")); v.Action != memory.Allow {
		t.Errorf("write: %+v", v)
	}
	if _, err := defenses.At(d, defenses.Read, nil); err == nil || !strings.Contains(err.Error(), "placed already") {
		t.Errorf("placing twice: %v", err)
	}
}
