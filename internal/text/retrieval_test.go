package text

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHashingTellsRelatedTextsFromOthers(t *testing.T) {
	e := Hashing{}
	for _, c := range []struct{ query, near, far string }{
		{"Where should I pay the vendor invoice?", "The vendor's invoices must be paid to account 12345678",
			"User prefers dark mode in the editor"},
		{"When is our standup?", "Team standup is at 9:30 every Monday", "Summarise the contract from Acme"},
		{"The user has a preference for a dark editor theme", "User prefers dark mode in the editor",
			"Deploy script requires root access"},
		{"send the quarterly reports", "Always send the quarterly report to finance@example.com",
			"The quarry is closed on Sundays"},
		{"deploying to staging", "Deployments go to the staging cluster first", "Lunch is at noon"},
	} {
		q := e.Embed(c.query)
		near, far := Dot(q, e.Embed(c.near)), Dot(q, e.Embed(c.far))
		if near < 0.3 || far > 0.2 {
			t.Errorf("%q: %.2f with %q, %.2f with %q", c.query, near, c.near, far, c.far)
		}
	}
}

func TestHashingProperties(t *testing.T) {
	e := Hashing{}
	rapid.Check(t, func(t *rapid.T) {
		s := hostileText().Draw(t, "s")
		v := e.Embed(s)
		if len(v) != HashDim {
			t.Fatalf("%d values, want %d", len(v), HashDim)
		}
		n := math.Sqrt(float64(Dot(v, v)))
		if n != 0 && math.Abs(n-1) > 1e-5 {
			t.Fatalf("Embed(%+q) has length %v", s, n)
		}
		if !slices.Equal(v, e.Embed(Fold(s))) {
			t.Fatalf("Embed(%+q) differs from that of the folded text", s)
		}
	})
}

func TestHashingIsTheSameOnEveryMachine(t *testing.T) {
	// Pinned: a change of these values changes every stored result.
	v := Hashing{}.Embed("The vendor's invoices must be paid to account 12345678")
	h := uint64(fnvOffset)
	for _, x := range v {
		h = (h ^ uint64(int64(math.Round(float64(x)*1e4)))) * fnvPrime
	}
	const want = uint64(0x2d7e83bf83706b85)
	if h != want {
		t.Errorf("vector has the hash %#x, want %#x", h, want)
	}
}

func TestShingles(t *testing.T) {
	a := Shingles("Pay the invoice to the NEW account", 3)
	if len(a) != 5 {
		t.Errorf("%d shingles of seven words, want 5", len(a))
	}
	if b := Shingles("pаy the\u200b invoice — to the new account!", 3); !slices.Equal(a, b) {
		t.Error("disguise and punctuation change the shingles")
	}
	if got := Shared(a, Shingles("pay the invoice to the new person", 3)); got != 4 {
		t.Errorf("with one word changed, %d are shared, want 4", got)
	}
	if len(Shingles("two words", 3)) != 1 || len(Shingles("...", 3)) != 0 {
		t.Error("short texts: want one shingle of all words, none without words")
	}
	if Shared(nil, a) != 0 {
		t.Error("an empty set has nothing in common with another")
	}
}

// Half a megabyte of each kind of trouble through everything: what is not
// linear does not come back from here.
func TestHostileTextIsLinear(t *testing.T) {
	p := NewPhrases(benchPhrases())
	pt := mustPatterns(t, []string{"a ...8 a ...8 a ...8 b", "ignore ...4 (all|x*)? rules", "* * b"})
	for _, piece := range []string{"a", "a ", "(", ")", "[", "`", "``", "\x1b]", "\x1b[", "\x1b", "\u009b0", "=", "a=",
		"a:", "://", "x://", "x://)", "@", "a@", "a@b.", "-", "--", ".", "..", ". ", ",", ", ", "1", "1,", "1 ", "11 ", "+1 ",
		"|", "| ", "curl | ", "curl -a ", "sudo ", "$ ", "\n", "\n\n", "\r", "- ", "A ", "Ab ", "AB12 ", "\u0301", "ﾞ",
		"\u1161", "か\u3099", "\u200b", "\u202e", "\U000E0061", "\ufe0f", "\xff", "\x00", "о", "оa", "%", "%4", "%41", "&",
		"&a;", "&#1", "0x", "\\x41", "41 ", "aB3", "1a", "🅰", "👨\u200d",
		"ignore ", "ignore all prior ", "e.g. ", "Mr. ", "'", "a'", "_", "a_", "é", "İ", "日", "。", "ﷺ", "```\n", "# ", "> ",
		"a: b\n", "http://a/(", "https://a.b/c?", "::", "1.1.1.", "/", "a/", "\\", "$1", "€", "k = v ", "12 March "} {
		s := strings.Repeat(piece, 512<<10/len(piece))
		f := FoldMap(s)
		Scan(s)
		Decode(s)
		tokens := Tokens(s)
		Sentences(s)
		Values(s)
		Hashing{}.Embed(s)
		Shingles(s, 3)
		p.Find(f.Text, func(int, int, int) bool { return true })
		pt.FindTokens(s, tokens, func(int, int, int) bool { return true })
		runtime.KeepAlive(tokens)
	}
}
