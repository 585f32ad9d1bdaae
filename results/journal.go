package results

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/memtox/memtox/internal/disk"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrFinished: the directory holds a finished run; read it.
	ErrFinished = errors.New("the run is finished")
	// ErrExists: the directory holds a run already.
	ErrExists = errors.New("holds a run already; go on with --resume, or choose another directory with --out")
	// ErrNotRun: the directory holds something that is no run.
	ErrNotRun = errors.New("is not empty and holds no run; choose another directory with --out")
	// ErrDangling: the directory, or one above it, is a symbolic link to nothing.
	ErrDangling = errors.New("is a symbolic link to a place that does not exist; make that place, or choose another " +
		"directory with --out")
	// ErrInUse: another process writes to the directory.
	ErrInUse = errors.New("another memtox is writing to it; wait for it to end or stop it")
)

// Defaults of Options.
const (
	DefaultPartRows  = 200_000
	DefaultSyncEvery = time.Second
)

// Options of a Journal. The zero value is what a run uses.
type Options struct {
	// PartRows is the number of trials after which the journal becomes Parquet
	// parts; DefaultPartRows if 0.
	PartRows int
	// SyncEvery is how often appended rows are made safe against a failure of
	// the machine (rows are safe against a death of the process as soon as
	// Append returns); DefaultSyncEvery if 0.
	SyncEvery time.Duration
	// Disk is what files are written with; the operating system's if nil.
	Disk disk.FS
}

// Journal takes the rows of a run as trials finish and compacts them to Parquet
// at the end. Append may be called by many goroutines at once.
//
// A run directory while it is written:
//
//	run.json                      what the run is
//	lock                          held by the writing process
//	journal-N                     finished trials, one record each, in the order in which they finished
//	transcripts/part-N.jsonl.zst  their transcripts, a zstd frame for those that were appended together
//	trials-N.parquet, decisions-N.parquet, transcripts/index-N.parquet, manifest-N.json
//	                              a journal that was full, sorted by plan order
//
// and once it is finished:
//
//	run.json, manifest.json, trials.parquet, decisions.parquet,
//	transcripts/index.parquet, transcripts/part-N.jsonl.zst
//
// A record has a checksum and is written with one call, so a process that is
// killed leaves at most one torn record, at the end. A part exists once
// trials-N.parquet has its name, and only then journal-N is removed. A run is
// finished once manifest.json has its name, and only then parts and journals
// are removed. Everything is written under a temporary name and synced before
// it gets its own. Hence at every moment each finished trial can be found, and
// the number N says where it must not be looked for twice.
type Journal struct {
	Pace any // for the manifest; set before Finish

	dir    string
	disk   disk.FS
	run    *Run
	about  File // run.json
	opts   Options
	unlock func()
	zip    *zstd.Encoder

	syncing sync.Mutex // held by Sync, and taken before mu

	mu    sync.Mutex
	done  map[uint64]struct{}
	err   error // the first failure; nothing is written after it
	ended bool
	total int // len(done) once that is let go
	dups  int
	cur   *writing
	parts []int
	dirty bool

	compacting chan struct{} // closed when the running compaction of a part ended; nil if there is none
	stop       chan struct{}
	stopped    sync.WaitGroup
}

// writing is the journal file that takes records, and its transcripts.
type writing struct {
	journalFile
	marked bool // the file has a mark
	size   int64
	t      disk.File // nil until the first transcript
	tSize  int64
	buffer []byte
}

// Create makes a run directory and writes run.json. A directory that exists
// must be empty, or hold a run of which nothing was written yet.
func Create(dir string, run *Run, o Options) (*Journal, error) {
	o.complete()
	if err := disk.MkdirAll(o.Disk, dir); err != nil {
		if link := dangling(dir); link != "" {
			return nil, fmt.Errorf("creating run directory %s: %s %w", dir, link, ErrDangling)
		}
		return nil, diskError("creating run directory", dir, err)
	}
	files, err := o.Disk.ReadDir(dir)
	if err != nil {
		return nil, diskError("reading run directory", dir, err)
	}
	for _, f := range files {
		switch name := f.Name(); {
		case name == runFile, name == manifestFile, name == trialsFile,
			slices.ContainsFunc(working, func(s series) bool { _, ok := s.number(name); return ok }):
			return nil, fmt.Errorf("run directory %s %w", dir, ErrExists)
		case name == lockFile, strings.HasSuffix(name, tmpSuffix):
		case name == transcriptsDir:
		default:
			return nil, fmt.Errorf("directory %s %w", dir, ErrNotRun)
		}
	}
	unlock, err := Lock(dir)
	if err != nil {
		return nil, err
	}
	if exists(in(dir, runFile)) { // somebody was faster
		unlock()
		return nil, fmt.Errorf("run directory %s %w", dir, ErrExists)
	}
	r := *run
	r.Format = RunFormat
	j := newJournal(dir, &r, o, unlock)
	if j.about, err = writeRun(o.Disk, dir, &r); err != nil {
		unlock()
		return nil, err
	}
	if err := j.begin(1); err != nil {
		unlock()
		return nil, err
	}
	j.start(nil)
	return j, nil
}

// Resume opens the directory of a run that was interrupted, however it was.
// Without a run the error is an [fs.ErrNotExist], and with a finished one it is
// [ErrFinished]. The caller compares [Journal.Run] with what it is about to do
// before it appends.
func Resume(dir string, o Options) (*Journal, error) {
	run, about, err := readRun(dir)
	if err != nil {
		return nil, err
	}
	unlock, err := Lock(dir)
	if err != nil {
		return nil, err
	}
	j := newJournal(dir, run, o, unlock)
	j.about = about
	full, err := j.recover()
	if err != nil {
		j.closeFiles()
		unlock()
		if errors.Is(err, fs.ErrNotExist) {
			err = Changed(dir, "%v", err)
		}
		return nil, err
	}
	j.start(full)
	return j, nil
}

func (o *Options) complete() {
	o.PartRows = cmp.Or(o.PartRows, DefaultPartRows)
	o.SyncEvery = cmp.Or(o.SyncEvery, DefaultSyncEvery)
	o.Disk = cmp.Or(o.Disk, disk.OS)
}

func newJournal(dir string, run *Run, o Options, unlock func()) *Journal {
	o.complete()
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true),
		zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return &Journal{dir: dir, disk: o.Disk, run: run, opts: o, unlock: unlock, zip: zip, done: map[uint64]struct{}{},
		stop: make(chan struct{})}
}

// begin starts journal file n.
func (j *Journal) begin(n int) error {
	// A power cut must not leave the name with a head that is none.
	if _, err := writeFile(j.disk, j.dir, journals.name(n), journalHead(j.about)); err != nil {
		return err
	}
	f, err := openFile(j.disk, j.dir, journals.name(n), os.O_RDWR)
	if err != nil {
		return diskError("creating", in(j.dir, journals.name(n)), err)
	}
	j.cur = &writing{journalFile: journalFile{n: n, f: f}, marked: true, size: headSize}
	return nil
}

// start begins to sync by time, and to compact the journal files that were full
// when the run was interrupted.
func (j *Journal) start(full []*writing) {
	if len(full) > 0 {
		j.compact(full)
	}
	j.stopped.Go(func() {
		tick := time.NewTicker(j.opts.SyncEvery)
		defer tick.Stop()
		for {
			select {
			case <-j.stop:
				return
			case <-tick.C:
				_ = j.Sync() // its error stays, and ends the run
			}
		}
	})
}

// recover brings the directory into the state that it had after the last whole
// record, and returns the journal files that were full.
func (j *Journal) recover() (full []*writing, err error) {
	finished := exists(in(j.dir, manifestFile))
	if finished {
		// Only the tidying up may be missing.
		p, err := openFinished(j.disk, j.dir, j.run, j.about)
		if err != nil {
			return nil, err
		}
		p.close()
	}
	files, err := listRun(j.disk, j.dir)
	if err != nil {
		return nil, err
	}
	if !finished {
		if name := files.gap(); name != "" {
			return nil, Changed(in(j.dir, name), "it is missing")
		}
		for _, n := range files.numbers[trialParts] { // before the journal that it was made of goes
			if err := j.recoverPart(n); err != nil {
				return nil, err
			}
		}
	}
	drop := slices.Clone(files.temporary)
	if finished {
		drop = append(drop, files.working()...)
	} else {
		drop = append(drop, files.final...) // of a compaction that did not end
		for _, n := range files.numbers[journals] {
			if files.hasPart(n) {
				drop = append(drop, journals.name(n))
			}
		}
		drop = append(drop, files.halves...)
	}
	for _, name := range drop {
		if err := j.disk.Remove(in(j.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, diskError("removing", in(j.dir, name), err)
		}
	}
	if finished {
		return nil, fmt.Errorf("run directory %s: %w", j.dir, ErrFinished)
	}
	j.parts = files.numbers[trialParts]
	last := 0
	if len(files.numbers[trialParts]) > 0 {
		last = slices.Max(files.numbers[trialParts])
	}
	for _, n := range files.numbers[journals] {
		if files.hasPart(n) {
			continue
		}
		w, err := j.recoverJournal(n)
		if err != nil {
			return nil, err
		}
		if j.cur != nil {
			full = append(full, j.cur)
		}
		j.cur, last = w, max(last, n)
	}
	if j.cur == nil || j.cur.n < last || len(j.cur.slots) >= j.opts.PartRows {
		if j.cur != nil {
			full = append(full, j.cur)
			j.cur = nil
		}
		return full, j.begin(last + 1)
	}
	return full, nil
}

// idRow is what a resumed run needs to know of a finished trial.
type idRow struct {
	ID string `parquet:"trial"`
}

func (j *Journal) recoverPart(n int) error {
	p, err := openPart(j.disk, j.dir, n, j.run, j.about)
	if err != nil {
		return err
	}
	defer p.close()
	c := openCursor[idRow](p.trials)
	defer c.close()
	for r, err := range c.rows() {
		if err != nil {
			return err
		}
		id, ok := idNumber(r.ID)
		if !ok {
			return fmt.Errorf("reading %s: %w", in(j.dir, trialParts.name(n)), badID(r.ID))
		}
		j.done[id] = struct{}{}
	}
	return nil
}

// recoverJournal opens a journal file, cuts off what is torn, and its
// transcripts behind the last one that a record names.
func (j *Journal) recoverJournal(n int) (*writing, error) {
	path := in(j.dir, journals.name(n))
	f, err := openFile(j.disk, j.dir, journals.name(n), os.O_RDWR)
	if err != nil {
		return nil, diskError("opening", path, err)
	}
	w := &writing{journalFile: journalFile{n: n, f: f}}
	if err := w.recover(j.disk, j.dir, j.about); err != nil {
		w.close()
		return nil, err
	}
	for _, s := range w.slots {
		j.done[s.id] = struct{}{}
	}
	return w, nil
}

func (w *writing) recover(d disk.FS, dir string, about File) error {
	good, synced, err := w.scan(about)
	if err == nil {
		good, err = w.recoverTranscripts(d, dir, good, synced)
	}
	if err != nil {
		return err
	}
	if good == 0 { // killed before the head was whole
		good = headSize
		_, err = w.f.WriteAt(journalHead(about), 0)
	}
	if err == nil {
		err = w.f.Truncate(good)
	}
	if err != nil {
		return diskError("recovering", w.f.Name(), err)
	}
	w.size = good
	start, _, err := readHead(w.f, about)
	if err != nil {
		return err
	}
	w.marked = start == headSize
	// What is cut off must not come back behind what is written now, and the process
	// that wrote what is kept may have died before it was on disk.
	return w.sync()
}

// recoverTranscripts opens the transcripts of a journal file. After a failure of
// the machine a record may have reached the disk and its transcript not; then
// that record and all after it are taken for torn: good is where it begins. One that
// was synced had its transcript on the disk before.
func (w *writing) recoverTranscripts(d disk.FS, dir string, good, synced int64) (int64, error) {
	path := in(dir, texts.name(w.n))
	t, err := openFile(d, dir, texts.name(w.n), os.O_RDWR)
	var have int64
	if err == nil {
		w.t = t
		st, err := t.Stat()
		if err != nil {
			return 0, diskError("reading", path, err)
		}
		have = st.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, diskError("opening", path, err)
	}
	var frame []byte
	var last place // trials that were appended together share a frame
	for i, s := range w.slots {
		at := place{offset: w.places[i].offset, length: w.places[i].length, crc: w.places[i].crc}
		end := at.offset + at.length
		if at.length > 0 && end > have && s.offset < synced {
			return 0, Changed(path, "it has %d bytes, and the trial at byte %d of %s names more", have, s.offset,
				journals.name(w.n))
		}
		if at.length > 0 && s.offset >= synced && at != last {
			whole := at.offset >= 0 && at.offset <= have && at.length <= have-at.offset
			if whole {
				frame = resize(frame, int(at.length))
				if _, err := w.t.ReadAt(frame, at.offset); err != nil {
					return 0, diskError("reading", path, err)
				}
				whole = crc32.Checksum(frame, castagnoli) == at.crc
			}
			if !whole {
				w.slots, good = w.slots[:i], s.offset
				break
			}
			last = at
		}
		w.tSize = max(w.tSize, end)
	}
	w.places = nil
	if w.t != nil {
		if err := w.t.Truncate(w.tSize); err != nil {
			return 0, diskError("recovering", path, err)
		}
	}
	return good, nil
}

// Run returns the run's run.json.
func (j *Journal) Run() *Run { return j.run }

// Done reports whether the trial was finished already. It is of use until Finish
// is called.
func (j *Journal) Done(id string) bool {
	n, ok := idNumber(id)
	j.mu.Lock()
	defer j.mu.Unlock()
	_, have := j.done[n]
	return ok && have
}

// Len returns the number of finished trials.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return max(len(j.done), j.total)
}

// Duplicates returns how many appended trials were finished already.
func (j *Journal) Duplicates() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dups
}

// Finished is a trial with its decisions, in order, and its transcript: one JSON
// object, nil for none. The decisions' trial and index need not be set.
type Finished struct {
	Trial      *Trial
	Decisions  []Decision
	Transcript []byte
}

// Append takes a finished trial. When it returns nil the trial survives the
// death of the process, and after the next Sync, which comes by itself, that of
// the machine. A trial that is finished already is not taken twice, and that is
// no error.
//
// After a failure, of a full disk for instance, every later call returns that
// error; what was taken before can be resumed.
func (j *Journal) Append(t *Trial, ds []Decision, transcript []byte) error {
	return j.AppendAll([]Finished{{t, ds, transcript}})
}

// AppendAll takes trials as Append does, all with one call of the system. Their
// transcripts share a zstd frame: those of one case are so alike that together
// they take little more room, and time, than one.
func (j *Journal) AppendAll(batch []Finished) error {
	adds := make([]addition, len(batch))
	for i := range batch {
		id, ok := idNumber(batch[i].Trial.ID)
		if !ok {
			return fmt.Errorf("journal of %s: %w", j.dir, badID(batch[i].Trial.ID))
		}
		adds[i] = addition{Finished: &batch[i], id: id}
	}
	held := buffers.Get().(*[2][]byte)
	defer buffers.Put(held)
	var frame []byte
	if lines := lay(held[0][:0], adds); len(lines) > 0 {
		held[0], held[1] = lines, j.zip.EncodeAll(lines, held[1][:0])
		frame = held[1]
		for i := range adds {
			if adds[i].at.size > 0 {
				adds[i].at.length, adds[i].at.crc = int64(len(frame)), crc32.Checksum(frame, castagnoli)
			}
		}
		for i := range held {
			if cap(held[i]) > 8<<20 { // one huge trial should not be remembered
				held[i] = nil
			}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if j.ended {
		return fmt.Errorf("journal of %s: closed", j.dir)
	}
	fresh := adds[:0]
	for _, a := range adds {
		if _, have := j.done[a.id]; have {
			j.dups++
			continue
		}
		j.done[a.id] = struct{}{}
		fresh = append(fresh, a)
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := j.cur.append(j.disk, j.dir, fresh, frame); err != nil {
		for _, a := range fresh {
			delete(j.done, a.id)
		}
		j.err = err
		return err
	}
	j.dirty = true
	if len(j.cur.slots) >= j.opts.PartRows {
		j.rotate()
	}
	return j.err
}

// addition is a trial on its way into the journal.
type addition struct {
	*Finished
	id uint64
	at place
}

// lay appends the transcripts, a line each, and notes where they stand.
func lay(lines []byte, adds []addition) []byte {
	for i := range adds {
		t := adds[i].Transcript
		if len(t) == 0 {
			continue
		}
		start := len(lines)
		lines = append(lines, t...)
		if t[len(t)-1] != '\n' {
			lines = append(lines, '\n')
		}
		adds[i].at.start, adds[i].at.size = int64(start), int64(len(lines)-start)
	}
	return lines
}

// buffers are for transcripts, plain and compressed.
var buffers = sync.Pool{New: func() any { return new([2][]byte) }}

func (w *writing) append(d disk.FS, dir string, adds []addition, frame []byte) error {
	if len(frame) > 0 {
		if w.t == nil {
			if err := w.openTranscripts(d, dir); err != nil {
				return err
			}
		}
		if _, err := w.t.WriteAt(frame, w.tSize); err != nil {
			_ = w.t.Truncate(w.tSize) // recovery would do it too
			return diskError("writing", w.t.Name(), err)
		}
	}
	buf, slots := w.buffer[:0], w.slots
	for i := range adds {
		a := &adds[i]
		if a.at.length > 0 {
			a.at.part, a.at.offset = w.n, w.tSize
		}
		start := len(buf)
		buf = appendRecord(buf, a.at, a.Trial, a.Decisions)
		n := int64(len(buf) - start)
		if n > maxRecord {
			return fmt.Errorf("trial %s: its rows take %d bytes; at most %d can be stored", a.Trial.ID, n, maxRecord)
		}
		slots = append(slots, slot{index: a.Trial.Index, id: a.id, offset: w.size + int64(start), length: n})
	}
	if _, err := w.f.WriteAt(buf, w.size); err != nil {
		_ = w.f.Truncate(w.size) // recovery would do it too
		return diskError("writing", w.f.Name(), err)
	}
	w.buffer, w.slots = buf, slots
	w.size += int64(len(buf))
	w.tSize += int64(len(frame))
	if cap(w.buffer) > 1<<20 { // one huge trial should not be remembered
		w.buffer = nil
	}
	return nil
}

func (w *writing) openTranscripts(d disk.FS, dir string) error {
	if err := disk.MkdirAll(d, in(dir, transcriptsDir)); err != nil {
		return diskError("creating", in(dir, transcriptsDir), err)
	}
	path := in(dir, texts.name(w.n))
	t, err := openFile(d, dir, texts.name(w.n), os.O_CREATE|os.O_RDWR|os.O_TRUNC)
	if err != nil {
		return diskError("creating", path, err)
	}
	w.t = t
	return syncDir(d, in(dir, transcriptsDir))
}

// sync makes the records durable, and before them the transcripts that they name.
func (w *writing) sync() error {
	if w.t != nil {
		if err := w.t.Sync(); err != nil {
			return diskError("syncing", w.t.Name(), err)
		}
	}
	if err := w.f.Sync(); err != nil {
		return diskError("syncing", w.f.Name(), err)
	}
	if w.marked {
		if _, err := w.f.WriteAt(markOf(w.size), headSize-markSize); err != nil {
			return diskError("writing", w.f.Name(), err)
		}
	}
	return nil
}

func (w *writing) close() {
	w.f.Close()
	if w.t != nil {
		w.t.Close()
	}
}

// Sync makes every trial that was appended before the call durable.
func (j *Journal) Sync() error {
	j.syncing.Lock() // whoever comes while another waits for the disk waits, too
	defer j.syncing.Unlock()
	j.mu.Lock()
	if j.err != nil || j.ended {
		defer j.mu.Unlock()
		return j.err
	}
	dirty, full := j.dirty, j.compacting
	j.dirty = false
	w := *j.cur // its transcripts file may be opened meanwhile
	j.mu.Unlock()
	// Appending goes on while the disk works. A file that was closed meanwhile
	// was synced before, or that has failed.
	if dirty {
		if err := w.sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			j.fail(err)
		}
	}
	if full != nil {
		<-full // it begins with a sync
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

func (j *Journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// rotate hands the full journal file to a goroutine that makes a part of it, and
// begins a new one. If the part before is still being made it waits for that:
// the disk is slower than the run. The caller holds mu.
func (j *Journal) rotate() {
	for j.compacting != nil {
		c := j.compacting
		j.mu.Unlock()
		<-c
		j.mu.Lock()
	}
	if j.err != nil || j.ended || len(j.cur.slots) < j.opts.PartRows {
		return // another caller was here meanwhile
	}
	full := j.cur
	if err := j.begin(full.n + 1); err != nil {
		j.err = err
		return
	}
	j.compact([]*writing{full})
}

// compact makes parts of full journal files. The caller holds mu.
func (j *Journal) compact(full []*writing) {
	c := make(chan struct{})
	j.compacting = c
	j.stopped.Go(func() {
		defer func() {
			j.mu.Lock()
			j.compacting = nil
			j.mu.Unlock()
			close(c)
		}()
		for _, w := range full {
			err := w.sync()
			if err == nil {
				err = writePart(j.disk, j.dir, w, j.about)
			}
			if err != nil {
				j.fail(err)
			}
			w.close()
			if err != nil {
				continue // close the others too; their files stay
			}
			j.mu.Lock()
			j.parts = append(j.parts, w.n)
			j.mu.Unlock()
		}
	})
}

// halt stops the goroutines and makes everything durable. ended says that it was
// called before.
func (j *Journal) halt() (ended bool, err error) {
	_ = j.Sync() // its error stays in j.err
	j.mu.Lock()
	ended, j.ended = j.ended, true
	j.mu.Unlock()
	if ended {
		return true, nil
	}
	close(j.stop)
	j.stopped.Wait() // also for a part that is being made, which may fail
	j.mu.Lock()
	defer j.mu.Unlock()
	return false, j.err
}

func (j *Journal) closeFiles() {
	if j.cur != nil {
		j.cur.close()
	}
	j.zip.Close()
}

// Close makes everything durable and leaves a directory that can be resumed.
// After Finish it does nothing.
func (j *Journal) Close() error {
	ended, err := j.halt()
	if !ended {
		j.closeFiles()
		j.unlock()
	}
	return err
}
