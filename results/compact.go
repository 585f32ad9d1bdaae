package results

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/memtox/memtox/internal/disk"
)

// tables are the three files that rows go to.
type tables struct {
	disk      disk.FS
	dir       string
	trials    *table[Trial]
	decisions *table[Decision]
	places    *table[indexRow] // nil without transcripts
	names     [3]string
	page      int
}

// createTables begins the three files; that of the transcripts only when the
// first comes.
func createTables(d disk.FS, dir string, names [3]string, page int) (*tables, error) {
	t := &tables{disk: d, dir: dir, names: names, page: page}
	var err error
	if t.trials, err = createTable[Trial](d, dir, names[0], page, trialsGroup); err != nil {
		return nil, err
	}
	if t.decisions, err = createTable[Decision](d, dir, names[1], page, callsGroup); err != nil {
		t.abandon()
		return nil, err
	}
	return t, nil
}

func (t *tables) add(e *Entry) error {
	if err := t.trials.add(&e.Trial); err != nil {
		return err
	}
	for i := range e.Decisions {
		if err := t.decisions.add(&e.Decisions[i]); err != nil {
			return err
		}
	}
	if !e.HasTranscript() {
		return nil
	}
	if t.places == nil {
		var err error
		if t.places, err = createTable[indexRow](t.disk, t.dir, t.names[2], t.page, trialsGroup); err != nil {
			return err
		}
	}
	return t.places.add(&indexRow{Trial: e.Trial.ID, Index: e.Trial.Index, Part: int32(e.at.part), Offset: e.at.offset,
		Length: e.at.length, CRC: int64(e.at.crc), Start: e.at.start, Size: e.at.size})
}

// publish completes the files and names them: the trials last, for their name
// says that the others are there.
func (t *tables) publish(seal func([]File) error) ([]File, error) {
	all := []interface {
		close() (File, error)
		publish() error
	}{t.trials, t.decisions}
	if t.places != nil {
		all = append(all, t.places)
	}
	files := make([]File, len(all))
	var closing errgroup.Group // each has a last group of rows to compress
	for i, x := range all {
		closing.Go(func() (err error) {
			files[i], err = x.close()
			return err
		})
	}
	if err := closing.Wait(); err != nil {
		return nil, err
	}
	for _, x := range all[1:] {
		if err := x.publish(); err != nil {
			return nil, err
		}
	}
	if seal != nil {
		if err := seal(files); err != nil {
			return nil, err
		}
	}
	return files, t.trials.publish()
}

func (t *tables) abandon() {
	t.trials.abandon()
	if t.decisions != nil {
		t.decisions.abandon()
	}
	if t.places != nil {
		t.places.abandon()
	}
}

// write fills the three files and names them. visit, if not nil, is called with every
// entry, and seal, if not nil, just before the last file gets its name.
func write(d disk.FS, dir string, names [3]string, page int, from entries, visit func(*Entry) error,
	seal func([]File) error) ([]File, error) {
	t, err := createTables(d, dir, names, page)
	if err != nil {
		return nil, err
	}
	for e, err := range ahead(from) {
		if err == nil {
			err = t.add(e)
		}
		if err == nil && visit != nil {
			err = visit(e)
		}
		if err != nil {
			t.abandon()
			return nil, err
		}
	}
	files, err := t.publish(seal)
	if err != nil {
		t.abandon()
	}
	return files, err
}

// ahead reads entries while those before them are used.
func ahead(from entries) entries {
	return func(yield func(*Entry, error) bool) {
		type batch struct {
			entries []Entry
			err     error  // that follows them
			fault   string // a panic of what reads them, for whoever catches those of the caller
		}
		read, free, enough := make(chan batch), make(chan []Entry, 2), make(chan struct{})
		free <- nil
		free <- nil
		go func() {
			defer close(read)
			b := batch{entries: <-free}
			pass := func() bool {
				select {
				case read <- b:
					b = batch{entries: <-free}
					return true
				case <-enough:
					return false
				}
			}
			defer func() {
				if p := recover(); p != nil {
					b.fault = fmt.Sprintf("%v\n%s", p, debug.Stack())
					pass()
				}
			}()
			for e, err := range from {
				if b.err = err; err == nil {
					b.entries = slices.Grow(b.entries, 1)[:len(b.entries)+1] // whose decisions have room
					own := &b.entries[len(b.entries)-1]
					own.Trial, own.Decisions, own.at = e.Trial, append(own.Decisions[:0], e.Decisions...), e.at
				}
				if (err != nil || len(b.entries) == rowBatch) && !pass() {
					return
				}
			}
			pass()
		}()
		defer func() {
			close(enough)
			for range read { // until the files are nobody's
				free <- nil // for the one that was not given back
			}
		}()
		for b := range read {
			for i := range b.entries {
				if !yield(&b.entries[i], nil) {
					return
				}
			}
			if b.fault != "" {
				panic(b.fault)
			}
			if b.err != nil && !yield(nil, b.err) {
				return
			}
			free <- b.entries[:0]
		}
	}
}

// writePart makes a part of a full journal file and removes the file.
func writePart(d disk.FS, dir string, w *writing, run File) error {
	_, err := write(d, dir, [3]string{trialParts.name(w.n), decisionParts.name(w.n), indexParts.name(w.n)}, partPage, w.entries(Everything), nil,
		func(files []File) error {
			return writeManifest(d, dir, manifestParts.name(w.n), &Manifest{Files: append(files, run)})
		})
	if err != nil {
		return err
	}
	path := in(dir, journals.name(w.n))
	if err := d.Remove(path); err != nil {
		return diskError("removing", path, err)
	}
	return nil
}

// Finish compacts everything to the files of a finished run and closes the
// journal. visit, if not nil, is given every entry as it is stored, in the order
// of the plan; an entry is valid until it returns. If Finish fails the directory
// can be resumed. It needs constant memory.
func (j *Journal) Finish(visit func(*Entry) error) (*Manifest, error) {
	ended, err := j.halt()
	if ended {
		return nil, fmt.Errorf("journal of %s: closed", j.dir)
	}
	defer j.unlock()
	defer j.closeFiles()
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.total = len(j.done)
	j.done = nil // tens of megabytes where there are a million trials
	j.mu.Unlock()
	return j.finish(visit)
}

func (j *Journal) finish(visit func(*Entry) error) (*Manifest, error) {
	var opened []*openedPart
	defer func() {
		for _, p := range opened {
			p.close()
		}
	}()
	sources := []entries{j.cur.entries(Everything)}
	for _, n := range j.parts {
		p, err := openPart(j.disk, j.dir, n, j.run, j.about)
		if err != nil {
			return nil, err
		}
		opened = append(opened, p)
		sources = append(sources, p.entries(Everything))
	}
	files, err := write(j.disk, j.dir, [3]string{trialsFile, decisionsFile, indexFile}, finalPage, merge(sources), visit,
		nil)
	if err != nil {
		return nil, err
	}
	man := &Manifest{Files: append(files, j.about), Pace: j.Pace}
	if exists(in(j.dir, VerdictsFile)) {
		f, err := FileOf(j.dir, VerdictsFile)
		if err != nil {
			return nil, err
		}
		man.Files = append(man.Files, f)
	}
	for n := range j.cur.n { // journals are numbered without a gap
		f, err := FileOf(j.dir, texts.name(n+1))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		man.Transcripts = append(man.Transcripts, f)
	}
	if err := writeManifest(j.disk, j.dir, manifestFile, man); err != nil {
		return nil, err
	}
	// The run is finished. What cannot be removed now is removed when somebody
	// resumes, and read by nobody.
	for _, p := range opened {
		p.close()
	}
	j.cur.f.Close()
	if left, err := listRun(j.disk, j.dir); err == nil {
		for _, name := range left.working() {
			j.disk.Remove(in(j.dir, name))
		}
	}
	return man, nil
}
