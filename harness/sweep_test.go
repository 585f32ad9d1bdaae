package harness

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

func TestPointsOfASweep(t *testing.T) {
	for in, want := range map[string]string{
		"1:6:0.5":     "1 1.5 2 2.5 3 3.5 4 4.5 5 5.5 6",
		"1:1.3:0.1":   "1 1.1 1.2 1.3",
		"0:1:0.4":     "0 0.4 0.8",
		"5:5:1":       "5",
		"-1:1:1":      "-1 0 1",
		"strict":      "strict",
		"b|a":         "b a",
		"1:2":         "!",
		"2:1:1":       "!",
		"1:2:0":       "!",
		"1:2:-1":      "!",
		"1:x:1":       "!",
		"1:NaN:1":     "!",
		"0:1e9:1e-9":  "!",
		"1:2:1:1":     "!",
		"a||b":        "!",
		"a|a":         "!",
		"1:1e400:0.5": "!",
	} {
		got, err := points(in)
		if want == "!" {
			if err == nil {
				t.Errorf("%s gave %v", in, got)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s gave %v, %v", in, got, err)
		}
	}
}

func FuzzPoints(f *testing.F) {
	for _, s := range []string{"1:6:0.5", "a|b", "-1e3:1e3:7", "1:2:1e-300"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := points(s)
		if err != nil {
			return
		}
		if len(list) == 0 || len(list) > maxPoints {
			t.Errorf("%q gives %d values", s, len(list))
		}
		seen := map[string]bool{}
		for _, v := range list {
			if v == "" || seen[v] && !strings.Contains(s, ":") {
				t.Errorf("%q gives %q", s, list)
			}
			seen[v] = true
		}
	})
}

func TestASweepIsAnArmForEveryValueAndIsReadBackFromItsRun(t *testing.T) {
	x, out := runAll(t, Builtin(), "dataset=memtox-bench@v1", "model=reference:cautious", "agent=hermes", "defense=none",
		"split=all", "limit=60", "transcripts=none",
		"sweep=anomaly.z=1:3:1,keyword.scope=relaxed|strict")
	run := x.Record("r", "v", trialStart)
	if diff := cmp.Diff([]string{"none", "anomaly:z=1", "anomaly:z=2", "anomaly:z=3", "keyword:relaxed", "keyword:strict"},
		run.Defenses); diff != "" {
		t.Error(diff)
	}
	b, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var read results.Run
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*results.Run{run, &read} {
		c := summary.New(r, summary.Options{})
		for _, e := range out.entries {
			c.Add(&e)
		}
		sweeps := c.Summary().Sweeps
		if len(sweeps) != 2 || sweeps[0].Name != "anomaly.z" || len(sweeps[0].Points) != 3 ||
			sweeps[1].Points[1].Defense != "keyword:strict" {
			t.Fatalf("%+v", sweeps)
		}
		if s := sweeps[0]; s.Chosen < 0 || !s.Points[0].Tune.EndToEnd.Measured() || !s.Points[0].Report.EndToEnd.Measured() {
			t.Errorf("%+v", s)
		}
	}
	// Another sweep is another run.
	y, err := Prepare(context.Background(), x.Config, Builtin())
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if err := y.SameRun("d", &read); err != nil {
		t.Errorf("the same run differs: %v", err)
	}
	y.Config.Sweep = []string{"anomaly.z=1:2:1"}
	if err := y.SameRun("d", &read); err == nil || !strings.Contains(err.Error(), "sweep was") {
		t.Errorf("got %v", err)
	}
}

func TestMistakesInASweepAreFound(t *testing.T) {
	for in, want := range map[string]string{
		"anomaly":                         `--sweep: "anomaly" is no sweep`,
		"z=1:2:1":                         `--sweep: "z=1:2:1" is no sweep`,
		"anomly.z=1:2:1":                  `--sweep: unknown defense "anomly" (did you mean "anomaly"?)`,
		"anomaly.zz=1:2:1":                `--sweep: unknown threshold of anomaly "zz" (did you mean "z"?)`,
		"none.z=1:2:1":                    "--sweep: none has no threshold that can be swept",
		"anomaly.z=2:1:1":                 `--sweep: anomaly.z: "2:1:1" goes nowhere`,
		"anomaly.k=0.5|1":                 `--sweep: defense "anomaly:k=0.5"`,
		"anomaly.z=1:2:1,anomaly.z=3:4:1": "--sweep: anomaly.z is swept twice",
	} {
		c := DefaultConfig()
		c.Dataset = "memtox-smoke"
		if err := c.Set("sweep=" + in); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(context.Background(), c, Builtin()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", in, err)
		}
	}
}
