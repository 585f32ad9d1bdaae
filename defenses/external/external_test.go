package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/defensetest"
	"github.com/memtox/memtox/defenses/external"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	problem "github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// shelf keeps the rows of a run.
type shelf struct {
	mu   sync.Mutex
	rows map[string]results.Entry
}

func (s *shelf) Done(string) bool { return false }

func (s *shelf) AppendAll(batch []results.Finished) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[string]results.Entry{}
	}
	for _, x := range batch {
		t := x.Trial
		s.rows[t.Defense+" "+t.Agent+" "+t.Case] = results.Entry{Trial: *t, Decisions: slices.Clone(x.Decisions)}
	}
	return nil
}

// of are the digests of one arm's trials.
func (s *shelf) of(defense string) map[string]string {
	out := map[string]string{}
	for _, e := range s.rows {
		if e.Trial.Defense == defense {
			out[e.Trial.Agent+" "+e.Trial.Case] = e.Trial.Digest
		}
	}
	return out
}

func run(t *testing.T, settings ...string) (*shelf, *harness.Experiment) {
	t.Helper()
	out, x, err := try(t, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return out, x
}

// try is a run that may stop before its end, or before its beginning.
func try(t *testing.T, settings ...string) (*shelf, *harness.Experiment, error) {
	t.Helper()
	out := new(shelf)
	cat := harness.Builtin()
	cat.Lookup = os.LookupEnv
	c := harness.DefaultConfig()
	for _, s := range append([]string{"dataset=memtox-smoke", "split=all", "transcripts=none"}, settings...) {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	x, err := harness.Prepare(context.Background(), c, cat)
	if err != nil {
		return out, nil, err
	}
	err = x.Run(context.Background(), out, new(harness.Progress), nil)
	return out, x, errors.Join(err, x.Close())
}

// A defense behind the protocol decides as it does in process: all of its
// trials have the same digest, by either transport.
func TestADefenseBehindTheProtocolIsTheDefense(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d, err := guard.New(guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(serve.Handler(&serve.Server{Identity: defenses.Identity{Name: "guard", Version: "1"}, Open: d.Open},
		serve.HandlerOptions{}))
	defer server.Close()
	inside, _ := run(t, "agent=hermes,openclaw,rag", "defense=keyword,guard,signed")
	for _, arm := range []struct{ inside, spec string }{
		{"keyword", "far=exec:" + command(t, "serve", "keyword")},
		{"guard", "far=exec:" + command(t, "serve", "guard")},
		{"guard", "far=" + server.URL + "/"},
	} {
		outside, x := run(t, "agent=hermes,openclaw,rag", "defense="+arm.spec, "concurrency=4")
		if len(x.Warnings) > 0 {
			t.Error(x.Warnings)
		}
		want, got := inside.of(arm.inside), outside.of("far")
		if len(want) < 100 {
			t.Fatalf("only %d trials", len(want))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the digests differ:\n%s", arm.spec, diff)
		}
		wire, own := false, false
		for _, e := range outside.rows {
			if e.Trial.Status == results.Error {
				t.Fatalf("%s: %s", e.Trial.Case, e.Trial.Reason)
			}
			for _, d := range e.Decisions {
				wire, own = wire || d.WireNS > 0, own || d.LatencyNS > 0
			}
		}
		if !wire || !own {
			t.Errorf("%s: the time on the wire (%v) and the guard's own (%v) are not told apart", arm.spec, wire, own)
		}
	}
}

// Whatever a guard does wrong, its trials are not scored, the run stops before many of
// them have failed, and says what the guard did.
func TestAGuardThatBreaksScoresNothing(t *testing.T) {
	for mode, want := range map[string]string{
		"deaf":           "the handshake failed",
		"nameless":       "has no name",
		"sleep":          "no answer within",
		"die":            "the model file is missing",
		"die-after":      "it ended",
		"flood":          "which nobody has asked",
		"early":          "which nobody has asked",
		"twice":          "twice",
		"long":           "a line of more than",
		"garbage":        "a line that is no answer",
		"no-action":      "has no action",
		"strange-action": "unknown action",
		"redact-nothing": "redacts without a value",
		"error":          "it says that it failed",
		"closes-stdout":  "it closed its standard output",
		"half":           "in the middle of a line",
		"twice-said":     "are one field twice",
		"other-case":     "are one field twice",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			timeout := "5s" // a slow machine must not look like the guard's fault
			if mode == "sleep" {
				timeout = "400ms"
			}
			settings := []string{"agent=hermes", "limit=24", "concurrency=3", "external_timeout=" + timeout,
				"defense=bad=exec:" + command(t, mode)}
			out, _, err := try(t, settings...)
			reasons := map[string]int{}
			if err != nil {
				reasons[err.Error()]++
				if p := (*problem.Problem)(nil); !errors.As(err, &p) && !remote.StopsRun(err) {
					t.Errorf("the run stops as if the tool had failed: %v", err)
				}
			}
			failed := 0
			for _, e := range out.rows {
				writes := 0
				for _, d := range e.Decisions {
					if d.Gate == results.GateWrite {
						writes++
					}
				}
				switch {
				case e.Trial.Status == results.Error:
					reasons[e.Trial.Reason]++
					failed++
				case e.Trial.Status == results.Scored && writes > 0:
					t.Errorf("%s was scored", e.Trial.Case)
				}
				if e.Trial.Detected != nil && *e.Trial.Detected || e.Trial.LegitStopped != nil && *e.Trial.LegitStopped {
					t.Errorf("%s counts as stopped", e.Trial.Case)
				}
			}
			if len(reasons) == 0 {
				t.Fatal("no trial failed: the test tried nothing")
			}
			if err != nil && failed > 12 { // three times as many as are under way, and those that had begun
				t.Errorf("%d trials had failed when the run stopped", failed)
			}
			if !strings.Contains(strings.Join(slices.Collect(maps.Keys(reasons)), "\n"), want) {
				t.Errorf("no reason says %q: %v", want, reasons)
			}
			for r := range reasons {
				if strings.ContainsRune(r, '\x1b') {
					t.Errorf("a control character in the reason %q", r)
				}
			}
		})
	}
}

// Answers find their questions by id, whatever their order.
func TestAnswersMayOvertakeEachOther(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d, err := external.NewExec(command(t, "serve-slowly"), defenses.Env{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			g, err := d.Open(context.Background(), defensetest.NewView())
			if err != nil {
				t.Error(err)
				return
			}
			for j := range 5 {
				text, want := fmt.Sprintf("%d.%d even", i, j), memory.Allow
				if (i+j)%2 == 1 {
					text, want = fmt.Sprintf("%d.%d odd", i, j), memory.Block
				}
				v, err := g.Write(context.Background(), memory.Proposal{Record: defensetest.External(text)})
				if err != nil || v.Action != want {
					t.Errorf("%s: %s, %v", text, v.Action, err)
				}
			}
			if err := g.(interface{ Close() error }).Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestADefenseBehindTheProtocolConforms(t *testing.T) {
	for _, place := range []string{"", "@input", "@write", "@read", "@act"} {
		t.Run("guard"+place, func(t *testing.T) {
			var r defenses.Registry
			external.Register(&r)
			b, err := r.Build("exec:"+command(t, "serve", "guard")+place, defenses.Env{Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll(t, b)
			defensetest.Conformance(t, b.Defense, true)
		})
	}
}

func closeAll(t *testing.T, b defenses.Built) {
	for _, r := range defenses.Remotes(b.Defense) {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A guard that answers writes alone is asked about writes alone, and can be put
// at any other gate.
func TestAGuardOfWritesCanBePlaced(t *testing.T) {
	var ops []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q external.Request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		ops = append(ops, q.Op)
		a := external.Answer{ID: q.ID, Name: "writes"}
		if a.Action = "allow"; q.Op == external.Write && strings.Contains(q.Text, "bad") {
			a.Action = "block"
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	var r defenses.Registry
	external.Register(&r)
	for _, place := range []string{"@input", "@write", "@read", "@act"} {
		b, err := r.Build(server.URL+place, defenses.Env{})
		if err != nil {
			t.Fatal(err)
		}
		tr := defensetest.Open(t, b.Defense)
		var stopped []string
		if tr.Input(memory.Segment{Text: "bad"}).Action == memory.Block {
			stopped = append(stopped, "@input")
		}
		if tr.Judge(tr.Proposal(defensetest.External("bad"))).Action == memory.Block {
			stopped = append(stopped, "@write")
		}
		if tr.Read("q", defensetest.External("good"), defensetest.External("bad"))[1].Action == memory.Block {
			stopped = append(stopped, "@read")
		}
		if tr.Act(memory.Call{Tool: "pay", Args: []memory.Arg{{Value: "bad"}}}).Action == memory.Block {
			stopped = append(stopped, "@act")
		}
		if !slices.Equal(stopped, []string{place}) {
			t.Errorf("placed at %s it stops at %v", place, stopped)
		}
		closeAll(t, b)
	}
	slices.Sort(ops)
	if got := slices.Compact(ops); !slices.Equal(got, []string{external.Hello, external.Write}) {
		t.Errorf("it was asked %v", got)
	}
}

func TestTheEnvironmentOfAGuardIsClean(t *testing.T) {
	t.Setenv("MEMTOX_TEST_KEY", "sk-planted-0123456789")
	t.Setenv("MEMTOX_TEST_NAMED", "named-value-0123456789")
	env := defenses.Env{Lookup: os.LookupEnv, PassEnv: []string{"MEMTOX_TEST_NAMED"}}
	d, err := external.NewExec(command(t, "env"), env)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Greet(context.Background())
	if err == nil {
		t.Fatal("a guard that ends at once was greeted")
	}
	for _, secret := range []string{"sk-planted", "MEMTOX_TEST_KEY", "named-value"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %s: %v", secret, err)
		}
	}
	if !strings.Contains(err.Error(), "handed") {
		t.Errorf("the error has nothing of what it wrote to standard error: %v", err)
	}
	if _, err := external.NewExec("x", defenses.Env{PassEnv: []string{"NOT_SET_ANYWHERE"},
		Lookup: os.LookupEnv}); err == nil || !strings.Contains(err.Error(), "NOT_SET_ANYWHERE") {
		t.Errorf("naming a variable that is not set: %v", err)
	}
}

func TestServicesThatBreakAreErrors(t *testing.T) {
	hello := `{"name":"s","version":"1","ops":["write"]}`
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, op string)
		want   string
	}{
		"status 500": {func(w http.ResponseWriter, _ string) { http.Error(w, "boom", 500) }, "boom"},
		"no JSON":    {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, "<html>") }, "no JSON object"},
		"other id": {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"id":99999,"action":"block"}`) },
			"question 99999"},
		"two": {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"action":"allow","Action":"block"}`) },
			"are one field twice"},
		"no action": {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"score":1}`) }, "has no action"},
		"redirect": {func(w http.ResponseWriter, _ string) { w.Header().Set("Location", "/x"); w.WriteHeader(302) },
			"redirects are not followed"},
		"hangs": {func(http.ResponseWriter, string) { time.Sleep(time.Second) }, "no answer within"},
		"too long": {func(w http.ResponseWriter, _ string) {
			for range 20 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "longer than allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				buf := make([]byte, 1<<16)
				n, _ := r.Body.Read(buf)
				if strings.Contains(string(buf[:n]), `"op":"hello"`) {
					fmt.Fprint(w, hello)
					return
				}
				c.answer(w, "write")
			}))
			defer server.Close()
			timeout := time.Minute // a busy machine is not what is tried
			if name == "hangs" {
				timeout = 300 * time.Millisecond
			}
			d, err := external.NewHTTP(server.URL, defenses.Env{Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			g, err := d.Open(context.Background(), defensetest.NewView())
			if err != nil {
				t.Fatal(err)
			}
			v, err := g.Write(context.Background(), memory.Proposal{Record: defensetest.External("x")})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("verdict %s, error %v; want %q", v.Action, err, c.want)
			}
			if v.Action != memory.Allow {
				t.Errorf("a verdict %s came with the error", v.Action)
			}
		})
	}
}

func TestTokensGoWhereTheyAreMeantToGo(t *testing.T) {
	const token = "tok-0123456789abcdef"
	lookup := func(name string) (string, bool) { return token, name == external.TokenVariable }
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		http.Error(w, "no such user: "+got, http.StatusForbidden)
	}))
	defer server.Close()
	d, err := external.NewHTTP(server.URL, defenses.Env{Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Greet(context.Background())
	if got != "Bearer "+token {
		t.Errorf("the service got %q", got)
	}
	if err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "no such user") {
		t.Errorf("error %v", err)
	}
	if _, err := external.NewHTTP("http://guards.example/x", defenses.Env{Lookup: lookup}); err == nil ||
		!strings.Contains(err.Error(), "in the clear") {
		t.Errorf("a token over plain http to another machine: %v", err)
	}
	if _, err := external.NewHTTP("https://guards.example/x", defenses.Env{Lookup: lookup}); err != nil {
		t.Errorf("a token over https: %v", err)
	}
}
