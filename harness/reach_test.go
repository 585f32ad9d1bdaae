package harness

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A new setting is given a reach, and a default never acts: then whatever acts was
// asked for.
func TestEverySettingSaysWhatItReaches(t *testing.T) {
	d := DefaultConfig()
	for _, s := range Settings().Keys {
		if !slices.Contains([]string{Inert, Reads, Acts, Bounds, Own}, s.Reach) {
			t.Errorf("%s has no reach", s.Name)
		}
		if acts(s, &d) {
			t.Errorf("the default of %s acts", s.Name)
		}
		if builtins[s.Name] != nil && s.Reach != Acts && s.Reach != Reads {
			t.Errorf("%s is %s and has values that do nothing", s.Name, s.Reach)
		}
		for _, word := range []string{"url", "file", "env", "FILE", "URL", "DIR"} {
			if s.Reach == Inert && strings.Contains(s.Name+s.Takes, word) {
				t.Errorf("%s %s is named like what reaches out, and counts as inert", s.Name, s.Takes)
			}
		}
	}
}

func TestWhatActsIsToldFromWhatDoesNot(t *testing.T) {
	for assignment, want := range map[string]bool{
		"agent=hermes,rag": false, "agent=hermes,exec:./a": true, "agent=x=exec:./a": true, "agent=https://a": true,
		"agent=x=http://a": true,
		"model=reference":  false, "model=reference:naive": false, "model=openai:m": true, "model=ollama:m": true,
		"model=x:y":           true,
		"judge=deterministic": false, "judge=llm:openai:m": true,
		"defense=none,keyword:strict@read,x=guard:policy.yaml": false, "defense=none,exec:./g": true,
		"defense= x=exec:a@write": true, "defense=http://a": true,
		"defense=judge:openai:m": true, "defense=chain:c.yaml": true, `defense=guard:\\host\share\p.yaml`: true,
		"defense=guard://host/p": true, "defense=keyword@nowhere": true,
		"sweep=anomaly.z=1:6:0.5": false, "sweep=exec:./a.z=1|2": true, "sweep=chain.z=1|2": true,
		"base_url=": false, "base_url=http://a": true, "key_file=k": true, "judge_key_file=k": true,
		"judge_base_url=http://a": true, "defense_base_url=http://a": true,
		"record=r": true, "replay=r": true, "pass_env=HOME": true,
		"dataset=memtox-smoke": false, "dataset=/data/cases.jsonl": false, `dataset=\\host\share\c.jsonl`: true,
		"dataset=//host/share/c.jsonl": true, `dataset=\??\UNC\host\share\c.jsonl`: true, "limit=3": false,
	} {
		c := DefaultConfig()
		if err := c.Set(assignment); err != nil {
			t.Fatal(err)
		}
		key, _, _ := strings.Cut(assignment, "=")
		s, _ := Settings().Find(key)
		if acts(s, &c) != want {
			t.Errorf("%s: acts %v", assignment, !want)
		}
		if h := c.harmless(); acts(s, &h) {
			t.Errorf("%s is among what is harmless", assignment)
		}
		if c.Queue = "nats://a"; c.harmless().Queue != "" {
			t.Error("where a process has its queue is taken from a run")
		}
	}
}

// What a command line is told to say is what has it go on.
func TestTheFlagsThatAreNamedAreThoseThatHelp(t *testing.T) {
	for _, assignments := range [][]string{
		{"defense=none,x=exec:./guard 'a b', c"}, {"agent=hermes,exec:./a --x=$(y)"}, {"model=openai:m",
			"base_url=http://a/v1", "key_file=a key"},
		{"pass_env=A,B", "record=r.tape"}, {"judge=llm:openai:m", "judge_base_url=http://b"},
		{`dataset=\\host\share\c.jsonl`},
	} {
		run := DefaultConfig()
		for _, a := range assignments {
			if err := run.Set(a); err != nil {
				t.Fatal(err)
			}
		}
		nothing := func(c Config) (Config, error) { return c, nil }
		_, err := Adopt("d", run, nothing)
		if err == nil {
			t.Fatalf("%q is adopted", assignments)
		}
		for _, a := range assignments {
			if key, _, _ := strings.Cut(a, "="); !strings.Contains(err.Error(), key+" is ") {
				t.Errorf("%q: %s is not named: %v", assignments, key, err)
			}
		}
		// The flags are those that Named gives, and each says the value alone.
		if _, hint, _ := strings.Cut(err.Error(), "add "); hint != strings.TrimSpace(run.Named())+")" {
			t.Errorf("%q: the hint is %q, the flags are %q", assignments, hint, run.Named())
		}
		got, err := Adopt("d", run, func(c Config) (Config, error) {
			for _, a := range assignments {
				if err := c.Set(a); err != nil {
					return c, err
				}
			}
			return c, nil
		})
		if err != nil || len(Differences(got, run)) > 0 {
			t.Errorf("%q, given on the command line too: %v", assignments, err)
		}
	}
	// What no flag can say, and what a terminal would act on, is for a file; a list that one
	// flag cannot say is in several.
	c := DefaultConfig()
	c.Agents = []string{"exec:./a", "hermes"}
	c.Defenses = []string{"exec:./g \x1b]0;x\x07"}
	if s := c.Named(); strings.Count(s, "-f FILE with the key") != 1 || !strings.Contains(s, "--agent exec:./a --agent hermes") || strings.ContainsRune(s, 0x1b) {
		t.Errorf("%q", s)
	}
	if _, err := Adopt("d", c, func(c Config) (Config, error) { return c, nil }); strings.ContainsRune(err.Error(), 0x1b) {
		t.Errorf("%q", err)
	}
}

// Who may write where a run is written down lifts no bound on what asking a server
// takes: none of them comes from there.
func TestBoundsAreTheCommandLinesWhereAnythingActs(t *testing.T) {
	run, d, bounds := DefaultConfig(), DefaultConfig(), 0
	var named []string
	for _, s := range Settings().Keys {
		if s.Reach != Bounds {
			continue
		}
		value := "7"
		if s.Takes == "DURATION" {
			value = "70h"
		}
		named = append(named, s.Name+"="+value)
		bounds++
	}
	if err := errors.Join(run.Set("max_not_scored=3"), setAll(&run, named)); err != nil || bounds != 12 {
		t.Fatal(bounds, err)
	}
	local := func(assignments ...string) func(Config) (Config, error) {
		return func(c Config) (Config, error) { return c, setAll(&c, assignments) }
	}
	if got, err := Adopt("d", run, local()); err != nil || got.MaxCost != 7 || got.Attempts != 7 {
		t.Errorf("of a run that asks nobody: %+v, %v", got, err)
	}
	for _, acts := range []string{"model=openai:m", "judge=llm:openai:m", "defense=none,judge:openai:m",
		"agent=exec:./a"} {
		if err := run.Set(acts); err != nil {
			t.Fatal(err)
		}
		got, err := Adopt("d", run, local(acts))
		if err == nil || strings.Count(err.Error(), " is ") < bounds || got.MaxCost != 0 || got.Attempts != d.Attempts {
			t.Errorf("%s: bounds come from the run: %+v, %v", acts, got, err)
		}
		for _, value := range []string{"7", "5"} { // the run's, and another
			own := append(slices.Clone(named), acts, "max_cost="+value)
			if got, err := Adopt("d", run, local(own...)); err != nil || got.TrialTimeout != run.TrialTimeout ||
				fmt.Sprint(got.MaxCost) != value || got.MaxNotScored != 3 {
				t.Errorf("%s: bounds that are named: %+v, %v", acts, got, err)
			}
		}
		// An edit that lifts the bound lifts none that the command line names.
		lifted := run
		lifted.MaxCost = 0
		if got, err := Adopt("d", lifted, local(append(named, acts)...)); err != nil || got.MaxCost != 7 {
			t.Errorf("%s: a lifted bound: %+v, %v", acts, got, err)
		}
		run.Model, run.Judge, run.Defenses, run.Agents = d.Model, d.Judge, d.Defenses, d.Agents
	}
}

func setAll(c *Config, assignments []string) error {
	var err error
	for _, a := range assignments {
		err = errors.Join(err, c.Set(a))
	}
	return err
}

// A file whose keys are others, or a value that differs, names nothing.
func TestOnlyTheSameValueIsTheSame(t *testing.T) {
	run := DefaultConfig()
	run.Defenses, run.KeyFile, run.BaseURL, run.Limit = []string{"none", "exec:evil"}, "theirs", "http://theirs", 5
	same := "defense=none,exec:evil"
	for name, k := range map[string]struct {
		set  []string
		free []string
		want string // of the error
	}{
		"another program": {[]string{"defense=none,exec:mine", "base_url=http://theirs", "key_file=theirs"}, nil,
			"defense is"},
		"none of it":        {[]string{"limit=5"}, nil, "base_url is"},
		"another address":   {[]string{same, "base_url=http://mine", "key_file=mine"}, nil, "base_url is"},
		"that may be other": {[]string{same, "base_url=http://mine", "key_file="}, []string{"base_url"}, ""},
		"no address":        {[]string{same, "key_file=mine"}, []string{"base_url"}, "base_url is"},
		"another limit": {[]string{same, "base_url=http://theirs", "key_file=mine", "limit=6"}, nil,
			`limit was "5", is now "6"`},
	} {
		got, err := Adopt("d", run, func(c Config) (Config, error) {
			for _, a := range k.set {
				if err := c.Set(a); err != nil {
					return c, err
				}
			}
			return c, nil
		}, k.free...)
		if k.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got.KeyFile == "theirs" && !slices.Contains(k.set, "key_file=theirs") ||
			slices.Contains(got.Defenses, "exec:evil") && k.set[0] != same {
			t.Errorf("%s: what nobody named here is among the settings: %+v", name, got)
		}
	}
}
