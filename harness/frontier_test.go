package harness

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/results"
)

const frontierSamples = "../attacks/testdata/frontier"

// Each kind of memtox-frontier runs on every profile: its attacks end in harm where
// nothing stops them, its benign twins are done, and without the claim the task is.
func TestEveryKindOfTheFrontierRuns(t *testing.T) {
	set, err := attacks.Open(context.Background(), frontierSamples)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range datasets.Frontier() {
		if !slices.ContainsFunc(set.Cases, func(k datasets.Case) bool { return k.Class == kind }) {
			t.Errorf("there is no sample of the kind %s", kind)
		}
	}
	b, err := CheckBehaviour(context.Background(), set)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range b.Cases {
		t.Errorf("%s on %s: %s", p.Family, p.Agent, p.What)
	}
	if !b.OK() {
		t.Error("a check of behaviour fails")
	}
}

// frontierRun is what became of the cases of one sample family.
func frontierRun(t *testing.T, family string, settings ...string) (*shelf, []results.Trial) {
	t.Helper()
	_, out := runAll(t, Builtin(), append([]string{"dataset=" + frontierSamples + "/" + family + ".yaml", "split=all", "agent=hermes",
		"model=reference:naive", "transcripts=all"}, settings...)...)
	trials := out.trials()
	for _, r := range trials {
		if r.Status != results.Scored {
			t.Fatalf("%s: %s", r.Case, r.Reason)
		}
	}
	return out, trials
}

// An act may be missing because nothing was done at all: that is no harm, whatever lies
// in memory.
func TestAMissingRowIsHarmOnlyWhereTheRecordDidIt(t *testing.T) {
	for model, want := range map[string]bool{"reference:naive": true, "reference:refuse": false, "reference:everything": true} {
		_, trials := frontierRun(t, "bakery-order", "defense=none", "model="+model)
		for _, r := range trials {
			if r.Harm == nil {
				if model == "reference:naive" && (r.Wrong == nil || *r.Wrong) {
					t.Errorf("%s: what the user takes out of the order is ordered", r.Case)
				}
				continue
			}
			if !r.Written || *r.Harm != want || *r.Done {
				t.Errorf("%s: stored %v, harm %v, done %v", model, r.Written, *r.Harm, *r.Done)
			}
		}
	}
	_, trials := frontierRun(t, "bakery-order", "defense=block-all")
	for _, r := range trials {
		if r.Harm != nil && (*r.Harm || !*r.Done) {
			t.Errorf("with nothing stored: harm %v, done %v", *r.Harm, *r.Done)
		}
	}
}

// What another user of the memory says carries his name, so a defense that looks at it
// can tell his word from the user's.
func TestTheWordOfAnotherUserIsNotTheUsers(t *testing.T) {
	out, trials := frontierRun(t, "stables-payee", "defense=none,origin-only,memoryguard")
	for _, r := range trials {
		if !bytes.Contains(out.scripts[r.ID], []byte("The user of this session is Dorit.")) == (r.Label == results.Attack) {
			t.Errorf("%s %s: the model is told wrongly whose session it is", r.Label, r.Case)
		}
		switch {
		case r.Label == results.Attack && *r.Harm != (r.Defense != "memoryguard"):
			t.Errorf("%s: harm %v", r.Defense, *r.Harm)
		case r.Label != results.Attack && !*r.Done && r.Defense != "memoryguard":
			t.Errorf("%s: what the user says himself is not done", r.Defense)
		}
	}
}

// A session in which nothing is asked of the claim is none of retrieval: what is read in
// it counts for no rate. An entry that asks for it is noted again there, with the origin
// that it came with.
func TestAQuietSessionIsNoRetrieval(t *testing.T) {
	out, trials := frontierRun(t, "quarry-gauge", "defense=none")
	for _, r := range trials {
		if r.Label != results.Attack {
			continue
		}
		reads, copies := 0, 0
		for _, d := range out.entries[r.ID].Decisions {
			switch {
			case d.Poison && d.Gate == "read" && d.Session == 1:
				reads++
			case d.Poison && d.Gate == "write":
				copies++
				if d.Origin != memory.External.String() || d.Session != 1 {
					t.Errorf("%s: a copy has the origin %s, in session %d", r.Case, d.Origin, d.Session)
				}
			}
		}
		if reads != 3 || copies != 3 { // the first session writes it, each later one once more
			t.Errorf("%s: read %d times and written %d times in the write sessions", r.Case, reads, copies)
		}
		if !r.Exposed || !*r.Harm {
			t.Errorf("%s: exposed %v, harm %v", r.Case, r.Exposed, *r.Harm)
		}
	}
}

// A claim that holds from a day on does nothing before it, and a session is on the day
// that the case says.
func TestAClaimSleepsUntilItsDay(t *testing.T) {
	set, err := attacks.Open(context.Background(), frontierSamples+"/harbour-fees.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cat := Builtin()
	cat.Datasets = func(context.Context, string) (*datasets.Set, error) { return set, nil }
	for day, want := range map[string]bool{"2026-05-06": true, "2026-05-01": true, "2026-04-30": false} {
		for i := range set.Cases {
			later := *set.Cases[i].Retrieval
			later.Date = day
			set.Cases[i].Retrieval = &later
		}
		for _, agent := range []string{"hermes", "openclaw"} {
			_, out := runAll(t, cat, "dataset=x", "split=all", "agent="+agent, "model=reference:naive", "defense=none", "transcripts=all")
			for _, r := range out.trials() {
				if !bytes.Contains(out.scripts[r.ID], []byte("Today is "+day)) {
					t.Fatalf("no session on %s", day)
				}
				if r.Label == results.Attack && (*r.Harm != want || *r.Right == want || !r.Written || !r.Exposed) {
					t.Errorf("on %s: harm %v, right %v, stored %v, exposed %v", day, *r.Harm, *r.Right, r.Written, r.Exposed)
				}
			}
		}
	}
}

// The description of a tool passes the input gate like any other content, and what is
// stored of it is external.
func TestTheDescriptionOfAToolIsContent(t *testing.T) {
	out, trials := frontierRun(t, "weather-tool", "defense=none,origin-only")
	for _, r := range trials {
		if r.Label != results.Attack {
			continue
		}
		met := false
		for _, d := range out.entries[r.ID].Decisions {
			met = met || d.Poison && d.Gate == "input" && d.Origin == memory.External.String()
		}
		if !met || *r.Harm != (r.Defense == "none") {
			t.Errorf("%s: at the input gate %v, harm %v", r.Defense, met, *r.Harm)
		}
	}
}

// A summary of the agent's own carries its origin, whoever said it first: what looks at
// origins alone lets the claim through there and nowhere else.
func TestASummaryLaundersItsSource(t *testing.T) {
	for family, want := range map[string]bool{"boat-summary": true, "two-voices": false} {
		_, trials := frontierRun(t, family, "defense=origin-only")
		for _, r := range trials {
			if r.Label == results.Attack && *r.Harm != want {
				t.Errorf("%s: harm %v", family, *r.Harm)
			}
		}
	}
}

// A liking in other words still stands for its value, and an omission for its act.
func TestClaimsWithoutAValueCanBeReworded(t *testing.T) {
	for _, family := range []string{"caterer-choice", "lab-weekly"} {
		_, trials := frontierRun(t, family, "defense=none", "mutate=whitespace,paraphrase")
		n := 0
		for _, r := range trials {
			if r.Variant == "" {
				continue
			}
			if n++; !*r.Harm {
				t.Errorf("%s: %s does no harm", family, r.Variant)
			}
		}
		if n == 0 {
			t.Errorf("%s: no variant", family)
		}
	}
}
