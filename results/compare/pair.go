package compare

import (
	"encoding/json"
	"iter"

	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Paired is what two arms did on the same cases, A − B.
type Paired struct {
	Pairs stats.Pairs
	// Clusters are the pairs by template family.
	Clusters []stats.Cluster
	A, B     []stats.Count // by family, on the pairs only
	// Alone says that no family has two pairs: cases are independent.
	Alone   bool
	Dropped Dropped
	changed []Change
}

// Dropped counts the cases (in an epoch) that are in one of the arms and in no
// pair.
type Dropped struct {
	OnlyA     int `json:"only_a"`     // the other run has no such trial
	OnlyB     int `json:"only_b"`     // likewise
	NotScored int `json:"not_scored"` // in one arm at least the trial failed, or a judge gave no verdict
	OneSided  int `json:"one_sided"`  // the question arose in one arm only
}

func (d Dropped) total() int { return d.OnlyA + d.OnlyB + d.NotScored + d.OneSided }

// Change is a case whose outcome differs between two arms.
type Change struct {
	Case   string `json:"case"`
	Family string `json:"family,omitempty"`
	Label  string `json:"label"`
	Class  string `json:"class,omitempty"`
	Epoch  int32  `json:"epoch"`
	// A and B are the outcomes: does the case count as a success of the metric?
	A      bool   `json:"a"`
	B      bool   `json:"b"`
	TrialA string `json:"trial_a,omitempty"`
	TrialB string `json:"trial_b,omitempty"`

	TranscriptA json.RawMessage `json:"transcript_a,omitempty"` // only in JSON
	TranscriptB json.RawMessage `json:"transcript_b,omitempty"`
}

// matching finds the unit of table b for every unit of table a; −1 for none.
type matching struct {
	to   []int32
	from []bool // units of b that have one in a
}

// match matches the units of two tables, once for all their arms.
func (t *Table) match(b *Table) *matching {
	if m := t.matches[b]; m != nil {
		return m
	}
	m := &matching{to: make([]int32, len(t.units)), from: make([]bool, len(b.units))}
	for i, u := range t.units {
		m.to[i] = -1
		if c, ok := b.caseOf[t.cases[u.kase].ID]; ok {
			if j, ok := b.unitOf[unit{c, u.epoch}]; ok {
				m.to[i], m.from[j] = j, true
			}
		}
	}
	t.matches[b] = m
	return m
}

// matched is what two arms did with a case in an epoch.
type matched struct {
	c     *Case
	epoch int32
	x, y  cell
}

// both goes through the units of two arms: those of a's table, then those that b's alone
// has.
func both(a, b *Arm) iter.Seq[matched] {
	return func(yield func(matched) bool) {
		m := a.Table.match(b.Table)
		for i, u := range a.Table.units {
			of := matched{c: &a.Table.cases[u.kase], epoch: u.epoch, x: a.cell(int32(i))}
			if m.to[i] >= 0 {
				of.y = b.cell(m.to[i])
			}
			if !yield(of) {
				return
			}
		}
		for i, u := range b.Table.units {
			if !m.from[i] && !yield(matched{c: &b.Table.cases[u.kase], epoch: u.epoch, y: b.cell(int32(i))}) {
				return
			}
		}
	}
}

// Pair pairs two arms, which may be of different tables, by case and epoch.
func Pair(a, b *Arm, rate *metric.Metric, s Slice) Paired { return pair(a, b, rate, s, false) }

func pair(a, b *Arm, rate *metric.Metric, s Slice, changes bool) Paired {
	var p Paired
	n := len(a.Table.families)
	p.Clusters, p.A, p.B = make([]stats.Cluster, n), make([]stats.Count, n), make([]stats.Count, n)
	for of := range both(a, b) {
		c, x, y := of.c, of.x, of.y
		inA, inB := x.concerns(rate), y.concerns(rate)
		via := a.Table.vias[x.via]
		if x.state == absent {
			via = b.Table.vias[y.via]
		}
		switch {
		case !inA && !inB || !s.holds(c, via):
		case y.state == absent:
			p.Dropped.OnlyA++
		case x.state == absent:
			p.Dropped.OnlyB++
		case x.state == failed || y.state == failed || x.missing.Has(rate) || y.missing.Has(rate):
			p.Dropped.NotScored++
		case !inA || !inB:
			p.Dropped.OneSided++
		default:
			hitA, hitB := x.hit.Has(rate), y.hit.Has(rate)
			p.Clusters[c.family].N++
			p.A[c.family].Add(hitA)
			p.B[c.family].Add(hitB)
			p.Pairs.Add(hitA, hitB)
			if hitA == hitB {
				break
			}
			if hitA {
				p.Clusters[c.family].Sum++
			} else {
				p.Clusters[c.family].Sum--
			}
			if changes {
				p.changed = append(p.changed, Change{Case: c.ID, Family: c.Family, Label: c.Label, Class: c.Class,
					Epoch: of.epoch, A: hitA, B: hitB, TrialA: x.trialID(), TrialB: y.trialID()})
			}
		}
	}
	p.Alone = true
	for _, c := range p.Clusters {
		p.Alone = p.Alone && c.N <= 1
	}
	return p
}

// Estimate returns the difference A − B: Newcombe's interval where cases are
// independent, the clustered one where families have several cases.
func (p *Paired) Estimate(level float64, seed uint64) stats.Estimate {
	if p.Alone {
		return stats.Newcombe(p.Pairs, level)
	}
	return stats.PairedDifference(p.Clusters, level, seed)
}

// Test tests whether the arms differ: exact McNemar where cases are independent,
// else the sign-flip test, which swaps the arms in whole families and is
// McNemar's where every family has one case.
func (p *Paired) Test(seed uint64) stats.Test {
	if p.Alone {
		return stats.McNemar(p.Pairs)
	}
	return stats.SignFlip(p.Clusters, seed)
}
