package harness_test

import (
	"context"
	"testing"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results"
)

// Every decision stands once, beside the message that it is about, and what of a message
// has an origin of its own stands in it whole.
func TestDecisionsStandBesideTheirMessage(t *testing.T) {
	c := harness.DefaultConfig()
	c.Dataset, c.Agents, c.Defenses, c.Gap = "memtox-smoke", []string{"hermes", "openclaw", "rag"}, []string{"guard"},
		[]int{1}
	c.Limit = 40
	x, err := harness.Prepare(t.Context(), c, harness.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	seen := map[string]int{}
	sink := harness.SinkOf(func(f results.Finished) error {
		row, ds := f.Trial, f.Decisions
		if row.Status == results.Excluded {
			return nil
		}
		script, err := results.ParseTranscript(f.Transcript)
		if err != nil {
			t.Fatal(err)
		}
		placed := map[int32]bool{}
		for _, s := range script.Sessions {
			seen[string(s.Phase)]++
			if len(s.Decisions)+len(s.Outside) > 0 {
				t.Errorf("%s, %s: %+v and %+v are about no message", row.Case, s.Phase, s.Decisions, s.Outside)
			}
			for i, m := range s.Messages {
				for _, p := range m.Parts {
					if p.Segment > 0 || p.Record != "" {
						seen["part "+m.Role+" "+p.Route]++
					}
				}
				for _, call := range m.Calls {
					if call.Acts && (i == len(s.Messages)-1 || s.Messages[i+1].Role != "tool") {
						t.Errorf("%s: nothing came of %+v", row.Case, call)
					}
				}
				for _, d := range m.Decisions {
					ok := false
					switch {
					case d.Gate == "input":
						ok = m.Role == "user" || m.Role == "tool"
					case d.Gate == "act":
						ok = m.Role == "tool" && m.Name == d.Record
					case d.Gate == "write" && d.Route == "compaction":
						ok = m.Role == "assistant" && m.Aside
					case d.Gate == "write":
						ok = m.Role == "tool" && (m.Aside || d.Route != "flush" && d.Route != "review")
					case d.Route == "snapshot":
						ok = m.Role == "system"
					case d.Route == "inject":
						ok = m.Role == "user"
					case d.Gate == "read":
						ok = m.Role == "tool"
					}
					if !ok {
						t.Errorf("%s: %+v is said to be about a message of %s %s", row.Case, d, m.Role, m.Name)
					}
					seen[d.Gate+" "+d.Route]++
					if d.Seq < 0 {
						continue
					}
					r := ds[d.Seq]
					if r.Gate != d.Gate || r.Route != d.Route || r.Action != d.Action || results.PhaseOf(r.Session) != s.Phase ||
						placed[d.Seq] {
						t.Errorf("%s: %+v stands for the row %+v", row.Case, d, r)
					}
					placed[d.Seq] = true
				}
			}
		}
		if len(placed) != len(ds) {
			t.Errorf("%s: %d of %d rows have a place", row.Case, len(placed), len(ds))
		}
		return nil
	})
	if err := x.Run(context.Background(), sink, new(harness.Progress), nil); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"input ", "write memory_tool", "write file_tool", "write review", "write flush",
		"read snapshot", "read search", "act ",
		"write", "between", "retrieval", "part system snapshot", "part user inject", "part tool search", "part user ",
		"part tool "} {
		if seen[k] == 0 {
			t.Errorf("no %q came about: %v", k, seen)
		}
	}
}
