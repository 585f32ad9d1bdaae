package doccheck

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/memtox/memtox/"

// rooms are the packages in the order of CONTRIBUTING.md, whose block of rooms names
// one a line.
func rooms(t *testing.T, page string) []string {
	t.Helper()
	_, block, found := strings.Cut(page, "\n```rooms\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !found || !closed {
		t.Fatal("CONTRIBUTING.md has no block of rooms")
	}
	var out []string
	for line := range strings.Lines(block) {
		name := strings.TrimSuffix(strings.Fields(line)[0], "/")
		if slices.Contains(out, name) {
			t.Errorf("CONTRIBUTING.md has the room %s twice", name)
		}
		out = append(out, name)
	}
	return out
}

// upward are the imports, as "room → room", that do not point down the list, and the
// packages that the list does not have.
func upward(list []string, imports map[string][]string) (wrong []string) {
	for from, all := range imports {
		at := slices.Index(list, from)
		if at < 0 {
			wrong = append(wrong, from+" is not in the list")
			continue
		}
		for _, to := range all {
			if slices.Index(list, to) <= at {
				wrong = append(wrong, from+" → "+to)
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// Every import points down the list of rooms, on every system that is built for.
func TestImportsPointDown(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	list := rooms(t, string(page))
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		imports := map[string][]string{}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				ImportPath string
				Imports    []string
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			from := strings.TrimPrefix(p.ImportPath, module)
			imports[from] = nil
			for _, i := range p.Imports {
				if to, ours := strings.CutPrefix(i, module); ours {
					imports[from] = append(imports[from], to)
				}
			}
		}
		for _, w := range upward(list, imports) {
			t.Errorf("%s: %s", system, w)
		}
		for _, room := range list {
			if _, there := imports[room]; !there && system == "linux" {
				t.Errorf("CONTRIBUTING.md has the room %s, which is no package", room)
			}
		}
	}
	if got := upward([]string{"a", "b"}, map[string][]string{"a": {"b"}, "b": {"a"}, "c": nil}); !slices.Equal(got, []string{"b → a", "c is not in the list"}) {
		t.Errorf("found %v", got)
	}
}

// What runs a trial knows nothing of the wing that keeps, proves and serves, and only
// the command line reaches into it from outside.
func TestTheWingOfTheGuardIsReachedByCommandsOnly(t *testing.T) {
	inside := regexp.MustCompile(`"` + module + `defenses/guard/(store|seal|serve|scan|pending)"`)
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		rel := filepath.ToSlash(path)
		if err != nil || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") ||
			strings.HasPrefix(rel, "../../cmd/") || strings.HasPrefix(rel, "../../defenses/guard/") {
			return err
		}
		source, err := os.ReadFile(path)
		if m := inside.Find(source); m != nil {
			t.Errorf("%s imports %s", rel, m)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
