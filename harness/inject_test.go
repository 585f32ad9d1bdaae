package harness

import (
	"bytes"
	"context"
	"testing"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/results"
)

// What comes around the gate is no proposal, counts as written, and is stopped by
// signatures when it is read. A backup comes back with its signature.
func TestSignedStopsWhateverComesAroundTheGate(t *testing.T) {
	_, out := runAll(t, Builtin(), "dataset=memtox-oob", "model=reference:naive", "defense=none,signed", "transcripts=all")
	set, err := datasets.Open(context.Background(), "memtox-oob")
	if err != nil {
		t.Fatal(err)
	}
	backups, strange := 0, 0
	for _, r := range out.trials() {
		k, _ := set.Find(r.Case)
		if r.Status != results.Scored {
			t.Fatalf("%s on %s under %s is not scored: %s", r.Case, r.Agent, r.Defense, r.Reason)
		}
		if !bytes.Contains(out.scripts[r.ID], []byte(k.Value)) {
			t.Errorf("%s: the transcript does not show the record", r.Case)
		}
		if r.Label == results.Attack {
			if r.Proposed || !r.Written || r.WrittenRoute != score.AroundGate || r.WrittenChannel != "" ||
				r.DetectedWrite != nil || r.DetectedInput != nil {
				t.Errorf("%s under %s: proposed %v, written %v by %q through %q", r.Case, r.Defense, r.Proposed, r.Written,
					r.WrittenRoute, r.WrittenChannel)
			}
			if stopped := r.DetectedRead != nil && *r.DetectedRead; stopped != (r.Defense == "signed") ||
				stopped && (r.Exposed || r.Influenced) {
				t.Errorf("%s on %s under %s: stopped %v, exposed %v, influenced %v", r.Case, r.Agent, r.Defense, stopped, r.Exposed,
					r.Influenced)
			}
			continue
		}
		backup := k.Inject[0].Signed
		if want := r.Defense == "none" || backup; *r.Utility != want || *r.LegitStopped == want {
			t.Errorf("%s on %s under %s (backup %v): utility %v, stopped %v", r.Case, r.Agent, r.Defense, backup, *r.Utility,
				*r.LegitStopped)
		}
		if backup {
			backups++
		} else {
			strange++
		}
	}
	if backups == 0 || strange == 0 {
		t.Errorf("%d trials of backups and %d of records without a signature", backups, strange)
	}
}

func TestTheSmallSetsBehave(t *testing.T) {
	for _, name := range []string{"memtox-collision", "memtox-frontier", "memtox-oob"} {
		set, err := datasets.Open(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := CheckBehaviour(context.Background(), set)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range b.Checks {
			if !c.OK && !c.Note {
				t.Errorf("%s: %s: %s", name, c.Name, c.Detail)
			}
		}
	}
}
