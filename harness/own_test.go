package harness

import (
	"context"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
)

// A product's own defenses are an arm of its profile: what waits for the user's approval is
// not stored. The run says what the arm switches.
func TestAProfileWithItsProductsDefensesOn(t *testing.T) {
	x, out := runAll(t, Builtin(), "agent=hermes-0.19", "model=reference:naive", "defense=none,product-on", "limit=12",
		"split=tune")
	stored := map[string]int{}
	for _, r := range out.trials() {
		if r.Status != results.Scored {
			t.Fatalf("%s: %s", r.Case, r.Reason)
		}
		if r.Written {
			stored[r.Defense]++
		}
	}
	if stored["none"] == 0 || stored["product-on"] != 0 {
		t.Errorf("stored: %v", stored)
	}
	own, _ := x.Resolved()["own"].(map[string]any)
	if s, _ := own["hermes-0.19 product-on"].(string); !strings.Contains(s, "approval") {
		t.Errorf("the run says %v of its product's own defenses", own)
	}
}

// An arm may take tools away: beside it, the same profile still has them.
func TestAProfileWithItsProductsDefensesOff(t *testing.T) {
	_, out := runAll(t, Builtin(), "agent=openclaw-2026.9", "model=reference:naive", "defense=none,product-off", "limit=12",
		"split=tune")
	stored, shown := map[string]int{}, map[string]int{}
	for _, r := range out.trials() {
		if r.Status != results.Scored {
			continue // of an attack by a skill, which it does not write
		}
		if r.Written {
			stored[r.Defense]++
		}
		if r.Exposed {
			shown[r.Defense]++
		}
	}
	if stored["product-off"] != stored["none"] || shown["none"] == 0 || shown["product-off"] != 0 {
		t.Errorf("stored: %v, in a prompt: %v", stored, shown)
	}
}

func TestAnAgentWithNothingToSwitch(t *testing.T) {
	for agent, says := range map[string]string{"hermes": "no defenses of its own", "hermes-0.19": "have no switch"} {
		c := DefaultConfig()
		c.Agents, c.Defenses = []string{agent}, []string{"none", "product-off"}
		if _, err := Prepare(context.Background(), c, Builtin()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", agent, err)
		}
	}
}
