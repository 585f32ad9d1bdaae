package stats

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// golden reads the rows of a file that scripts/stats-golden/golden.R wrote.
func golden(t *testing.T, name string) []goldenRow {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Fatalf("testdata/%s.csv holds no rows", name)
	}
	var rows []goldenRow
	for _, rec := range all[1:] {
		m := map[string]string{}
		for i, h := range all[0] {
			m[h] = rec[i]
		}
		rows = append(rows, goldenRow{t, m})
	}
	return rows
}

type goldenRow struct {
	t *testing.T
	m map[string]string
}

func (r goldenRow) text(col string) string {
	v, ok := r.m[col]
	if !ok {
		r.t.Fatalf("golden file has no column %q", col)
	}
	return v
}

func (r goldenRow) float(col string) float64 { return parseFloat(r.t, r.text(col)) }

func (r goldenRow) int(col string) int { return int(r.float(col)) }

// floats reads a cell of numbers separated by spaces.
func (r goldenRow) floats(col string) []float64 {
	var out []float64
	for s := range strings.FieldsSeq(r.text(col)) {
		out = append(out, parseFloat(r.t, s))
	}
	return out
}

func (r goldenRow) ints(col string) []int {
	var out []int
	for _, v := range r.floats(col) {
		out = append(out, int(v))
	}
	return out
}

func parseFloat(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// near fails unless got is want within a relative error of tol (absolute below 1).
func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if got == want { // also infinities
		return
	}
	if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

func counts(ks, ns []int) []Count {
	var fs []Count
	for i := range ks {
		fs = append(fs, Count{ks[i], ns[i]})
	}
	return fs
}

// hasWarning reports whether ws holds a warning with the code.
func hasWarning(ws []Warning, code WarningCode) bool {
	for _, w := range ws {
		if w.Code == code {
			return true
		}
	}
	return false
}

// clopperPearson is the exact interval of k successes in n independent trials.
func clopperPearson(k, n int, level float64) Rate { return Wilson(k, n, level).exact() }
