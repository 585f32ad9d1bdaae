package results

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	second "github.com/fraugster/parquet-go"
	format "github.com/fraugster/parquet-go/parquet"
	"github.com/klauspost/compress/zstd"
)

// The files are read with a Parquet implementation that shares no code with the
// one that wrote them. fraugster/parquet-go is the lightest pure Go one: two
// small modules come with it, and it knows dictionaries, delta encoding and
// version 2 pages. It brings no zstd of its own; decompression is lent to it.
type lentZstd struct{}

func (lentZstd) CompressBlock([]byte) ([]byte, error) {
	return nil, errors.New("this test only reads")
}

func (lentZstd) DecompressBlock(b []byte) ([]byte, error) {
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(b, nil)
}

// readSecond returns every row as the second reader sees it: column to value,
// nulls absent.
func readSecond(t *testing.T, path string) (columns []string, rows []map[string]any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := second.NewFileReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, c := range r.Columns() {
		columns = append(columns, c.Name())
	}
	for {
		row, err := r.NextRow()
		if errors.Is(err, io.EOF) {
			return columns, rows
		}
		if err != nil {
			t.Fatalf("%s, row %d: %v", path, len(rows), err)
		}
		rows = append(rows, row)
	}
}

// checkRow compares every column of a row with the struct that it was made from.
func checkRow(t *testing.T, what string, got map[string]any, want any) {
	t.Helper()
	v := reflect.ValueOf(want)
	left := len(got)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("parquet"), ",")
		f := v.Field(i)
		g, there := got[name]
		if there {
			left--
		}
		if f.Kind() == reflect.Pointer {
			if f.IsNil() != !there {
				t.Fatalf("%s, column %s: %v, want %v", what, name, g, f)
			}
			if f.IsNil() {
				continue
			}
			f = f.Elem()
		}
		if b, ok := g.([]byte); ok {
			g = string(b)
		}
		if g != f.Interface() {
			t.Fatalf("%s, column %s: %v (%T), want %v (%T)", what, name, g, g, f, f.Interface())
		}
	}
	if left != 0 {
		t.Fatalf("%s has %d columns that the schema does not know: %v", what, left, got)
	}
}

func TestASecondParquetReaderSeesTheSameValues(t *testing.T) {
	second.RegisterBlockCompressor(format.CompressionCodec_ZSTD, lentZstd{})
	dir := t.TempDir()
	const n = 2500
	j := mustCreate(t, dir, Options{PartRows: 900})
	appendTrials(t, j, upTo(n))
	check := func(trials, decisions, index string, from, to int64) {
		t.Helper()
		columns, rows := readSecond(t, in(dir, trials))
		if len(columns) != reflect.TypeFor[Trial]().NumField() || int64(len(rows)) != to-from {
			t.Fatalf("%s: %d columns and %d rows", trials, len(columns), len(rows))
		}
		var all []Decision
		for i, row := range rows {
			tr, ds := synthetic(from + int64(i))
			checkRow(t, fmt.Sprintf("%s row %d", trials, i), row, tr)
			all = append(all, ds...)
		}
		columns, rows = readSecond(t, in(dir, decisions))
		if len(columns) != reflect.TypeFor[Decision]().NumField() || len(rows) != len(all) {
			t.Fatalf("%s: %d columns and %d rows, want %d", decisions, len(columns), len(rows), len(all))
		}
		for i, row := range rows {
			checkRow(t, fmt.Sprintf("%s row %d", decisions, i), row, all[i])
		}
		_, rows = readSecond(t, in(dir, index))
		if int64(len(rows)) != to-from {
			t.Fatalf("%s: %d rows", index, len(rows))
		}
		for i, row := range rows {
			tr, _ := synthetic(from + int64(i))
			if string(row["trial"].([]byte)) != tr.ID || row["index"] != tr.Index || row["length"].(int64) <= 0 {
				t.Fatalf("%s row %d: %v", index, i, row)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	check(trialParts.name(2), decisionParts.name(2), indexParts.name(2), 900, 1800)
	if _, err := mustResume(t, dir, Options{PartRows: 900}).Finish(nil); err != nil {
		t.Fatal(err)
	}
	check(trialsFile, decisionsFile, indexFile, 0, n)
}

func TestATrialWithItsDecisionsTakesUnder300Bytes(t *testing.T) {
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{})
	const n = 20_000
	for i := range int64(n) {
		tr, ds := synthetic(i)
		if err := j.Append(&tr, ds, nil); err != nil {
			t.Fatal(err)
		}
	}
	m, err := j.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	trial, calls := float64(m.Files[0].Bytes)/n, float64(m.Files[1].Bytes)/n
	t.Logf("%.0f bytes a trial and %.0f for its 8 decisions", trial, calls)
	if trial+calls > 300 {
		t.Errorf("%.0f bytes a trial in Parquet, want 300 at most", trial+calls)
	}
}
