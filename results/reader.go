package results

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/memtox/memtox/internal/disk"
)

// Want says which columns a pass over the entries needs. Less is faster.
type Want int

// What a pass may want.
const (
	Everything Want = iota
	// Latencies: decisions have trial, index, gate, record and their times only.
	Latencies
	// TrialsOnly: entries have no decisions.
	TrialsOnly
)

// Reader reads the rows of a run directory: of a finished run, of one that is
// being written, or of one that was killed. It sees what was there when it was
// opened. It may be used by one goroutine at a time.
type Reader struct {
	dir      string
	run      *Run
	about    File // run.json
	finished bool
	parts    []*openedPart
	journals []*journalFile

	places func() (map[uint64]place, error)
	unzip  *zstd.Decoder
	last   place // of the frame that was unpacked last: the next transcript is often in it
	frame  []byte
}

// OpenReader opens a run directory for reading.
func OpenReader(dir string) (*Reader, error) {
	run, about, err := readRun(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, run: run, about: about}
	r.places = sync.OnceValues(r.readPlaces)
	if r.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxTranscript)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	// A run that is being written may make a part of a journal, or finish,
	// while its files are opened. What is opened stays readable.
	for try := 0; ; try++ {
		err := r.open()
		if err == nil {
			return r, nil
		}
		r.closeFiles()
		missing := errors.Is(err, fs.ErrNotExist)
		if missing && try < 10 {
			continue
		}
		r.unzip.Close()
		if missing {
			err = Changed(dir, "%v", err)
		}
		return nil, err
	}
}

func (r *Reader) open() error {
	if exists(in(r.dir, manifestFile)) {
		p, err := openFinished(disk.OS, r.dir, r.run, r.about)
		if err != nil {
			return err
		}
		r.finished, r.parts = true, []*openedPart{p}
		return nil
	}
	files, err := listRun(disk.OS, r.dir)
	if err != nil {
		return err
	}
	if name := files.gap(); name != "" {
		return fmt.Errorf("opening %s: %w", in(r.dir, name), fs.ErrNotExist)
	}
	for _, n := range files.numbers[trialParts] {
		p, err := openPart(disk.OS, r.dir, n, r.run, r.about)
		if err != nil {
			return err
		}
		r.parts = append(r.parts, p)
	}
	for _, n := range files.numbers[journals] {
		if files.hasPart(n) {
			continue
		}
		f, err := openFile(disk.OS, r.dir, journals.name(n), os.O_RDONLY)
		if err != nil {
			return err
		}
		j := &journalFile{n: n, f: f}
		r.journals = append(r.journals, j)
		if _, _, err := j.scan(r.about); err != nil {
			return err
		}
	}
	return nil
}

// Run returns the run's run.json.
func (r *Reader) Run() *Run { return r.run }

// Finished reports whether the run was finished when the reader was opened.
func (r *Reader) Finished() bool { return r.finished }

// Trials returns the number of rows of trials that can be read; exact for a
// finished run.
func (r *Reader) Trials() int64 {
	var n int64
	for _, p := range r.parts {
		n += p.trials.p.NumRows()
	}
	for _, j := range r.journals {
		n += int64(len(j.slots))
	}
	return n
}

// Entries yields every finished trial once, in the order of the plan. An entry
// is valid until the next one; its texts and pointers stay valid. After an
// error nothing follows.
func (r *Reader) Entries(want Want) iter.Seq2[*Entry, error] {
	var sources []entries
	for _, p := range r.parts {
		sources = append(sources, p.entries(want))
	}
	for _, j := range r.journals {
		sources = append(sources, j.entries(want))
	}
	return merge(sources)
}

// maxTranscript bounds what a transcript may unpack to.
const maxTranscript = 1 << 30

// ErrNoTranscript: the run has no transcript of the trial.
var ErrNoTranscript = errors.New("no transcript of this trial")

// Transcript returns the transcript of a trial by its id, without reading the
// others.
func (r *Reader) Transcript(id string) ([]byte, error) {
	n, ok := idNumber(id)
	if !ok {
		return nil, badID(id)
	}
	places, err := r.places()
	if err != nil {
		return nil, err
	}
	at, ok := places[n]
	if !ok {
		return nil, fmt.Errorf("trial %s in %s: %w", id, r.dir, ErrNoTranscript)
	}
	fail := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("reading the transcript of trial %s in %s at byte %d: %w", id,
			in(r.dir, texts.name(at.part)), at.offset, err)
	}
	frame := r.frame
	if frame == nil || r.last.part != at.part || r.last.offset != at.offset || r.last.length != at.length ||
		r.last.crc != at.crc {
		if frame, err = r.unpack(at); err != nil {
			return fail(err)
		}
		r.last, r.frame = at, frame
		if len(frame) > maxRemembered {
			r.frame = nil
		}
	}
	end := at.start + at.size
	if at.size == 0 {
		end = int64(len(frame))
	}
	if at.start < 0 || end < at.start || end > int64(len(frame)) {
		return fail(errors.New("it ends behind its frame; the index is damaged"))
	}
	return frame[at.start:end:end], nil
}

// maxRemembered bounds the frame that a reader holds on to: a huge one is not
// worth its room.
const maxRemembered = 8 << 20

// unpack reads a frame. Nobody writes to what it returns.
func (r *Reader) unpack(at place) ([]byte, error) {
	f, err := openFile(disk.OS, r.dir, texts.name(at.part), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if at.offset < 0 || at.length < 0 || at.length > st.Size() || at.offset > st.Size()-at.length {
		return nil, errors.New("it ends behind the file; the file was cut")
	}
	frame := make([]byte, at.length)
	if _, err := f.ReadAt(frame, at.offset); err != nil {
		return nil, err
	}
	if crc32.Checksum(frame, castagnoli) != at.crc {
		return nil, errors.New("checksum mismatch; the file is damaged")
	}
	return r.unzip.DecodeAll(frame, nil)
}

func (r *Reader) readPlaces() (map[uint64]place, error) {
	m := map[uint64]place{}
	for _, p := range r.parts {
		c := openCursor[indexRow](p.places)
		defer c.close()
		for x, err := range c.rows() {
			if err != nil {
				return nil, err
			}
			if id, ok := idNumber(x.Trial); ok {
				m[id] = x.place()
			}
		}
	}
	for _, j := range r.journals {
		for i, at := range j.places {
			if at.length > 0 {
				m[j.slots[i].id] = at
			}
		}
	}
	return m, nil
}

// Close closes the files.
func (r *Reader) Close() error {
	r.closeFiles()
	r.unzip.Close()
	return nil
}

func (r *Reader) closeFiles() {
	for _, p := range r.parts {
		p.close()
	}
	for _, j := range r.journals {
		j.f.Close()
	}
	r.parts, r.journals = nil, nil
}

// openedPart is a part, or the files of a finished run.
type openedPart struct {
	trials, decisions *parquetFile
	places            *parquetFile // nil where no trial has a transcript
}

// openPart opens a part of a run that is not finished. Those that a memtox before
// format 3 wrote have no manifest.
func openPart(d disk.FS, dir string, n int, run *Run, about File) (*openedPart, error) {
	m, err := manifestFor(dir, manifestParts.name(n), about)
	if errors.Is(err, fs.ErrNotExist) && run.Format < sealedFormat {
		m, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	return openTables(d, dir, [3]string{trialParts.name(n), decisionParts.name(n), indexParts.name(n)}, m)
}

// openFinished opens the rows of a finished run and compares everything that the
// manifest names with it. Every trial of the plan has its row: whoever wrote a
// manifest over fewer, or over more, did not run that plan.
func openFinished(d disk.FS, dir string, run *Run, about File) (*openedPart, error) {
	m, err := manifestFor(dir, manifestFile, about)
	if err != nil {
		return nil, err
	}
	p, err := openTables(d, dir, [3]string{trialsFile, decisionsFile, indexFile}, m)
	if err != nil {
		return nil, err
	}
	err = m.rest(dir)
	if rows := p.trials.p.NumRows(); err == nil && rows != run.Planned {
		err = Changed(in(dir, trialsFile), "it has %d trials, and %s plans %d of a finished run", rows, runFile,
			run.Planned)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// openTables opens the three files and holds them to the manifest, if there is one.
func openTables(d disk.FS, dir string, names [3]string, m *Manifest) (*openedPart, error) {
	p := &openedPart{}
	for i, to := range [...]**parquetFile{&p.trials, &p.decisions, &p.places} {
		path, none := in(dir, names[i]), i == 2 // perhaps no trial has a transcript
		var want *File
		var err error
		if m != nil {
			want = m.file(names[i])
		}
		switch {
		case m == nil || want != nil:
			*to, err = openParquet(d, dir, names[i], want)
			if none && m == nil && errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		case exists(path):
			err = Changed(path, "the run wrote no such file")
		case !none:
			err = Changed(path, "it is missing")
		}
		if err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *openedPart) close() {
	for _, f := range []*parquetFile{p.trials, p.decisions, p.places} {
		if f != nil {
			f.f.Close()
		}
	}
}
