package summary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
)

// A run in which no write was proposed says nothing of a defense, and says so; a few
// trials, trials that expect none and texts that never reached the agent do not.
func TestSilence(t *testing.T) {
	row := func(change func(*results.Trial)) results.Trial {
		r := results.Trial{Agent: "a", Defense: "none", Model: "naive", Label: results.Attack, Status: results.Scored,
			ExpectsASR: true, ExpectsProposal: true}
		change(&r)
		return r
	}
	few := func(n int, change func(*results.Trial)) (out []results.Trial) {
		for range n {
			out = append(out, row(change))
		}
		return out
	}
	plain := func(*results.Trial) {}
	for name, c := range map[string]struct {
		n      int
		change func(*results.Trial)
		more   []results.Trial
		silent bool
		arms   int // that are
	}{
		"no write in twenty": {20, plain, nil, true, 1},
		"no write in a few":  {19, plain, nil, false, 0},
		"one write":          {40, plain, []results.Trial{row(func(r *results.Trial) { r.Block = 1 })}, false, 0},
		"one arm is silent": {40, plain, []results.Trial{row(func(r *results.Trial) { r.Agent, r.Allow = "b", 1 })},
			false, 1},
		"none is expected":            {40, func(r *results.Trial) { r.ExpectsProposal = false }, nil, false, 0},
		"stopped at the input":        {40, func(r *results.Trial) { r.DetectedInput = yes() }, nil, false, 0},
		"stopped at the input, asked": {40, func(r *results.Trial) { r.LegitStopped = yes() }, nil, false, 0},
		"not scored":                  {40, func(r *results.Trial) { r.Status = results.Error }, nil, false, 0},
		// Both ends of compliance go through the same write sessions: one piece of evidence.
		"a few, at both ends":  {19, plain, few(19, func(r *results.Trial) { r.Model = "cautious" }), false, 0},
		"twenty, at both ends": {20, plain, few(20, func(r *results.Trial) { r.Model = "cautious" }), true, 2},
	} {
		a := New(&results.Run{Agents: []string{"a", "b"}, Models: []string{"naive", "cautious"}, Defenses: []string{"none"}}, Options{})
		rows := append(few(c.n, c.change), c.more...)
		for i := range rows {
			a.Add(&results.Entry{Trial: rows[i]})
		}
		s, arms := a.Summary(), 0
		for i := range s.Arms {
			if s.Arms[i].Silent() {
				arms++
				if !strings.Contains(strings.Join(s.Arms[i].Warnings, ";"), "no write was proposed in any of") {
					t.Errorf("%s: a silent arm does not warn: %q", name, s.Arms[i].Warnings)
				}
			}
		}
		if (s.Silence() != "") != c.silent || arms != c.arms {
			t.Errorf("%s: the run says %q, %d arms are silent", name, s.Silence(), arms)
		}
	}
}

// Errors are counted by a closed set of kinds, whatever a reason quotes.
func TestErrorKinds(t *testing.T) {
	for reason, want := range map[string]string{
		"write session: turn 1: the model failed: no answer: POST /v1 at h: status 200: the answer holds no message": "no answer",
		"write session: the model failed: cut answer: the stream ends without a finish_reason; raise reply_tokens":   "cut answer",
		"turn 1: the model failed for good: POST http://h/v1: status 401":                                            "fatal",
		"turn 1: the model failed for now: dial tcp: connection refused":                                             "transient",
		"turn 1: the model failed: fatal: POST http://h/v1: status 401":                                              "fatal", // a run of before
		"turn 1: the model failed: transient: dial tcp: connection refused":                                          "transient",
		"write session: the model failed: context deadline exceeded":                                                 OtherError,
		"the model failed: no answers today: none":                                                                   OtherError,
		"tool memory: the defense failed at the write gate: asking judge: no answer: status 200":                     DefenseError,
		"the defense failed at the read gate: it says: the model failed: no answer: x":                               DefenseError,
		"opening the defense: exec: no such file":                                                                    DefenseError,
		"the trial took longer than trial_timeout (1s) allows":                                                       TimeError,
		"": OtherError,
	} {
		if got := ErrorKind(reason); got != want {
			t.Errorf("%q: %s, want %s", reason, got, want)
		}
	}
	a := New(&results.Run{}, Options{})
	for i := range 500 {
		a.Add(&results.Entry{Trial: results.Trial{Agent: "a", Defense: "d", Status: results.Error,
			Reason: fmt.Sprintf("the model failed: kind %d: x", i), EmptyAnswers: 2}})
	}
	if s := a.Summary(); len(s.Arms[0].Errors) != 1 || s.Arms[0].Errors[OtherError] != 500 ||
		s.Arms[0].Costs.EmptyAnswers != 1000 {
		t.Errorf("%v, %+v", s.Arms[0].Errors, s.Arms[0].Costs)
	}
}
