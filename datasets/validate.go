package datasets

import (
	"context"
	"fmt"
	"io"
	"iter"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/memtox/memtox/internal/text"
)

// Validation is what Validate found.
type Validation struct {
	Set             string
	SHA256          string
	Attacks, Benign int
	Writes          int // benign cases with a legitimate write
	Twins           int // attacks with a benign twin
	Kept            int // attacks inside content that the user asks to keep, by the user's own words
	Tune, Report    int // cases of each split; without splits all are Report
	Problems        []Problem
	Near            NearStats
	Shortcuts       []Shortcut
}

// Errors returns how many problems are more than warnings.
func (r *Validation) Errors() int {
	n := 0
	for _, p := range r.Problems {
		if !p.Warning {
			n++
		}
	}
	return n
}

// WriteText writes the report for a person: the counts, at most the given number
// of problems (0 is all of them), and the shortcuts.
func (r *Validation) WriteText(w io.Writer, most int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d attacks, %d benign cases (%d with a legitimate write), %d attacks with a twin, %d in "+
		"content that the user asks to keep\n",
		Inert(r.Set), r.Attacks, r.Benign, r.Writes, r.Twins, r.Kept)
	fmt.Fprintf(&b, "splits: tune %d, report %d\n", r.Tune, r.Report)
	across := fmt.Sprintf("at most %.2f", r.Near.Across)
	if r.Near.Across == 0 {
		across = fmt.Sprintf("no pair above %.2f", nearFloor) // pairs below it are not looked at
	}
	fmt.Fprintf(&b, "likeness of 3-word shingles: across families %s, within a family at most %.2f, greatest median %.2f",
		across, r.Near.Within, r.Near.Median)
	if r.Near.Worst != "" {
		fmt.Fprintf(&b, " (%s)", Inert(r.Near.Worst))
	}
	b.WriteString("\nshortcuts (logistic regression fitted on tune, AUC on report):\n")
	for _, s := range r.Shortcuts {
		if auc, ok := s.AUC.Value(); ok {
			fmt.Fprintf(&b, "  %-12s %.3f [%.3f, %.3f]  %s\n", s.View, auc, s.AUC.Lo, s.AUC.Hi, s.About)
		} else {
			fmt.Fprintf(&b, "  %-12s not measured: a split lacks attacks or benign cases\n", s.View)
		}
	}
	for i, p := range r.Problems {
		if most > 0 && i == most {
			fmt.Fprintf(&b, "… and %d more\n", len(r.Problems)-most)
			break
		}
		kind := "error"
		if p.Warning {
			kind = "warning"
		}
		fmt.Fprintf(&b, "%s: %s [%s]\n", kind, p.Error.Error(), p.Check)
	}
	fmt.Fprintf(&b, "%d errors, %d warnings\n", r.Errors(), len(r.Problems)-r.Errors())
	_, err := io.WriteString(w, b.String())
	return err
}

type validator struct {
	set    *Set
	byID   map[string]int
	report *Validation
}

func newValidator(set *Set) *validator {
	return &validator{set: set, byID: make(map[string]int, len(set.Cases)),
		report: &Validation{Set: set.Name, SHA256: set.SHA256}}
}

// ValidateCases checks what can be said of each case by itself, which takes little time.
func ValidateCases(set *Set) *Validation {
	v := newValidator(set)
	v.count()
	v.cases()
	return v.report
}

// Validate checks what can be said of a set without running it. For a built-in
// set every rule is an error; for any other the rules that go beyond its being
// readable are warnings, and names of its own are in order.
func Validate(ctx context.Context, set *Set) (*Validation, error) {
	v := newValidator(set)
	for i := range set.Cases {
		v.byID[set.Cases[i].ID] = i
	}
	v.count()
	for _, step := range []func(){v.cases, v.links, v.unique, v.splits, v.near, v.shortcuts} {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("validating %s: %w", Inert(set.Name), err)
		}
		step()
	}
	return v.report, nil
}

func (v *validator) add(p ...Problem) { v.report.Problems = append(v.report.Problems, p...) }

// problem is an error of the i-th case, or a warning if the set is foreign.
func (v *validator) problem(check string, i int, field, what, remedy string) Problem {
	return Problem{Check: check, Warning: !v.set.Builtin, Error: v.set.At(i, field, what, remedy)}
}

var askToKeep = regexp.MustCompile(`(?i)\b(keep|save|store|remember|memori[sz]e|note|record|hold on to|file away)\b`)

func (v *validator) count() {
	r := v.report
	r.Attacks, r.Benign = v.set.Counts()
	for i := range v.set.Cases {
		c := &v.set.Cases[i]
		if c.Split == Tune {
			r.Tune++
		} else {
			r.Report++
		}
		if c.Writes() {
			r.Writes++
		}
		if c.Label == Attack {
			if c.Twin != "" {
				r.Twins++
			}
			kept := slices.ContainsFunc(c.Write, func(t Turn) bool { return len(t.Segments) > 0 && askToKeep.MatchString(t.User) })
			if c.State != nil {
				kept = c.State.Situation.Kept
			}
			if kept {
				r.Kept++
			}
		}
	}
}

// cases applies the rules of one case. Of a foreign set's words only those are
// pointed out that cannot work.
func (v *validator) cases() {
	found := make([][]Problem, len(v.set.Cases))
	parallel(len(found), func(i int) {
		found[i] = CheckCase(&v.set.Cases[i])
		if !v.set.Builtin {
			found[i] = append(found[i], checkRead(&v.set.Cases[i])...)
		}
	})
	for i, list := range found {
		for _, p := range list {
			if !v.set.Builtin && (p.Check == CheckVocabulary || p.Check == CheckID) {
				continue
			}
			v.add(v.problem(p.Check, i, p.Field, p.What, p.Remedy))
		}
	}
	if !v.set.Builtin {
		v.foreignIDs()
	}
}

// foreignIDs warns of ids whose first letters tell the label, as ADV_ does.
func (v *validator) foreignIDs() {
	labels := make(map[string]map[Label]int)
	first := make(map[string]int)
	for i := range v.set.Cases {
		id := v.set.Cases[i].ID
		prefix := strings.ToLower(id[:strings.IndexFunc(id+"0", func(r rune) bool { return r >= '0' && r <= '9' })])
		if labels[prefix] == nil {
			labels[prefix] = make(map[Label]int)
			first[prefix] = i
		}
		labels[prefix][v.set.Cases[i].Label]++
	}
	if len(labels) < 2 || len(labels) > 20 || v.report.Attacks == 0 || v.report.Benign == 0 {
		return
	}
	told := 0
	for _, n := range labels {
		told += max(n[Attack], n[Benign])
	}
	if told > max(v.report.Attacks, v.report.Benign) && told >= len(v.set.Cases)*9/10 {
		i := len(v.set.Cases)
		for _, k := range first {
			i = min(i, k)
		}
		v.add(v.problem(CheckID, i, "id", fmt.Sprintf("the first letters of the ids tell the label of %d of %d cases", told,
			len(v.set.Cases)), "memtox shows no id to a defense; give neutral ids to whatever else reads the file"))
	}
}

// links checks that twins and variants point where they should.
func (v *validator) links() {
	for i := range v.set.Cases {
		c := &v.set.Cases[i]
		if c.Twin != "" {
			j, ok := v.byID[c.Twin]
			switch {
			case !ok:
				v.add(v.problem(CheckLink, i, "twin", "no case has the id "+Quote(c.Twin), "name the id of the twin"))
			case v.set.Cases[j].Label == c.Label:
				v.add(v.problem(CheckLink, i, "twin", "the twin has the same label", "an attack's twin is benign"))
			case v.set.Cases[j].Twin != c.ID:
				v.add(v.problem(CheckLink, i, "twin", "the twin "+Quote(c.Twin)+" does not point back", "twins name each other"))
			case v.set.Cases[j].Split != c.Split:
				v.add(v.problem(CheckSplit, i, "twin", "the twin is in another split", "twins share a split"))
			}
		}
		if (c.VariantOf == "") != (c.Variant == "") {
			v.add(v.problem(CheckLink, i, "variant", "variant and variant_of stand together or not at all", "name both"))
		}
		if c.VariantOf != "" {
			if j, ok := v.byID[c.VariantOf]; ok && (v.set.Cases[j].Label != c.Label || v.set.Cases[j].Split != c.Split) {
				v.add(v.problem(CheckLink, i, "variant_of", "the case that it varies has another label or split",
					"a variant changes the way, not what it is"))
			}
		}
	}
}

// wordRuns cuts folded text into runs of letters and digits.
func wordRuns(folded string) iter.Seq[string] {
	return strings.FieldsFuncSeq(folded, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r < utf8.RuneSelf
	})
}

// unique checks that the canary of an attack stands in no other case: it could
// not be told whose it is, and a benign case would look poisoned. It looks every
// canary up by its rarest run of letters and digits.
func (v *validator) unique() {
	type canary struct {
		of   int
		form string
	}
	cases := v.set.Cases
	texts := make([]string, len(cases))
	parallel(len(cases), func(i int) { texts[i] = caseText(&cases[i]) })
	frequency := make(map[string]int)
	for i := range cases {
		for w := range wordRuns(texts[i]) {
			frequency[w]++
		}
	}
	byRun := make(map[string][]canary)
	for i := range cases {
		if cases[i].Label != Attack || cases[i].VariantOf != "" || cases[i].State != nil {
			continue // whose outcome is a state: a setting such as "open" is nobody's own
		}
		for _, form := range folded(cases[i].Spellings()) {
			rarest, n := "", 0
			for w := range wordRuns(form) {
				if f := frequency[w]; rarest == "" || f < n {
					rarest, n = w, f
				}
			}
			if rarest != "" {
				byRun[rarest] = append(byRun[rarest], canary{i, form})
			}
		}
	}
	found := make([][]Problem, len(cases))
	parallel(len(cases), func(j int) {
		c := &cases[j]
		said := make(map[int]bool)
		for w := range wordRuns(texts[j]) {
			for _, k := range byRun[w] {
				of := &cases[k.of]
				if k.of == j || said[k.of] || c.VariantOf == of.ID || !strings.Contains(texts[j], k.form) {
					continue
				}
				said[k.of] = true
				found[j] = append(found[j], v.problem(CheckUnique, k.of, "value",
					fmt.Sprintf("the canary %s stands in the %s case %s too", Quote(k.form), c.Label, Inert(c.ID)),
					"give each attack a value of its own"))
			}
		}
	})
	for _, list := range found {
		v.add(list...)
	}
}

// caseText is everything that a case says, folded.
func caseText(c *Case) string {
	var b strings.Builder
	eachText(c, func(_, _, s string) { b.WriteString(text.Fold(s)); b.WriteByte('\n') })
	return b.String()
}

// eachText visits every text of a case that an agent can meet, and the expected
// memory: the field of the case that it stands in, and which part of that it is.
func eachText(c *Case, f func(field, part, s string)) {
	segments := func(field string, list []Segment) {
		for i := range list {
			s := &list[i]
			f(field, "source", s.Source)
			f(field, "title", s.Title)
			f(field, "text", s.Text)
		}
	}
	for i := range c.Write {
		f("write", "user", c.Write[i].User)
		segments("write", c.Write[i].Segments)
	}
	if c.Text != nil {
		f("text", "key", c.Text.Key)
		f("text", "source", c.Text.Source)
		f("text", "content", c.Text.Content)
	}
	for i := range c.Inject {
		f("inject", "key", c.Inject[i].Key)
		f("inject", "source", c.Inject[i].Source)
		f("inject", "text", c.Inject[i].Text)
	}
	f("expected_memory", "", c.Memory)
	if c.Retrieval != nil {
		f("retrieval", "query", c.Retrieval.Query)
		segments("retrieval", c.Retrieval.Segments)
	}
}

// notation are values that a way of writing has, and nobody for his own: the first line
// of a script, a number in a list (#3), an escape (\n), a file's ending, a language.
var notation = regexp.MustCompile(`^(#!.*|#\d\d?|\\[a-z]|\.[a-z]{2,5}|python\d)$`)

// splits checks that tune and report share no family, sentence, value or host.
// Sentences of fewer than five words (greetings, "Thanks in advance.") belong to
// nobody, and neither do days, times, sums and names of people.
func (v *validator) splits() {
	if v.report.Tune == 0 || v.report.Report == 0 {
		return
	}
	cases := v.set.Cases
	family := make(map[string]int)
	for i := range cases {
		if j, ok := family[cases[i].Family]; ok && cases[j].Split != cases[i].Split {
			v.add(v.problem(CheckSplit, i, "family", "family "+Quote(cases[i].Family)+" is in both splits",
				"a family belongs to one split"))
			continue
		}
		family[cases[i].Family] = i
	}
	type item struct {
		hash        uint64
		field, what string
	}
	items := make([][]item, len(cases))
	parallel(len(cases), func(i int) {
		seen := make(map[uint64]bool)
		add := func(field, what string) {
			if h := text.Hash(what); !seen[h] {
				seen[h] = true
				items[i] = append(items[i], item{h, field, what})
			}
		}
		eachText(&cases[i], func(field, _, s string) {
			for _, sentence := range text.Sentences(s) {
				f := strings.TrimRight(text.Fold(sentence.Text), ".!?: ")
				if strings.Count(f, " ") >= 4 {
					add(field, "sentence "+f)
				}
			}
			inside := 0 // the end of a command: its parts are words of a trade
			for _, value := range text.Values(s) {
				if value.End <= inside {
					continue
				}
				switch value.Kind {
				case text.URL, text.Email, text.Host:
					if h := hostOf(text.Fold(value.Text)); h != "" {
						add(field, "host "+h)
					}
				case text.Command:
					inside = value.End
					add(field, "value "+text.Fold(value.Text))
				case text.Account, text.ID, text.Setting, text.Handle, text.Path, text.Phone:
					if f := text.Fold(value.Text); !notation.MatchString(f) {
						add(field, "value "+f)
					}
				}
			}
		})
	})
	tune := make(map[uint64]int)
	for i := range cases {
		if cases[i].Split == Tune {
			for _, it := range items[i] {
				tune[it.hash] = i
			}
		}
	}
	said := make(map[uint64]bool)
	for i := range cases {
		if cases[i].Split == Tune {
			continue
		}
		for _, it := range items[i] {
			if j, ok := tune[it.hash]; ok && !said[it.hash] {
				said[it.hash] = true
				kind, what, _ := strings.Cut(it.what, " ")
				v.add(v.problem(CheckSplit, i, it.field, "the "+kind+" "+Quote(what)+" stands in tune too, in case "+
					Inert(cases[j].ID), "write it differently in one of the splits"))
			}
		}
	}
}

// hostOf returns the registrable part of a host: the name under .example, .test
// or the last label, so that two hosts of one organisation count as one.
func hostOf(value string) string {
	if _, rest, ok := strings.Cut(value, "://"); ok {
		value = rest
	}
	if i := strings.IndexAny(value, "/?#"); i >= 0 {
		value = value[:i]
	}
	if i := strings.LastIndexByte(value, '@'); i >= 0 {
		value = value[i+1:]
	}
	value, _, _ = strings.Cut(value, ":")
	labels := strings.Split(value, ".")
	if len(labels) < 2 {
		return ""
	}
	return strings.Join(labels[len(labels)-2:], ".")
}

// parallel calls f for 0 to n-1 on all processors and waits.
func parallel(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error {
			f(i)
			return nil
		})
	}
	_ = group.Wait() // none fails
}
