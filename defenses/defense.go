// Package defenses says what a defense is and keeps the registry of those that
// memtox knows.
//
// A [Defense] is immutable and shared by all workers; it opens one fresh
// [memory.Gate] a trial. The gate screens segments, proposals, recalled records
// and actions. It sees origins and lineage, which the harness sets, and its
// trial's own clock and seed. It never sees the case: not the class, not the
// label, not the expected memory.
package defenses

import (
	"context"

	"github.com/memtox/memtox/agents/memory"
)

// Env is what a defense is given once a run: ordinary memories of the tune
// split to fit baselines on, and the run's embedder. Facts that a defense checks
// against come from the trial's own trusted records, never from here.
type Env struct {
	Knowledge []memory.Record
	Vector    func(text string) []float32
}

// Defense opens a gate for each trial.
type Defense interface {
	Open(ctx context.Context, view memory.View) (memory.Gate, error)
}

// Func is a Defense made of a function.
type Func func(ctx context.Context, view memory.View) (memory.Gate, error)

// Open implements [Defense].
func (f Func) Open(ctx context.Context, view memory.View) (memory.Gate, error) { return f(ctx, view) }
