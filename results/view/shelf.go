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

// maxRuns bounds how many runs a shelf lists, maxDepth how deep it looks.
const (
	maxRuns  = 2000
	maxDepth = 3
)

// Shelf is the runs under a directory, or the one run that the directory is.
type Shelf struct {
	root string

	mu     sync.Mutex
	opened map[string]*Book // by key
}

// NewShelf returns the shelf of a directory. It is an error if it holds no run.
func NewShelf(dir string) (*Shelf, error) {
	s := &Shelf{root: dir, opened: map[string]*Book{}}
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("looking for runs in %s: %w: there is no run.json in it or below; name a run directory, or make a run with memtox run", dir, fs.ErrNotExist)
	}
	return s, nil
}

// keys are the paths of run directories relative to the root, with slashes; "."
// is the root itself.
func (s *Shelf) keys() ([]string, error) {
	if isRun(s.root) {
		return []string{"."}, nil
	}
	if _, err := os.Stat(s.root); err != nil {
		return nil, fmt.Errorf("looking for runs: %w", err)
	}
	var out []string
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == s.root {
				return err
			}
			return fs.SkipDir // a directory that cannot be read holds no run for us
		}
		if !d.IsDir() || path == s.root {
			return nil
		}
		rel, err := filepath.Rel(s.root, path)
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
		return nil, fmt.Errorf("looking for runs in %s: %w", s.root, err)
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
	Error    string    `json:"error,omitempty"`
}

// List lists the runs, the newest first.
func (s *Shelf) List() ([]RunInfo, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	out := []RunInfo{}
	for _, k := range keys {
		dir := filepath.Join(s.root, filepath.FromSlash(k))
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
	slices.SortStableFunc(out, func(a, b RunInfo) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Key, b.Key)) })
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

// Book returns an opened run by its key.
func (s *Shelf) Book(key string) (*Book, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.opened[key]; b != nil {
		return b, nil
	}
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(keys, key) { // nothing outside the shelf is opened
		return nil, errNoRun
	}
	b := &Book{dir: filepath.Join(s.root, filepath.FromSlash(key)), key: key}
	s.opened[key] = b
	return b, nil
}

// Close closes what was opened.
func (s *Shelf) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.opened {
		b.close()
	}
	s.opened = map[string]*Book{}
}
