package doccheck

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// "Add a metric" of CONTRIBUTING, followed in a program that is built from this tree and
// the entry of the page: the rate is in every table and may be compared and gated, and
// no test but that of docs/metrics.md asks for anything.
func TestAMetricIsOneEntry(t *testing.T) {
	long(t)
	top, dir := root(t), t.TempDir()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	entry := regexp.MustCompile("(?s)```go insert=(\\S+)\n(.*?)```").FindStringSubmatch(read("CONTRIBUTING.md"))
	if entry == nil {
		t.Fatal("CONTRIBUTING.md shows no entry")
	}
	table, rest, _ := strings.Cut(read(entry[1]), "\n)\n\nfunc ")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(top, filepath.FromSlash(entry[1])): filepath.Join(dir, "table.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"table.go": table + "\n" + entry[2] + ")\n\nfunc " + rest, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "memtox")
	run := func(in, program string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir = in
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(top, "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, "./cmd/memtox"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const name, head = "shown_in_vain", "in vain"
	for _, c := range []struct{ args, want string }{
		{"run --dataset memtox-smoke --agent hermes --defense none,keyword --limit 40 --out runs/mine", head},
		{"run --dataset memtox-smoke --agent hermes --defense none,keyword --limit 40 --format json", `"` + name + `":{"k":`},
		{"compare runs/mine --metric " + name, name},
		{"gate runs/mine --require none." + name + "<=0.9", "PASS"},
		{"report runs/mine --format markdown", "| " + head + " |"},
	} {
		if out, err := run(dir, bin, strings.Fields(c.args)...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("memtox %s: %v, no %q in\n%s", c.args, err, c.want, out)
		}
	}
	test := []string{"test", "-overlay", filepath.Join(dir, "overlay.json"), "-vet=off"}
	if out, err := run(top, "go", append(test, "./results/metric")...); err == nil || strings.Count(out, "--- FAIL") != 1 || !strings.Contains(out, "renew it with") {
		t.Errorf("the page on metrics does not ask to be renewed: %v\n%s", err, out)
	}
	for _, p := range []string{"summary", "render", "compare", "report"} {
		if out, err := run(top, "go", append(test, "./results/"+p)...); err != nil {
			t.Errorf("%s: %v\n%s", p, err, out)
		}
	}
}
