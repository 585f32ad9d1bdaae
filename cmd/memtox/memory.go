package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
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

// newMemory gives the commands below it exit codes of their own.
func newMemory(_ *Env, c *cobra.Command) action {
	c.Annotations = map[string]string{ownCodes: "yes"}
	c.SetHelpTemplate(strings.TrimRight(c.HelpTemplate(), "\n") + "\nExit codes:\n" + MemoryExitCodes + "\n")
	return nil
}

// memoryCommand is what commands about a memory have in common.
type memoryCommand struct {
	env    *Env
	format *string

	name      string         // of the file that the memory is in
	store     *store.History // which is open while the command runs
	readOnly  *bool
	unchecked *bool
	unsound   error // what the check of the store found, which a command's answer does not outweigh
}

func newMemoryCommand(env *Env, c *cobra.Command) *memoryCommand {
	return &memoryCommand{env: env, format: choiceFlag(c, "format", "text", "text or json", "text", "json"),
		readOnly: new(bool), unchecked: new(bool)}
}

// inStore makes a command about the memory in --store.
func inStore(of func(*memoryCommand, *cobra.Command) action) func(*Env, *cobra.Command) action {
	return func(env *Env, c *cobra.Command) action {
		m := newMemoryCommand(env, c)
		c.Flags().StringVar(&m.name, "store", "", "The `file` that the memory is in")
		do := of(m, c)
		return func(ctx context.Context, args []string) (err error) {
			if m.name == "" {
				return &settings.Problem{What: "which store? --store is missing",
					Hint: "--store FILE names the file that the memory is in"}
			}
			m.store, err = store.Open(ctx, env.path(m.name), store.Options{MustExist: true, ReadOnly: *m.readOnly})
			if errors.Is(err, store.ErrForeign) || errors.Is(err, store.ErrNewer) {
				return &settings.Problem{Where: "--store", Err: err}
			}
			if err != nil {
				return err
			}
			err = errors.Join(do(ctx, args), m.store.Close())
			if m.unsound == nil || err == nil {
				return cmp.Or(m.unsound, err)
			}
			return fmt.Errorf("%w; %w", m.unsound, briefly{err})
		}
	}
}

// reading makes a command about the memory in --store that changes nothing.
func reading(of func(*memoryCommand, *cobra.Command) action) func(*Env, *cobra.Command) action {
	return inStore(func(m *memoryCommand, c *cobra.Command) action {
		*m.readOnly = true
		return of(m, c)
	})
}

// checked makes a command that reads a memory once it was verified.
func checked(of func(*memoryCommand, *cobra.Command) action) func(*Env, *cobra.Command) action {
	return reading(func(m *memoryCommand, c *cobra.Command) action {
		c.Flags().BoolVar(m.unchecked, "unchecked", false,
			"Do not verify the store first, which takes long for a very large one: nobody vouches for the answers")
		do := of(m, c)
		return func(ctx context.Context, args []string) error {
			if err := m.look(ctx); err != nil {
				return err
			}
			return do(ctx, args)
		}
	})
}

// look verifies the store that a command is about. A damaged one is answered from all the
// same, for whoever looks into it; then the command ends with what is wrong.
func (m *memoryCommand) look(ctx context.Context) error {
	if *m.unchecked {
		return nil
	}
	v, err := m.keys().Verifier("")
	if err != nil && memoryCode(err) == notFound { // none is there
		v, err = nil, nil
	}
	var out *seal.Verification
	if err == nil {
		out, err = seal.NewLedger(m.store).Verify(ctx, v, nil)
	}
	switch {
	case err == nil:
		m.unsound = m.found(out)
	case memoryCode(err) == tampered:
		m.unsound = err
	default:
		return err
	}
	return nil
}

// found says what a verification found, or nil.
func (m *memoryCommand) found(v *seal.Verification) error {
	n := len(v.Problems) + v.More
	if n == 0 {
		return nil
	}
	first := strings.Replace(v.Problems[0].Note, filepath.Base(m.name)+": ", "", 1)
	if first = strings.TrimSuffix(first, ": "+store.Remedy); n > 1 {
		first += fmt.Sprintf(" and %d more", n-1)
	}
	return fmt.Errorf("%w: %s: %s: %s", seal.ErrIntegrity, m.name, first, remedy)
}

// damage is what each error of a damaged store says: that it is damaged, by what, and what
// can be done.
var damage = regexp.MustCompile("(?s)(" + regexp.QuoteMeta(store.ErrDamaged.Error()) + "): .*?" + regexp.QuoteMeta(store.Remedy))

// briefly is an error that follows one about the damage of the store, which says by what and
// what can be done.
type briefly struct{ error }

func (b briefly) Error() string { return damage.ReplaceAllString(b.error.Error(), "$1") }
func (b briefly) Unwrap() error { return b.error }

// remedy is what can be done about a store that is not sound.
const remedy = "memtox memory verify says what is wrong; bring it back from a copy, or quarantine or forget the records"

// print writes a result as JSON, or a value as text by a form.
func (m *memoryCommand) print(result any, form string, v any) error {
	return show(m.env, *m.format, form, result, v)
}

// operator is in whose name a command acts.
func (m *memoryCommand) operator() string {
	return cmp.Or(m.env.Getenv("USER"), m.env.Getenv("USERNAME"), "operator")
}

func (m *memoryCommand) curator() *store.Curator {
	return store.NewCurator(m.store, m.operator(), m.env.Now)
}

func (m *memoryCommand) write(name string, data []byte) error {
	return m.env.output(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
