package view

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/memtox/memtox/results"
)

// The columns of the table of trials, by their names in SCHEMA.md: texts, yes or
// no (or neither), and numbers.
var (
	textColumns = []string{"case", "family", "label", "class", "signal", "channel", "domain", "goal", "kind",
		"agent", "defense", "model", "status", "reason", "written_route", "variant", "situation", "via"}
	flagColumns = []string{"proposed", "written", "held", "exposed", "acted", "asserted", "influenced",
		"influenced_unwritten",
		"detected", "deferred", "legit_stopped", "legit_survived", "utility", "other_task_done", "own_task_done",
		"utility_under_attack", "kept", "right", "harm", "wrong", "done", "idle"}
	numberColumns = []string{"index", "epoch", "asked", "due", "verdict_block", "verdict_quarantine", "verdict_redact", "verdict_defer",
		"model_calls", "tool_calls", "wall_us"}
	allColumns = slices.Concat(textColumns, flagColumns, numberColumns)
)

// attackColumns say something of attacks only. Rows hold false in them for benign
// cases; the table holds that the question did not arise.
var attackColumns = []string{"proposed", "written", "held", "exposed", "acted", "asserted", "influenced",
	"influenced_unwritten"}

// table holds one value a trial for every column. The page has all of it, and filters and
// sorts itself.
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

// MarshalJSON writes the values, and behind them their numbers by row in as few bytes each
// as they fit, little-endian.
func (c *column) MarshalJSON() ([]byte, error) {
	size := 1
	for len(c.values) > 1<<(8*size) {
		size *= 2
	}
	of := make([]byte, 0, size*len(c.of))
	for _, n := range c.of {
		of = append(of, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))[:len(of)+size]
	}
	return json.Marshal(map[string]any{"values": c.values, "size": size, "of": of})
}

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
	for i, name := range results.Columns(reflect.TypeFor[results.Trial]()) {
		if name == "trial" || slices.Contains(allColumns, name) {
			t.columns[name] = new(column)
			sources = append(sources, source{t.columns[name], i, map[any]uint32{},
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

// row finds a trial by its id.
func (t *table) row(id string) (int, bool) {
	i := slices.Index(t.columns["trial"].values, any(id))
	return i, i >= 0
}

// sent is what the page gets of a run's trials.
func (t *table) sent(key string, version int) map[string]any {
	return map[string]any{"version": version, "finished": t.finished, "planned": t.run.Planned, "total": t.len(),
		"run": infoOf(key, t.run), "columns": t.columns, "texts": textColumns, "flags": flagColumns}
}
