package main

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/harness"
)

func guardServer(t *testing.T, o proxy.Options) (*proxy.Server, string) {
	t.Helper()
	s, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	return s, h.URL
}

func TestPlanSaysWhatTheRunThenTakes(t *testing.T) {
	c := newConsole(t)
	for _, flags := range []string{
		"--dataset memtox-smoke --defense none,guard",
		"--limit 150 --defense none,keyword --agent hermes",
		"--dataset memtox-smoke --defense none --shard 1/3",
		"--split all --defense none,guard --model reference --dataset " + states(t, ""),
	} {
		args := strings.Fields(flags + " --format json")
		var plan harness.Estimate
		if err := json.Unmarshal([]byte(c.must(append([]string{"plan"}, args...)...)), &plan); err != nil {
			t.Fatal(err)
		}
		var run struct {
			Trials int64
			Arms   []struct {
				Excluded int64
				Costs    struct {
					Calls  float64 `json:"model_calls"`
					Prompt float64 `json:"prompt_tokens"`
				}
			}
		}
		if err := json.Unmarshal([]byte(c.must(append([]string{"run"}, args...)...)), &run); err != nil {
			t.Fatal(err)
		}
		var calls, prompt float64
		var excluded int64
		for _, a := range run.Arms {
			calls, prompt, excluded = calls+a.Costs.Calls, prompt+a.Costs.Prompt, excluded+a.Excluded
		}
		within := 0.05
		if strings.Contains(flags, "shard") {
			within = 0.2 // a small shard of a small set is not like the whole
		} else if plan.Excluded != excluded {
			t.Errorf("%s: planned %d excluded trials, there were %d", flags, plan.Excluded, excluded)
		}
		if prompt == 0 || plan.Trials != run.Trials || math.Abs(plan.Calls.Expected/calls-1) > within ||
			math.Abs(plan.PromptTokens.Expected/prompt-1) > within {
			t.Errorf("%s: planned %d trials, %.0f calls, %.0f prompt tokens; the run took %d, %.0f, %.0f", flags, plan.Trials,
				plan.Calls.Expected, plan.PromptTokens.Expected, run.Trials, calls, prompt)
		}
	}
}

func TestPlanCallsTheModelOnlyForAPilot(t *testing.T) {
	s, url := guardServer(t, proxy.Options{})
	c := newConsole(t)
	args := strings.Fields("plan --model openai:reference --base-url " + url +
		"/v1 --dataset memtox-smoke --agent hermes --limit 30 --set price_prompt=1 --set price_completion=2")
	out := c.must(append(args, "--defense", "none,judge:openai:x")...)
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("planning sent %d requests", n)
	}
	for _, want := range []string{"model calls            about ", " to ", "US dollars", "(assumed)", "no call made",
		"judge:openai:x is counted as an arm without a defense"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan lacks %q:\n%s", want, out)
		}
	}
	out = c.must(append(args, "--pilot", "10", "--defense", "none,guard")...)
	if n := s.Stats().Requests; n == 0 || !strings.Contains(out, "a pilot of 1") || !strings.Contains(out, "(measured)") {
		t.Errorf("a pilot sent %d requests:\n%s", n, out)
	}
	if code := c.run("plan", "--pilot", "-1"); code != Usage {
		t.Errorf("--pilot -1: exit code %d", code)
	}
}

func TestDoctor(t *testing.T) {
	_, url := guardServer(t, proxy.Options{})
	c := newConsole(t)
	for _, args := range []string{"--model openai:reference --base-url " + url + "/v1",
		"--model ollama:reference --base-url " + url + " --embeddings reference", ""} {
		out := c.must(strings.Fields("doctor " + args)...)
		if !strings.Contains(out, "reachable   ok") || strings.Contains(out, "failed") {
			t.Errorf("doctor %s:\n%s", args, out)
		}
	}
	_, broken := guardServer(t, proxy.Options{Faults: proxy.Faults{proxy.MalformedCall: 1}})
	if code := c.run("doctor", "--model", "openai:reference", "--base-url", broken+"/v1", "--format",
		"json"); code != BadNews || !strings.Contains(c.out.String(), `"state": "failed"`) {
		t.Errorf("malformed calls: exit code %d\n%s", code, c.out.String())
	}
	if code := c.run("doctor", "--model", "nonsense:x"); code != Usage {
		t.Errorf("an unknown model: exit code %d", code)
	}
}

// A cap stops a run so that it goes on where it stopped, and counts what was
// spent before.
func TestCapsStopARunThatCanBeResumed(t *testing.T) {
	s, url := guardServer(t, proxy.Options{})
	c := newConsole(t)
	base := strings.Fields("run --model openai:reference --base-url " + url +
		"/v1 --dataset memtox-smoke --agent hermes --defense none --limit 20 --concurrency 4 --format json")
	whole := figures(t, c.must(append(base, "--out", "whole")...))
	all := s.Stats().Requests

	if code := c.run(append(base, "--out", "capped", "--set", "max_requests=30")...); code != Inconclusive ||
		!strings.Contains(c.err.String(), "the run's cap is reached: 30 requests were sent of 30 allowed") {
		t.Fatalf("exit code %d: %s", code, c.err.String())
	}
	sent := s.Stats().Requests - all
	if sent > 30 {
		t.Errorf("%d requests were sent of 30 allowed", sent)
	}
	// What may be spent is the command line's, not that of a file which anybody may have changed.
	if code := c.run(append(base, "--resume", "--out", "capped")...); code != Usage ||
		!strings.Contains(c.err.String(), "add --set max_requests=30") {
		t.Errorf("resumed without the cap: exit code %d: %s", code, c.err.String())
	}
	// Requests that were given up when the cap was reached may be counted only now.
	if n := s.Stats().Requests - all; n > 30 {
		t.Errorf("resumed without the cap, %d requests were sent of 30", n)
	}
	// The same cap leaves only what the unfinished trials had used.
	if code := c.run(append(base, "--resume", "--out", "capped", "--set", "max_requests=30")...); code != Inconclusive {
		t.Errorf("resumed under the same cap: exit code %d", code)
	}
	if n := s.Stats().Requests - all - sent; n > 30 {
		t.Errorf("resumed under the same cap, %d requests were sent", n)
	}
	if got := figures(t, c.must(append(base, "--resume", "--out", "capped", "--set",
		"max_requests=0")...)); got.Digest != whole.Digest {
		t.Errorf("digest %s, want %s", got.Digest, whole.Digest)
	}
}

func TestATrialThatTakesTooLongIsNotScored(t *testing.T) {
	_, real := guardServer(t, proxy.Options{})
	to, err := neturl.Parse(real)
	if err != nil {
		t.Fatal(err)
	}
	pass, posts := httputil.NewSingleHostReverseProxy(to), new(atomic.Int32)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && posts.Add(1) > 2 { // it answers when it is asked before the first trial
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	url := h.URL
	c := newConsole(t)
	code := c.run(strings.Fields("run --model openai:reference --base-url " + url +
		"/v1 --dataset memtox-smoke --agent hermes --defense none --limit 4 --set trial_timeout=100ms --format json --out slow")...)
	if code != Inconclusive || !strings.Contains(c.err.String(),
		"the trial took longer than trial_timeout (100ms) allows") {
		t.Errorf("exit code %d: %s", code, c.err.String())
	}
}
