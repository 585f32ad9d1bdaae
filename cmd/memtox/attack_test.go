package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memtox/memtox/harness/attack"
)

func TestAttackPrintsStaticBesideAdaptiveAndWritesWinners(t *testing.T) {
	c := newConsole(t)
	args := []string{"attack", "--dataset", "memtox-bench@v1", "--model", "reference:cautious", "--agent", "hermes", "--defense", "none,keyword", "--limit", "30", "--learn", "12",
		"--budget", "20", "--out", "found"}
	table := c.must(args...)
	for _, want := range []string{"is NOT a language model", "End to end, by budget of queries (1: the static attack)",
		"ASR, by budget", "What landed"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table does not say %q:\n%s", want, table)
		}
	}
	var r attack.Result
	if err := json.Unmarshal([]byte(c.must(append(args, "--resume", "--format", "json")...)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Arms) != 2 || len(r.Arms[0].Levels) != 3 || r.Arms[1].Portfolio == nil {
		t.Errorf("%+v", r)
	}
	md := c.must(append(args, "--resume", "--format", "markdown")...)
	if !strings.Contains(md, "| agent | defense | 1 | 10 | 20 |") {
		t.Errorf("Markdown:\n%s", md)
	}
	for _, a := range r.Arms {
		if a.File == "" {
			continue
		}
		out := c.must("run", "--dataset", filepath.Join("found", filepath.FromSlash(a.File)), "--split", "all", "--agent",
			"hermes", "--full", "--model", "reference:cautious", "--defense", a.Defense, "--out", "again-"+a.Defense)
		if !strings.Contains(out, "Every attack of this run is a variant") || !strings.Contains(out, "by mutation") {
			t.Errorf("running the winners:\n%s", out)
		}
		c.must("datasets", "validate", filepath.Join("found", filepath.FromSlash(a.File)))
	}
}

// What a directory says of an attack is what the attack found, or an error.
func TestAnAttackThatWasChangedIsNotGoneOnWith(t *testing.T) {
	c := newConsole(t)
	args := strings.Fields("attack --dataset memtox-smoke --agent hermes --defense keyword --limit 4 --learn 0 " +
		"--budget 20 --out a")
	c.must(args...)
	journal := filepath.Join(c.dir, "a", "attack.jsonl")
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	sound := string(b)
	lines := strings.SplitAfter(sound, "\n")
	sealed := regexp.MustCompile(`,"sha256":"[0-9a-f]{64}"}\n`)
	for name, k := range map[string]struct {
		journal, want string
		code          Code
	}{
		"edited": {strings.NewReplacer(`"landed":1`, `"landed":0`, `"written":1`, `"written":0`).Replace(sound),
			"attack.jsonl:", Failed},
		"without":   {strings.Replace(sound, lines[2], "", 1), "attack.jsonl:3: the file is damaged", Failed},
		"swapped":   {lines[0] + lines[2] + lines[1], "attack.jsonl:2: the file is damaged", Failed},
		"old":       {sealed.ReplaceAllString(sound, "}\n"), "an attack of an earlier memtox", Usage},
		"torn":      {strings.Join(lines[:3], "") + lines[3][:20], "", Done},
		"ends else": {sound[:len(sound)-1] + "\v", "another byte stands where the line ends", Failed},
	} {
		c.write("a/attack.jsonl", k.journal)
		code := c.run(append(args, "--resume")...)
		if s := c.err.String(); code != k.code || !strings.Contains(s, k.want) {
			t.Errorf("%s: exit code %d: %s", name, code, s)
		}
	}
}

func TestAttackRefusesWhatItCannotDo(t *testing.T) {
	c := newConsole(t)
	c.must("attack", "--agent", "hermes", "--defense", "none", "--limit", "5", "--learn", "0", "--budget", "2", "--out",
		"there")
	for args, want := range map[string]string{
		"attack --resume":                   "memtox: --resume: there is no telling which attack",
		"attack --budget 0":                 "memtox: --budget: 0 is out of range",
		"attack --set mutate=echo":          "memtox: --mutate: attack has no such setting",
		"attack --agent hermes --out there": "memtox: " + c.dir + "/there: holds an attack already",
		"attack --agent hermes --defense none --limit 6 --learn 0 --budget 2 --out there --resume": "memtox: " + c.dir +
			`/there: holds an attack with other settings: limit was "5", is now "6" (`,
		"attack --defense nonsense":                   `memtox: --defense: unknown defense "nonsense"`,
		"attack --rewriter reference:naive --limit 5": "memtox: --rewriter: reference:naive is not a language model",
		"datasets mutate memtox-smoke":                "memtox: --mutate: no mutation is named",
		"datasets mutate memtox-smoke --mutate ehco":  `memtox: --mutate: unknown mutation "ehco" (did you mean "echo"?)`,
		"run --mutate ehco":                           `memtox: --mutate: unknown mutation "ehco" (did you mean "echo"?)`,
	} {
		code := c.run(strings.Fields(args)...)
		stderr := c.err.String()
		if code != Usage || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(c.dir, "attacks")); err == nil {
		t.Error("a refused attack left a directory")
	}
}

// A guard that answers a while and then dies resists nothing.
func TestAttackSaysThatADeadGuardResistsNothing(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	c := newConsole(t)
	guard := `gone=exec:sh -c 'read -r q; id=${q#*:}; echo "{\"id\":${id%%,*},\"name\":\"x\"}"; read -r q; id=${q#*:}; echo "{\"id\":${id%%,*},\"action\":\"block\"}"; read -r q; echo no model >&2'`
	if code := c.run("attack", "--agent", "hermes", "--limit", "6", "--learn", "0", "--budget", "3", "--concurrency", "1",
		"--out", "dead", "--format", "json", "--defense", "none,"+guard); code != BadNews {
		t.Errorf("code %d, want %d", code, BadNews)
	}
	if stderr := c.err.String(); !strings.Contains(stderr, "queries failed and count as not landed") ||
		!strings.Contains(stderr, `"no model"`) {
		t.Errorf("standard error:\n%s", stderr)
	}
	var r attack.Result
	if err := json.Unmarshal(c.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Arms {
		static, _ := a.At(1)
		if a.Defense == "gone" && (a.Errors == 0 || static.EndToEnd.N == a.Cases) {
			t.Errorf("%d of %d static attacks are scored though %d queries failed", static.EndToEnd.N, a.Cases, a.Errors)
		}
	}
}

func TestVariantsOfAFileCanBeWrittenValidatedAndRun(t *testing.T) {
	c := newConsole(t)
	out := c.must("datasets", "mutate", "memtox-smoke", "--mutate", "summary,base64", "-o", "variants.jsonl")
	if !strings.Contains(out, "summary") || !strings.Contains(out, "base64") {
		t.Errorf("mutate printed:\n%s", out)
	}
	if v := c.must("datasets", "validate", "variants.jsonl"); !strings.Contains(v, "0 errors, 0 warnings") {
		t.Errorf("the variants are not sound:\n%s", v)
	}
	c.must("datasets", "mutate", "memtox-smoke", "--mutate", "none,echo", "-o", "both.jsonl")
	if v := c.must("datasets", "validate", "both.jsonl"); !strings.Contains(v, "0 errors, 0 warnings") {
		t.Errorf("cases and variants are not sound together:\n%s", v)
	}
	table := c.must("run", "--dataset", "both.jsonl", "--agent", "hermes", "--defense", "none", "--full", "--out", "r")
	if strings.Contains(table, "Every attack of this run is a variant") ||
		!strings.Contains(table, "End to end, by mutation") {
		t.Errorf("run printed:\n%s", table)
	}
	if again := c.must("run", "--out", "r", "--resume", "--full"); !strings.Contains(again, "End to end, by mutation") {
		t.Errorf("a finished run printed:\n%s", again)
	}
}

func TestASweepSaysWhichPointItTakesAndWhatThatIsOnReport(t *testing.T) {
	c := newConsole(t)
	args := []string{"run", "--full", "--agent", "hermes", "--defense", "none", "--split", "all", "--limit", "40", "--sweep",
		"anomaly.z=1:2:1", "--out", "r"}
	table := c.must(args...)
	if !strings.Contains(table, "anomaly.z on hermes (naive): anomaly:z=") || !strings.Contains(table, "is chosen: on tune") ||
		!strings.Contains(table, "on report it has end to end") {
		t.Errorf("the table says nothing of the sweep:\n%s", table)
	}
	var s struct {
		Sweeps []struct {
			Sweep  string
			Points []struct{ Defense string }
			Chosen int
		}
	}
	if err := json.Unmarshal([]byte(c.must("run", "--out", "r", "--resume", "--format", "json")), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Sweeps) != 2 || s.Sweeps[0].Sweep != "anomaly.z" || len(s.Sweeps[0].Points) != 2 || s.Sweeps[0].Chosen < 0 {
		t.Errorf("%+v", s)
	}
	page := c.must("report", "r", "-o", "page.html")
	data, err := os.ReadFile(filepath.Join(c.dir, "page.html"))
	if err != nil {
		t.Fatal(err, page)
	}
	for _, want := range []string{"Thresholds", `id="roc-tune-0-t"`, `id="roc-report-0-t"`, "chosen on tune"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the report does not hold %q", want)
		}
	}
	if table := c.must("run", "--full", "--agent", "hermes", "--defense", "none", "--limit", "20", "--sweep",
		"keyword.scope=relaxed|strict", "--out", "only-report"); !strings.Contains(table, "no point is chosen") {
		t.Errorf("a run without tune chose a point:\n%s", table)
	}
}

func TestVariantsBesideTheirAttacksAreNotPooledInAComparison(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense", "none", "--out", "static")
	c.must("run", "--dataset", "memtox-smoke", "--agent", "hermes", "--defense", "none", "--mutate", "none,base64",
		"--out", "both")
	table := c.must("compare", "static", "both")
	for line := range strings.Lines(table) {
		if strings.Contains(line, "end_to_end") && strings.Contains(line, "%") && strings.Count(line, "/60 ") != 2 {
			t.Errorf("variants are pooled: %s", line)
		}
	}
	if !strings.Contains(table, "/60 ") {
		t.Errorf("nothing was compared:\n%s", table)
	}
}
