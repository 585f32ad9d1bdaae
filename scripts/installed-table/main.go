// Command installed-table makes the table of docs/installed.md: what becomes of the same
// cases with the installed products, under nothing, their own defenses, attributions alone
// and the guard, at both ends of compliance and by the channel that the content came by.
//
//	go run ./scripts/installed-table
//
// It takes hours. It can be stopped at any time, and goes on where it was: its runs lie in
// --out. The page is written once all of them are finished.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// products are what is run. own is the arm of a product's own defenses that it has.
var products = []struct{ name, title, own, vias string }{
	{"hermes", "HERMES", "product-on", "mcp,file,page,shell,user,instruction,skill,mcp+later"},
	{"openclaw", "OpenClaw", "product-off", "mcp,file,page,shell,user,instruction,mcp+later"},
}

func main() {
	out := flag.String("out", "runs/installed", "where the runs lie")
	limit := flag.Int("limit", 100, "cases, of both labels")
	only := flag.String("only", "", "one product; its table is printed, and no page is written")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := table(ctx, *out, *only, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "installed-table:", err)
		os.Exit(1)
	}
}

func table(ctx context.Context, out, only string, limit int) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	memtox := filepath.Join(out, "memtox")
	if said, err := exec.CommandContext(ctx, "go", "build", "-o", memtox, "./cmd/memtox").CombinedOutput(); err != nil {
		return fmt.Errorf("building memtox: %w: %s", err, said)
	}
	var b strings.Builder
	for _, p := range products {
		if only != "" && only != p.name {
			continue
		}
		args := []string{"run", "--resume", "--agent", "installed:" + p.name, "--via", p.vias, "--model", "reference",
			"--defense", "none," + p.own + ",attribution-only,guard", "--split", "report", "--limit", fmt.Sprint(limit),
			"--format", "json", "--out", filepath.Join(out, p.name)}
		cmd := exec.CommandContext(ctx, memtox, args...)
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		said, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("memtox %s: %w", strings.Join(args, " "), err)
		}
		var r run
		if err := json.Unmarshal(said, &r); err != nil {
			return fmt.Errorf("reading what memtox run printed: %w", err)
		}
		r.write(&b, p.title)
	}
	if only != "" {
		_, err := fmt.Print(b.String())
		return err
	}
	return renew("docs/installed.md", b.String())
}

// run is what is read of the JSON of a run.
type run struct{ Arms []arm }

type arm struct {
	Model, Defense string
	figures
	Wrong       rate
	Excess      *float64 `json:"excess_per_100"`
	NotScored   int      `json:"not_scored"`
	NotEnforced []string `json:"not_enforced"`
	Vias        []struct {
		Name string
		figures
	}
}

type figures struct {
	Harm rate
	Done rate `json:"done_benign"`
}

type rate struct {
	K float64
	N int
}

func (r rate) String() string {
	if r.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%g/%d", r.K, r.N)
}

// write writes a product's arms, and harm by channel.
func (r *run) write(b *strings.Builder, title string) {
	var vias []string
	for _, v := range r.Arms[0].Vias {
		vias = append(vias, v.Name)
	}
	fmt.Fprintf(b, "\n| %s | model | harm | done, benign | wrong | questions too many per 100 | not scored | harm by %s |\n",
		title, strings.Join(vias, ", "))
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---|\n")
	for _, a := range r.Arms {
		excess := "–"
		if a.Excess != nil {
			excess = fmt.Sprintf("%.1f", *a.Excess)
		}
		var by []string
		for _, v := range a.Vias {
			by = append(by, v.Harm.String())
		}
		name := a.Defense
		if len(a.NotEnforced) > 0 {
			name += " (not enforced: " + strings.Join(a.NotEnforced, ", ") + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %v | %v | %v | %s | %d | %s |\n", name, strings.TrimPrefix(a.Model, "reference:"), a.Harm,
			a.Done, a.Wrong, excess, a.NotScored, strings.Join(by, ", "))
	}
}

// made is what the page has of this program.
var made = regexp.MustCompile(`(?s)(<!-- go run \./scripts/installed-table -->\n).*?(<!-- end -->)`)

func renew(page, table string) error {
	data, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if !made.Match(data) {
		return fmt.Errorf("%s has no place for the table: a line <!-- go run ./scripts/installed-table -->, and <!-- end -->", page)
	}
	data = made.ReplaceAll(data, []byte("${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}"))
	return os.WriteFile(page, data, 0o644)
}
