// Package export writes the rows of a run as CSV or as JSON Lines, for tools
// that do not read Parquet.
//
// Both have the columns of SCHEMA.md under their names and in their order. In
// JSON Lines a null column is null, and texts are exact. CSV is for spreadsheets:
// a null column is an empty cell, an empty text too, every text is quoted, and
// texts cannot become formulas ([Cell]).
//
// # SARIF
//
// [WriteSARIF] writes findings as SARIF 2.1.0, the format in which code scanning
// services take results of analysis tools. There is one writer for the whole of memtox.
//
//	err := export.WriteSARIF(w, export.Tool{Name: "memtox gate", Version: v}, rules, findings)
//
// Texts of findings may be hostile: they become one line of visible characters,
// and nothing in them is a link or a placeholder.
//
// Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version
// 2.1.0, Plus Errata 01 (2023).
package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/memtox/memtox/results"
)

// Formats and tables that can be written.
var (
	Formats = []string{"csv", "jsonl"}
	Tables  = []string{"trials", "decisions"}
)

// Write streams one table of a run: "trials" or "decisions", as "csv" or
// "jsonl". Rows come in the order of the plan. A run that is being written or
// was killed gives the rows that it has.
func Write(ctx context.Context, w io.Writer, r *results.Reader, format, table string) error {
	encode, ok := map[string]encoder{"csv": csvRow, "jsonl": jsonRow}[format]
	if !ok {
		return fmt.Errorf("exporting rows: unknown format %q; one of %s", format, strings.Join(Formats, ", "))
	}
	var columns []column
	want := results.Everything
	switch table {
	case "trials":
		columns, want = columnsOf(reflect.TypeFor[results.Trial]()), results.TrialsOnly
	case "decisions":
		columns = columnsOf(reflect.TypeFor[results.Decision]())
	default:
		return fmt.Errorf("exporting rows: unknown table %q; one of %s", table, strings.Join(Tables, ", "))
	}
	out := bufio.NewWriterSize(w, 1<<16)
	if format == "csv" {
		for i, c := range columns {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(c.name)
		}
		out.WriteString("\r\n")
	}
	var buf []byte
	row := func(v reflect.Value) error {
		buf = encode(buf[:0], columns, v)
		_, err := out.Write(buf)
		return err
	}
	for e, err := range r.Entries(want) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if table == "trials" {
			err = row(reflect.ValueOf(&e.Trial).Elem())
		}
		for i := range e.Decisions {
			if err == nil {
				err = row(reflect.ValueOf(&e.Decisions[i]).Elem())
			}
		}
		if err != nil {
			return fmt.Errorf("writing the exported rows: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the exported rows: %w", err)
	}
	return nil
}

// column is a column's name and the key that stands before it in JSON.
type column struct{ name, key string }

func columnsOf(t reflect.Type) []column {
	out := make([]column, t.NumField())
	for i := range out {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
		out[i] = column{name, strconv.Quote(name) + ":"}
	}
	return out
}

type encoder func(b []byte, columns []column, row reflect.Value) []byte

func csvRow(b []byte, columns []column, row reflect.Value) []byte {
	for i := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		f := row.Field(i)
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				continue
			}
			f = f.Elem()
		}
		if f.Kind() == reflect.String {
			if s := f.String(); s != "" {
				b = append(b, '"')
				b = append(b, strings.ReplaceAll(Cell(s), `"`, `""`)...)
				b = append(b, '"')
			}
			continue
		}
		if f.Kind() == reflect.Float64 && f.Float()-f.Float() != 0 {
			continue // not a number: an empty cell, as null is
		}
		b = appendPlain(b, f)
	}
	return append(b, '\r', '\n')
}

func jsonRow(b []byte, columns []column, row reflect.Value) []byte {
	b = append(b, '{')
	for i, c := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c.key...)
		f := row.Field(i)
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				b = append(b, "null"...)
				continue
			}
			f = f.Elem()
		}
		if f.Kind() == reflect.String {
			text, err := json.Marshal(f.String())
			if err != nil {
				panic(err) // every text has a JSON form
			}
			b = append(b, text...)
			continue
		}
		b = appendPlain(b, f)
	}
	return append(b, '}', '\n')
}

// appendPlain appends what looks the same in CSV and JSON. A number that JSON
// does not know (NaN, infinity) is null.
func appendPlain(b []byte, f reflect.Value) []byte {
	switch f.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(b, f.Bool())
	case reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, f.Int(), 10)
	case reflect.Float64:
		v := f.Float()
		if v-v != 0 {
			return append(b, "null"...)
		}
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	panic("export: no encoding for a column of type " + f.Type().String())
}

// Cell makes a text safe for a cell of a spreadsheet. A text that would be read
// as a formula (it begins with =, +, -, @, or their full-width forms, also
// behind blanks or quotes) has an apostrophe before it; so has such a part behind
// a semicolon or comma, where a spreadsheet set to another separator would cut
// the line. Control characters and those that turn the direction of writing
// stand escaped, as in \u202e.
func Cell(s string) string {
	if !risky(s) {
		return s
	}
	var b strings.Builder
	fresh := true // nothing but blanks and quotes since the cell began
	for _, r := range s {
		if fresh && isTrigger(r) {
			b.WriteByte('\'')
		}
		if !strconv.IsPrint(r) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
			// A spreadsheet sees the escape, which begins no formula.
			fresh = fresh && (r == '\t' || r == '\r' || r == '\n')
			continue
		}
		b.WriteRune(r)
		switch r {
		case ';', ',', '|':
			fresh = true
		case ' ', '"', '\'', '\u00a0':
		default:
			fresh = false
		}
	}
	return b.String()
}

func isTrigger(r rune) bool { return strings.ContainsRune("=+-@＝＋－＠", r) }

func risky(s string) bool {
	return strings.ContainsAny(s, "=+-@＝＋－＠") || strings.IndexFunc(s,
		func(r rune) bool { return !strconv.IsPrint(r) }) >= 0
}
