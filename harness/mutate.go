package harness

import (
	"errors"
	"fmt"
	"slices"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

// Names that the setting mutate has beside those of mutations.
const (
	// MutateNone stands for the original attacks.
	MutateNone = "none"
	// MutateAll stands for every mutation by itself.
	MutateAll = "all"
)

// MutateChoices lists what the setting mutate takes beside sequences of several.
func MutateChoices() []string {
	return append([]string{MutateNone, MutateAll}, attacks.MutationNames()...)
}

// sequence is one of the setting mutate. One that is optional may apply to nothing: of
// all mutations, those that are made for sets of another kind.
type sequence struct {
	attacks.Sequence
	optional bool
}

// sequences reads the setting mutate: whether the original attacks stay, and by
// what they are varied. Without the setting the originals stay.
func (c *Config) sequences() (originals bool, list []sequence, err error) {
	if len(c.Mutate) == 0 {
		return true, nil, nil
	}
	seen := map[string]bool{}
	add := func(q sequence) {
		if name := q.String(); !seen[name] {
			seen[name] = true
			list = append(list, q)
		}
	}
	for _, name := range c.Mutate {
		switch name {
		case MutateNone:
			originals = true
			continue
		case MutateAll:
			for _, m := range attacks.Mutations() {
				add(sequence{attacks.Sequence{Steps: []attacks.Mutation{m}}, m.Kind == attacks.Language})
			}
			continue
		}
		q, err := attacks.ParseSequence(name)
		if err != nil {
			var unknown *attacks.UnknownMutation
			if errors.As(err, &unknown) {
				return false, nil, settings.Unknown("--mutate", "mutation", unknown.Name, MutateChoices())
			}
			return false, nil, &settings.Problem{Where: "--mutate", What: err.Error()}
		}
		add(sequence{q, false})
	}
	return originals, list, nil
}

// Variants returns the cases that the setting mutate makes of a set's attacks,
// in the order of the set, and counts by mutation to how many it applied. Benign
// cases are in it only beside the originals, for none.
func Variants(set *datasets.Set, mutate []string) ([]datasets.Case, map[string]int, error) {
	all := make([]int, len(set.Cases))
	for i := range all {
		all[i] = i
	}
	varied, chosen, err := mutated(Config{Mutate: mutate}, set, all)
	if err != nil {
		return nil, nil, err
	}
	originals := len(mutate) == 0 || slices.Contains(mutate, MutateNone)
	var cases []datasets.Case
	applied := map[string]int{}
	for _, i := range chosen {
		variant := i >= len(set.Cases)
		if variant {
			applied[varied.Cases[i].Variant]++
		}
		if variant || originals {
			cases = append(cases, varied.Cases[i])
		}
	}
	return cases, applied, nil
}

// mutated replaces the chosen attacks by their variants, which stand beside each
// other in the order of the setting. Benign cases stay, and so do the original
// attacks where the setting says so. The set is a new one with the variants
// behind its cases.
func mutated(c Config, set *datasets.Set, cases []int) (*datasets.Set, []int, error) {
	originals, list, err := c.sequences()
	if err != nil || len(list) == 0 {
		return set, cases, err
	}
	next := *set
	next.Cases = slices.Clip(set.Cases) // appending must not write behind the old set
	var out []int
	applied := make([]int, len(list))
	for _, i := range cases {
		k := &set.Cases[i]
		if k.Label != datasets.Attack {
			out = append(out, i)
			continue
		}
		if originals {
			out = append(out, i)
		}
		for n, q := range list {
			if v, ok := q.Apply(*k); ok {
				applied[n]++
				out = append(out, len(next.Cases))
				next.Cases = append(next.Cases, v)
			}
		}
	}
	for n, q := range list {
		if applied[n] == 0 && !q.optional {
			return nil, nil, &settings.Problem{Where: "--mutate",
				What: fmt.Sprintf("%v applies to none of the chosen attacks of %s", q, set.Name),
				Hint: "choose another mutation, or other cases (a variant is not varied again, and a language is of cases " +
					"whose outcome is a state)"}
		}
	}
	return &next, out, nil
}
