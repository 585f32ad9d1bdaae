package attacks

import (
	"strings"
	"testing"
)

func TestSequencesAreReadAsTheyAreWritten(t *testing.T) {
	for _, s := range []string{"echo", "paraphrase+echo", "case+leet+summary#17"} {
		q, err := ParseSequence(s)
		if err != nil || q.String() != s {
			t.Errorf("%s came back as %s: %v", s, q, err)
		}
	}
	for _, s := range []string{"", "+", "echo+", "echo#", "echo#0", "echo#01", "echo#1000000", "echo#-1", "nothing",
		"echo +case", strings.Repeat("case+", 8) + "case"} {
		if q, err := ParseSequence(s); err == nil {
			t.Errorf("%q was read as %s", s, q)
		}
	}
}

func FuzzParseSequence(f *testing.F) {
	for _, s := range []string{"echo", "paraphrase+echo#3", "case++", "#1", "leet#99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseSequence(s)
		if err != nil {
			return
		}
		if again, err := ParseSequence(q.String()); err != nil || again.String() != q.String() || len(q.Steps) > MaxSteps {
			t.Errorf("%q was read as %q, which is read as %q: %v", s, q, again, err)
		}
	})
}

func TestNamesOfVariantsAreOfASpaceOfTheirOwn(t *testing.T) {
	for _, aside := range asideEndings {
		for _, ending := range lists()["ending"] {
			if strings.HasSuffix(aside, ending) || strings.HasSuffix(ending, aside) {
				t.Errorf("a name that ends in %s may be one of a family's, which end in %s", aside, ending)
			}
		}
	}
}
