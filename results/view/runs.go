package view

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/results"
)

// maxRuns bounds how many runs are listed, maxDepth how deep it looks.
const (
	maxRuns  = 2000
	maxDepth = 3
)

// Runs are the runs under a directory, or the one run that the directory is.
type Runs struct {
	root string

	mu     sync.Mutex
	opened map[string]*openRun // by key
}

// NewRuns finds the runs of a directory. It is an error if it holds none.
func NewRuns(dir string) (*Runs, error) {
	r := &Runs{root: dir, opened: map[string]*openRun{}}
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("looking for runs in %s: %w: there is no run.json in it or below; name a run directory, or "+
			"make a run with memtox run", dir, fs.ErrNotExist)
	}
	return r, nil
}

// keys are the paths of run directories relative to the root, with slashes; "."
// is the root itself.
func (r *Runs) keys() ([]string, error) {
	if isRun(r.root) {
		return []string{"."}, nil
	}
	if _, err := os.Stat(r.root); err != nil {
		return nil, fmt.Errorf("looking for runs: %w", err)
	}
	var out []string
	err := filepath.WalkDir(r.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == r.root {
				return err
			}
			return fs.SkipDir // a directory that cannot be read holds no run for us
		}
		if !d.IsDir() || path == r.root {
			return nil
		}
		rel, err := filepath.Rel(r.root, path)
		if err != nil || strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if isRun(path) {
			out = append(out, filepath.ToSlash(rel))
			if len(out) >= maxRuns {
				return fs.SkipAll
			}
			return fs.SkipDir
		}
		if strings.Count(filepath.ToSlash(rel), "/") >= maxDepth-1 {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for runs in %s: %w", r.root, err)
	}
	return out, nil
}

func isRun(dir string) bool {
	st, err := os.Lstat(filepath.Join(dir, "run.json"))
	return err == nil && st.Mode().IsRegular()
}

// RunInfo is a run in the list.
type RunInfo struct {
	Key      string    `json:"key"`
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Dataset  string    `json:"dataset"`
	Model    string    `json:"model"`
	LLM      bool      `json:"llm"`
	Agents   []string  `json:"agents"`
	Defenses []string  `json:"defenses"`
	Planned  int64     `json:"planned"`
	Finished bool      `json:"finished"`
	// Report is the file of its report where a bundle has one.
	Report string `json:"report,omitempty"`
	Error  string `json:"error,omitempty"`
}

// List lists the runs, the newest first.
func (r *Runs) List() ([]RunInfo, error) {
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	out := []RunInfo{}
	for _, k := range keys {
		dir := filepath.Join(r.root, filepath.FromSlash(k))
		info := RunInfo{Key: k}
		if run, err := results.ReadRun(dir); err != nil {
			info.Error = err.Error()
		} else {
			info = infoOf(k, run)
			_, err := os.Lstat(filepath.Join(dir, "manifest.json"))
			info.Finished = err == nil
		}
		out = append(out, info)
	}
	slices.SortStableFunc(out, func(a, b RunInfo) int {
		return cmp.Or(b.Started.Compare(a.Started),
			cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

func infoOf(key string, run *results.Run) RunInfo {
	return RunInfo{Key: key, ID: run.ID, Started: run.Started, Dataset: run.Dataset.Name, Model: run.Model, LLM: run.LLM,
		Agents: append([]string{}, run.Agents...), Defenses: append([]string{}, run.Defenses...), Planned: run.Planned}
}

var (
	errNoRun   = errors.New("there is no such run")
	errNoTrial = errors.New("there is no such trial")
)

// open returns an opened run by its key.
func (r *Runs) open(key string) (*openRun, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.opened[key]; o != nil {
		return o, nil
	}
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(keys, key) { // nothing outside the directory is opened
		return nil, errNoRun
	}
	o := &openRun{dir: filepath.Join(r.root, filepath.FromSlash(key))}
	r.opened[key] = o
	return o, nil
}

// Close closes what was opened.
func (r *Runs) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.opened {
		o.close()
	}
	r.opened = map[string]*openRun{}
}
