package defenses_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/defenses/defensetest"
)

func files(m map[string]string) defenses.Env {
	return defenses.Env{ReadFile: func(name string) ([]byte, error) {
		if s, ok := m[name]; ok {
			return []byte(s), nil
		}
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}}
}

func TestChainFile(t *testing.T) {
	env := files(map[string]string{
		"conf/a.yaml": "# what we run\nchain:\n  - use: origin-only\n    at: write\n    name: origin\n  - signed\n  - " +
			"chain:b.yaml\n",
		"conf/b.yaml": "chain: [memoryguard@read]\n",
	})
	b, err := builtin.New().Build("ours=chain:conf/a.yaml", env)
	if err != nil {
		t.Fatal(err)
	}
	if b.Name != "ours" || defenses.PlaceList(b.Screens) != "write, read" {
		t.Errorf("%q screens %s", b.Name, defenses.PlaceList(b.Screens))
	}
	if strings.Count(b.Canonical, "sha256:") != 2 {
		t.Errorf("canonical text %q: want the digests of both files", b.Canonical)
	}
	tr := defensetest.Open(t, b.Defense)
	if v, _ := tr.Write(defensetest.External("x")); v.Action != memory.Block {
		t.Errorf("an external write: %+v", v)
	}
	_, r := tr.Write(defensetest.FromUser("x"))
	if d := tr.Read("q", r, defensetest.FromUser("around")); d[0].Action != memory.Allow ||
		d[1].Action != memory.Quarantine {
		t.Errorf("%+v", d)
	}
	defensetest.Conformance(t, b.Defense, false)
}

func TestChainFileErrorsSayPlaceAndRemedy(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"", "a.yaml:"},
		{"chian: [none]", `a.yaml:1:1: unknown key "chian"`},
		{"chain: [none, product-on]", "product-on is the agent's own, and no part of a chain"},
		{"chain: none", "a.yaml:1:8: chain must be a list"},
		{"chain: []", "no defense is in the chain"},
		{"chain:\n  - none\n  - nome", `a.yaml:3:5: unknown defense "nome": did you mean "none"?`},
		{"chain:\n  - 7", `a.yaml:2:5: expected a defense, found "7"`},
		{"chain:\n  - [none]", "a.yaml:2:5: expected a defense"},
		{"chain:\n  - {uses: none}", `a.yaml:2:6: unknown key "uses" (did you mean "use"?)`},
		{"chain:\n  - {use: signed, colour: red}", `unknown key "colour" (one of use, at, name)`},
		{"chain:\n  - {at: write}", "a.yaml:2:5: use is missing: write use: DEFENSE"},
		{"chain:\n  - {use: signed, at: wirte}", `a.yaml:2:23: at: unknown place "wirte" (did you mean "write"?)`},
		{"chain:\n  - {at: read, use: signed@read}", "the place stands both in use and in at"},
		{"chain:\n  - {use: signed@read, at: read}", "the place stands both in use and in at"},
		{"chain:\n  - {use: signed, name: a b}", `the name "a b" must be`},
		{"chain: [signed, signed]", `a.yaml:1:17: "signed" stands in the chain twice`},
		{"chain: [none]\nchain: [none]", `a.yaml:2:1: key "chain" stands here again`},
		{"chain: [a.yaml", "a.yaml:2:1: not valid YAML"},
		{"chain: [\"chain:a.yaml\"]", "name each other in a circle: a.yaml → a.yaml"},
		{"chain: [\"chain:missing.yaml\"]", "a.yaml:1:9: "},
		{"chain: [none]\n---\nchain: [none]", "a second document"},
		{"chain: &x [none]\nother: *x", "aliases are not supported"},
		{"chain:\n  - none@read", "a.yaml:2:5: "},
	} {
		_, err := builtin.New().Build("chain:a.yaml", files(map[string]string{"a.yaml": c.file}))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q\n got %v\nwant %s", c.file, err, c.want)
		}
	}
}
