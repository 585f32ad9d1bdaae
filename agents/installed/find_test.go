package installed

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A box shows the installation, wherever it lies, and nothing that it is there to hide.
func TestABoxShowsTheInstallationAlone(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "home")
	t.Setenv("HOME", home)
	program := func(path string) string {
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("\x7fELF"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(path, to string) string {
		program(path)
		path = filepath.Join(base, path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	venv := program("home/.local/share/pipx/venvs/hermes/bin/hermes")
	for name, c := range map[string]struct {
		Installation
		want []string
	}{
		"of its own":      {Installation{Program: program("opt/hermes/venv/bin/hermes"), Dir: filepath.Join(base, "opt/hermes")}, []string{"opt/hermes", "opt/hermes/venv"}},
		"of the user's":   {Installation{Program: link("home/.local/bin/hermes", venv)}, []string{"home/.local/bin", "home/.local/share/pipx/venvs/hermes"}},
		"in home/bin":     {Installation{Program: program("home/bin/hermes")}, []string{"home/bin"}},
		"in home":         {Installation{Program: program("home/hermes")}, []string{"home/hermes"}},
		"home is named":   {Installation{Program: program("home/venv/bin/hermes"), Dir: home}, []string{"home/venv"}},
		"above home":      {Installation{Program: program("bin/hermes"), Dir: base}, []string{"bin"}},
		"in home's venvs": {Installation{Program: venv}, []string{"home/.local/share/pipx/venvs/hermes"}},
	} {
		var got []string
		for _, path := range c.keep() {
			rel, err := filepath.Rel(base, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		slices.Sort(got)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	// What stands in /tmp shows not all of it.
	i := Installation{Program: "/tmp/bin/hermes"}
	if got := i.keep(); slices.Contains(got, "/tmp") {
		t.Error(got)
	}
}
