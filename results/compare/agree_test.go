package compare_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/render"
)

// writeBoth makes a run of the agents product and profile with so many attacks. Of the
// trials say tells what became of each: stored, injected and harmed as letters, "-" for
// none of them, "x" for one that is not scored, "" for none at all.
func writeBoth(t *testing.T, attacks int, say func(agent, defense string, n int) string) string {
	t.Helper()
	dir := t.TempDir()
	run := &results.Run{ID: "both", Version: "v0.0.0-test", Started: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC),
		Dataset: results.Dataset{Name: "small", Version: "1", SHA256: fmt.Sprintf("%064x", 7), Attacks: attacks},
		Split:   "tune", Model: "reference:naive", Agents: []string{"product", "profile"}, Defenses: []string{"none", "guard"}}
	var rows []*results.Trial
	for n := range attacks {
		for _, agent := range run.Agents {
			for _, defense := range run.Defenses {
				did := say(agent, defense, n)
				if did == "" {
					continue
				}
				harm := strings.Contains(did, "h")
				r := &results.Trial{Index: int64(len(rows)), Dataset: "small", Case: fmt.Sprintf("a-%02d", n),
					Family: fmt.Sprintf("f-%d", n%5), Split: "tune", Label: results.Attack, Agent: agent, Defense: defense,
					Model: run.Model, Status: results.Scored, ExpectsASR: true, Written: strings.Contains(did, "s"),
					Exposed: strings.Contains(did, "i"), Harm: &harm}
				if did == "x" {
					r.Status, r.Reason, r.Harm = results.Error, "its index does not follow", nil
				}
				r.ID = results.TrialID(r.Case, agent, defense, "", r.Model, 0)
				r.Digest = results.OutcomeDigest(r, nil)
				rows = append(rows, r)
			}
		}
	}
	run.Planned = int64(len(rows))
	j, err := results.Create(dir, run, results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := j.Append(r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

func agree(t *testing.T, dir string, o compare.AgreeOptions) *compare.Agreement {
	t.Helper()
	r, err := compare.Agree(dir, "product", "profile", o)
	if err != nil {
		t.Fatal(err)
	}
	r.Run.Name = "run"
	return r
}

func TestAgreement(t *testing.T) {
	dir := writeBoth(t, 60, func(agent, defense string, n int) string {
		product := agent == "product"
		switch {
		case n == 0 && product, n == 1 && !product && defense == "guard":
			return "x"
		case n == 2 && product, n == 3 && !product:
			return ""
		case defense == "none" && n%10 == 9 && !product:
			return "sih"
		case defense == "none" && n%2 == 1:
			return "s"
		case defense == "none":
			return "sih"
		case n%6 == 0, n == 7 && product:
			return "sih"
		}
		return "-"
	})
	r := agree(t, dir, compare.AgreeOptions{})
	for _, f := range render.Formats() {
		var b bytes.Buffer
		if err := r.Write(&b, f); err != nil {
			t.Fatal(err)
		}
		golden(t, "agree."+f, b.Bytes())
	}
	if !r.Short() || agree(t, dir, compare.AgreeOptions{Least: 0.5, LeastKappa: 0.5}).Short() {
		t.Error("what is below does not follow what has to be reached")
	}
	if stored := r.Arms[0].Columns[0]; stored.Kappa.Measured() || len(stored.Short) > 0 {
		t.Errorf("of a column in which both always agree, kappa is %v, and below is %v", stored.Kappa, stored.Short)
	}
}

func TestAgreementOfNoAgent(t *testing.T) {
	dir := writeBoth(t, 2, func(string, string, int) string { return "-" })
	if _, err := compare.Agree(dir, "product", "profil", compare.AgreeOptions{}); err == nil ||
		!strings.Contains(err.Error(), `did you mean "profile"?`) {
		t.Errorf("a mistyped agent: %v", err)
	}
	if _, err := compare.Agree(dir, "product", "product", compare.AgreeOptions{}); err == nil {
		t.Error("an agent was compared with itself")
	}
}
