package controls_test

import (
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/controls"
	"github.com/memtox/memtox/defenses/defensetest"
)

func build(t *testing.T, name string) defenses.Defense {
	var r defenses.Registry
	controls.Register(&r)
	b, err := r.Build(name, defenses.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if !b.Info.Control {
		t.Errorf("%s does not say that it is a control", name)
	}
	return b.Defense
}

func TestWhatEachControlStops(t *testing.T) {
	asked := defensetest.External("The meeting is in room 4.")
	asked.Asked = true
	kinds := []memory.Record{defensetest.FromUser("u"), defensetest.FromAgent("a"), defensetest.External("e"), asked}
	const allow, block = memory.Allow, memory.Block
	for name, want := range map[string]struct{ write, read [4]memory.Action }{
		"none":      {},
		"block-all": {write: [4]memory.Action{block, block, block, block}},
		"no-memory": {write: [4]memory.Action{block, block, block, block},
			read: [4]memory.Action{block, block, block, block}},
		"origin-only": {write: [4]memory.Action{allow, allow, block, allow},
			read: [4]memory.Action{allow, allow, block, allow}},
	} {
		tr := defensetest.Open(t, build(t, name))
		for i, r := range kinds {
			if got, _ := tr.Write(r); got.Action != want.write[i] {
				t.Errorf("%s, writing %q: %s, want %s", name, r.Text, got.Action, want.write[i])
			}
		}
		for _, route := range []memory.Route{memory.RouteSearch, memory.RouteTranscript} {
			for i, d := range tr.Recall(memory.Query{Route: route}, kinds...) {
				if d.Action != want.read[i] {
					t.Errorf("%s, reading %q by %s: %s, want %s", name, kinds[i].Text, route, d.Action, want.read[i])
				}
			}
		}
	}
}

func TestConformance(t *testing.T) {
	for _, name := range []string{"none", "block-all", "no-memory", "origin-only"} {
		t.Run(name, func(t *testing.T) {
			defensetest.Conformance(t, build(t, name), name == "none" || name == "origin-only")
		})
	}
}
