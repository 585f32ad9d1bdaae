// Package githubaction has no code: its test runs the shell steps of the
// composite action and of the GitLab example as their runners would.
package githubaction

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"
)

type action struct {
	Inputs map[string]struct {
		Description string
		Default     string
	}
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []step
	}
}

type step struct {
	Name, ID, If, Uses, Shell, Run string
	With, Env                      map[string]string
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// binary builds memtox once.
func binary(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the steps are for bash, and there is none")
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var made string // where it was built

var built = sync.OnceValues(func() (path string, err error) {
	if made, err = os.MkdirTemp("", "memtox"); err != nil {
		return "", err
	}
	path = filepath.Join(made, "memtox")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/memtox").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building memtox: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if made != "" {
		os.RemoveAll(made)
	}
	os.Exit(code)
}

// job is an action as a runner plays it: what its steps are given and leave behind.
type job struct {
	*action
	t              *testing.T
	dir            string
	inputs         map[string]string
	outputs        map[string]map[string]string // by the step's id
	uploads        map[string]map[string]string // what the steps of other actions were given, by the action's name
	code           int
	printed        bytes.Buffer
	source, assets string // GITHUB_ACTION_PATH, RUNNER_TEMP
}

// play runs the steps with inputs in dir, as a runner does: after one that fails only
// those that always run.
func (a *action) play(t *testing.T, dir string, inputs map[string]string) *job {
	t.Helper()
	source, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	j := &job{action: a, t: t, dir: dir, inputs: inputs, outputs: map[string]map[string]string{},
		uploads: map[string]map[string]string{}, source: source, assets: t.TempDir()}
	for name := range inputs {
		if _, ok := a.Inputs[name]; !ok {
			t.Errorf("there is no input %q", name)
		}
	}
	for _, f := range []string{"GITHUB_ENV", "GITHUB_STEP_SUMMARY"} {
		if err := os.WriteFile(filepath.Join(j.assets, f), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range a.Runs.Steps {
		if !j.holds(s.If) {
			continue
		}
		if name, _, ok := strings.Cut(s.Uses, "@"); ok {
			j.uploads[name] = map[string]string{}
			for k, v := range s.With {
				j.uploads[name][k] = j.resolve(v)
			}
		} else if code := j.run(s, i); code != 0 && j.code == 0 {
			j.code = code
		}
	}
	return j
}

var expression = regexp.MustCompile(`\$\{\{ ([a-z_.-]+) \}\}`)

// resolve puts in what the expressions of a text stand for.
func (j *job) resolve(text string) string {
	out := expression.ReplaceAllStringFunc(text, func(m string) string { return j.value(expression.FindStringSubmatch(m)[1]) })
	if strings.Contains(out, "${{") {
		j.t.Errorf("%q has an expression that this runner does not know", text)
	}
	return out
}

// value is that of a name in a context.
func (j *job) value(name string) string {
	parts := strings.Split(name, ".")
	switch {
	case name == "github.action_path":
		return j.source
	case name == "github.action_ref":
		return "v1.2.3"
	case parts[0] == "inputs" && len(parts) == 2:
		in, ok := j.Inputs[parts[1]]
		if given, set := j.inputs[parts[1]]; ok && set {
			return given
		} else if ok {
			return in.Default
		}
	case parts[0] == "steps" && len(parts) == 4 && parts[2] == "outputs" &&
		slices.ContainsFunc(j.Runs.Steps, func(s step) bool { return s.ID == parts[1] }):
		return j.outputs[parts[1]][parts[3]]
	}
	j.t.Errorf("nothing is called %s", name)
	return ""
}

var comparison = regexp.MustCompile(`^([a-z_.-]+) (==|!=) '([^']*)'$`)

// holds decides a condition: comparisons that are all true, of a job that has not failed
// unless it says always().
func (j *job) holds(condition string) bool {
	always, all := false, true
	for part := range strings.SplitSeq(condition, " && ") {
		switch m := comparison.FindStringSubmatch(part); {
		case part == "always()":
			always = true
		case m != nil:
			all = all && (j.value(m[1]) == m[3]) == (m[2] == "==")
		case part != "":
			j.t.Errorf("the condition %q is not one that this runner knows", part)
		}
	}
	return all && (always || j.code == 0)
}

// run runs the script of a step and returns its exit code.
func (j *job) run(s step, i int) int {
	if s.Shell != "bash" {
		j.t.Fatalf("step %q has shell %q", s.Name, s.Shell)
	}
	if strings.Contains(s.Run, "${{") {
		j.t.Errorf("step %q puts an expression into its script: what it holds would be run", s.Name)
	}
	output := filepath.Join(j.assets, fmt.Sprintf("GITHUB_OUTPUT-%d", i))
	if err := os.WriteFile(output, nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
	cmd.Dir = j.dir
	cmd.Stdout, cmd.Stderr = &j.printed, &j.printed
	cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true", "RUNNER_TEMP="+j.assets, "GITHUB_ACTION_PATH="+j.source,
		"GITHUB_OUTPUT="+output)
	for _, f := range []string{"GITHUB_ENV", "GITHUB_STEP_SUMMARY"} {
		cmd.Env = append(cmd.Env, f+"="+filepath.Join(j.assets, f))
	}
	cmd.Env = append(cmd.Env, slices.Collect(maps.Values(j.lines("GITHUB_ENV")))...)
	for k, v := range s.Env {
		cmd.Env = append(cmd.Env, k+"="+j.resolve(v))
	}
	err := cmd.Run()
	if s.ID != "" {
		j.outputs[s.ID] = map[string]string{}
		for k, line := range j.lines(filepath.Base(output)) {
			j.outputs[s.ID][k] = strings.TrimPrefix(line, k+"=")
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	} else if err != nil {
		j.t.Fatal(err)
	}
	return 0
}

// lines reads name=value lines that a step wrote, by their names.
func (j *job) lines(file string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(j.read(filepath.Join(j.assets, file))) {
		name, _, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			j.t.Errorf("%s has the line %q", file, line)
		}
		out[name] = strings.TrimSuffix(line, "\n")
	}
	return out
}

func (j *job) read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		j.t.Error(err)
	}
	return string(b)
}

func (j *job) summary() string { return j.read(filepath.Join(j.assets, "GITHUB_STEP_SUMMARY")) }

// outcome is the output of the action.
func (j *job) outcome() string { return j.resolve(j.Outputs["outcome"].Value) }

func readAction(t *testing.T) *action {
	var a action
	readYAML(t, "action.yml", &a)
	if a.Runs.Using != "composite" {
		t.Fatalf("%+v", a.Runs)
	}
	return &a
}

func TestTheActionPassesFailsAndIsNeverGreenOnNothing(t *testing.T) {
	memtox, a := binary(t), readAction(t)
	run := "--agent hermes --defense none,no-memory\n--limit 60"
	for _, c := range []struct {
		name    string
		inputs  map[string]string
		code    int
		outcome string
		says    string
	}{
		{"pass", map[string]string{"require": "none.end_to_end >= 0.2\n\nno-memory.end_to_end <= 0.3\n"}, 0, "pass",
			"PASS: 4 checks"},
		{"fail", map[string]string{"require": "none.end_to_end <= 0.02"}, 1, "fail",
			"::error title=memtox gate%3A hermes (naive)/none.end_to_end::"},
		{"inconclusive", map[string]string{"require": "none.latency_us.write.p99 <= 40000"}, 4, "inconclusive",
			"::warning title="},
		{"nothing required", map[string]string{}, 2, "error", "there is no requirement"},
		{"no such arm", map[string]string{"require": "guard.end_to_end <= 0.5"}, 2, "error", "has no arm"},
		{"what an input holds is not run", map[string]string{"require": "$(touch owned)`touch owned`.end_to_end <= 0.5\"; " +
			"touch owned; \"", "arguments": "--domain=$(touch owned)`touch owned`\"; touch owned; \""}, 2, "", "memtox: "},
		{"an unknown argument", map[string]string{"run": "--no-such-flag", "require": "none.tpr >= 0.1"}, 2, "",
			"unknown flag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			in := map[string]string{"memtox": memtox, "run": run}
			maps.Copy(in, c.inputs)
			j := a.play(t, dir, in)
			if j.code != c.code || j.outcome() != c.outcome || !strings.Contains(j.printed.String(), c.says) {
				t.Errorf("exit code %d, outcome %q\n%s", j.code, j.outcome(), j.printed.String())
			}
			if _, err := os.Stat(filepath.Join(dir, "owned")); err == nil {
				t.Error("an input was run as a command")
			}
			if c.outcome == "error" || c.outcome == "" {
				return
			}
			var sarif struct{ Runs []any }
			if err := json.Unmarshal([]byte(j.read(filepath.Join(dir, "memtox-gate/gate.sarif"))), &sarif); err != nil ||
				len(sarif.Runs) != 1 {
				t.Errorf("SARIF: %v, %d runs", err, len(sarif.Runs))
			}
			var suites struct {
				Tests int `xml:"tests,attr"`
			}
			if err := xml.Unmarshal([]byte(j.read(filepath.Join(dir, "memtox-gate/gate.xml"))), &suites); err != nil ||
				suites.Tests == 0 {
				t.Errorf("JUnit: %v, %d tests", err, suites.Tests)
			}
			if !strings.Contains(j.read(filepath.Join(dir, "memtox-gate/report.html")), "</html>") {
				t.Error("there is no report")
			}
			// The one-screen table of the run, and the gate.
			for _, want := range []string{"\n    none  ", "\n    no-memory ", "\n    Best: ", "memtox gate: " + strings.ToUpper(c.outcome)} {
				if !strings.Contains(j.summary(), want) {
					t.Errorf("the summary has no %q:\n%s", want, j.summary())
				}
			}
			up := j.uploads["actions/upload-artifact"]
			for _, f := range []string{"report.html", "gate.xml", "gate.sarif", "gate.md"} {
				if !strings.Contains(up["path"], "memtox-gate/"+f+"\n") {
					t.Errorf("%s is not uploaded: %v", f, up)
				}
			}
		})
	}
	t.Run("baseline", func(t *testing.T) {
		dir := t.TempDir()
		in := map[string]string{"memtox": memtox, "run": run, "require": "none.end_to_end >= 0.2"}
		a.play(t, dir, in)
		if out, err := exec.Command(memtox, "gate", filepath.Join(dir, "memtox-gate/run"), "--write-baseline",
			filepath.Join(dir, "b.parquet")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		j := a.play(t, dir, map[string]string{"memtox": memtox, "directory": "memtox-gate/run",
			"baseline": "b.parquet", "exact": "true"})
		if j.code != 0 || !strings.Contains(j.printed.String(), "ended as in the baseline") {
			t.Errorf("exit code %d\n%s", j.code, j.printed.String())
		}
	})
}

// An argument comes through as it stands, with its spaces, quotes and signs; so does a
// value that stands behind its flag.
func TestArgumentsSurviveTheirQuoting(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the steps are for bash, and there is none")
	}
	const arguments = `
--defense none,mine=exec:./guard "my rules.txt" 'and more' $HOME *
--defense=other=exec:./guard "a b"
--limit=60
-f   other.yaml
--full

a  b\n
`
	want := []string{"run", "-f", "my experiment.yaml", "--defense",
		`none,mine=exec:./guard "my rules.txt" 'and more' $HOME *`, `--defense=other=exec:./guard "a b"`, "--limit=60", "-f",
		"other.yaml", "--full", `a  b\n`, "--out"}
	for name, play := range map[string]func(tools, dir string){
		"the action": func(tools, dir string) {
			readAction(t).play(t, dir, map[string]string{"memtox": filepath.Join(tools, "memtox"),
				"experiment": "my experiment.yaml", "arguments": arguments})
		},
		"the GitLab job": func(tools, dir string) {
			for _, shell := range []string{"bash", "sh"} {
				os.Remove(filepath.Join(tools, "memtox-run"))
				readGitLabJob(t).play(t, shell, tools, dir, map[string]string{"MEMTOX_EXPERIMENT": "my experiment.yaml",
					"MEMTOX_ARGUMENTS": arguments})
			}
		},
	} {
		// In memtox's place: it writes down what it is given, an argument a line.
		tools := t.TempDir()
		if err := os.WriteFile(filepath.Join(tools, "memtox"), []byte("#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done "+
			">>\"$0-$1\"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		play(tools, t.TempDir())
		b, err := os.ReadFile(filepath.Join(tools, "memtox-run"))
		got := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if err != nil || !slices.Equal(got[:len(got)-1], want) {
			t.Errorf("%s: %v\ngot  %q\nwant %q", name, err, got, want)
		}
	}
}

// The action builds the memtox that it stands beside, and takes an experiment file.
func TestTheActionRunsItsOwnVersionOnAnExperiment(t *testing.T) {
	binary(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"memtox.yaml": "agent: hermes\ndefense: [none, mine=guard:policy.yaml]\nlimit: 60\n",
		"policy.yaml": "extends: standard\n",
		"gate.yaml":   "dataset: memtox-bench@v2\narms:\n  hermes/mine:\n    - harm <= 0.9\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	j := readAction(t).play(t, dir, map[string]string{"experiment": "memtox.yaml", "file": "gate.yaml", "code-scanning": "true"})
	if j.code != 0 || j.outcome() != "pass" || !strings.Contains(j.printed.String(), "memtox v1.2.3 ") {
		t.Errorf("exit code %d, outcome %q\n%s", j.code, j.outcome(), j.printed.String())
	}
	if _, err := os.Stat(j.uploads["actions/setup-go"]["go-version-file"]); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, j.uploads["github/codeql-action/upload-sarif"]["sarif_file"])); err != nil {
		t.Error(err)
	}
}

// checkouts are workspaces into which a change under review has put a run: one that
// passes, finished or half of it, or whatever has its name.
func checkouts(t *testing.T, memtox, name string) map[string]string {
	made := filepath.Join(t.TempDir(), "run")
	if out, err := exec.Command(memtox, "run", "--dataset", "memtox-smoke", "--limit", "60", "--agent", "hermes",
		"--defense", "none,no-memory", "--out", made).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dirs := map[string]string{}
	for kind, put := range map[string]func(at string) error{
		"a finished run": func(at string) error { return os.CopyFS(at, os.DirFS(made)) },
		"half a run": func(at string) error {
			return errors.Join(os.CopyFS(at, os.DirFS(made)), os.Remove(filepath.Join(at, "manifest.json")))
		},
		"an empty directory": func(at string) error { return os.Mkdir(at, 0o777) },
		"a link":             func(at string) error { return os.Symlink(made, at) },
		"a dangling link":    func(at string) error { return os.Symlink("nowhere", at) },
	} {
		dirs[kind] = t.TempDir()
		at := filepath.Join(dirs[kind], name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o777), put(at)); err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

func TestTheActionTakesNoRunOfTheWorkspace(t *testing.T) {
	memtox, a := binary(t), readAction(t)
	in := map[string]string{"memtox": memtox, "run": "--dataset memtox-smoke --limit 60 --agent hermes --defense " +
		"none,no-memory", "require": "none.end_to_end >= 0.02"}
	for kind, dir := range checkouts(t, memtox, "memtox-gate/run") {
		if j := a.play(t, dir, in); j.code != 2 || j.outcome() != "" || len(j.uploads) > 0 ||
			!strings.Contains(j.printed.String(), "there already") {
			t.Errorf("%s: exit code %d, outcome %q, %v\n%s", kind, j.code, j.outcome(), j.uploads, j.printed.String())
		}
	}
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "memtox-gate")); err != nil {
		t.Fatal(err)
	}
	j := a.play(t, dir, in)
	if files, err := os.ReadDir(elsewhere); j.code != 2 || err != nil || len(files) > 0 {
		t.Errorf("through a link: exit code %d, %v, %v\n%s", j.code, files, err, j.printed.String())
	}
}

// gitlabJob is what the job uses of GitLab's format, so that a misspelt field is found.
type gitlabJob struct {
	Stage, Image string
	Variables    map[string]string
	Before       []string `yaml:"before_script"`
	Script       []string
	Artifacts    struct {
		When     string
		ExposeAs string `yaml:"expose_as"`
		Paths    []string
		Reports  map[string]string
	}
}

func readGitLabJob(t *testing.T) *gitlabJob {
	t.Helper()
	f, err := os.Open("../gitlab/memtox.gitlab-ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	var jobs map[string]*gitlabJob
	if err := d.Decode(&jobs); err != nil || jobs["memtox"] == nil || len(jobs) != 1 {
		t.Fatal(err, jobs)
	}
	return jobs["memtox"]
}

// play runs the job's lines in dir as a runner's shell does, with the program of tools on
// the path and variables in place of the job's own.
func (g *gitlabJob) play(t *testing.T, shell, tools, dir string, variables map[string]string) (code int, printed string) {
	t.Helper()
	cmd := exec.Command(shell, "-e", "-c", strings.Join(slices.Concat(g.Before, g.Script), "\n"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	for k, v := range g.Variables {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	for k, v := range variables {
		if _, ok := g.Variables[k]; !ok {
			t.Errorf("the job has no variable %s", k)
		}
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestTheGitLabJobTakesNoRunOfTheWorkspace(t *testing.T) {
	memtox, g := binary(t), readGitLabJob(t)
	for kind, dir := range checkouts(t, memtox, "memtox-run") {
		if err := os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte("require:\n  - none.end_to_end >= 0.02\n"),
			0o666); err != nil {
			t.Fatal(err)
		}
		if code, out := g.play(t, "bash", filepath.Dir(memtox), dir, map[string]string{
			"MEMTOX_RUN": "--dataset memtox-smoke --limit 60 --agent hermes --defense none,no-memory"}); code != 2 ||
			!strings.Contains(out, "there already") {
			t.Errorf("%s: exit code %d\n%s", kind, code, out)
		}
	}
}

func TestTheGitLabJobGates(t *testing.T) {
	memtox, g := binary(t), readGitLabJob(t)
	for _, c := range []struct {
		limit, shell string
		variables    map[string]string
		want         int
	}{
		{"none.end_to_end >= 0.2", "bash", map[string]string{"MEMTOX_RUN": "--limit 60 --agent hermes --defense " +
			"none,no-memory"}, 0},
		{"none.end_to_end <= 0.02", "sh", map[string]string{"MEMTOX_EXPERIMENT": "memtox.yaml"}, 1},
	} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte("require:\n  - "+c.limit+"\n"), 0o666),
			os.WriteFile(filepath.Join(dir, "memtox.yaml"), []byte("agent: hermes\ndefense: none\nlimit: 60\n"), 0o666)); err != nil {
			t.Fatal(err)
		}
		code, out := g.play(t, c.shell, filepath.Dir(memtox), dir, c.variables)
		if code != c.want || !strings.Contains(out, "\nBest: ") {
			t.Errorf("%s: exit code %d, want %d\n%s", c.limit, code, c.want, out)
		}
		for _, f := range append(g.Artifacts.Paths, g.Artifacts.Reports["junit"]) {
			if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Size() == 0 {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
}

// What docs/ci.md shows for GitHub and GitLab passes with the files beside it, and fails
// once the guard only warns.
func TestThePageWorksWhenCopied(t *testing.T) {
	memtox, a, g := binary(t), readAction(t), readGitLabJob(t)
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, m := range regexp.MustCompile("(?s)```yaml file=(\\S+)\n(.*?)```").FindAllSubmatch(page, -1) {
		path := filepath.Join(dir, string(m[1]))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, m[2], 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"run -f memtox.yaml --limit 300 --out first", "gate --init first"} {
		cmd := exec.Command(memtox, strings.Fields(args)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("memtox %s: %v\n%s", args, err, out)
		}
	}
	var w struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	readYAML(t, filepath.Join(dir, ".github/workflows/memtox.yml"), &w)
	steps := w.Jobs["gate"].Steps
	if len(steps) != 2 || !strings.HasPrefix(steps[1].Uses, "memtox/memtox/scripts/github-action@") {
		t.Fatalf("%+v", w)
	}
	var include map[string]any
	readYAML(t, filepath.Join(dir, ".gitlab-ci.yml"), &include)
	variables := map[string]string{}
	for k, v := range include["memtox"].(map[string]any)["variables"].(map[string]any) {
		variables[k] = fmt.Sprint(v)
	}
	steps[1].With["memtox"] = memtox
	steps[1].With["arguments"], variables["MEMTOX_ARGUMENTS"] = "--limit 300", "--limit 300" // for time's sake
	for _, mode := range []struct {
		policy string
		code   int
	}{{"extends: standard\n", 0}, {"extends: standard\nmode: warn\n", 1}} {
		if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(mode.policy), 0o666); err != nil {
			t.Fatal(err)
		}
		if j := a.play(t, dir, steps[1].With); j.code != mode.code {
			t.Errorf("%q: the action: exit code %d, want %d\n%s", mode.policy, j.code, mode.code, j.printed.String())
		}
		if code, out := g.play(t, "bash", filepath.Dir(memtox), dir, variables); code != mode.code {
			t.Errorf("%q: the GitLab job: exit code %d, want %d\n%s", mode.policy, code, mode.code, out)
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, "memtox-gate")),
			os.RemoveAll(filepath.Join(dir, "memtox-run"))); err != nil {
			t.Fatal(err)
		}
	}
}

// workflow is what matrix.yml uses of the format of workflows, so that a misspelt
// field is found.
type workflow struct {
	Name        string
	On          []string
	Permissions map[string]string
	Env         map[string]string
	Jobs        map[string]struct {
		RunsOn   string `yaml:"runs-on"`
		Needs    string
		Strategy struct {
			FailFast *bool `yaml:"fail-fast"`
			Matrix   map[string][]int
		}
		Steps []struct {
			Name, Uses, Shell, Run string
			With                   map[string]any
			Env                    map[string]string
		}
	}
}

// The shell steps of the matrix, run one shard after the other, make a whole run
// that the last job gates.
func TestTheMatrixMergesAndGates(t *testing.T) {
	memtox := binary(t)
	f, err := os.Open("matrix.yml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	var w workflow
	if err := d.Decode(&w); err != nil {
		t.Fatal(err)
	}
	shards, gate := w.Jobs["shard"], w.Jobs["gate"]
	total := len(shards.Strategy.Matrix["index"])
	if len(w.Jobs) != 2 || gate.Needs != "shard" || total < 2 || w.Permissions["contents"] != "read" ||
		shards.Strategy.FailFast == nil || *shards.Strategy.FailFast {
		t.Fatalf("%+v", w)
	}
	dir := t.TempDir()
	script := func(name, run string, env map[string]string) {
		t.Helper()
		if run == "" || strings.Contains(run, "${{") {
			t.Fatalf("the step %s has no script, or an expression in it", name)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", run)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(memtox)+string(os.PathListSeparator)+os.Getenv("PATH"),
			"RUN="+w.Env["RUN"]+" --limit 400", "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	for index := range total {
		for _, s := range shards.Steps {
			if s.Name != "Run" {
				continue
			}
			env := map[string]string{}
			for k, v := range s.Env {
				env[k] = strings.NewReplacer("${{ strategy.job-index }}", strconv.Itoa(index), "${{ strategy.job-total }}",
					strconv.Itoa(total)).Replace(v)
			}
			script(s.Name, s.Run, env)
		}
	}
	for _, s := range gate.Steps {
		if s.Name == "Gate" {
			script(s.Name, s.Run, nil)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "summary.md")); err != nil || !strings.Contains(string(b), "gate: PASS") {
		t.Errorf("the summary: %v\n%s", err, b)
	}
}
