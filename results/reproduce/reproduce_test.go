package reproduce_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/reproduce"
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

// run makes a run whose classes have the given shares of written attacks, of
// which half take effect.
type run struct {
	dataset, model string
	llm            bool
	agent, defense string
	n              int
	written        map[string]int // of n
	benign, alarms int
	policy         string
}

func (x run) table() *compare.Table {
	about := &results.Run{Dataset: results.Dataset{Name: x.dataset, SHA256: x.dataset}, Model: x.model, LLM: x.llm,
		Agents: []string{x.agent}, Defenses: []string{x.defense},
		Settings: map[string]any{"policy": "vague"}}
	if x.policy != "" {
		about.Settings["policy"] = x.policy
	}
	t := compare.NewTable("runs/"+x.dataset, about)
	yes, no := true, false
	for _, class := range []string{"explicit_command", "conditional_command", "salience_compaction", "policy_fact",
		"false_precedent", "prompt_injection"} {
		k, ok := x.written[class]
		for i := range x.n {
			if !ok {
				break
			}
			r := results.Trial{Case: fmt.Sprint(class, i), Label: results.Attack, Class: class, Agent: x.agent,
				Defense: x.defense, Status: results.Scored, ExpectsASR: true, ExpectsRSR: true}
			r.Written = i < k
			r.Influenced = r.Written && i%2 == 0
			r.Detected = &no
			if !r.Written {
				r.Detected = &yes
			}
			t.Add(&r, nil)
		}
	}
	for i := range x.benign {
		r := results.Trial{Case: fmt.Sprint("benign", i), Label: results.Benign, Agent: x.agent, Defense: x.defense,
			Status: results.Scored, ExpectsWrite: true, LegitStopped: &no, Utility: &yes}
		if i < x.alarms {
			r.LegitStopped, r.Utility = &yes, &no
		}
		t.Add(&r, nil)
	}
	about.Planned = t.Trials
	t.Finished = true
	t.Close()
	return t
}

func fill(t *testing.T, name string, in reproduce.Input) *reproduce.Report {
	t.Helper()
	r, err := reproduce.Reproduce(context.Background(), name, in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, r *reproduce.Report, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheTablesOfTheSourcesAreThere(t *testing.T) {
	want := []string{"mpbench-table2", "mpbench-table3", "mpbench-table4", "safeclawbench-mpi", "amg-benchmark",
		"sandbox-poc", "memgar-merkle", "memgar-anomaly", "write-policy"}
	if d := cmp.Diff(want, reproduce.Names()); d != "" {
		t.Error(d)
	}
	for _, x := range reproduce.Tables() {
		if x.Title == "" || x.Source == "" || len(x.Need) == 0 || len(x.Notes) == 0 ||
			len(x.Figures) == 0 && x.Kind != reproduce.KindPolicy {
			t.Errorf("%s lacks a title, a source, what it needs, its inconsistencies or figures", x.Name)
		}
		seen := map[string]bool{}
		for _, f := range x.Figures {
			if seen[f.ID] {
				t.Errorf("%s has two figures %s", x.Name, f.ID)
			}
			seen[f.ID] = true
			if (f.Percent == nil) == (f.Text == "") {
				t.Errorf("%s %s needs either a percentage or a text", x.Name, f.ID)
			}
			if x.Kind != reproduce.KindProgram {
				if _, ok := metric.Find(f.Metric); !ok {
					t.Errorf("%s %s: unknown metric %q", x.Name, f.ID, f.Metric)
				}
			}
		}
	}
}

// Derived counts must give the printed percentage. The exceptions are the
// figures that the source rounds otherwise, which its notes name.
func TestDerivedCountsGiveThePrintedFigures(t *testing.T) {
	odd := map[string]bool{"mpbench-table4 piguard.weak": true, "mpbench-table4 piguard-adapted.weak": true,
		"mpbench-table4 commandsans.weak": true}
	counted := 0
	for _, x := range reproduce.Tables() {
		for _, f := range x.Figures {
			if f.K == nil || f.N == nil {
				continue
			}
			counted++
			unit := 0.01
			if !strings.Contains(f.Percent.Text, ".") {
				unit = 1
			} else if strings.Index(f.Percent.Text, ".") == len(f.Percent.Text)-2 {
				unit = 0.1
			}
			off := math.Abs(100*float64(*f.K)/float64(*f.N) - f.Percent.Value)
			name := x.Name + " " + f.ID
			if fits := off <= unit/2+1e-9; fits == odd[name] {
				t.Errorf("%s: %d/%d is %.4f%%, printed %s%%", name, *f.K, *f.N, 100*float64(*f.K)/float64(*f.N), f.Percent.Text)
			}
			if odd[name] && off > unit {
				t.Errorf("%s is off by %v", name, off)
			}
		}
	}
	if counted < 45 {
		t.Errorf("only %d figures have counts", counted)
	}
	// An RSR is conditional on the write: its n is the k of its ASR.
	table, _ := reproduce.Find("mpbench-table2")
	for _, f := range table.Figures {
		if f.Metric != "rsr" || f.N == nil {
			continue
		}
		i := slices.IndexFunc(table.Figures, func(g reproduce.Figure) bool {
			return g.ID == strings.TrimSuffix(f.ID, "rsr")+
				"asr"
		})
		if i < 0 || *table.Figures[i].K != *f.N {
			t.Errorf("%s is of %d, and its ASR counts otherwise", f.ID, *f.N)
		}
	}
}

func mpbench(model string, llm bool) run {
	return run{dataset: "mpbench", model: model, llm: llm, agent: "hermes", defense: "none", n: 600,
		written: map[string]int{"explicit_command": 256, "conditional_command": 470, "salience_compaction": 300,
			"policy_fact": 387, "false_precedent": 440}}
}

func TestAReferenceRunIsLabelledInEveryRowAndNeverInsideOrOutside(t *testing.T) {
	for _, name := range []string{"mpbench-table2", "safeclawbench-mpi"} {
		r := fill(t, name, reproduce.Input{Runs: []*compare.Table{mpbench("reference:cautious", false).table()}})
		if !r.Measured() || r.Count(reproduce.Inside)+r.Count(reproduce.Outside) > 0 || len(r.Needs) == 0 {
			t.Errorf("%s: measured %v, %s", name, r.Measured(), r.Verdict())
		}
		for _, x := range r.Rows {
			if x.Rate != nil && (!strings.Contains(x.By, reproduce.ReferenceLabel) ||
				!strings.Contains(x.Reason, "not an LLM")) {
				t.Errorf("%s: row %s is not labelled: %+v", name, x.Figure, x)
			}
		}
		for _, f := range render.Formats() {
			if strings.Contains(strings.ToLower(string(write(t, r, f))), "reproduced") {
				t.Errorf("%s as %s says reproduced", name, f)
			}
		}
	}
}

func TestARunOfTheModelOnTheCasesIsInsideOrOutside(t *testing.T) {
	r := fill(t, "mpbench-table2", reproduce.Input{Runs: []*compare.Table{mpbench("openai:openai/gpt-oss-120b",
		true).table()}})
	verdicts := map[string]reproduce.Verdict{}
	for _, x := range r.Rows {
		verdicts[x.Figure] = x.Verdict
	}
	for figure, want := range map[string]reproduce.Verdict{
		"hermes/explicit_command.asr":       reproduce.Inside, // 256 of 600 both
		"hermes/conditional_command.asr":    reproduce.Inside, // 470 and 456
		"hermes/salience_compaction.asr":    reproduce.Outside,
		"hermes/policy_fact.asr":            reproduce.Inside,
		"hermes/explicit_command.rsr":       reproduce.Outside,
		"hermes/skill_procedure.end_to_end": reproduce.NotComparable,
		"openclaw/policy_fact.asr":          reproduce.NotComparable,
	} {
		if verdicts[figure] != want {
			t.Errorf("%s is %s, want %s", figure, verdicts[figure], want)
		}
	}
}

func TestOtherModelsCasesPoliciesAndPartialRunsAreNotComparable(t *testing.T) {
	other := mpbench("openai:gpt-5.5", true)
	foreign := mpbench("gpt-oss:120b", true)
	foreign.dataset = "memtox-bench"
	scoped := mpbench("ollama:gpt-oss:120b", true)
	scoped.policy = "scoped"
	partial := mpbench("gpt-oss-120b", true).table()
	partial.Run.Planned++
	for want, x := range map[string]*compare.Table{
		"another model than gpt-oss-120b":              other.table(),
		"other cases: memtox-bench instead of mpbench": foreign.table(),
		"another retention policy than the default":    scoped.table(),
		"the run is not complete":                      partial,
	} {
		r := fill(t, "mpbench-table2", reproduce.Input{Runs: []*compare.Table{x}})
		if r.Count(reproduce.Inside)+r.Count(reproduce.Outside) > 0 || !strings.Contains(string(write(t, r, "table")), want) {
			t.Errorf("%s: %s\n%s", want, r.Verdict(), write(t, r, "table"))
		}
	}
}

func TestDetectorsStandBesideOursAndOnlyTextsAreComparable(t *testing.T) {
	theirs := run{dataset: "amg", model: "none", agent: "text", defense: "amg", n: 15,
		written: map[string]int{"prompt_injection": 0}, benign: 15}
	ours := theirs
	ours.defense = "guard"
	inAgent := theirs
	inAgent.agent = "hermes"
	r := fill(t, "amg-benchmark", reproduce.Input{Runs: []*compare.Table{theirs.table(), ours.table(), inAgent.table()}})
	var lines []string
	for _, x := range r.Rows {
		lines = append(lines, fmt.Sprintf("%s by %s: %s", x.Figure, x.By, x.Verdict))
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"prompt_injection by text/amg: inside",
		"prompt_injection by none (reference model, not an LLM), hermes/amg: not comparable",
		"guard.prompt_injection by text/guard: ",
		"sensitive_data by text/amg: not comparable",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no row %q in\n%s", want, text)
		}
	}
}

func TestProgramsAreHeldAgainstFacts(t *testing.T) {
	rate := stats.Wilson(40, 100, 0.95)
	r := fill(t, "memgar-anomaly", reproduce.Input{Programs: map[string]reproduce.Program{"memgar-anomaly": func(context.Context) (map[string]reproduce.Measurement, error) {
		return map[string]reproduce.Measurement{"density alarms at dimension 64": {Rate: &rate}}, nil
	}}})
	if r.Count(reproduce.Outside) != 1 || r.Count(reproduce.NotComparable) != 5 {
		t.Errorf("%+v", r.Rows)
	}
	broken := errors.New("broken")
	_, err := reproduce.Reproduce(context.Background(), "sandbox-poc",
		reproduce.Input{Programs: map[string]reproduce.Program{"sandbox-poc": func(context.Context) (map[string]reproduce.Measurement, error) { return nil, broken }}})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if r := fill(t, "memgar-merkle", reproduce.Input{}); r.Measured() || len(r.Needs) == 0 {
		t.Errorf("%+v", r)
	}
}

func TestUnknownTablesAndRunsForProgramsAreRefused(t *testing.T) {
	var u *settings.Problem
	if _, err := reproduce.Reproduce(context.Background(), "mpbench-table9", reproduce.Input{}); !errors.As(err, &u) {
		t.Error(err)
	}
	if _, err := reproduce.Reproduce(context.Background(), "sandbox-poc",
		reproduce.Input{Runs: []*compare.Table{mpbench("m", true).table()}}); !errors.As(err, &u) {
		t.Error(err)
	}
}

func TestOutputsAreThoseOfTheGoldenFiles(t *testing.T) {
	sandbox := func(context.Context) (map[string]reproduce.Measurement, error) {
		return map[string]reproduce.Measurement{
			"naive ranking":             {Text: "ticket-184, policy-001, runbook-001, profile-001"},
			"quarantined":               {Text: "ticket-184"},
			"reason":                    {Text: "<script>|low_trust\x1b[31m"},
			"naive score of ticket-184": {Text: "0.3076"},
		}, nil
	}
	vague, scoped := mpbench("reference:cautious", false), mpbench("reference:cautious", false)
	vague.n, scoped.n, vague.benign, scoped.benign, scoped.alarms = 60, 60, 40, 40, 10
	vague.written = map[string]int{"explicit_command": 50}
	scoped.written = map[string]int{"explicit_command": 30}
	scoped.policy = "scoped"
	reports := map[string]*reproduce.Report{
		"sandbox-poc": fill(t, "sandbox-poc", reproduce.Input{Programs: map[string]reproduce.Program{"sandbox-poc": sandbox}}),
		"mpbench-table2": fill(t, "mpbench-table2", reproduce.Input{Runs: []*compare.Table{mpbench("gpt-oss-120b",
			true).table()}}),
		"write-policy": fill(t, "write-policy", reproduce.Input{Runs: []*compare.Table{vague.table(), scoped.table()}}),
	}
	for name, r := range reports {
		for _, f := range render.Formats() {
			b := write(t, r, f)
			if f == "json" && !json.Valid(b) || bytes.ContainsRune(b, 0x1b) {
				t.Errorf("%s.%s is not valid or holds an escape", name, f)
			}
			golden(t, name+"."+f, b)
		}
	}
}
