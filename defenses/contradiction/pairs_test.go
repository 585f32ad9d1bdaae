package contradiction

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/defensetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type pair struct {
	ID          string   `json:"id"`
	Known       []string `json:"known"`
	New         string   `json:"new"`
	Contradicts bool     `json:"contradicts"`
}

type pairScore struct {
	tp, fp, fn, tn int
	errors         []string
}

func (s *pairScore) add(t *testing.T, p pair) {
	d, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var known []memory.Record
	for _, k := range p.Known {
		known = append(known, defensetest.FromUser(k))
	}
	tr := defensetest.Open(t, d, known...)
	v := tr.Judge(tr.Proposal(defensetest.External(p.New)))
	stopped := v.Action == memory.Quarantine
	switch {
	case stopped && p.Contradicts:
		s.tp++
	case stopped:
		s.fp++
	case p.Contradicts:
		s.fn++
	default:
		s.tn++
	}
	if stopped != p.Contradicts {
		s.errors = append(s.errors, fmt.Sprintf("%s contradicts=%t, found=%t %v\n  known: %s\n  new:   %s", p.ID,
			p.Contradicts, stopped,
			defensetest.Checks(v.Findings), strings.Join(p.Known, " / "), p.New))
	}
}

func (s *pairScore) String() string {
	return fmt.Sprintf("precision %d/%d = %.3f\nrecall %d/%d = %.3f\nfalse alarms %d/%d\n", s.tp, s.tp+s.fp,
		float64(s.tp)/float64(s.tp+s.fp),
		s.tp, s.tp+s.fn, float64(s.tp)/float64(s.tp+s.fn), s.fp, s.fp+s.tn)
}

func TestDevPairs(t *testing.T) {
	var s pairScore
	for _, p := range readLines[pair](t, "pairs-dev.jsonl") {
		s.add(t, p)
	}
	t.Logf("%s%s", s.String(), strings.Join(s.errors, "\n"))
	if s.fp > 2 || s.fn > 8 {
		t.Errorf("%d false alarms, %d missed", s.fp, s.fn)
	}
}

// The reported figures on pairs that nobody who wrote the detector wrote or tuned
// on.
func TestBlindPairs(t *testing.T) {
	var s pairScore
	for _, p := range readLines[pair](t, "pairs.jsonl") {
		s.add(t, p)
	}
	t.Log(s.String())
	golden(t, "pairs.golden", s.String()+"\n"+strings.Join(s.errors, "\n")+"\n")
}

func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if strings.TrimSpace(s.Text()) == "" {
			continue
		}
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: make it with go test -run %s -update", err, t.Name())
	}
	if string(want) != got {
		t.Errorf("%s is not what the code gives now; look at the change, then go test -run %s -update", path, t.Name())
	}
}
