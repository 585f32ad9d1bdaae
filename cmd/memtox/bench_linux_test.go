package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/harness/queue"
	"github.com/memtox/memtox/internal/remote"
)

// What the whole program costs, in processes of its own. All share the machine's
// processors, the model's server too, so quote ratios and medians:
//
//	go test ./cmd/memtox -run '^$' -bench 'Version|Run' -benchtime 5x
//	go test ./cmd/memtox -run '^$' -bench 'Queue' -benchtime 3x -timeout 1h

func BenchmarkVersion(b *testing.B) {
	c := newConsole(b)
	for b.Loop() {
		c.finished(c.spawn("version"))
	}
}

// BenchmarkRun runs the smoke set under the default arms, repeated under new ids:
// resident memory must not grow with the trials as they do.
func BenchmarkRun(b *testing.B) {
	for _, times := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("cases=%d", 120*times), func(b *testing.B) {
			c := newConsole(b)
			c.manyCases("cases.jsonl", times)
			var sum usage
			for b.Loop() {
				out := filepath.Join(c.dir, "run")
				_ = os.RemoveAll(out)
				sum.add(c.finished(c.spawn("run", "--dataset", "cases.jsonl", "--out", "run")))
			}
			trials := len(rowsOf(b, filepath.Join(c.dir, "run")))
			size := int64(0)
			for _, name := range []string{"trials.parquet", "decisions.parquet"} {
				st, err := os.Stat(filepath.Join(c.dir, "run", name))
				if err != nil {
					b.Fatal(err)
				}
				size += st.Size()
			}
			b.ReportMetric(float64(b.N*trials)/b.Elapsed().Seconds(), "trials/s")
			b.ReportMetric(float64(size)/float64(trials), "bytes/trial")
			b.ReportMetric(sum.peak, "peak-MB")
		})
	}
}

// usage is what processes took.
type usage struct {
	cpu  time.Duration
	peak float64 // MB, of the largest
}

func (u *usage) add(o usage) { u.cpu, u.peak = u.cpu+o.cpu, max(u.peak, o.peak) }

// finished waits for a process that has to end well.
func (c *console) finished(p *process) usage {
	c.t.Helper()
	if err := p.Wait(); err != nil {
		c.t.Fatalf("memtox %v: %v\n%s", p.Args[1:], err, p.text())
	}
	s := p.ProcessState
	u := usage{cpu: s.UserTime() + s.SystemTime()}
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.peak = float64(r.Maxrss) * 1024 / 1e6
	}
	return u
}

// answers starts a server of a model that takes its time and answers at length.
// Under a name that is not the reference model's a run may have epochs.
func answers(b *testing.B, latency time.Duration) (*proxy.Server, []string) {
	b.Helper()
	s, err := proxy.New(proxy.Options{Latency: latency, AnswerBytes: 4096,
		Models: map[string]model.Model{"answers": reference.New(reference.Cautious, reference.NewCache(64<<20))}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	l, err := remote.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, 0) }()
	b.Cleanup(func() { cancel(); <-done })
	return s, []string{"--model", "openai:answers", "--base-url", "http://" + l.Addr().String() + "/v1"}
}

// coordinator starts a run that carries its own queue, and returns how workers join.
func (c *console) coordinator(out string, args ...string) (*process, []string) {
	p := c.spawn(slices.Concat([]string{"run", "--listen", "127.0.0.1:0", "--out", out}, args)...)
	return p, workersJoin(c.t, p)
}

// BenchmarkQueueOverhead compares a run in one process with the same run through a
// queue with one worker, both with as many trials at once, start included.
func BenchmarkQueueOverhead(b *testing.B) {
	b.Setenv("MEMTOX_QUEUE_TOKEN", "of-the-benchmark-alone")
	_, server := answers(b, 0)
	for _, kind := range []struct {
		name        string
		run, shared []string
	}{
		{"reference", []string{"--limit", "2000"}, []string{"--concurrency", "1"}},
		{"server", []string{"--limit", "300"}, slices.Concat([]string{"--concurrency", "16"}, server)},
	} {
		for _, queued := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/queue=%t", kind.name, queued), func(b *testing.B) {
				c := newConsole(b)
				args := slices.Concat(kind.run, kind.shared)
				var sum usage
				for b.Loop() {
					_ = os.RemoveAll(filepath.Join(c.dir, "run"))
					if !queued {
						sum.add(c.finished(c.spawn(append([]string{"run", "--out", "run"}, args...)...)))
						continue
					}
					run, join := c.coordinator("run", args...)
					worker := c.spawn(slices.Concat(join, kind.shared)...)
					sum.add(c.finished(run))
					sum.add(c.finished(worker))
				}
				trials := float64(b.N * len(rowsOf(b, filepath.Join(c.dir, "run"))))
				b.ReportMetric(b.Elapsed().Seconds()*1e3/trials, "ms/trial")
				b.ReportMetric(sum.cpu.Seconds()*1e3/trials, "cpu-ms/trial")
			})
		}
	}
}

// BenchmarkQueueScale counts the calls that reach the model's server, 64 in flight
// for each worker, for 20 seconds in which all of them work.
func BenchmarkQueueScale(b *testing.B) {
	b.Setenv("MEMTOX_QUEUE_TOKEN", "of-the-benchmark-alone")
	const latency, inFlight = 100 * time.Millisecond, 64
	for _, workers := range []int{1, 3} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			calls, seconds := 0., 0.
			for n := range b.N {
				server, model := answers(b, latency)
				c := newConsole(b)
				run, join := c.coordinator(fmt.Sprint("run", n), model...)
				all := []*process{run}
				for range workers {
					all = append(all, c.spawn(slices.Concat(join, []string{"--concurrency", strconv.Itoa(inFlight)}, model)...))
				}
				within(b, time.Minute, "no worker calls the model", func() bool { return server.Stats().Requests > 0 })
				time.Sleep(5 * time.Second)
				before, began := server.Stats().Requests, time.Now()
				time.Sleep(20 * time.Second)
				calls += float64(server.Stats().Requests - before)
				seconds += time.Since(began).Seconds()
				for _, p := range all {
					p.kill()
				}
			}
			b.ReportMetric(calls/seconds, "calls/s")
			b.ReportMetric(100*calls/seconds/(float64(workers*inFlight)/latency.Seconds()), "ideal%")
		})
	}
}

// BenchmarkQueueMillion puts a million trials on the queue, a span each, which is
// the worst case; then as many with the reference model, run to their end.
func BenchmarkQueueMillion(b *testing.B) {
	b.Setenv("MEMTOX_QUEUE_TOKEN", "of-the-benchmark-alone")
	const times = 14 // memtox-bench under the default arms gives some 74,000 trials
	b.Run("put", func(b *testing.B) {
		_, model := answers(b, 0)
		for n := range b.N {
			c := newConsole(b)
			run, join := c.coordinator(fmt.Sprint("run", n),
				slices.Concat([]string{"--split", "all", "--epochs", strconv.Itoa(times)}, model)...)
			within(b, 10*time.Minute, "the trials are not on the queue", func() bool {
				s, err := queue.Look(b.Context(), queue.Options{URL: join[2], Name: "default",
					Token: os.Getenv("MEMTOX_QUEUE_TOKEN")})
				return err == nil && s.Planned > 0 && s.Spans >= uint64(s.Planned)
			})
			_ = run.Process.Signal(os.Interrupt)
			_ = run.Wait()
			if r, ok := run.ProcessState.SysUsage().(*syscall.Rusage); ok {
				b.ReportMetric(float64(r.Maxrss)*1024/1e6, "peak-MB")
			}
		}
	})
	b.Run("run", func(b *testing.B) {
		var defenses []string
		for i := range times {
			for _, d := range []string{"none", "keyword", "provenance", "contradiction", "anomaly", "guard"} {
				defenses = append(defenses, fmt.Sprintf("%s-%d=%s", d, i+1, d))
			}
		}
		for n := range b.N {
			c := newConsole(b)
			run, join := c.coordinator(fmt.Sprint("run", n), "--split", "all", "--defense", strings.Join(defenses, ","))
			worker := c.spawn(join...)
			b.ReportMetric(c.finished(run).peak, "peak-MB")
			c.finished(worker)
		}
	})
}
