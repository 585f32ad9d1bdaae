package doccheck

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Each recipe of CONTRIBUTING.md that changes the repository is followed in one copy
// of it, from top to bottom, and what comes of it is run.
func TestRecipesWorkInTheRepository(t *testing.T) {
	long(t)
	if runtime.GOOS == "windows" {
		t.Skip("the page shows a POSIX shell")
	}
	top, dir := root(t), t.TempDir()
	copyTree(t, top, dir)
	page, err := os.ReadFile(filepath.Join(top, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]int{}
	for _, b := range blocks(string(page)) {
		switch {
		case b.tree != "":
			put(t, filepath.Join(dir, b.tree), b.body)
			done["files"]++
		case b.insert != "" && b.after == "": // TestAMetricIsOneEntry puts it at the end of its table
		case b.insert != "":
			insert(t, filepath.Join(dir, b.insert), b)
			done["inserts"]++
		case b.inTree:
			for line := range strings.Lines(b.body) {
				cmd := exec.Command("sh", "-ec", line)
				cmd.Dir = dir
				// Paths that are trimmed let the copy use what was built of the original.
				cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath -vet=off", "MEMTOX_LONG=")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("CONTRIBUTING.md:%d: %s: %v\n%s", b.line, strings.TrimSpace(line), err, out)
				}
				done["commands"]++
			}
		case b.file != "" && b.lang != "go":
			put(t, filepath.Join(dir, b.file), b.body)
		}
	}
	if done["files"] < 3 || done["inserts"] < 3 || done["commands"] < 5 {
		t.Errorf("CONTRIBUTING.md shows %v: the check has lost its way", done)
	}
}

// copyTree copies the files that git knows, as they are.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	cmd.Dir = from
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("without git it is not known which files make the repository: %v", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(to, name), string(data))
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// insert puts the lines of a block behind the one line that holds a text.
func insert(t *testing.T, path string, b block) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	found := 0
	for line := range strings.Lines(string(data)) {
		out.WriteString(line)
		if strings.Contains(line, b.after) {
			out.WriteString(b.body)
			found++
		}
	}
	if found != 1 {
		t.Fatalf("CONTRIBUTING.md:%d: %d lines of %s hold %s", b.line, found, b.insert, b.after)
	}
	put(t, path, out.String())
}
