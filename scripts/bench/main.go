//go:build unix

// Bench measures what a run costs: trials a second over all default arms, resident
// memory, bytes a trial in Parquet, and the time of `memtox version`, for runs of
// growing size.
//
//	go run ./scripts/bench              # 1,000 to 100,000 trials
//	go run ./scripts/bench -most 1000000
//	go test -bench Write -benchmem ./defenses/...   # the decisions themselves
//
// The sets are memtox-smoke repeated under new ids, so every size has the same
// mix; beyond the size of the built-in benchmark the arms multiply, not the
// cases. Machines are noisy: quote ratios and medians.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memtox/memtox/datasets"
)

const (
	arms     = 12   // two agents under six defenses: the default
	mostCase = 6240 // about the size of memtox-bench
)

func main() {
	most := flag.Int("most", 100_000, "largest run, in trials")
	flag.Parse()
	if err := bench(*most); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(most int) error {
	dir, err := os.MkdirTemp("", "memtox-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "memtox")
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/memtox").CombinedOutput(); err != nil {
		return fmt.Errorf("building memtox: %w\n%s", err, out)
	}
	start, err := version(bin)
	if err != nil {
		return err
	}
	fmt.Printf("memtox version: %.1f ms (median of 15)\n\n", start)
	fmt.Printf("%10s %10s %12s %10s %14s\n", "trials", "seconds", "trials/s", "MB", "bytes/trial")
	for n := 1000; n <= most; n *= 10 {
		if err := one(dir, bin, n); err != nil {
			return err
		}
	}
	return nil
}

func version(bin string) (ms float64, err error) {
	var took []float64
	for range 15 {
		began := time.Now()
		if err := exec.Command(bin, "version").Run(); err != nil {
			return 0, fmt.Errorf("memtox version: %w", err)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func one(dir, bin string, trials int) error {
	cases := min(mostCase, (trials+arms-1)/arms)
	file, err := set(dir, cases)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	out := filepath.Join(dir, fmt.Sprint("run", trials))
	defer os.RemoveAll(out)
	cmd := exec.Command(bin, "run", "--dataset", file, "--format", "json", "--defense", defenses(trials/(cases*arms)), "--out", out)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("memtox run: %w\n%s", err, stderr.Bytes())
	}
	took := time.Since(began).Seconds()
	var printed struct{ Trials int }
	if err := json.Unmarshal(stdout.Bytes(), &printed); err != nil {
		return fmt.Errorf("reading what the run printed: %w", err)
	}
	size := int64(0)
	for _, name := range []string{"trials.parquet", "decisions.parquet"} {
		st, err := os.Stat(filepath.Join(out, name))
		if err != nil {
			return err
		}
		size += st.Size()
	}
	mb := 0.0
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		mb = float64(u.Maxrss) / 1024
	}
	fmt.Printf("%10d %10.2f %12.0f %10.0f %14.0f\n", printed.Trials, took, float64(printed.Trials)/took, mb, float64(size)/float64(printed.Trials))
	return nil
}

// defenses are the default ones, n times (at least once) under different names.
func defenses(n int) string {
	var list []string
	for i := range max(1, n) {
		for _, d := range []string{"none", "keyword", "provenance", "contradiction", "anomaly", "guard"} {
			if i > 0 {
				d = fmt.Sprintf("%s-%d=%s", d, i+1, d)
			}
			list = append(list, d)
		}
	}
	return strings.Join(list, ",")
}

// set writes a file of n cases.
func set(dir string, n int) (string, error) {
	smoke, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "cases.jsonl")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(f)
	for i := range n {
		c := smoke.Cases[i%len(smoke.Cases)]
		c.ID, c.Twin = fmt.Sprintf("m-%08x", i+1), ""
		if err := datasets.WriteJSONL(w, []datasets.Case{c}); err != nil {
			return "", err
		}
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	return path, f.Close()
}
