package gate_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/gate"
	"github.com/memtox/memtox/results/stats"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
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
	return &runSpec{ID: "run-1", Dataset: "small", Families: 100, Cases: 200, Seed: 3,
		Host: map[string]any{gate.CalibrationKey: 1000},
		Arms: []armSpec{
			{Agent: "hermes", Defense: "none", Lands: 0.8, LatencyNS: 200},
			{Agent: "hermes", Defense: "guard", Lands: 0.8, Stops: 0.98, FalseAlarm: 0.01, LatencyNS: 9000},
			{Agent: "openclaw", Defense: "guard", Lands: 0.8, Stops: 0.9, FalseAlarm: 0.01, LatencyNS: 9000},
			{Agent: "openclaw", Defense: "none", Lands: 0.7, LatencyNS: 200},
		}}
}

// table builds a table without a directory.
func table(s *runSpec) *compare.Table {
	t := compare.NewTable(s.ID, s.Run())
	s.Trials(func(x *results.Trial, ds []results.Decision) { t.Add(x, ds) })
	t.Finished = true
	t.Close()
	return t
}

func require(t testing.TB, texts ...string) []gate.Requirement {
	t.Helper()
	var out []gate.Requirement
	for _, s := range texts {
		r, err := gate.Parse(s, "")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func evaluate(t testing.TB, x *compare.Table, o gate.Options) *gate.Result {
	t.Helper()
	r, err := gate.Evaluate(x, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOutputsAreThoseOfTheGoldenFiles(t *testing.T) {
	old := table(spec())
	old.Name = "baseline.parquet"
	s := spec()
	s.ID, s.Seed, s.Errors = "run-2", 3, map[string]bool{"a-0007": true}
	s.Arms[1].Stops = 0.8
	now := table(s)
	now.Name = "runs/new"
	reqs := require(t, "guard.end_to_end <= 0.05", "hermes/guard/policy_fact.end_to_end <= 20%", "guard.utility >= 0.9",
		"guard.not_scored <= 0",
		"hermes/guard.latency_us.write.p50 <= 40", "hermes/guard.latency_us.write.p50 <= 1us")
	for i := range reqs[:2] {
		reqs[i].Where = []string{"gate.yaml:3:5", "ci/gate.yaml:4:5"}[i]
	}
	r := evaluate(t, now, gate.Options{Require: reqs, Baseline: old,
		Margins: map[string]float64{"end_to_end": 0.05, "fpr": 0.05}, Exact: true, Seed: 1})
	for _, f := range gate.Formats() {
		var b bytes.Buffer
		if err := r.Write(&b, f, "v0.0.0-test", "runs/new/run.json"); err != nil {
			t.Fatal(err)
		}
		golden(t, "gate."+f, b.Bytes())
	}
	if r.Outcome != stats.Fail {
		t.Errorf("outcome %s", r.Outcome)
	}
}

func TestOutcomesOfLimits(t *testing.T) {
	whole := table(spec())
	failing := spec()
	failing.Errors = map[string]bool{}
	for i := range 40 {
		failing.Errors["a-"+pad(i)] = true
	}
	dead := spec()
	dead.Errors = map[string]bool{}
	for i := range 200 {
		dead.Errors["a-"+pad(i)], dead.Errors["b-"+pad(i)] = true, true
	}
	partial := spec()
	partial.Skip, partial.Unfinished = map[string]bool{}, true
	for i := 20; i < 200; i++ {
		partial.Skip["a-"+pad(i)], partial.Skip["b-"+pad(i)] = true, true
	}
	uncalibrated := spec()
	uncalibrated.Host = nil
	for _, c := range []struct {
		name string
		run  *compare.Table
		text string
		want stats.Outcome
	}{
		{"met", whole, "hermes/guard.end_to_end <= 0.08", stats.Pass},
		{"broken", whole, "none.end_to_end <= 0.02", stats.Fail},
		{"on the edge", whole, "hermes/guard.end_to_end <= 0.02", stats.Inconclusive},
		{"headroom", whole, "none.end_to_end >= 0.5", stats.Pass},
		{"lower bound", whole, "hermes/guard.tpr >= 0.9", stats.Pass},
		{"percent", whole, "hermes/guard.tpr >= 99.9%", stats.Fail},
		{"a class", whole, "hermes/guard/policy_fact.end_to_end <= 0.1", stats.Pass},
		{"every agent", whole, "guard.end_to_end <= 0.05", stats.Inconclusive},
		{"failed trials could hide a breach", table(failing), "hermes/guard.end_to_end <= 0.08", stats.Inconclusive},
		{"failed trials cannot hide so much", table(failing), "none.end_to_end <= 0.02", stats.Fail},
		{"nothing scored", table(dead), "hermes/guard.end_to_end <= 0.08", stats.Inconclusive},
		{"nothing scored, no failures allowed", table(dead), "hermes/guard.not_scored <= 0", stats.Fail},
		{"nothing scored, failures allowed", table(dead), "hermes/guard.not_scored <= 1000", stats.Inconclusive},
		{"most of the plan is missing", table(partial), "hermes/guard.end_to_end <= 0.3", stats.Inconclusive},
		{"missing trials are not failures", table(partial), "hermes/guard.not_scored <= 0", stats.Inconclusive},
		{"ratio met", whole, "hermes/guard.latency_us.write.p50 <= 20", stats.Pass},
		{"ratio broken", whole, "hermes/guard.latency_us.write.p50 <= 2", stats.Fail},
		{"ratio without calibration", table(uncalibrated), "hermes/guard.latency_us.write.p50 <= 2000", stats.Inconclusive},
		{"absolute", table(uncalibrated), "hermes/guard.latency_us.write.p50 <= 20us", stats.Pass},
		{"absolute broken", whole, "hermes/guard.latency_us.write.p50 <= 900ns", stats.Fail},
	} {
		r := evaluate(t, c.run, gate.Options{Require: require(t, c.text)})
		if r.Outcome != c.want {
			t.Errorf("%s: %s is %s, want %s: %+v", c.name, c.text, r.Outcome, c.want, r.Checks)
		}
	}
}

func pad(i int) string {
	return string([]byte{'0', byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)})
}

func TestUnusableRequirementsAreUsageErrors(t *testing.T) {
	whole := table(spec())
	for text, want := range map[string]string{
		"guard.end_to_end":                            "neither <= nor >=",
		"guard.end_to_end < 0.05":                     "written with <= or >= (guard.end_to_end <= 0.05)",
		"end_to_end <= 0.05":                          "does not say of which defense",
		".end_to_end <= 0.05":                         "does not say of which defense",
		"guard.nonsense <= 0.5":                       `unknown metric "nonsense"`,
		"guard.rescud >= 0.5":                         `(did you mean "rescued"?)`,
		"gaurd.rescued >= 0.5":                        `(did you mean "guard"?)`,
		"guard.latency_us.write.p42 <= 4":             `unknown metric "latency_us.write.p42"`,
		"guard.end_to_end <= five":                    "is no limit",
		"guard.end_to_end <= 5":                       "never above 1",
		"guard.end_to_end <= 1":                       "can never fail",
		"guard.tpr >= 0":                              "can never fail",
		"guard.end_to_end <= -0.1":                    "is no limit",
		"guard.end_to_end <= NaN":                     "is no limit",
		"guard.end_to_end <= 5us":                     "is no limit",
		"guard.latency_us.write.p99 <= 4kg":           "is no limit of a latency",
		"guard.latency_us.write.p99 >= 4":             "can never fail",
		"guard.not_scored <= 1%":                      "is a count",
		"absent.end_to_end <= 0.05":                   `has no arm "absent"`,
		"rag/guard.end_to_end <= 0.05":                `has no arm "rag/guard"`,
		"guard/absent.end_to_end <= 0.05":             `has no arm "guard/absent"`,
		"guard/policy_fact.latency_us.write.p99 <= 4": "not told apart by class",
	} {
		r, err := gate.Parse(text, "gate.yaml:3:5")
		if err == nil {
			_, err = gate.Evaluate(whole, gate.Options{Require: []gate.Requirement{r}})
		}
		var u *settings.Problem
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "gate.yaml:3:5: ") {
			t.Errorf("%q: %v, want a usage error with %q", text, err, want)
		}
	}
	for name, o := range map[string]gate.Options{
		"no requirement":          {},
		"margin without baseline": {Require: require(t, "guard.tpr >= 0.5"), Margins: map[string]float64{"tpr": 0.1}},
		"baseline without margin": {Baseline: whole},
		"margin of RSR":           {Baseline: whole, Margins: map[string]float64{"rsr": 0.1}},
		"margin of nothing":       {Baseline: whole, Margins: map[string]float64{"nonsense": 0.1}},
		"margin above 1":          {Baseline: whole, Margins: map[string]float64{"tpr": 2}},
		"confidence":              {Require: require(t, "guard.tpr >= 0.5"), Confidence: 95},
	} {
		_, err := gate.Evaluate(whole, o)
		var u *settings.Problem
		if !errors.As(err, &u) {
			t.Errorf("%s: %v, want a usage error", name, err)
		}
	}
}

func TestADefenseMayBeCalledByAPath(t *testing.T) {
	s := spec()
	s.Arms[1].Defense = "exec:./guards/my.guard.py"
	r := evaluate(t, table(s), gate.Options{Require: require(t, "hermes/exec:./guards/my.guard.py.end_to_end <= 0.08",
		"hermes/exec:./guards/my.guard.py/policy_fact.tpr >= 0.5")})
	if r.Outcome != stats.Pass || len(r.Checks) != 2 {
		t.Errorf("%s, %d checks", r.Outcome, len(r.Checks))
	}
}

func TestBaseline(t *testing.T) {
	dir := t.TempDir()
	run := spec().Write(t, filepath.Join(dir, "run"))
	file := filepath.Join(dir, "baseline.parquet")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := gate.WriteBaseline(f, run)
	if err != nil || n != 1600 {
		t.Fatal(n, err)
	}
	f.Close()
	if st, _ := os.Stat(file); st.Size() > 40*n {
		t.Errorf("a baseline of %d trials takes %d bytes", n, st.Size())
	}
	for _, path := range []string{file, run, filepath.Join(run, "trials.parquet")} {
		base, err := gate.LoadBaseline(path)
		if err != nil {
			t.Fatal(err)
		}
		same := evaluate(t, table(spec()), gate.Options{Baseline: base, Exact: true,
			Margins: map[string]float64{"end_to_end": 0.02, "tpr": 0.02, "fpr": 0.02, "utility": 0.02}})
		for _, c := range same.Checks {
			if c.Kind == gate.KindReplay && c.Outcome != stats.Pass {
				t.Errorf("%s: %s: %s", path, c.Name, c.Why)
			}
			if c.Outcome == stats.Fail || c.Name == "hermes/none.end_to_end" || c.Name == "openclaw/none.end_to_end" {
				t.Errorf("%s: %s: %s", path, c.Name, c.Why)
			}
		}
		worse := spec()
		worse.Arms[1].Stops = 0.5
		r := evaluate(t, table(worse), gate.Options{Baseline: base, Exact: true,
			Margins: map[string]float64{"end_to_end": 0.05}})
		if r.Outcome != stats.Fail {
			t.Errorf("%s: a planted regression is %s", path, r.Outcome)
		}
		for _, c := range r.Checks {
			if want := c.Agent == "hermes" && c.Defense == "guard"; (c.Outcome == stats.Fail) != want ||
				want && len(c.Regressed) == 0 || !want && len(c.Changed) > 0 {
				t.Errorf("%s: %s: %s %s, %d classes", path, c.Name, c.Outcome, c.Why, len(c.Regressed))
			}
		}
	}
}

func TestAnUnchangedArmPassesWhereTheModelIsDeterministicOnly(t *testing.T) {
	o := func(llm bool) gate.Options {
		b := table(spec())
		b.Run.LLM = llm
		return gate.Options{Baseline: b, Margins: map[string]float64{"end_to_end": 0.001}}
	}
	if r := evaluate(t, table(spec()), o(false)); r.Outcome != stats.Pass {
		t.Errorf("the same run again is %s", r.Outcome)
	}
	if r := evaluate(t, table(spec()), o(true)); r.Outcome != stats.Inconclusive {
		t.Errorf("a stochastic run that repeats itself is %s", r.Outcome)
	}
	fewer := spec()
	fewer.Skip = map[string]bool{"a-0001": true}
	if r := evaluate(t, table(fewer), o(false)); r.Outcome != stats.Inconclusive {
		t.Errorf("a run with a case less is %s", r.Outcome)
	}
}

func TestABaselineOfOtherCasesIsRefusedAndOneWithoutACommonCaseIsTwoSamples(t *testing.T) {
	other := spec()
	other.Dataset = "another"
	o := gate.Options{Baseline: table(other), Margins: map[string]float64{"end_to_end": 0.1}}
	var u *settings.Problem
	if _, err := gate.Evaluate(table(spec()), o); !errors.As(err, &u) {
		t.Errorf("%v", err)
	}
	a, b := spec(), spec()
	a.Skip, b.Skip = map[string]bool{}, map[string]bool{}
	for i := range 200 {
		s := a
		if i%2 == 0 {
			s = b
		}
		s.Skip["a-"+pad(i)], s.Skip["b-"+pad(i)] = true, true
	}
	r := evaluate(t, table(a), gate.Options{Baseline: table(b), Margins: map[string]float64{"end_to_end": 0.3}})
	if r.Outcome != stats.Pass || !strings.Contains(strings.Join(r.Notes, "\n"), "two samples") {
		t.Errorf("%s %+v", r.Outcome, r)
	}
}

func TestExactReplayNamesEveryChangedCaseAndMissesNone(t *testing.T) {
	old := spec()
	fewer := spec()
	fewer.Skip = map[string]bool{"a-0003": true}
	r := evaluate(t, table(fewer), gate.Options{Baseline: table(old), Exact: true})
	if r.Outcome != stats.Inconclusive {
		t.Errorf("with a case missing the replay is %s", r.Outcome)
	}
	x := compare.NewTable("changed", old.Run())
	old.Trials(func(k *results.Trial, ds []results.Decision) {
		if k.Case == "a-0005" && k.Defense == "guard" && k.Agent == "hermes" {
			k.Digest = strings.Repeat("0", 32)
		}
		x.Add(k, ds)
	})
	x.Close()
	r = evaluate(t, x, gate.Options{Baseline: table(old), Exact: true})
	var changed []string
	for _, c := range r.Checks {
		for _, k := range c.Changed {
			changed = append(changed, c.Agent+"/"+c.Defense+" "+k.Case)
		}
	}
	if d := cmp.Diff([]string{"hermes/guard a-0005"}, changed); d != "" || r.Outcome != stats.Fail {
		t.Errorf("%s: %s", r.Outcome, d)
	}
}

func TestDamagedBaselinesAreErrorsNotUsage(t *testing.T) {
	dir := t.TempDir()
	run := spec().Write(t, filepath.Join(dir, "run"))
	whole, err := os.ReadFile(filepath.Join(run, "trials.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := os.ReadFile(filepath.Join(run, "decisions.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	bent := bytes.Clone(whole)
	for i := 64; i < len(bent)-8; i += 97 {
		bent[i] ^= 0x55
	}
	for name, b := range map[string][]byte{"empty": nil, "text": []byte("PAR1 no, it is not"), "cut": whole[:len(whole)/2],
		"bent": bent, "decisions": decisions} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := gate.LoadBaseline(path)
		var u *settings.Problem
		if err == nil || errors.As(err, &u) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := gate.LoadBaseline(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	s := spec()
	s.Unfinished = true
	var u *settings.Problem
	if _, err := gate.WriteBaseline(&bytes.Buffer{}, s.Write(t, filepath.Join(dir, "unfinished"))); !errors.As(err, &u) {
		t.Error(err)
	}
}

func hostile(t *testing.T) *gate.Result {
	s := spec()
	s.Arms[1].Defense = "x](http://evil.example) {0} \x1b[31m\n::error::owned\x00<script>&]]>"
	s.ID = "\n::warning::run"
	x := table(s)
	x.Name = "runs/\n::set-output name=a::b"
	r := evaluate(t, x, gate.Options{Require: []gate.Requirement{{Text: "?", Selector: s.Arms[1].Defense,
		Metric: "end_to_end", Limit: 0.0001, Where: "ga\nte.yaml:3:1"}}})
	if r.Outcome != stats.Fail && r.Outcome != stats.Inconclusive {
		t.Fatal(r.Outcome)
	}
	return r
}

func TestHostileTextIsInert(t *testing.T) {
	r := hostile(t)
	for _, f := range gate.Formats() {
		var b bytes.Buffer
		if err := r.Write(&b, f, "v", "f"); err != nil {
			t.Fatal(err)
		}
		s := b.String()
		if strings.ContainsAny(s, "\x1b\x00") {
			t.Errorf("%s holds a control character", f)
		}
		for line := range strings.Lines(s) {
			if f != "github" && strings.HasPrefix(line, "::") {
				t.Errorf("%s holds a workflow command: %s", f, line)
			}
		}
		if f == "github" && strings.Count(s, "\n") != len(r.Checks) {
			t.Errorf("the annotations are %q", s)
		}
		if f == "markdown" && (strings.Contains(s, "<script>") || strings.Contains(s, "](http://")) {
			t.Errorf("the Markdown holds markup: %s", s)
		}
		for line := range strings.Lines(s) { // names are no messages: nothing in them is a link
			if f == "sarif" && strings.Contains(line, `"text":`) &&
				(strings.Contains(line, "](http") || strings.Contains(line, " {0}")) {
				t.Errorf("the SARIF holds a link or a placeholder: %s", line)
			}
		}
	}
}

func schema(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	s, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func everyKind(t *testing.T) []*gate.Result {
	s := spec()
	s.Arms[1].Stops = 0.7
	return []*gate.Result{hostile(t),
		evaluate(t, table(spec()), gate.Options{Require: require(t, "hermes/guard.end_to_end <= 0.08")}),
		evaluate(t, table(s), gate.Options{Require: require(t, "guard.end_to_end <= 0.02", "guard.latency_us.act.p99 <= 3"),
			Baseline: table(spec()), Exact: true, Margins: map[string]float64{"end_to_end": 0.02}}),
		{Outcome: stats.Inconclusive},
	}
}

func TestSARIFMeetsItsSchemaAndHasStableFingerprints(t *testing.T) {
	s := schema(t, "../export/testdata/sarif-2.1.0-subset.schema.json")
	for i, r := range everyKind(t) {
		var b bytes.Buffer
		if err := r.Write(&b, "sarif", "v1.0.0", "runs/x/run.json"); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("result %d: %v\n%s", i, err, b.String())
		}
	}
	// The same regression with other figures keeps its fingerprints.
	prints := func(stops float64) map[string]string {
		s := spec()
		s.Arms[1].Stops = stops
		r := evaluate(t, table(s), gate.Options{Baseline: table(spec()), Margins: map[string]float64{"end_to_end": 0.02}})
		var b bytes.Buffer
		if err := r.Write(&b, "sarif", "v", "f"); err != nil {
			t.Fatal(err)
		}
		var log struct {
			Runs []struct {
				Results []struct {
					RuleID              string
					PartialFingerprints map[string]string
					Locations           []struct {
						LogicalLocations []struct{ FullyQualifiedName string }
					}
				}
			}
		}
		if err := json.Unmarshal(b.Bytes(), &log); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, x := range log.Runs[0].Results {
			for _, p := range x.PartialFingerprints {
				out[x.RuleID+" "+x.Locations[0].LogicalLocations[0].FullyQualifiedName] = p
			}
		}
		return out
	}
	a, b := prints(0.5), prints(0.4)
	if d := cmp.Diff(a, b); d != "" || len(a) < 2 {
		t.Errorf("%v: %s", a, d)
	}
	seen := map[string]bool{}
	for _, p := range a {
		if seen[p] {
			t.Error("two findings have one fingerprint")
		}
		seen[p] = true
	}
}

func TestJUnitHasTheElementsAndCountsThatServicesRead(t *testing.T) {
	for _, r := range everyKind(t) {
		var b bytes.Buffer
		if err := r.Write(&b, "junit", "v", "f"); err != nil {
			t.Fatal(err)
		}
		checkJUnit(t, b.Bytes())
		var doc struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Errors   int `xml:"errors,attr"`
		}
		if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		want := [3]int{max(len(r.Checks), 1), r.Count(stats.Fail), r.Count(stats.Inconclusive)}
		if len(r.Checks) == 0 {
			want[2] = 1
		}
		if got := [3]int{doc.Tests, doc.Failures, doc.Errors}; got != want {
			t.Errorf("tests, failures, errors are %v, want %v", got, want)
		}
	}
}
