// Package defenses says what a defense is, and holds what all of them share: the
// registry, the grammar of a spec such as keyword:strict@input, placement and
// composition.
//
// A [Defense] is immutable and shared by all workers; it opens one fresh
// [memory.Gate] a trial. The gate screens segments, proposals, recalled records
// and actions. It sees origins and lineage, which the harness sets, and its
// trial's own clock and seed. It never sees the case: not the class, not the
// label, not the expected memory.
//
// To add a defense, write a package with a type that implements Defense and a
// function Register(*Registry), and name that function in package builtin.
// Package defensetest holds a fake trial and the behaviour that every defense
// must show.
package defenses

import (
	"context"
	"os"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
)

// Env is what a defense is given once a run: ordinary memories of the tune
// split to fit baselines on, and the run's embedder. Facts that a defense checks
// against come from the trial's own trusted records, never from here.
type Env struct {
	Knowledge []memory.Record
	// Vector embeds texts; nil is [memory.Hashed]. Whoever builds a defense that embeds
	// gets it from Embedder.
	Vector memory.Embed
	// Embeds, if it is not nil, is told that a defense does.
	Embeds func()
	// ReadFile reads the policy or chain file that a spec names; nil is
	// os.ReadFile. Defenses read files through it alone, so that a file named in
	// a chain file is looked for beside it and whoever runs the trials can record
	// what was read.
	ReadFile func(name string) ([]byte, error)

	// What defenses outside this process need.

	// Lookup reads the environment; nil knows no variable.
	Lookup func(string) (string, bool)
	// PassEnv names the environment variables that external programs are handed
	// beside the few that any program needs.
	PassEnv []string
	// Dir is where external programs run; "" is our own working directory.
	Dir string
	// Timeout bounds one answer of an external guard or a judge's model; 0 leaves
	// it to them.
	Timeout time.Duration
	// Model makes the model that a judge asks, in the words of the setting model;
	// nil makes none.
	Model func(name string) (model.Model, error)

	within []string // chain files that are being read, outermost first
}

// Embedder returns what a defense embeds texts with.
func (e Env) Embedder() memory.Embed {
	if e.Embeds != nil {
		e.Embeds()
	}
	if e.Vector != nil {
		return e.Vector
	}
	return memory.Hashed
}

// File reads a file that a spec names.
func (e Env) File(name string) ([]byte, error) {
	if e.ReadFile != nil {
		return e.ReadFile(name)
	}
	return os.ReadFile(name)
}

// Defense opens a gate for each trial.
type Defense interface {
	Open(ctx context.Context, view memory.View) (memory.Gate, error)
}

// Func is a Defense made of a function.
type Func func(ctx context.Context, view memory.View) (memory.Gate, error)

// Open implements [Defense].
func (f Func) Open(ctx context.Context, view memory.View) (memory.Gate, error) { return f(ctx, view) }

// Signer is a gate that signs the records it lets be written. [Chain] asks it
// once all verdicts are in, so that a signature covers what is really stored and
// not a content that a later defense still redacts.
type Signer interface {
	// Sign returns the signature of a record as it will be stored, and the id of
	// the key.
	Sign(memory.Record) (signature []byte, by string)
}
