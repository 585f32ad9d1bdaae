package harness_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results"
)

// A transcript says of each decision which message it was about.
func TestDecisionsNameTheirMessage(t *testing.T) {
	c := harness.DefaultConfig()
	c.Dataset, c.Defenses = "memtox-smoke", []string{"guard"}
	x, err := harness.Prepare(t.Context(), c, harness.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	seen := map[string]int{}
	sink := harness.SinkOf(func(f results.Finished) error {
		var s struct {
			Sessions  []struct{ Messages []struct{ Role, Name string } }
			Decisions []struct {
				Session, Message              int
				Gate, Route, Op, Record, Text string
			}
		}
		if f.Trial.Status == results.Excluded {
			return nil
		}
		if err := json.Unmarshal(f.Transcript, &s); err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Decisions {
			ms := s.Sessions[d.Session-1].Messages
			at := d.Message
			if at < 0 || at >= len(ms) {
				t.Errorf("%s: %+v is about none of %d messages", f.Trial.Case, d, len(ms))
				continue
			}
			role, ok := ms[at].Role, false
			switch {
			case d.Gate == "input":
				ok = role == "user" || role == "tool"
			case d.Gate == "act":
				ok = role == "tool" && ms[at].Name == d.Record
			case d.Gate == "write" && d.Route == "compaction":
				ok = role == "assistant"
			case d.Gate == "write":
				ok = role == "tool"
			case d.Route == "snapshot":
				ok = role == "system"
			case d.Route == "inject":
				ok = role == "user"
			case d.Gate == "read":
				ok = role == "tool"
			}
			if !ok {
				t.Errorf("%s: %+v is said to be about a message of %s %s", f.Trial.Case, d, role, ms[at].Name)
			}
			seen[d.Gate+" "+d.Route]++
		}
		return nil
	})
	if err := x.Run(context.Background(), sink, new(harness.Progress), nil); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"input ", "write memory_tool", "write file_tool", "write review", "write flush", "read snapshot", "read search", "act "} {
		if seen[k] == 0 {
			t.Errorf("no decision %q came about: %v", k, seen)
		}
	}
}
