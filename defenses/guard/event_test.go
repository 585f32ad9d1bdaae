package guard_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/defensetest"
	"github.com/memtox/memtox/defenses/guard"
)

// One structured line a decision, without what it was about.
func TestTheLogHoldsNoContent(t *testing.T) {
	var out bytes.Buffer
	p, err := guard.ParsePolicy("p.yaml", []byte("extends: memory\nmode: warn\n"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Options{Policy: p, Hook: guard.Slog(slog.New(slog.NewJSONHandler(&out,
		&slog.HandlerOptions{Level: slog.LevelDebug})))})
	if err != nil {
		t.Fatal(err)
	}
	tr := defensetest.Open(t, g, defensetest.FromUser("The club meets in Bergen."))
	_, r := tr.Write(defensetest.External("The club meets in Oslo."))
	tr.Write(keyed(defensetest.FromUser("Kari"), "identity.role"))
	tr.Read("Where does the club meet?", r)
	tr.Act(memory.Call{Tool: "send_mail", Args: []memory.Arg{{Name: "to", Value: "Oslo", Role: memory.Recipient,
		Lineage: memory.Lineage{{Record: r.ID, Origin: r.Origin}}}}})

	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, v)
	}
	if len(lines) != 4 {
		t.Fatalf("%d lines of 4 decisions:\n%s", len(lines), out.String())
	}
	for _, secret := range []string{"Oslo", "Bergen", "Kari", "identity.role"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q stands in the log:\n%s", secret, out.String())
		}
	}
	for i, want := range []struct{ gate, would, level string }{{"write", "defer", "WARN"}, {"write", "block", "WARN"},
		{"read", "allow", ""}, {"act", "block", "WARN"}} {
		l := lines[i]
		if l["gate"] != want.gate || l["would"] != want.would || l["action"] != "allow" ||
			want.level != "" && l["level"] != want.level {
			t.Errorf("line %d: %v", i+1, l)
		}
	}
}
