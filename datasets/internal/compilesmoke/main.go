// Compilesmoke writes builtin/memtox-smoke.jsonl, the canonical lines of the
// hand-worked cases in smoke/*.yaml. It runs in the folder datasets:
//
//	go generate ./datasets
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memtox/memtox/datasets"
)

func main() {
	if err := compile("smoke", "builtin/memtox-smoke.jsonl"); err != nil {
		fmt.Fprintln(os.Stderr, "compilesmoke:", err)
		os.Exit(1)
	}
}

// compile joins the cases of every YAML file of a folder, in the order of their
// names. expected.yaml holds what the cases should lead to and is no case file.
func compile(folder, out string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	var cases []datasets.Case
	for _, file := range files {
		if filepath.Base(file) == "expected.yaml" {
			continue
		}
		set, err := datasets.Open(context.Background(), file)
		if err != nil {
			return err
		}
		cases = append(cases, set.Cases...)
	}
	if _, err := datasets.NewSet("memtox-smoke", cases); err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := datasets.WriteJSONL(&buf, cases); err != nil {
		return err
	}
	return os.WriteFile(out, buf.Bytes(), 0o644)
}
