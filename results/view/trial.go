package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/memtox/memtox/results"
)

// Page is one trial with everything that is known of it.
type Page struct {
	Trial    []Column  `json:"trial"`
	Sessions []Session `json:"sessions"`
	// Decisions are those that no session shows, where there is no transcript.
	Decisions []*Decision `json:"decisions,omitempty"`
	Memory    *Memory     `json:"memory,omitempty"`
	// Verdicts are what a language model answered where one judged the trial; its
	// columns are in Trial.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Problem says why there is no transcript.
	Problem string `json:"problem,omitempty"`
	// Same are the trials of the same case under other defenses and agents, this
	// one included.
	Same []map[string]any `json:"same"`
	// Previous and Next are its neighbours in the plan.
	Previous string `json:"previous,omitempty"`
	Next     string `json:"next,omitempty"`
}

// Column is a column of a row.
type Column struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Memory is the records at three times. Each list is whole.
type Memory struct {
	Before  []Record `json:"before"`
	Between []Record `json:"between"` // after the write session
	After   []Record `json:"after"`   // after the retrieval session
}

var errNoTranscript = errors.New("the run kept no transcript of this trial, so only its rows are shown (a trial that does not apply has none, nor has any where the setting transcripts is none)")

// page puts a trial together.
func (e *edition) page(id string) (*Page, error) {
	row, ok := e.table.row(id)
	if !ok {
		return nil, errNoTrial
	}
	trial, rows, err := e.shelf.entry(e.table.ids[row])
	if err != nil {
		return nil, err
	}
	p := &Page{Trial: columnsOf(trial), Sessions: []Session{}}
	for _, i := range e.table.same(row) {
		m := map[string]any{}
		for _, c := range []string{"trial", "agent", "defense", "status", "written", "influenced", "detected", "utility"} {
			m[c] = e.table.value(i, c)
		}
		p.Same = append(p.Same, m)
	}
	if row > 0 {
		p.Previous = e.table.id(row - 1)
	}
	if row+1 < len(e.table.ids) {
		p.Next = e.table.id(row + 1)
	}
	t, err := e.readTranscript(id)
	ds := decisionsOf(rows, t)
	if err != nil {
		p.Problem, p.Decisions = err.Error(), ds
		return p, nil
	}
	p.Verdicts = t.Judge
	t.mark(ds)
	p.Sessions = sessionsOf(t, ds)
	for _, d := range ds {
		if d.Session < 1 || d.Session > len(p.Sessions) {
			p.Decisions = append(p.Decisions, d)
		}
	}
	p.Memory = &Memory{Before: orEmpty(t.Memory.Before)}
	p.Memory.Between = changed(p.Memory.Before, t.Memory.Between)
	p.Memory.After = changed(p.Memory.Between, t.Memory.After)
	return p, nil
}

func (e *edition) readTranscript(id string) (*transcript, error) {
	b, err := e.transcript(id)
	if errors.Is(err, results.ErrNoTranscript) {
		return nil, errNoTranscript
	}
	if err != nil {
		return nil, err
	}
	var t transcript
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("reading the transcript of trial %s: %w", id, err)
	}
	return &t, nil
}

// mark notes on the records what the rows know: which hold the poison, which the
// expected memory.
func (t *transcript) mark(ds []*Decision) {
	for _, d := range ds {
		if d.Record == "" || !d.Poison && !d.Legit {
			continue
		}
		for _, list := range [][]Record{t.Memory.Before, t.Memory.Between, t.Memory.After} {
			for i := range list {
				if list[i].ID == d.Record {
					list[i].Poison = list[i].Poison || d.Poison
					list[i].Legit = list[i].Legit || d.Legit
				}
			}
		}
	}
}

// changed is a memory after what differs was changed in it or added.
func changed(before, differs []Record) []Record {
	out := append([]Record{}, before...)
	place := map[string]int{}
	for i := range out {
		place[out[i].ID] = i
	}
	for _, r := range differs {
		if i, ok := place[r.ID]; ok {
			out[i] = r
		} else {
			place[r.ID] = len(out)
			out = append(out, r)
		}
	}
	return out
}

func orEmpty(rs []Record) []Record {
	if rs == nil {
		return []Record{}
	}
	return rs
}

// columnsOf lists a row's columns in the order of the file. Numbers of 64 bits
// are texts: a script would lose their last digits.
func columnsOf(t *results.Trial) []Column {
	v := reflect.ValueOf(t).Elem()
	var out []Column
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("parquet"), ",")
		f := v.Field(i)
		var x any
		switch {
		case f.Kind() == reflect.Pointer && f.IsNil():
		case f.Kind() == reflect.Pointer:
			x = f.Elem().Interface()
		case f.Kind() == reflect.Int64:
			x = strconv.FormatInt(f.Int(), 10)
		default:
			x = f.Interface()
		}
		out = append(out, Column{name, x})
	}
	return out
}
