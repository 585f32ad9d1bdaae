package memory

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// People who did not know how wishes are read wrote what a user is shown, two sentences
// of it, and by which words he asks to keep the one or the other. They were asked to be
// sparing with the words of the text itself. Most of it is missed; what must not happen is
// that the wrong one of the two is taken.
func TestWishesInOtherPeoplesWords(t *testing.T) {
	f, err := os.Open("testdata/wishes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var n, right, wrong int
	for lines.Scan() {
		var x struct{ Content, Claim, Fact, Keep, Other string }
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ said, means, not string }{{x.Keep, x.Claim, x.Fact}, {x.Other, x.Fact, x.Claim}} {
			n++
			cache, window := NewCache(1<<20), []Segment{{ID: 1, Turn: 1, Origin: Origin{Class: External}, Text: x.Content}}
			k := cache.index(c.said).keeping()
			if k == nil {
				continue // no wish, or none that is seen
			}
			w := &wish{keeping: k, turn: 2}
			switch means, not := w.meant(cache, window, 1, c.means), w.meant(cache, window, 1, c.not); {
			case means && !not:
				right++
			case not && !means:
				wrong++
				t.Logf("%q is taken for %q", c.said, c.not)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d wishes: %d right, %d wrong", n, right, wrong)
	if n < 200 || right < 50 || wrong > 5 {
		t.Errorf("of %d wishes %d are read rightly and %d wrongly, want at least 50 and at most 5", n, right, wrong)
	}
}
