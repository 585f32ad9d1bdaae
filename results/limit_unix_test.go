//go:build unix

package results

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// limitFileSize makes writes beyond n bytes of any file fail, as a full disk
// does.
func limitFileSize(n uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		panic(err)
	}
	l.Cur = min(n, l.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		panic(err)
	}
}

func TestAFullDiskGivesOneErrorAndARunThatCanBeResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	child := func(limit string) (string, int) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MEMTOX_TEST_JOURNAL="+dir, limit)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		err := cmd.Run()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return stderr.String(), cmd.ProcessState.ExitCode()
	}
	for _, limit := range []string{
		"MEMTOX_TEST_LIMIT=100000",       // the journal does not fit
		"MEMTOX_TEST_LIMIT=5000",         // the transcripts do not
		"MEMTOX_TEST_LIMIT_AT_END=60000", // the final files do not
	} {
		msg, code := child(limit)
		if code != 1 || strings.Count(msg, "\n") != 1 || !strings.Contains(msg, dir) || !strings.Contains(msg, "--resume") {
			t.Fatalf("%s: exit %d, %q; want 1 and one line that says how to go on", limit, code, msg)
		}
		t.Log(strings.TrimSpace(msg))
		r, err := OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Entries(Everything) {
			if err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
	}
	if msg, code := child("MEMTOX_TEST_LIMIT="); code != 0 {
		t.Fatalf("after the disk has room: exit %d, %s", code, msg)
	}
	checkRun(t, dir, upTo(killRows))
}
