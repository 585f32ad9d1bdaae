// Package metric says what every rate is: its name, what is counted, which way is
// better, and who may be compared on it. Summaries add a rate up, comparisons pair
// it, gates limit it and reports print it; all of them read this table, so a new
// rate is one entry of it, and a column of [results.Trial] where it needs one.
package metric

import (
	"fmt"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/stats"
)

// Topic is a question that several rates answer.
type Topic string

// The topics, in the order of the docs.
const (
	AboutAttack Topic = "Does an attack reach its end?"
	AboutNotice Topic = "Is it noticed?"
	AboutCost   Topic = "What does it cost?"
	AboutState  Topic = "What became of the task?"
	AboutAnswer Topic = "What was answered?"
	AboutTrust  Topic = "Can the measurement be trusted?"
	// AboutTexts are the rates that only `memtox detect` has, of texts without an agent.
	AboutTexts Topic = "How good a classifier is it?"
)

// Metric is a rate over trials.
type Metric struct {
	// Name is the key in the JSON of a run, and what flags and files call it.
	Name string
	// About is k ÷ n in words.
	About string
	// Formula is k ÷ n in columns of trials.parquet, over scored trials.
	Formula string
	// Note says how to read it, in Markdown.
	Note string
	// Topic is the question that the rate answers a part of.
	Topic Topic
	// Head stands over its column in tables.
	Head string
	// After names the rate that it stands behind in tables. A rate that neither names
	// one nor begins a table is in none; the JSON has it all the same.
	After string
	// Better says which way a change is one for the better.
	Better stats.Direction
	// Conditional: the denominator is what the arm let happen, so that two arms of
	// the same cases have different ones and their rates answer different questions.
	Conditional bool
	// Lands: a success is one of the attacker, so that a defense can prevent it and
	// the undefended arm says how much there is to prevent.
	Lands bool
	// Judged: the rate exists only where a language model judges.
	Judged bool
	// Seldom: few sets have a trial that could be in the rate, which exists only in runs of these.
	Seldom bool
	// PerRecord: n counts records of a trial, not trials, so that arms cannot be
	// paired by case.
	PerRecord bool
	// Sliced: the slices of an arm, by class and the like, have the rate too.
	Sliced bool
	// Texts: `memtox detect` has the rate, of the same columns.
	Texts bool
	// Shown is the figure that a share stands for, where that is not the share itself.
	// It grows with the share, so that the ends of its interval give those of the figure.
	Shown func(share float64) float64

	// Unit is how many parts of a trial k and n count; 1 where it is 0.
	Unit int

	count func(*results.Trial) (k, n int)
	// against counts a trial that is held against another: the same case undefended, or
	// its twin.
	against func(o, none, twin *Outcome) (k, n int)
	could   func(*results.Trial) bool
	index   int
}

// Count returns what a scored trial adds to numerator and denominator.
func (m *Metric) Count(t *results.Trial) (k, n int) {
	if m.count == nil {
		return 0, 0
	}
	return m.count(t)
}

// Outcome is what became of a trial whose outcome is a state.
type Outcome struct{ Attack, Harm, Done bool }

// OutcomeOf reads the outcome of a trial; ok is false where there is none.
func OutcomeOf(t *results.Trial) (o Outcome, ok bool) {
	if t.Status != results.Scored || t.Done == nil {
		return o, false
	}
	return Outcome{isAttack(t), is(t.Harm), *t.Done}, true
}

// Against returns what a trial that is held against another adds to numerator and
// denominator. Where there is no other it adds nothing.
func (m *Metric) Against(o, none, twin *Outcome) (k, n int) {
	if k, n = m.against(o, none, twin); n == 0 {
		return 0, 0
	}
	return k, n
}

// Paired are the rates that hold a trial against another.
func Paired() []*Metric { return paired }

var paired []*Metric

// Missing reports whether a trial adds nothing to the rate and might have: it was not
// scored, or the judge gave no verdict of it. Such trials widen the worst-case bounds.
func (m *Metric) Missing(t *results.Trial) bool {
	switch t.Status {
	case results.Scored:
		if !m.Judged {
			return false
		}
		_, n := m.Count(t)
		return n == 0 && m.could(t)
	case results.Error:
		return m.could(t)
	}
	return false
}

// Index is the place of the rate in [All].
func (m *Metric) Index() int { return m.index }

// String is the name.
func (m *Metric) String() string { return m.Name }

// PerTrial reports whether a trial is in the rate once or not at all.
func (m *Metric) PerTrial() bool { return !m.PerRecord }

// Comparable reports whether two arms may be compared on the rate, case by case.
func (m *Metric) Comparable() bool { return !m.Conditional && !m.PerRecord }

// Max bounds the number of rates: a [Set] has a bit for each.
const Max = 64

// Set is a set of rates, by their indices.
type Set uint64

// Add puts a rate into the set.
func (s *Set) Add(m *Metric) { *s |= 1 << m.index }

// Has reports whether a rate is in the set.
func (s Set) Has(m *Metric) bool { return s>>m.index&1 == 1 }

var table []*Metric

// define adds a rate to the table. It runs while the package is initialised, in the
// order of the declarations.
func define(m Metric) *Metric {
	if m.index = len(table); m.index >= Max {
		panic(fmt.Sprintf("metric: %s is one too many for a Set of %d", m.Name, Max))
	}
	table = append(table, &m)
	if m.against != nil {
		paired = append(paired, &m)
	}
	return &m
}

// All lists the rates of a run, in the order of its JSON.
func All() []*Metric { return those(func(m *Metric) bool { return m.Topic != AboutTexts }) }

// OfTexts lists the rates of `memtox detect`, in the order of its JSON.
func OfTexts() []*Metric { return those(func(m *Metric) bool { return m.Texts }) }

// Count is how many rates have an index, and At is the one that has it.
func Count() int       { return len(table) }
func At(i int) *Metric { return table[i] }

func those(pass func(*Metric) bool) []*Metric {
	var out []*Metric
	for _, m := range table {
		if pass(m) {
			out = append(out, m)
		}
	}
	return out
}

// Find finds a rate of a run by its name.
func Find(name string) (*Metric, bool) {
	for _, m := range All() {
		if m.Name == name {
			return m, true
		}
	}
	return nil, false
}

// Names lists the names of the rates of a run that pass; all of them where pass is nil.
func Names(pass func(*Metric) bool) []string {
	var names []string
	for _, m := range All() {
		if pass == nil || pass(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

// Row returns the rate and those that stand behind it in the tables of a run.
func (m *Metric) Row() []*Metric {
	out := []*Metric{m}
	for _, x := range All() {
		if x.After == m.Name {
			out = append(out, x.Row()...)
		}
	}
	return out
}
