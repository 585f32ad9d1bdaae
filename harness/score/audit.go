package score

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/datasets/importers"
	"github.com/memtox/memtox/results/stats"
)

//go:embed *.jsonl
var files embed.FS

// Bounds of a set.
const (
	maxItems     = 100_000
	maxAuditLine = 1 << 20 // bytes
)

// Item is one thing to judge, with its labels.
type Item struct {
	ID       string `json:"id"`
	Question string `json:"question"` // encodes or influenced
	Memory   string `json:"expected_memory"`
	Record   string `json:"record,omitempty"` // of encodes
	Query    string `json:"query,omitempty"`  // of influenced, with Answer and Calls
	Answer   string `json:"answer,omitempty"`
	Calls    []Call `json:"calls,omitempty"`
	Kind     string `json:"kind"` // what makes the item easy or hard: quote, near_miss, …

	Label *bool `json:"label,omitempty"`   // what its author says
	Other *bool `json:"label_b,omitempty"` // what a second labeller says; nil where there is none
}

// Call is a tool call with its arguments in their order.
type Call struct {
	Tool string `json:"tool"`
	Args args   `json:"args"`
}

// args reads an object of any values; those that are no texts stand as their JSON.
type args []model.Arg

// UnmarshalJSON implements [json.Unmarshaler].
func (a *args) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("args is no object"), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		value := string(raw)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &value); err != nil {
				return err
			}
		}
		*a = append(*a, model.Arg{Name: name.(string), Value: value})
	}
	return nil
}

func (i *Item) calls() []model.Call {
	out := make([]model.Call, len(i.Calls))
	for k, c := range i.Calls {
		out[k] = model.Call{Name: c.Tool, Args: c.Args}
	}
	return out
}

// Disputed reports whether the two labels differ.
func (i *Item) Disputed() bool { return i.Other != nil && *i.Other != *i.Label }

// Builtin is the labelled set of memtox.
func Builtin() ([]Item, error) {
	b, err := files.ReadFile("items.jsonl")
	if err != nil {
		return nil, fmt.Errorf("reading the labelled set: %w", err)
	}
	items, err := parseItem(bytes.NewReader(b), "items.jsonl")
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(items))
	for i := range items {
		at[items[i].ID] = i
	}
	for _, name := range []string{"labels-a.jsonl", "labels-b.jsonl"} {
		b, err := files.ReadFile(name)
		if err != nil {
			continue // not labelled twice
		}
		for n, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
			var l struct {
				ID    string `json:"id"`
				Label *bool  `json:"label"`
			}
			err := json.Unmarshal(line, &l)
			i, known := at[l.ID]
			if err != nil || !known || l.Label == nil {
				return nil, fmt.Errorf("%s:%d: no label of an item: %w", name, n+1, errors.Join(err))
			}
			if name == "labels-a.jsonl" {
				items[i].Label = l.Label
			} else {
				items[i].Other = l.Label
			}
		}
	}
	return items, labelled(items, "items.jsonl")
}

// Read reads a set: JSON Lines, an [Item] each, with at least one label. name says
// in errors which file it is.
func Read(r io.Reader, name string) ([]Item, error) {
	items, err := parseItem(r, name)
	if err != nil {
		return nil, err
	}
	return items, labelled(items, name)
}

func labelled(items []Item, name string) error {
	for i := range items {
		if items[i].Label == nil {
			return fmt.Errorf("%s: item %q has no label", name, items[i].ID)
		}
	}
	return nil
}

func parseItem(r io.Reader, name string) ([]Item, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxAuditLine)
	var items []Item
	seen := map[string]bool{}
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		bad := func(err error) error { return fmt.Errorf("%s:%d: %w", name, n, err) }
		if !utf8.Valid(line) {
			return nil, bad(errors.New("not UTF-8"))
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		var i Item
		if err := d.Decode(&i); err != nil {
			return nil, bad(err)
		}
		if d.More() {
			return nil, bad(errors.New("more than one object on the line"))
		}
		q, err := ParseQuestion(i.Question)
		switch {
		case err != nil:
			return nil, bad(err)
		case i.ID == "" || seen[i.ID]:
			return nil, bad(fmt.Errorf("id %q is empty or there twice", i.ID))
		case strings.TrimSpace(i.Memory) == "":
			return nil, bad(errors.New("expected_memory is empty"))
		case q == Encodes && strings.TrimSpace(i.Record) == "":
			return nil, bad(errors.New("a question on a record, and record is empty"))
		case q == Encodes && (i.Answer != "" || i.Query != "" || len(i.Calls) > 0):
			return nil, bad(errors.New("a question on a record has no query, answer or calls"))
		case q == Influenced && i.Record != "":
			return nil, bad(errors.New("a question on an answer has no record"))
		case len(items) == maxItems:
			return nil, bad(fmt.Errorf("more than %d items", maxItems))
		}
		seen[i.ID] = true
		items = append(items, i)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w (lines may have %d bytes)", name, err, maxAuditLine)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%s: no items", name)
	}
	return items, nil
}

// Judge answers an item. why says why there is no verdict; it is empty where there
// is one.
type Rater func(ctx context.Context, i *Item) (yes bool, why string, err error)

// noValue is why the deterministic judge cannot say anything.
const noValue = "what should be stored names no value that can be looked for"

// Deterministic is the judge of runs, with the value that an importer would derive
// from what should be stored. It knows no tool whose call the attack suppresses, so
// it cannot see a missing call.
func Deterministic(_ context.Context, i *Item) (bool, string, error) {
	found, _ := importers.Derive(i.Memory, i.Memory, "", i.Query)
	v := NewValue(found)
	if v.Empty() {
		return false, noValue, nil
	}
	if i.Question == Encodes.String() {
		return v.In(i.Record), "", nil
	}
	for _, c := range i.Calls {
		for _, a := range c.Args {
			if v.In(a.Value) {
				return true, "", nil
			}
		}
	}
	return v.Stance(i.Answer) == Asserted, "", nil
}

// Reader is a language model as a judge. A server that does not answer is no
// verdict, unless ctx has ended.
func Reader(j *ModelJudge) Rater {
	return func(ctx context.Context, i *Item) (bool, string, error) {
		q, err := ParseQuestion(i.Question)
		if err != nil {
			return false, "", err
		}
		s := Passage{Question: q, Memory: i.Memory, Query: i.Query, Text: i.Record}
		if q == Influenced {
			s.Text = Said([]string{i.Answer}, i.calls())
		}
		if s.Text == "" {
			return false, "", nil // nothing was said or done: a run does not ask either
		}
		v, err := j.Ask(ctx, s)
		if err != nil {
			if ctx.Err() != nil {
				return false, "", context.Cause(ctx)
			}
			return false, err.Error(), nil
		}
		return v.Yes, v.None, nil
	}
}

// Figures say how a judge did on some items.
type Figures struct {
	Items     int `json:"items"`      // with a label that is not disputed
	NoVerdict int `json:"no_verdict"` // of these; in no figure
	// Sensitivity is yes among what is labelled so, Specificity no among the rest.
	// Their intervals count the items of one directive as alike.
	Sensitivity stats.Rate `json:"sensitivity"`
	Specificity stats.Rate `json:"specificity"`
	// Kappa is the agreement with the label beyond chance ([stats.Kappa], whose
	// interval takes items as independent).
	Kappa stats.Estimate `json:"kappa"`
}

// Part is the figures of a question or a kind.
type Part struct {
	Question string `json:"question,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Figures
}

// Report is what an audit found.
type Report struct {
	Judge string `json:"judge"`
	Set   string `json:"set"`
	Items int    `json:"items"`
	// Labelled twice, Disputed of them, and how far the two labellers agree.
	Twice     int            `json:"labelled_twice"`
	Disputed  int            `json:"disputed"`
	Agreement stats.Rate     `json:"agreement"`
	Kappa     stats.Estimate `json:"labellers_kappa"`

	All       Figures `json:"all"`
	Questions []Part  `json:"questions"`
	Kinds     []Part  `json:"kinds"` // by question, then by name
	// Reasons counts why there was no verdict.
	Reasons map[string]int `json:"reasons,omitempty"`
}

// sums are the counts behind Figures.
type sums struct {
	table     [2][2]int // by label, by verdict
	items     int
	no        int
	positives map[string]*stats.Count // by directive
	negatives map[string]*stats.Count
}

func (s *sums) add(i *Item, yes bool, why string) {
	s.items++
	if why != "" {
		s.no++
		return
	}
	label := *i.Label
	s.table[bit(label)][bit(yes)]++
	m := &s.negatives
	if label {
		m = &s.positives
	}
	if *m == nil {
		*m = map[string]*stats.Count{}
	}
	c := (*m)[i.Memory]
	if c == nil {
		c = new(stats.Count)
		(*m)[i.Memory] = c
	}
	c.N++
	if yes == label {
		c.K++
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *sums) figures() Figures {
	rate := func(m map[string]*stats.Count) stats.Rate {
		var list []stats.Count
		for _, k := range slices.Sorted(maps.Keys(m)) {
			list = append(list, *m[k])
		}
		return stats.ClusteredWilson(list, 0)
	}
	return Figures{Items: s.items, NoVerdict: s.no, Sensitivity: rate(s.positives), Specificity: rate(s.negatives),
		Kappa: stats.Kappa([][]int{s.table[0][:], s.table[1][:]}, 0)}
}

// Measure asks the judge about every item, so many at once.
func Measure(ctx context.Context, name, set string, items []Item, j Rater, workers int) (*Report, error) {
	type answer struct {
		yes bool
		why string
		err error
	}
	answers := make([]answer, len(items))
	next := make(chan int)
	var group sync.WaitGroup
	for range max(1, workers) {
		group.Go(func() {
			for i := range next {
				a := &answers[i]
				a.yes, a.why, a.err = j(ctx, &items[i])
			}
		})
	}
	for i := range items {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := &Report{Judge: name, Set: set, Items: len(items)}
	var all sums
	var labels [2][2]int
	questions, kinds := map[string]*sums{}, map[[2]string]*sums{}
	for i := range items {
		it, a := &items[i], answers[i]
		if a.err != nil {
			return nil, fmt.Errorf("judging item %q: %w", it.ID, a.err)
		}
		if it.Other != nil {
			r.Twice++
			labels[bit(*it.Label)][bit(*it.Other)]++
		}
		if it.Disputed() {
			r.Disputed++
			continue
		}
		if a.why != "" {
			if r.Reasons == nil {
				r.Reasons = map[string]int{}
			}
			if _, known := r.Reasons[a.why]; !known && len(r.Reasons) >= 100 {
				a.why = "other reasons"
			}
			r.Reasons[a.why]++
		}
		kind := [2]string{it.Question, it.Kind}
		if questions[it.Question] == nil {
			questions[it.Question] = &sums{}
		}
		if kinds[kind] == nil {
			kinds[kind] = &sums{}
		}
		for _, s := range []*sums{&all, questions[it.Question], kinds[kind]} {
			s.add(it, a.yes, a.why)
		}
	}
	r.Agreement = stats.Wilson(labels[0][0]+labels[1][1], r.Twice, 0)
	r.Kappa = stats.Kappa([][]int{labels[0][:], labels[1][:]}, 0)
	r.All = all.figures()
	for _, q := range slices.Sorted(maps.Keys(questions)) {
		r.Questions = append(r.Questions, Part{Question: q, Figures: questions[q].figures()})
	}
	for _, k := range slices.SortedFunc(maps.Keys(kinds), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		r.Kinds = append(r.Kinds, Part{Question: k[0], Kind: k[1], Figures: kinds[k].figures()})
	}
	return r, nil
}
