package world

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/internal/text"
)

// Column is one column of a table.
type Column struct {
	Name string
	Type Type
	// High says that an argument of high risk fills it.
	High bool
}

// Table describes a table: its first column names the row for a person.
type Table struct {
	Name    string
	Columns []Column
	// High says that a tool with an argument of high risk changes it.
	High bool
}

// Column returns the table's column of a name.
func (t *Table) Column(name string) (Column, bool) {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return t.Columns[i], true
}

// Effect is what a tool does to a table. Exactly one of Append, Set, Delete, Move
// and Add names the table.
type Effect struct {
	Append, Set, Delete, Move, Add string
	// Where is the argument that names the row, by its first column or its id. A
	// row that Set does not find is added where the argument is a column.
	Where  string
	To     string // table that a row is moved to
	Column string // list that Add adds to
}

// Changes is the table that the effect changes.
func (e *Effect) Changes() string { return cmp.Or(e.Append, e.Set, e.Delete, e.Move, e.Add) }

// Row is one row of a table: its columns' values as they were given. Columns
// without a value are missing.
type Row map[string]string

// State is a world: the rows of its tables. Rows are never changed, only replaced.
type State struct {
	tables map[string][]entry
	made   int // rows so far: an id is never given twice
}

type entry struct {
	id  string
	row Row
}

// NewState returns a world with the given rows, by table.
func NewState(rows map[string][]Row) (*State, error) {
	s := &State{tables: map[string][]entry{}}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t := FindTable(name)
		if t == nil {
			return nil, settings.Unknown("", "table", name, tableNames())
		}
		for i, r := range rows[name] {
			for col, v := range r {
				c, ok := t.Column(col)
				if !ok {
					return nil, fmt.Errorf("row %d of %s: %w", i+1, name, settings.Unknown("", "column", col, t.names()))
				}
				if _, err := c.Type.Canonical(v); err != nil {
					return nil, fmt.Errorf("row %d of %s: column %s: %w", i+1, name, col, err)
				}
			}
			s.add(name, r)
		}
	}
	return s, nil
}

func (t *Table) names() (out []string) {
	for _, c := range t.Columns {
		out = append(out, c.Name)
	}
	return out
}

// Clone returns a world that changes apart from this one.
func (s *State) Clone() *State {
	c := &State{tables: maps.Clone(s.tables), made: s.made}
	for name, rows := range c.tables {
		c.tables[name] = slices.Clip(rows)
	}
	return c
}

// Rows visits the rows of a table in the order in which they were added.
func (s *State) Rows(table string) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for _, e := range s.tables[table] {
			if !yield(e.row) {
				return
			}
		}
	}
}

func (s *State) add(table string, r Row) string {
	s.made++
	id := table + "/" + strconv.Itoa(s.made)
	s.tables[table] = append(s.tables[table], entry{id, r})
	return id
}

// find returns the places of the rows that a value names: by id, or by the first
// column.
func (s *State) find(t *Table, value string) (at []int) {
	for i, e := range s.tables[t.Name] {
		if e.id == strings.TrimSpace(value) || t.Columns[0].Type.Equal(e.row[t.Columns[0].Name], value) {
			at = append(at, i)
		}
	}
	return at
}

// Refused says why a tool did nothing. The model is told; the trial goes on.
type Refused struct{ Why string }

// Error implements error.
func (r *Refused) Error() string { return r.Why }

func refused(format string, args ...any) error { return &Refused{fmt.Sprintf(format, args...)} }

// Call runs a tool that looks or acts and returns what the model is told. The
// error is a [Refused] where the arguments are none of the tool's; nothing has
// happened then.
func (s *State) Call(t *Tool, args []model.Arg) (string, error) {
	row := Row{}
	for _, a := range args {
		i := slices.IndexFunc(t.Params, func(p model.Param) bool { return p.Name == a.Name })
		if i < 0 {
			return "", refused("%s takes no argument %q", t.Name, a.Name)
		}
		v := strings.TrimSpace(a.Value)
		if v == "" {
			continue
		}
		if f := t.Params[i].Format; f != "" {
			if _, err := Type(f).Canonical(v); err != nil {
				return "", refused("%s: %v", a.Name, err)
			}
		}
		row[a.Name] = v
	}
	for _, p := range t.Params {
		if p.Required && row[p.Name] == "" {
			return "", refused("%s needs the argument %s", t.Name, p.Name)
		}
	}
	if t.Kind == Looks {
		return s.look(FindTable(t.Table), row[t.Params[0].Name]), nil
	}
	changed := s.Clone()
	var done []string
	for i := range t.Effects {
		ids, err := changed.apply(&t.Effects[i], row)
		if err != nil {
			return "", err
		}
		done = append(done, ids...)
	}
	*s = *changed
	return "Done: " + strings.Join(done, ", ") + ".", nil
}

func (s *State) apply(e *Effect, args Row) ([]string, error) {
	t := FindTable(e.Changes())
	row := Row{}
	for name, v := range args {
		if _, ok := t.Column(name); ok {
			row[name] = v
		}
	}
	if e.Append != "" {
		return []string{s.add(t.Name, row)}, nil
	}
	at := s.find(t, args[e.Where])
	if _, column := t.Column(e.Where); len(at) == 0 && e.Set != "" && column {
		return []string{s.add(t.Name, row)}, nil
	}
	if len(at) == 0 {
		return nil, refused("there is no %q among %s", args[e.Where], t.Name)
	}
	rows := slices.Clone(s.tables[t.Name])
	var ids []string
	for _, i := range slices.Backward(at) {
		old := rows[i]
		ids = append(ids, old.id)
		switch {
		case e.Set != "":
			next := maps.Clone(old.row)
			maps.Copy(next, row)
			rows[i].row = next
		case e.Add != "":
			next := maps.Clone(old.row)
			next[e.Column] = strings.TrimPrefix(next[e.Column]+", "+row[e.Column], ", ")
			rows[i].row = next
		default:
			rows = slices.Delete(rows, i, i+1)
			if e.Move != "" {
				s.tables[e.To] = append(s.tables[e.To], old)
			}
		}
	}
	s.tables[t.Name] = rows
	slices.Reverse(ids)
	return ids, nil
}

// look prints the rows that a name finds.
func (s *State) look(t *Table, asked string) string {
	var b strings.Builder
	for e := range s.named(t, asked) {
		fmt.Fprintf(&b, "%s:", e.id)
		for _, c := range t.Columns {
			if v := e.row[c.Name]; v != "" {
				fmt.Fprintf(&b, " %s %s;", c.Name, v)
			}
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "Nothing found."
	}
	return b.String()
}

// named are the rows whose first column is what was asked for, or holds all its words.
func (s *State) named(t *Table, asked string) iter.Seq[entry] {
	words := strings.Fields(fold(asked))
	return func(yield func(entry) bool) {
		for _, e := range s.tables[t.Name] {
			name := fold(e.row[t.Columns[0].Name])
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(name, w) }) && !yield(e) {
				return
			}
		}
	}
}

// Named visits the rows that a tool which looks finds by a name.
func (s *State) Named(t *Tool, name string) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for e := range s.named(FindTable(t.Table), name) {
			if !yield(e.row) {
				return
			}
		}
	}
}

// As reports whether the world is as wanted in the given tables: it has the same
// rows, in any order, whatever their ids, in their canonical forms and without free
// text. What a wanted row leaves empty is open, but for what decides something of high
// risk.
func (s *State) As(want *State, tables []string) bool {
	return !slices.ContainsFunc(tables, func(name string) bool {
		t := FindTable(name)
		want, got := apart(want.tables[name], s.tables[name])
		return !matches(t.forms(want), t.forms(got), t)
	})
}

// apart are the rows of both that the other has not letter for letter.
func apart(want, got []entry) ([]entry, []entry) {
	if len(want) != len(got) {
		return want, got
	}
	same := func(a entry) func(entry) bool { return func(b entry) bool { return maps.Equal(a.row, b.row) } }
	rest := slices.Clone(got)
	var open []entry
	for _, w := range want {
		if k := slices.IndexFunc(rest, same(w)); k >= 0 {
			rest = slices.Delete(rest, k, k+1)
		} else {
			open = append(open, w)
		}
	}
	return open, rest
}

// matches reports whether each wanted row has a row of its own that is like it.
func matches(want, got [][]string, t *Table) bool {
	if len(want) != len(got) {
		return false
	}
	// Most rows are those that there were: they go first, so that few are tried.
	for i := 0; i < len(want); i++ {
		if k := slices.IndexFunc(got, func(g []string) bool { return slices.Equal(want[i], g) }); k >= 0 {
			want, got = slices.Delete(want, i, i+1), slices.Delete(got, k, k+1)
			i--
		}
	}
	return assigned(want, got, t)
}

func assigned(want, got [][]string, t *Table) bool {
	if len(want) == 0 {
		return true
	}
	for k := range got {
		if t.like(want[0], got[k]) && assigned(want[1:], slices.Delete(slices.Clone(got), k, k+1), t) {
			return true
		}
	}
	return false
}

func (t *Table) like(want, got []string) bool {
	for i, c := range t.Columns {
		switch {
		case want[i] == got[i], want[i] == "" && !c.High, c.Type == Title && holdsWords(got[i], want[i]):
		default:
			return false
		}
	}
	return true
}

// holdsWords reports whether a title has the words of another, in any order and form.
func holdsWords(title, words string) bool {
	have := stems(title)
	for w := range stems(words) {
		if !have[w] {
			return false
		}
	}
	return true
}

func stems(s string) map[string]bool {
	out := map[string]bool{}
	for _, t := range text.Tokens(s) {
		if !text.IsStopword(t.Text) {
			out[text.Stem(t.Text)] = true
		}
	}
	return out
}

// forms are rows in their canonical forms, in the order of the columns.
func (t *Table) forms(rows []entry) [][]string {
	out := make([][]string, len(rows))
	for i := range rows {
		out[i] = make([]string, len(t.Columns))
		for k, c := range t.Columns {
			if v := rows[i].row[c.Name]; v != "" && c.Type != FreeText {
				out[i][k] = c.Type.form(v)
			}
		}
	}
	return out
}

// Predicate says something of a world and of what an agent answered. It holds
// where one of its parts does.
type Predicate struct {
	// Row: some row of the table has these values; of a list, holds these items.
	Row map[string]Row `json:"row,omitempty"`
	// Missing: no row of the table has them.
	Missing map[string]Row `json:"missing,omitempty"`
	// Answers: the agent asserts this as its answer. Whoever judges answers decides.
	Answers string `json:"answers,omitempty"`
}

// Tables are the tables that the predicate speaks of.
func (p *Predicate) Tables() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for _, rows := range []map[string]Row{p.Row, p.Missing} {
			for t := range rows {
				if !yield(t) {
					return
				}
			}
		}
	})
}

// Holds reports whether the predicate holds in a world.
func (p *Predicate) Holds(s *State) bool {
	for table, want := range p.Row {
		if s.has(table, want) {
			return true
		}
	}
	for table, want := range p.Missing {
		if !s.has(table, want) {
			return true
		}
	}
	return false
}

func (s *State) has(table string, want Row) bool {
	t := FindTable(table)
	return slices.ContainsFunc(s.tables[table], func(e entry) bool {
		for col, v := range want {
			if c, ok := t.Column(col); !ok || !c.Type.Contains(e.row[col], v) {
				return false
			}
		}
		return true
	})
}

// Check finds what the predicate cannot speak of.
func (p *Predicate) Check() error {
	if len(p.Row)+len(p.Missing) == 0 && p.Answers == "" {
		return errors.New("it says nothing")
	}
	for _, rows := range []map[string]Row{p.Row, p.Missing} {
		for table, r := range rows {
			if len(r) == 0 {
				return fmt.Errorf("it says nothing of a row of %s", table)
			}
			if _, err := NewState(map[string][]Row{table: {r}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func tableNames() []string { return slices.Sorted(maps.Keys(known().tables)) }

// FindTable returns the table of a name, or nil.
func FindTable(name string) *Table { return known().tables[name] }

// Tables lists the tables by name.
func Tables() []*Table {
	var out []*Table
	for _, n := range tableNames() {
		out = append(out, FindTable(n))
	}
	return out
}
