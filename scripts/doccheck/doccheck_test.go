package doccheck

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

type block struct {
	line   int
	lang   string
	file   string // where the block is written to, if it is a file
	tree   string // where in the repository, if it belongs there
	insert string // the file of the repository that its lines are put into,
	after  string // behind the line that holds this
	inTree bool   // it is about the repository: commands are run in it
	body   string
}

// blocks finds the fenced blocks of a page.
func blocks(page string) []block {
	var out []block
	var cur *block
	for i, line := range strings.Split(page, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && cur == nil:
			cur = &block{line: i + 1}
			for j, word := range strings.Fields(info) {
				key, value, _ := strings.Cut(word, "=")
				switch {
				case j == 0:
					cur.lang = word
				case key == "file":
					cur.file = value
				case key == "tree":
					cur.tree, cur.inTree = value, true
				case key == "insert":
					cur.insert, cur.inTree = value, true
				case word == "tree":
					cur.inTree = true
				case key == "after":
					cur.after = value
				}
			}
		case fence:
			out = append(out, *cur)
			cur = nil
		case cur != nil:
			cur.body += line + "\n"
		}
	}
	return out
}

func root(t *testing.T) string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// built is the program, once one of the tests has asked for it.
var built struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// program is the path of memtox, built from this tree.
func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "doccheck"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.dir, "memtox"), "./cmd/memtox")
		cmd.Dir = root(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("building memtox: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "memtox")
}

func pages(t *testing.T, root string) []string {
	out := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(out, docs...)
}

// goRun is how the pages call the program before it is installed.
var goRun = regexp.MustCompile(`^go run \./cmd/memtox\b`)

// long leaves a test out that runs the whole program for minutes.
func long(t *testing.T) {
	if os.Getenv("MEMTOX_LONG") == "" {
		t.Skip("runs what the pages show, for minutes: MEMTOX_LONG=1 runs it, and .ci/run does")
	}
}

func TestPagesDoWhatTheySay(t *testing.T) {
	long(t)
	if runtime.GOOS == "windows" {
		t.Skip("the pages show a POSIX shell")
	}
	top := root(t)
	bin := filepath.Dir(program(t))
	ran := 0
	for _, page := range pages(t, top) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(top, page)
		dir := t.TempDir()
		packages := map[string]bool{}
		for _, b := range blocks(string(data)) {
			if b.file != "" {
				path := filepath.Join(dir, filepath.FromSlash(b.file))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(b.body), 0o644); err != nil {
					t.Fatal(err)
				}
				if b.lang == "go" {
					packages[filepath.Dir(b.file)] = true
				}
				continue
			}
			if b.lang != "sh" || b.inTree {
				continue
			}
			for _, line := range strings.Split(b.body, "\n") {
				line = goRun.ReplaceAllString(strings.TrimSpace(line), "memtox")
				if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "go test ") {
					continue // .ci/run has run the tests, this one among them
				}
				cmd := exec.Command("sh", "-ec", line)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				ran++
				if err != nil {
					t.Errorf("%s:%d: %s: %v\n%s", name, b.line, line, err, out)
				}
			}
		}
		if len(packages) > 0 {
			goTest(t, top, dir, name)
			ran++
		}
	}
	if ran == 0 {
		t.Error("no page shows a command: the check has lost its way")
	}
}

// goTest vets and tests the Go files of a page as a module that imports memtox.
func goTest(t *testing.T, top, dir, page string) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(mod), "module example.test/mine")
	text += "\nrequire github.com/memtox/memtox v0.0.0\nreplace github.com/memtox/memtox => " + top + "\n"
	sum, err := os.ReadFile(filepath.Join(top, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{"go.mod": []byte(text), "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.ReplaceAll(os.Getenv("GOFLAGS"), "-mod=readonly", "")+" -mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: go %s: %v\n%s", page, strings.Join(args, " "), err, out)
		}
	}
}

var update = flag.Bool("update", false, "renew the tables of README.md")

// The tables of the README are what the first command prints today.
func TestReadmeTablesAreWhatTheRunPrints(t *testing.T) {
	long(t)
	top := root(t)
	path := filepath.Join(top, "README.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "<!-- memtox run --format markdown -->") {
		t.Fatal("README.md no longer says where its tables come from")
	}
	cmd := exec.Command(program(t), "run", "--format", "markdown", "--out", filepath.Join(t.TempDir(), "run"))
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("memtox run: %v", err)
	}
	n := 0
	renewed := sections.ReplaceAllStringFunc(string(page), func(block string) string {
		n++
		title := sections.FindStringSubmatch(block)[1]
		return "<!-- section: " + title + " -->\n" + table(t, string(out), title) + "<!-- end -->"
	})
	if n == 0 {
		t.Fatal("README.md shows no table")
	}
	renewed = campaigns.ReplaceAllStringFunc(renewed, func(block string) string {
		args := campaigns.FindStringSubmatch(block)[1]
		cmd := exec.Command(program(t), append([]string{"attack", "--format", "markdown", "--out",
			filepath.Join(t.TempDir(), "attack")}, strings.Fields(args)...)...)
		cmd.Dir = top
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("memtox attack %s: %v", args, err)
		}
		return "<!-- memtox attack " + args + " -->\n" + table(t, string(out), "End to end, by budget of queries") +
			"<!-- end -->"
	})
	printed := map[string]string{}
	renewed = runs.ReplaceAllStringFunc(renewed, func(block string) string {
		m := runs.FindStringSubmatch(block)
		args, title := m[1], m[2]
		if printed[args] == "" {
			cmd := exec.Command(program(t), append([]string{"run", "--format", "markdown", "--out",
				filepath.Join(t.TempDir(), "run")}, strings.Fields(args)...)...)
			cmd.Dir = top
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("memtox run %s: %v", args, err)
			}
			printed[args] = string(out)
		}
		return "<!-- memtox run " + args + ": " + title + " -->\n" + table(t, printed[args], title) + "<!-- end -->"
	})
	if *update {
		if err := os.WriteFile(path, []byte(renewed), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if renewed != string(page) {
		t.Errorf("the tables of README.md are not what `memtox run` prints; renew them with\n\tMEMTOX_LONG=1 go test " +
			"./scripts/doccheck -run Tables -update")
	}
}

var sections = regexp.MustCompile(`(?s)<!-- section: ([^\n]*?) -->\n.*?<!-- end -->`)

// runs are tables of other runs, with the flags that they were made with.
var runs = regexp.MustCompile(`(?s)<!-- memtox run (--[^\n:]*(?::[^\n: ][^\n:]*)*): ([^\n]*?) -->\n.*?<!-- end -->`)

// campaigns are tables of adaptive attacks, with the flags that they were made with.
var campaigns = regexp.MustCompile(`(?s)<!-- memtox attack ([^\n]*?) -->\n.*?<!-- end -->`)

// table is the first table under a heading of the Markdown output.
func table(t *testing.T, out, title string) string {
	t.Helper()
	_, rest, ok := strings.Cut(out, "### "+title)
	if !ok {
		t.Fatalf("the run prints no section %q", title)
	}
	var b strings.Builder
	for line := range strings.Lines(rest) {
		switch {
		case strings.HasPrefix(line, "|"):
			b.WriteString(line)
		case b.Len() > 0:
			return b.String()
		}
	}
	return b.String()
}
