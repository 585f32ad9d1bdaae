package results

import (
	"cmp"
	"fmt"
	"io"
	"iter"
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

// table writes one Parquet file.
type table[T any] struct {
	*newFile
	w     *parquet.GenericWriter[T]
	batch []T
	spare []T        // that was written, or is
	done  chan error // of the write that goes on; nil is none
	rows  int64
}

func createTable[T any](d disk.FS, dir, name string, page int, group int64) (*table[T], error) {
	f, err := createFile(d, dir, name)
	if err != nil {
		return nil, err
	}
	return &table[T]{newFile: f, batch: make([]T, 0, rowBatch), spare: make([]T, 0, rowBatch), w: parquet.NewGenericWriter[T](f,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}), parquet.PageBufferSize(page),
		parquet.MaxRowsPerRowGroup(group), parquet.WriteBufferSize(writeBuffer),
		parquet.DataPageStatistics(false), parquet.CreatedBy("memtox", metadataText, "results"),
		parquet.KeyValueMetadata(metadataKey, metadataText))}, nil
}

func (t *table[T]) add(row *T) error {
	t.batch = append(t.batch, *row)
	if len(t.batch) < rowBatch {
		return nil
	}
	return t.flush()
}

// flush begins to write the batch, which takes as long as to make the next one. The
// error is that of the batch before.
func (t *table[T]) flush() error {
	if err := t.wait(); err != nil {
		return err
	}
	t.batch, t.spare, t.done = t.spare[:0], t.batch, make(chan error, 1)
	t.rows += int64(len(t.spare))
	go func(done chan<- error) {
		_, err := t.w.Write(t.spare)
		clear(t.spare)
		if err != nil {
			err = diskError("writing", t.f.Name(), err)
		}
		done <- err
	}(t.done)
	return nil
}

// wait waits for the write that goes on.
func (t *table[T]) wait() (err error) {
	if t.done != nil {
		err, t.done = <-t.done, nil
	}
	return err
}

func (t *table[T]) abandon() {
	_ = t.wait() // it is given up
	t.newFile.abandon()
}

// close completes the file, still under its temporary name.
func (t *table[T]) close() (File, error) {
	err := cmp.Or(t.flush(), t.wait())
	if err == nil {
		if err = t.w.Close(); err != nil {
			err = diskError("writing", t.f.Name(), err)
		}
	}
	if err != nil {
		return File{}, err
	}
	f, err := t.newFile.close()
	f.Rows = t.rows
	return f, err
}

// cursor reads the rows of one Parquet file in order. One of no file has none.
type cursor[T any] struct {
	path string
	r    *parquet.GenericReader[T]
	buf  []T
	rest []T   // of buf
	err  error // that follows rest; io.EOF at the end
}

// openCursor reads the columns of T from an opened file; others are not touched.
func openCursor[T any](f *parquetFile) (c *cursor[T]) {
	if f == nil {
		return nil
	}
	c = &cursor[T]{path: f.f.Name(), buf: make([]T, rowBatch)}
	defer damaged(c.path, &c.err)
	c.r = parquet.NewGenericReader[T](f.p)
	return c
}

// rows yields the rows that are left. The one at which a loop breaks off comes again.
func (c *cursor[T]) rows() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for c != nil {
			for ; len(c.rest) > 0; c.rest = c.rest[1:] {
				if !yield(&c.rest[0], nil) {
					return
				}
			}
			switch c.err {
			case nil:
				c.fill()
			case io.EOF:
				return
			default:
				yield(nil, c.err)
				return
			}
		}
	}
}

func (c *cursor[T]) fill() {
	defer damaged(c.path, &c.err)
	clear(c.buf) // pointers of earlier rows belong to others now
	n, err := c.r.Read(c.buf)
	if err != nil && err != io.EOF {
		n, err = 0, fmt.Errorf("reading %s: the file is damaged: %w", c.path, err)
	}
	c.rest, c.err = c.buf[:n], err
}

func (c *cursor[T]) close() {
	if c != nil && c.r != nil {
		c.r.Close()
	}
}

// damaged turns a panic of the Parquet library, which it has for files that
// contradict themselves, into an error.
func damaged(path string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("reading %s: the file is damaged: %v", path, r)
	}
}

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
