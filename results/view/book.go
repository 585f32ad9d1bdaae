package view

import (
	"errors"
	"sync"
	"time"

	"github.com/memtox/memtox/results"
)

// leastAge is how old what was read of a growing run is at least before it is
// read again; a run that takes long to read waits ten times that long.
const leastAge = 2 * time.Second

// Book is an opened run. It is safe for concurrent use.
type Book struct {
	dir, key string

	mu      sync.Mutex
	edition *edition
}

// edition is a run as it was at one time.
type edition struct {
	version int
	read    time.Time     // when
	took    time.Duration // how long
	table   *table
	shelf   *packed

	mu     sync.Mutex // a reader serves one goroutine at a time
	reader *results.Reader
}

// now returns the run as it is, or as it was a little while ago.
func (b *Book) now() (*edition, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.edition
	if e != nil && (e.table.finished || time.Since(e.read) < max(leastAge, 10*e.took)) {
		return e, nil
	}
	began := time.Now()
	r, err := results.OpenReader(b.dir)
	if err != nil {
		return nil, err
	}
	if e != nil && !r.Finished() && r.Trials() == e.table.len() {
		r.Close()
		e.read = time.Now()
		return e, nil
	}
	t, err := readTable(r)
	if err != nil {
		r.Close()
		return nil, err
	}
	next := &edition{table: t, reader: r, read: time.Now(), took: time.Since(began), version: 1}
	next.shelf = &packed{edition: next}
	if e != nil {
		next.version = e.version + 1
		go e.close() // when nobody reads it any more
	}
	b.edition = next
	if t.finished {
		go next.shelf.fill()
	}
	return next, nil
}

func (b *Book) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.edition != nil {
		b.edition.close()
		b.edition = nil
	}
}

func (e *edition) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reader != nil {
		e.reader.Close()
		e.reader = nil
	}
}

// each passes over all entries.
func (e *edition) each(visit func(*results.Entry)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reader == nil {
		return errSuperseded
	}
	for entry, err := range e.reader.Entries(results.Everything) {
		if err != nil {
			return err
		}
		visit(entry)
	}
	return nil
}

func (e *edition) transcript(id string) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reader == nil {
		return nil, errSuperseded
	}
	return e.reader.Transcript(id)
}

var errSuperseded = errors.New("the run has grown meanwhile; ask again")
