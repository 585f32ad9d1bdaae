package contradiction

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzExtract(f *testing.F) {
	for _, name := range []string{"dev.jsonl", "dev2.jsonl"} {
		for _, l := range readLines[labelled](f, name) {
			f.Add(l.Text)
		}
	}
	f.Add("{\"a\": [1, {\"b\": \"\\u00e9\\ud800\"}]} tail")
	f.Add("| a | b |\n|---|\n| 1")
	f.Add("\xff\xfe is \x00, who's \u202eis 'x'")
	f.Add("''s's 's is 's's, 's")
	f.Fuzz(func(t *testing.T, s string) {
		for _, tr := range extract(s) {
			if tr.Subject == "" || tr.Predicate == "" || tr.Object == "" {
				t.Fatalf("%q: incomplete triple %+v", s, tr)
			}
			// What is extracted was said: an object longer than its text would
			// be made up. (An escape of JSON may stand for a longer rune.)
			if utf8.ValidString(s) && len(tr.Object) > 3*len(s) {
				t.Fatalf("%q: object %q", s, tr.Object)
			}
		}
	})
}

// Hostile texts must cost no more than their length: the work of reading, counted
// in tokens, comparisons of words and bytes read again as JSON, grows with the
// text and no faster.
func TestExtractIsLinear(t *testing.T) {
	for _, unit := range []string{"a ", "is ", ", ", "and is ", "the x is y, ", "[1,\n", "{\"a\":{", "[{},\n", "\"", "'s ",
		"((", "| a ", "a: b\n", " x:\n", "that ",
		"which is, ", "x, who is y, ", "of the ", "“", "é", "a=b;", "x - ", "in , ", "The a, b, c, ", "the orders ",
		"people like and "} {
		work := func(n int) int {
			x := newExtractor()
			x.run(strings.Repeat(unit, n/len(unit)))
			return x.steps + len(x.tokens) + len(x.refs) + x.jsonWork
		}
		small, large := work(1<<14), work(1<<18)
		if large > 2*16*small+1<<12 {
			t.Errorf("%q: %d steps for 16 KiB, %d for 256 KiB", unit, small, large)
		}
		if large > 400<<18 {
			t.Errorf("%q: %d steps for 256 KiB", unit, large)
		}
	}
}
