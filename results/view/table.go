package view

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/memtox/memtox/results"
)

// The columns of the table of trials, by their names in SCHEMA.md: texts, yes or
// no (or neither), and numbers.
var (
	textColumns = []string{"case", "family", "label", "class", "signal", "channel", "domain", "goal", "kind",
		"agent", "defense", "model", "status", "reason", "written_route", "variant", "situation"}
	flagColumns = []string{"proposed", "written", "held", "exposed", "acted", "asserted", "influenced",
		"influenced_unwritten",
		"detected", "deferred", "legit_stopped", "legit_survived", "utility", "other_task_done", "own_task_done",
		"utility_under_attack", "kept", "right", "harm", "wrong", "done", "idle"}
	numberColumns = []string{"index", "epoch", "asked", "due", "verdict_block", "verdict_quarantine", "verdict_redact", "verdict_defer",
		"model_calls", "tool_calls", "wall_us"}
	allColumns = slices.Concat(textColumns, flagColumns, numberColumns)
	// facetColumns have few values: a list to choose from.
	facetColumns = []string{"label", "class", "agent", "defense", "model", "status", "channel", "signal", "domain", "kind",
		"situation"}
)

// attackColumns say something of attacks only. Rows hold false in them for benign
// cases; the table holds that the question did not arise.
var attackColumns = []string{"proposed", "written", "held", "exposed", "acted", "asserted", "influenced",
	"influenced_unwritten"}

// table holds one value a trial for every column.
type table struct {
	run      *results.Run
	finished bool
	columns  map[string]*column // and that of the trials' ids, a value a row
}

// column holds values by number: many trials share one. A value is a text, a truth, a
// number, or nil where the question did not arise.
type column struct {
	of     []uint32 // by row
	values []any
}

func (c *column) at(row int) any { return c.values[c.of[row]] }

// plain is a field of a row as a text, a truth, a number, or nil.
func plain(f reflect.Value) any {
	switch {
	case f.Kind() == reflect.Pointer && f.IsNil():
		return nil
	case f.Kind() == reflect.Pointer:
		return plain(f.Elem())
	case f.CanInt():
		return f.Int()
	}
	return f.Interface()
}

func readTable(r *results.Reader) (*table, error) {
	t := &table{run: r.Run(), finished: r.Finished(), columns: map[string]*column{}}
	type source struct {
		*column
		field  int
		number map[any]uint32 // of a value
		// flag: it says nothing of a trial that is not scored; attack: nor of one that is none.
		flag, attack bool
	}
	var sources []source
	for _, f := range reflect.VisibleFields(reflect.TypeFor[results.Trial]()) {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if name == "trial" || slices.Contains(allColumns, name) {
			t.columns[name] = new(column)
			sources = append(sources, source{t.columns[name], f.Index[0], map[any]uint32{},
				slices.Contains(flagColumns, name), slices.Contains(attackColumns, name)})
		}
	}
	for e, err := range r.Entries(results.TrialsOnly) {
		if err != nil {
			return nil, err
		}
		v := reflect.ValueOf(&e.Trial).Elem()
		for _, s := range sources {
			var x any
			if !s.flag || e.Trial.Status == results.Scored && (!s.attack || e.Trial.Label == results.Attack) {
				x = plain(v.Field(s.field))
			}
			n, ok := s.number[x]
			if !ok {
				n = uint32(len(s.values))
				s.number[x], s.values = n, append(s.values, x)
			}
			s.of = append(s.of, n)
		}
	}
	return t, nil
}

func (t *table) len() int { return len(t.columns["trial"].of) }

// id is a trial's id as it stands in rows.
func (t *table) id(row int) string { return t.columns["trial"].at(row).(string) }

// row finds a trial by its id.
func (t *table) row(id string) (int, bool) {
	i := slices.Index(t.columns["trial"].values, any(id))
	return i, i >= 0
}

// value is a column of a row for JSON.
func (t *table) value(row int, name string) any {
	if c := t.columns[name]; c != nil {
		return c.at(row)
	}
	return nil
}

// query says which trials, in which order.
type query struct {
	is     map[string][]any // column: any of these values
	search string           // part of a case, a family, a reason or an id, in any case of letters
	sort   string           // column; "" is the order of the plan
	down   bool
}

// find returns the rows that a query wants, in its order.
func (t *table) find(q query) []int32 {
	keep := make([]bool, t.len())
	for i := range keep {
		keep[i] = true
	}
	for name, values := range q.is {
		hit := t.columns[name].which(func(v any) bool { return slices.Contains(values, v) })
		for i := range keep {
			keep[i] = keep[i] && hit(i)
		}
	}
	if q.search != "" {
		needle := strings.ToLower(q.search)
		holds := func(v any) bool { return strings.Contains(strings.ToLower(v.(string)), needle) }
		inCase, inFamily := t.columns["case"].which(holds), t.columns["family"].which(holds)
		inReason := t.columns["reason"].which(holds)
		for i := range keep {
			keep[i] = keep[i] && (inCase(i) || inFamily(i) || inReason(i) || strings.HasPrefix(t.id(i), needle))
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

// which says of each row whether its value is wanted. Each value is looked at once.
func (c *column) which(wanted func(any) bool) func(row int) bool {
	hit := make([]bool, len(c.values))
	for n, v := range c.values {
		hit[n] = wanted(v)
	}
	return func(row int) bool { return hit[c.of[row]] }
}

// order sorts rows by a column, equal ones in the order of the plan.
func (t *table) order(rows []int32, q query) {
	c := t.columns[q.sort]
	if c == nil {
		if q.down {
			slices.Reverse(rows)
		}
		return
	}
	slices.SortStableFunc(rows, func(a, b int32) int {
		if q.down {
			a, b = b, a
		}
		return compare(c.at(int(a)), c.at(int(b)))
	})
}

// compare compares two values of a column. Before no and yes comes neither.
func compare(a, b any) int {
	switch a := a.(type) {
	case string:
		return cmp.Compare(a, b.(string))
	case int64:
		return cmp.Compare(a, b.(int64))
	}
	truths := []any{nil, false, true}
	return cmp.Compare(slices.Index(truths, a), slices.Index(truths, b))
}

// facet is a value of a column and how many trials have it.
type facet struct {
	Value any `json:"value"`
	N     int `json:"n"`
}

// facets lists the values of the columns that have few, in their order of
// appearance.
func (t *table) facets() map[string][]facet {
	out := map[string][]facet{}
	for _, name := range facetColumns {
		c := t.columns[name]
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
	cases, epoch := t.columns["case"].of, t.columns["epoch"].of
	var out []int
	for i := range t.len() {
		if cases[i] == cases[row] && epoch[i] == epoch[row] {
			out = append(out, i)
		}
	}
	return out
}
