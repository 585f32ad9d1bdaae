package results

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/memtox/memtox/internal/disk"
)

// The row groups and pages of the files. Small pages in the parts bound the
// memory of merging many parts; they cost a few bytes.
const (
	partPage     = 16 << 10
	finalPage    = 64 << 10
	trialsGroup  = 128 << 10 // rows
	callsGroup   = 512 << 10 // rows
	rowBatch     = 256       // rows that are read or written together
	writeBuffer  = 256 << 10 // bytes
	metadataKey  = "memtox.format"
	metadataText = "1"
)

// indexRow says where a trial's transcript stands: one row of
// transcripts/index.parquet.
type indexRow struct {
	Trial  string `parquet:"trial"`        // the trial's id
	Index  int64  `parquet:"index,delta"`  // its place in the plan; the order of the file
	Part   int32  `parquet:"part"`         // number N of transcripts/part-N.jsonl.zst
	Offset int64  `parquet:"offset,delta"` // first byte of its zstd frame there
	Length int64  `parquet:"length"`       // bytes of the frame
	CRC    int64  `parquet:"crc32c"`       // CRC-32C of the frame's bytes
	Start  int64  `parquet:"start"`        // first byte of the transcript in what the frame unpacks to
	Size   int64  `parquet:"size"`         // bytes of the transcript there, with the line's end
}

func (x *indexRow) place() place {
	return place{part: int(x.Part), offset: x.Offset, length: x.Length, crc: uint32(x.CRC), start: x.Start, size: x.Size}
}

// table writes one Parquet file under a temporary name.
type table[T any] struct {
	disk      disk.FS
	dir, name string
	f         disk.File
	sum       hash.Hash
	w         *parquet.GenericWriter[T]
	batch     []T
	rows      int64
	size      int64
}

func createTable[T any](d disk.FS, dir, name string, page int, group int64) (*table[T], error) {
	path := in(dir, name) + tmpSuffix
	f, err := openFile(d, dir, name+tmpSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return nil, diskError("creating", path, err)
	}
	t := &table[T]{disk: d, dir: dir, name: name, f: f, sum: sha256.New(), batch: make([]T, 0, rowBatch)}
	t.w = parquet.NewGenericWriter[T](t.out(), parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.PageBufferSize(page), parquet.MaxRowsPerRowGroup(group), parquet.WriteBufferSize(writeBuffer),
		parquet.DataPageStatistics(false), parquet.CreatedBy("memtox", metadataText, "results"),
		parquet.KeyValueMetadata(metadataKey, metadataText))
	return t, nil
}

// out counts and hashes what is written.
func (t *table[T]) out() io.Writer { return io.MultiWriter(t.f, t.sum, (*counter)(&t.size)) }

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func (t *table[T]) add(row *T) error {
	t.batch = append(t.batch, *row)
	if len(t.batch) < rowBatch {
		return nil
	}
	return t.flush()
}

func (t *table[T]) flush() error {
	if len(t.batch) == 0 {
		return nil
	}
	if _, err := t.w.Write(t.batch); err != nil {
		return diskError("writing", t.f.Name(), err)
	}
	t.rows += int64(len(t.batch))
	clear(t.batch)
	t.batch = t.batch[:0]
	return nil
}

// close completes the file and makes it durable, still under its temporary name.
func (t *table[T]) close() (File, error) {
	err := t.flush()
	if err == nil {
		if err = t.w.Close(); err == nil {
			err = t.f.Sync()
		}
		if err != nil {
			err = diskError("writing", t.f.Name(), err)
		}
	}
	if e := t.f.Close(); err == nil && e != nil {
		err = diskError("closing", t.f.Name(), e)
	}
	if err != nil {
		return File{}, err
	}
	return File{Name: t.name, Rows: t.rows, Bytes: t.size, SHA256: hex.EncodeToString(t.sum.Sum(nil))}, nil
}

// publish gives the file its name. It is called after close; the directory is
// not synced.
func (t *table[T]) publish() error {
	path := in(t.dir, t.name)
	if err := t.disk.Rename(path+tmpSuffix, path); err != nil {
		return diskError("renaming to", path, err)
	}
	return nil
}

// abandon removes the temporary file. It may follow anything.
func (t *table[T]) abandon() {
	t.f.Close()
	t.disk.Remove(in(t.dir, t.name) + tmpSuffix)
}

// cursor reads the rows of one Parquet file in order.
type cursor[T any] struct {
	path string
	r    *parquet.GenericReader[T]
	buf  []T
	at   int
	n    int
	end  bool
}

// openCursor reads the columns of T from an opened file; others are not touched.
func openCursor[T any](path string, f *parquet.File) (c *cursor[T], err error) {
	defer damaged(path, &err)
	return &cursor[T]{path: path, r: parquet.NewGenericReader[T](f), buf: make([]T, rowBatch)}, nil
}

// damaged turns a panic of the Parquet library, which it has for files that
// contradict themselves, into an error.
func damaged(path string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("reading %s: the file is damaged: %v", path, r)
	}
}

// peek returns the next row, or nil at the end.
func (c *cursor[T]) peek() (row *T, err error) {
	for c.at >= c.n {
		if c.end {
			return nil, nil
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
	return &c.buf[c.at], nil
}

func (c *cursor[T]) fill() (err error) {
	defer damaged(c.path, &err)
	clear(c.buf) // pointers of earlier rows belong to others now
	n, err := c.r.Read(c.buf)
	c.at, c.n = 0, n
	if errors.Is(err, io.EOF) {
		c.end = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: the file is damaged: %w", c.path, err)
	}
	return nil
}

func (c *cursor[T]) next() { c.at++ }

func (c *cursor[T]) close() { c.r.Close() }

// parquetFile is an opened Parquet file.
type parquetFile struct {
	f disk.File
	p *parquet.File
}

// openParquet opens a file that is what the manifest says; nil says nothing. A
// damaged one is an error, never a panic.
func openParquet(d disk.FS, dir, name string, want *File) (pf *parquetFile, err error) {
	path := in(dir, name)
	f, err := openFile(d, dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if want != nil {
		if err := want.check(path, f); err != nil {
			return nil, err
		}
	}
	defer damaged(path, &err)
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	p, err := parquet.OpenFile(f, st.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("reading %s: the file is damaged: %w", path, err)
	}
	return &parquetFile{f, p}, nil
}

func (p *parquetFile) close() { p.f.Close() }
