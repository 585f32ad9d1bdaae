package attacks_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
)

// A skeleton of every kind is a family that validates as it is and that does what a
// family must when it is run: its attacks land undefended, its tasks get done.
func TestSkeletonsAreFamiliesThatWork(t *testing.T) {
	ctx := context.Background()
	var all []attacks.Skeleton
	for _, class := range datasets.Classes() {
		all = append(all, attacks.Skeleton{Class: class, Benign: true})
		for _, known := range attacks.SkeletonKnown() {
			for _, twin := range append(attacks.SkeletonTwins(), "") {
				if twin != "truth" || known == "world" {
					all = append(all, attacks.Skeleton{Class: class, Known: known, Twin: twin})
				}
			}
		}
	}
	for i, s := range all {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("family-%d.yaml", i))
		data, err := s.File(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		set, err := attacks.Open(ctx, file)
		if err != nil {
			t.Errorf("%+v: %v", s, err)
			continue
		}
		found, err := attacks.Validate(ctx, file, set)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found.Problems {
			t.Errorf("%+v: %s", s, p.Error)
		}
		b, err := harness.CheckBehaviour(ctx, set)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range b.Checks {
			if !c.OK {
				t.Errorf("%+v: %s: %s", s, c.Name, c.Detail)
			}
		}
	}
}
