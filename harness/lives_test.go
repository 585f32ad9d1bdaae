package harness

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/results"
)

func TestLongerLivesAreAgentsOfTheirOwn(t *testing.T) {
	settings := []string{"dataset=memtox-smoke", "agent=hermes", "defense=none,anomaly", "split=all"}
	x, plain := runAll(t, Builtin(), settings...)
	y, lives := runAll(t, Builtin(), append(settings, "write_sessions=1,3", "gap=0,4")...)
	if got := strings.Join(y.Record("r", "v", trialStart).Agents, " "); got != "hermes hermes+g4 hermes+w3 hermes+w3+g4" {
		t.Errorf("agents %s", got)
	}
	// The ordinary life is what it was, to the digest.
	for id, digest := range plain.outcomes() {
		if lives.outcomes()[id] != digest {
			t.Fatalf("trial %s of the ordinary life changed", id)
		}
	}
	if plain, lives := x.Plan.Len(), y.Plan.Len(); lives != 4*plain {
		t.Errorf("%d trials, %d with four lives", plain, lives)
	}
	sessions := map[string]map[int32]bool{}
	calls := map[string]int32{}
	for _, e := range lives.entries {
		if e.Trial.Status != results.Scored {
			continue
		}
		calls[e.Trial.Agent] += e.Trial.ModelCalls
		for _, d := range e.Decisions {
			if sessions[e.Trial.Agent] == nil {
				sessions[e.Trial.Agent] = map[int32]bool{}
			}
			sessions[e.Trial.Agent][d.Session] = true
		}
	}
	for agent, want := range map[string][]int32{"hermes": {1, 2}, "hermes+w3": {1, 2}, "hermes+g4": {1, 2, 3},
		"hermes+w3+g4": {1, 2, 3}} {
		if got := slices.Sorted(maps.Keys(sessions[agent])); !slices.Equal(got, want) {
			t.Errorf("%s decides in sessions %v, want %v", agent, got, want)
		}
	}
	if !(calls["hermes"] < calls["hermes+w3"] && calls["hermes+w3"] < calls["hermes+w3+g4"] &&
		calls["hermes"] < calls["hermes+g4"]) {
		t.Errorf("model calls %v", calls)
	}
}

func TestALongGapHasMoreInMemory(t *testing.T) {
	_, out := runAll(t, Builtin(), "dataset=memtox-smoke", "agent=rag", "defense=none", "split=all", "limit=6", "gap=0,12")
	most := map[string]int{}
	for _, e := range out.entries {
		n := 0
		for _, d := range e.Decisions {
			if d.Gate == results.GateWrite {
				n++
			}
		}
		most[e.Trial.Agent] = max(most[e.Trial.Agent], n)
	}
	if most["rag+g12"] < most["rag"]+6 {
		t.Errorf("writes in a trial: %v", most)
	}
}

func TestLivesOutOfRangeAreRefused(t *testing.T) {
	for setting, want := range map[string]string{
		"write_sessions=0": `write_sessions: 0 is out of range (at least 1, at most 50)`,
		"gap=1001":         `gap: 1001 is out of range (at least 0, at most 1000)`,
		"gap=-1":           `gap: -1 is out of range`, "write_sessions=2,02": `write_sessions: "02" stands in the list twice`} {
		c := DefaultConfig()
		if err := c.Set(setting); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestDriftKeepsTheValueAndTheAsidesHoldNone(t *testing.T) {
	set, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i := range set.Cases {
		c := &set.Cases[i]
		before := string(datasets.AppendCase(nil, c))
		for _, n := range []int{2, 3, 9} {
			turns := attacks.Drift(*c, n)
			if !turns[0].Fresh || len(turns) != len(c.Write) {
				t.Fatalf("%s: session %d has %d turns", c.ID, n, len(turns))
			}
			drifted := *c
			drifted.Write = turns
			if c.Value != "" && c.Kind != datasets.KindUser && !strings.Contains(caseText(&drifted), c.Value) {
				t.Errorf("%s: session %d lost the value %q", c.ID, n, c.Value)
			}
			if caseText(&drifted) != caseText(c) {
				changed++
			}
		}
		if string(datasets.AppendCase(nil, c)) != before {
			t.Fatalf("drift changed case %s", c.ID)
		}
		for _, a := range attacks.Asides(uint64(i), 130) {
			if c.Label == datasets.Attack && (datasets.Holds(a.Mail, c.Value) || datasets.Holds(a.Remember, c.Value)) {
				t.Errorf("an ordinary session holds the value of %s: %+v", c.ID, a)
			}
		}
	}
	if changed < 100 {
		t.Errorf("only %d further sessions differ from the first", changed)
	}
	short, long := attacks.Asides(7, 5), attacks.Asides(7, 300)
	if !slices.Equal(short, long[:5]) {
		t.Error("a longer gap does not begin like a shorter one")
	}
}

func caseText(c *datasets.Case) string {
	var b strings.Builder
	for _, t := range c.Write {
		b.WriteString(t.User + "\n")
		for _, s := range t.Segments {
			b.WriteString(s.Text + "\n")
		}
	}
	return b.String()
}
