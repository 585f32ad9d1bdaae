package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The archives of two clones in different places are the same bytes, hold what
// they should, and the binary runs.
func TestTwoBuildsGiveTheSameBytes(t *testing.T) {
	if os.Getenv("MEMTOX_LONG") == "" {
		t.Skip("builds the release twice over: MEMTOX_LONG=1 has it do so")
	}
	target := runtime.GOOS + "/" + runtime.GOARCH
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	elsewhere := filepath.Join(t.TempDir(), "a", "tree")
	if err := os.CopyFS(elsewhere, tracked(t, root)); err != nil {
		t.Fatal(err)
	}
	var archives [][]byte
	for _, dir := range []string{root, elsewhere} {
		t.Chdir(dir)
		out := t.TempDir()
		if err := release(t.Context(), "v0.0.1-test", out, []string{target}); err != nil {
			t.Fatal(err)
		}
		name := "memtox_0.0.1-test_" + strings.ReplaceAll(target, "/", "_")
		b, err := os.ReadFile(filepath.Join(out, name+".tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, b)
		sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil || strings.Count(string(sums), "\n") != 2 {
			t.Errorf("checksums: %v\n%s", err, sums)
		}
		check := exec.Command("sha256sum", "-c", "SHA256SUMS")
		check.Dir = out
		if msg, err := check.CombinedOutput(); err != nil && check.Err == nil {
			t.Errorf("checksums: %v\n%s", err, msg)
		}
		var bom struct {
			BOMFormat  string
			Components []struct{ Name, Version string }
		}
		b, err = os.ReadFile(filepath.Join(out, name+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &bom); err != nil || bom.BOMFormat != "CycloneDX" || len(bom.Components) < 10 {
			t.Errorf("the bill of materials: %v, %d components", err, len(bom.Components))
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two trees of the same content give different archives")
	}
	z, err := gzip.NewReader(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	have := map[string]bool{}
	exe := filepath.Join(t.TempDir(), "memtox")
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		have[name] = true
		if name == "memtox" {
			f, err := os.OpenFile(exe, os.O_CREATE|os.O_WRONLY, 0o755)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(f, r); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []string{"memtox", "LICENSE", "NOTICE", "README.md", "man/man1/memtox.1", "man/man1/memtox-run.1",
		"completions/memtox.bash", "completions/memtox.zsh", "completions/memtox.fish", "completions/memtox.ps1"} {
		if !have[want] {
			t.Errorf("the archive lacks %s: %v", want, have)
		}
	}
	out, err := exec.Command(exe, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "memtox v0.0.1-test ") {
		t.Errorf("the binary: %v\n%s", err, out)
	}
	if bytes.Contains(archives[0], []byte(root)) {
		t.Error("a path of this machine stands in the archive")
	}
}

// tracked is the tree that a build reads: Go files and what they embed.
func tracked(t *testing.T, root string) *tree {
	t.Helper()
	return &tree{os.DirFS(root)}
}

func TestOnlyVersionsArePublished(t *testing.T) {
	for _, v := range []string{"", "1.2.3", "v1", "v1.2.3 -X main.x=y", "latest"} {
		if err := release(t.Context(), v, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "-version") {
			t.Errorf("%q: %v", v, err)
		}
	}
}
