package main

import (
	"regexp"
	"testing"
)

// masked hides what differs from run to run: the run's name, how long decisions
// took, and the widths of the columns that tell it.
func masked(s string) string {
	s = regexp.MustCompile(`\d{8}\\?-\d{6}\\?-[0-9a-f]{6}`).ReplaceAllString(s, "RUN")
	return regexp.MustCompile(`(?s)What does a decision take\?.*?\n\n[A-Z#]`).ReplaceAllStringFunc(s, func(part string) string {
		part = regexp.MustCompile(`[0-9.,\\]+/[0-9.,\\]+/[0-9.,\\]+ (ns|µs|ms|s)\b`).ReplaceAllString(part, "TIME")
		part = regexp.MustCompile(`─+`).ReplaceAllString(part, "─")
		return regexp.MustCompile(` {2,}`).ReplaceAllString(part, "  ")
	})
}

// The whole output of a run over the hand-worked set. A change here is a change
// of what memtox measures or of how it says it: look at it before it is
// committed.
func TestARunPrintsItsFigures(t *testing.T) {
	c := newConsole(t)
	golden(t, "testdata/run.txt", masked(c.must("run", "--out", "r", "--dataset", "memtox-smoke")))
	golden(t, "testdata/run.md", masked(c.must("run", "--out", "r", "--resume", "--format", "markdown")))
}
