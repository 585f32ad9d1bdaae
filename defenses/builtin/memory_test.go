package builtin_test

import (
	"context"
	"slices"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/defenses/defensetest"
)

// Behind a real Memory, whatever signs must recognise what the agent wrote,
// replaced and was seeded with, and nothing that was put in beside it.
func TestSignaturesSurviveARealMemory(t *testing.T) {
	ctx := context.Background()
	for _, spec := range []string{"signed", "guard", "signed@read", "guard@read", "chain:x.yaml"} {
		e := env()
		e.ReadFile = func(string) ([]byte, error) { return []byte("chain: [signed, memoryguard, guard]\n"), nil }
		b, err := builtin.New().Build(spec, e)
		if err != nil {
			t.Fatal(err)
		}
		m := memory.New(memory.Options{Stores: []memory.StoreSpec{{Name: "memory", Title: "MEMORY.md"}},
			Start: defensetest.Start})
		gate, err := b.Defense.Open(ctx, m.View())
		if err != nil {
			t.Fatal(err)
		}
		m.Guard(gate)
		user := memory.Origin{Class: memory.User, Medium: memory.Chat}
		must := func(err error) {
			if err != nil {
				t.Fatalf("%s: %v", spec, err)
			}
		}
		must(m.Seed(ctx, []memory.Record{{Store: "memory", Text: "The user has a dog.", Origin: user}}))
		_, err = m.Take(ctx, user, 1, "I like green tea and live in Bergen.")
		must(err)
		for _, d := range []memory.Draft{
			{Route: memory.RouteMemoryTool, Store: "memory", Text: "The user likes green tea."},
			{Route: memory.RouteMemoryTool, Store: "memory", Text: "The user lives in Oslo."},
			{Route: memory.RouteMemoryTool, Op: memory.Replace, Store: "memory", Old: "Oslo", Text: "The user lives in Bergen."},
		} {
			_, err := m.Write(ctx, d)
			must(err)
		}
		m.Inject(memory.Record{Store: "memory", Text: "The user lives in Rome.", Origin: user})
		m.NextSession()
		shown, err := m.Snapshot(ctx, "memory", memory.Query{Route: memory.RouteSnapshot, Text: "Hello"})
		must(err)
		var got []string
		for _, r := range shown {
			got = append(got, r.Text)
		}
		slices.Sort(got)
		if want := []string{"The user has a dog.", "The user likes green tea.",
			"The user lives in Bergen."}; !slices.Equal(got, want) {
			t.Errorf("%s shows %q, want %q", spec, got, want)
		}
	}
}
