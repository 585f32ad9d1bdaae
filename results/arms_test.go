package results

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Whoever reads a run lists its arms: a run.json that names more than anybody runs is
// refused before.
func TestARunThatNamesCountlessArmsIsRefused(t *testing.T) {
	dir := t.TempDir()
	names := make([]string, 2000)
	for i := range names {
		names[i] = `"a` + strconv.Itoa(i) + `"`
	}
	list := "[" + strings.Join(names, ",") + "]"
	for json, refused := range map[string]bool{
		`{"format":3,"agents":` + list + `,"defenses":` + list + `}`:                             true,
		`{"format":3,"agents":` + list + `,"defenses":["none"],"models":` + list + `}`:           true,
		`{"format":3,"agents":["hermes"],"defenses":` + list + `,"models":["naive","cautious"]}`: false,
		`{"format":3,"agents":["hermes"],"defenses":["none"],"model":"reference","settings":{}}`: false,
	} {
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(json), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := readRun(dir)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "arms") {
			t.Errorf("%.60s…: %v", json, err)
		}
	}
}
