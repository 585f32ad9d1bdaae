package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/harness/queue"
	"github.com/memtox/memtox/results"
)

// asQueue makes the test binary a queue's server, for tests that kill one.
const asQueue = "MEMTOX_TEST_AS_QUEUE"

// serveQueue is a server of the user's own, which lets everybody in.
func serveQueue(dir, addr string) {
	host, port, _ := net.SplitHostPort(addr)
	n, err := strconv.Atoi(port)
	if n == 0 {
		n = server.RANDOM_PORT
	}
	s, err2 := server.NewServer(&server.Options{Host: host, Port: n, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: dir, SyncAlways: true})
	if err := errors.Join(err, err2); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	s.Start()
	if !s.ReadyForConnections(15 * time.Second) {
		os.Exit(3)
	}
	fmt.Println(s.ClientURL())
	select {}
}

// process is a command in a process of its own, with what it has printed.
type process struct {
	*exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// ends waits for the process to end by itself.
func (p *process) ends(t *testing.T) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%v\n%s", err, p.text())
		}
	case <-time.After(30 * time.Second):
		t.Errorf("memtox %v does not end:\n%s", p.Args[1:], p.text())
	}
}

// spawn starts memtox in a process of its own.
func (c *console) spawn(args ...string) *process {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(self, args...)}
	p.Dir, p.Env, p.Stderr = c.dir, append(os.Environ(), asMain+"=1"), p
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// streams connects to the streams of a server until the test ends.
func streams(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// queueServer starts a server in a process of its own and returns its URL.
func (c *console) queueServer(addr string) (*exec.Cmd, string) {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asQueue+"="+filepath.Join(c.dir, "store"), asQueue+"_ADDR="+addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "nats://") {
		c.t.Fatalf("the queue's server: %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return cmd, strings.TrimSpace(line)
}

// workersJoin are the arguments with which a run that listens has workers join.
func workersJoin(t testing.TB, run *process) []string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if m := regexp.MustCompile(`memtox (worker --queue nats://.*)\n`).FindStringSubmatch(run.text()); m != nil {
			return strings.Fields(m[1])
		}
	}
	t.Fatalf("the coordinator names no address:\n%s", run.text())
	return nil
}

func sameRows(t *testing.T, want []results.Entry, dir string) {
	t.Helper()
	if diff := cmp.Diff(want, rowsOf(t, dir), cmp.AllowUnexported(results.Entry{}),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".at" }, cmp.Ignore())); diff != "" {
		t.Errorf("%s: the rows differ:\n%.4000s", dir, diff)
	}
	m, err := results.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Transcripts { // the reader has checked the other files
		if err := f.Check(dir); err != nil {
			t.Error(err)
		}
	}
}

var spreadRun = strings.Fields("run --dataset cases.jsonl --agent hermes --defense none,memoryguard,origin-only")

// spreadCases writes cases whose run takes some seconds, and runs them in one
// process.
func spreadCases(c *console, times int) []results.Entry {
	c.t.Helper()
	c.manyCases("cases.jsonl", times)
	c.must(append(spreadRun, "--out", "whole")...)
	return rowsOf(c.t, filepath.Join(c.dir, "whole"))
}

func TestWorkersGiveTheRowsOfOneProcess(t *testing.T) {
	t.Parallel() // it waits more than it works
	c := newConsole(t)
	want := spreadCases(c, 2)
	_, url := c.queueServer("127.0.0.1:0")
	for range 3 {
		c.spawn("worker", "--queue", url, "--concurrency", "2")
	}
	c.must(append(spreadRun, "--queue", url, "--out", "spread")...)
	sameRows(t, want, filepath.Join(c.dir, "spread"))
	a, b := figures(t, c.must("run", "--resume", "--out", "whole", "--format", "json")),
		figures(t, c.must("run", "--resume", "--out", "spread", "--format", "json"))
	if a.Digest != b.Digest {
		t.Errorf("digest %s, want %s", b.Digest, a.Digest)
	}
	if out := c.must("queue", "status", "--queue", url); !strings.Contains(out, "which is over") {
		t.Errorf("status: %s", out)
	}
	// The server is as it was, for the next run.
	c.spawn("worker", "--queue", url)
	c.must(append(spreadRun, "--queue", url, "--out", "again", "--limit", "20")...)
}

// A trial whose rows alone are more than a message may hold, and its transcript
// too, arrives all the same.
func TestATrialThatNoMessageHoldsArrives(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	long := strings.Fields("run --dataset memtox-smoke --limit 1 --agent hermes --defense guard --set gap=1000 --set " +
		"write_sessions=50")
	c.must(append(long, "--out", "whole")...)
	want := rowsOf(t, filepath.Join(c.dir, "whole"))
	if n := len(results.AppendMessage(nil, &want[0].Trial, want[0].Decisions)); n < 900<<10 {
		t.Fatalf("its rows take only %d bytes", n)
	}
	_, url := c.queueServer("127.0.0.1:0")
	worker := c.spawn("worker", "--queue", url)
	c.must(append(long, "--queue", url, "--out", "spread")...)
	worker.ends(t)
	sameRows(t, want, filepath.Join(c.dir, "spread"))
	var scripts [2][]byte
	for i, dir := range []string{"whole", "spread"} {
		r, err := results.OpenReader(filepath.Join(c.dir, dir))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if scripts[i], err = r.Transcript(want[0].Trial.ID); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(scripts[0], scripts[1]) {
		t.Errorf("the transcripts differ: %d and %d bytes", len(scripts[0]), len(scripts[1]))
	}
}

// Whoever may join may also throw work away: it is handed out again.
func TestSpansThatWereThrownAwayAreHandedOutAgain(t *testing.T) {
	t.Parallel() // it waits more than it works
	c := newConsole(t)
	want := spreadCases(c, 1)
	_, url := c.queueServer("127.0.0.1:0")
	run := c.spawn(append(spreadRun, "--queue", url, "--out", "spread")...)
	js := streams(t, url)
	thrown := false
	for end := time.Now().Add(20 * time.Second); !thrown && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if s, err := js.Stream(t.Context(), "memtox-default-jobs"); err == nil {
			if info, err := s.Info(t.Context()); err == nil && info.State.Msgs == 120 {
				thrown = s.Purge(t.Context()) == nil
			}
		}
	}
	if !thrown {
		t.Fatal("there was nothing to throw away")
	}
	c.spawn("worker", "--queue", url)
	done := make(chan error, 1)
	go func() { done <- run.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%v\n%s", err, run.text())
		}
	case <-time.After(time.Minute):
		t.Fatalf("the run does not end:\n%s", run.text())
	}
	sameRows(t, want, filepath.Join(c.dir, "spread"))
}

// An acknowledgement that is lost costs a question, not the trials again.
func TestASpanWhoseRowsArrivedIsNotRunAgain(t *testing.T) {
	c := newConsole(t)
	want := spreadCases(c, 1)
	_, url := c.queueServer("127.0.0.1:0")
	run := c.spawn(append(spreadRun, "--queue", url, "--out", "spread")...)
	js := streams(t, url)
	var m jetstream.Msg
	for end := time.Now().Add(20 * time.Second); m == nil; time.Sleep(20 * time.Millisecond) {
		cons, err := js.CreateOrUpdateConsumer(t.Context(), "memtox-default-jobs",
			jetstream.ConsumerConfig{Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 15 * time.Second,
				MaxAckPending: -1})
		if err == nil {
			m, err = cons.Next(jetstream.FetchMaxWait(time.Second))
		}
		if err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	var span struct {
		Run      string
		First, N int
	}
	if err := json.Unmarshal(m.Data(), &span); err != nil || span.N != 3 {
		t.Fatalf("the span %s: %v", m.Data(), err)
	}
	var rows []byte
	for _, e := range want[span.First : span.First+span.N] {
		rows = append(rows, parcelOf(results.AppendMessage(nil, &e.Trial, e.Decisions))...)
	}
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "memtox.default.rows",
		Header: nats.Header{"Memtox-Run": {span.Run}}, Data: rows}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if s, err := js.Stream(t.Context(), "memtox-default-rows"); err == nil && s.CachedInfo().State.Msgs == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the coordinator does not take the rows:\n%s", run.text())
		}
	}
	// The same rows from another worker, whose transcript was taken with the first:
	// nothing is missing, and nothing is to be said.
	again := parcelOf([]byte(want[span.First].Trial.ID + ".0123456789abcdef0123456789abcdef"))
	again[0] = 2 // in the object store
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "memtox.default.rows",
		Header: nats.Header{"Memtox-Run": {span.Run}}, Data: again}); err != nil {
		t.Fatal(err)
	}
	// It comes again because nobody acknowledged it, and as a server has it that was
	// killed and forgot that it was acknowledged.
	if err := m.Nak(); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "memtox.default.jobs",
		fmt.Appendf(nil, `{"run":%q,"first":%d,"n":%d,"server":"an earlier one"}`, span.Run, span.First,
			span.N)); err != nil {
		t.Fatal(err)
	}
	worker := c.spawn("worker", "--queue", url)
	if err := run.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, run.text())
	}
	worker.ends(t)
	if text := fmt.Sprintf("this worker ran %d trials", len(want)-span.N); !strings.Contains(worker.text(), text) {
		t.Errorf("not %q but:\n%s", text, worker.text())
	}
	if strings.Contains(run.text(), "thrown away") {
		t.Errorf("rows that came twice are found fault with:\n%s", run.text())
	}
	sameRows(t, want, filepath.Join(c.dir, "spread"))
}

// A server may hold spans and give them to nobody who asks, here because its consumer pauses.
func TestAConsumerThatGivesNothingIsMadeAnew(t *testing.T) {
	t.Parallel() // it waits
	c := newConsole(t)
	want := spreadCases(c, 1)
	_, url := c.queueServer("127.0.0.1:0")
	run := c.spawn(append(spreadRun, "--queue", url, "--out", "spread")...)
	js := streams(t, url)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if s, err := js.Stream(t.Context(), "memtox-default-jobs"); err == nil && s.CachedInfo().State.Msgs > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is handed out:\n%s", run.text())
		}
	}
	paused := time.Now().Add(time.Hour)
	if _, err := js.CreateOrUpdateConsumer(t.Context(), "memtox-default-jobs", jetstream.ConsumerConfig{Durable: "workers",
		AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: -1, PauseUntil: &paused}); err != nil {
		t.Fatal(err)
	}
	worker := c.spawn("worker", "--queue", url)
	if err := run.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, run.text())
	}
	worker.ends(t)
	if !strings.Contains(run.text(), "gives them to no worker that asks: its consumer is made anew") {
		t.Errorf("it was not stuck:\n%s", run.text())
	}
	sameRows(t, want, filepath.Join(c.dir, "spread"))
}

func TestKilledWorkersLoseNoRow(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel() // it waits more than it works
	c := newConsole(t)
	want := spreadCases(c, times(10, 3))
	kills := times(20, 6)
	// The coordinator starts the server itself.
	run := c.spawn(append(spreadRun, "--listen", "127.0.0.1:0", "--out", "spread")...)
	join := workersJoin(t, run)
	done := make(chan error, 1)
	go func() { done <- run.Wait() }()
	one := append(slices.Clone(join), "--concurrency", "1")
	workers := []*process{c.spawn(one...), c.spawn(one...)}
	killed := 0
	for n := range kills {
		select {
		case err := <-done:
			done <- err
		case <-time.After(time.Duration(20+rand.IntN(150)) * time.Millisecond):
			i := rand.IntN(len(workers))
			if workers[i].ProcessState == nil {
				workers[i].kill()
				killed++
			}
			workers[i] = c.spawn(one...)
		}
		if n == kills/2 {
			workers = append(workers, c.spawn(append(join, "--concurrency", "2")...))
		}
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("the coordinator failed: %v\n%s", err, run.text())
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("the run does not end:\n%s", run.text())
	}
	sameRows(t, want, filepath.Join(c.dir, "spread"))
	t.Logf("%d rows, %d workers killed", len(want), killed)
	if killed < kills/4 {
		t.Errorf("only %d workers were killed", killed)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "spread", "queue.tmp")); !os.IsNotExist(err) {
		t.Errorf("the server left its files: %v", err)
	}
}

func TestAKilledServerAndCoordinatorGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("kills servers")
	}
	t.Parallel()
	c := newConsole(t)
	want := spreadCases(c, times(10, 3))
	server, url := c.queueServer("127.0.0.1:0")
	addr := strings.TrimPrefix(url, "nats://")
	run := c.spawn(append(spreadRun, "--queue", url, "--out", "spread")...)
	var workers []*process
	for range 2 {
		workers = append(workers, c.spawn("worker", "--queue", url, "--concurrency", "1"))
	}
	ended := func(p *process) chan error {
		done := make(chan error, 1)
		go func() { done <- p.Wait() }()
		return done
	}
	done := ended(run)
	for n := range times(3, 2) {
		time.Sleep(time.Duration(300+rand.IntN(300)) * time.Millisecond)
		_ = server.Process.Kill()
		_ = server.Wait()
		time.Sleep(200 * time.Millisecond)
		server, _ = c.queueServer(addr)
		if n == 1 { // and the coordinator too
			_ = run.Process.Kill()
			<-done
			run = c.spawn("run", "--resume", "--out", "spread", "--queue", url)
			done = ended(run)
		}
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("the coordinator failed: %v\n%s", err, run.text())
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("the run does not end:\n%s", run.text())
	}
	sameRows(t, want, filepath.Join(c.dir, "spread"))
	ran := 0
	for _, w := range workers {
		w.ends(t)
		if m := regexp.MustCompile(`this worker ran (\d+) trials`).FindStringSubmatch(w.text()); m != nil {
			n, _ := strconv.Atoi(m[1])
			ran += n
		}
	}
	t.Logf("%d trials run for %d", ran, len(want))
}

func TestAWorkerOfAnotherRunRefuses(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.manyCases("cases.jsonl", 1)
	_, url := c.queueServer("127.0.0.1:0")
	run := c.spawn(append(spreadRun, "--queue", url, "--out", "spread")...)
	other := newConsole(t)
	other.write("cases.jsonl", strings.Split(c.must("datasets", "export", "memtox-smoke"), "\n")[0]+"\n")
	if code := other.run("worker", "--queue", url, "--wait", "20s"); code != Usage ||
		!strings.Contains(other.err.String(), "holds a run with other settings") ||
		!strings.Contains(other.err.String(), "what dataset stands for was") {
		t.Errorf("another dataset: exit code %d: %s", code, other.err.String())
	}
	if code := c.run("worker", "--queue", url, "--model", "reference:naive", "--wait", "20s"); code != Usage ||
		!strings.Contains(c.err.String(), `model was "reference", is now "reference:naive"`) {
		t.Errorf("another model: exit code %d: %s", code, c.err.String())
	}
	if code := c.run(append(spreadRun, "--queue", url, "--out", "second")...); code != Usage ||
		!strings.Contains(c.err.String(), "carries the run") {
		t.Errorf("a second run on the queue: exit code %d: %s", code, c.err.String())
	}
	status := ""
	for end := time.Now().Add(30 * time.Second); !strings.Contains(status, `"spans": 120`); {
		if status = c.must("queue", "status", "--queue", url, "--format", "json"); time.Now().After(end) {
			t.Fatalf("status: %s", status)
		}
	}
	if out := c.must("queue", "drain", "--queue", url); !strings.Contains(out, "120 spans taken back") {
		t.Errorf("drain: %s", out)
	}
	if err := run.Wait(); err == nil || run.ProcessState.ExitCode() != int(Inconclusive) {
		t.Errorf("the drained run: %v\n%s", err, run.text())
	}
	if code := c.run("worker", "--queue", url, "--wait", "100ms"); code != Usage ||
		!strings.Contains(c.err.String(), "no run came to the queue") {
		t.Errorf("nothing on the queue: exit code %d: %s", code, c.err.String())
	}
}

func TestStrangersAtTheQueueHarmNothing(t *testing.T) {
	c := newConsole(t)
	for args, want := range map[string]string{
		"run --dataset memtox-smoke --listen 0.0.0.0:0 --out a":                               "a token is required",
		"run --dataset memtox-smoke --listen nonsense --out b":                                "is no HOST:PORT",
		"run --dataset memtox-smoke --listen 127.0.0.1:0 --queue nats://x --out c":            "not both",
		"run --dataset memtox-smoke --listen 127.0.0.1:0 --set queue_name=../x --out d":       "is no name for a queue",
		"run --dataset memtox-smoke --listen 127.0.0.1:0 --set queue_token_file=none --out e": "queue_token_file",
		"worker":                              "there is no telling where the queue is",
		"queue status --queue nats://[::1]:1": "is a server there",
	} {
		if code := c.run(strings.Fields(args)...); code != Usage || !strings.Contains(c.err.String(), want) {
			t.Errorf("memtox %s: exit code %d: %s", args, code, c.err.String())
		}
	}
	c.getenv = func(name string) string { return map[string]string{"MEMTOX_QUEUE_TOKEN": "right-token-93ab"}[name] }
	if code := c.run(strings.Fields("run --dataset memtox-smoke --listen 0.0.0.0:0 --out f")...); code != Usage ||
		!strings.Contains(c.err.String(), "TLS is required") {
		t.Errorf("exit code %d: %s", code, c.err.String())
	}

	c.manyCases("cases.jsonl", 1)
	want := c.must(append(spreadRun, "--out", "whole", "--format", "json")...)
	t.Setenv("MEMTOX_QUEUE_TOKEN", "right-token-93ab")
	run := c.spawn(append(spreadRun, "--listen", "127.0.0.1:0", "--out", "spread")...)
	url := ""
	for end := time.Now().Add(20 * time.Second); url == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		url = regexp.MustCompile(`nats://[0-9.:]+`).FindString(run.text())
	}
	for _, o := range []nats.Option{nats.Token("wrong"), nats.UserInfo("a", "b"), nats.Name("nobody")} {
		if nc, err := nats.Connect(url, o); err == nil {
			nc.Close()
			t.Error("a stranger was let in")
		}
	}
	nc, err := nats.Connect(url, nats.Token("right-token-93ab"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var run1 string
	for end := time.Now().Add(10 * time.Second); run1 == "" && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if kv, err := js.KeyValue(t.Context(), "memtox-default"); err == nil {
			if e, err := kv.Get(t.Context(), "run"); err == nil {
				run1 = regexp.MustCompile(`"run_id":"([^"]+)"`).FindStringSubmatch(string(e.Value()))[1]
			}
		}
	}
	// Malformed rows, rows of others, forged rows, spans of nowhere.
	var e results.Entry
	for _, x := range rowsOf(t, filepath.Join(c.dir, "whole"))[:1] {
		e = x
	}
	forged := func(change func(*results.Trial)) []byte {
		row := e.Trial
		change(&row)
		return parcelOf(results.AppendMessage(nil, &row, e.Decisions))
	}
	for _, m := range []struct {
		run  string
		data []byte
	}{
		{"", []byte("nonsense")}, {run1, []byte("nonsense")}, {run1, nil}, {run1, bytes.Repeat([]byte{0xff}, 1000)},
		{"other", forged(func(*results.Trial) {})},
		{run1, forged(func(r *results.Trial) { r.Written = !r.Written })},
		{run1, forged(func(r *results.Trial) { r.Index = 1 << 60 })},
		{run1, forged(func(r *results.Trial) { r.Index = -1 })},
		{run1, forged(func(r *results.Trial) { r.Case = "m-other" })},
		{run1, forged(func(r *results.Trial) { r.Defense = "guard" })},
		{run1, forged(func(r *results.Trial) { r.Status = "\x1b[31m" })},
		{run1, forged(func(r *results.Trial) { r.Family += "x" })},
		{run1, forged(func(r *results.Trial) { r.ExpectsRSR = !r.ExpectsRSR })},
	} {
		if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "memtox.default.rows",
			Header: nats.Header{"Memtox-Run": {m.run}, "Memtox-Worker": {"mallory\x1b"}}, Data: m.data}); err != nil {
			t.Errorf("publishing: %v", err)
		}
	}
	if err := nc.Publish("memtox.default.rows", make([]byte, 2<<20)); err == nil {
		t.Error("an oversized message was taken")
	}
	for _, b := range []string{"x", `{"run":"x","first":-5,"n":1}`, `{"run":"` + run1 + `","first":0,"n":0}`,
		`{"run":"` + run1 + `","first":99999999,"n":1}`} {
		_, _ = js.Publish(t.Context(), "memtox.default.jobs", []byte(b))
	}
	_ = nc.Publish("memtox.default.status", []byte(`{"worker":""}`))
	_ = nc.Publish("memtox.default.status", []byte("\x1b]0;x\x07"))
	worker := c.spawn("worker", "--queue", url)
	if err := run.Wait(); err != nil {
		t.Fatalf("the run: %v\n%s", err, run.text())
	}
	worker.ends(t) // though the server went with the coordinator
	if got := figures(t, c.must("run", "--resume", "--out", "spread", "--format", "json")); got.Digest != figures(t,
		want).Digest {
		t.Errorf("digest %s, want %s", got.Digest, figures(t, want).Digest)
	}
	text := run.text()
	for _, says := range []string{`the worker "mallory\x1b" sent it`, "has family ", "has expects_rsr "} {
		if !strings.Contains(text, says) {
			t.Errorf("it is not said that %s:\n%s", says, text)
		}
	}
	if n := strings.Count(text, "is thrown away"); n < 11 {
		t.Errorf("%d messages were thrown away and said so:\n%s", n, text)
	}
	if strings.ContainsRune(text, 0x1b) || strings.Contains(text, "right-token-93ab") {
		t.Errorf("what the coordinator prints is not inert, or holds the token:\n%q", text)
	}
	if !strings.Contains(text, "uthenti") && !strings.Contains(text, "uthoriz") {
		t.Errorf("who was refused is not logged:\n%s", text)
	}
}

// parcelOf is a row as a worker sends it.
func parcelOf(row []byte) []byte {
	b := []byte{0}
	n := len(row)
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	b = append(append(b, byte(n)), row...)
	return append(b, 0)
}

// What a coordinator keeps in its own server it finds again: whoever stops or
// kills it loses nothing.
func TestACoordinatorWithItsOwnServerGoesOn(t *testing.T) {
	if !long {
		t.Skip("waits for work that a killed worker had taken: MEMTOX_LONG=1 has it do so")
	}
	t.Parallel()
	c := newConsole(t)
	want := spreadCases(c, 10)
	run := c.spawn(append(spreadRun, "--listen", "127.0.0.1:0", "--out", "spread")...)
	join := workersJoin(t, run)
	// One that was there before reads the new server's token from the same file.
	stays := c.spawn(append(slices.Clone(join), "--concurrency", "1")...)
	for _, stop := range []os.Signal{os.Kill, os.Interrupt} {
		worker := c.spawn(append(join, "--concurrency", "1")...)
		time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
		_ = run.Process.Signal(stop)
		_ = run.Wait()
		worker.kill()
		run = c.spawn("run", "--resume", "--out", "spread", "--listen", strings.TrimPrefix(join[2], "nats://"))
		join = workersJoin(t, run)
	}
	run.ends(t)
	stays.ends(t)
	sameRows(t, want, filepath.Join(c.dir, "spread"))
	if _, err := os.Stat(filepath.Join(c.dir, "spread", "queue.tmp")); !os.IsNotExist(err) {
		t.Errorf("the server left its files: %v", err)
	}
}

// A stopped run hands nothing out, though its queue is empty and trials are missing.
func TestAStoppedRunLeavesNothingOnTheQueue(t *testing.T) {
	t.Parallel() // it waits more than it works
	c := newConsole(t)
	c.manyCases("cases.jsonl", 1)
	_, url := c.queueServer("127.0.0.1:0")
	run := c.spawn(append(spreadRun, "--queue", url, "--out", "spread")...)
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// A worker that never finishes anything, so that the coordinator waits for it.
	quit := make(chan struct{})
	defer close(quit)
	go func() {
		for {
			_ = nc.Publish("memtox.default.status", []byte(`{"worker":"idle","slots":1,"busy":1}`))
			select {
			case <-quit:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	spans := func() int {
		var s struct{ Spans int }
		if err := json.Unmarshal([]byte(c.must("queue", "status", "--queue", url, "--format", "json")), &s); err != nil {
			t.Fatal(err)
		}
		return s.Spans
	}
	for end := time.Now().Add(30 * time.Second); spans() != 120; {
		if time.Now().After(end) {
			t.Fatalf("nothing is handed out:\n%s", run.text())
		}
	}
	_ = run.Process.Signal(os.Interrupt)
	if _ = run.Wait(); run.ProcessState.ExitCode() != int(Inconclusive) {
		t.Errorf("the stopped run: %v\n%s", run.ProcessState, run.text())
	}
	if n := spans(); n != 0 {
		t.Errorf("%d spans are on the queue of a run that was stopped:\n%s", n, run.text())
	}
}

// A worker that comes too late goes home like any other.
func TestAWorkerWhoseRunEndsWhileItPreparesGoesHome(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	_, url := c.queueServer("127.0.0.1:0")
	c.spawn("run", "--dataset", "memtox-smoke", "--queue", url, "--out", "spread")
	o := queue.Options{URL: url, Name: "default"}
	w := &queue.Worker{Options: o, Version: versionString(), Wait: 30 * time.Second,
		Prepare: func(ctx context.Context, s harness.Config) (*harness.Experiment, error) {
			if _, err := queue.Drain(ctx, o); err != nil {
				t.Error(err)
			}
			nc, err := nats.Connect(url)
			if err != nil {
				return nil, err
			}
			defer nc.Close()
			js, err := jetstream.New(nc)
			if err != nil {
				return nil, err
			}
			if err := js.DeleteObjectStore(ctx, "memtox-default-large"); err != nil {
				t.Error(err)
			}
			return harness.Prepare(ctx, s, harness.Builtin())
		}}
	if err := w.Run(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// lastStops is a sink that calls then when it has all trials.
type lastStops struct {
	mu   sync.Mutex
	have map[string]bool
	want int
	then func()
}

func (s *lastStops) Done(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.have[id]
}

func (s *lastStops) AppendAll(batch []results.Finished) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range batch {
		if s.have[f.Trial.ID] = true; len(s.have) == s.want {
			s.then()
		}
	}
	return nil
}

// A run whose trials are all there has succeeded, whatever becomes of the server,
// and one that comes back hears of it.
func TestAServerThatDiesAtTheLastTrialFailsNoRun(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false}[:times(2, 1)] {
		c := newConsole(t)
		server, url := c.queueServer("127.0.0.1:0")
		s := harness.DefaultConfig()
		s.Dataset, s.Limit, s.Out = "memtox-smoke", 3, "spread"
		x, err := harness.Prepare(t.Context(), s, harness.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		worker := c.spawn("worker", "--queue", url)
		again := make(chan struct{})
		sink := &lastStops{have: map[string]bool{}, want: int(x.Plan.Len()), then: func() {
			_ = server.Process.Kill()
			_ = server.Wait()
			go func() {
				defer close(again)
				if time.Sleep(500 * time.Millisecond); back {
					c.queueServer(strings.TrimPrefix(url, "nats://"))
				}
			}()
		}}
		co := &queue.Coordinator{Options: queue.Options{URL: url, Name: "default"}, Experiment: x,
			Record: x.Record("last", versionString(), time.Now())}
		progress := new(harness.Progress)
		if err := co.Run(t.Context(), sink, progress, nil); err != nil || progress.Done() != x.Plan.Len() {
			t.Errorf("the server comes back: %v: %d of %d trials, %v", back, progress.Done(), x.Plan.Len(), err)
		}
		<-again
		if back {
			worker.ends(t)
		}
	}
}
