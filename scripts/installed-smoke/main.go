// Command installed-smoke runs trials through the real OpenClaw, HERMES and mem0, with
// the reference model behind them: no key, nothing beyond this machine.
//
//	go run ./scripts/installed-smoke                what is missing is installed from its registry, and kept
//	go run ./scripts/installed-smoke -if-installed  does nothing for a product that is not there
//
// What is checked is the way through the product: every trial is scored, undefended the
// product is harmed, and the gates of the guard hold on to what it does. The versions are
// those of the products' files.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	products := flag.String("products", "mem0,hermes,openclaw", "which products")
	ifInstalled := flag.Bool("if-installed", false, "leave out a product that is not installed")
	limit := flag.Int("limit", 10, "cases; each is run in two arms")
	flag.Parse()
	ctx, stop := context.WithTimeout(context.Background(), 40*time.Minute)
	defer stop()
	if err := smoke(ctx, strings.Split(*products, ","), *ifInstalled, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "installed-smoke:", err)
		os.Exit(1)
	}
}

func smoke(ctx context.Context, products []string, ifInstalled bool, limit int) error {
	dir, err := os.MkdirTemp("", "installed-smoke")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	memtox := filepath.Join(dir, "memtox")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", memtox, "./cmd/memtox").CombinedOutput(); err != nil {
		return fmt.Errorf("building memtox: %w: %s", err, out)
	}
	for _, p := range products {
		fmt.Printf("== %s\n", p)
		doctor := func() ([]byte, error) {
			return exec.CommandContext(ctx, memtox, "agents", "doctor", p).CombinedOutput()
		}
		_, err := doctor()
		switch {
		case err == nil:
		case ifInstalled:
			fmt.Println("left out: memtox agents doctor", p, "says that a run would not work")
			continue
		default:
			if err := show(exec.CommandContext(ctx, memtox, "agents", "install", p)); err != nil {
				return fmt.Errorf("installing %s: %w", p, err)
			}
			if said, err := doctor(); err != nil {
				return fmt.Errorf("%s is installed, and would not work: %s", p, said)
			}
		}
		if err := trials(ctx, memtox, p, filepath.Join(dir, p), limit); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

func show(c *exec.Cmd) error {
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}

// arm is what is read of one in the JSON of a run.
type arm struct {
	Defense     string
	Harm        rate
	Done        rate `json:"done_benign"`
	Scored      int
	NotScored   int      `json:"not_scored"`
	NotEnforced []string `json:"not_enforced"`
}

type rate struct {
	K float64
	N int
}

// trials runs the same cases undefended and behind the guard.
func trials(ctx context.Context, memtox, product, dir string, limit int) error {
	cmd := exec.CommandContext(ctx, memtox, "run", "--agent", "installed:"+product, "--model", "reference:naive",
		"--defense", "none,guard", "--limit", fmt.Sprint(limit), "--format", "json", "--out", dir)
	cmd.Stderr = os.Stderr
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	var run struct{ Arms []arm }
	if err := json.Unmarshal(out, &run); err != nil {
		return fmt.Errorf("reading what run printed: %w", err)
	}
	scored, harmed := 0, 0.
	for _, a := range run.Arms {
		scored += a.Scored
		fmt.Printf("%s: harm %g of %d, benign tasks done %g of %d\n", a.Defense, a.Harm.K, a.Harm.N, a.Done.K, a.Done.N)
		switch {
		case a.NotScored > 0:
			return fmt.Errorf("%s: %d of %d trials are not scored", a.Defense, a.NotScored, a.Scored+a.NotScored)
		case a.Defense == "none":
			harmed = a.Harm.K
		case len(a.NotEnforced) > 0:
			return fmt.Errorf("%s: gates that had nothing to hold on to: %v", a.Defense, a.NotEnforced)
		}
	}
	fmt.Printf("%d trials in %v\n", scored, time.Since(began).Round(time.Second))
	if harmed == 0 {
		return fmt.Errorf("of %d trials undefended none harmed: the way through the product is broken", scored)
	}
	return nil
}
