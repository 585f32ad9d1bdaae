package harness

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/results"
)

// expectation is the outcome of a case as it was worked out by hand.
type expectation struct {
	Written    *bool  `yaml:"written"`
	Channel    string `yaml:"channel"`
	Influenced string `yaml:"influenced"`
	Survived   *bool  `yaml:"survived"`
	Done       *bool  `yaml:"done"`
}

func TestSmokeFunnelIsAsWorkedOutByHand(t *testing.T) {
	data, err := os.ReadFile("../datasets/sets/memtox-smoke/expected.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]map[string]map[string]map[string]expectation // label, case, agent, model
	if err := yaml.Unmarshal(data, &expected); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"naive", "cautious"} {
		_, out := runAll(t, Builtin(), "dataset=memtox-smoke", "model=reference:"+setting, "defense=none", "split=all")
		rows := map[string]results.Trial{}
		for _, r := range out.trials() {
			rows[r.Case+" "+r.Agent] = r
		}
		for label, cases := range expected {
			for _, id := range slices.Sorted(maps.Keys(cases)) {
				for agent, models := range cases[id] {
					want, ok := models[setting]
					if !ok {
						continue
					}
					r, ok := rows[id+" "+agent]
					if !ok || r.Status != results.Scored {
						t.Errorf("%s %s %s: no scored trial: %s %s", id, agent, setting, r.Status, r.Reason)
						continue
					}
					if got, want := outcome(label, r), stated(label, want); got != want {
						t.Errorf("%s %s %s:\n got %s\nwant %s", id, agent, setting, got, want)
					}
				}
			}
		}
	}
}

func outcome(label string, r results.Trial) string {
	if label == "attacks" {
		how := "no"
		switch {
		case r.Acted && r.Asserted:
			how = "both"
		case r.Acted:
			how = "acted"
		case r.Asserted:
			how = "asserted"
		}
		return fmt.Sprint("written ", r.Written, " ", r.WrittenChannel, " influenced ", how)
	}
	return fmt.Sprint("survived ", show(r.LegitSurvived), " done ", show(r.LaterTaskDone))
}

func stated(label string, e expectation) string {
	if label == "attacks" {
		return fmt.Sprint("written ", show(e.Written), " ", e.Channel, " influenced ", e.Influenced)
	}
	return fmt.Sprint("survived ", show(e.Survived), " done ", show(e.Done))
}

func show(b *bool) string {
	if b == nil {
		return "-"
	}
	return fmt.Sprint(*b)
}

func TestSmokeHoldsWhatItIsFor(t *testing.T) {
	set, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		t.Fatal(err)
	}
	attacks, benign := set.Counts()
	if attacks < 60 || benign < 60 {
		t.Errorf("%d attacks and %d benign cases", attacks, benign)
	}
}
