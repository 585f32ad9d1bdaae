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
	"slices"
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
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("exporting rows: unknown format %q; one of %s", format, strings.Join(Formats, ", "))
	}
	columns, want := results.Columns(reflect.TypeFor[results.Trial]()), results.TrialsOnly
	switch table {
	case "trials":
	case "decisions":
		columns, want = results.Columns(reflect.TypeFor[results.Decision]()), results.Everything
	default:
		return fmt.Errorf("exporting rows: unknown table %q; one of %s", table, strings.Join(Tables, ", "))
	}
	out := bufio.NewWriterSize(w, 1<<16)
	csv := format == "csv"
	if csv {
		out.WriteString(strings.Join(columns, ",") + "\r\n")
	}
	for i, name := range columns { // from here on what stands before a value
		columns[i] = strconv.Quote(name) + ":"
		if csv {
			columns[i] = ""
		}
	}
	var buf []byte
	row := func(v reflect.Value) error {
		buf = appendRow(buf[:0], columns, v, csv)
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

// appendRow appends a line. What is null, or a number that JSON does not know (NaN,
// infinity), is null there and an empty cell in CSV.
func appendRow(b []byte, columns []string, row reflect.Value, csv bool) []byte {
	open, end, null := "{", "}\n", "null"
	if csv {
		open, end, null = "", "\r\n", ""
	}
	b = append(b, open...)
	for i, key := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, key...)
		switch f := reflect.Indirect(row.Field(i)); f.Kind() {
		case reflect.Invalid:
			b = append(b, null...)
		case reflect.String:
			b = appendText(b, f.String(), csv)
		case reflect.Bool:
			b = strconv.AppendBool(b, f.Bool())
		case reflect.Int32, reflect.Int64:
			b = strconv.AppendInt(b, f.Int(), 10)
		case reflect.Float64:
			if v := f.Float(); v-v != 0 {
				b = append(b, null...)
			} else {
				b = strconv.AppendFloat(b, v, 'g', -1, 64)
			}
		default:
			panic("export: no encoding for a column of type " + f.Type().String())
		}
	}
	return append(b, end...)
}

func appendText(b []byte, s string, csv bool) []byte {
	switch {
	case !csv:
		text, err := json.Marshal(s)
		if err != nil {
			panic(err) // every text has a JSON form
		}
		return append(b, text...)
	case s == "":
		return b
	}
	return append(append(append(b, '"'), strings.ReplaceAll(Cell(s), `"`, `""`)...), '"')
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
