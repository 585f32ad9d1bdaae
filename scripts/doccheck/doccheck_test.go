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

// Whoever follows two pages in one folder is not refused because the second writes
// where the first has written.
func TestNoTwoPagesShareADirectory(t *testing.T) {
	top := root(t)
	written := regexp.MustCompile(`(?:--out|-o)[ =]"?([a-z][\w/-]*)(?:[";\s]|$)`)
	of := map[string]string{}
	for _, page := range pages(t, top) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks(string(data)) {
			for _, m := range written.FindAllStringSubmatch(b.body, -1) {
				if first := of[m[1]]; first != "" && first != page {
					t.Errorf("%s:%d: %s is a directory that %s writes to as well: take another name", page, b.line, m[1], first)
				}
				of[m[1]] = page
			}
		}
	}
	if len(of) < 15 {
		t.Errorf("the pages write to %d directories: the check has lost its way", len(of))
	}
}

// A fact stands in one page, and others link to it: no page says twelve words in a
// row that another has said. Code may repeat itself, and so may the texts of --help.
func TestNoPageRepeatsAnother(t *testing.T) {
	top := root(t)
	code := regexp.MustCompile("(?ms)^```.*?^```|^\\|.*?$")
	const row = 12
	said := map[string]string{}
	for _, page := range pages(t, top) {
		name, _ := filepath.Rel(top, page)
		if filepath.ToSlash(name) == "docs/command-line.md" {
			continue
		}
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(strings.ToLower(code.ReplaceAllString(string(data), "")))
		for i := 0; i+row <= len(words); i++ {
			passage := strings.Join(words[i:i+row], " ")
			if first := said[passage]; first != "" && first != name {
				t.Errorf("%s and %s both say: %s …; let one of them link to the other", first, name, passage)
				break
			}
			said[passage] = name
		}
	}
	if len(said) < 5000 {
		t.Errorf("the pages hold %d passages: the check has lost its way", len(said))
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

var update = flag.Bool("update", false, "renew the tables and the picture of README.md and docs/results.md")

// The tables of README.md and docs/results.md are what the commands over them print
// today.
func TestTablesAreWhatTheirCommandsPrint(t *testing.T) {
	long(t)
	top := root(t)
	printed := map[string]string{}
	shown := "" // the command whose run is runs/first
	dir := t.TempDir()
	memtox := func(args ...string) string {
		cmd := exec.Command(program(t), args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("memtox %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	for _, name := range []string{"README.md", "docs/results.md"} {
		path := filepath.Join(top, filepath.FromSlash(name))
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		renewed := tables.ReplaceAllStringFunc(string(page), func(block string) string {
			n++
			m := tables.FindStringSubmatch(block)
			command, title := m[1], m[2]
			if printed[command] == "" {
				args := append(strings.Fields(command), "--format", "markdown", "--out", fmt.Sprintf("runs/%d", len(printed)))
				if command == shown { // that run is there already
					args = append(strings.Fields(command), "--format", "markdown", "--resume", "--out", "runs/first")
				}
				printed[command] = memtox(args...)
			}
			return "<!-- memtox " + command + ": " + title + " -->\n" + table(t, printed[command], title) + "<!-- end -->"
		})
		same := func(a, b string) bool { return times.ReplaceAllString(a, "") == times.ReplaceAllString(b, "") }
		renewed = screens.ReplaceAllStringFunc(renewed, func(block string) string {
			n++
			command := screens.FindStringSubmatch(block)[1]
			shown = command
			out := "<!-- memtox " + command + " -->\n```text\n" + memtox(append(strings.Fields(command), "--out", "runs/first")...) + "```\n"
			if same(out, block) {
				return block
			}
			return out
		})
		switch {
		case n == 0:
			t.Errorf("%s shows no table", name)
		case renewed == string(page):
		case *update:
			if err := os.WriteFile(path, []byte(renewed), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("the tables of %s are not what their commands print; renew them with\n\tMEMTOX_LONG=1 go test "+
				"./scripts/doccheck -run Tables -update", name)
		}
	}
	t.Run("picture", func(t *testing.T) {
		memtox("report", "runs/first", "-o", "report.html")
		checkPicture(t, filepath.Join(top, "docs", "report.png"), filepath.Join(dir, "report.html"))
	})
}

// screens are what a command prints, but for the times that it took.
var (
	screens = regexp.MustCompile("(?s)<!-- memtox (run[^:\n]*) -->\n```text\n.*?```\n")
	times   = regexp.MustCompile(` *[\d.]+[µm]?s\n`)
)

// tables stand under a comment with the command that prints them and their heading.
var tables = regexp.MustCompile(`(?s)<!-- memtox ((?:run|attack)[^\n]*?): ([A-Z][^\n]*?) -->\n.*?<!-- end -->`)

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
