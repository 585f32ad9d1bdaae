package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/internal/settings"
)

func keyFlag(c *cobra.Command) *string {
	return c.Flags().String("key", "", "The `file` with the signer's key (default STORE.signer)")
}

func (m *memoryCommand) keys() seal.Keys {
	return seal.Keys{Store: m.name, Path: m.env.path, Made: func(signer, verifier string) {
		m.env.say("made a key: %s signs and must be kept from the agent, %s checks and can be given to anybody",
			signer, verifier)
	}}
}

// seal seals what is not sealed yet, if the key is there; without one it says so.
func (m *memoryCommand) seal(ctx context.Context, key string) error {
	if key == "" {
		if missing, err := m.keys().Sealable(); err != nil || missing != "" {
			m.env.say("not sealed: %s is not there (--key FILE names the key, memtox memory snapshot makes one)", missing)
			return err
		}
	}
	ledger := seal.NewLedger(m.store)
	s, v, err := m.keys().Signer(ctx, ledger, key)
	if err == nil {
		_, err = m.sealBy(ctx, ledger, s, v)
	}
	return err
}

func (m *memoryCommand) sealBy(ctx context.Context, l *seal.Ledger, s note.Signer, v note.Verifier) ([]seal.Entry, error) {
	sealed, err := l.Seal(ctx, s, v)
	if err == nil {
		err = m.store.Sign(s.Sign)
	}
	return sealed, err
}

func newSnapshot(m *memoryCommand, c *cobra.Command) action {
	key := keyFlag(c)
	reason := c.Flags().String("reason", "", "Before what it is taken")
	kept := c.Flags().String("checkpoint", "", "Write the signed state of the log to this `file`")
	return func(ctx context.Context, args []string) error {
		ledger := seal.NewLedger(m.store)
		// The key first: a snapshot that cannot be sealed is not taken.
		s, v, err := m.keys().Signer(ctx, ledger, *key)
		if err != nil {
			return err
		}
		snap, err := m.curator().Snapshot(ctx, strings.Join(args, ""), *reason)
		if err != nil {
			return err
		}
		sealed, err := m.sealBy(ctx, ledger, s, v)
		if err != nil {
			return err
		}
		signed, err := ledger.Checkpoint(ctx)
		if err == nil && *kept != "" {
			err = m.write(*kept, signed)
		}
		if err != nil {
			return err
		}
		out := struct {
			Snapshot   string       `json:"snapshot"`
			Sealed     []seal.Entry `json:"sealed"`
			Checkpoint string       `json:"checkpoint"`
		}{snap.ID, append([]seal.Entry{}, sealed...), string(signed)}
		other := !slices.ContainsFunc(sealed, func(e seal.Entry) bool { return e.ID == snap.ID })
		return m.print(out, "snapshot", map[string]any{"Other": other, "Snapshot": snap.ID, "Sealed": sealed})
	}
}

func newVerify(m *memoryCommand, c *cobra.Command) action {
	verifier := c.Flags().String("verifier", "", "The `file` with the verifier's key (default STORE.verifier)")
	since := c.Flags().String("since", "", "A checkpoint that was kept elsewhere: the log must continue it")
	unsigned := c.Flags().Bool("unsigned", false, "Check no signature")
	return func(ctx context.Context, _ []string) (err error) {
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
			if kept, err = m.env.read("--since", *since); err != nil {
				return err
			}
		}
		out, err := seal.NewLedger(m.store).Verify(ctx, v, kept)
		if err != nil {
			return err
		}
		m.unsound = m.found(out)
		return m.print(out, "verify", map[string]any{"Found": out, "Unsigned": *unsigned})
	}
}

// called is a snapshot's id, with its name if it has one.
func called(e seal.Entry) string {
	if e.Name == "" {
		return e.ID
	}
	return e.ID + " (" + e.Name + ")"
}

func newProve(m *memoryCommand, c *cobra.Command) action {
	snapshot := c.Flags().String("snapshot", "", "The snapshot, by id or by name")
	disclose := c.Flags().Bool("disclose", false, "Put the record's content into the proof")
	out := c.Flags().StringP("output", "o", "", "Write the proof to this `file`")
	return func(ctx context.Context, args []string) error {
		if *snapshot == "" {
			return &settings.Problem{What: "in which snapshot? --snapshot is missing",
				Hint: "memtox memory snapshots lists them"}
		}
		d, err := seal.NewLedger(m.store).Prove(ctx, *snapshot, args[0], *disclose)
		if errors.Is(err, seal.ErrNotSealed) {
			return &settings.Problem{Err: err, Hint: "memtox memory snapshot seals all"}
		}
		if err != nil {
			return err
		}
		data, err := seal.Encode(d)
		if err == nil && *out != "" {
			err = m.write(*out, data)
		}
		if err != nil {
			return err
		}
		if *m.format == "json" {
			_, err = m.env.Stdout.Write(data) // its one form: not a byte can be another
		} else {
			err = m.print(nil, "prove", map[string]any{"Proof": &d.Proof, "Snapshot": d.Snapshot, "Written": *out})
		}
		return endIf(err, !d.Proof.Present, errMissing)
	}
}

// maxProof bounds the file of a proof: siblings for every bit of a key, and a large
// record.
const maxProof = 64 << 20

func newVerifyProof(env *Env, c *cobra.Command) action {
	m := newMemoryCommand(env, c)
	verifier := c.Flags().String("verifier", "", "The `file` with the verifier's key")
	return func(_ context.Context, args []string) error {
		if *verifier == "" {
			return &settings.Problem{What: "whose signature counts? --verifier is missing",
				Hint: "--verifier FILE names the verifier's key; a proof that brings its own trust proves nothing"}
		}
		v, err := m.keys().Verifier(*verifier)
		if err != nil {
			return err
		}
		if info, err := os.Stat(env.path(args[0])); err == nil && info.Size() > maxProof {
			return &settings.Problem{Where: args[0], What: fmt.Sprintf("%d bytes are no proof", info.Size()),
				Hint: "is it another file?"}
		}
		data, err := env.readFile(args[0])
		if err != nil {
			return err
		}
		s, err := seal.CheckDocument(data, v)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return endIf(m.print(s, "verify-proof", s), !s.Present, errMissing)
	}
}
