package datasets

import (
	"context"
	"path/filepath"
	"testing"
)

func TestTheSmokeSetIsWhatItsSourcesSay(t *testing.T) {
	ctx := context.Background()
	got, err := Open(ctx, "memtox-smoke")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("smoke/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []Case
	for _, file := range files {
		if filepath.Base(file) == "expected.yaml" {
			continue
		}
		s, err := Open(ctx, file)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, s.Cases...)
	}
	if got.SHA256 != Digest(want) {
		t.Error("the sources say otherwise: run go generate ./datasets")
	}
}
