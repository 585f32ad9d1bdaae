package report

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/internal/runtest"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/summary"
)

var update = flag.Bool("update", false, "write the golden files anew")

func read(t testing.TB, s runtest.Spec) *Report {
	t.Helper()
	dir := t.TempDir()
	runtest.Write(t, dir, s)
	r, err := results.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep, err := Read(t.Context(), r, Options{Summary: summary.Options{Vulnerabilities: map[string][]string{"explicit_command": {"V-M1", "V-S1"}, "policy_fact": {"V-P1", "V-S1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func htmlOf(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func markdown(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBothFormatsAreAsTheyWere(t *testing.T) {
	r := read(t, runtest.Spec{Trials: 240, Defenses: []string{"none", "guard", "guard@write"}, NotScored: 0.02})
	for i := range r.summary.Arms { // the rates that there were when the files were made
		r.summary.Arms[i].Rates = r.summary.Arms[i].Rates[:40]
	}
	states := markdown(t, read(t, runtest.Spec{Trials: 480, Defenses: []string{"none", "guard"}, States: true}))
	states = states[:strings.Index(states, "\n## Time inside the defense")]
	for file, got := range map[string]string{"testdata/report.html": htmlOf(t, r), "testdata/report.md": markdown(t, r),
		"testdata/states.md": states} {
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
			t.Errorf("%s (-want +got):\n%.4000s", file, d)
		}
	}
}

// What the page must have whatever the run: a policy, nothing that is loaded, no
// script, at least four plots, each with a name, a description and a table.
func TestPageStandsAlone(t *testing.T) {
	for name, s := range map[string]runtest.Spec{
		"ordinary":   {Trials: 240},
		"empty":      {},
		"unfinished": {Trials: 100, Planned: 240, Unfinished: true},
		"one arm":    {Trials: 40, Agents: []string{"hermes"}, Defenses: []string{"none"}},
		"all failed": {Trials: 40, NotScored: 1},
		"hostile":    {Trials: 240, Hostile: `<script>x()</script>"'><img src=//h.invalid/x onerror=x()>`},
		"LLM":        {Trials: 40, LLM: true},
		"states":     {Trials: 480, States: true, NotScored: 0.1},
	} {
		page := htmlOf(t, read(t, s))
		if !strings.Contains(page, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src &#39;sha256-`) {
			t.Errorf("%s: no policy", name)
		}
		if m := regexp.MustCompile(`(?i)<(script|link|iframe|object|embed|img|base|form|use|image)\b|@import|url\(|<[a-z][^>]*\s(on\w+|style|src|srcset)=`).FindString(page); m != "" {
			t.Errorf("%s: the page holds %q", name, m)
		}
		plots := strings.Count(page, "<svg ")
		if plots < 4 || strings.Count(page, "<desc ") != plots || strings.Count(page, `role="img"`) != plots {
			t.Errorf("%s: %d plots, %d descriptions", name, plots, strings.Count(page, "<desc "))
		}
		if strings.Count(page, "<figure") != strings.Count(page, `<div class="scroll"`) {
			t.Errorf("%s: a figure has no table", name)
		}
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Errorf("%s: a number is none", name)
		}
		if has := strings.Contains(page, "is not an LLM"); has == s.LLM {
			t.Errorf("%s: that the reference model is not an LLM is said: %v", name, has)
		}
		if has := strings.Contains(page, "not finished"); has != s.Unfinished {
			t.Errorf("%s: that the run is not finished is said: %v", name, has)
		}
		for _, svg := range regexp.MustCompile(`(?s)<svg .*?</svg>`).FindAllString(page, -1) {
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				_, err := d.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Errorf("%s: a plot is no XML: %v", name, err)
					break
				}
			}
		}
	}
}

// Hostile texts neither leave their cell nor reach a reader's terminal.
func TestMarkdownIsInert(t *testing.T) {
	md := markdown(t, read(t, runtest.Spec{Trials: 240, NotScored: 0.3,
		Hostile: "|a\n# b <b>c</b> [l](http://h.invalid) ![i](x) `d` @someone \x1b[31m\u202e"}))
	for _, bad := range []string{"<b>", "l](", "\x1b", "\u202e", "@someone", "http://", "\n# b"} {
		if strings.Contains(md, bad) {
			i := strings.Index(md, bad)
			t.Errorf("the page holds %q: …%q", bad, md[max(i-60, 0):i+20])
		}
	}
	columns := -1
	for line := range strings.Lines(md) {
		if !strings.HasPrefix(line, "|") {
			columns = -1
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns >= 0 && n != columns {
			t.Errorf("a row has %d bars, the table %d: %s", n, columns, line)
		}
		columns = n
	}
}

func TestWritersSayWhatWentWrong(t *testing.T) {
	r := read(t, runtest.Spec{Trials: 10})
	for _, err := range []error{r.HTML(full{}), r.Markdown(full{})} {
		if err == nil || !strings.Contains(err.Error(), "short write") || !strings.Contains(err.Error(), r.run.ID) {
			t.Error(err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// The front is worked out by hand: b is dominated by c, d equals c, e is not
// measured.
func TestParetoFront(t *testing.T) {
	at := func(done, harm int) (p tradeoff) {
		p.Done.K, p.Done.N, p.Harm.K, p.Harm.N = done, 10, harm, 10
		return p
	}
	p := scatterPanel{points: []tradeoff{at(10, 8), at(4, 3), at(5, 3), at(5, 3), {}, at(0, 0), at(0, 1)}}
	p.front()
	want := []bool{true, false, true, true, false, true, false}
	for i, pt := range p.points {
		if pt.front != want[i] {
			t.Errorf("point %d: on the front: %v", i, pt.front)
		}
	}
}

// BenchmarkMillion reads and writes the report of 1,000,000 decisions.
func BenchmarkMillion(b *testing.B) {
	dir := b.TempDir()
	runtest.Write(b, dir, runtest.Spec{Trials: 125_000})
	size := 0
	for b.Loop() {
		r, err := results.OpenReader(dir)
		if err != nil {
			b.Fatal(err)
		}
		rep, err := Read(b.Context(), r, Options{})
		if err != nil {
			b.Fatal(err)
		}
		size = len(htmlOf(b, rep))
		r.Close()
	}
	b.ReportMetric(float64(size), "bytes")
}

// The section on the guard's layers is there when the run can say something of
// them, and only then.
func TestLayersOfTheGuard(t *testing.T) {
	for _, c := range []struct {
		defenses []string
		want     []string // arms listed, of one agent
	}{
		{[]string{"none", "guard"}, nil},
		{[]string{"none", "keyword"}, nil},
		{[]string{"none", "memoryguard", "guardian"}, nil},
		{[]string{"guard", "guard@write"}, []string{"guard", "guard@write"}},
		{[]string{"none", "keyword", "memoryguard", "guard"}, []string{"none", "keyword", "guard"}},
	} {
		var got []string
		for _, l := range read(t, runtest.Spec{Trials: 60, Agents: []string{"hermes"}, Defenses: c.defenses}).layers() {
			got = append(got, l.Defense)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%v (-want +got):\n%s", c.defenses, d)
		}
	}
	r := read(t, runtest.Spec{Trials: 6, Defenses: []string{"none", "mine"}})
	r.run.Settings["resolved"] = map[string]any{"defenses": map[string]any{"mine": "guard:strict", "guard": "keyword"}}
	if !r.is("mine", "guard") || r.is("guard", "guard") {
		t.Error("a label hides what a defense is")
	}
}

// A vulnerability's row holds the trials of every class that exploits it, and
// no others.
func TestVulnerabilitiesAddUpTheirClasses(t *testing.T) {
	r := read(t, runtest.Spec{Trials: 960})
	_, all := r.sections()
	s := all[slices.IndexFunc(all, func(s section) bool { return s.ID == "vulnerabilities" })]
	if len(s.Figures) != 2 || s.Figures[0].Plot == "" {
		t.Fatalf("no plot for each of two agents: %d figures", len(s.Figures))
	}
	for i := range r.summary.Arms {
		a := &r.summary.Arms[i]
		classes := map[string]int{}
		for _, c := range a.Classes {
			classes[c.Name] = c.Rate(metric.EndToEnd).K
		}
		want := map[string]int{"V-M1": classes["explicit_command"], "V-P1": classes["policy_fact"],
			"V-S1": classes["explicit_command"] + classes["policy_fact"]}
		if len(a.Vulnerabilities) != len(want) {
			t.Fatalf("%s: %d vulnerabilities, want %d", a.Name(), len(a.Vulnerabilities), len(want))
		}
		for _, v := range a.Vulnerabilities {
			if v.Rate(metric.EndToEnd).K != want[v.Name] {
				t.Errorf("%s: %s is %d, want %d", a.Name(), v.Name, v.Rate(metric.EndToEnd).K, want[v.Name])
			}
		}
	}
	rows := s.Figures[0].Table.Rows
	if len(rows) != 3 || rows[0][0] != "V-M1" || len(rows[0]) != 7 || !strings.Contains(rows[2][1], "/") {
		t.Errorf("the table: %v", rows)
	}
}

// Of every arm the examples are what they are called: by the rows, whatever the plan.
func TestExamplesAreWhatTheyAreCalled(t *testing.T) {
	spec := runtest.Spec{Trials: 1200, States: true, Defenses: []string{"none", "keyword", "guard"}}
	r := read(t, spec)
	rows := map[string]results.Trial{}
	harmed := map[[2]string]bool{} // undefended, by label and case
	for i := range spec.Trials {
		x, _ := spec.Trial(i)
		rows[x.ID] = x
		if x.Defense == "none" && x.Harm != nil && *x.Harm {
			harmed[[2]string{r.run.Label(x.Agent, x.Model), x.Case}] = true
		}
	}
	r.viewer = "index.html#/trial?run=."
	f := r.examples.figure(r)
	found := [kinds]int{}
	for i, row := range f.Examples {
		for kind, list := range row[1:] {
			for _, e := range list {
				x := rows[e.Trial]
				ok := x.Defense == f.Table.Rows[i][0] && r.run.Label(x.Agent, x.Model) == e.Arm
				switch kind {
				case through:
					ok = ok && x.Harm != nil && *x.Harm
				case rescued:
					ok = ok && *x.Done && x.Label == results.Attack && harmed[[2]string{e.Arm, x.Case}]
				case failed:
					ok = ok && x.Label == results.Benign && !*x.Done
				}
				if !ok {
					t.Errorf("%s, column %d: %+v is %+v", f.Table.Rows[i][0], kind, e, x)
				}
				found[kind]++
			}
		}
	}
	if found != [kinds]int{8, 8, 12} {
		t.Errorf("examples of each kind: %v", found)
	}
	if page := htmlOf(t, r); !strings.Contains(page, `<a href="index.html#/trial?run=.&amp;id=`) {
		t.Error("an example is no link")
	}
}
