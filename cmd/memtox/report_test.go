package main

import (
	"os"
	"strings"
	"testing"
)

func TestReportWritesAPage(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--limit", "12", "--agent", "hermes", "--defense", "none,keyword", "--out",
		"run")
	if page := c.must("report", "run"); !strings.HasPrefix(page, "<!DOCTYPE html>") || strings.Count(page, "<svg") < 4 ||
		!strings.Contains(page, "is not an LLM") {
		t.Errorf("no page: %.200s", page)
	}
	if page := c.must("report", "run", "--format", "markdown"); !strings.HasPrefix(page, "# memtox report") ||
		!strings.Contains(page, "## Vulnerability by defense") || !strings.Contains(page, "| V-S1 |") {
		t.Errorf("no Markdown: %.200s", page)
	}
	c.must("report", "run", "-o", "r.md")
	c.must("report", "run", "-o", "r.html")
	for file, begin := range map[string]string{"r.md": "# memtox", "r.html": "<!DOCTYPE"} {
		if b, err := os.ReadFile(c.dir + "/" + file); err != nil || !strings.HasPrefix(string(b), begin) {
			t.Errorf("%s: %v, %.40s", file, err, b)
		}
	}
}

func TestReportRefusesWhatItCannot(t *testing.T) {
	c := newConsole(t)
	for _, args := range [][]string{{"report"}, {"report", "nothing"}, {"report", "a", "b"},
		{"report", "nothing", "--format", "pdf"}} {
		if code := c.run(args...); code != Usage || c.err.Len() == 0 {
			t.Errorf("memtox %q: exit code %d, %s", args, code, c.err.String())
		}
	}
}

// Runs of every kind can be read: records around the gate, texts alone, a sweep,
// longer lives, variants.
func TestEveryKindOfRunIsReportedComparedAndExported(t *testing.T) {
	c := newConsole(t)
	for name, args := range map[string][]string{
		"around": {"run", "--dataset", "memtox-oob", "--limit", "20", "--agent", "hermes", "--defense", "none,signed"},
		"texts":  {"detect", "--dataset", "memtox-smoke", "--defense", "keyword,provenance"},
		"sweep": {"run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense", "none,anomaly", "--sweep",
			"anomaly.z=1:2:1"},
		"lives": {"run", "--limit", "12", "--agent", "hermes", "--defense", "none,keyword", "--set", "write_sessions=1,2",
			"--set", "gap=0,1"},
		"mutate": {"run", "--limit", "12", "--agent", "hermes", "--defense", "none,keyword", "--set", "mutate=base64"},
	} {
		c.must(append(args, "--out", name)...)
		page := c.must("report", name)
		if !strings.Contains(page, "</html>") || strings.Contains(page, "NaN") {
			t.Errorf("%s: the report is cut or holds no number: %.200s", name, page)
		}
		c.must("report", name, "--format", "markdown")
		if texts := name == "texts"; strings.Contains(page, "texts alone") != texts ||
			strings.Contains(page, "is not an LLM") == texts {
			t.Errorf("%s: the report misnames the model", name)
		}
		if out := c.must("compare", name, "--all-pairs", "--metric", "tpr"); !strings.Contains(out, "difference") {
			t.Errorf("%s: compare: %s", name, out)
		}
		if name == "texts" {
			if out := c.must("gate", name, "--require", "keyword.tpr >= 0.01"); !strings.Contains(out,
				"model none (texts, no agent)") {
				t.Errorf("the gate misnames the model: %s", out)
			}
		}
		for _, table := range []string{"trials", "decisions"} {
			if out := c.must("export", name, "--table", table); strings.Count(out, "\n") < 2 {
				t.Errorf("%s: export of %s: %s", name, table, out)
			}
		}
	}
}
