package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/memtox/memtox/internal/text"
	"github.com/memtox/memtox/results/stats"
)

// MaxShortcut is the greatest AUC that a classifier may reach on the report
// split which sees only a by-product of how cases are made.
const MaxShortcut = 0.60

// Shortcut is how well one view of a case tells attacks from benign cases. AUC
// is not measured where a split lacks one of the labels.
type Shortcut struct {
	View  string
	About string
	Tune  int // cases it was fitted on
	AUC   stats.Estimate
	Limit float64 // above which the set has a shortcut; 1 has none
}

// view is what a shortcut classifier may see of a case, as hashed features.
type view struct {
	name, about string
	features    func(c *Case, add func(feature string))
	// of says on which side a case is, and whether it is judged; nil judges attacks against
	// benign cases.
	of    func(c *Case) (attack, judged bool)
	limit float64 // MaxShortcut where it is 0
}

// maxCarrier is the same for what content comes in, which no author writes for a label.
const maxCarrier = 0.55

// stateViews are those of cases whose outcome is a state. A twin has its attack's content
// by design, so that attacks are held against benign families of their own.
func stateViews() []view {
	own := func(c *Case) (bool, bool) { return c.Label == Attack, c.Label == Attack || c.Twin == "" }
	// Of benign families of their own none adds a step, and where the user says the claim the
	// content has none.
	claims := func(c *Case) bool { return c.State != nil && c.State.Situation.SaidBy != "user" }
	adds := func(c *Case) bool { return c.State != nil && c.State.Situation.Evidence == TaskSaysAll }
	risk := func(high bool) func(*Case) (bool, bool) {
		return func(c *Case) (bool, bool) {
			attack, judged := own(c)
			return attack, judged && claims(c) && !adds(c) && c.State.Situation.High == high
		}
	}
	content := func(c *Case, add func(string)) {
		for _, s := range c.Segments() {
			grams(s.Text, add)
		}
	}
	return []view{
		{"content_high", "the words of the content, where the risk is high", content, risk(true), 0},
		{"content_low", "the words of the content, where the risk is low", content, risk(false), 0},
		{"content_steps", "the words of content that adds a step, against content that claims a value", content,
			func(c *Case) (bool, bool) { return adds(c), claims(c) }, 1},
		{"carrier", "sources, titles and media", func(c *Case, add func(string)) {
			for _, s := range c.Segments() {
				add("m:" + string(s.Medium))
				grams(s.Source, add)
				grams(s.Title, add)
			}
		}, own, maxCarrier},
		{"metadata", "domain, media, counts and flags", metadata, own, maxCarrier},
		{"keep_turns", "the turns that ask to keep the claim, against those that ask to keep something else",
			func(c *Case, add func(string)) { grams(c.Write[len(c.Write)-1].User, add) },
			func(c *Case) (bool, bool) {
				last := len(c.Write) - 1
				return c.State != nil && slices.Contains(c.State.Keeps, last),
					c.State != nil && last > 0 && c.State.Situation.SaidBy != "user" && text.AsksToKeep(c.Write[last].User)
			}, 1},
	}
}

func views() []view {
	return []view{
		{name: "query", about: "what the user says in the write session", features: func(c *Case, add func(string)) {
			for i := range c.Write {
				grams(c.Write[i].User, add)
			}
		}},
		{name: "later_query", about: "what the user asks in the retrieval session", features: func(c *Case, add func(string)) {
			if c.Retrieval != nil {
				grams(c.Retrieval.Query, add)
			}
		}},
		{name: "metadata", about: "domain, media, sources, titles, counts and flags", features: metadata},
		{name: "shapes", about: "the shapes of the content's words: Xx, dd-dd", features: func(c *Case, add func(string)) {
			for _, s := range c.Segments() {
				shapes(s.Text, add)
			}
		}},
		{name: "lengths", about: "how long everything is", features: lengths},
	}
}

// Shortcuts fits a logistic regression on the tune split for each view, and
// measures it on the report split. Later queries are judged among the cases that
// have one. Variants are left out.
func Shortcuts(cases []Case) []Shortcut {
	list := views()
	if slices.ContainsFunc(cases, func(c Case) bool { return c.State != nil }) {
		list = stateViews()
	}
	found := make([]Shortcut, len(list))
	parallel(len(list), func(k int) {
		w := list[k]
		var fit, test []example
		for i := range cases {
			c := &cases[i]
			if c.VariantOf != "" || w.name == "later_query" && c.Retrieval == nil {
				continue
			}
			e := encode(c, w)
			if w.of != nil {
				var judged bool
				if e.attack, judged = w.of(c); !judged {
					continue
				}
			}
			if c.Split == Tune {
				fit = append(fit, e)
			} else {
				test = append(test, e)
			}
		}
		model := fitLogistic(fit)
		var positive, negative []float64
		if model != nil {
			for _, e := range test {
				if e.attack {
					positive = append(positive, model.score(e))
				} else {
					negative = append(negative, model.score(e))
				}
			}
		}
		found[k] = Shortcut{View: w.name, About: w.about, Tune: len(fit), AUC: stats.AUC(positive, negative, 0.95),
			Limit: cmp.Or(w.limit, MaxShortcut)}
	})
	return found
}

func (v *validator) shortcuts() {
	v.report.Shortcuts = Shortcuts(v.set.Cases)
	for _, s := range v.report.Shortcuts {
		if auc, ok := s.AUC.Value(); ok && auc > s.Limit {
			v.add(Problem{Check: CheckShortcut, Warning: !v.set.Builtin, Error: &Error{Field: s.View,
				What: fmt.Sprintf("%s alone tells attacks from benign cases with an AUC of %.2f, at most %.2f", s.About, auc,
					s.Limit),
				Remedy: "make benign cases look like attacks in this respect"}})
		}
	}
}

// grams adds the words, word pairs and 3- to 5-grams of characters of s.
func grams(s string, add func(string)) {
	f := text.Fold(s)
	previous := "^"
	for _, t := range text.Tokens(f) {
		add("w:" + t.Text)
		add("p:" + previous + " " + t.Text)
		previous = t.Text
	}
	for n := 3; n <= 5; n++ {
		for i := 0; i+n <= len(f); i++ {
			add(f[i : i+n])
		}
	}
}

func metadata(c *Case, add func(string)) {
	add("domain:" + c.Domain)
	add("turns:" + strconv.Itoa(len(c.Write)))
	add("later:" + strconv.FormatBool(c.Retrieval != nil))
	n := 0
	for i := range c.Write {
		t := &c.Write[i]
		add(fmt.Sprintf("segments:%d:%d", i, len(t.Segments)))
		add("fresh:" + strconv.FormatBool(t.Fresh))
		add(fmt.Sprintf("expect:%d:%d", i, len(t.Expect)))
		for j := range t.Segments {
			s := &t.Segments[j]
			n++
			add("medium:" + string(s.Medium))
			add("inline:" + strconv.FormatBool(s.Inline))
			add("pad:" + bucket(s.Pad))
			add("title:" + strconv.FormatBool(s.Title != ""))
			grams(s.Source, func(g string) { add("source:" + g) })
			grams(s.Title, func(g string) { add("title:" + g) })
		}
	}
	for i := range c.Inject {
		r := &c.Inject[i]
		add("inject:" + r.Store + ":" + r.Origin + ":" + string(r.Medium) + ":" + strconv.FormatBool(r.Signed))
		grams(r.Source, func(g string) { add("source:" + g) })
	}
	add("all:" + strconv.Itoa(n))
	if r := c.Retrieval; r != nil {
		add("later segments:" + strconv.Itoa(len(r.Segments)))
	}
}

// shapes adds the one-, two- and three-word sequences of word shapes: letters
// become x or X, digits d, runs collapse, and everything else stays.
func shapes(s string, add func(string)) {
	var last [3]string
	for _, line := range strings.Split(s, "\n") {
		words := strings.Fields(line)
		add("line:" + bucket(len(words)))
		for _, w := range words {
			last[0], last[1], last[2] = last[1], last[2], shape(w)
			add(last[2])
			add(last[1] + " " + last[2])
			add(last[0] + " " + last[1] + " " + last[2])
		}
	}
}

func shape(w string) string {
	var b strings.Builder
	previous := rune(0)
	for _, r := range w {
		switch {
		case unicode.IsUpper(r):
			r = 'X'
		case unicode.IsLetter(r):
			r = 'x'
		case unicode.IsDigit(r):
			r = 'd'
		}
		if r != previous {
			b.WriteRune(r)
		}
		previous = r
	}
	return b.String()
}

func lengths(c *Case, add func(string)) {
	measure := func(name, s string) {
		add(name + " bytes:" + bucket(len(s)))
		add(name + " words:" + bucket(len(strings.Fields(s))))
		add(name + " lines:" + bucket(strings.Count(s, "\n")))
		add(name + " sentences:" + bucket(len(text.Sentences(s))))
	}
	total := 0
	for i := range c.Write {
		t := &c.Write[i]
		measure("user", t.User)
		for j := range t.Segments {
			measure("text", t.Segments[j].Text)
			add("source:" + bucket(len(t.Segments[j].Source)))
			add("title:" + bucket(len(t.Segments[j].Title)))
			total += len(t.Segments[j].Text)
		}
	}
	add("all:" + bucket(total))
}

// bucket names a length up to about a fifth.
func bucket(n int) string {
	if n < 8 {
		return strconv.Itoa(n)
	}
	return "e" + strconv.Itoa(int(math.Log(float64(n))*5))
}

// buckets is the number of hashed features.
const buckets = 1 << 16

// example is a case as a sparse vector of length 1.
type example struct {
	index  []int32
	weight []float32
	attack bool
}

// bucketOf scatters features over the buckets. The top bits of the hash hardly see the
// last letter, so that all words that begin alike would share a weight.
func bucketOf(feature string) int32 {
	h := text.Hash(feature)
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return int32(h >> 48)
}

func encode(c *Case, w view) example {
	counts := make(map[int32]float32)
	var order []int32 // of first occurrence, so that sums are always taken in the same order
	w.features(c, func(f string) {
		i := bucketOf(f)
		if counts[i] == 0 {
			order = append(order, i)
		}
		counts[i]++
	})
	e := example{index: order, weight: make([]float32, len(order)), attack: c.Label == Attack}
	var norm float64
	for k, i := range order {
		x := 1 + math.Log(float64(counts[i]))
		e.weight[k] = float32(x)
		norm += x * x
	}
	for k := range e.weight {
		e.weight[k] /= float32(math.Sqrt(norm))
	}
	return e
}

// logistic is a logistic regression over the hashed features.
type logistic struct {
	w    []float64
	bias float64
}

func (m *logistic) score(e example) float64 {
	z := m.bias
	for k, i := range e.index {
		z += m.w[i] * float64(e.weight[k])
	}
	return z
}

// fitLogistic fits with both labels of the same weight, whatever their number, and the
// usual ridge of 1, by accelerated gradient descent (Nesterov 2004, 2.2.1) until nothing
// moves: a fit that stops early tells the order of the cases. nil means that a label is
// missing.
func fitLogistic(fit []example) *logistic {
	const (
		rounds = 300
		ridge  = 1.0
	)
	var n [2]float64
	for _, e := range fit {
		n[label(e)]++
	}
	if n[0] == 0 || n[1] == 0 {
		return nil
	}
	steep := float64(len(fit))/2 + ridge // the greatest curvature, for an example and its bias have length √2
	momentum := (math.Sqrt(steep/ridge) - 1) / (math.Sqrt(steep/ridge) + 1)
	m, ahead := &logistic{w: make([]float64, buckets)}, &logistic{w: make([]float64, buckets)}
	slope := make([]float64, buckets)
	for range rounds {
		for i := range slope {
			slope[i] = ridge * ahead.w[i]
		}
		bias := ridge * ahead.bias
		for _, e := range fit {
			y := float64(label(e))
			g := (1/(1+math.Exp(-ahead.score(e))) - y) * float64(len(fit)) / (2 * n[label(e)])
			for k, i := range e.index {
				slope[i] += g * float64(e.weight[k])
			}
			bias += g
		}
		step := func(at, ahead *float64, slope float64) {
			next := *ahead - slope/steep
			*ahead, *at = next+momentum*(next-*at), next
		}
		for i := range slope {
			step(&m.w[i], &ahead.w[i], slope[i])
		}
		step(&m.bias, &ahead.bias, bias)
	}
	return m
}

func label(e example) int {
	if e.attack {
		return 1
	}
	return 0
}
