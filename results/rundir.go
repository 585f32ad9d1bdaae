package results

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/disk"
)

// runFiles says which files of memtox a run directory holds.
type runFiles struct {
	journals  []int    // numbers, ascending
	parts     []int    // numbers of complete parts, ascending
	halves    []int    // numbers whose decisions have a name and whose trials have none
	indexes   []int    // numbers of transcript indexes
	texts     []int    // numbers of transcripts
	final     []string // files of a finished run, but for the manifest
	temporary []string
}

func listRun(d disk.FS, dir string) (*runFiles, error) {
	var r runFiles
	var decisions, manifests []int
	files, err := d.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading run directory: %w", err)
	}
	for _, f := range files {
		name := f.Name()
		if strings.HasSuffix(name, tmpSuffix) {
			if !f.IsDir() { // one is another's: what waits on the queue's own server is there
				r.temporary = append(r.temporary, name)
			}
		} else if n, ok := number(name, journalPrefix, ""); ok {
			r.journals = append(r.journals, n)
		} else if n, ok := number(name, trialsPrefix, parquetSuffix); ok {
			r.parts = append(r.parts, n)
		} else if n, ok := number(name, decisionsPrefix, parquetSuffix); ok {
			decisions = append(decisions, n)
		} else if n, ok := number(name, manifestPrefix, jsonSuffix); ok {
			manifests = append(manifests, n)
		} else if name == trialsFile || name == decisionsFile {
			r.final = append(r.final, name)
		}
	}
	if err := plainFolder(in(dir, transcriptsDir)); err != nil {
		return nil, err
	}
	files, err = d.ReadDir(in(dir, transcriptsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading run directory: %w", err)
	}
	for _, f := range files {
		name := f.Name()
		if strings.HasSuffix(name, tmpSuffix) {
			r.temporary = append(r.temporary, transcriptsDir+"/"+name)
		} else if n, ok := number(name, indexPrefix, parquetSuffix); ok {
			r.indexes = append(r.indexes, n)
		} else if n, ok := number(name, partPrefix, partSuffix); ok {
			r.texts = append(r.texts, n)
		} else if transcriptsDir+"/"+name == indexFile {
			r.final = append(r.final, indexFile)
		}
	}
	slices.Sort(r.journals)
	slices.Sort(r.parts)
	slices.Sort(r.indexes)
	for _, n := range slices.Concat(decisions, r.indexes, manifests) {
		if !r.hasPart(n) && !slices.Contains(r.halves, n) {
			r.halves = append(r.halves, n)
		}
	}
	return &r, nil
}

// gap names a file that an unfinished run must have and has not: its journals and
// parts are numbered from 1 on, and whatever else there is belongs to one of them.
func (r *runFiles) gap() string {
	last := 0
	for _, n := range slices.Concat(r.journals, r.parts, r.texts) {
		last = max(last, n)
	}
	for n := 1; n <= last; n++ {
		if !slices.Contains(r.journals, n) && !r.hasPart(n) {
			return journalName(n)
		}
	}
	if last == 0 && len(r.final) > 0 {
		return manifestFile
	}
	return ""
}

func (r *runFiles) hasPart(n int) bool { return slices.Contains(r.parts, n) }

// working lists what a finished run no longer needs.
func (r *runFiles) working() []string {
	var out []string
	for _, n := range r.journals {
		out = append(out, journalName(n))
	}
	for _, n := range r.parts {
		out = append(out, trialsPart(n), decisionsPart(n), indexPart(n), manifestPart(n))
	}
	for _, n := range r.halves {
		out = append(out, decisionsPart(n), indexPart(n), manifestPart(n))
	}
	return out
}
