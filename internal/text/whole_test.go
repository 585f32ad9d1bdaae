package text

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAWholeValueIsNoPartOfAnother(t *testing.T) {
	for _, c := range []struct {
		in, value string
		whole     bool
	}{
		{"for 12 guests", "12", true},
		{"[19:12] Anna", "12", false},
		{"[19:12] Anna", "19", false},
		{"at 19:12.", "19:12", true},
		{"ratio 12: fine", "12", true},
		{"10.0.0.5:22", "22", true},
		{"gate-host:8443", "8443", true},
		{"112 guests", "12", false},
		{"12.5 guests", "12", false},
		{"It is 12.", "12", true},
	} {
		if i, _ := Whole(c.in, c.value, 0); i >= 0 != c.whole {
			t.Errorf("%q in %q: at %d, want whole %v", c.value, c.in, i, c.whole)
		}
	}
}

// A prepared value is found where the words of both in lower case have it.
func TestSaysInEitherCase(t *testing.T) {
	parts := []string{"Hall 7", "hall 7", "HALL", "hall 77", " ", ", ", ".", "-", "é", "K", "İ", "ſ", "DE89 3704", "de893704", "@", "x", ":30"}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8).Draw(t, "text"), "")
		value := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 2).Draw(t, "value"), "")
		at, _ := Whole(strings.ToLower(s), strings.ToLower(value), 0)
		exact, _ := Whole(s, value, 0)
		if got := Says(s, value); (at >= 0 || exact >= 0) && !got || got && at < 0 && exact < 0 && grouped(value) == "" {
			t.Errorf("%q in %q: %v", value, s, got)
		}
	})
}
