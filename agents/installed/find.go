package installed

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/installed/box"
	"github.com/memtox/memtox/internal/text"
)

// Surroundings are where installations are looked for.
type Surroundings struct {
	Lookup func(string) (string, bool) // reads the environment; nil knows no variable
	Dir    string                      // what relative paths are relative to; "" is the process's own
}

func (s Surroundings) get(name string) string {
	if s.Lookup == nil {
		return ""
	}
	v, _ := s.Lookup(name)
	return v
}

// Home is the folder of memtox's own installation of a product.
func (s Surroundings) Home(product string) string {
	data := s.get("XDG_DATA_HOME")
	home := cmp.Or(s.get("HOME"), s.get("USERPROFILE"))
	switch {
	case filepath.IsAbs(data):
	case runtime.GOOS == "darwin":
		data = filepath.Join(home, "Library", "Application Support")
	case runtime.GOOS == "windows":
		data = s.get("LOCALAPPDATA")
	default:
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "memtox", "agents", product)
}

var errAbsent = errors.New("it is not installed")

// Find finds an installation and asks it for its version: in a folder or a program that is
// named, else in memtox's own folder, else on PATH.
func (p *Product) Find(ctx context.Context, s Surroundings, named string) (*Installation, error) {
	i := &Installation{}
	switch {
	case named != "":
		named = s.path(named)
		st, err := os.Stat(named)
		if err != nil {
			return nil, fmt.Errorf("%w at %s: %w", errAbsent, named, err)
		}
		if i.Program = named; st.IsDir() {
			if i = p.in(named); i == nil {
				return nil, fmt.Errorf("%w in %s: there is none of %s", errAbsent, named, strings.Join(p.Programs, ", "))
			}
		}
	case p.in(s.Home(p.Name)) != nil:
		i = p.in(s.Home(p.Name))
	default:
		i.Program = s.onPath(p.Programs[len(p.Programs)-1])
	}
	if i.Program == "" {
		return nil, fmt.Errorf("%w in %s, and no folder of PATH has the program %s", errAbsent, s.Home(p.Name),
			p.Programs[len(p.Programs)-1])
	}
	said, err := p.Version.ask(ctx, i, i.Program)
	if err != nil {
		return i, fmt.Errorf("asking %s for its version: %w", i.Program, err)
	}
	i.Version = said
	return i, nil
}

func (s Surroundings) path(p string) string {
	if !filepath.IsAbs(p) {
		p = filepath.Join(s.Dir, p)
	}
	p, _ = filepath.Abs(p)
	return p
}

// in is the installation in a folder, or nil.
func (p *Product) in(dir string) *Installation {
	for _, program := range p.Programs {
		if path := filepath.Join(dir, filepath.FromSlash(program)); runnable(path) {
			return &Installation{Program: path, Dir: dir}
		}
	}
	return nil
}

func runnable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && (runtime.GOOS == "windows" || st.Mode()&0o111 != 0)
}

// onPath is a program of the user's PATH, or "".
func (s Surroundings) onPath(program string) string {
	for _, dir := range filepath.SplitList(s.get("PATH")) {
		if path := filepath.Join(dir, program); filepath.IsAbs(dir) && runnable(path) {
			return path
		}
	}
	return ""
}

// versionTime bounds the question for a version.
const versionTime = time.Minute

// ask asks a program in a box of its own: some begin to write into the home by it.
func (q *Question) ask(ctx context.Context, i *Installation, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	b, err := box.New(box.Options{Keep: i.keep()})
	if err != nil {
		return "", err
	}
	defer b.Close()
	said, err := b.Run(ctx, box.Command{Args: append([]string{program}, q.Args...), Env: []string{"PATH=" + i.path()}})
	m := q.Pattern.FindStringSubmatch(said)
	switch {
	case len(m) > 1:
		return text.Clip(m[1], 40), nil
	case err != nil:
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return "", fmt.Errorf("it says %q, which names no version", text.Clip(first, 100))
}

// keep are the folders that the installation needs to see, wherever they lie: those of its
// program, of what that is a link to, and of what interprets it. None of them shows what the
// box is there to hide.
func (i *Installation) keep() []string {
	var out []string
	add := func(path string) {
		if path != "" && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	hidden := box.Hidden()
	home, err := os.UserHomeDir()
	if err == nil {
		hidden = append(hidden, home)
	}
	shows := func(dir string) bool { // what a box hides, or what is the user's beside programs
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			real = dir
		}
		return real == "/" || filepath.Base(real) == ".local" ||
			slices.ContainsFunc(hidden, func(h string) bool { return h == real || strings.HasPrefix(h, real+"/") })
	}
	if i.Dir != "" && !shows(i.Dir) {
		add(i.Dir)
	}
	for _, p := range i.programs() {
		for _, path := range []string{filepath.Dir(filepath.Dir(p)), filepath.Dir(p), p} {
			if !shows(path) {
				add(path)
				break
			}
		}
	}
	return slices.DeleteFunc(out, func(dir string) bool { _, err := os.Stat(dir); return err != nil })
}

// programs are the program, what it is a link to, and what interprets either.
func (i *Installation) programs() []string {
	var out []string
	for path, n := i.Program, 0; path != "" && n < 4; n++ {
		out = append(out, path)
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			break
		}
		if real != path {
			out = append(out, real)
		}
		path = interpreter(real)
	}
	return out
}

// interpreter is what a script's first line names, or "".
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 512).ReadSlice('\n')
	rest, ok := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		if found, err := exec.LookPath(words[len(words)-1]); err == nil {
			return found
		}
		return ""
	}
	return words[0]
}

// path is the PATH of its processes: where its programs are, and the system's.
func (i *Installation) path() string {
	var dirs []string
	for _, p := range i.programs() {
		if dir := filepath.Dir(p); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(append(dirs, "/usr/local/bin", "/usr/bin", "/bin"), string(filepath.ListSeparator))
}
