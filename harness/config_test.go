package harness

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/internal/settings"
)

var update = flag.Bool("update", false, "write the generated documents")

func TestEveryFieldOfConfigIsASetting(t *testing.T) {
	// A field that no setting reaches would be missing from run.json, from the
	// schema and from the difference of a refused resume.
	if n, fields := len(Settings().Keys), reflect.TypeFor[Config]().NumField(); n != fields {
		t.Errorf("%d settings for %d fields", n, fields)
	}
}

func TestDefaultsAreAllowedValues(t *testing.T) {
	c := DefaultConfig()
	for _, s := range Settings().Keys {
		if err := s.Of(&c).Set(Default(s)); err != nil {
			t.Errorf("%s: its own default is refused: %v", s.Name, err)
		}
	}
	if diff := cmp.Diff(DefaultConfig(), c); diff != "" {
		t.Errorf("setting every default changed something:\n%s", diff)
	}
}

func TestSettingsSurviveRunJSON(t *testing.T) {
	c := DefaultConfig()
	for _, a := range []string{"defense=none,x=exec:a, b,c", "class=policy_fact,false_precedent",
		"seed=18446744073709551615", "fsync=250ms", "out=a b", "epochs=3"} {
		if err := c.Set(a); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Config
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("run.json does not give the settings back:\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`{"colour":"red"}`), &back); err == nil || !strings.Contains(err.Error(), `"colour"`) {
		t.Errorf("an unknown key in run.json: %v", err)
	}
}

func TestDefensesThatTakeTheRestAreNotSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"none,guard":                        {"none", "guard"},
		"none, dead=exec:sh -c 'a,b',x":     {"none", "dead=exec:sh -c 'a,b',x"},
		"http://h/?a=1,2":                   {"http://h/?a=1,2"},
		"keyword@read,judge:openai:a,b":     {"keyword@read", "judge:openai:a,b"},
		"strict=guard:strict.yaml,memory=x": {"strict=guard:strict.yaml", "memory=x"},
	} {
		c := DefaultConfig()
		if err := c.Set("defense=" + text); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, c.Defenses); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

func TestDifferencesNameOnlyWhatAffectsOutcomes(t *testing.T) {
	a, b := DefaultConfig(), DefaultConfig()
	b.Concurrency, b.Out, b.Format, b.Window, b.Agents = 7, "elsewhere", "json", 4096, []string{"rag"}
	want := []settings.Difference{settings.Differ("agent", "hermes,openclaw", "rag"),
		settings.Differ("window", "8192", "4096")}
	if diff := cmp.Diff(want, Differences(a, b)); diff != "" {
		t.Error(diff)
	}
}

func TestExperimentFileErrorsSayPlaceAndHint(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"agent: hermes\nno_such_key: 1\n", `x.yaml:2:1: unknown key "no_such_key" (one of dataset, agent, `},
		{"agnet: hermes\n", `x.yaml:1:1: unknown key "agnet" (did you mean "agent"?)`},
		{"max-not-scored: 1\n", `x.yaml:1:1: unknown key "max-not-scored" (did you mean "max_not_scored"?)`},
		{"limit: many\n", `x.yaml:1:8: limit: "many" is not a whole number`},
		{"limit: 1.5\n", `x.yaml:1:8: limit: "1.5" is not a whole number`},
		{"limit: -3\n", `x.yaml:1:8: limit: -3 is out of range (at least 0, at most 1099511627776)`},
		{"limit: [1]\n", `x.yaml:1:8: limit: a list stands where one whole number belongs`},
		{"split: reprot\n", `x.yaml:1:8: split: unknown split "reprot" (did you mean "report"?)`},
		{"model: true\n", `x.yaml:1:8: model: expected a text, found the bool true (put it in quotes if it is meant as text)`},
		{"model:\n", `x.yaml:1:7: model: has no value (leave the key out for the default)`},
		{"agent: {a: b}\n", `x.yaml:1:8: agent: expected one value, found a mapping`},
		{"agent: [hermes, hermes]\n", `x.yaml:1:17: agent: "hermes" stands in the list twice`},
		{"agent: [hermes, ]\nagent: rag\n", `x.yaml:2:1: key "agent" stands here again; it is already set on line 1`},
		{"fsync: soon\n", `x.yaml:1:8: fsync: "soon" is not a duration (for instance 500ms or 2s)`},
		{"- a\n- b\n", "x.yaml:1:1: expected `key: value` lines, found a list"},
		{"just words\n", "x.yaml:1:1: expected `key: value` lines, found \"just words\""},
		{"a: &x 1\nb: *x\n", `x.yaml:2:4: aliases are not supported: write the value out`},
		{"seed: 1\n---\nseed: 2\n", `x.yaml:2:1: a second document begins here; a file holds one`},
	} {
		cfg := DefaultConfig()
		err := cfg.Load("x.yaml", []byte(c.yaml))
		if err == nil {
			t.Errorf("%q was accepted", c.yaml)
			continue
		}
		if !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q\n got %s\nwant %s", c.yaml, err, c.want)
		}
		if diff := cmp.Diff(DefaultConfig(), cfg); diff != "" {
			t.Errorf("%q was refused and still changed settings:\n%s", c.yaml, diff)
		}
	}
	for _, broken := range []string{"a: [", "\tx: 1", "a: \"", "a: b: c", "\x00", "%YAML 9\n---\n"} {
		cfg := DefaultConfig()
		err := cfg.Load("x.yaml", []byte(broken))
		if p, ok := err.(*settings.Problem); !ok || !strings.HasPrefix(p.Error(), "x.yaml") ||
			strings.Contains(p.Error(), "\n") {
			t.Errorf("%q: %v", broken, err)
		}
	}
}

func TestExperimentFileSetsEveryKindOfValue(t *testing.T) {
	c := DefaultConfig()
	file := "# a comment\nagent: [hermes, rag]\ndefense: none, x=exec:a,b\nclass:\nlimit: 50\nseed: " +
		"18446744073709551615\nfsync: 2s\npolicy: scoped\nout: \"1\"\n"
	if err := c.Load("x.yaml", []byte(file)); err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Agents, want.Defenses, want.Limit = []string{"hermes", "rag"}, []string{"none", "x=exec:a,b"}, 50
	want.Seed, want.Fsync, want.Policy, want.Out = 1<<64-1, 2e9, "scoped", "1"
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if err := c.Load("empty.yaml", nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestSchemaAgreesWithLoad(t *testing.T) {
	var doc any
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("memtox.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("memtox.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"agent: [hermes]\nlimit: 3\n", "agent: hermes,rag\n", "fsync: 500ms\nsplit: all\n", "channel: [C1]\n", "class:\n",
		"colour: red\n", "limit: -1\n", "limit: x\n", "split: none\n", "channel: [C9]\n", "epochs: 0\n", "policy: [vague]\n",
		"fsync: 3\n", "agent: [a, a]\n",
	} {
		c := DefaultConfig()
		var v any
		if err := yaml.Unmarshal([]byte(file), &v); err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(v)
		v, _ = jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
		ours, theirs := c.Load("x.yaml", []byte(file)), schema.Validate(v)
		if (ours == nil) != (theirs == nil) {
			t.Errorf("%q: Load says %v, the schema says %v", file, ours, theirs)
		}
	}
}

// settingsPage returns the settings reference as Markdown.
func settingsPage() string {
	var b strings.Builder
	b.WriteString("# Settings\n" +
		"\n" +
		"Every setting of `memtox run` is a key of an experiment file (`-f experiment.yaml`). `--set " +
		"key=value` sets any of them, and those that are needed most are flags too.\n" +
		"A flag or `--set` wins over the file, and the file over the default. `memtox run --schema` prints " +
		"the JSON Schema of the file, for editors.\n" +
		"\n" +
		"run.json in the run directory holds every setting. A run resumes only with the same settings. Those " +
		"marked \"no\" under *outcome* cannot change what is measured, and may differ.\n" +
		"\n" +
		"*From a run* says what `run --resume` does with the value in run.json, and a worker with the one in " +
		"its queue. Anybody may have written those.\n" +
		"\n" +
		"| from a run | meaning |\n" +
		"|---|---|\n" +
		"| taken over | it is used: it can do no more than compute |\n" +
		"| read here | a regular file of this machine is read, and never made. Nothing of it is used before " +
		"its digest is that of the run |\n" +
		"| named here | the command line, or a file given with `-f`, must name the same, if the value starts " +
		"a program, asks a server, hands over a key or a variable, or opens a file. Built-in agents, models, " +
		"judges, defenses and policy files need not be named |\n" +
		"| bounds here | such programs and servers get the cost and time that the command line allows, never " +
		"what the run says. Bounds of a run that are not the defaults must be named: the same or others |\n" +
		"| its own | each process has its own |\n" +
		"\n" +
		"| key | flag | values | default | outcome | from a run | meaning |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, s := range Settings().Keys {
		flag := "–"
		if s.Flag != "" {
			flag = "`--" + s.Flag + "`"
		}
		def := Default(s)
		if def == "" {
			def = "–"
		} else {
			def = "`" + def + "`"
		}
		outcome := "no"
		if s.Affects {
			outcome = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", s.Name, flag, cell("`"+s.Takes+"`"), def, outcome,
			s.Reach, cell(s.Help))
	}
	b.WriteString("\nAn experiment file:\n\n```yaml\nagent: [hermes, openclaw]\ndefense: none,keyword,guard\nmodel: " +
		"reference:naive\nlimit: 500\nwindow: 4096\npolicy: scoped\n```\n\n" +
		"An unknown key, a value of the wrong type or a key that stands twice is refused with file, line and column, " +
		"before anything runs.\n")
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func TestSettingsReferenceIsInStep(t *testing.T) {
	const path = "../docs/settings.md"
	if *update {
		if err := os.WriteFile(path, []byte(settingsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(settingsPage(), string(got)); diff != "" {
		t.Errorf("%s is out of step; run go test ./harness -run Reference -update:\n%s", path, diff)
	}
	// The page's own example must be one that works.
	_, example, _ := strings.Cut(string(got), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	c := DefaultConfig()
	if err := c.Load("docs/settings.md", []byte(example)); err != nil {
		t.Error(err)
	}
}

func TestNearestFindsTypos(t *testing.T) {
	names := []string{"hermes", "openclaw", "rag", "provenance", "contradiction"}
	for got, want := range map[string]string{
		"hermse": "hermes", "Hermes": "hermes", "opencalw": "openclaw", "provenence": "provenance", "contra": "contradiction",
		"nobody": "", "rga": "rag", strings.Repeat("x", 1<<20): "", "": "",
	} {
		if n := settings.Nearest(got, names); n != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", got, n, want)
		}
	}
}
