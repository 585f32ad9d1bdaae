package importers

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/memtox/memtox/datasets"
)

// Input is a file to read: Name is how errors and the ledger call it.
type Input struct{ Name, Path string }

// record is one object of a file, with its place.
type record struct {
	file   string
	line   int    // from 1; of Parquet the row
	object int    // place among the objects of the line, from 1
	key    string // under which it stands in an object of records, or its place in a list
	v      *value
}

func (r *record) fail(field, what, remedy string) *datasets.Error {
	return mistake(r.file, r.line, field, what, remedy)
}

const (
	maxLine     = datasets.MaxLine
	maxDocument = 512 << 20 // a JSON file that is one value
)

// syntax says how the records of a file are written.
type syntax string

const (
	lines   syntax = "jsonl"
	whole   syntax = "json" // one document: a list of records, or one record
	table   syntax = "csv"
	columns syntax = "parquet"
)

// reading is one file while it is read.
type reading struct {
	in      Input
	syntax  syntax
	records *path // where a document has its records; nil for lines
	ledger  *Ledger
	note    FileNote
	yield   func(record) error
}

// read hands every record of the file to yield, and notes what the file is.
func (r *reading) read(ctx context.Context) error {
	st, err := os.Stat(r.in.Path)
	if err == nil && !st.Mode().IsRegular() {
		return mistake(r.in.Name, 0, "", "is no regular file", "write the data to a file first")
	}
	f, err := os.Open(r.in.Path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fmt.Errorf("opening %s: %w", quote(r.in.Name), err)
	}
	defer f.Close()
	r.note = FileNote{Name: r.in.Name, Bytes: st.Size()}
	h := sha256.New()
	if r.syntax == columns {
		if err := r.parquet(ctx, f, st.Size()); err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("reading %s: %w", quote(r.in.Name), err)
		}
		if _, err := io.Copy(h, f); err != nil {
			return fmt.Errorf("reading %s: %w", quote(r.in.Name), err)
		}
		r.done(h)
		return nil
	}
	b := bufio.NewReaderSize(io.TeeReader(f, h), 1<<20)
	if err := r.mark(b); err != nil {
		return err
	}
	switch {
	case r.syntax == table:
		err = r.csv(ctx, b)
	case r.syntax == whole || r.records != nil || r.startsWith(b, '['):
		err = r.document(ctx, b, st.Size())
	default:
		err = r.lines(ctx, b)
	}
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, b); err != nil { // the hash covers the whole file
		return fmt.Errorf("reading %s: %w", quote(r.in.Name), err)
	}
	r.done(h)
	return nil
}

func (r *reading) done(h hash.Hash) {
	r.note.SHA256 = hex.EncodeToString(h.Sum(nil))
	r.ledger.Files = append(r.ledger.Files, r.note)
}

// mark takes a byte order mark away.
func (r *reading) mark(b *bufio.Reader) error {
	head, err := b.Peek(3)
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading %s: %w", quote(r.in.Name), err)
	}
	switch {
	case len(head) == 0:
		return mistake(r.in.Name, 0, "", "the file is empty", "is the download complete?")
	case string(head) == "\uFEFF":
		r.note.BOM = true
		_, err := b.Discard(3)
		return err
	case len(head) >= 2 && (head[0] == 0xFF && head[1] == 0xFE || head[0] == 0xFE && head[1] == 0xFF):
		return mistake(r.in.Name, 1, "", "the file is UTF-16", "save it as UTF-8")
	}
	return nil
}

func (r *reading) startsWith(b *bufio.Reader, c byte) bool {
	for n := 1; n <= 4096; n++ {
		head, err := b.Peek(n)
		if err != nil {
			return false
		}
		switch last := head[n-1]; last {
		case ' ', '\t', '\n', '\r':
		default:
			return last == c
		}
	}
	return false
}

func (r *reading) emit(rec record) error {
	r.note.Objects++
	return r.yield(rec)
}

// syntaxError puts an error of the parser into its place in the file. from is the
// number of the first line of text.
func (r *reading) syntaxError(err error, text string, from int) error {
	var e *syntaxError
	if !errors.As(err, &e) {
		return err
	}
	before := text[:min(e.pos, len(text))]
	d := mistake(r.in.Name, from+strings.Count(before, "\n"), "", e.what, e.remedy)
	d.Column = len(before) - strings.LastIndexByte(before, '\n')
	return d
}

// lines reads JSON lines; a line may hold several objects.
func (r *reading) lines(ctx context.Context, b *bufio.Reader) error {
	var buf []byte
	for n := 1; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		buf = buf[:0]
		var end error
		for {
			part, err := b.ReadSlice('\n')
			buf = append(buf, part...)
			if len(buf) > maxLine+1 {
				return mistake(r.in.Name, n, "", fmt.Sprintf("the line is longer than %d MiB", maxLine>>20),
					"one object on each line; is this one JSON document? begin it with [ or name its records: in the mapping")
			}
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				end = err
				break
			}
		}
		if end != nil && end != io.EOF {
			return fmt.Errorf("reading %s: %w", quote(r.in.Name), end)
		}
		p := newParser(strings.TrimRight(string(buf), "\r\n"))
		count := 0
		for {
			v, ok, err := p.next()
			if err != nil {
				err := r.syntaxError(err, p.s, n)
				if n == 1 && end == nil {
					err = notLines(err)
				}
				if skipped := r.ledger.reject(record{file: r.in.Name, line: n, object: count + 1}, err); skipped != nil {
					return skipped
				}
				r.note.Objects++
				count++
				break
			}
			if !ok {
				break
			}
			count++
			if err := r.emit(record{file: r.in.Name, line: n, object: count, key: strconv.Itoa(n), v: &v}); err != nil {
				return err
			}
		}
		if count > 1 {
			r.ledger.MultiObjectLines = append(r.ledger.MultiObjectLines, ManyOnLine{File: r.in.Name, Line: n, Objects: count})
		}
		if end == io.EOF {
			return nil
		}
	}
}

// notLines adds to an error on the first line that the file may be a document.
func notLines(err error) error {
	var e *datasets.Error
	if errors.As(err, &e) {
		e.Remedy += " (a file that is one JSON document over several lines needs `read: json` in the mapping)"
	}
	return err
}

// document reads a file that is one JSON value.
func (r *reading) document(ctx context.Context, b io.Reader, size int64) error {
	if size > maxDocument {
		return mistake(r.in.Name, 0, "", fmt.Sprintf("one JSON document of more than %d MiB", maxDocument>>20),
			"write it as JSON lines first: jq -c '.[]'")
	}
	data, err := io.ReadAll(io.LimitReader(b, maxDocument))
	if err != nil {
		return fmt.Errorf("reading %s: %w", quote(r.in.Name), err)
	}
	p := newParser(string(data))
	v, ok, err := p.next()
	if err != nil {
		return r.syntaxError(err, p.s, 1)
	}
	if !ok {
		return mistake(r.in.Name, 0, "", "the file holds no JSON", "is the download complete?")
	}
	if _, more, err := p.next(); err != nil || more {
		return r.syntaxError(p.fail("something follows the document",
			"a file has one document, or JSON lines without records: in the mapping"), p.s, 1)
	}
	where, at := &v, "$"
	if r.records != nil {
		at = r.records.text
		if where, ok = r.records.walk(&v); !ok {
			return mistake(r.in.Name, 1, "records", "the document has nothing at "+at, "it has "+names(&v))
		}
	}
	if r.syntax == whole && r.records == nil && v.kind == object {
		return r.emit(record{file: r.in.Name, line: 1, object: 1, key: "0", v: &v})
	}
	if where.kind != list && where.kind != object {
		return mistake(r.in.Name, 1, "records", at+" is "+where.kind.String(), "name a list of records, or an object of them")
	}
	line, upTo := 1, 0
	for i := range where.items {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		item := &where.items[i]
		line += strings.Count(p.s[upTo:item.pos], "\n")
		upTo = item.pos
		key := strconv.Itoa(i)
		if where.kind == object {
			key = where.names[i]
		}
		if err := r.emit(record{file: r.in.Name, line: line, object: 1, key: key, v: item}); err != nil {
			return err
		}
	}
	return nil
}

// names lists what an object has, for an error.
func names(v *value) string {
	if v.kind != object {
		return v.kind.String()
	}
	if len(v.names) == 0 {
		return "no field"
	}
	var out []string
	for _, n := range v.names[:min(len(v.names), 20)] {
		out = append(out, quote(n))
	}
	return strings.Join(out, ", ")
}

// csv reads a table with a header. An empty cell is a missing value.
func (r *reading) csv(ctx context.Context, b io.Reader) error {
	c := csv.NewReader(b)
	if strings.EqualFold(filepath.Ext(r.in.Name), ".tsv") {
		c.Comma = '\t'
	}
	c.ReuseRecord = true
	broken := func(err error) error {
		var pe *csv.ParseError
		if errors.As(err, &pe) {
			e := mistake(r.in.Name, pe.Line, "", "broken CSV: "+pe.Err.Error(),
				"quote fields that hold commas, quotes or line breaks, and double the quotes in them")
			e.Column = pe.Column
			return e
		}
		return fmt.Errorf("reading %s: %w", quote(r.in.Name), err)
	}
	head, err := c.Read()
	if err != nil {
		return broken(err)
	}
	head = slices.Clone(head)
	for i, name := range head {
		if slices.Contains(head[:i], name) {
			return mistake(r.in.Name, 1, "", "the column "+quote(name)+" stands twice in the header",
				"name the columns differently")
		}
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return broken(err)
		}
		line, _ := c.FieldPos(0)
		v := value{kind: object, names: head, items: make([]value, len(row))}
		rec := record{file: r.in.Name, line: line, object: 1, key: strconv.Itoa(n), v: &v}
		for i, cell := range row {
			if !utf8.ValidString(cell) {
				if skipped := r.ledger.reject(rec, rec.fail(head[i], "invalid UTF-8", "save the file as UTF-8")); skipped != nil {
					return skipped
				}
				r.note.Objects++
				rec.v = nil
				break
			}
			if cell != "" {
				v.items[i] = value{kind: str, text: cell}
			}
		}
		if rec.v == nil {
			continue
		}
		if err := r.emit(rec); err != nil {
			return err
		}
	}
}

// parquet reads the rows of a Parquet file as objects.
func (r *reading) parquet(ctx context.Context, f *os.File, size int64) (err error) {
	defer func() {
		if p := recover(); p != nil { // the reader panics on some broken files
			err = mistake(r.in.Name, 0, "", fmt.Sprintf("broken Parquet: %v", p), "is the download complete?")
		}
	}()
	pf, err := parquet.OpenFile(f, size)
	if err != nil {
		return mistake(r.in.Name, 0, "", "broken Parquet: "+err.Error(), "is the download complete?")
	}
	row := 0
	for _, g := range pf.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 64)
		for {
			if err := ctx.Err(); err != nil {
				rows.Close()
				return err
			}
			n, err := rows.ReadRows(buf)
			for _, cells := range buf[:n] {
				row++
				rec := record{file: r.in.Name, line: row, object: 1, key: strconv.Itoa(row - 1)}
				fields := map[string]any{}
				if err := pf.Schema().Reconstruct(&fields, cells); err != nil {
					rows.Close()
					return rec.fail("", "broken Parquet: "+err.Error(), "is the download complete?")
				}
				v := fromGo(reflect.ValueOf(fields))
				rec.v = &v
				if err := r.emit(rec); err != nil {
					rows.Close()
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				rows.Close()
				return mistake(r.in.Name, row, "", "broken Parquet: "+err.Error(), "is the download complete?")
			}
		}
		if err := rows.Close(); err != nil {
			return fmt.Errorf("reading %s: %w", quote(r.in.Name), err)
		}
	}
	return nil
}
