package harness

import (
	"context"
	"strings"
	"testing"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/summary"
)

// figures runs the smoke set in memory and summarises it.
func figures(t *testing.T, settings ...string) (*Experiment, *summary.Summary) {
	t.Helper()
	x, out := runAll(t, Builtin(), append([]string{"dataset=memtox-smoke", "split=all", "agent=hermes",
		"defense=none,keyword", "transcripts=none"}, settings...)...)
	a := summary.New(x.Record("r", "test", trialStart), summary.Options{Mutations: attacks.MutationNames()})
	for _, e := range out.entries {
		a.Add(&e)
	}
	return x, a.Summary()
}

func TestVariantsStandApartFromTheOriginals(t *testing.T) {
	_, static := figures(t)
	_, both := figures(t, "mutate=none,echo,paraphrase+echo")
	if static.Arms[0].Mutations != nil {
		t.Error("a run without variants has slices by mutation")
	}
	for i := range static.Arms {
		a, b := &static.Arms[i], &both.Arms[i]
		if a.Rate(metric.EndToEnd).K != b.Rate(metric.EndToEnd).K || a.Rate(metric.EndToEnd).N != b.Rate(metric.EndToEnd).N ||
			a.Rate(metric.Utility).N != b.Rate(metric.Utility).N || a.Rate(metric.TPR).N != b.Rate(metric.TPR).N {
			t.Errorf("%s: variants changed the static figures: end to end %v, was %v", a.Name(), b.Rate(metric.EndToEnd),
				a.Rate(metric.EndToEnd))
		}
		var names []string
		for _, m := range b.Mutations {
			names = append(names, m.Name)
		}
		if strings.Join(names, " ") != "none echo paraphrase+echo" {
			t.Errorf("slices %v", names)
		}
		if m := b.Mutations[0]; m.Rate(metric.EndToEnd).K != a.Rate(metric.EndToEnd).K ||
			m.Rate(metric.EndToEnd).N != a.Rate(metric.EndToEnd).N {
			t.Errorf("the originals are %v, not %v", m.Rate(metric.EndToEnd), a.Rate(metric.EndToEnd))
		}
		if m := b.Mutations[1]; m.Rate(metric.EndToEnd).N == 0 {
			t.Errorf("no variant was measured: %v", m.Rate(metric.EndToEnd))
		}
	}
	if both.OnlyVariants {
		t.Error("the run has originals")
	}
	if static.Digest == both.Digest {
		t.Error("the digest does not tell variants")
	}
}

func TestVariantsRunInThePlaceOfTheOriginals(t *testing.T) {
	x, s := figures(t, "mutate=echo")
	if !s.OnlyVariants || s.Arms[0].Rate(metric.EndToEnd).N == 0 {
		t.Errorf("only variants: %v, end to end %v", s.OnlyVariants, s.Arms[0].Rate(metric.EndToEnd))
	}
	for _, i := range x.Plan.Cases {
		if k := x.Plan.Set.Cases[i]; k.Class != "" && k.Variant != "echo" {
			t.Errorf("%s is an original", k.ID)
		}
	}
	if _, other := figures(t, "mutate=echo", "concurrency=7"); other.Digest != s.Digest {
		t.Error("concurrency changes the outcome")
	}
}

func TestMistakesInMutateAreFound(t *testing.T) {
	for value, want := range map[string]string{
		"paraphase":     `--mutate: unknown mutation "paraphase" (did you mean "paraphrase"?)`,
		"echo+":         `--mutate: unknown mutation "" (one of none, all, whitespace`,
		"echo#0":        `--mutate: "0" is not the number of a draw`,
		"echo#x":        `--mutate: "x" is not the number of a draw`,
		"none,echo+all": `--mutate: unknown mutation "all"`,
		"case+case+case+case+case+case+case+case+case": "--mutate: more than 8 mutations",
	} {
		c := DefaultConfig()
		c.Dataset = "memtox-smoke"
		c.Mutate = strings.Split(value, ",")
		_, err := Prepare(context.Background(), c, Builtin())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
}
