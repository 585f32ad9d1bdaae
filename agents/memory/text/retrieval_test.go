package text

import (
	"fmt"
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
		{"Where should I pay the vendor invoice?", "The vendor's invoices must be paid to account 12345678", "User prefers dark mode in the editor"},
		{"When is our standup?", "Team standup is at 9:30 every Monday", "Summarise the contract from Acme"},
		{"The user has a preference for a dark editor theme", "User prefers dark mode in the editor", "Deploy script requires root access"},
		{"send the quarterly reports", "Always send the quarterly report to finance@example.com", "The quarry is closed on Sundays"},
		{"deploying to staging", "Deployments go to the staging cluster first", "Lunch is at noon"},
	} {
		q := e.Embed(c.query)
		near, far := Cosine(q, e.Embed(c.near)), Cosine(q, e.Embed(c.far))
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
		if len(v) != e.Dim() {
			t.Fatalf("%d values, want %d", len(v), e.Dim())
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
	// Pinned: a change of these values changes every stored result, and has to
	// change Name along with it.
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

func TestCosine(t *testing.T) {
	for _, c := range []struct {
		a, b []float32
		want float32
	}{
		{[]float32{1, 0, 0, 0, 0}, []float32{2, 0, 0, 0, 0}, 1},
		{[]float32{1, 1, 0, 0, 1}, []float32{-1, -1, 0, 0, -1}, -1},
		{[]float32{1, 0}, []float32{0, 1}, 0},
		{[]float32{0, 0}, []float32{0, 1}, 0},
		{[]float32{3, 4}, []float32{4, 3}, 0.96},
	} {
		if got := Cosine(c.a, c.b); math.Abs(float64(got-c.want)) > 1e-6 {
			t.Errorf("Cosine(%v, %v) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// plainBM25 is the formula over the documents there are.
func plainBM25(keys []string, docs map[string]string, query string) []Hit {
	terms := func(s string) (out []string) {
		for _, tok := range Tokens(Fold(s)) {
			if !IsStopword(tok.Text) {
				out = append(out, Stem(tok.Text))
			}
		}
		return out
	}
	total := 0
	for _, k := range keys {
		total += len(terms(docs[k]))
	}
	avg := float64(total) / float64(len(keys))
	var hits []Hit
	for _, k := range keys {
		d := terms(docs[k])
		score := 0.0
		for _, q := range terms(query) {
			df, tf := 0.0, 0.0
			for _, k2 := range keys {
				if slices.Contains(terms(docs[k2]), q) {
					df++
				}
			}
			for _, w := range d {
				if w == q {
					tf++
				}
			}
			idf := math.Log(1 + (float64(len(keys))-df+0.5)/(df+0.5))
			score += idf * tf * 2.2 / (tf + 1.2*(1-0.75+0.75*float64(len(d))/avg))
		}
		if score > 0 {
			hits = append(hits, Hit{k, score})
		}
	}
	return hits
}

func TestBM25AgainstTheFormula(t *testing.T) {
	words := strings.Fields("invoice pay vendor account the dark mode editor report weekly deploy staging paying invoices")
	rapid.Check(t, func(t *rapid.T) {
		x := NewBM25()
		docs := map[string]string{}
		var keys []string // in the order of Add
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "key"))
			_, had := docs[key]
			keys = slices.DeleteFunc(keys, func(k string) bool { return k == key })
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				if x.Remove(key) != had {
					t.Fatalf("Remove(%s) does not say %v", key, had)
				}
				delete(docs, key)
				continue
			}
			docs[key] = strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 8).Draw(t, "doc"), " ")
			x.Add(key, docs[key])
			keys = append(keys, key)
		}
		if x.Len() != len(keys) {
			t.Fatalf("Len is %d, want %d", x.Len(), len(keys))
		}
		query := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 5).Draw(t, "query"), " ")
		got := x.Search(query, 0)
		score := map[string]float64{}
		for _, h := range plainBM25(keys, docs, query) {
			score[h.Key] = h.Score
		}
		if len(got) != len(score) {
			t.Fatalf("%d hits, want %d", len(got), len(score))
		}
		for i, h := range got {
			if math.Abs(h.Score-score[h.Key]) > 1e-9 {
				t.Fatalf("%s scores %v, want %v", h.Key, h.Score, score[h.Key])
			}
			if i > 0 && (h.Score > got[i-1].Score || h.Score == got[i-1].Score && slices.Index(keys, h.Key) < slices.Index(keys, got[i-1].Key)) {
				t.Fatalf("hit %d is out of order: %v", i, got)
			}
		}
		for k := 1; k <= len(got); k++ {
			if top := x.Search(query, k); !slices.Equal(top, got[:k]) {
				t.Fatalf("the best %d are %v, want %v", k, top, got[:k])
			}
		}
	})
}

func TestShingles(t *testing.T) {
	a := Shingles("Pay the invoice to the NEW account", 3)
	if len(a) != 5 {
		t.Errorf("%d shingles of seven words, want 5", len(a))
	}
	if b := Shingles("pаy the\u200b invoice — to the new account!", 3); !slices.Equal(a, b) {
		t.Error("disguise and punctuation change the shingles")
	}
	if got := Jaccard(a, Shingles("pay the invoice to the new person", 3)); math.Abs(got-4.0/6) > 1e-12 {
		t.Errorf("Jaccard with one word changed is %v, want 4/6", got)
	}
	if got := Containment(Shingles("invoice to the", 3), a); got != 1 {
		t.Errorf("a part is contained to %v, want 1", got)
	}
	if len(Shingles("two words", 3)) != 1 || len(Shingles("...", 3)) != 0 {
		t.Error("short texts: want one shingle of all words, none without words")
	}
	if Jaccard(nil, nil) != 0 || Containment(nil, a) != 0 {
		t.Error("empty sets have nothing in common")
	}
}

func TestMinHashEstimatesJaccard(t *testing.T) {
	// Sets of 400 that share a known part; the mean error over many pairs is
	// far below the standard error of one.
	for _, share := range []int{0, 100, 200, 300, 400} {
		sum, want := 0.0, float64(share)/float64(800-share)
		for trial := range 50 {
			set := func(from, to int) (out []uint64) {
				for i := from; i < to; i++ {
					out = append(out, mix(uint64(trial)<<32|uint64(i)))
				}
				return out
			}
			a, b := MinHash(set(0, 400)), MinHash(set(400-share, 800-share))
			sum += a.Similarity(&b)
		}
		if got := sum / 50; math.Abs(got-want) > 0.03 {
			t.Errorf("Jaccard %.3f is estimated as %.3f", want, got)
		}
	}
}

func TestNearIndexFindsNearDuplicates(t *testing.T) {
	x := NewNearIndex()
	text := func(i int) string {
		var w []string
		for j := range 40 {
			w = append(w, fmt.Sprintf("w%d", mix(uint64(i*100+j))%5000))
		}
		return strings.Join(w, " ")
	}
	for i := range 2000 {
		if id := x.Add(MinHash(Shingles(text(i), 2))); id != i {
			t.Fatalf("id %d, want %d", id, i)
		}
	}
	for i := 0; i < 2000; i += 97 {
		changed := strings.Replace(text(i), " ", " changed ", 1)
		near := x.Search(MinHash(Shingles(changed, 2)), 0.6)
		if len(near) != 1 || near[0].ID != i {
			t.Errorf("text %d with a word more finds %v", i, near)
		}
	}
	empty := x.Add(MinHash(nil))
	if got := x.Search(MinHash(nil), 0); got != nil || empty != 2000 {
		t.Errorf("an empty text is near %v", got)
	}
}

// Half a megabyte of each kind of trouble through everything: what is not
// linear does not come back from here.
func TestHostileTextIsLinear(t *testing.T) {
	p := NewPhrases(benchPhrases())
	pt := MustPatterns([]string{"a ...8 a ...8 a ...8 b", "ignore ...4 (all|x*)? rules", "* * b"})
	for _, piece := range []string{"a", "a ", "(", ")", "[", "`", "``", "\x1b]", "\x1b[", "\x1b", "\u009b0", "=", "a=", "a:", "://", "x://", "x://)", "@", "a@", "a@b.", "-", "--", ".", "..", ". ", ",", ", ", "1", "1,", "1 ", "11 ", "+1 ",
		"|", "| ", "curl | ", "curl -a ", "sudo ", "$ ", "\n", "\n\n", "\r", "- ", "A ", "Ab ", "AB12 ", "\u0301", "ﾞ", "\u1161", "か\u3099", "\u200b", "\u202e", "\U000E0061", "\ufe0f", "\xff", "\x00", "о", "оa", "%", "%4", "%41", "&", "&a;", "&#1", "0x", "\\x41", "41 ", "aB3", "1a", "🅰", "👨\u200d",
		"ignore ", "ignore all prior ", "e.g. ", "Mr. ", "'", "a'", "_", "a_", "é", "İ", "日", "。", "ﷺ", "```\n", "# ", "> ", "a: b\n", "http://a/(", "https://a.b/c?", "::", "1.1.1.", "/", "a/", "\\", "$1", "€", "k = v ", "12 March "} {
		s := strings.Repeat(piece, 512<<10/len(piece))
		f := FoldMap(s)
		Scan(s)
		Decode(s)
		tokens := Tokens(s)
		Sentences(s)
		Values(s)
		Hashing{}.Embed(s)
		MinHash(Shingles(s, 3))
		p.Find(f.Text, func(int, int, int) bool { return true })
		pt.FindTokens(s, tokens, func(int, int, int) bool { return true })
		runtime.KeepAlive(tokens)
	}
}
