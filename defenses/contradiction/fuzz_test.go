package contradiction

import (
	"strings"
	"testing"
	"time"
)

func FuzzRead(f *testing.F) {
	for _, p := range readLines[pair](f, "pairs-dev.jsonl") {
		f.Add(p.New)
	}
	f.Add("{\"a\": [1, {\"b\": \"\\u00e9\\ud800\"}]} tail")
	f.Add("| a | b |\n|---|\n| 1")
	f.Add("\xff\xfe is \x00, who's \u202eis 'x'")
	f.Add("''s's 's is 's's, 's")
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range read(s) {
			if c.start < 0 || c.end < c.start || c.end > len(s) {
				t.Fatalf("%q: a value at %d to %d", s, c.start, c.end)
			}
			if c.end > 0 && s[c.start:c.end] != c.shown {
				t.Fatalf("%q: %q stands where %q should", s, s[c.start:c.end], c.shown)
			}
		}
	})
}

// Hostile texts must cost no more than their length.
func TestReadIsLinear(t *testing.T) {
	for _, unit := range []string{"a ", "is ", ", ", "and is ", "the x is y, ", "[1,\n", "{\"a\":{", "[{},\n", "\"", "'s ", "\x80",
		"((", "| a ", "a: b\n", " x:\n", "that ", "which is, ", "of the ", "“", "é", "a=b;", "x - ", "in , ", "Ana 5 x@y.de; ",
		"Ana 5 x@y.de ", "two 7 is "} {
		work := func(n int) time.Duration {
			s := strings.Repeat(unit, n/len(unit))
			began := time.Now()
			read(s)
			return time.Since(began)
		}
		work(1 << 12)
		small, large := work(1<<14), work(1<<18)
		for range 3 { // another process may have had the machine
			large = min(large, work(1<<18))
		}
		if large > 100*small+100*time.Millisecond {
			t.Errorf("%q: %s for 16 KiB, %s for 256 KiB", unit, small, large)
		}
	}
}
