package attacks

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/memtox/memtox/datasets"
)

func TestPilot(t *testing.T) {
	data, err := os.ReadFile("/tmp/pilot/optician-mail.yaml")
	if err != nil {
		t.Skip(err)
	}
	f, err := ParseStates("optician-mail.yaml", datasets.Tune, data)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := CompileStates([]*StateFamily{f}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(cases[:2], "", " ")
	t.Log(len(cases), string(b))
	for i := range cases {
		if err := cases[i].CheckState(); err != nil {
			t.Error(err)
		}
	}
}
