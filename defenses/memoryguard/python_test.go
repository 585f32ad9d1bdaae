package memoryguard

import (
	"testing"
	"time"
)

// The expectations are what CPython 3.12 prints.
func TestDumpsIsPythons(t *testing.T) {
	for in, want := range map[string]string{
		"":                        `""`,
		`a"b\c/d`:                 `"a\"b\\c/d"`,
		"\n\r\t\f\b\x00\x1b\x7f~": `"\n\r\t\f\b\u0000\u001b\u007f~"`,
		"é€😀":                     `"\u00e9\u20ac\ud83d\ude00"`,
		"\U0010FFFF":              `"\udbff\udfff"`,
		"<&>\u2028":               `"<&>\u2028"`,
	} {
		if got := string(appendDumps(nil, in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestIsoformatIsPythons(t *testing.T) {
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{time.Date(2026, 6, 20, 14, 0, 0, 0, time.UTC), "2026-06-20T14:00:00"},
		{time.Date(2026, 6, 20, 14, 0, 0, 999, time.UTC), "2026-06-20T14:00:00"},
		{time.Date(2026, 6, 20, 14, 0, 0, 1500, time.UTC), "2026-06-20T14:00:00.000001"},
		{time.Date(2026, 6, 20, 16, 0, 0, 5e8, time.FixedZone("", 7200)), "2026-06-20T14:00:00.500000"},
	} {
		if got := isoformat(c.t); got != c.want {
			t.Errorf("%s: %s, want %s", c.t, got, c.want)
		}
	}
}

func TestEqualityIsPythons(t *testing.T) {
	for _, group := range [][]string{
		{"1", "1.0", "true", "1e0"}, {"0", "-0", "false", "0.0", "-0.0"}, {`"1"`}, {"1e999999999"}, {"-1e999999999"},
		{"9007199254740993"}, {"9007199254740992", "9007199254740992.0"}, {"0.1", "1e-1"}, {`"a"`, `"\u0061"`},
	} {
		first, ok := objectOf([]byte(group[0]))
		if !ok {
			t.Fatalf("%s is no scalar", group[0])
		}
		for _, s := range group {
			if o, ok := objectOf([]byte(s)); !ok || o.equal != first.equal {
				t.Errorf("%s and %s differ", group[0], s)
			}
		}
	}
	for _, s := range []string{"null", "[1]", "{}", ""} {
		if _, ok := objectOf([]byte(s)); ok {
			t.Errorf("%s makes a triple", s)
		}
	}
	a, _ := objectOf([]byte("9007199254740993"))
	b, _ := objectOf([]byte("9007199254740992"))
	if a.equal == b.equal {
		t.Error("large integers are compared as floats")
	}
}
