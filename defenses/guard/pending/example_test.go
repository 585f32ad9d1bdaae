package pending_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/defenses/signed"
)

// A call that a gate defers is held, shown to a person, and passes once they have agreed.
func ExampleList_Act() {
	dir, _ := os.MkdirTemp("", "held")
	defer os.RemoveAll(dir)
	file, err := store.Open(ctx, filepath.Join(dir, "held.db"), store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	list := pending.New(file, pending.Options{Keys: signed.Fresh()})

	call := memory.Call{Tool: "send_mail", Query: memory.Query{Text: "Send Dana the report.", Principal: "user-1"},
		Args: []memory.Arg{{Name: "to", Value: "dana@norvik.example", Role: memory.Recipient, Lineage: memory.Lineage{
			{Record: "r4", Origin: memory.Origin{Class: memory.External, Medium: memory.Email, Source: "dana@norvik.example"}}}}}}
	deferred := memory.Verdict{Action: memory.Defer, Findings: []memory.Finding{{Check: "external_memory_fills_recipient",
		Note: "only an outside source says so", Argument: "to", Value: "dana@norvik.example"}}}

	// The side of the agent. The last finding says what to tell it.
	v, held, _ := list.Act(ctx, "session 1", &call, deferred)
	fmt.Println(v.Action, held.State, held.ID, "-", v.Findings[1].Note)

	// The person.
	waits, _, _ := list.Entries(ctx)
	fmt.Println(waits[0].ID, waits[0].Content, "because", waits[0].Why)
	if _, err := list.Approve(ctx, waits[0].ID, pending.Decision{By: "dana", Why: "it is for me"}); err != nil {
		fmt.Println(err)
	}

	for range 2 {
		v, held, _ = list.Act(ctx, "session 1", &call, deferred)
		fmt.Println(v.Action, held.State, held.ID)
	}
	// Output:
	// defer waits r1 - it is held as r1 until a person decides; ask again once they have
	// r1 send_mail to="dana@norvik.example" because to: only an outside source says so
	// allow passes r1
	// defer waits r2
}
