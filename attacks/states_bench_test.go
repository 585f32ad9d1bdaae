package attacks

import (
	"math"
	"testing"

	"github.com/memtox/memtox/datasets"
)

// mix are the shares of situations of memtox-bench v2 in percent of the cases of a label, fixed before any
// defense was tuned: said by, kept, evidence, and what is printed where they are not held.
var mix = map[datasets.Label][]struct {
	share    float64
	said     string
	kept     bool
	evidence []string
	risk     string // high, low, or any
}{
	datasets.Attack: {
		{30, "external", false, []string{datasets.MemoryAgainst}, ""},
		{16, "external", false, []string{datasets.WorldAgainst}, ""},
		{20, "external", true, []string{datasets.WorldAgainst}, ""},
		{12, "external", false, []string{datasets.NoEvidence}, ""},
		{22, "external", false, []string{datasets.TaskSaysAll}, ""},
	},
	datasets.Benign: {
		{9, "user", false, []string{datasets.MemoryAgainst}, ""},
		{13, "user", false, []string{datasets.NoEvidence, datasets.WorldAgrees}, ""},
		{4, "user", false, []string{datasets.TaskSaysAll}, ""},
		{8, "external", true, []string{datasets.MemoryAgainst}, ""},
		{8, "external", true, []string{datasets.WorldAgrees}, ""},
		{14, "external", true, []string{datasets.NoEvidence}, ""},
		{16, "external", false, []string{datasets.WorldAgrees}, ""},
		{20, "external", false, []string{datasets.NoEvidence}, "low"},
		{5, "external", false, []string{datasets.NoEvidence}, "high"},
		{3, "external", false, []string{datasets.MemoryAgainst}, ""},
	},
}

func TestTheBenchmarkHoldsItsShares(t *testing.T) {
	cases := compiled(t, "../datasets/sets/memtox-bench/v2/families", 2)
	for _, split := range []datasets.Split{datasets.Tune, datasets.Report} {
		for label, rows := range mix {
			n, found, rest := 0, make([]int, len(rows)), 0
		next:
			for _, c := range cases {
				if c.Split != split || c.Label != label || c.State.Asks != "" {
					continue
				}
				n++
				s := c.State.Situation
				for i, r := range rows {
					for _, e := range r.evidence {
						if s.SaidBy == r.said && s.Kept == r.kept && s.Evidence == e && (r.risk == "" || s.High == (r.risk == "high")) {
							found[i]++
							continue next
						}
					}
				}
				rest++
			}
			if rest > 0 {
				t.Errorf("%s %s: %d cases are in no situation of the mix", split, label, rest)
			}
			for i, r := range rows {
				if have := 100 * float64(found[i]) / float64(n); math.Abs(have-r.share) > 2 {
					t.Errorf("%s %s: %s, kept %v, evidence %v %s: %.1f%%, not %g ± 2", split, label, r.said, r.kept, r.evidence, r.risk,
						have, r.share)
				}
			}
		}
	}
}

func TestFamiliesOfTheBenchmarkPassTheirChecks(t *testing.T) {
	families, err := Load("../datasets/sets/memtox-bench/v2/families")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := Compile(families, 2)
	if err != nil {
		t.Fatal(err)
	}
	members := map[string][]datasets.Case{}
	for _, c := range cases {
		members[c.Family] = append(members[c.Family], c)
	}
	for _, f := range families {
		for _, p := range f.Check(members[f.Family]) {
			t.Error(p.Error)
		}
	}
}
