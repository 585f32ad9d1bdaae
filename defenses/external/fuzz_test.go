package external

import (
	"math"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
)

// Whatever a guard writes, it is read without a panic, and only a clear action is
// a verdict.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"action":"block","detectors":["a;b","\u001b[31m"],"reasons":["r"],"spans":[[0,3]],"score":0.5}`,
		`{"id":1,"action":"redact","value":""}`, `{"id":1,"action":"redact"}`,
		`{"action":"allow","spans":[[5,1]],"detectors":[""]}`,
		`{"decisions":[{"action":"defer","held":true,"rank":-1}]}`, `{"name":"x","ops":["read","nonsense"]}`, `{"name":"x"}`,
		`[]`, `null`, `{"score":1e999}`,
		`{"action":"block","ACTION":"allow"}`, `{"decisions":[{"action":"allow","action":"block"}]}`,
		`{"x":{"action":1,"action":2}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		a, err := readAnswer([]byte(line))
		if err != nil {
			return
		}
		v, err := a.verdict()
		if err == nil && a.Action == "" {
			t.Error("no action is a verdict")
		}
		if err == nil && v.Action == memory.Redact && a.Value == nil {
			t.Error("a redaction without a value is a verdict")
		}
		if math.IsNaN(v.Score) || math.IsInf(v.Score, 0) {
			t.Errorf("score %v", v.Score)
		}
		for _, f := range v.Findings {
			if f.Check == "" || len(f.Check) > maxCheck+4 || strings.ContainsAny(f.Check, "; \n\x1b") ||
				len(f.Note) > maxNote+4 || f.End < f.Start {
				t.Errorf("finding %+v", f)
			}
		}
		if id, _, err := identity(a); err == nil && (id.Name == "" || len(id.Screens) == 0) {
			t.Errorf("identity %+v", id)
		}
	})
}
