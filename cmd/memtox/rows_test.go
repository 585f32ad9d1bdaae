package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
)

// A run directory whose every digest fits may still hold rows of other cases under
// the ids of ours. Whatever the plan says of a trial is held against the row: in a
// shard, in a journal and where rows are judged again.
func TestRowsThatContradictThePlanAreRefused(t *testing.T) {
	t.Parallel()
	c, judge := newConsole(t), newJudgeServer(t, "a")
	c.must(strings.Fields("run --dataset memtox-smoke --agent hermes --defense none,guard --limit 6 --out honest")...)
	rows := rowsOf(t, filepath.Join(c.dir, "honest"))
	run, err := results.ReadRun(filepath.Join(c.dir, "honest"))
	if err != nil {
		t.Fatal(err)
	}
	attack := slices.IndexFunc(rows, func(e results.Entry) bool {
		return e.Trial.Label == results.Attack &&
			e.Trial.ExpectsRSR
	})
	rows = append(rows[attack:attack+1:attack+1], slices.Delete(slices.Clone(rows), attack, attack+1)...) // it comes first
	alien := func(name string, finish bool, change func(*results.Trial)) {
		t.Helper()
		j, err := results.Create(filepath.Join(c.dir, name), run, results.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			row := rows[i].Trial
			if i == 0 {
				change(&row)
			}
			if i == 0 || finish || i < len(rows)/2 {
				if err := j.Append(&row, rows[i].Decisions, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err = j.Close(); finish {
			j, _ = results.Resume(filepath.Join(c.dir, name), results.Options{})
			_, err = j.Finish(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	alien("same", true, func(*results.Trial) {})
	c.must("merge", "same", "-o", "merged")
	alien("half", false, func(*results.Trial) {})
	c.must("run", "--resume", "--out", "half")

	changes := map[string]func(*results.Trial){
		"a status of nobody's": func(r *results.Trial) { r.Status = "fine" },
		"left out":             func(r *results.Trial) { r.Status, r.Reason = results.Excluded, "it does not suit us" },
	}
	row := reflect.TypeFor[results.Trial]()
	for i := range row.NumField() {
		name, _, _ := strings.Cut(row.Field(i).Tag.Get("parquet"), ",")
		if name == "status" { // what follows is what happened, but for these
			break
		}
		changes[name] = nil
	}
	for _, name := range []string{"has_retrieval", "expects_asr", "expects_rsr", "expects_write", "window", "review_turns",
		"review_iterations", "keep_messages", "judge"} {
		changes[name] = nil
	}
	n := 0
	for name, change := range changes {
		if change == nil {
			change = func(r *results.Trial) {
				v := reflect.ValueOf(r).Elem()
				for i := range v.NumField() {
					if column, _, _ := strings.Cut(row.Field(i).Tag.Get("parquet"), ","); column == name {
						switch f := v.Field(i); {
						case name == "trial":
							f.SetString("00000000deadbeef")
						case f.Kind() == reflect.String:
							f.SetString(f.String() + "x")
						case f.Kind() == reflect.Bool:
							f.SetBool(!f.Bool())
						default:
							f.SetInt(f.Int() + 1)
						}
						return
					}
				}
				t.Fatalf("there is no column %s", name)
			}
		}
		says := map[string]string{"trial": "not the one at place", "index": "not the one at place",
			"a status of nobody's": "status", "left out": "it does not suit us"}[name]
		if says == "" {
			says = "has " + name + " "
		}
		n++
		shard, journal := fmt.Sprintf("shard-%d", n), fmt.Sprintf("journal-%d", n)
		whoever := slices.Contains([]string{"family", "label", "split", "expects_rsr", "left out"}, name)
		alien(shard, whoever, change)
		if whoever { // the others ask the same function
			alien(journal, false, change)
		}
		for _, args := range [][]string{
			{"merge", "half", shard, "-o", "never"},
			{"run", "--resume", "--out", journal},
			{"rejudge", shard, "--judge", "llm:openai:fake", "--base-url", judge.URL + "/v1", "-o", "judged-" + shard},
		} {
			if args[0] != "merge" && !whoever {
				continue
			}
			from := shard
			if args[0] == "run" {
				from = journal
			}
			if code := c.run(args...); code != Usage || !strings.Contains(c.err.String(), from+":") ||
				!strings.Contains(c.err.String(), says) {
				t.Errorf("%s, memtox %q: exit code %d: %s", name, args, code, c.err.String())
			}
		}
	}
	if code := c.run("merge", "half", "-o", "elsewhere", "--dataset", "memtox-bench"); code != Usage ||
		!strings.Contains(c.err.String(), "memtox-bench is not what it was") {
		t.Errorf("other cases: exit code %d: %s", code, c.err.String())
	}
}
