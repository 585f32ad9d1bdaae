package results

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/memtox/memtox/internal/disk"
	"github.com/memtox/memtox/internal/wire"
)

// entries yields entries in the order of the plan, and after an error nothing. Texts
// and pointers of an entry stay valid, the entry itself and its slice of decisions
// until the next.
type entries = iter.Seq2[*Entry, error]

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
func readHead(f disk.File, run File) (start, synced int64, err error) {
	path := f.Name()
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
			Changed(in(filepath.Dir(path), runFile), "it is not the one of %s", path), path)
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
}

// journalFile is a journal file with its whole records.
type journalFile struct {
	n     int
	f     disk.File
	slots []slot
	// places are where the transcripts of the slots are that scan found: whoever writes
	// has no use for them, a hundred bytes for each of many trials.
	places []place
}

// scan finds the whole records, in the order in which they were written, up to the
// first that is torn. good is where that begins. A head that is not whole is a file
// without records, with good 0.
func (j *journalFile) scan(run File) (good, synced int64, err error) {
	path := j.f.Name()
	start, synced, err := readHead(j.f, run)
	if err != nil || start == 0 {
		return 0, 0, err
	}
	st, err := j.f.Stat() // after the mark: the file may grow meanwhile
	if err != nil {
		return 0, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	good = start
	left := st.Size() - good
	r := bufio.NewReaderSize(io.NewSectionReader(j.f, good, left), 1<<20)
	var frame [recordHeader]byte
	var buf []byte
	d := newDecoder()
	for left >= recordHeader {
		if _, err := io.ReadFull(r, frame[:]); err != nil {
			return 0, 0, fmt.Errorf("reading %s: %w", path, err)
		}
		left -= recordHeader
		n := int64(binary.LittleEndian.Uint32(frame[:]))
		if n == 0 || n > left || n > maxRecord {
			break
		}
		buf = resize(buf, int(n))
		if _, err := io.ReadFull(r, buf); err != nil {
			return 0, 0, fmt.Errorf("reading %s: %w", path, err)
		}
		left -= n
		if crc32.Checksum(buf, castagnoli) != binary.LittleEndian.Uint32(frame[4:]) {
			break
		}
		s := slot{offset: good, length: recordHeader + n}
		at, whole := d.head(buf, j.n, &s)
		if !whole {
			break
		}
		j.slots, j.places = append(j.slots, s), append(j.places, at)
		good += s.length
	}
	if good < synced {
		return 0, 0, Changed(path, "the record at byte %d is not whole, and the disk had %d bytes", good, synced)
	}
	return good, synced, nil
}

// head reads the beginning of a payload: where the transcript is, and which
// trial it is.
func (d *decoder) head(payload []byte, part int, s *slot) (at place, whole bool) {
	d.Reader = wire.Reader{Rest: payload}
	at = d.place(part)
	id, ok := idNumber(string(d.Field())) // the first field of Trial
	s.id, s.index = id, d.Varint()        // the second
	return at, ok && d.Err == nil
}

// entries reads the records.
func (j *journalFile) entries(want Want) entries {
	return func(yield func(*Entry, error) bool) {
		var e Entry
		var buf []byte
		d := newDecoder()
		order := make([]int32, len(j.slots))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(j.slots[a].index, j.slots[b].index), cmp.Compare(j.slots[a].id, j.slots[b].id))
		})
		for _, i := range order {
			s := &j.slots[i]
			buf = resize(buf, int(s.length))
			_, err := j.f.ReadAt(buf, s.offset)
			if err == nil && crc32.Checksum(buf[recordHeader:], castagnoli) != binary.LittleEndian.Uint32(buf[4:]) {
				err = errBadRecord
			}
			if err == nil {
				err = d.record(buf[recordHeader:], j.n, &e)
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading %s at byte %d: %w", j.f.Name(), s.offset, err))
				return
			}
			if want == TrialsOnly {
				e.Decisions = e.Decisions[:0]
			}
			if !yield(&e, nil) {
				return
			}
		}
	}
}

// entries reads a part, or the files of a finished run: trials with the decisions and
// the place of the transcript that belong to them.
func (p *openedPart) entries(want Want) entries {
	return func(yield func(*Entry, error) bool) {
		trials, places := openCursor[Trial](p.trials), openCursor[indexRow](p.places)
		defer trials.close()
		defer places.close()
		var take func(*Entry) error
		var rest func() error
		var done func()
		switch want {
		case Everything:
			take, rest, done = decisionsAs(p.decisions, func(d *Decision, t *Trial) (Decision, bool) { return *d, d.Trial == t.ID })
		case Latencies:
			take, rest, done = decisionsAs(p.decisions, (*timing).decision)
		default:
			take, rest, done = decisionsAs(nil, (*timing).decision)
		}
		defer done()
		var e Entry
		next := func(t *Trial) error {
			e.Trial, e.Decisions, e.at = *t, e.Decisions[:0], place{}
			if err := take(&e); err != nil {
				return err
			}
			for x, err := range places.rows() {
				if err != nil || x.Trial != t.ID {
					return err
				}
				e.at = x.place()
			}
			return nil
		}
		for t, err := range trials.rows() {
			if err == nil {
				err = next(t)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&e, nil) {
				return
			}
		}
		if err := rest(); err != nil {
			yield(nil, err)
		}
	}
}

// decisionsAs reads the decisions of a part as rows that of makes decisions of, and says
// whether they are of a trial. take appends those of the entry's trial, which are next;
// rest reports one that no trial took.
func decisionsAs[T any](f *parquetFile, of func(*T, *Trial) (Decision, bool)) (take func(*Entry) error, rest func() error,
	done func()) {
	c := openCursor[T](f)
	take = func(e *Entry) error {
		for row, err := range c.rows() {
			if err != nil {
				return err
			}
			d, its := of(row, &e.Trial)
			if !its {
				break
			}
			e.Decisions = append(e.Decisions, d)
		}
		return nil
	}
	rest = func() error {
		for row, err := range c.rows() {
			if err == nil {
				d, _ := of(row, &Trial{})
				err = fmt.Errorf("reading %s: the decisions at plan index %d belong to no trial; the file does not fit its trials",
					c.path, d.Index)
			}
			return err
		}
		return nil
	}
	return take, rest, c.close
}

// timing is the part of a decision that latencies need.
type timing struct {
	Index     int64  `parquet:"index,delta"`
	Gate      string `parquet:"gate,dict"`
	Record    string `parquet:"record,dict"`
	LatencyNS int64  `parquet:"latency_ns"`
	WireNS    int64  `parquet:"wire_ns"`
}

func (x *timing) decision(t *Trial) (Decision, bool) {
	return Decision{Trial: t.ID, Index: x.Index, Gate: x.Gate, Record: x.Record, LatencyNS: x.LatencyNS,
		WireNS: x.WireNS}, x.Index == t.Index
}

// merge yields the entries of several sources, every trial once.
func merge(sources []entries) entries {
	return func(yield func(*Entry, error) bool) {
		type head struct {
			e    *Entry
			next func() (*Entry, error, bool)
		}
		var heads []*head
		advance := func(h *head) (err error) {
			var more bool
			if h.e, err, more = h.next(); !more {
				heads = slices.DeleteFunc(heads, func(o *head) bool { return o == h })
			}
			return err
		}
		for _, s := range sources {
			next, stop := iter.Pull2(s)
			defer stop()
			h := &head{next: next}
			heads = append(heads, h)
			if err := advance(h); err != nil {
				yield(nil, err)
				return
			}
		}
		last := ""
		for len(heads) > 0 {
			h := slices.MinFunc(heads, func(a, b *head) int {
				return cmp.Or(cmp.Compare(a.e.Trial.Index, b.e.Trial.Index), cmp.Compare(a.e.Trial.ID, b.e.Trial.ID))
			})
			if h.e.Trial.ID != last {
				last = h.e.Trial.ID
				if !yield(h.e, nil) {
					return
				}
			}
			if err := advance(h); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}
