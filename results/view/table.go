package view

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/results"
)

// The columns of the table of trials, by their names in SCHEMA.md: texts, yes or
// no (or neither), and numbers.
var (
	textColumns = []string{"case", "family", "label", "class", "signal", "channel", "domain", "goal", "kind", "agent", "defense", "model", "status", "reason", "written_route", "variant"}
	flagColumns = []string{"proposed", "written", "held", "exposed", "acted", "asserted", "influenced", "influenced_unwritten", "detected", "deferred",
		"legit_stopped", "legit_survived", "utility", "other_task_done", "own_task_done", "utility_under_attack", "asked"}
	numberColumns = []string{"index", "epoch", "verdict_block", "verdict_quarantine", "verdict_redact", "verdict_defer", "model_calls", "tool_calls", "wall_us"}
	// facetColumns have few values: a list to choose from.
	facetColumns = []string{"label", "class", "agent", "defense", "status", "channel", "signal", "domain", "kind"}
)

// attackColumns say something of attacks only. Rows hold false in them for benign
// cases; the table holds that the question did not arise.
var attackColumns = []string{"proposed", "written", "held", "exposed", "acted", "asserted", "influenced", "influenced_unwritten"}

// table holds one value a trial for every column.
type table struct {
	run      *results.Run
	finished bool
	ids      []uint64
	texts    []textColumn // as textColumns
	flags    [][]byte     // as flagColumns: null, false, true
	numbers  [][]int64    // as numberColumns
}

// The values of a flag.
const (
	null = iota
	no
	yes
)

// textColumn holds texts by number. Many trials share a text.
type textColumn struct {
	of     []uint32
	values []string
	number map[string]uint32
}

func (c *textColumn) add(s string) {
	n, ok := c.number[s]
	if !ok {
		if c.number == nil {
			c.number = map[string]uint32{}
		}
		s = strings.Clone(s)
		n = uint32(len(c.values))
		c.number[s] = n
		c.values = append(c.values, s)
	}
	c.of = append(c.of, n)
}

func (c *textColumn) at(row int) string { return c.values[c.of[row]] }

// fieldIndex finds the fields of a row struct by their column names.
func fieldIndex(t reflect.Type) map[string]int {
	m := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
		m[name] = i
	}
	return m
}

// Compiled once from the row struct and never changed.
var trialFields = fieldIndex(reflect.TypeFor[results.Trial]())

func fieldsOf(names []string) []int {
	out := make([]int, len(names))
	for i, n := range names {
		f, ok := trialFields[n]
		if !ok {
			panic("view: trials have no column " + n)
		}
		out[i] = f
	}
	return out
}

func readTable(r *results.Reader) (*table, error) {
	t := &table{run: r.Run(), finished: r.Finished(), texts: make([]textColumn, len(textColumns)),
		flags: make([][]byte, len(flagColumns)), numbers: make([][]int64, len(numberColumns))}
	texts, flags, numbers := fieldsOf(textColumns), fieldsOf(flagColumns), fieldsOf(numberColumns)
	ofAttacks := make([]bool, len(flagColumns))
	for i, c := range flagColumns {
		ofAttacks[i] = slices.Contains(attackColumns, c)
	}
	for e, err := range r.Entries(results.TrialsOnly) {
		if err != nil {
			return nil, err
		}
		id, err := strconv.ParseUint(e.Trial.ID, 16, 64)
		if err != nil {
			continue // no row of memtox
		}
		t.ids = append(t.ids, id)
		v := reflect.ValueOf(&e.Trial).Elem()
		for i, f := range texts {
			t.texts[i].add(v.Field(f).String())
		}
		for i, f := range flags {
			x, flag := v.Field(f), byte(null)
			switch {
			case e.Trial.Status != results.Scored, e.Trial.Label != results.Attack && ofAttacks[i]:
			case x.Kind() != reflect.Pointer:
				flag = flagOf(x.Bool())
			case !x.IsNil():
				flag = flagOf(x.Elem().Bool())
			}
			t.flags[i] = append(t.flags[i], flag)
		}
		for i, f := range numbers {
			t.numbers[i] = append(t.numbers[i], v.Field(f).Int())
		}
	}
	return t, nil
}

func flagOf(b bool) byte {
	if b {
		return yes
	}
	return no
}

func (t *table) len() int64 { return int64(len(t.ids)) }

// id is a trial's id as it stands in rows.
func (t *table) id(row int) string {
	s := strconv.FormatUint(t.ids[row], 16)
	return strings.Repeat("0", 16-len(s)) + s
}

// row finds a trial by its id.
func (t *table) row(id string) (int, bool) {
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil || len(id) != 16 {
		return 0, false
	}
	i := slices.Index(t.ids, n)
	return i, i >= 0
}

// text, flag and number give a column by name.
func (t *table) text(name string) *textColumn {
	if i := slices.Index(textColumns, name); i >= 0 {
		return &t.texts[i]
	}
	return nil
}

func (t *table) flag(name string) []byte {
	if i := slices.Index(flagColumns, name); i >= 0 {
		return t.flags[i]
	}
	return nil
}

func (t *table) number(name string) []int64 {
	if i := slices.Index(numberColumns, name); i >= 0 {
		return t.numbers[i]
	}
	return nil
}

// query says which trials, in which order.
type query struct {
	is     map[string][]string // text column: any of these values
	flags  map[string]byte     // flag column: this value
	search string              // part of a case, a family, a reason or an id, in any case of letters
	sort   string              // column; "" is the order of the plan
	down   bool
}

// find returns the rows that a query wants, in its order.
func (t *table) find(q query) []int32 {
	keep := make([]bool, len(t.ids))
	for i := range keep {
		keep[i] = true
	}
	for name, values := range q.is {
		c := t.text(name)
		if c == nil {
			continue
		}
		want := make([]bool, len(c.values))
		for _, v := range values {
			if n, ok := c.number[v]; ok {
				want[n] = true
			}
		}
		for i, n := range c.of {
			keep[i] = keep[i] && want[n]
		}
	}
	for name, v := range q.flags {
		for i, f := range t.flag(name) {
			keep[i] = keep[i] && f == v
		}
	}
	if q.search != "" {
		needle := strings.ToLower(q.search)
		var found [][]bool
		var columns []*textColumn
		for _, name := range []string{"case", "family", "reason"} {
			c := t.text(name)
			hit := make([]bool, len(c.values)) // each text is looked at once
			for n, v := range c.values {
				hit[n] = strings.Contains(strings.ToLower(v), needle)
			}
			found, columns = append(found, hit), append(columns, c)
		}
		for i := range keep {
			if !keep[i] {
				continue
			}
			hit := strings.HasPrefix(t.id(i), needle)
			for k, c := range columns {
				hit = hit || found[k][c.of[i]]
			}
			keep[i] = hit
		}
	}
	var rows []int32
	for i, k := range keep {
		if k {
			rows = append(rows, int32(i))
		}
	}
	t.order(rows, q)
	return rows
}

// order sorts rows by a column, equal ones in the order of the plan.
func (t *table) order(rows []int32, q query) {
	var less func(a, b int32) int
	if c := t.text(q.sort); c != nil {
		rank := make([]int, len(c.values))
		sorted := make([]int, len(c.values))
		for i := range sorted {
			sorted[i] = i
		}
		slices.SortFunc(sorted, func(a, b int) int { return cmp.Compare(c.values[a], c.values[b]) })
		for r, n := range sorted {
			rank[n] = r
		}
		less = func(a, b int32) int { return cmp.Compare(rank[c.of[a]], rank[c.of[b]]) }
	} else if f := t.flag(q.sort); f != nil {
		less = func(a, b int32) int { return cmp.Compare(f[a], f[b]) }
	} else if n := t.number(q.sort); n != nil {
		less = func(a, b int32) int { return cmp.Compare(n[a], n[b]) }
	}
	switch {
	case less == nil:
		if q.down {
			slices.Reverse(rows)
		}
	case q.down:
		slices.SortStableFunc(rows, func(a, b int32) int { return less(b, a) })
	default:
		slices.SortStableFunc(rows, less)
	}
}

// value is a column of a row for JSON.
func (t *table) value(row int, name string) any {
	if name == "trial" {
		return t.id(row)
	}
	if c := t.text(name); c != nil {
		return c.at(row)
	}
	if f := t.flag(name); f != nil {
		return [...]any{null: nil, no: false, yes: true}[f[row]]
	}
	if n := t.number(name); n != nil {
		return n[row]
	}
	return nil
}

// facet is a value of a column and how many trials have it.
type facet struct {
	Value string `json:"value"`
	N     int    `json:"n"`
}

// facets lists the values of the columns that have few, in their order of
// appearance.
func (t *table) facets() map[string][]facet {
	out := map[string][]facet{}
	for _, name := range facetColumns {
		c := t.text(name)
		list := make([]facet, len(c.values))
		for i, v := range c.values {
			list[i].Value = v
		}
		for _, n := range c.of {
			list[n].N++
		}
		const most = 200
		out[name] = list[:min(len(list), most)]
	}
	return out
}

// same are the rows of the same case in the same epoch: under other defenses
// and agents.
func (t *table) same(row int) []int {
	cases, epoch := t.text("case").of, t.number("epoch")
	var out []int
	for i := range t.ids {
		if cases[i] == cases[row] && epoch[i] == epoch[row] {
			out = append(out, i)
		}
	}
	return out
}
