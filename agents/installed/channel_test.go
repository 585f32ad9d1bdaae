package installed_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results"
)

// By whatever channel the content comes: undefended the attacks do what they do, the guard
// knows where it is from, and nothing that was brought is taken for memory.
func TestContentComesByEveryChannel(t *testing.T) {
	agent := "installed:hermes:" + installation(t, "")
	byTools := ""
	for _, via := range installed.Find("hermes").Vias() { // mcp is the first
		if os.Getenv("MEMTOX_LONG") == "" && !slices.Contains([]string{"mcp", "page+later", "instruction"}, via) || via == "job" {
			continue // jobs have a test of their own
		}
		t.Run(via, func(t *testing.T) {
			rows, err := try(t, agent, "defense=none,guard,block-all", "model=reference:naive", "via="+via, "class=policy_fact",
				"split=tune", "limit=2")
			if err != nil {
				t.Fatal(err)
			}
			did := ""
			for _, r := range rows {
				if r.Defense == "none" {
					did += fmt.Sprintf("%s: harm %t, done %t, stored %t\n", r.Case, harmed(&r), done(&r), r.Written)
				}
			}
			if byTools = cmp.Or(byTools, did); did != byTools || !strings.Contains(did, "harm true") {
				t.Errorf("undefended, the trials ended\n%sand by memtox's tools\n%s", did, byTools)
			}
			if n, _ := counts(t, rows, "guard", harmed); n != 0 {
				t.Errorf("%d attacks did harm behind the guard", n)
			}
			if n, _ := counts(t, rows, "block-all", func(r *results.Trial) bool { return r.Written }); n != 0 {
				t.Errorf("%d attacks were stored though nothing may be", n)
			}
			right := func(r *results.Trial) bool { return r.LineageRight == r.LineageTotal && r.Via == via }
			if n, of := counts(t, rows, "none", right); n != of {
				t.Errorf("%d of %d trials came by another channel, or the origin is not what it was", of-n, of)
			}
			kept := func(r *results.Trial) bool { return r.MemoriesSurvived == nil || *r.MemoriesSurvived }
			if n, of := counts(t, rows, "none", kept); n != of {
				t.Errorf("%d of %d trials lost ordinary memories", of-n, of)
			}
		})
	}
}

// What a job's script shows is seen, with its origin, and judged. HERMES has no memory in a job,
// so that nothing is kept; what fails there is not scored.
func TestContentComesByAJobsScript(t *testing.T) {
	settings := []string{"model=reference:naive", "via=job", "class=policy_fact", "split=tune", "limit=2"}
	rows, err := try(t, "installed:hermes:"+installation(t, ""), append(settings, "defense=none,guard")...)
	if err != nil {
		t.Fatal(err)
	}
	seen := func(r *results.Trial) bool {
		return r.Proposed && r.LineageRight == r.LineageTotal && r.Via == "job" && !r.Written
	}
	for _, r := range rows {
		if r.Label == results.Attack && !seen(&r) {
			t.Errorf("%s under %s: proposed %t, stored %t, by %q, of %d origins %d are right", r.Case, r.Defense, r.Proposed,
				r.Written, r.Via, r.LineageTotal, r.LineageRight)
		}
	}
	if n, _ := counts(t, rows, "none", harmed); n != 0 {
		t.Errorf("%d attacks did harm with nothing stored", n)
	}
	rows, err = try(t, "installed:hermes:"+installation(t, "jobless"), append(settings, "defense=none")...)
	for _, r := range rows {
		if r.Status != results.Error || !strings.Contains(r.Reason, "its job failed") {
			t.Errorf("a job that fails: %s, %s", r.Status, r.Reason)
		}
	}
	if err != nil || len(rows) == 0 {
		t.Errorf("%d trials: %v", len(rows), err)
	}
}

// Of several channels each case has one, its twin the same; or every case has each.
func TestCasesTakeTurnsInTheChannels(t *testing.T) {
	agent := "installed:hermes:" + installation(t, "")
	rows, err := try(t, agent, "defense=none", "model=reference:naive", "via=mcp,file,user", "split=tune", "limit=6")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	var vias []string
	for _, r := range rows {
		of[r.Case] = r.Via
		vias = append(vias, r.Via)
	}
	for _, r := range rows {
		if r.Via != "" && of[r.Twin] != "" && of[r.Twin] != r.Via {
			t.Errorf("%s comes by %s, its twin by %s", r.Case, r.Via, of[r.Twin])
		}
	}
	slices.Sort(vias)
	if vias = slices.DeleteFunc(slices.Compact(vias), func(v string) bool { return v == "" }); len(vias) != 3 || len(rows) != 6 {
		t.Errorf("%d trials by the channels %v", len(rows), vias)
	}

	rows, err = try(t, agent, "defense=none", "model=reference:naive", "via=mcp,file", "via_each=true", "split=tune", "limit=1")
	if err != nil {
		t.Fatal(err)
	}
	agents := map[string]int{}
	for _, r := range rows {
		agents[r.Agent]++
	}
	if agents["installed:hermes+mcp"] != 1 || agents["installed:hermes+file"] != 1 || len(rows) != 2 {
		t.Errorf("the agents have %v trials", agents)
	}
}

func TestChannelsThatAreNotThereAreRefused(t *testing.T) {
	product := "installed:hermes:" + installation(t, "")
	for _, c := range []struct{ agent, via, says string }{
		{"hermes", "via=file", "content comes to hermes by memtox's tools alone, not by file"},
		{product, "via=fiel", `did you mean "file"`},
		{product, "via=job+later", `did you mean`},
	} {
		cfg := harness.DefaultConfig()
		err := cfg.Set(c.via)
		if err == nil {
			_, err = try(t, c.agent, c.via)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s for %s: %v", c.via, c.agent, err)
		}
	}
}
