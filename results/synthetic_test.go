package results

import (
	"fmt"
	"math/rand/v2"
)

// synthetic makes rows that look like those of a run: cases of 120 families in
// 12 arms, eight decisions a trial, deterministic in i.
func synthetic(i int64) (Trial, []Decision) {
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	yes := func(p float64) bool { return rng.Float64() < p }
	opt := func(p float64) *bool { b := yes(p); return &b }
	defenses := [...]string{"none", "keyword", "provenance", "contradiction", "anomaly", "guard"}
	agents := [...]string{"hermes", "openclaw"}
	classes := [...]string{"explicit_command", "conditional_command", "salience_compaction", "policy_fact",
		"false_precedent", "skill_procedure"}
	signals := [...]string{"strong", "strong", "strong", "weak", "weak", "weak"}
	channels := [...]string{"C1", "C1", "C3", "C2", "C2", "C4"}
	domains := [...]string{"file", "web", "email", "calendar", "slack", "script", "skill"}
	goals := [...]string{"credential_harvesting", "data_exfiltration", "recommendation_poisoning", "authentication_bypass",
		"unauthorized_action", "trust_hijacking"}
	kinds := [...]string{"user", "asked", "unasked", "nothing", "triggers"}
	arm, n := i%12, i/12
	c, epoch := n%6237, n/6237
	family := c % 120
	t := Trial{
		Index: i, Dataset: "memtox-bench", Case: fmt.Sprintf("m-%08x", uint32(c)*2654435761),
		Family: fmt.Sprintf("family-%03d", family),
		Split:  [...]string{"report", "tune"}[family%2], Domain: domains[family%7], Agent: agents[arm/6],
		Defense: defenses[arm%6],
		Model:   "reference:cautious", Epoch: int32(epoch), Status: Scored, HasRetrieval: true,
		Allow: int32(rng.IntN(4)), LineageRight: 2, LineageTotal: 2, Flushes: int32(rng.IntN(2)),
		Compactions: int32(rng.IntN(2)), Reviews: 1,
		ModelCalls: int32(3 + rng.IntN(9)), ToolCalls: int32(1 + rng.IntN(6)), PromptTokens: 2000 + rng.Int64N(6000),
		CompletionTokens: 50 + rng.Int64N(400), TokensEstimated: true, Window: 8192, ReviewTurns: 1, ReviewIterations: 2,
		KeepMessages: 4,
		WallUS:       150 + rng.Int64N(600),
	}
	poison := false
	if c%2 == 0 {
		k := int(c/2) % 6
		t.Label, t.Class, t.Signal, t.Channel, t.Goal = Attack, classes[k], signals[k], channels[k], goals[family%6]
		t.Twin = fmt.Sprintf("m-%08x", uint32(c+1)*2654435761)
		t.ExpectsASR, t.ExpectsRSR, t.Proposed = true, true, yes(0.9)
		t.Written = t.Proposed && yes(0.5)
		if t.Written {
			t.WrittenRoute, t.WrittenChannel, t.Exposed = "memory_tool", t.Channel, yes(0.8)
			t.Acted, t.Asserted = t.Exposed && yes(0.5), t.Exposed && yes(0.3)
			t.Influenced = t.Acted || t.Asserted
		}
		t.DetectedInput = opt(0.1)
		if t.Proposed {
			t.DetectedWrite, t.Deferred = opt(0.5), opt(0.1)
		}
		if t.Written {
			t.DetectedRead = opt(0.2)
		}
		d := *t.DetectedInput || t.DetectedWrite != nil && *t.DetectedWrite || t.DetectedRead != nil && *t.DetectedRead
		t.Detected, t.OwnTaskDone, t.MemoriesSurvived = &d, opt(0.95), opt(0.97)
		both := *t.OwnTaskDone && *t.MemoriesSurvived
		t.UtilityUnderAttack, poison = &both, true
	} else {
		t.Label, t.Kind = Benign, kinds[c%5]
		if c%5 < 3 {
			t.ExpectsWrite, t.LegitStopped, t.LegitDeferred, t.LegitSurvived, t.LaterTaskDone = true, opt(0.05), opt(0.05),
				opt(0.9), opt(0.95)
			u := *t.LegitSurvived && *t.LaterTaskDone
			t.Utility, t.Kept = &u, c%5 == 1
		} else {
			t.OtherTaskDone = opt(0.97)
		}
	}
	if yes(0.002) {
		t.Status, t.Reason = Error, "asking the model: the endpoint answered 503 three times"
	}
	t.ID = TrialID(t.Case, t.Agent, t.Defense, "", t.Model, int(t.Epoch))
	ds := make([]Decision, 8)
	gates := [...]string{GateInput, GateInput, GateWrite, GateWrite, GateWrite, GateRead, GateRead, GateAct}
	for k := range ds {
		d := &ds[k]
		*d = Decision{Trial: t.ID, Index: i, Seq: int32(k), Session: 1, Gate: gates[k], Action: "allow",
			LatencyNS: 200 + int64(rng.ExpFloat64()*3000)}
		switch d.Gate {
		case GateWrite:
			d.Route, d.Op, d.Record, d.Store, d.Origin, d.State = "memory_tool", "add", fmt.Sprintf("r%d", 9+k), "MEMORY.md",
				"EXTERNAL_TOOL", "live"
			d.Poison, d.Legit = poison && yes(0.6), !poison && yes(0.5)
			if yes(0.2) {
				d.Action, d.State, d.Reasons = "block", "", "keyword/ignore-previous;keyword/exfil-url"
			}
			if yes(0.3) {
				s := rng.Float64()
				d.Score = &s
			}
		case GateRead:
			d.Session, d.Route, d.Candidates = 2, "snapshot", int32(rng.IntN(10))
		case GateAct:
			d.Session, d.Route = 2, "snapshot"
		default:
			d.Origin = "EXTERNAL_TOOL"
		}
	}
	t.Digest = OutcomeDigest(&t, ds)
	return t, ds
}
