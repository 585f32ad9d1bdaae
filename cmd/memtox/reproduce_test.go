package main

import (
	"strings"
	"testing"

	"github.com/memtox/memtox/results/reproduce"
)

func TestReproduceTheSandbox(t *testing.T) {
	c := newConsole(t)
	out := c.must("reproduce", "sandbox-poc")
	if !strings.Contains(out, "4 inside, 0 outside, 3 not comparable") {
		t.Error(out)
	}
}

func TestReproduceMemgarsTree(t *testing.T) {
	c := newConsole(t)
	if out := c.must("reproduce", "memgar-merkle"); !strings.Contains(out, "5 inside, 0 outside, 0 not comparable") {
		t.Error(out)
	}
}

func TestReproduceFindsTheFalseAlarmsOfMemgar(t *testing.T) {
	if long { // the command measures all of it once more
		c := newConsole(t)
		if code := c.run("reproduce", "memgar-anomaly"); code != BadNews {
			t.Errorf("exit code %d, %s", code, c.err.String())
		}
	}
	got, err := memgarAnomaly(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Its density signal counts the point itself, which shows the more the
	// higher the dimension.
	low, middle, high := got["density alarms at dimension 8"].Rate, got["density alarms at dimension 64"].Rate,
		got["density alarms at dimension 384"].Rate
	if low.Hi > 0.25 || middle.Lo < 0.1 || middle.Hi > 0.6 || 100*high.K < 95*high.N {
		t.Errorf("%v, %v, %v", low, middle, high)
	}
}

func TestReproduceSaysWhatItNeedsAndIsNeverGreenOnNothing(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense", "none", "--limit", "30", "--out", "a")
	for _, name := range reproduce.Names() {
		if programs()[name] != nil {
			continue
		}
		for _, args := range [][]string{{"reproduce", name}, {"reproduce", name, "--run", "a"}} {
			code := c.run(args...)
			want := Inconclusive
			if table, _ := reproduce.Find(name); table.Kind == reproduce.KindProgram && len(args) > 2 {
				want = Usage
			}
			if code != want || want == Inconclusive && !strings.Contains(c.out.String(), "to measure what is missing:") {
				t.Errorf("memtox %q: exit code %d\n%s%s", args, code, c.out.String(), c.err.String())
			}
		}
	}
}

func TestReproduceShowsWhatThePolicyDoes(t *testing.T) {
	c := newConsole(t)
	args := []string{"reproduce", "write-policy", "--format", "markdown"}
	for _, p := range []string{"vague", "scoped", "source-aware"} {
		c.must("run", "--defense", "none", "--limit", "40", "--set", "policy="+p, "--out", p)
		args = append(args, "--run", p)
	}
	out := c.must(args...)
	for _, want := range []string{"source-aware/none.utility", "hermes (naive)/none", "openclaw (cautious)/none", "against vague",
		"not an LLM"} {
		if !strings.Contains(strings.ReplaceAll(out, `\`, ""), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestReproduceRefusals(t *testing.T) {
	c := newConsole(t)
	for args, want := range map[string]string{
		"reproduce":                             "memtox: memtox reproduce needs the name of a table",
		"reproduce mpbench-table1":              `memtox: unknown table "mpbench-table1" (did you mean "mpbench-table2"?)`,
		"reproduce mpbench-table2 --run absent": "absent",
		"reproduce sandbox-poc --format xml":    "memtox: --format: unknown",
	} {
		if code := c.run(strings.Fields(args)...); code != Usage || !strings.Contains(c.err.String(), want) ||
			strings.Count(c.err.String(), "\n") != 1 {
			t.Errorf("memtox %s: exit code %d, %s", args, code, c.err.String())
		}
	}
}
