package store_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// A snapshot names a state; a rollback brings it back and keeps the log.
func ExampleCurator_Rollback() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	history, err := store.Open(ctx, filepath.Join(dir, "memory.db"), store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer history.Close()
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	put := func(minute int, rs ...memory.Record) {
		_, err := history.Commit(ctx, &memory.Batch{At: start.Add(time.Duration(minute) * time.Minute),
			Cause: memory.CauseWrite, Records: rs})
		if err != nil {
			fmt.Println(err)
		}
	}
	put(0, memory.Record{ID: "r1", Store: "memory", Key: "supplier", Text: "The supplier's account is 1.",
		ValidFrom: start})

	curator := store.NewCurator(history, "ana", func() time.Time { return start.Add(time.Hour) })
	good, err := curator.Snapshot(ctx, "before the import", "external batch")
	if err != nil {
		fmt.Println(err)
		return
	}
	put(70,
		memory.Record{ID: "r1", Store: "memory", Key: "supplier", Text: "The supplier's account is 1.", ValidFrom: start,
			State: memory.Retired, ValidTo: start.Add(70 * time.Minute)},
		memory.Record{ID: "r2", Store: "memory", Key: "supplier", Text: "The supplier's account is 2.",
			ValidFrom: start.Add(70 * time.Minute), Parent: "r1"})

	out, err := curator.Rollback(ctx, store.Point{Seq: good.Seq}, "the mail was forged")
	if err != nil {
		fmt.Println(err)
		return
	}
	now, _, _ := history.ByKey(ctx, "memory", "supplier")
	fmt.Println(now.Text, out.Changed, out.Snapshot)
	for a := range history.Log(ctx, store.Filter{}) {
		fmt.Printf("%d %s %q: %s\n", a.Seq, a.Cause, a.Record, cmp.Or(a.Why, "-"))
	}
	// Output:
	// The supplier's account is 1. [r1 r2] s2
	// 1 write "r1": -
	// 2 snapshot "": external batch
	// 3 write "r1": -
	// 4 write "r2": -
	// 5 snapshot "": rollback
	// 6 rollback "": the mail was forged
	// 7 rollback "r1": the mail was forged
	// 8 rollback "r2": the mail was forged
}
