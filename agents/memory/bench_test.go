package memory_test

import (
	"strconv"
	"testing"

	"github.com/memtox/memtox/agents/memory"
)

// What the memory of one trial costs, without a defense.
func BenchmarkTrial(b *testing.B) {
	cache := memory.NewCache(4 << 20)
	var background []memory.Record
	for i := range 8 {
		background = append(background, memory.Record{Store: "memory", Text: "Background memory number " + strconv.Itoa(i),
			Origin: fromUser})
	}
	b.ReportAllocs()
	for b.Loop() {
		m := memory.New(memory.Options{Cache: cache, Recall: memory.RecallSpec{BM25: 1, K: 5}, Stores: []memory.StoreSpec{
			{Name: "memory", Title: "MEMORY.md", Kind: memory.Entries, Limit: 2000}}})
		if err := m.Seed(ctx, background); err != nil {
			b.Fatal(err)
		}
		m.Take(ctx, fromUser, 1, "Read the mail and remember the address.")
		m.Take(ctx, fromMail, 1, "The billing contact is dana@norvik.example.")
		for _, d := range []memory.Draft{add("The billing contact is dana@norvik.example."), add("The user reads mail."),
			{Route: memory.RouteMemoryTool, Store: "memory", Op: memory.Replace, Old: "reads mail",
				Text: "The user reads mail at noon."}} {
			if _, err := m.Write(ctx, d); err != nil {
				b.Fatal(err)
			}
		}
		m.NextSession()
		if _, err := m.Snapshot(ctx, "memory", memory.Query{}); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Search(ctx, memory.Query{Text: "billing contact"}); err != nil {
			b.Fatal(err)
		}
	}
}
