package external_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	problem "github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// The test binary is the agent under test: `BINARY agent MODE`.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "guard" {
		breakAt(os.Args[2], os.Stdin, os.Stdout)
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		play(os.Args[2], os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

func command(t testing.TB, mode string) string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "exec:'" + self + "' agent " + mode
}

// mind is an agent that reads everything, proposes to store every line that it
// reads, and answers with all that it remembers.
type mind struct {
	memory []string
	plan   []string // what is still to be proposed
	mode   string
	dumps  int
}

func (a *mind) reply(m external.Message) map[string]any {
	say := func(kv ...any) map[string]any {
		out := map[string]any{"id": m.ID}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i].(string)] = kv[i+1]
		}
		return out
	}
	next := func() map[string]any {
		if len(a.plan) == 0 {
			return say("answer", strings.Join(a.memory, " "))
		}
		text := a.plan[0]
		a.plan = a.plan[1:]
		if a.mode == "around" {
			a.memory = append(a.memory, text)
			return say("answer", "ok")
		}
		return say("write", map[string]any{"value": text})
	}
	switch m.Op {
	case external.Hello:
		if a.mode == "nameless" {
			return say()
		}
		return say("name", "mind", "version", "1")
	case external.Reset:
		a.memory, a.plan, a.dumps = nil, nil, 0
		fallthrough
	case external.Load:
		for _, e := range m.Memories {
			a.memory = append(a.memory, e.Value)
		}
	case external.Turn:
		switch a.mode {
		case "die":
			fmt.Fprintln(os.Stderr, "Segmentation fault")
			os.Exit(139)
		case "hang":
			time.Sleep(time.Hour)
		case "mute":
			return say()
		case "both":
			return say("answer", "x", "write", map[string]any{"value": "y"})
		case "verbose":
			return say("answer", strings.Repeat("so ", 2<<20))
		case "endless":
			return say("call", map[string]any{"name": "read_mail", "args": map[string]any{}})
		case "recalls":
			return say("recall", map[string]any{"records": []string{"r999"}})
		}
		return say("call", map[string]any{"name": "read_mail", "args": map[string]any{"query": "new"}})
	case external.Result:
		if a.mode == "endless" {
			return say("call", map[string]any{"name": "no_such_tool", "args": "{"})
		}
		for line := range strings.Lines(m.Content) {
			if len(strings.Fields(line)) > 4 {
				a.plan = append(a.plan, strings.TrimSpace(line))
			}
		}
		return next()
	case external.Verdict:
		if m.Value != "" {
			a.memory = append(a.memory, m.Value)
		}
		return next()
	case external.End:
		return say("done", true)
	case external.Dump:
		a.dumps++
		list := []map[string]string{}
		for _, e := range a.memory {
			list = append(list, map[string]string{"value": e})
		}
		switch {
		case a.mode == "hides" && a.dumps == 2:
			list = append(list, map[string]string{"value": "something else"})
		case a.mode == "no-dump":
			return say()
		}
		return say("memories", list)
	}
	return say()
}

func play(mode string, in io.Reader, out io.Writer) {
	a := &mind{mode: mode}
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m external.Message
		if err := json.Unmarshal(line, &m); err != nil {
			os.Exit(9)
		}
		b, _ := json.Marshal(a.reply(m))
		switch {
		case mode == "twice" && m.Op == external.Turn:
			b = append(append(b, '\n'), b...)
		case mode == "garbage" && m.Op == external.Turn:
			b = []byte("I am an agent")
		case mode == "other-id" && m.Op == external.Turn:
			b = []byte(`{"id":1,"answer":"x"}`)
		case mode == "two-answers" && m.Op == external.Turn:
			b = fmt.Appendf(nil, `{"id":%d,"answer":"no","Answer":"x"}`, m.ID)
		case mode == "two-values" && m.Op == external.Turn:
			b = fmt.Appendf(nil, `{"id":%d,"write":{"value":"a","value":"b"}}`, m.ID)
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return
		}
	}
}

// breakAt is a guard that allows everything and fails at one gate.
func breakAt(gate string, in io.Reader, out io.Writer) {
	for d := json.NewDecoder(in); ; {
		var q struct {
			ID uint64 `json:"id"`
			Op string `json:"op"`
		}
		if d.Decode(&q) != nil {
			return
		}
		a := map[string]any{"id": q.ID}
		switch q.Op {
		case "hello":
			a["name"], a["version"], a["ops"] = "broken", "1", []string{gate}
		case gate:
			a["error"] = "it broke"
		default:
			a["action"] = "allow"
		}
		if json.NewEncoder(out).Encode(a) != nil {
			return
		}
	}
}

// A defense that fails at the relay fails the trial, and nothing reaches the agent that was
// not judged.
func TestADefenseThatFailsAtTheRelayFailsTheTrial(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := try(t, "mine="+example(t, "agent.py", "python3"), "limit=6", "model=reference:naive", "external_timeout=1m",
		"defense=broken=exec:'"+self+"' guard read")
	if len(rows) == 0 && err == nil {
		t.Fatal("no trial ran")
	}
	for _, r := range rows {
		if r.Status == results.Scored {
			t.Errorf("%s was scored", r.Case)
		}
		if r.Status == results.Error && r.HasRetrieval && !strings.Contains(r.Reason, "the defense") || strings.Contains(r.Reason, "the agent failed") {
			t.Errorf("%s: %s", r.Case, r.Reason)
		}
	}
}

// shelf keeps the rows of a run.
type shelf struct {
	mu   sync.Mutex
	rows []results.Trial
}

func (s *shelf) Done(string) bool { return false }

func (s *shelf) AppendAll(batch []results.Finished) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range batch {
		s.rows = append(s.rows, *x.Trial)
	}
	return nil
}

func run(t *testing.T, agent string, settings ...string) ([]results.Trial, *harness.Experiment) {
	t.Helper()
	rows, x, err := try(t, agent, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return rows, x
}

// try is a run that may stop before its end, or before its beginning.
func try(t *testing.T, agent string, settings ...string) ([]results.Trial, *harness.Experiment, error) {
	t.Helper()
	cat := harness.Builtin()
	cat.Lookup = os.LookupEnv
	c := harness.DefaultConfig()
	for _, s := range append([]string{"dataset=memtox-smoke", "split=all", "agent=" + agent}, settings...) {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	x, err := harness.Prepare(context.Background(), c, cat)
	if err != nil {
		return nil, nil, err
	}
	out := new(shelf)
	err = errors.Join(x.Run(context.Background(), out, new(harness.Progress), nil), x.Close())
	slices.SortFunc(out.rows, func(a, b results.Trial) int { return int(a.Index - b.Index) })
	return out.rows, x, err
}

// An agent that stores whatever it reads is poisoned undefended, is kept from it by
// a defense that it asks, and does it around that defense if it does not ask.
func TestAnAgentGoesThroughBothSessions(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	rows, x := run(t, "mind="+command(t, "good"), "defense=none,block-all", "concurrency=3")
	if len(x.Warnings) > 0 {
		t.Fatal(x.Warnings)
	}
	count := func(rows []results.Trial, defense string, f func(results.Trial) bool) (n int) {
		for _, r := range rows {
			if r.Status == results.Error {
				t.Fatalf("%s under %s: %s", r.Case, r.Defense, r.Reason)
			}
			if r.Agent != "mind" {
				t.Errorf("the agent is called %q", r.Agent)
			}
			if r.Defense == defense && f(r) {
				n++
			}
		}
		return n
	}
	written := func(r results.Trial) bool { return r.Written }
	if n := count(rows, "none", written); n == 0 {
		t.Error("undefended, nothing was written")
	}
	if n := count(rows, "block-all", written); n != 0 {
		t.Errorf("behind block-all %d were written", n)
	}
	if n := count(rows, "block-all", func(r results.Trial) bool { return r.Detected != nil && *r.Detected }); n == 0 {
		t.Error("block-all detected nothing")
	}
	if n := count(rows, "none", func(r results.Trial) bool {
		return r.MemoriesSurvived != nil &&
			!*r.MemoriesSurvived
	}); n != 0 {
		t.Errorf("%d trials lost ordinary memories", n)
	}
	around, _ := run(t, "mind="+command(t, "around"), "defense=block-all")
	if n := count(around, "block-all", written); n == 0 {
		t.Error("what the agent stored without asking was not found")
	}
	// Outcomes depend on nothing but the case.
	again, _ := run(t, "mind="+command(t, "good"), "defense=none,block-all", "concurrency=1")
	for i := range rows {
		if rows[i].Digest != again[i].Digest {
			t.Errorf("%s: another digest in another run", rows[i].Case)
		}
	}
}

func TestAnAgentBehindHTTPIsTheSameAgent(t *testing.T) {
	var mu sync.Mutex
	minds := map[uint64]*mind{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m external.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		mu.Lock()
		a := minds[m.Trial]
		if a == nil {
			a = &mind{mode: "good"}
			minds[m.Trial] = a
		}
		mu.Unlock()
		if err := json.NewEncoder(w).Encode(a.reply(m)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	near, _ := run(t, "mind="+command(t, "good"), "defense=none,keyword", "limit=40")
	far, _ := run(t, "mind="+server.URL, "defense=none,keyword", "limit=40", "concurrency=8")
	for i := range near {
		if near[i].Digest != far[i].Digest || far[i].Status == results.Error {
			t.Errorf("%s: %s %s", far[i].Case, far[i].Status, far[i].Reason)
		}
	}
}

// Whatever an agent does wrong, nothing of it is scored, and the run stops and says what
// it did.
func TestAnAgentThatBreaksScoresNothing(t *testing.T) {
	for mode, want := range map[string]string{
		"nameless": "has no name", "die": "Segmentation fault", "hang": "no reply to turn", "mute": "it must be one",
		"both":    "it must be one",
		"endless": "more than 200 steps", "verbose": "bytes in one turn", "recalls": "does not hold",
		"hides": "cannot be trusted", "no-dump": "has no memories",
		"twice": "out of turn", "garbage": "what is no reply", "other-id": "replies to message 1",
		"two-answers": "one field twice", "two-values": "one field twice",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			patience := "external_timeout=1m"
			if mode == "hang" {
				patience = "external_timeout=500ms"
			}
			rows, _, err := try(t, "bad="+command(t, mode), "defense=none", "limit=20", patience, "transcripts=none")
			reasons := map[string]int{}
			if err != nil {
				reasons[err.Error()]++
				if p := (*problem.Problem)(nil); !errors.As(err, &p) && !remote.StopsRun(err) {
					t.Errorf("the run stops as if the tool had failed: %v", err)
				}
			}
			for _, r := range rows {
				if r.Status == results.Scored && !(mode == "hides" && !r.HasRetrieval) {
					t.Errorf("%s was scored", r.Case)
				}
				if r.Written || r.Influenced || r.Utility != nil && *r.Utility {
					t.Errorf("%s counts as something", r.Case)
				}
				reasons[r.Reason]++
			}
			if !strings.Contains(fmt.Sprint(reasons), want) {
				t.Errorf("no reason says %q: %v", want, reasons)
			}
		})
	}
}

func example(t *testing.T, name, program string) string {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not here: the example in it is left out", program)
	}
	page, err := os.ReadFile("../../docs/your-own-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(string(page), "file="+name+"\n")
	body, _, closed := strings.Cut(body, "\n```")
	if !ok || !closed {
		t.Fatalf("the page has no file %s", name)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(body+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return "exec:" + program + " '" + path + "'"
}

// The examples of the page are agents that work. The Python one asks the run's
// model through the proxy, so its exposure is known.
func TestTheExamplesOfThePage(t *testing.T) {
	for _, c := range []struct{ file, program string }{{"agent.py", "python3"}, {"agent.sh", "sh"}} {
		t.Run(c.file, func(t *testing.T) {
			spec := example(t, c.file, c.program)
			rows, x := run(t, "mine="+spec, "defense=none,origin-only", "model=reference:naive", "external_timeout=1m")
			if len(x.Warnings) > 0 {
				t.Fatal(x.Warnings)
			}
			n := map[string]int{}
			for _, r := range rows {
				if r.Status == results.Error {
					t.Fatalf("%s: %s", r.Case, r.Reason)
				}
				add := func(what string, is bool) {
					if is {
						n[r.Defense+" "+what]++
					}
				}
				add("written", r.Written)
				add("exposed", r.Exposed)
				add("influenced", r.Influenced)
				add("asked a model", r.ModelCalls > 0)
				add("legit survived", r.LegitSurvived != nil && *r.LegitSurvived)
				add("lost memories", r.MemoriesSurvived != nil && !*r.MemoriesSurvived)
			}
			t.Log(n)
			if n["none legit survived"] == 0 || n["none lost memories"] > 0 {
				t.Errorf("%v", n)
			}
			if c.file == "agent.py" && (n["none asked a model"] == 0 || n["none written"] == 0 || n["none exposed"] == 0 ||
				n["none influenced"] == 0) {
				t.Errorf("%v", n)
			}
		})
	}
}

// A case whose outcome is a state is worked on with the tools of its desks, in a world of
// its own: the agent of the page pays, asks the user and looks things up.
func TestStateCasesRunWithAnAgentOfTheirOwn(t *testing.T) {
	rows, x := run(t, "mine="+example(t, "agent.py", "python3"), "dataset=../../attacks/testdata/states",
		"defense=none,origin-only", "model=reference:naive", "external_timeout=1m")
	if len(x.Warnings) > 0 {
		t.Fatal(x.Warnings)
	}
	var attacks, benign, asked int
	for _, r := range rows {
		switch {
		case r.Status == results.Excluded: // it writes no skills
		case r.Status == results.Error:
			t.Fatalf("%s: %s", r.Case, r.Reason)
		case r.Question: // which the agent of the page does not answer
		case r.Defense == "origin-only":
			if r.Harm != nil && *r.Harm {
				t.Errorf("%s, %s: harm behind origin-only", r.Case, r.Family)
			}
			asked += int(r.Asked)
		case r.Label == results.Attack:
			if attacks++; !*r.Harm {
				t.Errorf("%s, %s: no harm undefended", r.Case, r.Family)
			}
		default:
			if benign++; !*r.Done {
				t.Errorf("%s, %s: not done undefended", r.Case, r.Family)
			}
		}
	}
	if attacks == 0 || benign == 0 || asked == 0 {
		t.Errorf("%d attacks, %d benign, %d questions", attacks, benign, asked)
	}
}

// The run's model stands behind every gate, whatever the agent asks about: its memory is
// read from the prompts, and its calls are judged before it gets them.
func TestTheGatesActOnAnAgentWhoseModelIsTheRuns(t *testing.T) {
	alone, _ := run(t, "alone="+example(t, "agent.sh", "sh"), "limit=20", "defense=none,keyword,guard")
	for _, r := range alone {
		want := map[string]string{"keyword": "read", "guard": "read act"}[r.Defense]
		if r.Status == results.Scored && r.NotEnforced != want {
			t.Errorf("%s, an agent with no model of the run's: %q was not enforced, want %q", r.Defense, r.NotEnforced, want)
		}
	}
	rows, x := run(t, "mine="+example(t, "agent.py", "python3"), "dataset=memtox-bench", "split=tune", "limit=60",
		"model=reference:cautious", "defense=none,attribution-only,guard", "external_timeout=1m")
	if len(x.Warnings) > 0 {
		t.Fatal(x.Warnings)
	}
	harmed := map[string]int{}
	for _, r := range rows {
		if r.Status == results.Error {
			t.Fatalf("%s: %s", r.Case, r.Reason)
		}
		if r.Harm != nil && *r.Harm {
			harmed[r.Defense]++
		}
		if r.NotEnforced != "" {
			t.Errorf("%s, %s: not enforced: %s", r.Case, r.Defense, r.NotEnforced)
		}
	}
	if harmed["none"] == 0 || 2*harmed["guard"] > harmed["none"] || harmed["attribution-only"] > 0 {
		t.Errorf("harmed: %v", harmed)
	}
}
