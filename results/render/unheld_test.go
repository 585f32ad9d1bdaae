package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/summary"
)

// An arm whose gates had nothing to hold on to says so in each of its rows.
func TestGatesThatWereNotEnforcedAreNamedInTheirRows(t *testing.T) {
	run := &results.Run{Agents: []string{"alone", "mine"}, Defenses: []string{"none", "guard"}, Model: "m"}
	a := summary.New(run, summary.Options{})
	for _, agent := range run.Agents {
		for _, defense := range run.Defenses {
			row := results.Trial{Agent: agent, Defense: defense, Model: "m", Status: results.Scored, Label: results.Attack}
			if agent == "alone" && defense == "guard" {
				row.NotEnforced = "read act"
			}
			a.Add(&results.Entry{Trial: row})
		}
	}
	s := a.Summary()
	for _, full := range []bool{false, true} {
		var b strings.Builder
		if err := render.Summary(&b, s, "table", render.Options{Full: full}); err != nil {
			t.Fatal(err)
		}
		rows, named := 0, 0
		agent := ""
		for line := range strings.Lines(b.String()) {
			f := strings.Fields(line)
			if len(f) > 1 && slices.Contains(run.Agents, f[0]) {
				agent = f[0]
				f = f[1:]
			}
			if len(f) < 3 || f[0] != "guard" || full && agent != "alone" {
				continue
			}
			rows++
			if strings.Contains(line, "not enforced") || f[1] == "*" {
				named++
			}
		}
		if rows == 0 || named != rows {
			t.Errorf("full %v: %d of %d rows say it:\n%s", full, named, rows, b.String())
		}
		if !full && !strings.Contains(b.String(), "* not enforced with alone, which asks a model of its own: guard read, act.") {
			t.Error(b.String())
		}
	}
}
