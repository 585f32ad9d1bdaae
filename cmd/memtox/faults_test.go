package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results"
)

// Through a server at which a share of all requests goes wrong, a run loses no
// trial: what trying again mends is scored as without faults, and each request
// that nothing mends costs exactly its own trial.
func TestInjectedFaultsAreNeverCounted(t *testing.T) {
	if !long {
		t.Skip("waits between attempts: MEMTOX_LONG=1 has it do so")
	}
	before := goleak.IgnoreCurrent()
	c := newConsole(t)
	args := strings.Fields("run --dataset memtox-smoke --agent hermes --defense none,keyword --limit 25")
	c.must(append(args, "--out", "clean")...)
	want := map[string]string{}
	for _, e := range rowsOf(t, filepath.Join(c.dir, "clean")) {
		want[e.Trial.Case+"/"+e.Trial.Defense] = e.Trial.Digest
	}

	s, err := proxy.New(proxy.Options{Seed: 3, Faults: proxy.Faults{proxy.Cut: 0.05, proxy.Truncated: 0.05,
		proxy.TooMany:     0.05,
		proxy.ServerError: 0.05, proxy.Endless: 0.02, proxy.Hang: 0.02, proxy.BadRequest: 0.02}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := remote.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), l, time.Second) }()
	url := "http://" + l.Addr().String()
	code := c.run(append(args, "--out", "faulty", "--model", "openai:reference", "--base-url", url+"/v1", "--set",
		"request_timeout=500ms", "--concurrency", "64", "--max-not-scored", "1000")...)
	if code != Done {
		t.Fatalf("exit code %d: %s", code, c.err.String())
	}
	_ = l.Close()
	stats := s.Stats()
	for f, share := range map[proxy.Fault]int64{proxy.Cut: stats.Faults[proxy.Cut],
		proxy.Truncated: stats.Faults[proxy.Truncated], proxy.TooMany: stats.Faults[proxy.TooMany],
		proxy.ServerError: stats.Faults[proxy.ServerError], proxy.Hang: stats.Faults[proxy.Hang],
		proxy.BadRequest: stats.Faults[proxy.BadRequest]} {
		if share == 0 {
			t.Errorf("no %v was injected: nothing was tested", f)
		}
	}
	var failed int64
	rows := rowsOf(t, filepath.Join(c.dir, "faulty"))
	for _, e := range rows {
		switch e.Trial.Status {
		case results.Error:
			failed++
			if !strings.Contains(e.Trial.Reason, "400") {
				t.Errorf("case %s was not scored for another reason than the injected one: %s", e.Trial.Case, e.Trial.Reason)
			}
		case results.Scored:
			if d := want[e.Trial.Case+"/"+e.Trial.Defense]; d != e.Trial.Digest {
				t.Errorf("case %s under %s: digest %s, without faults %s", e.Trial.Case, e.Trial.Defense, e.Trial.Digest, d)
			}
		}
	}
	if len(rows) != len(want) || failed != stats.Faults[proxy.BadRequest] {
		t.Errorf("%d rows of %d; %d not scored, %d unrecoverable faults were injected", len(rows), len(want), failed,
			stats.Faults[proxy.BadRequest])
	}
	t.Logf("%d trials, %d requests, faults %v", len(rows), stats.Requests, stats.Faults)
	<-served
	goleak.VerifyNone(t, before)
}

// A tool call that cannot be read costs a turn in which the model makes it again, and
// the answer to that may be another one. Whatever comes of it, no trial is lost, and
// nothing that could not be read is carried out or counted: a trial is scored on calls
// that were made well, or not scored, with the reason.
func TestMalformedCallsAreCorrectedOrNotScored(t *testing.T) {
	c := newConsole(t)
	args := strings.Fields("run --dataset memtox-smoke --agent hermes --defense none,keyword --limit 25")
	c.must(append(args, "--out", "clean")...)
	clean := map[string]results.Trial{}
	for _, e := range rowsOf(t, filepath.Join(c.dir, "clean")) {
		clean[e.Trial.ID] = e.Trial
	}
	influenced := 0
	for _, r := range clean {
		if r.Influenced {
			influenced++
		}
	}
	for name, share := range map[string]float64{"some": 0.15, "all": 1} {
		s, url := guardServer(t, proxy.Options{Seed: 3, Faults: proxy.Faults{proxy.MalformedCall: share}})
		code := c.run(append(args, "--out", name, "--model", "openai:reference", "--base-url", url+"/v1", "--concurrency",
			"16", "--max-not-scored", "1000")...)
		if want := map[string]Code{"some": Done, "all": Inconclusive}[name]; code != want {
			t.Fatalf("%s: exit code %d, want %d: %s", name, code, want, c.err.String())
		}
		r, err := results.OpenReader(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rows := rowsOf(t, filepath.Join(c.dir, name))
		var corrected, failed, retries int64
		for _, e := range rows {
			row := &e.Trial
			want := ofCase(clean, row)
			retries += int64(row.Retries)
			switch row.Status {
			case results.Error:
				failed++
				if !strings.Contains(row.Reason, "malformed tool call") {
					t.Errorf("%s: case %s was not scored for another reason than the injected one: %s", name, row.Case, row.Reason)
				}
				if row.Written || row.Influenced || row.Detected != nil || row.Utility != nil {
					t.Errorf("%s: case %s was not scored and has an outcome: %+v", name, row.Case, row)
				}
			case results.Scored:
				if row.Retries > 0 {
					corrected++
				} else if row.Digest != want.Digest {
					t.Errorf("%s: case %s under %s: digest %s, without faults %s", name, row.Case, row.Defense, row.Digest,
						want.Digest)
				}
				var said struct {
					Sessions []struct{ Messages []json.RawMessage }
				}
				b, err := r.Transcript(row.ID)
				if err == nil {
					err = json.Unmarshal(b, &said)
				}
				if err != nil {
					t.Fatal(err)
				}
				var calls int32
				unread := false // in what the agent was sent; the exchanges beside it have all that went over the wire
				for _, x := range said.Sessions {
					for _, raw := range x.Messages {
						var m struct {
							Calls []json.RawMessage
							Parts []struct{ Text string }
						}
						if err := json.Unmarshal(raw, &m); err != nil {
							t.Fatal(err)
						}
						calls += int32(len(m.Calls))
						for _, p := range m.Parts {
							unread = unread || strings.Contains(p.Text, "could not be read")
						}
					}
				}
				if calls != row.ToolCalls || unread {
					t.Errorf("%s: case %s carried out %d calls and was sent %d that could be read:\n%s", name, row.Case, row.ToolCalls,
						calls, b)
				}
			}
		}
		injected := s.Stats().Faults[proxy.MalformedCall]
		// The first question, before the first trial, may be spoilt as well, twice at most.
		if extra := injected - retries - failed; len(rows) != len(clean) || extra < 0 || extra > 2 {
			t.Errorf("%s: %d rows of %d; %d calls were spoilt, %d made again, %d trials given up", name, len(rows), len(clean),
				injected, retries, failed)
		}
		if share == 1 && failed != int64(len(rows)) || share < 1 && (failed == 0 || corrected == 0) || influenced == 0 {
			t.Errorf("%s: %d trials of %d corrected, %d not scored; %d are influenced without faults", name, corrected,
				len(rows), failed, influenced)
		}
		t.Logf("%s: %d trials, %d calls spoilt, %d corrected, %d not scored", name, len(rows), injected, corrected, failed)
	}
}

// ofCase is the row of the same case in the same arm.
func ofCase(rows map[string]results.Trial, like *results.Trial) results.Trial {
	for _, r := range rows {
		if r.Case == like.Case && r.Agent == like.Agent && r.Defense == like.Defense {
			return r
		}
	}
	return results.Trial{}
}

// A recorded run that is killed again and again ends with the rows of an
// uninterrupted one, and asks for no answer that it holds already.
func TestKilledRecordedRunsRepeatNoCall(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, url := guardServer(t, proxy.Options{Latency: 2 * time.Millisecond})
	c := newConsole(t)
	const slots = 4
	args := append(strings.Fields("run --dataset memtox-smoke --agent hermes --defense none,keyword --model "+
		"openai:reference --base-url "+url+"/v1"), "--concurrency", fmt.Sprint(slots))
	began := time.Now()
	c.must(append(args, "--out", "whole", "--record", "whole.tape")...)
	full, calls := time.Since(began), s.Stats().Requests
	want := rowsOf(t, filepath.Join(c.dir, "whole"))

	killed, kills := 0, times(20, 6)
	for n := range kills {
		cmd := exec.Command(self, append(args, "--out", "torn", "--record", "torn.tape", "--resume")...)
		cmd.Dir, cmd.Env = c.dir, append(os.Environ(), asMain+"=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration((0.02 + 0.1*rand.Float64()) * float64(full)))
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Logf("kill %d came too late: the run had ended", n)
			continue
		} else if cmd.ProcessState.ExitCode() >= 0 {
			t.Fatalf("kill %d: the process failed by itself: %v\n%s", n, err, stderr.String())
		}
		killed++
	}
	c.must(append(args, "--out", "torn", "--record", "torn.tape", "--resume")...)
	if diff := cmp.Diff(want, rowsOf(t, filepath.Join(c.dir, "torn")), cmp.AllowUnexported(results.Entry{}),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".at" }, cmp.Ignore())); diff != "" {
		t.Errorf("after %d kills the rows differ:\n%.4000s", killed, diff)
	}
	// What was in flight at a kill is asked again, nothing else.
	if again := s.Stats().Requests - 2*calls; again > int64(killed*slots) {
		t.Errorf("%d calls were repeated after %d kills with %d in flight", again, killed, slots)
	} else {
		t.Logf("%d calls in a run of %v; %d kills, %d calls again", calls, full, killed, again)
	}
	if killed < kills/4 {
		t.Errorf("only %d of %d kills met a running process", killed, kills)
	}
	// The cassette of all the pieces replays the whole.
	if got, w := figures(t, c.must(strings.Fields("run --dataset memtox-smoke --agent hermes --defense none,keyword "+
		"--model openai:reference --replay torn.tape --out replayed --format json")...)),
		figures(t, c.must("run", "--resume", "--out", "whole", "--format", "json")); got.Digest != w.Digest {
		t.Errorf("replayed: digest %s, want %s", got.Digest, w.Digest)
	}
}
