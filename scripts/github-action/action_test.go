// Package githubaction has no code: its test runs the shell steps of the
// composite action and of the GitLab example as their runners would.
package githubaction

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
		Steps []struct {
			Name, ID, Shell, Run string
			Env                  map[string]string
		}
	}
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
	path := filepath.Join(t.TempDir(), "memtox")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/memtox").CombinedOutput(); err != nil {
		t.Fatalf("building memtox: %v\n%s", err, out)
	}
	return path
}

var expression = regexp.MustCompile(`\$\{\{ inputs\.([a-z]+) \}\}`)

// do runs the steps with inputs in dir, until one fails, and returns its exit
// code, what was printed and the output "outcome".
func (a *action) do(t *testing.T, dir string, inputs map[string]string) (code int, printed, outcome string) {
	t.Helper()
	files := map[string]string{}
	for _, f := range []string{"GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} {
		files[f] = filepath.Join(dir, f)
		if err := os.WriteFile(files[f], nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	for _, s := range a.Runs.Steps {
		if s.Shell != "bash" {
			t.Fatalf("step %q has shell %q", s.Name, s.Shell)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %q puts an expression into its script: what it holds would be run", s.Name)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true")
		for k, v := range files {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		if b, err := os.ReadFile(files["GITHUB_ENV"]); err == nil {
			cmd.Env = append(cmd.Env, strings.Split(strings.TrimSpace(string(b)), "\n")...)
		}
		for k, v := range s.Env {
			v = expression.ReplaceAllStringFunc(v, func(m string) string {
				name := expression.FindStringSubmatch(m)[1]
				in, ok := a.Inputs[name]
				if !ok {
					t.Errorf("step %q uses the input %q, which is not declared", s.Name, name)
				}
				if given, ok := inputs[name]; ok {
					return given
				}
				return in.Default
			})
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		var exit *exec.ExitError
		if err := cmd.Run(); errors.As(err, &exit) {
			code = exit.ExitCode()
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(files["GITHUB_OUTPUT"])
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), strings.TrimPrefix(strings.TrimSpace(string(b)), "outcome=")
}

func TestTheActionPassesFailsAndIsNeverGreenOnNothing(t *testing.T) {
	memtox := binary(t)
	var a action
	readYAML(t, "action.yml", &a)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) != 3 {
		t.Fatalf("%+v", a.Runs)
	}
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
			"touch owned; \""}, 2, "error", "memtox: --require: "},
		{"an unknown argument", map[string]string{"run": "--no-such-flag", "require": "none.tpr >= 0.1"}, 2, "",
			"unknown flag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			in := map[string]string{"memtox": memtox, "run": run}
			maps.Copy(in, c.inputs)
			code, printed, outcome := a.do(t, dir, in)
			if code != c.code || outcome != c.outcome || !strings.Contains(printed, c.says) {
				t.Errorf("exit code %d, outcome %q\n%s", code, outcome, printed)
			}
			if _, err := os.Stat(filepath.Join(dir, "owned")); err == nil {
				t.Error("an input was run as a command")
			}
			if c.outcome == "error" || c.outcome == "" {
				return
			}
			for _, f := range []string{"memtox-gate/gate.xml", "memtox-gate/gate.sarif", "memtox-gate/gate.md",
				"GITHUB_STEP_SUMMARY"} {
				if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Size() == 0 {
					t.Errorf("%s: %v", f, err)
				}
			}
		})
	}
	t.Run("baseline", func(t *testing.T) {
		dir := t.TempDir()
		in := map[string]string{"memtox": memtox, "run": run, "require": "none.end_to_end >= 0.2"}
		a.do(t, dir, in)
		if out, err := exec.Command(memtox, "gate", filepath.Join(dir, "memtox-gate/run"), "--write-baseline",
			filepath.Join(dir, "b.parquet")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		code, printed, _ := a.do(t, dir, map[string]string{"memtox": memtox, "directory": "memtox-gate/run",
			"baseline": "b.parquet", "exact": "true"})
		if code != 0 || !strings.Contains(printed, "ended as in the baseline") {
			t.Errorf("exit code %d\n%s", code, printed)
		}
	})
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
	memtox := binary(t)
	var a action
	readYAML(t, "action.yml", &a)
	in := map[string]string{"memtox": memtox, "run": "--dataset memtox-smoke --limit 60 --agent hermes --defense " +
		"none,no-memory", "require": "none.end_to_end >= 0.02"}
	for kind, dir := range checkouts(t, memtox, "memtox-gate/run") {
		if code, printed, outcome := a.do(t, dir, in); code != 2 || outcome != "" ||
			!strings.Contains(printed, "there already") {
			t.Errorf("%s: exit code %d, outcome %q\n%s", kind, code, outcome, printed)
		}
	}
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "memtox-gate")); err != nil {
		t.Fatal(err)
	}
	code, printed, _ := a.do(t, dir, in)
	if files, err := os.ReadDir(elsewhere); code != 2 || err != nil || len(files) > 0 {
		t.Errorf("through a link: exit code %d, %v, %v\n%s", code, files, err, printed)
	}
}

func TestTheGitLabJobTakesNoRunOfTheWorkspace(t *testing.T) {
	memtox := binary(t)
	var jobs map[string]struct{ Script []string }
	readYAML(t, "../gitlab/memtox.gitlab-ci.yml", &jobs)
	for kind, dir := range checkouts(t, memtox, "memtox-run") {
		if err := os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte("require:\n  - none.end_to_end >= 0.02\n"),
			0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", "-eo", "pipefail", "-c", strings.Join(jobs["memtox"].Script, "\n"))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(memtox)+string(os.PathListSeparator)+os.Getenv("PATH"),
			"MEMTOX_GATE=gate.yaml",
			"MEMTOX_RUN=--dataset memtox-smoke --limit 60 --agent hermes --defense none,no-memory")
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "there already") {
			t.Errorf("%s: exit code %d\n%s", kind, code, out)
		}
	}
}

func TestTheGitLabJobGates(t *testing.T) {
	memtox := binary(t)
	var jobs map[string]struct {
		Variables map[string]string
		Before    []string `yaml:"before_script"`
		Script    []string
		Artifacts struct {
			Reports map[string]string
		}
	}
	readYAML(t, "../gitlab/memtox.gitlab-ci.yml", &jobs)
	job, ok := jobs["memtox"]
	if !ok || len(job.Script) == 0 {
		t.Fatal("there is no job memtox")
	}
	for limit, want := range map[string]int{"none.end_to_end >= 0.2": 0, "none.end_to_end <= 0.02": 1} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte("require:\n  - "+limit+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", "-eo", "pipefail", "-c", strings.Join(slices.Concat(job.Before, job.Script), "\n"))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(memtox)+string(os.PathListSeparator)+os.Getenv("PATH"))
		for k, v := range job.Variables {
			if k == "MEMTOX_RUN" {
				v = "--limit 60 --agent hermes --defense none,no-memory"
			}
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		out, err := cmd.CombinedOutput()
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", limit, code, want, out)
		}
		if st, err := os.Stat(filepath.Join(dir, job.Artifacts.Reports["junit"])); err != nil || st.Size() == 0 {
			t.Errorf("the test report: %v", err)
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
