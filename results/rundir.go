package results

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/disk"
)

// runFiles says which files of memtox a run directory holds.
type runFiles struct {
	numbers   map[series][]int // ascending
	halves    []string         // of parts whose trials have no name yet
	final     []string         // files of a finished run, but for the manifest
	temporary []string
}

func listRun(d disk.FS, dir string) (*runFiles, error) {
	if err := plainFolder(in(dir, transcriptsDir)); err != nil {
		return nil, err
	}
	r := &runFiles{numbers: map[series][]int{}}
	known := append(slices.Clip(working), texts)
	for _, folder := range []string{"", transcriptsDir} {
		files, err := d.ReadDir(in(dir, folder))
		if err != nil && (folder == "" || !errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("reading run directory: %w", err)
		}
		for _, f := range files {
			name := path.Join(folder, f.Name())
			switch {
			case strings.HasSuffix(name, tmpSuffix):
				if !f.IsDir() { // one is another's: what waits on the queue's own server is there
					r.temporary = append(r.temporary, name)
				}
			case name == trialsFile, name == decisionsFile, name == indexFile:
				r.final = append(r.final, name)
			default:
				for _, s := range known {
					if n, ok := s.number(name); ok {
						r.numbers[s] = append(r.numbers[s], n)
					}
				}
			}
		}
	}
	for s, numbers := range r.numbers {
		slices.Sort(numbers)
		for _, n := range numbers {
			if s != journals && s != texts && !r.hasPart(n) {
				r.halves = append(r.halves, s.name(n))
			}
		}
	}
	return r, nil
}

// gap names a file that an unfinished run must have and has not: its journals and
// parts are numbered from 1 on, and whatever else there is belongs to one of them.
func (r *runFiles) gap() string {
	last := 0
	for _, n := range slices.Concat(r.numbers[journals], r.numbers[trialParts], r.numbers[texts]) {
		last = max(last, n)
	}
	for n := 1; n <= last; n++ {
		if !slices.Contains(r.numbers[journals], n) && !r.hasPart(n) {
			return journals.name(n)
		}
	}
	if last == 0 && len(r.final) > 0 {
		return manifestFile
	}
	return ""
}

func (r *runFiles) hasPart(n int) bool { return slices.Contains(r.numbers[trialParts], n) }

// working lists what a finished run no longer needs.
func (r *runFiles) working() []string {
	var out []string
	for _, s := range working {
		for _, n := range r.numbers[s] {
			out = append(out, s.name(n))
		}
	}
	return out
}
