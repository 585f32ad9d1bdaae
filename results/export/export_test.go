package export_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/export"
	"github.com/memtox/memtox/results/internal/runtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func open(t testing.TB, s runtest.Spec) *results.Reader {
	t.Helper()
	dir := t.TempDir()
	runtest.Write(t, dir, s)
	r, err := results.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func written(t testing.TB, r *results.Reader, format, table string) string {
	t.Helper()
	var b bytes.Buffer
	if err := export.Write(t.Context(), &b, r, format, table); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryFormatOfEveryTableIsAsItWas(t *testing.T) {
	r := open(t, runtest.Spec{Trials: 6, Agents: []string{"hermes"}, Defenses: []string{"none", "guard"}, NotScored: 0.2})
	for _, format := range export.Formats {
		for _, table := range export.Tables {
			file := "testdata/" + table + "." + format
			got := written(t, r, format, table)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s (-want +got):\n%s", file, d)
			}
		}
	}
}

// The two formats hold the same values, read back by other code than wrote them.
func TestFormatsAgree(t *testing.T) {
	r := open(t, runtest.Spec{Trials: 50, NotScored: 0.1})
	for _, table := range export.Tables {
		cells, err := csv.NewReader(strings.NewReader(written(t, r, "csv", table))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		d := json.NewDecoder(strings.NewReader(written(t, r, "jsonl", table)))
		d.UseNumber()
		for d.More() {
			var m map[string]any
			if err := d.Decode(&m); err != nil {
				t.Fatal(err)
			}
			n++
			if len(m) != len(cells[0]) {
				t.Fatalf("%s row %d: %d keys for %d columns", table, n, len(m), len(cells[0]))
			}
			for i, name := range cells[0] {
				v, ok := m[name]
				if !ok {
					t.Fatalf("%s row %d has no %s", table, n, name)
				}
				want := ""
				switch v := v.(type) {
				case nil:
				case string:
					want = export.Cell(v)
				case json.Number:
					want = v.String()
				case bool:
					want = map[bool]string{true: "true", false: "false"}[v]
				}
				if cells[n][i] != want {
					t.Errorf("%s row %d %s: CSV has %q, JSON %q", table, n, name, cells[n][i], want)
				}
			}
		}
		if n != len(cells)-1 || n == 0 {
			t.Errorf("%s: %d rows in JSON Lines, %d in CSV", table, n, len(cells)-1)
		}
	}
}

func TestNoTextBecomesAFormula(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                      "plain",
		"m-0001":                     "m-0001",
		"=1+1":                       "'=1+1",
		"+cmd|' /C calc'!A0":         "'+cmd|' /C calc'!A0",
		"-2":                         "'-2",
		"@SUM(A1)":                   "'@SUM(A1)",
		" =1":                        " '=1",
		"\t=1":                       `\t'=1`,
		"\r=1":                       `\r'=1`,
		"a;=1":                       "a;'=1",
		"a,\"=1":                     "a,\"'=1",
		"＝1":                         "'＝1",
		"a\x1b[31mb":                 `a\x1b[31mb`,
		"a\u202eb":                   `a\u202eb`,
		"a\x00b":                     `a\x00b`,
		"line\nline":                 `line\nline`,
		"=HYPERLINK(\"http://x\",1)": "'=HYPERLINK(\"http://x\",1)",
	} {
		if got := export.Cell(in); got != want {
			t.Errorf("Cell(%q) = %q, want %q", in, got, want)
		}
	}
	hostile := "\"=cmd|' /C calc'!A0\r\n@SUM(1);+1"
	r := open(t, runtest.Spec{Trials: 24, Hostile: hostile})
	for _, table := range export.Tables {
		cells, err := csv.NewReader(strings.NewReader(written(t, r, "csv", table))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range cells[1:] {
			for _, c := range row {
				if strings.ContainsAny(c, "\r\n") {
					t.Fatalf("a cell of %s breaks the line: %q", table, c)
				}
				for part := range strings.SplitSeq(c, ";") {
					if part = strings.TrimLeft(part, " \""); part != "" && strings.ContainsAny(part[:1], "=+-@") {
						t.Fatalf("a cell of %s is a formula: %q", table, c)
					}
				}
			}
		}
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	r := open(t, runtest.Spec{Trials: 1})
	for _, c := range [][2]string{{"xml", "trials"}, {"csv", "cases"}} {
		err := export.Write(t.Context(), &bytes.Buffer{}, r, c[0], c[1])
		if err == nil || !strings.Contains(err.Error(), "one of") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestExportCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := export.Write(ctx, &bytes.Buffer{}, open(t, runtest.Spec{Trials: 1}), "csv", "trials")
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A run that was killed has rows too.
func TestUnfinishedRunIsExported(t *testing.T) {
	r := open(t, runtest.Spec{Trials: 30, Unfinished: true})
	if n := strings.Count(written(t, r, "jsonl", "trials"), "\n"); n != 30 {
		t.Errorf("%d rows of 30", n)
	}
}

func BenchmarkDecisions(b *testing.B) {
	r := open(b, runtest.Spec{Trials: 20_000})
	for b.Loop() {
		if err := export.Write(b.Context(), discard{}, r, "jsonl", "decisions"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/160_000, "ns/row")
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
