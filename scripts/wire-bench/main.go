//go:build unix

// Wire-bench measures what a call to a model's server costs the client: throughput
// against the ideal of a server that takes a fixed time, processor time a call, and
// whether memory stays flat.
//
//	go run ./scripts/wire-bench                          # 64 and 256 in flight
//	go run ./scripts/wire-bench -in-flight 64 -calls 100000
//
// The server is `memtox serve-model --latency 100ms` in a process of its own, so its
// processor time is not counted; but it wants processors too, and on a small or busy
// machine it takes them from the client. The ideal is in-flight ÷ latency. Throughput
// is given as the best of several rounds, processor time as user plus system time of
// this process over all rounds.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/internal/remote"
)

func main() {
	flights := flag.String("in-flight", "64,256", "how many calls are in flight, a list")
	calls := flag.Int("calls", 10_000, "calls a round")
	rounds := flag.Int("rounds", 3, "rounds")
	latency := flag.Duration("latency", 100*time.Millisecond, "how long the server takes for an answer")
	flag.Parse()
	if err := bench(*flights, *calls, *rounds, *latency); err != nil {
		fmt.Fprintln(os.Stderr, "wire-bench:", err)
		os.Exit(1)
	}
}

func bench(flights string, calls, rounds int, latency time.Duration) error {
	url, stop, err := serve(latency)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("%9s %10s %10s %8s %12s %12s %10s\n", "in flight", "calls/s", "ideal", "share", "cpu/call", "heap before", "after")
	for _, s := range strings.Split(flights, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return fmt.Errorf("-in-flight: %q is no number of calls", s)
		}
		if err := measure(url, n, calls, rounds, latency); err != nil {
			return err
		}
	}
	return nil
}

// serve starts the server and returns its address.
func serve(latency time.Duration) (url string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "wire-bench")
	if err != nil {
		return "", nil, err
	}
	binary := filepath.Join(dir, "memtox")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/memtox").CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("building memtox: %w\n%s", err, out)
	}
	c := exec.Command(binary, "serve-model", "--addr", "127.0.0.1:0", "--latency", latency.String())
	pipe, err := c.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	c.Stdout = c.Stderr
	if err := c.Start(); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("starting the server: %w", err)
	}
	stop = func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		os.RemoveAll(dir)
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		if i := strings.Index(lines.Text(), "http://"); i >= 0 {
			host, _, _ := strings.Cut(strings.Fields(lines.Text()[i:])[0][len("http://"):], "/")
			go func() {
				for lines.Scan() { // it must not block on what it says
				}
			}()
			return "http://" + strings.TrimRight(host, ".,;") + "/v1", stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("the server did not say where it is")
}

func measure(url string, inFlight, calls, rounds int, latency time.Duration) error {
	client := remote.New(remote.Options{InFlight: inFlight})
	defer client.Close()
	m, err := openai.New(model.ServerOptions{Model: "reference", Address: url, Client: client})
	if err != nil {
		return err
	}
	if err := round(m, inFlight, inFlight); err != nil { // connections are opened once
		return err
	}
	before := heap()
	began := cpu()
	best := 0.0
	for range rounds {
		start := time.Now()
		if err := round(m, inFlight, calls); err != nil {
			return err
		}
		best = max(best, float64(calls)/time.Since(start).Seconds())
	}
	used := (cpu() - began) / time.Duration(calls*rounds)
	ideal := float64(inFlight) / latency.Seconds()
	fmt.Printf("%9d %10.0f %10.0f %7.1f%% %12v %11.1fM %9.1fM\n", inFlight, best, ideal, 100*best/ideal, used.Round(time.Microsecond), before, heap())
	return nil
}

// round makes the calls.
func round(m model.Model, inFlight, calls int) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range inFlight {
		group.Go(func() {
			for next.Add(1) <= int64(calls) && failed.Load() == nil {
				_, err := m.Next(context.Background(), model.Request{Messages: []model.Message{
					{Role: model.System, Content: "You are an assistant with a memory. Today is 2026-03-02."},
					{Role: model.User, Content: "Where is the offsite in May, and who books the train?"}}})
				if err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// cpu is the processor time of this process, user and system.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is what lives, in MiB.
func heap() float64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc) / (1 << 20)
}
