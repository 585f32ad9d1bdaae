//go:build unix

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Whoever may speak on the queue's plain subjects cannot end a run with that, nor
// have trials dropped.
func TestSpeakersOnPlainSubjectsEndNothing(t *testing.T) {
	t.Parallel() // it waits more than it works
	c := newConsole(t)
	want := spreadCases(c, 2)
	_, url := c.queueServer("127.0.0.1:0")
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// It answers in the coordinator's place, and lies.
	var lies atomic.Int64
	if _, err := nc.Subscribe("memtox.default.done", func(m *nats.Msg) {
		_ = m.Respond([]byte("done"))
		lies.Add(1)
	}); err != nil {
		t.Fatal(err)
	}
	run := c.spawn(append(spreadRun, "--queue", url, "--out", "spread")...)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	// Spans that this peer takes and gives back count as ones that somebody had.
	given := 0
	for end := time.Now().Add(20 * time.Second); given == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s, err := js.Stream(t.Context(), "memtox-default-jobs"); err != nil || s.CachedInfo().State.Msgs < 240 {
			continue
		}
		cons, err := js.CreateOrUpdateConsumer(t.Context(), "memtox-default-jobs",
			jetstream.ConsumerConfig{Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 15 * time.Second,
				MaxAckPending: -1})
		if err != nil {
			t.Fatal(err)
		}
		batch, err := cons.Fetch(30, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		for m := range batch.Messages() {
			_ = m.Nak()
			given++
		}
	}
	if given == 0 {
		t.Fatal("there was no span to take")
	}
	id := ""
	if kv, err := js.KeyValue(t.Context(), "memtox-default"); err == nil {
		if e, err := kv.Get(t.Context(), "run"); err == nil {
			id = regexp.MustCompile(`"run_id":"([^"]+)"`).FindStringSubmatch(string(e.Value()))[1]
		}
	}
	quit := make(chan struct{})
	defer close(quit)
	go func() {
		for {
			_ = nc.Publish("memtox.default.over", []byte(id))
			select {
			case <-quit:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	// Were the coordinator the faster one, nothing would be dropped: it sleeps meanwhile.
	if err := run.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	worker := c.spawn("worker", "--queue", url, "--concurrency", "1")
	for end := time.Now().Add(30 * time.Second); lies.Load() == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := run.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- run.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%v\n%s", err, run.text())
		}
	case <-time.After(time.Minute):
		t.Fatalf("the run does not end:\n%s\n%s", run.text(), worker.text())
	}
	worker.ends(t)
	sameRows(t, want, filepath.Join(c.dir, "spread"))
	if !strings.Contains(run.text(), "they are handed out again") {
		t.Errorf("no span was dropped, so nothing was shown:\n%s", run.text())
	}
}
