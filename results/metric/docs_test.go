package metric_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

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
		for _, m := range metric.All() {
			if string(m.Topic) == topic {
				b.WriteString("| `" + m.Name + "` | " + m.Formula + " | " + m.Note + " |\n")
				rows++
			}
		}
		return b.String() + "<!-- end -->"
	})
	if rows != len(metric.All()) {
		t.Errorf("the page has a place for %d of %d metrics", rows, len(metric.All()))
	}
	if *update {
		if err := os.WriteFile(path, []byte(renewed), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if renewed != string(page) {
		t.Errorf("docs/metrics.md is not what the table says; renew it with\n\tgo test ./results/metric -update")
	}
}

func TestEveryMetricSaysWhatItIs(t *testing.T) {
	for i, m := range metric.All() {
		if m.Name == "" || m.About == "" || m.Formula == "" || m.Note == "" || m.Topic == "" {
			t.Errorf("%+v lacks a word", m)
		}
		if found, ok := metric.Find(m.Name); !ok || found != m || m.Index() != i {
			t.Errorf("%s is not found under its name, or stands elsewhere", m)
		}
	}
}
