//go:build linux

// Queue-bench measures what a queue costs and how far workers add up.
//
//	go run ./scripts/queue-bench overhead   # a trial through a queue against the same trial without
//	go run ./scripts/queue-bench scale      # calls a second of 1 and of 3 workers, 64 in flight each
//	go run ./scripts/queue-bench million    # a million trials on the queue: time and memory
//	go run ./scripts/queue-bench million -complete   # and run to their end
//
// Overhead is wall time and processor time a trial of coordinator and one worker
// together, start included, less those of `memtox run` in one process. Calls are
// counted where they arrive, between two points of time at which all workers work.
//
// Every part is a process of its own: the coordinator, which carries the NATS
// server (--listen), the workers, and the model's server, which is this process and
// serves what `memtox serve-model --latency 100ms --answer-bytes 4096` serves. All
// share the machine's processors, so the model's server takes from the workers what
// a real one would not; its processor time is printed apart, and so is what other
// programs on the machine used meanwhile.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/harness/queue"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: queue-bench overhead|scale|million [flags]")
		os.Exit(2)
	}
	fs := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	b := &bench{}
	fs.StringVar(&b.bin, "memtox", "", "the program to measure; else it is built")
	fs.IntVar(&b.rounds, "rounds", 3, "rounds; figures are medians")
	fs.DurationVar(&b.warm, "warm", 5*time.Second, "scale: how long to wait before counting")
	fs.DurationVar(&b.count, "count", 20*time.Second, "scale: how long to count")
	fs.DurationVar(&b.latency, "latency", 100*time.Millisecond, "how long the model's server takes")
	fs.IntVar(&b.answer, "answer-bytes", 4096, "length of its answers")
	fs.IntVar(&b.inFlight, "concurrency", 64, "scale: calls in flight, each worker")
	fs.IntVar(&b.trials, "trials", 1_000_000, "million: how many")
	fs.BoolVar(&b.complete, "complete", false, "million: run them too, with the reference model")
	_ = fs.Parse(os.Args[2:])
	var err error
	switch os.Args[1] {
	case "overhead":
		err = b.run(b.overhead)
	case "scale":
		err = b.run(b.scale)
	case "million":
		err = b.run(b.million)
	default:
		err = fmt.Errorf("there is no %q: overhead, scale, million", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "queue-bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	bin                  string
	rounds, inFlight     int
	answer, trials       int
	complete             bool
	warm, count, latency time.Duration

	dir    string
	server *proxy.Server
	url    string // of the model's server
}

func (b *bench) run(what func() error) (err error) {
	if b.dir, err = os.MkdirTemp("", "queue-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.bin == "" {
		b.bin = filepath.Join(b.dir, "memtox")
		if out, err := exec.Command("go", "build", "-o", b.bin, "./cmd/memtox").CombinedOutput(); err != nil {
			return fmt.Errorf("building memtox: %w\n%s", err, out)
		}
	}
	return what()
}

// serve starts the model's server.
func (b *bench) serve(latency time.Duration) (stop func(), err error) {
	if b.server, err = proxy.New(proxy.Options{Latency: latency, AnswerBytes: b.answer,
		// Under a name that is not the reference model's a run may have epochs.
		Models: map[string]model.Model{"answers": reference.New(reference.Cautious, reference.NewCache(64<<20))}}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l, err := proxy.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		cancel()
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- b.server.Serve(ctx, l, 0) }()
	b.url = "http://" + l.Addr().String() + "/v1"
	return func() { cancel(); <-done }, nil
}

// process is a memtox process.
type process struct {
	*exec.Cmd
	mu      sync.Mutex
	out     bytes.Buffer // what it says
	printed bytes.Buffer // its result
}

func (p *process) Write(d []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(d)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (b *bench) start(args ...string) (*process, error) {
	p := &process{Cmd: exec.Command(b.bin, args...)}
	p.Dir, p.Stdout, p.Stderr = b.dir, &p.printed, p
	p.Env = append(os.Environ(), "MEMTOX_QUEUE_TOKEN=of-the-benchmark-alone") // coordinator and workers
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// used is the processor time of a finished process.
func (p *process) used() time.Duration {
	return p.ProcessState.UserTime() + p.ProcessState.SystemTime()
}

// cpu is the processor time of a living process.
func cpu(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond // a hundred ticks a second
}

// machine is the processor time of everything on it.
func machine() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	ticks := 0
	for i, f := range strings.Fields(line)[1:9] {
		n, _ := strconv.Atoi(f)
		if i != 3 && i != 4 { // idle, and waiting for a disk
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// peak is the most memory that a living process had, in MB.
func peak(pid int) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		return 0
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return float64(kb) * 1024 / 1e6
}

// coordinator starts a run that carries its own queue and returns the queue's
// address.
func (b *bench) coordinator(out string, args ...string) (*process, string, error) {
	p, err := b.start(append(append([]string{"run", "--listen", "127.0.0.1:0", "--out", out}, args...), "--format", "json")...)
	if err != nil {
		return nil, "", err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if m := regexp.MustCompile(`nats://[0-9.:]+`).FindString(p.text()); m != "" {
			return p, m, nil
		}
		if strings.Contains(p.text(), "memtox: --") {
			break
		}
	}
	p.kill()
	return nil, "", fmt.Errorf("the coordinator names no address:\n%s", p.text())
}

func (b *bench) ended(p *process) error {
	if err := p.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, p.text())
	}
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// overhead compares a run in one process with the same run through a queue with one
// worker, both with as many places.
func (b *bench) overhead() error {
	stop, err := b.serve(0)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("%-32s %8s %22s %22s %22s\n", "", "", "without a queue", "with one", "overhead")
	fmt.Printf("%-32s %8s %11s %10s %11s %10s %11s %10s\n", "", "trials", "wall ms", "cpu ms", "wall ms", "cpu ms", "wall ms", "cpu ms")
	for i, k := range []struct {
		name        string
		run, shared []string
	}{
		{"reference, twelve trials a span", []string{"--limit", "2000"}, []string{"--concurrency", "1"}},
		{"server, one trial a span", []string{"--limit", "300"}, []string{"--concurrency", "16", "--model", "openai:answers", "--base-url", b.url}},
	} {
		args := slices.Concat(k.run, k.shared)
		var wall, used [2][]float64
		trials := 0
		for n := range b.rounds {
			out := fmt.Sprintf("overhead-%d-%d", i, n)
			note := func(way int, began time.Time, ps ...*process) error {
				spent := time.Duration(0)
				for _, p := range ps {
					if err := b.ended(p); err != nil {
						return err
					}
					spent += p.used()
				}
				took := time.Since(began)
				var err error
				if trials, err = ps[0].trials(); err != nil {
					return err
				}
				wall[way] = append(wall[way], took.Seconds()*1e3/float64(trials))
				used[way] = append(used[way], spent.Seconds()*1e3/float64(trials))
				return os.RemoveAll(filepath.Join(b.dir, out))
			}
			began := time.Now()
			p, err := b.start(append([]string{"run", "--format", "json", "--out", out}, args...)...)
			if err == nil {
				err = note(0, began, p)
			}
			if err != nil {
				return err
			}
			began = time.Now()
			c, url, err := b.coordinator(out, args...)
			if err != nil {
				return err
			}
			w, err := b.start(append([]string{"worker", "--queue", url}, k.shared...)...)
			if err == nil {
				err = note(1, began, c, w)
			}
			if err != nil {
				return err
			}
		}
		w0, u0, w1, u1 := median(wall[0]), median(used[0]), median(wall[1]), median(used[1])
		fmt.Printf("%-32s %8d %11.3f %10.3f %11.3f %10.3f %11.3f %10.3f\n", k.name, trials, w0, u0, w1, u1, w1-w0, u1-u0)
	}
	return nil
}

// trials is how many trials a finished run says that it has.
func (p *process) trials() (int, error) {
	var printed struct{ Trials int }
	err := json.Unmarshal(p.printed.Bytes(), &printed)
	if err == nil && printed.Trials == 0 {
		err = errors.New("the run has no trials")
	}
	return printed.Trials, err
}

// scale counts the calls that reach the model's server.
func (b *bench) scale() error {
	stop, err := b.serve(b.latency)
	if err != nil {
		return err
	}
	defer stop()
	ideal := float64(b.inFlight) / b.latency.Seconds()
	fmt.Printf("ideal of one worker: %.0f calls/s\n", ideal)
	fmt.Printf("%7s %8s %8s   %-33s  %s\n", "", "", "", "processor ms a call", "processors busy")
	fmt.Printf("%7s %8s %8s   %9s %11s %11s  %7s %7s\n", "workers", "calls/s", "trials/s", "worker", "coordinator", "model", "ours", "others")
	rates := map[int][]float64{}
	for n := range b.rounds {
		for _, workers := range []int{1, 3} {
			r, err := b.scaleOnce(n, workers)
			if err != nil {
				return err
			}
			rates[workers] = append(rates[workers], r)
		}
	}
	one, three := median(rates[1]), median(rates[3])
	fmt.Printf("median: 1 worker %.0f calls/s, 3 workers %.0f calls/s: %.2f times\n", one, three, three/one)
	return nil
}

func (b *bench) scaleOnce(n, workers int) (float64, error) {
	out := fmt.Sprintf("scale-%d-%d", n, workers)
	c, url, err := b.coordinator(out, "--model", "openai:answers", "--base-url", b.url)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(filepath.Join(b.dir, out))
	all := []*process{c}
	defer func() {
		for _, p := range all {
			p.kill()
		}
	}()
	for range workers {
		w, err := b.start("worker", "--queue", url, "--concurrency", strconv.Itoa(b.inFlight), "--model", "openai:answers", "--base-url", b.url)
		if err != nil {
			return 0, err
		}
		all = append(all, w)
	}
	for end := time.Now().Add(time.Minute); b.server.Stats().Requests == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(b.warm)
	o := queue.Options{URL: url, Name: "default"}
	finished := func() (n int64) {
		if s, err := queue.Look(context.Background(), o); err == nil {
			for _, w := range s.Workers {
				n += w.Finished
			}
		}
		return n
	}
	spent := func() (w, co, s, m time.Duration) {
		for _, p := range all[1:] {
			w += cpu(p.Process.Pid)
		}
		return w, cpu(c.Process.Pid), cpu(os.Getpid()), machine()
	}
	trials, asked := finished(), time.Now()
	w0, c0, s0, m0 := spent()
	calls, began := b.server.Stats().Requests, time.Now()
	time.Sleep(b.count)
	calls = b.server.Stats().Requests - calls
	seconds := time.Since(began).Seconds()
	w1, c1, s1, m1 := spent()
	trials = finished() - trials
	rate := float64(calls) / seconds
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(calls) }
	ours := w1 - w0 + c1 - c0 + s1 - s0
	fmt.Printf("%7d %8.0f %8.0f   %9.3f %11.3f %11.3f  %7.2f %7.2f\n", workers, rate, float64(trials)/time.Since(asked).Seconds(),
		ms(w1-w0), ms(c1-c0), ms(s1-s0), ours.Seconds()/seconds, (m1-m0-ours).Seconds()/seconds)
	return rate, nil
}

// million hands out trials of one span each, the worst case, and looks at the
// coordinator until all are on the queue. With -complete it then does as many with
// the reference model, to their end.
func (b *bench) million() error {
	stop, err := b.serve(0)
	if err != nil {
		return err
	}
	defer stop()
	const cases, arms = 6237, 12 // memtox-bench under the default agents and defenses
	times := (b.trials + cases*arms - 1) / (cases * arms)
	c, url, err := b.coordinator("million", "--split", "all", "--model", "openai:answers", "--base-url", b.url, "--epochs", strconv.Itoa(times))
	if err != nil {
		return err
	}
	defer c.kill()
	began := time.Now()
	var s *queue.State
	for {
		if s, err = queue.Look(context.Background(), queue.Options{URL: url, Name: "default"}); err != nil {
			return err
		}
		fmt.Printf("%6.1f s: %d of %d trials on the queue, a span each; coordinator: peak %.0f MB, %.1f s of processor time\n",
			time.Since(began).Seconds(), s.Spans, s.Planned, peak(c.Process.Pid), cpu(c.Process.Pid).Seconds())
		if s.Planned > 0 && s.Spans >= uint64(s.Planned) {
			break
		}
		if time.Since(began) > 10*time.Minute {
			return errors.New("that takes too long")
		}
	}
	if !b.complete {
		return nil
	}
	c.kill()
	var defenses []string
	for i := range times {
		for _, d := range []string{"none", "keyword", "provenance", "contradiction", "anomaly", "guard"} {
			if i > 0 {
				d = fmt.Sprintf("%s-%d=%s", d, i+1, d)
			}
			defenses = append(defenses, d)
		}
	}
	began = time.Now()
	if c, url, err = b.coordinator("complete", "--split", "all", "--defense", strings.Join(defenses, ",")); err != nil {
		return err
	}
	defer c.kill()
	w, err := b.start("worker", "--queue", url)
	if err != nil {
		return err
	}
	defer w.kill()
	if err := errors.Join(b.ended(c), b.ended(w)); err != nil {
		return err
	}
	r, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not say how much memory a process had")
	}
	fmt.Printf("%6.1f s: %d trials run and written; coordinator: peak %.0f MB, %.1f s of processor time; worker: %.1f s\n",
		time.Since(began).Seconds(), times*cases*arms, float64(r.Maxrss)*1024/1e6, c.used().Seconds(), w.used().Seconds())
	return nil
}
