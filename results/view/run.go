package view

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/memtox/memtox/results"
)

// leastAge is how old what was read of a growing run is at least before it is
// read again; a run that takes long to read waits ten times that long.
const leastAge = 2 * time.Second

// openRun is an opened run. It is safe for concurrent use.
type openRun struct {
	dir string

	mu   sync.Mutex
	last *snapshot

	counting sync.Mutex // of one pass at a time
	counted  *Figures
	as       time.Time     // when counted was
	took     time.Duration // how long that took
}

// snapshot is a run as it was at one time.
type snapshot struct {
	version int
	read    time.Time     // when
	took    time.Duration // how long
	table   *table

	mu     sync.Mutex // a reader serves one goroutine at a time
	reader *results.Reader

	// The whole rows in little memory: some 100 bytes a trial with ten decisions.
	// Readers of rows only stream; this is what makes any trial open at once.
	pack   sync.Once
	failed error
	blocks [][]byte // of blockRows trials each, in the order of the table
	unzip  *zstd.Decoder
}

// blockRows trials are packed together: enough that what they share is packed well,
// few enough to unpack at once.
const blockRows = 256

var errSuperseded = errors.New("the run has grown meanwhile; ask again")

// now returns the run as it is, or as it was a little while ago.
func (o *openRun) now() (*snapshot, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.last
	if s != nil && (s.table.finished || time.Since(s.read) < max(leastAge, 10*s.took)) {
		return s, nil
	}
	began := time.Now()
	r, err := results.OpenReader(o.dir)
	if err != nil {
		return nil, err
	}
	if s != nil && !r.Finished() && r.Trials() == int64(s.table.len()) {
		r.Close()
		s.read = time.Now()
		return s, nil
	}
	t, err := readTable(r)
	if err != nil {
		r.Close()
		return nil, err
	}
	next := &snapshot{table: t, reader: r, read: time.Now(), took: time.Since(began), version: 1}
	if s != nil {
		next.version = s.version + 1
		go s.close() // when nobody reads it any more
	}
	o.last = next
	if t.finished {
		go next.pack.Do(next.packRows)
	}
	return next, nil
}

func (o *openRun) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last != nil {
		o.last.close()
		o.last = nil
	}
}

func (s *snapshot) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != nil {
		s.reader.Close()
		s.reader = nil
	}
}

func (s *snapshot) packRows() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == nil {
		s.failed = errSuperseded
		return
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err == nil {
		s.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	}
	if s.failed = err; err != nil {
		return
	}
	var block, row []byte
	n := 0
	for e, err := range s.reader.Entries(results.Everything) {
		if s.failed = err; err != nil {
			return
		}
		row = results.AppendMessage(row[:0], &e.Trial, e.Decisions)
		block = append(binary.AppendUvarint(block, uint64(len(row))), row...)
		if n++; n%blockRows == 0 {
			s.blocks, block = append(s.blocks, zip.EncodeAll(block, nil)), block[:0]
		}
	}
	s.blocks = append(s.blocks, zip.EncodeAll(block, nil))
}

// entry returns the rows of the trial at a place of the table.
func (s *snapshot) entry(at int) (*results.Entry, error) {
	if s.pack.Do(s.packRows); s.failed != nil {
		return nil, s.failed
	}
	block, err := s.unzip.DecodeAll(s.blocks[at/blockRows], nil)
	if err != nil {
		return nil, err
	}
	for range at % blockRows {
		n, w := binary.Uvarint(block)
		block = block[w+int(n):]
	}
	n, w := binary.Uvarint(block)
	e := new(results.Entry)
	return e, results.ParseMessage(block[w:w+int(n)], e)
}

// transcript returns that of a trial, with [results.ErrNoTranscript] if it left none.
func (s *snapshot) transcript(id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == nil {
		return nil, errSuperseded
	}
	return s.reader.Transcript(id)
}
