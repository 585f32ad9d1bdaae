package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/results"
)

// rowsOf reads every row of a run, without what a clock changes.
func rowsOf(t testing.TB, dir string) []results.Entry {
	t.Helper()
	r, err := results.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []results.Entry
	for e, err := range r.Entries(results.Everything) {
		if err != nil {
			t.Fatal(err)
		}
		c := results.Entry{Trial: e.Trial, Decisions: append([]results.Decision(nil), e.Decisions...)}
		c.Trial.WallUS = 0
		for i := range c.Decisions {
			c.Decisions[i].LatencyNS = 0
		}
		out = append(out, c)
	}
	return out
}

// manyCases writes the smoke set several times over, under other ids, and
// returns how many cases there are.
func (c *console) manyCases(name string, times int) int {
	c.t.Helper()
	lines := strings.Split(strings.TrimSpace(c.must("datasets", "export", "memtox-smoke")), "\n")
	var b bytes.Buffer
	for k := range times {
		for _, l := range lines {
			var m map[string]any
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				c.t.Fatal(err)
			}
			m["id"] = fmt.Sprintf("%s%x", m["id"], k)
			if err := json.NewEncoder(&b).Encode(m); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	c.write(name, b.String())
	return times * len(lines)
}

func TestKilledRunsResumeToTheRowsOfAnUninterruptedOne(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(t)
	c.manyCases("cases.jsonl", times(4, 2))
	kills := times(20, 6)
	args := []string{"run", "--dataset", "cases.jsonl", "--defense", "none,memoryguard,origin-only", "--concurrency", "2"}
	began := time.Now()
	c.must(append(args, "--out", "whole")...)
	full := time.Since(began)
	want := rowsOf(t, filepath.Join(c.dir, "whole"))

	killed := 0
	for n := range kills {
		cmd := exec.Command(self, append(args, "--out", "torn", "--resume")...)
		cmd.Dir, cmd.Env = c.dir, append(os.Environ(), asMain+"=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration((0.02 + 0.16*rand.Float64()) * float64(full)))
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Logf("kill %d came too late: the run had ended", n)
			continue
		} else if cmd.ProcessState.ExitCode() >= 0 {
			t.Fatalf("kill %d: the process failed by itself: %v\n%s", n, err, stderr.String())
		}
		killed++
	}
	c.must(append(args, "--out", "torn", "--resume")...)
	if diff := cmp.Diff(want, rowsOf(t, filepath.Join(c.dir, "torn")), cmp.AllowUnexported(results.Entry{}),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".at" }, cmp.Ignore())); diff != "" {
		t.Errorf("after %d kills the rows differ:\n%.4000s", killed, diff)
	}
	if killed < kills/4 {
		t.Errorf("only %d of %d kills met a running process", killed, kills)
	}
	t.Logf("%d rows, %d kills, an uninterrupted run takes %v", len(want), killed, full)
}
