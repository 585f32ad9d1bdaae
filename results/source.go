package results

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"

	"github.com/memtox/memtox/internal/disk"
)

// source yields entries in the order of the plan.
type source interface {
	// next fills e with the next entry; io.EOF at the end. Texts and pointers of
	// e stay valid, its slice of decisions is reused.
	next(e *Entry) error
	close()
}

// A journal file begins with a head: journalHeader, the SHA-256 of the run's
// run.json, an end of line, and the mark. Rows of another shape are not read.
// Format 2 had the line journalHeader2 alone.
//
// The mark is how many bytes of the file are certainly on the disk, a uint64 in
// little endian with its CRC-32C. What lies before it cannot have been torn: if it
// is not whole it was changed. The mark is written after the disk has confirmed, so
// an older one is true as well, and one that is not whole says nothing.
var (
	journalHeader  = "memtox journal 3 " + rowFingerprint + " "
	journalHeader2 = "memtox journal 2 " + rowFingerprint + "\n"
)

const markSize = 12

var headSize = int64(len(journalHeader) + len(zeros) + 1 + markSize)

func journalHead(run File) []byte {
	return append([]byte(journalHeader+run.SHA256+"\n"), markOf(headSize)...)
}

func markOf(synced int64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(synced))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readHead reads the head of a journal file and says where the records begin, and up
// to where they are certainly on the disk. A head that is not whole has start 0.
func readHead(path string, f disk.File, run File) (start, synced int64, err error) {
	head := make([]byte, headSize+1)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	head = head[:n]
	line := journalHeader + run.SHA256 + "\n"
	switch whole := min(n, len(line)); {
	case int64(n) <= headSize && len(bytes.Trim(head, "\x00")) == 0: // the disk had no more of it
		return 0, 0, nil
	case bytes.HasPrefix(head, []byte(journalHeader2)):
		return int64(len(journalHeader2)), 0, nil
	case string(head[:min(n, len(journalHeader))]) != journalHeader[:min(n, len(journalHeader))]:
		return 0, 0, fmt.Errorf("reading %s: written by another version of memtox (it begins %q, not %q); finish the run "+
			"with that version, or start anew in another directory",
			path, head[:min(n, len(journalHeader))], journalHeader)
	case string(head[:whole]) != line[:whole]:
		return 0, 0, fmt.Errorf("%w (or the head of %s, which has the digest of the run.json that it was begun with)",
			changedFile(in(filepath.Dir(path), runFile), "it is not the one of %s", path), path)
	case int64(n) < headSize:
		return 0, 0, nil
	}
	mark := head[headSize-markSize : headSize]
	if synced = int64(binary.LittleEndian.Uint64(mark)); !bytes.Equal(mark, markOf(synced)) {
		synced = 0
	}
	return headSize, synced, nil
}

// slot says where a record stands in a journal file.
type slot struct {
	index  int64
	id     uint64
	offset int64
	length int64 // header included
	at     place
}

// scanJournal finds the whole records of a journal file, in the order in which
// they were written, up to the first that is torn. good is where that begins.
// A head that is not whole is a file without records, with good 0.
func scanJournal(path string, part int, f disk.File, run File) (slots []slot, good, synced int64, err error) {
	start, synced, err := readHead(path, f, run)
	if err != nil || start == 0 {
		return nil, 0, 0, err
	}
	st, err := f.Stat() // after the mark: the file may grow meanwhile
	if err != nil {
		return nil, 0, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	good = start
	left := st.Size() - good
	r := bufio.NewReaderSize(io.NewSectionReader(f, good, left), 1<<20)
	var frame [recordHeader]byte
	var buf []byte
	d := newDecoder()
	for left >= recordHeader {
		if _, err := io.ReadFull(r, frame[:]); err != nil {
			return nil, 0, 0, fmt.Errorf("reading %s: %w", path, err)
		}
		left -= recordHeader
		n := int64(binary.LittleEndian.Uint32(frame[:]))
		if n == 0 || n > left || n > maxRecord {
			break
		}
		buf = resize(buf, int(n))
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil, 0, 0, fmt.Errorf("reading %s: %w", path, err)
		}
		left -= n
		if crc32.Checksum(buf, castagnoli) != binary.LittleEndian.Uint32(frame[4:]) {
			break
		}
		s := slot{offset: good, length: recordHeader + n}
		if !d.head(buf, part, &s) {
			break
		}
		slots = append(slots, s)
		good += s.length
	}
	if good < synced {
		return nil, 0, 0, changedFile(path, "the record at byte %d is not whole, and the disk had %d bytes", good, synced)
	}
	return slots, good, synced, nil
}

// head reads the beginning of a payload: where the transcript is, and which
// trial it is.
func (d *decoder) head(payload []byte, part int, s *slot) bool {
	d.b, d.bad = payload, false
	s.at = d.place(part)
	id, ok := idNumber(string(d.take(d.uvarint()))) // the first field of Trial
	s.id, s.index = id, d.varint()                  // the second
	return ok && !d.bad
}

// journalSource reads the records of a journal file in the order of the plan.
type journalSource struct {
	path  string
	part  int
	f     disk.File
	owned bool // close f with the source
	slots []slot
	buf   []byte
	d     *decoder
}

func newJournalSource(path string, part int, f disk.File, slots []slot) *journalSource {
	slots = slices.Clone(slots)
	slices.SortFunc(slots, func(a, b slot) int { return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.id, b.id)) })
	return &journalSource{path: path, part: part, f: f, slots: slots, d: newDecoder()}
}

func (j *journalSource) next(e *Entry) error {
	if len(j.slots) == 0 {
		return io.EOF
	}
	s := j.slots[0]
	j.slots = j.slots[1:]
	j.buf = resize(j.buf, int(s.length))
	if _, err := j.f.ReadAt(j.buf, s.offset); err != nil {
		return fmt.Errorf("reading %s at byte %d: %w", j.path, s.offset, err)
	}
	if crc32.Checksum(j.buf[recordHeader:], castagnoli) != binary.LittleEndian.Uint32(j.buf[4:]) {
		return fmt.Errorf("reading %s at byte %d: %w", j.path, s.offset, errBadRecord)
	}
	if err := j.d.record(j.buf[recordHeader:], j.part, e); err != nil {
		return fmt.Errorf("reading %s at byte %d: %w", j.path, s.offset, err)
	}
	return nil
}

func (j *journalSource) close() {
	if j.owned {
		j.f.Close()
	}
}

// partSource reads a part, or the files of a finished run: trials with the
// decisions and the place of the transcript that belong to them.
type partSource struct {
	trials    *cursor[Trial]
	decisions decisionCursor    // nil where they are not wanted
	places    *cursor[indexRow] // nil where there are none
}

// decisionCursor is a cursor of decisions, in whole or in part.
type decisionCursor interface {
	// take appends the decisions of the trial, which are next.
	take(ds []Decision, t *Trial) ([]Decision, error)
	// rest reports a decision that no trial took.
	rest() error
	close()
}

func (p *partSource) next(e *Entry) error {
	t, err := p.trials.peek()
	if err != nil {
		return err
	}
	if t == nil {
		if p.decisions != nil {
			if err := p.decisions.rest(); err != nil {
				return err
			}
		}
		return io.EOF
	}
	e.Trial, e.Decisions, e.at = *t, e.Decisions[:0], place{}
	p.trials.next()
	if p.decisions != nil {
		if e.Decisions, err = p.decisions.take(e.Decisions, &e.Trial); err != nil {
			return err
		}
	}
	if p.places == nil {
		return nil
	}
	x, err := p.places.peek()
	if err != nil {
		return err
	}
	if x != nil && x.Trial == e.Trial.ID {
		e.at = x.place()
		p.places.next()
	}
	return nil
}

func (p *partSource) close() {
	p.trials.close()
	if p.decisions != nil {
		p.decisions.close()
	}
	if p.places != nil {
		p.places.close()
	}
}

// wholeDecisions reads every column.
type wholeDecisions struct{ *cursor[Decision] }

func (w wholeDecisions) take(ds []Decision, t *Trial) ([]Decision, error) {
	for {
		d, err := w.peek()
		if err != nil {
			return ds, err
		}
		if d == nil || d.Trial != t.ID {
			return ds, nil
		}
		ds = append(ds, *d)
		w.next()
	}
}

func (w wholeDecisions) rest() error {
	d, err := w.peek()
	if err == nil && d != nil {
		err = stray(w.path, d.Index)
	}
	return err
}

// timing is the part of a decision that latencies need.
type timing struct {
	Index     int64  `parquet:"index,delta"`
	Gate      string `parquet:"gate,dict"`
	Record    string `parquet:"record,dict"`
	LatencyNS int64  `parquet:"latency_ns"`
	WireNS    int64  `parquet:"wire_ns"`
}

type timings struct{ *cursor[timing] }

func (w timings) take(ds []Decision, t *Trial) ([]Decision, error) {
	for {
		d, err := w.peek()
		if err != nil {
			return ds, err
		}
		if d == nil || d.Index != t.Index {
			return ds, nil
		}
		ds = append(ds, Decision{Trial: t.ID, Index: t.Index, Seq: int32(len(ds)), Gate: d.Gate, Record: d.Record,
			LatencyNS: d.LatencyNS, WireNS: d.WireNS})
		w.next()
	}
}

func (w timings) rest() error {
	d, err := w.peek()
	if err == nil && d != nil {
		err = stray(w.path, d.Index)
	}
	return err
}

func stray(path string, index int64) error {
	return fmt.Errorf("reading %s: the decisions at plan index %d belong to no trial; the file does not fit its trials",
		path, index)
}

// merged merges sources, each in the order of the plan, and yields every trial
// once. It holds one entry a source.
type merged struct {
	heads []*head
	last  string
	any   bool
}

type head struct {
	src source
	e   Entry
}

func merge(sources []source) (*merged, error) {
	m := &merged{}
	for i, s := range sources {
		h := &head{src: s}
		switch err := s.next(&h.e); {
		case err == nil:
			m.heads = append(m.heads, h)
		case errors.Is(err, io.EOF):
			s.close()
		default:
			m.close()
			for _, s := range sources[i:] {
				s.close()
			}
			return nil, err
		}
	}
	heap.Init(m)
	return m, nil
}

// next fills e, swapping its memory with that of the source.
func (m *merged) next(e *Entry) error {
	for len(m.heads) > 0 {
		h := m.heads[0]
		*e, h.e = h.e, *e
		switch err := h.src.next(&h.e); {
		case err == nil:
			heap.Fix(m, 0)
		case errors.Is(err, io.EOF):
			h.src.close()
			heap.Pop(m)
		default:
			return err
		}
		if m.any && e.Trial.ID == m.last {
			continue
		}
		m.any, m.last = true, e.Trial.ID
		return nil
	}
	return io.EOF
}

func (m *merged) close() {
	for _, h := range m.heads {
		h.src.close()
	}
	m.heads = nil
}

// The heap of sources, the earliest entry first.
func (m *merged) Len() int { return len(m.heads) }
func (m *merged) Less(i, j int) bool {
	a, b := &m.heads[i].e.Trial, &m.heads[j].e.Trial
	return a.Index < b.Index || a.Index == b.Index && a.ID < b.ID
}
func (m *merged) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *merged) Push(x any)    { m.heads = append(m.heads, x.(*head)) }
func (m *merged) Pop() any {
	h := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return h
}
