package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write golden files and generated documents")

// golden compares a whole output with a committed file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of step; run go test ./cmd/memtox -update and look at what changed:\n%s", path, diff)
	}
}

func TestCommandReferenceIsInStep(t *testing.T) {
	golden(t, "../../docs/command-line.md", commandReference(newRoot(&Env{Stdout: new(bytes.Buffer),
		Stderr: new(bytes.Buffer)}, "")))
}

var (
	indented = regexp.MustCompile(`(?m)(?:^  .*\n)+`) // lists and files in a help text
	flagName = regexp.MustCompile(`--[a-z-]+`)
)

// words is a line of flags without its alignment.
func words(line string) string { return strings.Join(strings.Fields(line), " ") + "\n" }

// commandReference is docs/command-line.md: every command as its help says it. Flags
// that a command shares with run are explained there.
func commandReference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Command line\n\nMade from the commands' own help; `go test ./cmd/memtox -update` renews it.\n\n## " +
		"Exit codes\n\n| code | meaning |\n|---:|---|\n")
	for line := range strings.Lines(ExitCodes) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		fmt.Fprintf(&b, "| %s | %s |\n", code, meaning)
	}
	b.WriteString("\nThe commands of `memtox memory` are the exception, and have their own:\n\n| code | meaning " +
		"|\n|---:|---|\n")
	for line := range strings.Lines(MemoryExitCodes) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		fmt.Fprintf(&b, "| %s | %s |\n", code, meaning)
	}
	b.WriteString("\nErrors are one line on standard error, `memtox: place: what is wrong (what mends it)`. Results go " +
		"to standard output, progress to\nstandard error: a bar on a terminal, elsewhere a line every ten seconds. An " +
		"interrupt (Ctrl-C) stops a run once the trials in\nflight are finished; a second one abandons them.\n" +
		"\nControl characters and invisible characters are escaped in all output. Three things are exact in a file or a " +
		"pipe:\nthe rows of `export --format jsonl`, the cases of `datasets export` and `mutate`, and a proof.\n")
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		panic(err)
	}
	ofRun := ""
	for line := range strings.Lines(run.NonInheritedFlags().FlagUsages()) {
		ofRun += words(line)
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if !c.HasSubCommands() {
			about := c.Long
			if about == "" {
				about = c.Short + "."
			}
			about = indented.ReplaceAllString(about+"\n", "```\n$0```\n")
			fmt.Fprintf(&b, "\n## %s\n\n%s\n```\n%s\n```\n", c.CommandPath(), about, c.Example)
			var shared, own []string
			for line := range strings.Lines(c.NonInheritedFlags().FlagUsages()) {
				if name := flagName.FindString(line); c.CommandPath() != "memtox run" && strings.Contains(ofRun, words(line)) {
					shared = append(shared, "`"+name+"`")
				} else {
					own = append(own, line)
				}
			}
			if len(own) > 0 {
				fmt.Fprintf(&b, "\n```\n%s```\n", strings.Join(own, ""))
			}
			if len(shared) > 0 {
				fmt.Fprintf(&b, "\nAs in [memtox run](#memtox-run): %s.\n", strings.Join(shared, ", "))
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	b.WriteString("\n## memtox completion\n\nPrints a completion script for bash, zsh, fish or PowerShell; names of " +
		"agents, defenses, models, datasets, classes and settings\ncomplete too.\n\n```\n  source <(memtox completion " +
		"bash)\n```\n")
	return b.String()
}
