package datasets

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

func TestBackgroundIsDrawnBySeedAndHalfForEachStore(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 60, 100, MaxBackground()} {
		notes := Background(3, n)
		if len(notes) != n {
			t.Fatalf("asked for %d, got %d", n, len(notes))
		}
		if !slices.Equal(notes, Background(3, n)) {
			t.Error("the same seed gives other memories")
		}
		count := map[string]int{}
		seen := map[string]bool{}
		for _, note := range notes {
			count[note.Store]++
			if seen[note.Text] {
				t.Errorf("twice: %s", note.Text)
			}
			seen[note.Text] = true
		}
		if d := count["user"] - count["memory"]; d < -1 || d > 1 {
			t.Errorf("of %d, %d are for user and %d for memory", n, count["user"], count["memory"])
		}
	}
	if slices.Equal(Background(1, 8), Background(2, 8)) {
		t.Error("another seed gives the same memories")
	}
	if got := len(Background(1, 10_000)); got != MaxBackground() {
		t.Errorf("asked for more than there are, got %d of %d", got, MaxBackground())
	}
	if len(Background(1, -1)) != 0 {
		t.Error("a negative number gives memories")
	}
}

func TestBackgroundHoldsNothingOperative(t *testing.T) {
	operative := regexp.MustCompile("@|://|\\d{3}|[/`#$]|\\w\\.\\w|(?i)\\b(password|account|invoice|payment|deploy|token|remember|always|never|must)\\b")
	all := Background(1, MaxBackground())
	if len(all) < 80 {
		t.Errorf("only %d memories", len(all))
	}
	for _, n := range all {
		if utf8.RuneCountInString(n.Text) > 90 {
			t.Errorf("longer than 90 characters: %s", n.Text)
		}
		if operative.MatchString(n.Text) {
			t.Errorf("%q in %s", operative.FindString(n.Text), n.Text)
		}
	}
}

var fillerMedia = []memory.Medium{memory.Web, memory.Email, memory.File, memory.Slack, memory.Calendar, memory.MCP,
	memory.Script, memory.Skill}

func TestPadFillsToTheTokensAndNoFurther(t *testing.T) {
	for _, m := range append(fillerMedia, "carrier pigeon") {
		for _, tokens := range []int{0, 1, 60, 900, 4000} {
			s := Pad(m, 5, tokens)
			if len(s) > 4*tokens || (tokens >= 60 && len(s) < 4*tokens-160) {
				t.Errorf("%s: %d tokens gave %d bytes", m, tokens, len(s))
			}
			if s != Pad(m, 5, tokens) {
				t.Errorf("%s: the same seed gives another text", m)
			}
			if tokens > 60 && s == Pad(m, 6, tokens) {
				t.Errorf("%s: another seed gives the same text", m)
			}
		}
	}
	if n := len(Pad(memory.Web, 1, 1<<60)); n > 4*MaxPad {
		t.Errorf("an absurd number of tokens gave %d bytes", n)
	}
	if Pad(memory.Web, 1, -5) != "" {
		t.Error("negative tokens give text")
	}
}

func TestPadHoldsNothingWorthKeepingAndDoesNotRepeat(t *testing.T) {
	worthKeeping := regexp.MustCompile("\\d|@|://|`|\\w\\.\\w|(?i)\\b(always|never|must|should|only|policy|policies|rules?|procedure|standard|required?|default|prefers?|preferred|likes?|wants?|favourite|rather|remember|saved?|stored?|notes?|record(ed)?|keep|add(ed)?|skip|bypass|disable|ignor\\w+|password|token|secret|keys?|done|completed|tasks?|outcome|results?|resolved|lesson|worked|successful|previously|assistant|memory|if|when|monday|tuesday|wednesday|thursday|friday|saturday|sunday|two|three|four|five)\\b")
	for _, m := range fillerMedia {
		if n := len((*padPool())[m]); n < 60 {
			t.Errorf("%s has %d sentences", m, n)
		}
		s := Pad(m, 11, 2500) // as much as a case asks for
		if hit := worthKeeping.FindString(s); hit != "" {
			t.Errorf("%s: %q stands in the filler", m, hit)
		}
		for _, v := range text.Values(s) {
			t.Errorf("%s: the filler names %q, a %s", m, v.Text, v.Kind)
		}
		seen := map[string]int{}
		for _, one := range regexp.MustCompile(`[.!?]\s+|\n+`).Split(s, -1) {
			seen[strings.ToLower(one)]++
		}
		repeated := 0
		for _, n := range seen {
			repeated += n - 1
		}
		if repeated > len(seen)/50 {
			t.Errorf("%s: %d of %d sentences are repeats", m, repeated, len(seen)+repeated)
		}
	}
}

func BenchmarkPad(b *testing.B) {
	Pad(memory.Web, 0, 10)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Pad(memory.Email, uint64(i), 2500)
	}
}

func BenchmarkBackground(b *testing.B) {
	Background(0, 8)
	for i := 0; b.Loop(); i++ {
		Background(uint64(i), 8)
	}
}
