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
	AboutTrust  Topic = "Can the measurement be trusted?"
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
	// PerRecord: n counts records of a trial, not trials, so that arms cannot be
	// paired by case.
	PerRecord bool
	// Sliced: the slices of an arm, by class and the like, have the rate too.
	Sliced bool

	count func(*results.Trial) (k, n int)
	could func(*results.Trial) bool
	index int
}

// Count returns what a scored trial adds to numerator and denominator.
func (m *Metric) Count(t *results.Trial) (k, n int) { return m.count(t) }

// Missing reports whether a trial adds nothing to the rate and might have: it was not
// scored, or the judge gave no verdict of it. Such trials widen the worst-case bounds.
func (m *Metric) Missing(t *results.Trial) bool {
	switch t.Status {
	case results.Scored:
		if !m.Judged {
			return false
		}
		_, n := m.count(t)
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
	return &m
}

// All lists the rates, in the order of the JSON of a run.
func All() []*Metric { return append([]*Metric(nil), table...) }

// Find finds a rate by its name.
func Find(name string) (*Metric, bool) {
	for _, m := range table {
		if m.Name == name {
			return m, true
		}
	}
	return nil, false
}

// Names lists the names of the rates that pass; all of them where pass is nil.
func Names(pass func(*Metric) bool) []string {
	var names []string
	for _, m := range table {
		if pass == nil || pass(m) {
			names = append(names, m.Name)
		}
	}
	return names
}
