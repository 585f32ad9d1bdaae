package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memtox/memtox/datasets"
)

const families = "../../datasets/bench/families"

func compileTo(t *testing.T) map[string][]byte {
	t.Helper()
	folder := t.TempDir()
	if err := run([]string{"-families", families, "-o", folder}, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, name := range []string{"cases.jsonl.zst", "cases.sha256"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	return files
}

func TestTheSameFamiliesGiveTheSameBytes(t *testing.T) {
	first, second := compileTo(t), compileTo(t)
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	set, err := datasets.Read(t.Context(), "cases.jsonl.zst", bytes.NewReader(first["cases.jsonl.zst"]))
	if err != nil {
		t.Fatal(err)
	}
	if want := set.SHA256 + "  cases.jsonl\n"; string(first["cases.sha256"]) != want {
		t.Errorf("the checksum file says %q, the cases are %q", first["cases.sha256"], want)
	}
}

func TestCheckSaysWhatItFound(t *testing.T) {
	var out bytes.Buffer
	lines := filepath.Join(t.TempDir(), "c.jsonl")
	if err := run([]string{"-check", "-show", "1", "-jsonl", lines, families + "/tune/carrier-remittance.yaml"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"carrier-remittance: 20 cases and 10 twins", "write session", "0 errors, 0 warnings"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	set, err := datasets.Open(t.Context(), lines)
	if err != nil {
		t.Fatal(err)
	}
	if attacks, benign := set.Counts(); attacks != 20 || benign != 10 {
		t.Errorf("the file holds %d attacks and %d benign cases", attacks, benign)
	}
}

func TestUsageErrorsSayWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-check"}, "-check names no file; write -check datasets/bench/families/tune/NAME.yaml"},
		{[]string{"-families", "nowhere"}, "no family file in nowhere/tune or nowhere/report; run go generate ./datasets, or name files after -check"},
		{[]string{"-check", "main.go"}, "put it into a folder tune or report: that is its split"},
	} {
		if err := run(tt.args, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.args, err, tt.want)
		}
	}
}
