package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What differs between systems is which files a package has, and whether their types
// agree. So each package of the module, and each that it needs, is type-checked for the
// systems that the tests do not run on; to compile them takes ten times as long, and the
// release does it.
func TestTypesAgreeOnOtherSystems(t *testing.T) {
	if os.Getenv("MEMTOX_LONG") == "" {
		t.Skip("reads all packages once for each system: MEMTOX_LONG=1 has it do so")
	}
	for _, target := range []string{"darwin/arm64", "windows/amd64"} {
		t.Run(target, func(t *testing.T) {
			n, err := typeCheck("../..", target, "./...")
			if err != nil {
				t.Error(err)
			}
			if n < 100 {
				t.Errorf("%d packages: the check has lost its way", n)
			}
		})
	}
}

// A name that one system lacks is found from another, in a package that is imported.
func TestATypeErrorOfOneSystemIsFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":               "module example.test/m\n\ngo 1.24\n",
		"main.go":              "package main\n\nimport \"example.test/m/part\"\n\nfunc main() { part.Do() }\n",
		"part/do.go":           "package part\n\nfunc Do() { here() }\n",
		"part/here_linux.go":   "package part\n\nfunc here() {}\n",
		"part/here_windows.go": "package part\n\nimport \"syscall\"\n\nfunc here() { syscall.Flock(0, 0) }\n",
		"part/here_other.go":   "//go:build darwin\n\npackage part\n\nfunc here() string { return 1 }\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]string{"linux/amd64": "", "windows/amd64": "syscall.Flock", "darwin/arm64": "as string value"} {
		_, err := typeCheck(dir, target, ".")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
}

// typeCheck type-checks packages and what they import, and returns how many it has
// checked. Of the standard library it reads the declarations alone.
func typeCheck(dir, target, pattern string) (int, error) {
	goos, arch, _ := strings.Cut(target, "/")
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard,Module", pattern)
	list.Dir = dir
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return 0, err
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	files := token.NewFileSet()
	var bad []error
	for d := json.NewDecoder(strings.NewReader(string(out))); ; { // what is imported comes first
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
			Standard        bool
			Module          *struct{ GoVersion string }
		}
		switch err := d.Decode(&p); {
		case err == io.EOF:
			return len(checked), errors.Join(bad...)
		case err != nil:
			return 0, err
		case p.ImportPath == "unsafe":
			continue
		}
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return 0, err
			}
			parsed = append(parsed, f)
		}
		conf := types.Config{
			IgnoreFuncBodies: p.Standard,
			Sizes:            types.SizesFor("gc", arch),
			Error:            func(err error) { bad = append(bad, err) },
			Importer: importer(func(path string) (*types.Package, error) {
				if to := p.ImportMap[path]; to != "" {
					path = to
				}
				if checked[path] == nil {
					return nil, errors.New("not listed before: " + path)
				}
				return checked[path], nil
			}),
		}
		if p.Module != nil && p.Module.GoVersion != "" {
			conf.GoVersion = "go" + p.Module.GoVersion
		}
		checked[p.ImportPath], _ = conf.Check(p.ImportPath, files, parsed, nil) // Error has its errors
	}
}

type importer func(string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
