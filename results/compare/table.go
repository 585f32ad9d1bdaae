package compare

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Undefended is the name of the arm without a defense.
const Undefended = "none"

// NoModel is the model of a run of `memtox detect`, which has none.
const NoModel = "none"

// Case is what rows say of a case.
type Case struct {
	ID, Family, Split, Label, Class, Signal, Channel, Domain, Goal, Kind, Situation string

	family int32 // index of the family; a case without one is its own
	twin   string
}

// unit is what is paired: a case in an epoch.
type unit struct{ kase, epoch int32 }

// state of a trial.
type state uint8

const (
	absent state = iota // the arm has no such trial
	scored
	failed
	excluded
)

// cell is one trial: the rates in whose denominator it is, those in which it is a
// success, and those that it is missing from.
type cell struct {
	in, hit, missing metric.Set
	state            state
	outcome          metric.Outcome // of a scored trial whose outcome is a state
	judged           bool           // it has one
	excess           uint16         // its questions that were not due
	via              uint8          // index of the channel in the table
	digest           [16]byte
	id               uint64
}

// concerns reports whether the trial is in a rate or might have been.
func (c cell) concerns(m *metric.Metric) bool { return c.in.Has(m) || c.missing.Has(m) }

// Arm is one agent under one defense in a run. Agent is its label
// ([results.Run.Label]).
type Arm struct {
	Table          *Table
	Agent, Defense string
	// Scored, NotScored and Excluded count trials.
	Scored, NotScored, Excluded int

	cells   []cell           // by index of the unit
	latency [4]*stats.Sketch // by index of the gate; nil where latencies were not loaded or none was there
}

// Name returns agent/defense.
func (a *Arm) Name() string { return a.Agent + "/" + a.Defense }

func (a *Arm) cell(u int32) cell {
	if int(u) >= len(a.cells) {
		return cell{}
	}
	return a.cells[u]
}

// Latency returns the times inside a gate in microseconds, an empty sketch and false where
// none was loaded.
func (a *Arm) Latency(gate string) (s *stats.Sketch, ok bool) {
	i := slices.Index(metric.Gates[:], gate)
	if i < 0 || a.latency[i] == nil {
		return new(stats.Sketch), false
	}
	return a.latency[i], true
}

// metrics are the rates, by their index.
var metrics = metric.All()

// Table is a run's trials in memory, some 60 bytes each.
type Table struct {
	Name     string // what to call it: a directory or a file
	Run      *results.Run
	Finished bool
	Trials   int64

	dir      string // where it was loaded from
	arms     []*Arm
	armOf    map[[2]string]*Arm
	cases    []Case
	caseOf   map[string]int32
	families map[string]int32
	units    []unit
	unitOf   map[unit]int32
	last     int32 // unit of the trial before: arms of a case follow each other
	matches  map[*Table]*matching
	vias     []string // channels by which content came: of one case they differ by agent
	mixed    bool     // the run has variants beside the attacks that they vary
}

// mixed reports whether a run has variants beside the original attacks, by its
// setting mutate.
func mixed(run *results.Run) bool {
	if run == nil {
		return false // a file of trials alone
	}
	list, _ := run.Settings["mutate"].([]any)
	return len(list) > 1 && slices.Contains(list, any("none"))
}

// NewTable returns an empty table of a run.
func NewTable(name string, run *results.Run) *Table {
	return &Table{Name: name, Run: run, armOf: map[[2]string]*Arm{}, caseOf: map[string]int32{},
		families: map[string]int32{}, unitOf: map[unit]int32{}, matches: map[*Table]*matching{}, mixed: mixed(run)}
}

// LoadOptions says what else to load.
type LoadOptions struct {
	Latencies bool // read the decisions too
}

// Load streams a run directory into a table.
func Load(dir string, o LoadOptions) (*Table, error) {
	r, err := results.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t := NewTable(dir, r.Run())
	t.Finished, t.dir = r.Finished(), dir
	want := results.TrialsOnly
	if o.Latencies {
		want = results.Latencies
	}
	for e, err := range r.Entries(want) {
		if err != nil {
			return nil, err
		}
		t.Add(&e.Trial, e.Decisions)
	}
	t.Close()
	return t, nil
}

// Add takes a trial. Nothing of it is kept but its texts. Variants beside the
// attacks that they vary are in no rate: they must not be pooled with them.
func (t *Table) Add(x *results.Trial, ds []results.Decision) {
	t.Trials++
	if t.mixed && x.Variant != "" && x.Label == results.Attack {
		return
	}
	c, ok := t.caseOf[x.Case]
	if !ok {
		c = int32(len(t.cases))
		family := "family " + x.Family
		if x.Family == "" {
			family = "case " + x.Case
		}
		f, ok := t.families[family]
		if !ok {
			f = int32(len(t.families))
			t.families[family] = f
		}
		t.caseOf[x.Case] = c
		t.cases = append(t.cases, Case{ID: x.Case, Family: x.Family, Split: x.Split, Label: x.Label, Class: x.Class,
			Signal: x.Signal, Channel: x.Channel, Domain: x.Domain, Goal: x.Goal, Kind: x.Kind, Situation: x.Situation,
			family: f, twin: x.Twin})
	}
	un := unit{c, x.Epoch}
	if int(t.last) >= len(t.units) || t.units[t.last] != un {
		u, ok := t.unitOf[un]
		if !ok {
			u = int32(len(t.units))
			t.units = append(t.units, un)
			t.unitOf[un] = u
		}
		t.last = u
	}
	name := [2]string{t.Run.Label(x.Agent, x.Model), x.Defense}
	a := t.armOf[name]
	if a == nil {
		a = &Arm{Table: t, Agent: name[0], Defense: x.Defense}
		t.armOf[name] = a
		t.arms = append(t.arms, a)
	}
	for len(a.cells) <= int(t.last) {
		a.cells = append(a.cells, cell{})
	}
	k := &a.cells[t.last]
	sum := sha256.Sum256([]byte(x.Digest)) // of the row it may be any text
	*k = cell{digest: [16]byte(sum[:16]), via: t.via(x.Via)}
	k.id, _ = strconv.ParseUint(x.ID, 16, 64)
	switch x.Status {
	case results.Scored:
		k.state = scored
		a.Scored++
	case results.Excluded:
		k.state = excluded
		a.Excluded++
	default:
		k.state = failed
		a.NotScored++
	}
	k.outcome, k.judged = metric.OutcomeOf(x)
	if n, ok := metric.Excess(x); ok {
		k.excess = uint16(min(n, math.MaxUint16))
	}
	for _, m := range metrics {
		if m.Missing(x) {
			k.missing.Add(m)
		} else if hit, in := m.Count(x); k.state == scored && in > 0 {
			k.in.Add(m)
			if hit > 0 {
				k.hit.Add(m)
			}
		}
	}
	if k.state != scored {
		return
	}
	for i := range ds {
		d := &ds[i]
		if d.Gate == results.GateRead && d.Record != "" {
			continue // the call's own row has the time
		}
		if g := slices.Index(metric.Gates[:], d.Gate); g >= 0 {
			if a.latency[g] == nil {
				a.latency[g] = new(stats.Sketch)
			}
			a.latency[g].Add(float64(d.LatencyNS) / 1e3)
		}
	}
}

// via is the index of a channel. There are few.
func (t *Table) via(name string) uint8 {
	if len(t.vias) >= math.MaxUint8 && !slices.Contains(t.vias, name) {
		name = furtherVias
	}
	i := slices.Index(t.vias, name)
	if i < 0 {
		i, t.vias = len(t.vias), append(t.vias, name)
	}
	return uint8(i)
}

// pair counts the rates that hold a trial against the same case undefended, or against
// its twin.
func (t *Table) pair() {
	outcome := func(a *Arm, u unit) *metric.Outcome {
		if a == nil {
			return nil
		}
		i, ok := t.unitOf[u]
		if !ok || int(i) >= len(a.cells) || !a.cells[i].judged {
			return nil
		}
		return &a.cells[i].outcome
	}
	for _, a := range t.arms {
		none := t.Arm(a.Agent, Undefended)
		for i := range a.cells {
			k := &a.cells[i]
			if !k.judged {
				continue
			}
			u := t.units[i]
			var twin *metric.Outcome
			if c, ok := t.caseOf[t.cases[u.kase].twin]; ok {
				twin = outcome(a, unit{c, u.epoch})
			}
			for _, m := range metric.Paired() {
				if hit, in := m.Against(&k.outcome, outcome(none, u), twin); in > 0 {
					k.in.Add(m)
					if hit > 0 {
						k.hit.Add(m)
					}
				}
			}
		}
	}
}

// Close puts the arms in the order of the run. It follows the last Add.
func (t *Table) Close() {
	t.pair()
	place := func(list []string, s string) int {
		if i := slices.Index(list, s); i >= 0 {
			return i
		}
		return len(list)
	}
	if t.Run == nil {
		return
	}
	labels := t.Run.Labels()
	slices.SortStableFunc(t.arms, func(a, b *Arm) int {
		return cmp.Or(cmp.Compare(place(labels, a.Agent), place(labels, b.Agent)),
			cmp.Compare(place(t.Run.Defenses, a.Defense), place(t.Run.Defenses, b.Defense)))
	})
}

// Arms returns the arms that have a trial, in the order of the run.
func (t *Table) Arms() []*Arm { return t.arms }

// Arm returns an arm, or nil.
func (t *Table) Arm(agent, defense string) *Arm { return t.armOf[[2]string{agent, defense}] }

// Beside pairs the arms of two tables by their names, and lists those that one alone has.
func (t *Table) Beside(b *Table) (common [][2]*Arm, onlyA, onlyB []*Arm) {
	for _, x := range t.arms {
		if y := b.Arm(x.Agent, x.Defense); y != nil {
			common = append(common, [2]*Arm{x, y})
		} else {
			onlyA = append(onlyA, x)
		}
	}
	for _, y := range b.arms {
		if t.Arm(y.Agent, y.Defense) == nil {
			onlyB = append(onlyB, y)
		}
	}
	return common, onlyA, onlyB
}

// Slice is a part of the cases: those with a value in a column. The zero Slice
// is all of them.
type Slice struct {
	By   string `json:"by"`
	Name string `json:"name"`
}

// Slices are the columns that cases can be told apart by. For class a benign
// case has its kind.
var slicings = map[string]func(*Case) string{
	"class": func(c *Case) string {
		if c.Label == results.Benign {
			return c.Kind
		}
		return c.Class
	},
	"signal":    func(c *Case) string { return c.Signal },
	"channel":   func(c *Case) string { return c.Channel },
	"situation": func(c *Case) string { return c.Situation },
	"domain":    func(c *Case) string { return c.Domain },
	"goal":      func(c *Case) string { return c.Goal },
	"split":     func(c *Case) string { return c.Split },
}

// byVia is the column of the channel by which the content of a case came to an agent.
const byVia = "via"

// furtherVias are channels beyond those that a table tells apart: no run has so many.
const furtherVias = "further channels"

// SliceNames returns the columns that cases can be told apart by.
func SliceNames() []string {
	return []string{"class", "signal", "channel", "domain", "goal", "split", "situation", byVia}
}

// Values returns the values of a column, in the order in which they appear in
// the run; none is empty.
func (t *Table) Values(by string) []string {
	var all []string
	if of, ok := slicings[by]; ok {
		for i := range t.cases {
			all = append(all, of(&t.cases[i]))
		}
	} else if by == byVia {
		all = t.vias
	}
	var out []string
	seen := map[string]bool{"": true}
	for _, v := range all {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// Classes returns the attack classes of the run.
func (t *Table) Classes() []string {
	var out []string
	for i := range t.cases {
		if c := &t.cases[i]; c.Class != "" && !slices.Contains(out, c.Class) {
			out = append(out, c.Class)
		}
	}
	return out
}

// holds reports whether a case is in the slice whose content came to an agent by a channel.
func (s Slice) holds(c *Case, via string) bool {
	switch of, ok := slicings[s.By]; {
	case s.By == "":
		return true
	case s.By == byVia:
		return via == s.Name
	default:
		return ok && of(c) == s.Name
	}
}

// in reports whether a trial of the arm is in a slice.
func (a *Arm) in(s Slice, unit int) bool {
	t := a.Table
	return s.holds(&t.cases[t.units[unit].kase], t.vias[a.cells[unit].via])
}

// Tally is a rate's raw material: counts by template family, and what is not in
// them.
type Tally struct {
	Families  []stats.Count
	Trials    int // that the arm has in the slice, whatever became of them
	Excluded  int
	NotScored int // trials that are missing from the rate, see [metric.Metric.Missing]
}

// Sum adds the families up.
func (t Tally) Sum() (sum stats.Count) {
	for _, c := range t.Families {
		sum.K, sum.N = sum.K+c.K, sum.N+c.N
	}
	return sum
}

// Arose reports whether some trial is in the rate or might have been.
func (t Tally) Arose() bool { return t.NotScored > 0 || t.Sum().N > 0 }

// Count adds up the arm's trials in a slice.
func (a *Arm) Count(m *metric.Metric, s Slice) Tally {
	t := a.Table
	out := Tally{Families: make([]stats.Count, len(t.families))}
	for u := range a.cells {
		k := &a.cells[u]
		c := &t.cases[t.units[u].kase]
		if k.state == absent || !a.in(s, u) {
			continue
		}
		out.Trials++
		switch {
		case k.state == excluded:
			out.Excluded++
		case k.missing.Has(m):
			out.NotScored++
		case k.in.Has(m):
			out.Families[c.family].Add(k.hit.Has(m))
		}
	}
	return out
}

// Excess adds up the questions that were not due in the trials of a rate. A family has
// so many of them, out of those that it would have if every trial asked as often as the
// one that asked most.
func (a *Arm) Excess(m *metric.Metric, s Slice) (t Tally, most int) {
	t, most = a.Count(m, s), 1
	for i := range a.cells {
		if k := &a.cells[i]; k.in.Has(m) && a.in(s, i) {
			most = max(most, int(k.excess))
		}
	}
	for f := range t.Families {
		t.Families[f] = stats.Count{N: most * t.Families[f].N}
	}
	for i := range a.cells {
		if k := &a.cells[i]; k.in.Has(m) && a.in(s, i) {
			t.Families[a.Table.cases[a.Table.units[i].kase].family].K += int(k.excess)
		}
	}
	return t, most
}

// trialID returns the id of a trial as it stands in rows.
func (k cell) trialID() string { return fmt.Sprintf("%016x", k.id) }
