package text

import "testing"

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
