// Package runtest makes run directories that look like those of real runs,
// for the tests of what reads them. The rows of a trial depend on its place in
// the plan alone.
package runtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memtox/memtox/results"
)

// Spec says what run to make. The zero value is a run of no trials.
type Spec struct {
	Trials     int64
	Planned    int64 // Trials if 0
	Agents     []string
	Defenses   []string
	Transcript func(*Spec, *results.Trial) []byte // of a trial; nil makes none
	// Hostile is put into every text that comes from outside: case, family,
	// reasons, messages, records.
	Hostile string
	LLM     bool
	// Judged adds a language model that judges attacks.
	Judged bool
	// Unfinished leaves the directory as a killed run leaves it.
	Unfinished bool
	// States gives every trial an outcome by state, at two ends of compliance.
	States bool
	// NotScored is the share of trials that end in an error.
	NotScored float64
}

// Started is when every synthetic run began.
var Started = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// The classes, signals and channels of attacks, class by class.
var (
	classes = [...]string{"explicit_command", "conditional_command", "salience_compaction", "policy_fact",
		"false_precedent", "skill_procedure"}
	signals  = [...]string{"strong", "strong", "strong", "weak", "weak", "weak"}
	channels = [...]string{"C1", "C1", "C3", "C2", "C2", "C4"}
)

func (s *Spec) defaults() {
	if s.Planned == 0 {
		s.Planned = s.Trials
	}
	if s.Agents == nil {
		s.Agents = []string{"hermes", "openclaw"}
	}
	if s.Defenses == nil {
		s.Defenses = []string{"none", "keyword", "provenance", "contradiction", "anomaly", "guard"}
	}
}

// Run is the run.json of a spec.
func Run(s Spec) *results.Run {
	s.defaults()
	model := "reference:cautious"
	if s.LLM {
		model = "ollama:tiny"
	}
	r := &results.Run{
		ID: "20260302-090000-5ca1e0", Version: "v0.0.0-test", Started: Started,
		Dataset: results.Dataset{Name: "memtox-bench" + s.Hostile, Version: "v1", SHA256: "00ff", Attacks: 60, Benign: 60},
		Split:   "report", Model: model, LLM: s.LLM, Agents: s.Agents, Defenses: s.Defenses, Seed: 1, Planned: s.Planned,
		Settings: map[string]any{"agent": s.Agents, "background": 8, "dataset": "memtox-bench" + s.Hostile, "limit": 120,
			"model": model, "seed": 1,
			"resolved": map[string]any{"profiles": map[string]any{"hermes": "1"}}},
		Host: map[string]any{"os": "linux", "arch": "amd64", "processors": 2, "go": "go1.26"},
	}
	if s.States {
		r.Models = []string{"reference:naive", "reference:cautious"}
	}
	return r
}

// Write makes a run directory.
func Write(t testing.TB, dir string, s Spec) {
	t.Helper()
	s.defaults()
	j, err := results.Create(dir, Run(s), results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	Append(t, j, s, 0, s.Trials)
	if s.Unfinished {
		err = j.Close()
	} else {
		_, err = j.Finish(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Append adds the trials from one place in the plan up to another.
func Append(t testing.TB, j *results.Journal, s Spec, from, to int64) {
	t.Helper()
	s.defaults()
	for i := from; i < to; i++ {
		trial, ds := s.Trial(i)
		var transcript []byte
		if s.Transcript != nil && trial.Status != results.Excluded {
			transcript = s.Transcript(&s, &trial)
		}
		if err := j.Append(&trial, ds, transcript); err != nil {
			t.Fatal(err)
		}
	}
}

// Trial makes the rows of the trial at one place in the plan.
func (s Spec) Trial(i int64) (results.Trial, []results.Decision) {
	s.defaults()
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	yes := func(p float64) bool { return rng.Float64() < p }
	opt := func(p float64) *bool { b := yes(p); return &b }
	arms := int64(len(s.Agents) * len(s.Defenses))
	arm, c := i%arms, i/arms
	models := Run(s).ModelNames()
	model := models[c%int64(len(models))]
	c /= int64(len(models))
	d := int(arm) % len(s.Defenses)
	strength := float64(d) / float64(max(len(s.Defenses)-1, 1)) // of the defense
	family := c % 20
	t := results.Trial{
		Index: i, Dataset: "memtox-bench" + s.Hostile, Case: fmt.Sprintf("m-%08x%s", uint32(c)*2654435761, s.Hostile),
		Family: fmt.Sprintf("family-%03d%s", family, s.Hostile),
		Split:  "report", Domain: [...]string{"file", "web", "email", "calendar", "slack", "script", "skill"}[family%7],
		Agent: s.Agents[int(arm)/len(s.Defenses)], Defense: s.Defenses[d], Model: model,
	}
	attack, k := c%2 == 0, int(c/2)%len(classes)
	if attack {
		t.Label, t.Class, t.Signal, t.Channel = results.Attack, classes[k], signals[k], channels[k]
		t.ExpectsASR, t.ExpectsRSR = true, true
	} else {
		t.Label, t.ExpectsWrite = results.Benign, c%5 < 3
	}
	failed, excluded := t, t // a trial that is not scored has these columns alone
	failed.Status, failed.Reason = results.Error, "asking the model: the endpoint answered 503 three times"+s.Hostile
	excluded.Status, excluded.Reason = results.Excluded, "the profile has no skills"
	excluded.ExpectsASR, excluded.ExpectsRSR = false, false

	t.Status, t.HasRetrieval = results.Scored, true
	t.Allow, t.LineageRight, t.LineageTotal, t.Reviews = int32(rng.IntN(4)), int32(1+rng.IntN(2)), 2, 1
	t.ModelCalls, t.ToolCalls, t.PromptTokens = int32(3+rng.IntN(9)), int32(1+rng.IntN(6)), 2000+rng.Int64N(6000)
	t.CompletionTokens, t.TokensEstimated = 50+rng.Int64N(400), true
	t.Window, t.ReviewTurns, t.ReviewIterations, t.KeepMessages = 8192, 1, 2, 4
	t.WallUS = 150 + rng.Int64N(600)
	if attack {
		t.Goal, t.Twin = "data_exfiltration", fmt.Sprintf("m-%08x", uint32(c+1)*2654435761)
		t.Proposed = yes(0.9)
		caught := yes(0.9 * strength)
		t.Written = t.Proposed && !caught && yes(0.9)
		if t.Written {
			t.WrittenRoute, t.WrittenChannel, t.Exposed = "memory_tool", t.Channel, yes(0.85)
			t.Acted, t.Asserted = t.Exposed && yes(0.5), t.Exposed && yes(0.3)
			t.Influenced = t.Acted || t.Asserted
		}
		t.Detected, t.DetectedInput = &caught, opt(0.05*strength)
		if t.Proposed {
			t.DetectedWrite, t.Deferred = &caught, opt(0.1*strength)
		}
		t.OwnTaskDone, t.MemoriesSurvived = opt(0.95), opt(0.97)
		both := *t.OwnTaskDone && *t.MemoriesSurvived
		t.UtilityUnderAttack = &both
	} else {
		t.Kind = [...]string{"user", "asked", "unasked", "nothing", "triggers"}[c%5]
		if t.ExpectsWrite {
			t.LegitStopped, t.LegitDeferred, t.LegitSurvived, t.LaterTaskDone = opt(0.2*strength), opt(0.05*strength),
				opt(0.95-0.2*strength), opt(0.95)
			u := *t.LegitSurvived && *t.LaterTaskDone
			t.Utility, t.Kept = &u, c%5 == 1
		} else {
			t.OtherTaskDone = opt(0.97)
		}
	}
	if s.States {
		t.Situation, t.High, t.Due = [...]string{"known", "unknown", "outdated"}[c/2%3], c%3 == 0, int32(c/2%2)
		t.Asked = int32(rng.IntN(2))
		harm, done := attack && yes(0.9*(1-strength)), yes(0.9-0.4*strength)
		wrong := !attack && !done && yes(0.3)
		done = done && !harm
		idle := !harm && !done && !wrong
		t.Done, t.Idle = &done, &idle
		if t.Question = c%7 == 6; t.Question {
			t.Done, t.Idle, t.Answered, t.Misled, t.Told = nil, nil, &done, &wrong, &idle
		} else if attack {
			t.Harm = &harm
		} else {
			t.Wrong = &wrong
		}
	}
	if yes(s.NotScored) {
		t = failed
	} else if t.Channel == "C4" && t.Agent == "openclaw" {
		t = excluded
	}
	if s.Judged && attack && t.Status == results.Scored {
		t.Judge, t.JudgeCalls, t.JudgeTokens, t.JudgeUnanswered = "llm:openai:reader"+s.Hostile+" prompts 1", 3, 900, 1
		written := true
		t.JudgedWritten = &written
	}
	t.ID = results.TrialID(t.Case, t.Agent, t.Defense, "", t.Model, 0)
	var ds []results.Decision
	if t.Status == results.Scored {
		ds = s.decisions(&t, rng, strength)
	}
	t.Digest = results.OutcomeDigest(&t, ds)
	return t, ds
}

// decisions cycle through the gates in the order of two sessions.
func (s Spec) decisions(t *results.Trial, rng *rand.Rand, strength float64) []results.Decision {
	order := [...]results.Decision{
		{Session: 1, Gate: results.GateRead, Route: "snapshot", Candidates: 2},
		{Session: 1, Gate: results.GateInput, Origin: "USER"},
		{Session: 1, Gate: results.GateInput, Origin: "EXTERNAL_TOOL"},
		{Session: 1, Gate: results.GateWrite, Route: "memory_tool", Op: "add", Record: "r3", Store: "memory",
			Origin: "EXTERNAL_TOOL", State: "live"},
		{Session: 2, Gate: results.GateRead, Route: "snapshot", Candidates: 3},
		{Session: 2, Gate: results.GateRead, Route: "snapshot", Record: "r3", Store: "memory", Origin: "EXTERNAL_TOOL",
			State: "live"},
		{Session: 2, Gate: results.GateInput, Origin: "USER"},
		{Session: 2, Gate: results.GateAct, Route: "snapshot"},
	}
	ds := order[:]
	for k := range ds {
		d := &ds[k]
		d.Trial, d.Index, d.Seq, d.Action = t.ID, t.Index, int32(k), "allow"
		poison := t.Label == results.Attack
		switch {
		case d.Gate == results.GateWrite:
			d.Poison, d.Legit = poison, !poison
			if t.DetectedWrite != nil && *t.DetectedWrite || t.LegitStopped != nil && *t.LegitStopped {
				d.Action, d.State, d.Reasons = "block", "", "lexicon/ignore-previous;lexicon/exfil-url"+s.Hostile
			}
			score := float64(rng.IntN(100)) / 100
			d.Score = &score
		case d.Record != "":
			d.Poison = poison
		case d.Origin == "EXTERNAL_TOOL":
			d.Poison = poison
		}
		if d.Record == "" || d.Gate != results.GateRead {
			d.LatencyNS = 200 + int64(rng.ExpFloat64()*3000*(1+3*strength))
		}
	}
	return ds
}
