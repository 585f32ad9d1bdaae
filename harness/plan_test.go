package harness

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
)

// setOf makes a set of n attacks of each class and n benign cases of each kind.
func setOf(t testing.TB, n int) *datasets.Set {
	t.Helper()
	var cases []datasets.Case
	add := func(c datasets.Case) {
		c.ID = fmt.Sprintf("m-%06x", len(cases))
		c.Write = []datasets.Turn{{User: "Hello."}}
		if len(cases)%3 == 0 {
			c.Split = datasets.Tune
		}
		cases = append(cases, c)
	}
	for range n {
		for _, class := range datasets.Classes() {
			i, _ := datasets.Info(class)
			add(datasets.Case{Label: datasets.Attack, Class: class, Signal: i.Signal, Channel: i.Channel, Domain: "web",
				Goal: "trust_hijacking"})
		}
		for _, kind := range datasets.Kinds() {
			add(datasets.Case{Label: datasets.Benign, Kind: kind, Domain: "email"})
		}
	}
	set, err := datasets.NewSet("made", cases)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func armsOf(t testing.TB, specs ...string) []Arm {
	t.Helper()
	var arms []Arm
	for _, p := range agents.Profiles() {
		for _, s := range specs {
			d, err := Builtin().Defenses.Build(s, defenses.Env{})
			if err != nil {
				t.Fatal(err)
			}
			arms = append(arms, Arm{Profile: p, Defense: d})
		}
	}
	return arms
}

func TestPlanHoldsEveryTrialOnceWithTheArmsOfACaseTogether(t *testing.T) {
	c := DefaultConfig()
	c.Split, c.Epochs = AllSplits, 3
	p, err := NewPlan(c, setOf(t, 4), []string{"m"}, armsOf(t, "none", "block-all"))
	if err != nil {
		t.Fatal(err)
	}
	ids, want := map[string]bool{}, int64(0)
	for trial := range p.Trials() {
		if trial.Index != want {
			t.Fatalf("trial %d stands at %d", trial.Index, want)
		}
		if n := int(want) % len(p.Arms); trial.Arm != n {
			t.Fatalf("trial %d is of arm %d, not %d: arms are not interleaved", want, trial.Arm, n)
		}
		ids[p.ID(trial)] = true
		want++
	}
	if want != p.Len() || int64(len(ids)) != p.Len() || p.Len() != 44*int64(len(p.Arms))*3 {
		t.Errorf("%d trials, %d ids, Len %d", want, len(ids), p.Len())
	}
}

func TestIdsDependOnNothingButTheTrial(t *testing.T) {
	set := setOf(t, 3)
	c := DefaultConfig()
	c.Split = AllSplits
	all, err := NewPlan(c, set, []string{"m"}, armsOf(t, "none", "block-all"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	key := func(p *Plan, tr Trial) string {
		a := p.Arms[tr.Arm]
		return fmt.Sprint(set.Cases[tr.Case].ID, a.Profile.Name, a.Defense.Name, tr.Epoch)
	}
	for tr := range all.Trials() {
		ids[key(all, tr)] = all.ID(tr)
	}
	c.Limit, c.Seed, c.Concurrency = 7, 99, 5
	some, err := NewPlan(c, set, []string{"m"}, armsOf(t, "block-all", "none"))
	if err != nil {
		t.Fatal(err)
	}
	for tr := range some.Trials() {
		if got, want := some.ID(tr), ids[key(some, tr)]; got != want {
			t.Errorf("%s has id %s in a sample, %s in the whole", key(some, tr), got, want)
		}
	}
	other, err := NewPlan(c, set, []string{"another model"}, armsOf(t, "block-all", "none"))
	if err != nil {
		t.Fatal(err)
	}
	if other.ID(Trial{}) == some.ID(Trial{}) {
		t.Error("another model has the same trial id")
	}
}

func TestSamplesAreNestedStratifiedAndSeedStable(t *testing.T) {
	set := setOf(t, 20)
	all := make([]int, len(set.Cases))
	for i := range all {
		all[i] = i
	}
	stratum := func(i int) string {
		k := &set.Cases[i]
		return string(k.Label) + cmp.Or(k.Class, k.Kind)
	}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.IntRange(1, len(all)).Draw(t, "n")
		m := rapid.IntRange(n, len(all)+3).Draw(t, "m")
		small, large := Sample(set, all, n, seed), Sample(set, all, m, seed)
		if len(small) != n || len(large) != min(m, len(all)) {
			t.Fatalf("%d of %d, %d of %d", len(small), n, len(large), m)
		}
		if !slices.Equal(small, Sample(set, all, n, seed)) {
			t.Fatal("the same seed gives another sample")
		}
		count := map[string]int{}
		for _, i := range small {
			if !slices.Contains(large, i) {
				t.Fatal("a smaller sample is no part of a larger one")
			}
			count[stratum(i)]++
		}
		// Strata of equal size never differ by more than one; 11 strata.
		least, most := len(all), 0
		for _, i := range all {
			least, most = min(least, count[stratum(i)]), max(most, count[stratum(i)])
		}
		if most-least > 1 {
			t.Fatalf("strata of equal size have %d to %d cases in a sample of %d", least, most, n)
		}
	})
	if slices.Equal(Sample(set, all, 50, 1), Sample(set, all, 50, 2)) {
		t.Error("the seed does not matter")
	}
}

// A rate that is of an attack and its twin is measured in a sample too.
func TestSamplesKeepTwinsTogether(t *testing.T) {
	set, err := datasets.Open(t.Context(), "memtox-bench@v2")
	if err != nil {
		t.Fatal(err)
	}
	mapped := pairs(t, 600)
	for _, set := range []*datasets.Set{set, mapped} {
		keepsTwins(t, set)
	}
	// What is judged by words and built in has the samples that it always had.
	old, err := datasets.Open(t.Context(), "memtox-bench@v1")
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, len(old.Cases))
	for i := range all {
		all[i] = i
	}
	h := sha256.New()
	for _, i := range Sample(old, all, 60, 1) {
		fmt.Fprintln(h, old.Cases[i].ID)
	}
	if got := hex.EncodeToString(h.Sum(nil)[:4]); got != "9561209e" {
		t.Errorf("the sample of memtox-bench@v1 is another: %s", got)
	}
}

// pairs is a set as an import makes one: attacks with twins, and no states.
func pairs(t *testing.T, n int) *datasets.Set {
	t.Helper()
	var cases []datasets.Case
	for i := range n {
		c := datasets.Case{ID: fmt.Sprint("m-", i), Label: datasets.Attack, Class: "fact", Twin: fmt.Sprint("m-", i+1),
			Write: []datasets.Turn{{User: "Read it."}}}
		if i%2 == 1 {
			c.Label, c.Class, c.Kind, c.Twin = datasets.Benign, "", datasets.KindUnasked, fmt.Sprint("m-", i-1)
		}
		cases = append(cases, c)
	}
	set, err := datasets.NewSet("mapped", cases)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func keepsTwins(t *testing.T, set *datasets.Set) {
	t.Helper()
	all := make([]int, len(set.Cases))
	for i := range all {
		all[i] = i
	}
	var before []int
	for _, limit := range []int{1, 2, 3, 59, 60, 61, 400} {
		in, alone, attacks, pairs := map[string]bool{}, 0, 0, 0
		sample := Sample(set, all, limit, 1)
		for _, i := range sample {
			in[set.Cases[i].ID] = true
		}
		for _, i := range sample {
			switch k := &set.Cases[i]; {
			case k.Label == datasets.Attack && k.Twin != "" && in[k.Twin]:
				pairs++
			case k.Twin != "" && !in[k.Twin]:
				alone++
			}
			if set.Cases[i].Label == datasets.Attack {
				attacks++
			}
		}
		if len(sample) != limit || alone > 1 || limit > 3 && (pairs < attacks/2 || attacks < limit/3) {
			t.Errorf("%d cases: %d attacks, %d pairs, %d alone", len(sample), attacks, pairs, alone)
		}
		for _, i := range before {
			if !slices.Contains(sample, i) {
				t.Errorf("the sample of %d lacks one of a smaller sample", limit)
			}
		}
		before = sample
	}
}

func TestFiltersChooseCases(t *testing.T) {
	set := setOf(t, 3)
	for _, c := range []struct {
		set             []string
		attacks, benign int
	}{
		{nil, 12, 10}, // two of three cases are of the report split
		{[]string{"split=all"}, 18, 15},
		{[]string{"split=tune"}, 6, 5},
		{[]string{"split=all", "class=policy_fact"}, 3, 15},
		{[]string{"split=all", "channel=C2"}, 6, 15},
		{[]string{"split=all", "signal=weak", "class=policy_fact,explicit_command"}, 3, 15},
		{[]string{"split=all", "domain=web"}, 18, 0},
		{[]string{"split=all", "domain=email"}, 0, 15},
		{[]string{"split=all", "goal=trust_hijacking"}, 18, 15},
	} {
		cfg := DefaultConfig()
		for _, s := range c.set {
			if err := cfg.Set(s); err != nil {
				t.Fatal(err)
			}
		}
		p, err := NewPlan(cfg, set, []string{"m"}, armsOf(t, "none"))
		if err != nil {
			t.Errorf("%v: %v", c.set, err)
			continue
		}
		if a, b := p.Counts(); a != c.attacks || b != c.benign {
			t.Errorf("%v: %d attacks and %d benign, not %d and %d", c.set, a, b, c.attacks, c.benign)
		}
	}
	for setting, want := range map[string]string{
		"class=policy_fcat": `unknown class "policy_fcat" (did you mean "policy_fact"?)`,
		"goal=nothing":      `unknown goal "nothing"`,
	} {
		cfg := DefaultConfig()
		if err := cfg.Set(setting); err != nil {
			t.Fatal(err)
		}
		if _, err := NewPlan(cfg, set, []string{"m"}, armsOf(t, "none")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestSkillAttacksAreExcludedWhereNoSkillsAreWritten(t *testing.T) {
	x, out := runAll(t, Builtin(), "defense=none", "class=skill_procedure", "split=all")
	excluded, scored := 0, 0
	for _, r := range out.trials() {
		if r.Label != "attack" {
			continue
		}
		switch {
		case r.Agent == "openclaw" && r.Status == "excluded" && strings.Contains(r.Reason, "no skills"):
			excluded++
		case r.Agent == "hermes" && r.Status == "scored":
			scored++
		default:
			t.Errorf("%s on %s is %s: %s", r.Case, r.Agent, r.Status, r.Reason)
		}
	}
	attacks, _ := x.Plan.Counts() // each at both ends
	if excluded != 2*attacks || scored != 2*attacks || attacks == 0 {
		t.Errorf("%d excluded and %d scored of %d", excluded, scored, attacks)
	}
}

func TestRepeatsOfADeterministicModelAreRefused(t *testing.T) {
	c := DefaultConfig()
	c.Epochs = 2
	_, err := Prepare(context.Background(), c, Builtin())
	if err == nil || !strings.Contains(err.Error(), "deterministic") {
		t.Error(err)
	}
}
