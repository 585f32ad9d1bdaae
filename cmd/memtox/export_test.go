package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExportWritesRows(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--limit", "12", "--agent", "hermes", "--defense", "none,keyword", "--out",
		"run")
	rows, err := csv.NewReader(strings.NewReader(c.must("export", "run"))).ReadAll()
	if err != nil || len(rows) != 25 {
		t.Fatalf("%d lines, %v", len(rows), err)
	}
	printed := c.must("export", "run", "--format", "jsonl", "--table", "decisions")
	if n := strings.Count(printed, "\n"); n < 100 {
		t.Fatalf("%d decisions", n)
	}
	c.must("export", "run", "--format", "jsonl", "--table", "decisions", "-o", "d.jsonl")
	file, err := os.ReadFile(c.dir + "/d.jsonl")
	if err != nil || string(file) != printed {
		t.Fatalf("the file is not what is printed: %v", err)
	}
	if left, _ := os.ReadDir(c.dir); len(left) != 2 {
		t.Errorf("it left more than the file: %v", left)
	}
}

// A job writes beside files that a change under review may have brought.
func TestWhatIsWrittenGoesThroughNoLink(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--limit", "2", "--agent", "hermes", "--defense", "none", "--out", "run")
	c.write("precious", "of the user's")
	for _, name := range []string{"d.csv", "d.csv.tmp"} {
		if err := os.Symlink("precious", filepath.Join(c.dir, name)); err != nil {
			t.Skip("no links can be made here: ", err)
		}
	}
	c.must("export", "run", "-o", "d.csv")
	kept, err := os.ReadFile(filepath.Join(c.dir, "precious"))
	if err != nil || string(kept) != "of the user's" {
		t.Errorf("written through a link: %q, %v", kept, err)
	}
	if file, err := os.ReadFile(filepath.Join(c.dir, "d.csv")); err != nil || !strings.HasPrefix(string(file), "trial,") {
		t.Errorf("%.40q, %v", file, err)
	}
}

func TestExportRefusesWhatItCannot(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--limit", "2", "--agent", "hermes", "--defense", "none", "--out", "run")
	for _, args := range [][]string{
		{"export"}, {"export", "nothing"}, {"export", "run", "--format", "xml"}, {"export", "run", "--table", "cases"},
		{"export", "run", "-o", "no/such/dir.csv"},
	} {
		if code := c.run(args...); code != Usage || c.err.Len() == 0 {
			t.Errorf("memtox %q: exit code %d, %s", args, code, c.err.String())
		}
	}
}
