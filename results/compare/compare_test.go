package compare_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func spec() *runSpec {
	return &runSpec{ID: "run-1", Dataset: "small", Families: 8, Cases: 24, Seed: 3, Arms: []armSpec{
		{Agent: "hermes", Defense: "none", Lands: 0.8, LatencyNS: 200},
		{Agent: "hermes", Defense: "keyword", Lands: 0.8, Stops: 0.4, FalseAlarm: 0.05, LatencyNS: 2000},
		{Agent: "hermes", Defense: "guard", Lands: 0.8, Stops: 0.9, FalseAlarm: 0.02, LatencyNS: 9000},
	}}
}

func load(t *testing.T, dir string, o compare.LoadOptions) *compare.Table {
	t.Helper()
	table, err := compare.Load(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	table.Name = filepath.Base(dir)
	return table
}

var headline = []string{"end_to_end"}

func report(t *testing.T, o compare.Options, tables ...*compare.Table) *compare.Report {
	t.Helper()
	r, err := compare.Compare(tables, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, r *compare.Report, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReportsAreWrittenAsTheGoldenFilesHaveThem(t *testing.T) {
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	spec().Write(t, "one")
	other := spec()
	other.ID, other.Seed, other.Skip, other.Errors = "run-2", 4, map[string]bool{"a-0003": true},
		map[string]bool{"a-0005": true}
	other.Settings = map[string]any{"background": 0}
	other.Arms = other.Arms[:2]
	other.Write(t, "two")
	wd, _ := os.Getwd()
	one := load(t, filepath.Join(wd, "one"), compare.LoadOptions{Latencies: true})
	two := load(t, filepath.Join(wd, "two"), compare.LoadOptions{Latencies: true})
	within := report(t, compare.Options{Metrics: []string{"end_to_end", "utility", "latency_us.write.p50",
		"latency_us.read.p95"}, By: []string{"class"}, Seed: 1}, one)
	between := report(t, compare.Options{Seed: 1, Changed: true, Latency: true}, one, two)
	outputs := map[string][]byte{}
	for _, f := range render.Formats() {
		outputs["within."+f], outputs["between."+f] = write(t, within, f), write(t, between, f)
	}
	t.Chdir(home)
	for name, b := range outputs {
		golden(t, name, b)
	}
}

func TestRatesAreThoseOfTheSummary(t *testing.T) {
	s := spec()
	s.Errors = map[string]bool{"a-0002": true, "b-0001": true}
	dir := s.Write(t, t.TempDir())
	table := load(t, dir, compare.LoadOptions{})
	r, err := results.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := summary.New(r.Run(), summary.Options{})
	for e, err := range r.Entries(results.Latencies) {
		if err != nil {
			t.Fatal(err)
		}
		rows.Add(e)
	}
	sum := rows.Summary()
	checked := 0
	for i := range sum.Arms {
		a := &sum.Arms[i]
		for _, m := range metric.All() {
			if m.PerRecord {
				continue // records cannot be paired by case
			}
			name, want := m.Name, a.Rate(m)
			tally := table.Arm(a.Agent, a.Defense).Count(m, compare.Slice{})
			got := stats.ClusteredWilson(tally.Families, 0)
			if !got.Measured() && !want.Measured() {
				continue // a run without a judge has no judged rates
			}
			if got.K != want.K || got.N != want.N || math.Abs(got.Hi-want.Hi) > 1e-9 {
				t.Errorf("%s %s: %v, and the summary says %v", a.Name(), name, got, want)
			}
			if tally.NotScored != int(a.Bounds[name].NotScored) {
				t.Errorf("%s %s: %d not scored, and the summary says %d", a.Name(), name, tally.NotScored, a.Bounds[name].NotScored)
			}
			if want.N > 0 {
				checked++
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d rates had trials", checked)
	}
}

func TestPairingByCaseAndEpochDropsAndCounts(t *testing.T) {
	dir := t.TempDir()
	a := spec()
	a.Epochs = 2
	b := spec()
	b.Epochs, b.Seed = 1, 9
	b.Skip, b.Errors = map[string]bool{"a-0001": true}, map[string]bool{"a-0002": true}
	ta, tb := load(t, a.Write(t, filepath.Join(dir, "a")), compare.LoadOptions{}),
		load(t, b.Write(t, filepath.Join(dir, "b")), compare.LoadOptions{})
	m, _ := metric.Find("end_to_end")
	p := compare.Pair(ta.Arm("hermes", "none"), tb.Arm("hermes", "none"), m, compare.Slice{})
	want := compare.Dropped{OnlyA: 24 + 1, NotScored: 1}
	if p.Dropped != want || p.Pairs.N() != 22 {
		t.Errorf("dropped %+v of %d pairs, want %+v of 22", p.Dropped, p.Pairs.N(), want)
	}
	q := compare.Pair(tb.Arm("hermes", "none"), ta.Arm("hermes", "none"), m, compare.Slice{})
	if q.Dropped != (compare.Dropped{OnlyB: 25, NotScored: 1}) || q.Pairs.OnlyA != p.Pairs.OnlyB ||
		q.Pairs.Both != p.Pairs.Both {
		t.Errorf("the other way round: %+v, %+v", q.Dropped, q.Pairs)
	}
}

func TestIndependentCasesGetMcNemarAndNewcombe(t *testing.T) {
	s := spec()
	s.Families = s.Cases // a family a case
	r := report(t, compare.Options{Metrics: headline}, load(t, s.Write(t, t.TempDir()), compare.LoadOptions{}))
	for _, c := range r.Declared.Comparisons {
		if c.Test.Method != "mcnemar-exact" || c.Difference.Method != "newcombe-paired" || c.Test.P != c.McNemar.P {
			t.Errorf("%s: %s and %s", c.A.Defense, c.Test.Method, c.Difference.Method)
		}
		if c.Pairs.N() != 24 {
			t.Errorf("%s: %d pairs", c.A.Defense, c.Pairs.N())
		}
	}
	text := string(write(t, r, "table"))
	for _, want := range []string{"McNemar", "paired", "Holm-adjusted", "not an LLM"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table does not say %q:\n%s", want, text)
		}
	}
}

func TestHolmCoversTheWholeDeclaredFamily(t *testing.T) {
	r := report(t, compare.Options{Metrics: []string{"end_to_end", "asr"}},
		load(t, spec().Write(t, t.TempDir()), compare.LoadOptions{}))
	p := make([]float64, len(r.Declared.Comparisons))
	for i, c := range r.Declared.Comparisons {
		p[i] = c.Test.P
	}
	want, _ := stats.Holm(p)
	for i, c := range r.Declared.Comparisons {
		if *c.Adjusted != want[i] {
			t.Errorf("%s %s: adjusted %v, want %v", c.A.Defense, c.Metric, *c.Adjusted, want[i])
		}
	}
	if len(p) != 4 {
		t.Errorf("%d comparisons, want 2 arms by 2 metrics", len(p))
	}
}

func TestWithoutLandingThereIsNoHeadroom(t *testing.T) {
	s := spec()
	s.Arms[0].Lands = 0
	r := report(t, compare.Options{Metrics: headline}, load(t, s.Write(t, t.TempDir()), compare.LoadOptions{}))
	for _, c := range r.Declared.Comparisons {
		if c.Prevented == nil || c.Prevented.Headroom {
			t.Errorf("%s: prevented %+v, want no headroom", c.A.Defense, c.Prevented)
		}
	}
	if text := string(write(t, r, "table")); !strings.Contains(text, "no headroom") {
		t.Error(text)
	}
}

func TestPreventedFraction(t *testing.T) {
	r := report(t, compare.Options{Metrics: headline}, load(t, spec().Write(t, t.TempDir()), compare.LoadOptions{}))
	for _, c := range r.Declared.Comparisons {
		a, _ := c.RateA.Value()
		b, _ := c.RateB.Value()
		v := c.Prevented
		if !v.Headroom || math.Abs(*v.Value-(1-a/b)) > 1e-12 || v.Lo != nil && *v.Lo > *v.Value ||
			*v.Value > *v.Hi || *v.Hi > 1 {
			t.Errorf("%s: %+v with rates %v and %v", c.A.Defense, *v, a, b)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	one := load(t, spec().Write(t, filepath.Join(dir, "one")), compare.LoadOptions{})
	foreign := spec()
	foreign.Dataset = "another"
	two := load(t, foreign.Write(t, filepath.Join(dir, "two")), compare.LoadOptions{})
	lone := spec()
	lone.Arms = lone.Arms[:1]
	three := load(t, lone.Write(t, filepath.Join(dir, "three")), compare.LoadOptions{})
	for name, c := range map[string]struct {
		tables []*compare.Table
		o      compare.Options
		want   string
	}{
		"RSR":               {[]*compare.Table{one}, compare.Options{Metrics: []string{"rsr"}}, "end_to_end"},
		"RSR between runs":  {[]*compare.Table{one, three}, compare.Options{Metrics: []string{"rsr"}}, "end_to_end"},
		"other cases":       {[]*compare.Table{one, two}, compare.Options{}, "different cases"},
		"unknown metric":    {[]*compare.Table{one}, compare.Options{Metrics: []string{"nonsense"}}, "unknown metric"},
		"unknown slice":     {[]*compare.Table{one}, compare.Options{By: []string{"mood"}}, "unknown slice"},
		"unknown reference": {[]*compare.Table{one}, compare.Options{Against: "absent"}, "--against"},
		"unknown defense":   {[]*compare.Table{one}, compare.Options{Defenses: []string{"absent"}}, "no arm has the defense"},
		"one arm":           {[]*compare.Table{three}, compare.Options{}, "no two arms"},
		"against and runs":  {[]*compare.Table{one, three}, compare.Options{Against: "none"}, "--against"},
		"level":             {[]*compare.Table{one}, compare.Options{Level: 95}, "between 0 and 1"},
		"nothing":           {nil, compare.Options{}, "no run"},
	} {
		_, err := compare.Compare(c.tables, c.o)
		var u *settings.Problem
		if !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a usage error with %q", name, err, c.want)
		}
	}
}

// Two versions of one set, or one version whose cases were changed, are different
// cases; the name alone does not make them the same.
func TestVersionsOfASetAreNeverComparedSilently(t *testing.T) {
	of := func(name, version, sum string) *compare.Table {
		return &compare.Table{Name: name, Run: &results.Run{Dataset: results.Dataset{Name: "memtox-bench", Version: version,
			SHA256: sum}}}
	}
	if err := compare.SameDataset(of("a", "v1", "11"), of("b", "v1", "11")); err != nil {
		t.Error(err)
	}
	for _, other := range []*compare.Table{of("b", "v2", "22"), of("b", "v1", "22")} {
		err := compare.SameDataset(of("a", "v1", "11"), other)
		if err == nil || !strings.Contains(err.Error(), "results of different cases are not compared") {
			t.Errorf("%s %s: %v", other.Run.Dataset.Version, other.Run.Dataset.SHA256, err)
		}
	}
}

func TestKilledAndRunningRunsAreRead(t *testing.T) {
	s := spec()
	s.Unfinished = true
	r := report(t, compare.Options{Metrics: headline}, load(t, s.Write(t, t.TempDir()), compare.LoadOptions{}))
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "not finished") {
		t.Errorf("notes %q", r.Notes)
	}
	if r.Declared.Comparisons[0].Pairs.N() != 24 {
		t.Errorf("%d pairs", r.Declared.Comparisons[0].Pairs.N())
	}
}

func TestTheSameRunHasNoDifference(t *testing.T) {
	dir := spec().Write(t, t.TempDir())
	r := report(t, compare.Options{Metrics: headline, Changed: true}, load(t, dir, compare.LoadOptions{}),
		load(t, dir, compare.LoadOptions{}))
	for _, c := range r.Declared.Comparisons {
		if v, _ := c.Difference.Value(); v != 0 || c.Test.P != 1 || len(c.Changed) != 0 {
			t.Errorf("%s: %v, p %v, %d changed", c.A.Defense, v, c.Test.P, len(c.Changed))
		}
	}
}

func TestHostileTextIsInertInEveryFormat(t *testing.T) {
	s := spec()
	s.Arms[1].Defense = "evil|\x1b[31m\n::error::x<script>alert(1)</script>[x](http://evil.example)"
	dir := s.Write(t, t.TempDir())
	r := report(t, compare.Options{Metrics: headline, Changed: true, By: []string{"class"}}, load2(t, dir))
	for _, f := range []string{"table", "markdown"} {
		text := string(write(t, r, f))
		for _, bad := range []string{"\x1b", "\n::error"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q", f, bad)
			}
		}
		if f == "markdown" && (strings.Contains(text, "<script>") || strings.Contains(text, "[x](http")) {
			t.Errorf("%s holds markup", f)
		}
	}
	if b := write(t, r, "json"); !json.Valid(b) || bytes.ContainsRune(b, 0x1b) {
		t.Error("the JSON is not valid or holds an escape")
	}
}

func load2(t *testing.T, dir string) *compare.Table {
	t.Helper()
	table, err := compare.Load(dir, compare.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// BenchmarkLoad reads a run of a million decisions, as compare and gate do. Its
// memory is the peak of the heap after a collection plus what loading added.
func BenchmarkLoad(b *testing.B) {
	s := &runSpec{ID: "big", Dataset: "big", Families: 120, Cases: 5000, Seed: 1, Decisions: 8, NoTranscripts: true,
		Spread: 0.1}
	for _, a := range []string{"hermes", "openclaw"} {
		for _, d := range []string{"none", "keyword", "provenance", "contradiction", "anomaly", "guard"} {
			s.Arms = append(s.Arms, armSpec{Agent: a, Defense: d, Lands: 0.6, Stops: 0.3, FalseAlarm: 0.05, LatencyNS: 2000})
		}
	}
	dir := s.Write(b, b.TempDir())
	for _, c := range []struct {
		name string
		o    compare.LoadOptions
		m    []string
	}{{"rates", compare.LoadOptions{}, nil}, {"latencies", compare.LoadOptions{Latencies: true},
		[]string{"end_to_end", "latency_us.write.p95"}}} {
		b.Run(c.name, func(b *testing.B) {
			debug.FreeOSMemory()
			for b.Loop() {
				t, err := compare.Load(dir, c.o)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := compare.Compare([]*compare.Table{t}, compare.Options{Metrics: c.m}); err != nil {
					b.Fatal(err)
				}
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MB-sys")
		})
	}
}

func TestDifferencesSayWhatARunDidNotRecord(t *testing.T) {
	a := compare.NewTable("old", &results.Run{Settings: map[string]any{"limit": 60}})
	b := compare.NewTable("new", &results.Run{Settings: map[string]any{"limit": 60, "mix": "", "stream": false,
		"window": 8192}})
	want := []string{"setting window differs: not recorded in old, 8192 in new"}
	if got := compare.Differences(a, b); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Run.Settings = map[string]any{"limit": 60, "mix": "uniform"}
	a.Run.Settings["mix"] = ""
	want = []string{"setting mix differs: empty in old, uniform in new"}
	if got := compare.Differences(a, b); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
