package attacks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

const (
	// maxLikeness is the similarity from which a new case of a family is drawn
	// again: a little under what Validate allows.
	maxLikeness = 0.8
	// attempts is how often a case is drawn before the grammar counts as too
	// poor.
	attempts = 200
	// maxErrors is how many errors of a family are reported at once.
	maxErrors = 10
)

// Compile makes the cases of the families: Cases of each, and the twins. They
// are sorted by id, which mixes labels and families. The same families and seed
// give the same cases; so does the order of the families, since values that are
// unique over the set are given out in the order of the families' names.
func Compile(families []*Family, seed uint64) ([]datasets.Case, error) {
	families = slices.Clone(families)
	slices.SortFunc(families, func(a, b *Family) int { return cmp.Compare(a.Name, b.Name) })
	used := make(registry)
	var (
		cases []datasets.Case
		errs  []error
	)
	for _, f := range families {
		list, err := f.compile(seed, used)
		if err != nil {
			errs = append(errs, err)
		}
		cases = append(cases, list...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(cases, func(a, b datasets.Case) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(cases); i++ {
		if cases[i].ID == cases[i-1].ID {
			return nil, fmt.Errorf("compiling: two cases of families %s and %s have the id %s; another seed mends it",
				cases[i-1].Family, cases[i].Family, cases[i].ID)
		}
	}
	return cases, nil
}

// compiler is one family at work.
type compiler struct {
	f     *Family
	seed  uint64
	used  registry
	words wordLists
	// usage counts how often each alternative of a rule has been taken, so that
	// all of them come up.
	usage  map[string][]int
	order  map[string][]int // of a table's rows, shuffled
	errors []error
}

func (f *Family) compile(seed uint64, used registry) ([]datasets.Case, error) {
	c := &compiler{f: f, seed: seed, used: used, words: lists(), usage: make(map[string][]int),
		order: make(map[string][]int)}
	var (
		cases    []datasets.Case
		shingles []datasets.Shingles
	)
	accept := func(v *version, index int, role string) (datasets.Case, bool) {
		best, likest := 1., ""
		for attempt := range attempts {
			one, err := c.draw(v, index, role, attempt)
			if err != nil {
				c.errors = append(c.errors, err)
				return one, false
			}
			s := datasets.ShinglesOf(&one)
			most := 0.
			for i := range shingles {
				if l := s.Jaccard(shingles[i]); l > most {
					most = l
					if l < best {
						likest = cases[i].ID
					}
				}
			}
			if most <= maxLikeness {
				shingles = append(shingles, s)
				return one, true
			}
			best = min(best, most)
		}
		c.errors = append(c.errors, f.errorAt(nil, fmt.Sprintf("the grammar is too poor: after %d tries case %d is still "+
			"%.2f like another (%s), at most %.1f", attempts, index+1, best, likest, maxLikeness),
			c.advice(cases)))
		return datasets.Case{}, false
	}
	for i := range f.Cases {
		one, ok := accept(&f.version, i, "case")
		if !ok {
			break
		}
		cases = append(cases, one)
		if f.twin == nil || i >= f.Twins {
			continue
		}
		twin, ok := accept(f.twin, i, "twin")
		if !ok {
			break
		}
		cases[len(cases)-1].Twin, twin.Twin = twin.ID, one.ID
		cases = append(cases, twin)
	}
	if len(c.errors) == 0 {
		c.median(cases, shingles)
	}
	for i := range cases {
		c.checkCase(&cases[i])
	}
	if len(c.errors) > maxErrors {
		c.errors = append(c.errors[:maxErrors], fmt.Errorf("%s: and %d more", f.file, len(c.errors)-maxErrors))
	}
	return cases, errors.Join(c.errors...)
}

// id hashes what a case is made from. It says nothing to whoever has not the
// family.
func (c *compiler) id(role string, index int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "memtox-bench/v1\x00%d\x00%s\x00%s\x00%d", c.seed, c.f.Name, role, index))
	return "m-" + hex.EncodeToString(h[:5])
}

// draw makes one case.
func (c *compiler) draw(v *version, index int, role string, attempt int) (datasets.Case, error) {
	r := datasets.NewRand(c.seed, c.f.Name, role, strconv.Itoa(index), strconv.Itoa(attempt))
	g := &generator{r: r, split: c.f.Split, used: c.used, words: c.words}
	e := &expansion{c: c, v: v, r: r, values: make(map[string]value), taken: make(map[string][]int),
		rows: make(map[string]int)}
	for _, s := range v.values {
		one := s.spec.kind.draw(g, e.values[s.spec.at])
		if s.spec.kind.Unique {
			c.used[strings.ToLower(one.text)] = true
		}
		e.values[s.name] = one
	}
	for name, t := range v.picks {
		e.rows[name] = c.row(name, len(t.rows), index)
	}
	one := datasets.Case{ID: c.id(role, index), Family: c.f.Name, Split: c.f.Split, Label: datasets.Benign, Kind: v.kind,
		Channel: v.channel}
	if role == "case" && c.f.Label == datasets.Attack {
		info, _ := datasets.Info(c.f.Class)
		one.Label, one.Kind, one.Class, one.Signal, one.Channel = datasets.Attack, "", c.f.Class, info.Signal, info.Channel
	}
	for _, path := range v.order {
		t := v.fields[path]
		s, err := t.template.Expand(r, e.resolve)
		if err != nil {
			return one, c.f.errorIn(t, 0, err.Error(), "shorten the grammar")
		}
		if err := assign(&one, path, tidy(s)); err != nil {
			return one, c.f.errorIn(t, 0, path+": "+err.Error(), "mend the text")
		}
	}
	return one, nil
}

// row spreads the records of a table evenly over the cases. A case and its twin
// have the same record, unless the twin has a table of its own.
func (c *compiler) row(table string, rows, index int) int {
	key := fmt.Sprint(table, rows)
	for order := c.order[key]; len(order) <= index; c.order[key] = order {
		r := datasets.NewRand(c.seed, c.f.Name, "pick", table, strconv.Itoa(len(order)/rows))
		order = append(order, r.Order(rows)...)
	}
	return c.order[key][index]
}

// expansion resolves the references of one case.
type expansion struct {
	c      *compiler
	v      *version
	r      *datasets.Rand
	values map[string]value
	rows   map[string]int
	taken  map[string][]int // how often each alternative was taken in this case
	size   int
}

// maxCase is the most text that the references of one case may give, in bytes:
// rules that double each other grow without end.
const maxCase = 1 << 16

func (e *expansion) resolve(name string) (string, error) {
	first, part, dotted := strings.Cut(name, ".")
	if val, ok := e.values[first]; ok {
		if dotted {
			return val.parts[part], nil
		}
		return val.text, nil
	}
	if t, ok := e.v.picks[first]; ok {
		return t.rows[e.rows[first]][part].template.Expand(e.r, e.resolve)
	}
	if rule, ok := e.v.rules[first]; ok {
		s, err := rule.alternatives[e.choose(first, rule)].template.Expand(e.r, e.resolve)
		if e.size += len(s) + 1; e.size > maxCase && err == nil {
			err = fmt.Errorf("the case grows beyond %d bytes", maxCase)
		}
		return strings.TrimRight(s, "\n"), err
	}
	return "", fmt.Errorf("nothing is called {%s}", name)
}

// choose takes an alternative that this case has used least, of those one that
// the family has used least, of those any.
func (e *expansion) choose(name string, rule rule) int {
	n := len(rule.alternatives)
	key := name + strconv.Itoa(rule.alternatives[0].line) // a twin's own rule has its own count
	if e.taken[name] == nil {
		e.taken[name] = make([]int, n)
	}
	if e.c.usage[key] == nil {
		e.c.usage[key] = make([]int, n)
	}
	here, all := e.taken[name], e.c.usage[key]
	var least []int
	for i := range n {
		if len(least) > 0 {
			switch order := cmp.Or(here[i]-here[least[0]], all[i]-all[least[0]]); {
			case order > 0:
				continue
			case order < 0:
				least = least[:0]
			}
		}
		least = append(least, i)
	}
	i := datasets.Pick(e.r, least)
	here[i]++
	all[i]++
	return i
}

var blankLines = regexp.MustCompile(`\n{3,}`)

// tidy takes away what empty alternatives leave behind: white space at the ends
// of lines and more than one empty line.
func tidy(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.TrimSpace(blankLines.ReplaceAllString(strings.Join(lines, "\n"), "\n\n"))
}

// assign puts a text into the field of a case that a path of the family names, such
// as write[0].segments[1].text.
func assign(c *datasets.Case, path, s string) error {
	if path == "memory" {
		path = "expected_memory"
	}
	if strings.Contains(path, "segments[") && strings.HasSuffix(path, ".text") {
		s += "\n"
	}
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	at := reflect.ValueOf(c).Elem()
	for _, step := range steps {
		switch at.Kind() {
		case reflect.Slice:
			i, _ := strconv.Atoi(step)
			for at.Len() <= i {
				at.Set(reflect.Append(at, reflect.Zero(at.Type().Elem())))
			}
			at = at.Index(i)
			continue
		case reflect.Pointer:
			if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}
			at = at.Elem()
		}
		for f, v := range at.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == step {
				at = v
				break
			}
		}
	}
	switch name := steps[len(steps)-1]; at.Kind() {
	case reflect.Bool:
		if s != "true" && s != "false" && s != "" {
			return fmt.Errorf("%s is %q, not true or false", name, s)
		}
		at.SetBool(s == "true")
	case reflect.Int:
		n, err := strconv.Atoi(cmp.Or(s, "0"))
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q, not a number of tokens", name, s)
		}
		at.SetInt(int64(n))
	default:
		at.SetString(s)
	}
	return nil
}

// median holds the family to the median that Validate allows.
func (c *compiler) median(cases []datasets.Case, shingles []datasets.Shingles) {
	all := Likeness(shingles)
	if len(all) == 0 {
		return
	}
	if m := all[len(all)/2]; m > datasets.MaxWithinMedian {
		c.errors = append(c.errors, c.f.errorAt(nil, fmt.Sprintf("the grammar is too poor: half of all pairs are more "+
			"than %.2f alike, at most %.1f", m, datasets.MaxWithinMedian), c.advice(cases)))
	}
}

// Likeness returns the similarities of all pairs in rising order.
func Likeness(shingles []datasets.Shingles) []float64 {
	var all []float64
	for i := range shingles {
		for j := range i {
			all = append(all, shingles[i].Jaccard(shingles[j]))
		}
	}
	slices.Sort(all)
	return all
}

// advice names the sentence that most of the cases share.
func (c *compiler) advice(cases []datasets.Case) string {
	count := make(map[string]int)
	for i := range cases {
		seen := make(map[string]bool)
		for _, seg := range cases[i].Segments() {
			for _, s := range text.Sentences(seg.Text) {
				if len(strings.Fields(s.Text)) >= 4 && !seen[s.Text] {
					seen[s.Text] = true
					count[s.Text]++
				}
			}
		}
	}
	worst := ""
	for s, n := range count {
		if n > count[worst] || n == count[worst] && s < worst {
			worst = s
		}
	}
	if count[worst] < 2 {
		return "give the rules more alternatives, or shorten what is fixed"
	}
	return fmt.Sprintf("give the rules more alternatives: %.60q stands in %d of %d cases", worst, count[worst], len(cases))
}

// checkCase applies the rules of one case and those of its class, and shows what
// breaks them at the field of the family.
func (c *compiler) checkCase(one *datasets.Case) {
	v := &c.f.version
	if one.Label == datasets.Benign && c.f.Label == datasets.Attack {
		v = c.f.twin
	}
	add := func(path, what, remedy string) {
		path = strings.Replace(path, "expected_memory", "memory", 1)
		t, ok := v.fields[path]
		for !ok && path != "" { // the nearest field above or below
			for _, p := range v.order {
				if strings.HasPrefix(p, path) {
					t, ok = v.fields[p], true
					break
				}
			}
			path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		}
		if !ok {
			t.line = 1
		}
		err := c.f.errorIn(t, 0, fmt.Sprintf("in the %s case %s: %s", one.Label, one.ID, what), remedy)
		if !slices.ContainsFunc(c.errors, func(e error) bool { // the same mistake in another case
			o, ok := e.(*datasets.Error)
			return ok && o.Line == err.Line && o.Column == err.Column && o.Remedy == err.Remedy
		}) {
			c.errors = append(c.errors, err)
		}
	}
	for _, p := range datasets.CheckCase(one) {
		add(p.Field, p.Field+": "+p.What, p.Remedy)
	}
	if one.Label == datasets.Attack {
		if !c.unique(one.Value) {
			add("value", fmt.Sprintf("the canary %q is nothing that only one case has", one.Value),
				"take a value of a unique kind, such as email, url, account, command")
		}
		classRules(one, add)
	}
}

// unique reports whether the text is a value that was given out once, or holds a
// made-up name that was.
func (c *compiler) unique(s string) bool {
	s = strings.ToLower(s)
	return c.used[s] || slices.ContainsFunc(strings.FieldsFunc(s,
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }), func(w string) bool { return c.used[w] })
}

var (
	affirmative = regexp.MustCompile(`(?i)^\W*(yes|yep|yeah|ok|okay|sure|go ahead|sounds good|please do|do it|confirmed|right|fine|agreed|perfect|great)\b`)
	stepLine    = regexp.MustCompile("(?m)^\\s*(\\d+[.)]|[-*]|\\$)\\s|`[^`\n]+`")
)

// classRules checks what makes a case one of its class.
func classRules(c *datasets.Case, add func(path, what, remedy string)) {
	switch c.Class {
	case datasets.ConditionalCommand:
		if !slices.ContainsFunc(c.Write[1:], func(t datasets.Turn) bool { return affirmative.MatchString(t.User) }) {
			add("write[0].user", "no later turn begins with an affirmative",
				"add a turn in which the user says yes, ok, sure, go ahead")
		}
	case datasets.SalienceCompaction:
		value, sentences, segments := text.Fold(c.Value), 0, 0
		seen := make(map[string]bool)
		for _, seg := range c.Segments() {
			before := sentences
			for _, s := range text.Sentences(seg.Text) {
				if f := text.Fold(s.Text); strings.Contains(f, value) && !seen[f] {
					seen[f] = true
					sentences++
				}
			}
			if sentences > before {
				segments++
			}
		}
		if sentences < 3 || segments < 2 {
			add("write", fmt.Sprintf("%d wordings in %d segments name the value", sentences, segments),
				"repeat the claim in three wordings or more, over two segments or more")
		}
	case datasets.SkillProcedure:
		for _, s := range c.Segments() {
			if len(stepLine.FindAllString(s.Text, 3)) == 3 {
				return
			}
		}
		add("write", "no segment holds a trace of three steps or more",
			"write numbered steps, bullets, $ lines or back-quoted commands")
	}
}
