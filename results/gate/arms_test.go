package gate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/memtox/memtox/results"
)

// armSpec says how an arm behaves: the probability that an attack lands, that a
// poisoned proposal is stopped, that a legitimate write is stopped.
type armSpec struct {
	Agent, Defense           string
	Lands, Stops, FalseAlarm float64
	LatencyNS                int64 // of a write decision, on average
}

// runSpec says what a run is made of. Equal specs make equal runs.
type runSpec struct {
	ID, Dataset     string
	Families, Cases int // of each label; cases are spread over the families
	Arms            []armSpec
	Seed            uint64
	Skip            map[string]bool // cases that the run does not have
	Errors          map[string]bool // cases that fail in every arm
	Unfinished      bool
	Host            map[string]any
}

// Run describes the run.
func (s *runSpec) Run() *results.Run {
	planned := 2 * s.Cases
	if !s.Unfinished {
		planned -= len(s.Skip)
	}
	r := &results.Run{ID: s.ID, Version: "v0.0.0-test", Started: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC),
		Dataset: results.Dataset{Name: s.Dataset, Version: "1", SHA256: fmt.Sprintf("%064x", len(s.Dataset)),
			Attacks: s.Cases, Benign: s.Cases},
		Split: "report", Model: "reference:cautious", Seed: 1, Host: s.Host, Planned: int64(planned * len(s.Arms))}
	for _, a := range s.Arms {
		if !slices.Contains(r.Agents, a.Agent) {
			r.Agents = append(r.Agents, a.Agent)
		}
		if !slices.Contains(r.Defenses, a.Defense) {
			r.Defenses = append(r.Defenses, a.Defense)
		}
	}
	return r
}

// Trials yields the run's trials in the order of the plan.
func (s *runSpec) Trials(yield func(*results.Trial, []results.Decision)) {
	for n := range 2 * s.Cases {
		id, family := fmt.Sprintf("%c-%04d", "ab"[n%2], n/2), n/2%s.Families
		if s.Skip[id] {
			continue
		}
		for k, arm := range s.Arms {
			rng := rand.New(rand.NewPCG(s.Seed<<20, uint64(n)<<8|uint64(k)))
			yes := func(p float64) *bool { b := rng.Float64() < p; return &b }
			no, fine := false, true
			t := results.Trial{ID: results.TrialID(id, arm.Agent, arm.Defense, "", "reference:cautious", 0),
				Index:   int64(n*len(s.Arms) + k),
				Dataset: s.Dataset, Case: id, Family: fmt.Sprintf("family-%.1s-%03d", id, family), Split: "report", Domain: "email",
				Agent: arm.Agent, Defense: arm.Defense, Model: "reference:cautious", Status: results.Scored, HasRetrieval: true,
				WallUS: 200}
			attack := n%2 == 0
			if attack {
				t.Label, t.Channel, t.Goal, t.ExpectsASR, t.ExpectsRSR = results.Attack, "C1", "data_exfiltration", true, true
				t.Class, t.Signal = []string{"explicit_command", "policy_fact"}[family%2], []string{"strong", "weak"}[family%2]
			} else {
				t.Label, t.Kind, t.ExpectsWrite = results.Benign, "asked", true
			}
			var ds []results.Decision
			if s.Errors[id] {
				t.Status, t.Reason = results.Error, "the endpoint answered 503"
			} else {
				stopped := yes(arm.Stops)
				if attack {
					t.Proposed, t.DetectedWrite, t.Detected, t.Deferred = true, stopped, stopped, &no
					t.Written, t.Exposed = !*stopped, !*stopped
					t.Acted = t.Written && *yes(arm.Lands)
					t.Influenced, t.UtilityUnderAttack = t.Acted, &fine
				} else {
					t.LegitStopped, t.LegitDeferred = yes(arm.FalseAlarm), &no
					fine = !*t.LegitStopped
					t.LegitSurvived, t.LaterTaskDone, t.Utility = &fine, &fine, &fine
				}
				for d, gate := range []string{results.GateInput, results.GateWrite, results.GateRead} {
					x := results.Decision{Trial: t.ID, Index: t.Index, Seq: int32(d), Session: 1 + int32(d/2), Gate: gate,
						Action:    "allow",
						LatencyNS: arm.LatencyNS/2 + rng.Int64N(arm.LatencyNS+1)}
					if gate == results.GateWrite && *stopped && attack {
						x.Action, x.Poison, x.Reasons = "block", true, "keyword/exfil"
					}
					ds = append(ds, x)
				}
			}
			t.Digest = results.OutcomeDigest(&t, ds)
			yield(&t, ds)
		}
	}
}

// Write makes the run directory.
func (s *runSpec) Write(t testing.TB, dir string) string {
	t.Helper()
	j, err := results.Create(dir, s.Run(), results.Options{SyncEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.Trials(func(x *results.Trial, ds []results.Decision) {
		if err := j.Append(x, ds, nil); err != nil {
			t.Fatal(err)
		}
	})
	if s.Unfinished {
		err = j.Close()
	} else {
		_, err = j.Finish(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
