package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

func keyFlag(c *cobra.Command) *string {
	return c.Flags().String("key", "", "The `file` with the signer's key (default STORE.signer)")
}

func verifierFlag(c *cobra.Command, def string) *string {
	return c.Flags().String("verifier", "", "The `file` with the verifier's key"+def)
}

// keys are the store's keys.
func (m *memoryCommand) keys() seal.Keys {
	return seal.Keys{Store: m.store, Path: m.env.path, Made: func(signer, verifier string) {
		fmt.Fprintf(m.env.Stderr, "memtox: made a key: %s signs and must be kept from the agent, %s checks and can be "+
			"given to anybody\n", signer, verifier)
	}}
}

// seal seals what is not sealed yet, if the key is there; without one it says so.
func (m *memoryCommand) seal(ctx context.Context, st *store.History, key string) error {
	ledger := seal.NewLedger(st)
	if key == "" {
		if missing, err := m.keys().Sealable(); err != nil || missing != "" {
			fmt.Fprintf(m.env.Stderr, "memtox: not sealed: %s is not there (--key FILE names the key, memtox memory snapshot "+
				"makes one)\n", missing)
			return err
		}
	}
	s, v, err := m.keys().Signer(ctx, ledger, key)
	if err == nil {
		_, err = ledger.Seal(ctx, s, v)
	}
	if err == nil {
		err = st.Sign(s.Sign)
	}
	return err
}

func newSnapshot(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot [NAME]",
		Short: "Take a snapshot and seal all that are not sealed yet",
		Long: `Take a snapshot and seal it, with all others that are not sealed yet: those that a
guard took before a risky step, for instance. The first time a pair of keys is made.
--checkpoint writes the signed state of the log, a few lines to be kept elsewhere;
verify --since compares the store with it.`,
		Example: "  memtox memory snapshot before-update --store memory.db --checkpoint ~/kept/memory.checkpoint",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("a name")(cmd, args)
		},
	}
	m.flags(c, true)
	key := keyFlag(c)
	reason := c.Flags().String("reason", "", "Before what it is taken")
	kept := c.Flags().String("checkpoint", "", "Write the signed state of the log to this `file`")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		st, err := m.open(ctx, true)
		if err != nil {
			return err
		}
		defer st.Close()
		ledger := seal.NewLedger(st)
		// The key first: a snapshot that cannot be sealed is not taken.
		s, v, err := m.keys().Signer(ctx, ledger, *key)
		if err != nil {
			return err
		}
		snap, err := store.NewCurator(st, m.operator(), m.env.Now).Snapshot(ctx, strings.Join(args, ""), *reason)
		if err != nil {
			return err
		}
		sealed, err := ledger.Seal(ctx, s, v)
		if err == nil {
			err = st.Sign(s.Sign)
		}
		if err != nil {
			return err
		}
		signed, err := ledger.Checkpoint(ctx)
		if err != nil {
			return err
		}
		if *kept != "" {
			if err := m.write(*kept, signed); err != nil {
				return err
			}
		}
		out := struct {
			Snapshot   string       `json:"snapshot"`
			Sealed     []seal.Entry `json:"sealed"`
			Checkpoint string       `json:"checkpoint"`
		}{snap.ID, append([]seal.Entry{}, sealed...), string(signed)}
		other := !slices.ContainsFunc(sealed, func(e seal.Entry) bool { return e.ID == snap.ID })
		return m.print(out, "snapshot", map[string]any{"Other": other, "Snapshot": snap.ID, "Sealed": sealed})
	}
	return c
}

// instantFlag reads a time.
func instantFlag(flag, s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, &settings.Problem{Where: flag, What: fmt.Sprintf("%q is no time", s),
			Hint: "write it as 2026-03-01T09:00:00Z"}
	}
	return t, nil
}

func newVerify(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that nothing was changed behind the store's back",
		Long: `Read everything and name what is not as it was committed and sealed: versions whose
content, origin or other fields were changed, records that were deleted or put in,
entries of the journal that were changed, deleted or put in another order, snapshots that were deleted, changed or put in, a log of
snapshots that is not the one that was signed, damaged pages, contents that are gone
without a tombstone.

A store that was never sealed fails: nothing vouches for it. --unsigned checks the
rest alone, without any key. What came after the last sealed snapshot is vouched for
by the head of the store, STORE.head, a chain over those entries up to the last;
whoever has the signer's key signs it with each change. The result says how much that
is. Only a checkpoint that was kept elsewhere (--since) shows that the store and its
head were replaced together by older ones.`,
		Example: "  memtox memory verify --store memory.db\n  memtox memory verify --store memory.db --verifier " +
			"ada.verifier --since kept/memory.checkpoint --format json",
		Args: noArgs,
	}
	m.flags(c, true)
	verifier := verifierFlag(c, " (default STORE.verifier)")
	since := c.Flags().String("since", "", "A checkpoint that was kept elsewhere: the log must continue it")
	unsigned := c.Flags().Bool("unsigned", false, "Check no signature")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		st, err := m.open(ctx, false)
		if err != nil {
			return err
		}
		defer st.Close()
		var v note.Verifier
		switch {
		case *unsigned && (*verifier != "" || *since != ""):
			return &settings.Problem{Where: "--unsigned", What: "--verifier and --since are about signatures",
				Hint: "leave --unsigned out"}
		case !*unsigned:
			if v, err = m.keys().Verifier(*verifier); err != nil {
				return err
			}
		}
		var kept []byte
		if *since != "" {
			if kept, err = m.readOwn("--since", *since); err != nil {
				return err
			}
		}
		ledger := seal.NewLedger(st)
		out, err := ledger.Verify(ctx, v, kept)
		if err != nil {
			return err
		}
		m.unsound = m.found(out)
		return m.print(out, "verify", map[string]any{"Found": out, "Unsigned": *unsigned})
	}
	return c
}

// called is a snapshot's id, with its name if it has one.
func called(e seal.Entry) string {
	if e.Name == "" {
		return e.ID
	}
	return e.ID + " (" + e.Name + ")"
}

func newProve(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "prove ID",
		Short: "Prove that a record was, or was not, in a sealed snapshot",
		Long: `Prove that a record was, or was not, in a sealed snapshot, to somebody who has the
verifier's key and nothing else. The proof names the record and no content, unless
--disclose puts the record itself in. With --format json the proof is what is
printed; -o writes it to a file.

Exit code 1 says that the record was not there; the proof of that is given all the
same.`,
		Example: "  memtox memory prove r17 --snapshot s3 --store memory.db -o r17.proof\n  memtox memory verify-proof " +
			"r17.proof --verifier memory.db.verifier",
		Args: oneArg("the id of a record"),
	}
	m.flags(c, true)
	snapshot := c.Flags().String("snapshot", "", "The snapshot, by id or by name")
	m.uncheckedFlag(c)
	disclose := c.Flags().Bool("disclose", false, "Put the record's content into the proof")
	out := c.Flags().StringP("output", "o", "", "Write the proof to this `file`")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if *snapshot == "" {
			return &settings.Problem{What: "in which snapshot? --snapshot is missing",
				Hint: "memtox memory snapshots lists them"}
		}
		st, err := m.open(ctx, false)
		if err != nil {
			return err
		}
		defer st.Close()
		ledger := seal.NewLedger(st)
		if err := m.look(ctx, st); err != nil {
			return err
		}
		d, err := ledger.Prove(ctx, *snapshot, args[0], *disclose)
		if errors.Is(err, seal.ErrNotSealed) {
			return &settings.Problem{Err: err, Hint: "memtox memory snapshot seals all"}
		}
		if err != nil {
			return err
		}
		data, err := seal.Encode(d)
		if err != nil {
			return err
		}
		if *out != "" {
			if err := m.write(*out, data); err != nil {
				return err
			}
		}
		if m.format == "json" {
			_, err = m.env.Stdout.Write(data) // its one form: not a byte can be another
		} else {
			err = printForm(m.env, "prove", map[string]any{"Proof": &d.Proof, "Snapshot": d.Snapshot, "Written": *out})
		}
		if err == nil && !d.Proof.Present {
			return told{errMissing}
		}
		return err
	}
	return c
}

// maxProof bounds the file of a proof: siblings for every bit of a key, and a large
// record.
const maxProof = 64 << 20

func newVerifyProof(m *memoryCommand) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify-proof FILE",
		Short: "Check a proof, with the verifier's key and nothing else",
		Long: `Check a proof that prove wrote, to the last byte, with the verifier's key and
nothing else: no store is needed. Exit code 0 says that the record was in the
snapshot, 1 that the proof holds and shows that it was not, 2 that it proves
nothing.`,
		Example: "  memtox memory verify-proof r17.proof --verifier memory.db.verifier",
		Args:    oneArg("the file of a proof"),
	}
	m.flags(c, false)
	verifier := verifierFlag(c, "")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := m.check(); err != nil {
			return err
		}
		if *verifier == "" {
			return &settings.Problem{What: "whose signature counts? --verifier is missing",
				Hint: "--verifier FILE names the verifier's key; a proof that brings its own trust proves nothing"}
		}
		v, err := m.keys().Verifier(*verifier)
		if err != nil {
			return err
		}
		if info, err := os.Stat(m.env.path(args[0])); err == nil && info.Size() > maxProof {
			return &settings.Problem{Where: args[0], What: fmt.Sprintf("%d bytes are no proof", info.Size()),
				Hint: "is it another file?"}
		}
		data, err := m.env.readFile(args[0])
		if err != nil {
			return err
		}
		s, err := seal.CheckDocument(data, v)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		err = m.print(s, "verify-proof", s)
		if err == nil && !s.Present {
			return told{errMissing}
		}
		return err
	}
	return c
}
