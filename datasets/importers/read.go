package importers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
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

type reading struct {
	in      Input
	syntax  syntax
	records *path // where a document has its records; nil for lines
	ledger  *Ledger
	note    FileNote
	yield   func(record) error
}

func (r *reading) unread(err error) error {
	return fmt.Errorf("reading %s: %w", datasets.Quote(r.in.Name), err)
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
		return fmt.Errorf("opening %s: %w", datasets.Quote(r.in.Name), err)
	}
	defer f.Close()
	r.note = FileNote{Name: r.in.Name, Bytes: st.Size()}
	h := sha256.New()
	b := bufio.NewReaderSize(io.TeeReader(f, h), 1<<20)
	if r.syntax != columns {
		err = r.mark(b)
	}
	head, _ := b.Peek(4096)
	switch {
	case err != nil:
	case r.syntax == columns:
		err = r.parquet(ctx, io.NewSectionReader(f, 0, st.Size()))
	case r.syntax == table:
		err = r.csv(ctx, b)
	case r.syntax == whole || r.records != nil || bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("[")):
		err = r.document(ctx, b, st.Size())
	default:
		err = r.lines(ctx, b)
	}
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, b); err != nil { // the hash covers the whole file
		return r.unread(err)
	}
	r.note.SHA256 = hex.EncodeToString(h.Sum(nil))
	r.ledger.Files = append(r.ledger.Files, r.note)
	return nil
}

// mark takes a byte order mark away.
func (r *reading) mark(b *bufio.Reader) error {
	head, err := b.Peek(3)
	if err != nil && err != io.EOF {
		return r.unread(err)
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

// emit hands an object over. One that is broken is noted, or ends the import.
func (r *reading) emit(ctx context.Context, rec record, broken error) error {
	r.note.Objects++
	if err := ctx.Err(); err != nil {
		return err
	}
	if broken != nil {
		return r.ledger.reject(rec, broken)
	}
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
func (r *reading) lines(ctx context.Context, b io.Reader) error {
	s := bufio.NewScanner(b)
	s.Buffer(nil, maxLine+2)
	n := 1
	for ; s.Scan(); n++ {
		count := 0
		for p := newParser(s.Text()); ; {
			v, ok, err := p.next()
			if err == nil && !ok {
				break
			}
			count++
			rec := record{file: r.in.Name, line: n, object: count, key: strconv.Itoa(n), v: &v}
			broken := r.syntaxError(err, p.s, n)
			if n == 1 {
				broken = notLines(broken)
			}
			if err := r.emit(ctx, rec, broken); err != nil {
				return err
			}
			if broken != nil {
				break
			}
		}
		if count > 1 {
			r.ledger.MultiObjectLines = append(r.ledger.MultiObjectLines, ManyOnLine{File: r.in.Name, Line: n, Objects: count})
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return mistake(r.in.Name, n, "", fmt.Sprintf("the line is longer than %d MiB", maxLine>>20),
			"one object on each line; is this one JSON document? begin it with [ or name its records: in the mapping")
	case err != nil:
		return r.unread(err)
	}
	return nil
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
		return r.unread(err)
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
			return mistake(r.in.Name, 1, "records", "the document has nothing at "+at, "it has "+fieldsOf(&v))
		}
	}
	if r.syntax == whole && r.records == nil && v.kind == object {
		return r.emit(ctx, record{file: r.in.Name, line: 1, object: 1, key: "0", v: &v}, nil)
	}
	if where.kind != list && where.kind != object {
		return mistake(r.in.Name, 1, "records", at+" is "+where.kind.String(), "name a list of records, or an object of them")
	}
	line, upTo := 1, 0
	for i := range where.items {
		item := &where.items[i]
		line += strings.Count(p.s[upTo:item.pos], "\n")
		upTo = item.pos
		rec := record{file: r.in.Name, line: line, object: 1, key: where.nameOf(i), v: item}
		if err := r.emit(ctx, rec, nil); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf lists what an object has, for an error.
func fieldsOf(v *value) string {
	if v.kind != object {
		return v.kind.String()
	}
	if len(v.names) == 0 {
		return "no field"
	}
	var out []string
	for _, n := range v.names[:min(len(v.names), 20)] {
		out = append(out, datasets.Quote(n))
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
		return r.unread(err)
	}
	head, err := c.Read()
	if err != nil {
		return broken(err)
	}
	head = slices.Clone(head)
	for i, name := range head {
		if slices.Contains(head[:i], name) {
			return mistake(r.in.Name, 1, "", "the column "+datasets.Quote(name)+" stands twice in the header",
				"name the columns differently")
		}
	}
	for n := 0; ; n++ {
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
		var bad error
		for i, cell := range row {
			if bad == nil && !utf8.ValidString(cell) {
				bad = rec.fail(head[i], "invalid UTF-8", "save the file as UTF-8")
			}
			if cell != "" {
				v.items[i] = value{kind: str, text: cell}
			}
		}
		if err := r.emit(ctx, rec, bad); err != nil {
			return err
		}
	}
}

// parquet reads the rows of a Parquet file as objects.
func (r *reading) parquet(ctx context.Context, f *io.SectionReader) (err error) {
	row := 0
	broken := func(what any) error {
		return mistake(r.in.Name, row, "", fmt.Sprintf("broken Parquet: %v", what), "is the download complete?")
	}
	defer func() {
		if p := recover(); p != nil { // the reader panics on some broken files
			err = broken(p)
		}
	}()
	pf, err := parquet.OpenFile(f, f.Size())
	if err != nil {
		return broken(err)
	}
	rows := parquet.MultiRowGroup(pf.RowGroups()...).Rows()
	defer rows.Close()
	for buf := make([]parquet.Row, 64); ; {
		n, err := rows.ReadRows(buf)
		for _, cells := range buf[:n] {
			rec := record{file: r.in.Name, line: row + 1, object: 1, key: strconv.Itoa(row)}
			row++
			fields := map[string]any{}
			if err := pf.Schema().Reconstruct(&fields, cells); err != nil {
				return broken(err)
			}
			v := fromGo(fields)
			rec.v = &v
			if err := r.emit(ctx, rec, nil); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return broken(err)
		}
	}
}

// fromGo turns what the Parquet reader makes of a row into a value.
func fromGo(of any) value {
	v := reflect.ValueOf(of)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case !v.IsValid() || v.Kind() == reflect.Pointer:
		return value{}
	case v.Kind() == reflect.Bool:
		return value{kind: boolean, text: strconv.FormatBool(v.Bool())}
	case v.CanInt():
		return value{kind: number, text: strconv.FormatInt(v.Int(), 10)}
	case v.CanUint():
		return value{kind: number, text: strconv.FormatUint(v.Uint(), 10)}
	case v.CanFloat():
		return value{kind: number, text: strconv.FormatFloat(v.Float(), 'g', -1, 64)}
	case v.Kind() == reflect.String:
		return textValue(v.String())
	case v.Kind() == reflect.Map:
		out := value{kind: object}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, k := range keys {
			out.names, out.items = append(out.names, fmt.Sprint(k)), append(out.items, fromGo(v.MapIndex(k).Interface()))
		}
		return out
	case v.Kind() != reflect.Slice && v.Kind() != reflect.Array:
		return textValue(fmt.Sprint(of))
	case v.Type().Elem().Kind() == reflect.Uint8:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return textValue(string(b))
	}
	out := value{kind: list}
	for i := range v.Len() {
		out.items = append(out.items, fromGo(v.Index(i).Interface()))
	}
	return out
}

// textValue is a text, or bytes that only the fields that are made of them refuse:
// a column of pictures beside the texts does no harm.
func textValue(s string) value {
	if !utf8.ValidString(s) {
		return value{kind: binary, text: s}
	}
	return value{kind: str, text: s}
}
