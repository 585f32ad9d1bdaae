package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

// MemoryExitCodes is the table of exit codes of `memtox memory`, the exception to
// [ExitCodes].
const MemoryExitCodes = `  0  found, done, or whole
  1  missing (no such record, snapshot or file), or usage
  2  integrity: something is not as it was committed, sealed or signed
  3  the tool failed: a full disk, a store that another process keeps locked, a bug
  4  interrupted`

// The codes of `memtox memory`.
const (
	notFound Code = 1
	tampered Code = 2
)

// errMissing ends a command of `memtox memory` with exit code 1.
var errMissing = errors.New("missing")

// ownCodes marks the commands whose exit codes are MemoryExitCodes.
const ownCodes = "memory exit codes"

// codeFor says with which code an error ends a command.
func codeFor(cmd *cobra.Command, err error) Code {
	for c := cmd; c != nil; c = c.Parent() {
		if c.Annotations[ownCodes] != "" {
			return memoryCode(err)
		}
	}
	return codeOf(err)
}

func memoryCode(err error) Code {
	switch {
	case errors.Is(err, seal.ErrIntegrity), errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrTorn):
		return tampered
	case errors.Is(err, errMissing), errors.Is(err, memory.ErrNotFound), errors.Is(err, seal.ErrNotSealed),
		errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrNewer):
		return notFound
	}
	if code := codeOf(err); code != Usage {
		return code
	}
	return notFound
}

// memoryCommand is what the commands of `memtox memory` have in common.
type memoryCommand struct {
	env    *Env
	store  string
	format string

	unchecked bool
	unsound   error // what the check of the store found, which a command's answer does not outweigh
}

func newMemoryCommand(env *Env) *cobra.Command {
	c := group("memory", "Look into a memory store: lineage, history, snapshots, proofs, incidents")
	c.Long = `Look into a memory store, the file of a durable memory: what a record derives
from and what derives from it, what it was before, which snapshots show it, whether
anything was changed behind the store's back; prove what a snapshot held; go back
to one; answer an incident.

Snapshots are sealed: the root of a tree over every record goes into an append-only
log that is signed with an Ed25519 key. The key lies beside the store (STORE.signer)
unless --key names another place; what somebody needs to check a signature is in
STORE.verifier. Who can read the key can seal anything: keep it where the agent
cannot, and keep a checkpoint (snapshot --checkpoint FILE) where nobody can change
it, for only that shows that the whole file was replaced by an older copy.

These commands have exit codes of their own.`
	c.Annotations = map[string]string{ownCodes: "yes"}
	c.SetHelpTemplate(strings.TrimRight(c.HelpTemplate(), "\n") + "\nExit codes:\n" + MemoryExitCodes + "\n")
	for _, sub := range []func(*memoryCommand) *cobra.Command{newTrace, newCohort, newSearch, newTimeline, newSnapshots,
		newSnapshot, newDiff, newRollback, newUndo, newRetire, newForget, newVerify, newProve, newVerifyProof, newIncident} {
		m := &memoryCommand{env: env}
		cmd := sub(m)
		run := cmd.RunE
		cmd.RunE = func(c *cobra.Command, args []string) error {
			err := run(c, args)
			if m.unsound == nil || err == nil {
				return cmp.Or(m.unsound, err)
			}
			return fmt.Errorf("%w; %w", m.unsound, err)
		}
		c.AddCommand(cmd)
	}
	return c
}

var memoryFormats = []string{"text", "json"}

// flags adds what every command has; withStore is for those that open one.
func (m *memoryCommand) flags(c *cobra.Command, withStore bool) {
	if withStore {
		c.Flags().StringVar(&m.store, "store", "", "The `file` that the memory is in")
	}
	c.Flags().StringVar(&m.format, "format", "text", "text or json")
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(memoryFormats, cobra.ShellCompDirectiveNoFileComp)))
}

// check looks at what every command has.
func (m *memoryCommand) check() error { return choice("--format", m.format, memoryFormats) }

// open opens the store; with changes it can be written to.
func (m *memoryCommand) open(ctx context.Context, changes bool) (*store.History, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if m.store == "" {
		return nil, &settings.Problem{What: "which store? --store is missing",
			Hint: "--store FILE names the file that the memory is in"}
	}
	return store.Open(ctx, m.env.path(m.store), store.Options{MustExist: true, ReadOnly: !changes})
}

// replay opens the store's past for a command that changes nothing.
func (m *memoryCommand) replay(ctx context.Context, overSnapshots bool) (*store.History, *seal.Replay, error) {
	st, err := m.open(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	if err := m.look(ctx, st); err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	r, err := seal.NewReplay(ctx, st, overSnapshots)
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	return st, r, nil
}

// uncheckedFlag adds what leaves look out.
func (m *memoryCommand) uncheckedFlag(c *cobra.Command) {
	c.Flags().BoolVar(&m.unchecked, "unchecked", false,
		"Do not verify the store before: for a very large one, whose answers nobody then vouches for")
}

// look verifies a store that a command reads. A damaged one is answered from all the
// same, for whoever looks into it; then the command ends with what is wrong.
func (m *memoryCommand) look(ctx context.Context, st *store.History) error {
	if m.unchecked {
		return nil
	}
	ledger := seal.NewLedger(st)
	v, err := m.keys().Verifier("")
	if err != nil && memoryCode(err) == notFound { // none is there
		v, err = nil, nil
	}
	var out *seal.Verification
	if err == nil {
		out, err = ledger.Verify(ctx, v, nil)
	}
	switch {
	case err != nil && memoryCode(err) == tampered:
		m.unsound = err
	case err == nil:
		m.unsound = m.found(out)
	default:
		return err
	}
	return nil
}

// found says what a verification found, or nil.
func (m *memoryCommand) found(v *seal.Verification) error {
	switch n := len(v.Problems) + v.More; n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w: %s: %s: %s", seal.ErrIntegrity, m.store, v.Problems[0].Note, remedy)
	default:
		return fmt.Errorf("%w: %s: %s and %s more: %s", seal.ErrIntegrity, m.store, v.Problems[0].Note,
			number(n-1), remedy)
	}
}

// remedy is what can be done about a store that is not sound.
const remedy = "memtox memory verify says what is wrong; bring it back from a copy, or quarantine or forget the records"

// print writes a result as JSON, or a value as text by a form.
func (m *memoryCommand) print(result any, form string, v any) error {
	if m.format == "text" {
		return printForm(m.env, form, v)
	}
	return printJSON(m.env, result)
}

func number[T ~int | ~int64 | ~uint64](n T) string { return fmt.Sprint(n) }

// operator is in whose name a command acts.
func (m *memoryCommand) operator() string {
	return cmp.Or(m.env.Getenv("USER"), m.env.Getenv("USERNAME"), "operator")
}

// readOwn reads a file that the user named with a flag.
func (m *memoryCommand) readOwn(flag, name string) ([]byte, error) {
	b, err := m.env.readFile(name)
	if err != nil {
		return nil, &settings.Problem{Where: flag, Err: err}
	}
	return b, nil
}

// write writes a file that the user named.
func (m *memoryCommand) write(name string, data []byte) error {
	return writeWhole(m.env.path(name), func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}
