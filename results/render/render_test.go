package render

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

var update = flag.Bool("update", false, "write the golden files anew")

var classes = []string{"explicit_command", "conditional_command", "salience_compaction", "policy_fact",
	"false_precedent", "skill_procedure"}

// sample is a run of two agents under four defenses, with an arm in which
// something failed, classes that are excluded and one that never lands.
func sample(agents, defenses []string, perClass int) *summary.Summary {
	run := &results.Run{ID: "20260102-0304-abcd", Model: "reference:cautious", Agents: agents, Defenses: defenses,
		Split:   "report",
		Dataset: results.Dataset{Name: "memtox-smoke", Version: "1.0", Attacks: 6 * perClass, Benign: 60},
		Planned: int64(len(agents) * len(defenses) * (6*perClass + 60))}
	a := summary.New(run, summary.Options{Classes: classes})
	for ai, agent := range agents {
		for di, defense := range defenses {
			for c, class := range classes {
				for i := range perClass {
					t := results.Trial{Case: fmt.Sprintf("c%d-%d", c, i), Family: fmt.Sprintf("f%d-%d", c, i%4), Label: results.Attack,
						Class:  class,
						Signal: []string{"strong", "weak"}[c/3], Agent: agent, Defense: defense, Status: results.Scored, ExpectsASR: true,
						ExpectsRSR: true, Digest: "d"}
					yes, no := true, false
					switch {
					case ai == 1 && c == 5:
						t.Status = results.Excluded
					case di == 2 && i == 0 && c < 2:
						t.Status = results.Error
					default:
						lands := (i*7+c)%10 >= 2*di && c != 4
						t.Proposed, t.Written, t.Exposed = true, lands || i%5 == 0 && di == 0, lands
						t.Acted, t.Asserted = lands && i%2 == 0, lands && i%3 != 0
						t.Influenced = t.Acted || t.Asserted
						t.Detected, t.Deferred, t.UtilityUnderAttack, t.Block = &no, &no, &yes, int32(di)
						if di > 0 && !t.Written {
							t.Detected = &yes
						}
					}
					e := &results.Entry{Trial: t}
					if di > 0 {
						for k := range 5 {
							e.Decisions = append(e.Decisions, results.Decision{Gate: "write",
								LatencyNS: int64(900 * (k + 1) * di * di * di)},
								results.Decision{Gate: "read", LatencyNS: int64(400 * (i + 1))})
						}
					}
					if di == 3 {
						e.Decisions = append(e.Decisions, results.Decision{Gate: "write", LatencyNS: 812_345_678})
					}
					a.Add(e)
				}
			}
			for i := range 60 {
				yes, no := true, i%20 != 3*di
				t := results.Trial{Case: fmt.Sprintf("b%d", i), Family: fmt.Sprintf("b%d", i%10), Label: results.Benign,
					Agent: agent, Defense: defense,
					Status: results.Scored, Digest: "d"}
				if i%2 == 0 {
					fp := !no
					t.ExpectsWrite, t.LegitStopped, t.LegitDeferred, t.Utility = true, &fp, &fp, &no
				} else {
					t.OtherTaskDone = &yes
				}
				a.Add(&results.Entry{Trial: t})
			}
		}
	}
	s := a.Summary()
	for i := range s.Arms {
		s.Arms[i].Rates = s.Arms[i].Rates[:goldenRates]
	}
	return s
}

// goldenRates is how many rates there were when the golden files were made: another one
// needs none of them anew.
const goldenRates = 28

func hostile() *summary.Summary {
	s := sample([]string{"\x1b[31mred|agent\x1b[0m", "<script>alert(1)</script>"},
		[]string{"none", "=cmd|' /C calc'!A0 \u202egnp.exe", strings.Repeat("long ", 40)}, 4)
	s.Model = "evil\nmodel: [x](https://e.example) \u009b2J"
	s.Dataset.Name = "set\x00\xff" + strings.Repeat("\u200b", 3)
	s.Arms[0].Classes[0].Name = "class`rm -rf`\r\x07"
	return s
}

func TestGolden(t *testing.T) {
	smoke := sample([]string{"hermes", "openclaw"}, []string{"none", "keyword", "guard", "judge"}, 10)
	bench := sample([]string{"hermes", "openclaw"}, []string{"none", "keyword", "provenance", "contradiction", "anomaly",
		"guard"}, 540)
	nothing := summary.New(&results.Run{ID: "r", Model: "reference:naive", Agents: []string{"hermes"},
		Defenses: []string{"guard"}, Planned: 9}, summary.Options{}).Summary()
	nothing.Arms[0].Rates = nothing.Arms[0].Rates[:goldenRates]
	llm := sample([]string{"hermes"}, []string{"none"}, 3)
	llm.LLM, llm.Model, llm.Resumed = true, "openai:gpt-5", 12
	for _, c := range []struct {
		file string
		s    *summary.Summary
		o    Options
	}{
		{"smoke.txt", smoke, Options{Full: true}},
		{"bench.txt", bench, Options{Full: true}},
		{"narrow.txt", smoke, Options{Full: true, Width: 80}},
		{"terminal.txt", llm, Options{Full: true, Width: 200, Terminal: true}},
		{"nothing.txt", nothing, Options{Full: true}},
		{"hostile.txt", hostile(), Options{Full: true}},
		{"screen.txt", states([]string{"hermes", "openclaw"}, arms), Options{Width: 200, Terminal: true}},
		{"screen-agents.txt", states([]string{"hermes", "openclaw", "rag"}, arms[:4]), Options{}},
		{"screen-arms.txt", states([]string{"hermes"}, many()), Options{}},
		{"screen-words.txt", smoke, Options{}},
		{"screen-nothing.txt", nothing, Options{}},
		{"screen-hostile.txt", hostile(), Options{}},
		{"smoke.md", smoke, Options{}},
		{"hostile.md", hostile(), Options{}},
	} {
		t.Run(c.file, func(t *testing.T) {
			text.EnableColors() // whatever the environment says
			var b bytes.Buffer
			format := "table"
			if strings.HasSuffix(c.file, ".md") {
				format = "markdown"
			}
			if err := Summary(&b, c.s, format, c.o); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", c.file)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("%s (write it anew with -update if this is meant):\n%s", path, diff)
			}
			escapes := regexp.MustCompile("\x1b\\[[0-9;]*m")
			out := b.String()
			if c.o.Terminal {
				out = escapes.ReplaceAllString(out, "")
			}
			width := c.o.Width
			if width == 0 {
				width = DefaultWidth
			}
			if !c.o.Full {
				width = screenWidth
			}
			// Four more say what to type next.
			if n := strings.Count(out, "\n"); c.file == "screen.txt" && n > 20 {
				t.Errorf("%d lines", n)
			}
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				for _, r := range line {
					if !unicode.IsGraphic(r) {
						t.Errorf("%U is left in %q", r, line)
					}
				}
				if n := text.StringWidthWithoutEscSequences(line); !strings.HasSuffix(c.file, ".md") && n > width {
					t.Errorf("%d columns, want %d at most: %s", n, width, line)
				}
			}
		})
	}
}

func TestHostileNamesAreNoMarkup(t *testing.T) {
	var b bytes.Buffer
	if err := Summary(&b, hostile(), "markdown", Options{}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "](https:", "\x1b", "`rm"} {
		if i := strings.Index(b.String(), bad); i >= 0 && (i == 0 || b.String()[i-1] != '\\') {
			t.Errorf("%q is left: …%s…", bad, b.String()[max(0, i-30):i+30])
		}
	}
}

func TestJSONIsOneObjectOnOneLine(t *testing.T) {
	var b bytes.Buffer
	s := hostile()
	if err := Summary(&b, s, "json", Options{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 1 || !strings.HasSuffix(b.String(), "}\n") {
		t.Errorf("%d lines", n)
	}
	var back summary.Summary
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.RunID != s.RunID || len(back.Arms) != len(s.Arms) {
		t.Errorf("read back: %v", err)
	}
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if r < ' ' || r == 0x7f {
			t.Errorf("%U is left", r)
		}
	}
}

func TestARateIsNeverRoundedToNoneOrAll(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 1: "100.0", 1. / 3240: "<0.1", 3239. / 3240: ">99.9", 0.5: "50.0",
		0.0006: "0.1"} {
		if got := Percent(v); got != want {
			t.Errorf("percent(%v) = %s, want %s", v, got, want)
		}
	}
}
