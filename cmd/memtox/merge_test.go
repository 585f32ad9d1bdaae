package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// merged is what the tests read of the figures of a run.
type merged struct {
	Digest     string
	Planned    int64
	Trials     int64
	Duplicates *int64
}

func figures(t *testing.T, out string) (m merged) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return m
}

const small = "--dataset memtox-smoke --agent hermes --defense none,guard --limit 40 --format json"

func TestShardsMergedAreTheRunOfOneProcess(t *testing.T) {
	c := newConsole(t)
	want := figures(t, c.must(strings.Fields("run "+small+" --out whole")...))
	var shards []string
	var rows int64
	for i := 1; i <= 5; i++ {
		dir := fmt.Sprintf("part%d", i)
		m := figures(t, c.must(strings.Fields(fmt.Sprintf("run %s --shard %d/5 --out %s", small, i, dir))...))
		shards = append(shards, dir)
		rows += m.Trials
	}
	if rows != want.Trials {
		t.Fatalf("the shards have %d trials, the whole has %d", rows, want.Trials)
	}
	got := figures(t, c.must(append(append([]string{"merge"}, shards...), "-o", "all", "--format", "json")...))
	if got.Digest != want.Digest || got.Trials != want.Trials || got.Duplicates == nil || *got.Duplicates != 0 {
		t.Errorf("merged: %+v, want %+v", got, want)
	}
	// Not only the digest: the same transcripts, and rows that differ in nothing but time.
	for _, id := range []string{"whole", "all"} {
		c.must("export", id, "--format", "csv", "-o", id+".csv")
	}
	if a, b := untimed(t, c.dir+"/whole.csv"), untimed(t, c.dir+"/all.csv"); !bytes.Equal(a, b) {
		t.Error("the merged rows are others")
	}

	// Overlap is counted once and said.
	got = figures(t, c.must(append(append([]string{"merge", "part2"}, shards...), "-o", "again/", "--format", "json")...))
	if got.Digest != want.Digest || *got.Duplicates == 0 {
		t.Errorf("with a shard named twice: %+v", got)
	}
	if !strings.Contains(c.err.String(), "were there twice") {
		t.Errorf("stderr: %s", c.err.String())
	}

	// What is missing is said, and can be run.
	if code := c.run(append(append([]string{"merge"}, shards[:3]...), "-o", "most", "--format",
		"json")...); code != Inconclusive {
		t.Errorf("two shards are missing: exit code %d", code)
	}
	if !strings.Contains(c.err.String(), "no run is shard 4/5, 5/5; run them with: memtox run --resume --out most") {
		t.Errorf("stderr: %s", c.err.String())
	}
	if got := figures(t, c.must("run", "--resume", "--out", "most", "--format", "json")); got.Digest != want.Digest ||
		got.Trials != want.Trials {
		t.Errorf("resumed after a merge: %+v, want %+v", got, want)
	}
}

// untimed is a CSV file without the columns that a clock fills.
func untimed(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	head := strings.Split(lines[0], ",")
	var out bytes.Buffer
	for _, l := range lines {
		for i, f := range strings.Split(l, ",") {
			if i >= len(head) || !strings.HasSuffix(strings.TrimSpace(head[i]), "_us") {
				out.WriteString(f + ",")
			}
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func TestMergeRefusesWhatIsNotOneRun(t *testing.T) {
	c := newConsole(t)
	c.must(strings.Fields("run " + small + " --shard 1/2 --out a")...)
	c.must(strings.Fields("run " + small + " --shard 2/2 --seed 2 --out b")...)
	c.write("there", "a file of the user's")
	if err := os.Mkdir(c.dir+"/null", 0o777); err != nil {
		t.Fatal(err)
	}
	c.write("null/run.json", `{"format":3,"settings":null}`)
	for args, want := range map[string]string{
		"merge a b -o m":     `these runs are not parts of one: seed is "1" in a and "2" in b`,
		"merge a":            "there is no telling where to",
		"merge -o m":         "needs run directories",
		"merge a -o there":   "there: is there already",
		"merge none -o m":    "none",
		"merge null -o m":    "memtox-bench is not what it was when the run null was made",
		"run --shard 3/2":    `--shard: "3/2" is no shard (i/n with i from 1 to n, for instance 2/5; from a counter that begins with 0, 1+1/5)`,
		"run --shard x":      `"x" is no shard`,
		"run --shard 1/0":    `"1/0" is no shard`,
		"run --shard -1/-1":  `is no shard`,
		"merge a -o m --x y": "unknown flag",
	} {
		if code := c.run(strings.Fields(args)...); code != Usage || !strings.Contains(c.err.String(), want) {
			t.Errorf("memtox %s: exit code %d, %swant %s", args, code, c.err.String(), want)
		}
	}
	if b, err := os.ReadFile(c.dir + "/there"); err != nil || len(b) == 0 {
		t.Errorf("the user's file is gone: %v", err)
	}
	if left, _ := filepath.Glob(c.dir + "/*.merging"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}
