package metric_test

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
)

var update = flag.Bool("update", false, "renew the tables of docs/metrics.md")

// tables are those of the page that this package's table decides.
var tables = regexp.MustCompile(`(?s)<!-- metrics: ([^\n]*?) -->\n.*?<!-- end -->`)

func TestThePageOnMetricsIsTheTable(t *testing.T) {
	const path = "../../docs/metrics.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	renewed := tables.ReplaceAllStringFunc(string(page), func(block string) string {
		topic := tables.FindStringSubmatch(block)[1]
		var b strings.Builder
		b.WriteString("<!-- metrics: " + topic + " -->\n| metric | formula | read it as |\n|---|---|---|\n")
		for _, m := range all() {
			if string(m.Topic) == topic {
				b.WriteString("| `" + m.Name + "` | " + m.Formula + " | " + m.Note + " |\n")
				rows++
			}
		}
		return b.String() + "<!-- end -->"
	})
	if rows != metric.Count() {
		t.Errorf("the page has a place for %d of %d metrics", rows, metric.Count())
	}
	if *update {
		if err := os.WriteFile(path, []byte(renewed), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if renewed != string(page) {
		t.Errorf("docs/metrics.md is not what the table says; renew it with\n\tgo test ./results/metric -update")
	}
}

// all are the rates of runs and those of texts alone.
func all() (list []*metric.Metric) {
	for i := range metric.Count() {
		list = append(list, metric.At(i))
	}
	return list
}

// Whoever recomputes a rate from the rows finds the columns that its formula names.
func TestFormulasNameColumns(t *testing.T) {
	columns := map[string]bool{}
	for f := range reflect.TypeFor[results.Trial]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		columns[name] = true
	}
	for _, m := range all() {
		for _, word := range regexp.MustCompile(`[a-z]+(_[a-z]+)+`).FindAllString(m.Formula, -1) {
			if !columns[word] {
				t.Errorf("%s: trials have no column %s", m, word)
			}
		}
	}
}

func TestEveryMetricSaysWhatItIs(t *testing.T) {
	for i, m := range all() {
		if m.Name == "" || m.About == "" || m.Formula == "" || m.Note == "" || m.Topic == "" || m.Head == "" {
			t.Errorf("%+v lacks a word", m)
		}
		found, ok := metric.Find(m.Name)
		if alone := m.Topic == metric.AboutTexts; m.Index() != i || ok == alone || ok && found != m || alone && !m.Texts {
			t.Errorf("%s is not found under its name, or stands elsewhere", m)
		}
		if _, ok := metric.Find(m.After); m.After != "" && !ok {
			t.Errorf("%s stands after %q, which is no rate", m, m.After)
		}
	}
}
