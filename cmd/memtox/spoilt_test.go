package main

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

// spoilt is an answer on its way from a good server: what comes of it, with which
// status, and whether the connection breaks after it.
type spoilt struct {
	status int
	body   []byte
	breaks bool
}

// aFault is a way in which an answer is spoilt, and the kind of error that it makes.
type aFault struct {
	name   string
	group  string
	stream bool
	kind   remote.Kind
	spoil  func(*spoilt)
}

// firstChoice changes the first choice of a whole answer.
func firstChoice(change func(top, choice, message map[string]any)) func(*spoilt) {
	return func(s *spoilt) {
		var top map[string]any
		if err := json.Unmarshal(s.body, &top); err != nil {
			panic(err)
		}
		c := top["choices"].([]any)[0].(map[string]any)
		change(top, c, c["message"].(map[string]any))
		s.body, _ = json.Marshal(top)
	}
}

func usageOf(text string) func(*spoilt) {
	return func(s *spoilt) {
		firstChoice(func(top, _, _ map[string]any) { top["usage"] = "USAGE" })(s)
		s.body = bytes.Replace(s.body, []byte(`"USAGE"`), []byte(text), 1)
	}
}

func status(code int) func(*spoilt) {
	return func(s *spoilt) { s.status, s.body = code, []byte(`{"error":{"message":"spoilt"}}`) }
}

// events changes the events of a streamed answer.
func events(change func([]string) []string) func(*spoilt) {
	return func(s *spoilt) {
		s.body = []byte(strings.Join(change(strings.SplitAfter(strings.TrimSuffix(string(s.body), "\n\n"), "\n\n")), ""))
	}
}

func callsAre(calls any) func(*spoilt) {
	return firstChoice(func(_, c, m map[string]any) { m["tool_calls"], c["finish_reason"] = calls, "tool_calls" })
}

func half(s string) string { return s[:len(s)/2] }

func aFunction(name, args any) []any {
	return []any{map[string]any{"id": "c1", "type": "function",
		"function": map[string]any{"name": name, "arguments": args}}}
}

// theFaults are the 28 kinds of fault.
var theFaults = []aFault{
	{"null message", "missing", false, remote.NoAnswer, firstChoice(func(_, c, _ map[string]any) { c["message"] = nil })},
	{"no message", "missing", false, remote.NoAnswer, firstChoice(func(_, c, _ map[string]any) { delete(c, "message") })},
	{"null choices", "missing", false, remote.NoAnswer,
		firstChoice(func(top, _, _ map[string]any) { top["choices"] = nil })},
	{"empty choices", "missing", false, remote.NoAnswer,
		firstChoice(func(top, _, _ map[string]any) { top["choices"] = []any{} })},
	{"null content", "missing", false, remote.NoAnswer,
		firstChoice(func(_, c, m map[string]any) { m["content"], m["tool_calls"], c["finish_reason"] = nil, nil, "stop" })},

	{"length", "cut", false, remote.CutAnswer, firstChoice(func(_, c, m map[string]any) {
		m["content"], c["finish_reason"] = half(m["content"].(string)), "length"
		delete(m, "tool_calls")
	})},
	{"length within a call", "cut", false, remote.CutAnswer, firstChoice(func(_, c, m map[string]any) {
		m["tool_calls"], c["finish_reason"] = aFunction("memory", `{"action":"ad`), "length"
	})},
	{"half of the body", "cut", false, remote.Transient, func(s *spoilt) { s.body = s.body[:len(s.body)/2] }},
	{"connection broken", "cut", false, remote.Transient,
		func(s *spoilt) { s.body, s.breaks = s.body[:len(s.body)/2], true }},

	{"tokens as a text", "usage", false, remote.BadUsage, usageOf(`{"prompt_tokens":"900","completion_tokens":3}`)},
	{"tokens below zero", "usage", false, remote.BadUsage, usageOf(`{"prompt_tokens":900,"completion_tokens":-3}`)},
	{"tokens beyond count", "usage", false, remote.BadUsage, usageOf(`{"prompt_tokens":1e300,"completion_tokens":3}`)},
	{"tokens that are no number", "usage", false, remote.BadUsage, usageOf(`{"prompt_tokens":NaN,"completion_tokens":3}`)},

	{"400", "status", false, remote.Fatal, status(400)},
	{"401", "status", false, remote.Fatal, status(401)},
	{"404", "status", false, remote.Fatal, status(404)},
	{"429", "status", false, remote.RateLimited, status(429)},
	{"500", "status", false, remote.Transient, status(500)},
	{"503", "status", false, remote.Transient, status(503)},

	{"stream without an end", "stream", true, remote.Transient, events(func(e []string) []string { return e[:len(e)/2] })},
	{"stream without a reason", "stream", true, remote.CutAnswer,
		events(func(e []string) []string { return append(e[:len(e)/2:len(e)/2], "data: [DONE]\n\n") })},
	{"stream, length", "stream", true, remote.CutAnswer, events(func(e []string) []string {
		return append(e[:len(e)/2:len(e)/2], `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`+
			"\n\ndata: [DONE]\n\n")
	})},
	{"stream with an error", "stream", true, remote.Transient, events(func(e []string) []string {
		return append(e[:len(e)/2:len(e)/2], `data: {"error":{"message":"spoilt"}}`+"\n\ndata: [DONE]\n\n")
	})},
	{"stream with a broken event", "stream", true, remote.NoAnswer, events(func(e []string) []string {
		e[len(e)/2] = half(e[len(e)/2]) + "\n\n"
		return e
	})},

	{"calls are a text", "call", false, remote.BrokenCall, callsAre("memory")},
	{"a call without function", "call", false, remote.BrokenCall, callsAre([]any{map[string]any{"id": "c1"}})},
	{"a call without a name", "call", false, remote.BrokenCall, callsAre(aFunction(nil, "{}"))},
	{"arguments are a number", "call", false, remote.BrokenCall, callsAre(aFunction("memory", 7))},
}

// spoiler stands between a run and a good server, and spoils a share of the
// requests. Which, their content decides: what a trial meets does not depend on its
// neighbours.
func spoiler(t *testing.T, to string, f *aFault) string {
	var posts, row atomic.Int32
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		q, err := http.NewRequestWithContext(r.Context(), r.Method, to+r.URL.Path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer a.Body.Close()
		s := &spoilt{status: a.StatusCode}
		s.body, _ = io.ReadAll(a.Body)
		sum := fnv.New64a()
		sum.Write(body)
		asked := r.Method == http.MethodPost && posts.Add(1) > 2 // the first question is whether it answers at all
		// Five fatal answers in a row end the run, which is another matter.
		if asked && f != nil && (sum.Sum64()>>20)%100 < 30 && row.Add(1) < 3 {
			f.spoil(s)
		} else {
			row.Store(0)
		}
		w.Header().Set("Content-Type", a.Header.Get("Content-Type"))
		w.WriteHeader(s.status)
		_, _ = w.Write(s.body)
		if s.breaks {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(h.Close)
	return h.URL + "/v1"
}

// Through a server that spoils 30% of the answers in one way or another, no trial is
// scored on anything but good answers: every scored row is the row without the
// fault, every other one says what was wrong, by its kind. MEMTOX_LONG
// tries all 28 kinds; without it one of each group is tried.
func TestSpoiltAnswersAreNeverScored(t *testing.T) {
	_, real := guardServer(t, proxy.Options{})
	c := newConsole(t)
	through := func(t *testing.T, c *console, f *aFault, out string, more ...string) []results.Entry {
		t.Helper()
		args := strings.Fields("run --dataset memtox-smoke --agent hermes --defense none,keyword --limit 25 --model " +
			"openai:reference --set attempts=1 --set max_not_scored=9999 --concurrency 4 --set transcripts=none --format json")
		if f != nil && f.stream {
			args = append(args, "--set", "stream=true")
		}
		if more == nil {
			more = []string{"--base-url", spoiler(t, real, f)}
		}
		if code := c.run(append(append(args, more...), "--out", out)...); code != Done {
			t.Fatalf("exit code %d: %s", code, c.err.String())
		}
		return rowsOf(t, filepath.Join(c.dir, out))
	}
	clean := map[string]results.Entry{}
	for _, e := range through(t, c, nil, "clean") {
		clean[e.Trial.ID] = e
	}
	check := func(t *testing.T, f *aFault, rows []results.Entry) {
		scored := 0
		for _, e := range rows {
			want := clean[e.Trial.ID]
			if e.Trial.Status == results.Scored {
				scored++
				if diff := cmp.Diff(want, e, cmp.AllowUnexported(results.Entry{}),
					cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".at" }, cmp.Ignore())); diff != "" {
					t.Errorf("a scored row is not what it is without the fault:\n%s", diff)
				}
			} else if got := summary.ErrorKind(e.Trial.Reason); got != f.kind.String() {
				t.Errorf("kind %q, want %q: %s", got, f.kind, e.Trial.Reason)
			}
		}
		if len(rows) != len(clean) || scored == 0 || scored == len(rows) {
			t.Errorf("%d rows of %d, %d scored: nothing was tested", len(rows), len(clean), scored)
		}
	}
	groups := map[string]int{}
	for i := range theFaults {
		f := &theFaults[i]
		if groups[f.group]++; groups[f.group] > 1 && !long {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			own := newConsole(t)
			check(t, f, through(t, own, f, "spoilt"))
			var s summary.Summary
			if err := json.Unmarshal(own.out.Bytes(), &s); err != nil || len(s.Arms) != 2 ||
				s.Arms[0].Errors[f.kind.String()] != s.Arms[0].NotScored {
				t.Errorf("the summary does not count the errors by kind: %+v, %v", s.Arms, err)
			}
		})
	}
	if want := map[string]int{"missing": 5, "cut": 4, "usage": 4, "status": 6, "stream": 5, "call": 4}; !cmp.Equal(groups,
		want) {
		t.Errorf("the faults are %v, want %v", groups, want)
	}

	// What was recorded of spoilt answers is replayed as the same errors.
	for _, i := range []int{0, 5} {
		f := &theFaults[i]
		t.Run("replayed, "+f.name, func(t *testing.T) {
			own := newConsole(t)
			at := spoiler(t, real, f)
			recorded := through(t, own, f, "recorded", "--base-url", at, "--record", "tape")
			replayed := through(t, own, f, "replayed", "--base-url", at, "--replay", "tape")
			for i := range recorded {
				if r, p := &recorded[i].Trial, &replayed[i].Trial; r.Status != p.Status || r.Reason != p.Reason ||
					r.Digest != p.Digest {
					t.Errorf("recorded %s %q, replayed %s %q", r.Status, r.Reason, p.Status, p.Reason)
				}
			}
			check(t, f, recorded)
		})
	}
}

// A model that never proposes a write shows nothing of a defense: the run is
// inconclusive and says why. Its empty answers are answers, counted and shown.
func TestAModelThatNeverWritesIsInconclusive(t *testing.T) {
	for name, answer := range map[string]string{"says something": "Noted.", "says nothing": ""} {
		t.Run(name, func(t *testing.T) {
			m := scriptedModel(t, answer)
			args := func(format string, more ...string) []string {
				return append(strings.Fields("run --dataset memtox-smoke --agent hermes --defense none --limit 25 --model "+
					"openai:m --base-url "+m+" --format "+format), more...)
			}
			c := newConsole(t)
			if code := c.run(args("table", "--full", "--out", "table")...); code != Inconclusive ||
				!strings.Contains(c.err.String(), "no write was proposed in any of") {
				t.Errorf("exit code %d: %s", code, c.err.String())
			}
			for _, says := range []string{"INCONCLUSIVE: no write was proposed", "memtox doctor", "protocol=fenced"} {
				if !strings.Contains(strings.Join(strings.Fields(c.out.String()), " "), says) {
					t.Errorf("the table does not say %q:\n%s", says, c.out.String())
				}
			}
			if shown := strings.Contains(c.out.String(), "empty answers"); shown != (answer == "") {
				t.Errorf("the table shows empty answers: %v", shown)
			}
			for _, e := range rowsOf(t, filepath.Join(c.dir, "table")) {
				if r := &e.Trial; r.Status == results.Scored && (r.EmptyAnswers > 0) != (answer == "") {
					t.Errorf("case %s has %d empty answers of %d", r.Case, r.EmptyAnswers, r.ModelCalls)
				}
			}
			// Printed again, and as JSON, it is no other run.
			if code := c.run("run", "--resume", "--out", "table"); code != Inconclusive {
				t.Errorf("printed again: exit code %d", code)
			}
			var s summary.Summary
			if code := c.run(args("json", "--out", "json")...); code != Inconclusive ||
				json.Unmarshal(c.out.Bytes(), &s) != nil ||
				s.Arms[0].WriteExpected < 20 || s.Arms[0].WriteProposed != 0 ||
				(s.Arms[0].Costs.EmptyAnswers > 0) != (answer == "") {
				t.Errorf("exit code %d: %s", code, c.out.String())
			}
			campaign := strings.Fields("attack --dataset memtox-bench --agent hermes --defense none --limit 5 --learn 0 " +
				"--budget 5 --out siege --model openai:m --base-url " + m)
			if code := c.run(campaign...); code != Inconclusive ||
				!strings.Contains(c.err.String(), "no write was proposed in any of") {
				t.Errorf("a campaign: exit code %d: %s", code, c.err.String())
			}
			if code := c.run(args("markdown", "--out", "few", "--limit", "5")...); code != Done {
				t.Errorf("five trials: exit code %d: %s", code, c.err.String())
			}
		})
	}
}

// scriptedModel is a server that always gives the same answer.
func scriptedModel(t *testing.T, answer string) string { return sizedModel(t, answer, nil) }

// sizedModel says what its context holds, too, and counts as many tokens of each
// prompt.
func sizedModel(t *testing.T, answer string, size any) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		v := map[string]any{"object": "list", "data": []any{map[string]any{"id": "m", "max_model_len": size}}}
		if r.Method == http.MethodPost {
			v = map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": answer},
				"finish_reason": "stop"}},
				"usage": map[string]any{"prompt_tokens": size, "completion_tokens": 1}}
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(h.Close)
	return h.URL + "/v1"
}

// A window that the server's context does not hold is refused before the first trial,
// and doctor says so. A prompt that fills the context was cut: its trial is an error,
// when it is recorded and when it is replayed.
func TestACutPromptIsNotScored(t *testing.T) {
	c := newConsole(t)
	m := sizedModel(t, "Noted.", 4096)
	args := strings.Fields("run --dataset memtox-smoke --agent hermes --defense none --limit 5 --model openai:m " +
		"--base-url " + m)
	if code := c.run(append(args, "--out", "refused")...); code != Usage ||
		!strings.Contains(c.err.String(), "--set window=4096") || !strings.Contains(c.err.String(), "num_ctx") {
		t.Errorf("a window beyond the context: exit code %d: %s", code, c.err.String())
	}
	if _, err := os.Stat(filepath.Join(c.dir, "refused")); err == nil {
		t.Error("a refused run left a directory")
	}
	doctor := strings.Fields("doctor --model openai:m --base-url " + m)
	if code := c.run(doctor...); code != BadNews || !strings.Contains(c.out.String(),
		"the server's context holds 4096 tokens, the window of a run is 8192") {
		t.Errorf("doctor: exit code %d: %s", code, c.out.String())
	}
	if c.run(append(doctor, "--set", "window=4096")...); !strings.Contains(c.out.String(),
		"context     ok       4096 tokens") {
		t.Errorf("doctor, with a smaller window: %s", c.out.String())
	}
	for _, way := range []string{"--record", "--replay"} {
		out := "cut" + way
		if code := c.run(append(args, "--set", "window=4096", way, "tape", "--out", out)...); code != Inconclusive {
			t.Errorf("%s: exit code %d: %s", way, code, c.err.String())
		}
		for _, e := range rowsOf(t, filepath.Join(c.dir, out)) {
			if e.Trial.Status != results.Error || summary.ErrorKind(e.Trial.Reason) != remote.CutPrompt.String() {
				t.Errorf("%s: %s, %s", way, e.Trial.Status, e.Trial.Reason)
			}
		}
	}
}
