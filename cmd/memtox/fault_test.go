package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/memtox/memtox/internal/disk/crash"
)

// faults are what an I/O call fails with. A write that fails has written its first half.
var faults = []struct {
	name string
	err  error
	ever bool // every call after it fails, too, of those that need room
}{
	{"broken once", syscall.EIO, false},
	{"no room once", syscall.ENOSPC, false},
	{"no room any more", syscall.ENOSPC, true},
}

// failing makes the k-th call fail, and counts all of them.
func failing(root string, k int64, err error, ever bool) (*crash.Disk, *atomic.Int64) {
	d := crash.New(root)
	calls := new(atomic.Int64)
	d.Fail = func(call, path string) error {
		n := calls.Add(1)
		needsRoom := call == "create" || call == "write" || call == "mkdir"
		if n == k || n > k && k > 0 && ever && needsRoom {
			return err
		}
		return nil
	}
	return d, calls
}

// Whatever call to the disk fails in a run of 20 trials, the run says so, with the
// file's name and the code 3, or it has all its rows; and when it is resumed it has
// those of a run that nothing befell. MEMTOX_LONG has each call fail in each way.
func TestARunWhoseDiskFailsAtAnyCallIsResumed(t *testing.T) {
	c := newConsole(t)
	args := strings.Fields("run --dataset memtox-smoke --limit 10 --agent hermes --defense none,keyword --concurrency " +
		"1 --out")
	d, calls := failing(c.dir, 0, nil, false)
	c.disk = d
	c.must(append(args, "whole")...)
	want := rowsOf(t, filepath.Join(c.dir, "whole"))
	if len(want) != 20 {
		t.Fatalf("%d trials", len(want))
	}
	step := 1
	if !long {
		step = 7
	}
	total := int(calls.Load())
	t.Logf("%d calls", total)
	for i, fault := range faults {
		for k := 1 + i; k <= total; k += step {
			out := fmt.Sprintf("%d-%d", i, k)
			dir := filepath.Join(c.dir, out)
			c.disk, _ = failing(c.dir, int64(k), fault.err, fault.ever)
			code := c.run(append(args, out)...)
			said := c.err.String()
			c.disk = nil
			switch _, err := os.Stat(filepath.Join(dir, "manifest.json")); {
			case code == Done || err == nil:
				sameRows(t, want, dir)
			case code != Failed || !strings.Contains(said, dir):
				t.Errorf("%s at call %d: exit code %d\n%s", fault.name, k, code, said)
			}
			if code != Done {
				if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
					c.must("run", "--resume", "--out", out)
				} else {
					c.must(append(args, out)...)
				}
				sameRows(t, want, dir)
			}
			if t.Failed() {
				t.Fatalf("%s at call %d of %d; the run said:\n%s", fault.name, k, total, said)
			}
			os.RemoveAll(dir)
		}
	}
}
