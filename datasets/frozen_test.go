package datasets

import "testing"

// A version of a set never changes: results that name it are compared case by
// case. Who changes a family makes a new version, with a folder, a name and a line
// here of its own, and leaves the old one as it is.
var frozen = map[string]string{
	"memtox-bench v1":     "b344b8ae0980157b6579de56accf04f1a84dc6856e526ee37169266fbecf8908",
	"memtox-bench v2":     "c6c955cc5777e5d43e1cd1883eaf52e79ad238d1d47b72f53f93b8c58855867d",
	"memtox-collision v1": "91358900b23df1d93c58ac7c30a27f46eabdb5ee8d80c43cdc594e75a0bb2e86",
	"memtox-fresh v1":     "b242b9e888ce03d7c02287c6d6eb783c0a54a73246f67c462c668355d0ba864e",
	"memtox-smoke v1":     "32c889c2495e39604ed77f06b9398a3e4a13ff3bec16cd252f94d3cf997d5ddc",
	"memtox-frontier v1":  "694713e5894494eb01e834219b9f650d27437ddee6a089bbc35e7788d5f3bea8",
	"memtox-oob v1":       "1def1d28bf86e6b1c0743b306b78e2a9f2d6e2002da5722902f2cc0b60185815",
}

func TestVersionsAreFrozen(t *testing.T) {
	seen := 0
	for _, b := range Builtins() {
		if b.Draft {
			continue
		}
		want, ok := frozen[b.Name+" "+b.Version]
		if !ok {
			t.Errorf("%s %s has no digest here: a new version is frozen when it is made", b.Name, b.Version)
			continue
		}
		seen++
		if got := open(t, b.Name+"@"+b.Version).SHA256; got != want {
			t.Errorf("%s %s has changed: SHA-256 %s, was %s; a change is a new version", b.Name, b.Version, got, want)
		}
	}
	if seen != len(frozen) {
		t.Errorf("%d of %d frozen sets are built in", seen, len(frozen))
	}
}
