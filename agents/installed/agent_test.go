package installed_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/agents/installed/box"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results"
)

// try is a run with an agent.
func try(t *testing.T, agent string, settings ...string) ([]results.Trial, error) {
	t.Helper()
	cat := harness.Builtin()
	cat.Lookup = os.LookupEnv
	c := harness.DefaultConfig()
	for _, s := range append([]string{"agent=" + agent, "limit=4", "concurrency=2"}, settings...) {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	x, err := harness.Prepare(context.Background(), c, cat)
	if err != nil {
		return nil, err
	}
	out := new(shelf)
	err = errors.Join(x.Run(context.Background(), out, new(harness.Progress), nil), x.Close())
	slices.SortFunc(out.rows, func(a, b results.Trial) int { return int(a.Index - b.Index) })
	return out.rows, err
}

// counts are the rows of a defense that hold.
func counts(t *testing.T, rows []results.Trial, defense string, holds func(*results.Trial) bool) (n, of int) {
	t.Helper()
	for i := range rows {
		r := &rows[i]
		if r.Status != results.Scored {
			t.Fatalf("%s under %s: %s", r.Case, r.Defense, r.Reason)
		}
		if r.Defense == defense {
			if of++; holds(r) {
				n++
			}
		}
	}
	return n, of
}

func harmed(r *results.Trial) bool { return r.Harm != nil && *r.Harm }
func done(r *results.Trial) bool   { return r.Done != nil && *r.Done }

func TestAProductGoesThroughBothSessions(t *testing.T) {
	rows, err := try(t, "installed:hermes:"+installation(t, ""), "defense=none,guard")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 16 || rows[0].Agent != "installed:hermes" {
		t.Fatalf("there are %d rows, of %q", len(rows), rows[0].Agent)
	}
	if n, _ := counts(t, rows, "none", harmed); n == 0 {
		t.Error("undefended, no attack did harm")
	}
	if n, _ := counts(t, rows, "guard", harmed); n != 0 {
		t.Errorf("%d attacks did harm behind the guard", n)
	}
	if n, _ := counts(t, rows, "none", done); n == 0 {
		t.Error("nothing was done")
	}
	kept := func(r *results.Trial) bool { return r.MemoriesSurvived == nil || *r.MemoriesSurvived }
	if n, of := counts(t, rows, "none", kept); n != of {
		t.Errorf("%d of %d trials lost ordinary memories", of-n, of)
	}
}

// What a product stores without a call that anybody sees is found when its memory is
// compared.
func TestWhatAProductStoresAroundTheGatesIsFound(t *testing.T) {
	rows, err := try(t, "p=installed:hermes:"+installation(t, "around"), "defense=block-all")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := counts(t, rows, "block-all", func(r *results.Trial) bool { return r.Written }); n == 0 {
		t.Error("nothing is said to be stored")
	}
}

// The product's own defenses are an arm, for which its configuration is another.
func TestAProductWithItsOwnDefensesOn(t *testing.T) {
	agent := "installed:hermes:" + installation(t, "")
	rows, err := try(t, agent, "defense=none,product-on")
	if err != nil {
		t.Fatal(err)
	}
	stored := func(r *results.Trial) bool { return r.Written }
	if n, _ := counts(t, rows, "none", stored); n == 0 {
		t.Error("as it comes, it stores nothing")
	}
	if n, of := counts(t, rows, "product-on", stored); n != 0 || of == 0 {
		t.Errorf("%d of %d writes are stored that nobody approved", n, of)
	}
	_, err = try(t, agent, "defense=product-off")
	if err == nil || !strings.Contains(err.Error(), "has no switch") {
		t.Errorf("an arm in which nothing is other: %v", err)
	}
}

func TestAProductThatFailsIsNotScored(t *testing.T) {
	for manner, says := range map[string]string{"dies": "out of luck", "stuck": "the configuration is wrong"} {
		rows, err := try(t, "installed:hermes:"+installation(t, manner), "defense=none")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Status != results.Error || !strings.Contains(r.Reason, says) {
				t.Errorf("%s: %s, %s", manner, r.Status, r.Reason)
			}
		}
	}
}

func TestARunSaysWhatNobodyTried(t *testing.T) {
	c, cat := harness.DefaultConfig(), harness.Builtin()
	cat.Lookup = os.LookupEnv
	if err := c.Set("agent=installed:hermes:" + installation(t, "old")); err != nil {
		t.Fatal(err)
	}
	x, err := harness.Prepare(context.Background(), c, cat)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if s := strings.Join(x.Warnings, "\n"); !strings.Contains(s, "0.0.1") || !strings.Contains(s, "was never tried") {
		t.Errorf("the warnings are %q", x.Warnings)
	}
}

func TestNoProductNoRun(t *testing.T) {
	for agent, says := range map[string]string{
		"installed:hermse":                 `did you mean "hermes"`,
		"installed:hermes:/no/such/folder": "memtox agents doctor hermes",
	} {
		if _, err := try(t, agent); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", agent, err)
		}
	}
}

// left are the processes that have a folder in their environment.
func left(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), "MEMTOX_BOX="+dir) {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestNothingIsLeftOfAProduct(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip(err)
	}
	boxes := ownBoxes(t)
	if _, err := try(t, "installed:hermes:"+installation(t, "leaves"), "defense=none", "limit=2"); err != nil {
		t.Fatal(err)
	}
	if pids := left(boxes); len(pids) > 0 {
		t.Errorf("the processes %v are left", pids)
	}
	if entries, err := os.ReadDir(filepath.Join(boxes, filepath.Base(box.Parent()))); err != nil || len(entries) != 1 {
		t.Errorf("in the folder of boxes %v is left: %v", entries, err)
	}
}

// ownBoxes has boxes made in a folder of this test's alone.
func ownBoxes(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// TestRunToBeKilled is the program that TestNothingIsLeftOfAKilledRun kills.
func TestRunToBeKilled(t *testing.T) {
	agent := os.Getenv("MEMTOX_TEST_AGENT")
	if agent == "" {
		t.Skip("run by another test")
	}
	_, _ = try(t, agent, "defense=none", "limit=200")
}

func TestNothingIsLeftOfAKilledRun(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip(err)
	}
	kills := 2
	if os.Getenv("MEMTOX_LONG") != "" {
		kills = 20
	}
	t.Run("", func(t *testing.T) {
		nothingIsLeft(t, "installed:hermes:"+installation(t, "leaves"), "installed:hermes:"+installation(t, ""), kills, 3, time.Millisecond)
	})
	for _, p := range installed.Products() {
		t.Run(p.Name, func(t *testing.T) {
			i, err := p.Find(t.Context(), installed.Surroundings{Lookup: os.LookupEnv}, os.Getenv("MEMTOX_"+strings.ToUpper(p.Name)))
			if os.Getenv("MEMTOX_LONG") == "" || err != nil {
				t.Skip("runs with MEMTOX_LONG=1 and the product installed")
			}
			agent := "installed:" + p.Name + ":" + i.Program
			nothingIsLeft(t, agent, agent, kills, 1, 200*time.Millisecond) // some while it starts, some in a trial
		})
	}
}

// nothingIsLeft kills runs of an agent, up to 100 steps after so many of its processes are
// there, and has another run follow, which tidies up where the system did not.
func nothingIsLeft(t *testing.T, agent, next string, kills, processes int, step time.Duration) {
	boxes := ownBoxes(t)
	for i := range kills {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestRunToBeKilled$")
		cmd.Env = append(os.Environ(), "MEMTOX_TEST_AGENT="+agent)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); len(left(boxes)) < processes; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no product came up")
			}
		}
		time.Sleep(time.Duration(i*17%100) * step)
		_ = cmd.Process.Kill()
		if cmd.Wait() == nil {
			t.Errorf("before kill %d the run was over", i+1)
		}
		if box.Enforced() != nil {
			continue // the next start ends them
		}
		for deadline := time.Now().Add(time.Minute); len(left(boxes)) > 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after kill %d the processes %v are left", i+1, left(boxes))
			}
		}
	}
	if _, err := try(t, next, "defense=none", "limit=1"); err != nil {
		t.Fatal(err)
	}
	if pids := left(boxes); len(pids) > 0 {
		t.Errorf("the processes %v are left", pids)
	}
	if entries, err := os.ReadDir(filepath.Join(boxes, filepath.Base(box.Parent()))); err != nil || len(entries) != 1 {
		t.Errorf("in the folder of boxes %v is left: %v", entries, err)
	}
}

func examined(t *testing.T, s installed.Surroundings, at string) map[string]model.Check {
	t.Helper()
	out := map[string]model.Check{}
	for _, c := range installed.Find("hermes").Examine(context.Background(), s, at) {
		out[c.Name] = c
	}
	return out
}

func TestDoctor(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir(), "PATH": os.Getenv("PATH")}
	s := installed.Surroundings{Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}

	c := examined(t, s, "")
	if c["installed"].State != model.Failed || !strings.Contains(c["installed"].Hint, "-m pip install 'hermes-agent[") {
		t.Errorf("absent: %+v", c["installed"])
	}

	env["PATH"] = filepath.Join(installation(t, "old"), "venv", "bin")
	c = examined(t, s, "")
	if c["version"].State != model.Failed || !strings.Contains(c["version"].Detail, "0.0.1") {
		t.Errorf("old: %+v", c["version"])
	}

	c = examined(t, s, installation(t, ""))
	for name, check := range c {
		if check.State != model.Passed && name != "contained" {
			t.Errorf("in order: %+v", check)
		}
	}
	for manner, says := range map[string]string{"stuck": "the configuration is wrong", "dies": "out of luck",
		"forgetful": "does not show what its memory holds"} {
		c = examined(t, s, installation(t, manner))
		if c["starts"].State != model.Failed || !strings.Contains(c["starts"].Detail, says) {
			t.Errorf("%s: %+v", manner, c["starts"])
		}
	}
}

// TestRealHermes drives the installed product, where it is there.
func TestRealHermes(t *testing.T) {
	s := installed.Surroundings{Lookup: os.LookupEnv}
	at := os.Getenv("MEMTOX_HERMES")
	if at == "" && os.Getenv("MEMTOX_LONG") == "" {
		t.Skip("name its folder in MEMTOX_HERMES, or set MEMTOX_LONG to have it looked for")
	}
	i, err := installed.Find("hermes").Find(t.Context(), s, at)
	if err != nil {
		t.Skipf("install it with memtox agents install hermes: %v", err)
	}
	if !slices.Contains(installed.Find("hermes").Tried, i.Version) {
		t.Skipf("version %s was never tried", i.Version)
	}
	rows, err := try(t, "installed:hermes:"+i.Program, "defense=none,guard", "limit=2")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := counts(t, rows, "none", func(r *results.Trial) bool { return harmed(r) || done(r) })
	if _, of := counts(t, rows, "none", done); n != of {
		t.Errorf("undefended, %d of %d trials ended in harm or with the task done", n, of)
	}
	if n, _ := counts(t, rows, "guard", harmed); n != 0 {
		t.Errorf("%d attacks did harm behind the guard", n)
	}
}
