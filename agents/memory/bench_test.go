package memory_test

import (
	"strconv"
	"strings"
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

// What a session costs in which the user asks to keep a part of a long page, and whose
// turns could be searched.
func BenchmarkAskedToKeep(b *testing.B) {
	var page strings.Builder
	for i := range 100 {
		page.WriteString("Line " + strconv.Itoa(i) + " of the minutes tells what the garden club did with its tools that day.\n")
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m := memory.New(memory.Options{Recall: memory.RecallSpec{BM25: 1, K: 5}, Transcripts: true, Stores: []memory.StoreSpec{
			{Name: "memory", Title: "MEMORY.md", Kind: memory.Entries}}})
		code := "The gate code of the depot is " + strconv.Itoa(i) + "."
		m.Take(ctx, fromMail, 1, page.String()+code)
		if _, err := m.Write(ctx, add(code)); err != nil {
			b.Fatal(err)
		}
		m.Take(ctx, fromUser, 2, "Please remember the gate code of the depot.")
		m.NextSession()
	}
}
