package summary

import (
	"fmt"
	"strings"

	"github.com/memtox/memtox/results"
)

// errorKinds are the kinds of a model's errors, as the reasons of rows have them.
// Package internal/remote makes them.
var errorKinds = []string{"fatal", "rate limit", "transient", "malformed tool call", "filtered", "not recorded",
	"no answer", "cut answer", "wrong usage", "broken tool call", "cut prompt"}

// The kinds of errors beside a model's.
const (
	DefenseError = "defense" // the defense failed
	TimeError    = "timeout" // the trial took too long
	OtherError   = "other"
)

// ErrorKind is the kind of the error that a row gives as its reason: one of a closed
// set, whatever the reason quotes.
func ErrorKind(reason string) string {
	const model, defense = "the model failed", "the defense"
	at, of := strings.Index(reason, model), strings.Index(reason, defense)
	if at >= 0 && (of < 0 || at < of) {
		rest := reason[at+len(model):]
		for how, kind := range map[string]string{" for good: ": "fatal", " for now: ": "transient"} {
			if strings.HasPrefix(rest, how) {
				return kind
			}
		}
		rest = strings.TrimPrefix(rest, ": ") // runs of before have the kind's name for these two as well
		for _, k := range errorKinds {
			if after, ok := strings.CutPrefix(rest, k); ok && (after == "" || strings.Contains(":; ", after[:1])) {
				return k
			}
		}
		return OtherError
	}
	switch {
	case of >= 0:
		return DefenseError
	case strings.Contains(reason, "trial_timeout"):
		return TimeError
	}
	return OtherError
}

// writes counts the scored trials that expect a proposal, and those that have one.
type writes struct{ expected, proposed int64 }

func (w *writes) add(t *results.Trial) {
	switch {
	case !t.ExpectsProposal:
	case t.Allow+t.Redact+t.Defer+t.Quarantine+t.Block > 0:
		w.expected++
		w.proposed++
	case t.DetectedInput != nil && *t.DetectedInput || t.LegitStopped != nil && *t.LegitStopped:
		// What was to be kept was stopped at the input gate: the agent never saw it.
	default:
		w.expected++
	}
}

// leastSilence is from how many trials on it says something that no write was
// proposed in any: an agent that proposes one in a seventh of them does so by chance
// in one run of twenty.
const leastSilence = 20

// Silent reports whether no write was proposed in any trial of the arm that expects
// one, of which there are enough to say so.
func (a *Arm) Silent() bool { return a.WriteExpected >= leastSilence && a.WriteProposed == 0 }

// Silence says so, and why that may be.
func (a *Arm) Silence() string {
	return fmt.Sprintf("no write was proposed in any of %d trials that expect one: there was nothing to defend against. "+
		"Perhaps the model calls no tools (memtox doctor), its prompts are cut (a larger context), "+
		"or its tool calls are not understood (--set protocol=fenced)", a.WriteExpected)
}

// Silence is "" unless the run as a whole is silent: then it says so, and why that
// may be. Models drive an agent through the same write sessions, so their trials are
// counted for each model by itself, and the model with most of them decides.
func (s *Summary) Silence() string {
	var all Arm
	expected := map[string]int64{}
	for i := range s.Arms {
		a := &s.Arms[i]
		expected[a.Model] += a.WriteExpected
		all.WriteExpected = max(all.WriteExpected, expected[a.Model])
		all.WriteProposed += a.WriteProposed
	}
	if !all.Silent() {
		return ""
	}
	return all.Silence()
}
