package doccheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

var (
	quoted = regexp.MustCompile(`'[^']*'`)
	word   = regexp.MustCompile(`[a-z_]+`)
	// The columns that the pandas line names: of the table, grouped by, averaged.
	pandas = regexp.MustCompile(`\bt\.([a-z_]+) |groupby\('([a-z_]+)'\)\.([a-z_]+)\.mean`)
	sql    = strings.Fields("select avg int from where and group by")
)

// The lines for DuckDB and pandas name columns that trials.parquet has, and run
// where these programs are.
func TestParquetOneLiners(t *testing.T) {
	long(t)
	top := root(t)
	page, err := os.ReadFile(filepath.Join(top, "docs", "deciding.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if program, _, ok := strings.Cut(line, " -c "); ok && (program == "duckdb" || program == "python3") {
			lines[program] = strings.TrimSpace(line)
		}
	}
	if len(lines) != 2 {
		t.Fatalf("docs/deciding.md shows %d of the two lines", len(lines))
	}
	dir := t.TempDir()
	cmd := exec.Command(program(t), "run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense", "none,no-memory",
		"--out", filepath.Join(dir, "runs", "small"))
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("memtox run: %v\n%s", err, out)
	}
	columns := columnsOf(t, filepath.Join(dir, "runs", "small", "trials.parquet"))
	var named []string
	for _, w := range word.FindAllString(quoted.ReplaceAllString(strings.TrimPrefix(lines["duckdb"], "duckdb -c"), ""),
		-1) {
		if !slices.Contains(sql, w) {
			named = append(named, w)
		}
	}
	of := len(named)
	for _, m := range pandas.FindAllStringSubmatch(lines["python3"], -1) {
		for _, n := range m[1:] {
			if n != "" {
				named = append(named, n)
			}
		}
	}
	if of < 4 || len(named)-of < 3 {
		t.Errorf("only %q are found in the lines: the check has lost its way", named)
	}
	for _, n := range named {
		if !slices.Contains(columns, n) {
			t.Errorf("docs/deciding.md: trials.parquet has no column %q", n)
		}
	}
	for program, needs := range map[string][]string{"duckdb": {"duckdb", "--version"},
		"python3": {"python3", "-c", "import pandas; pandas.io.parquet.get_engine('auto')"}} {
		t.Run(program, func(t *testing.T) {
			if out, err := exec.Command(needs[0], needs[1:]...).CombinedOutput(); err != nil {
				t.Skipf("not run, only held to the columns: %s: %v\n%s", strings.Join(needs, " "), err, out)
			}
			cmd := exec.Command("sh", "-ec", lines[program])
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "no-memory") {
				t.Errorf("%s: %v\n%s", lines[program], err, out)
			}
		})
	}
}

func columnsOf(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, field := range file.Schema().Fields() {
		out = append(out, field.Name())
	}
	return out
}
