package seal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/settings"
)

// Keys are the keys of a store: those beside it, unless a file is named.
type Keys struct {
	Store string                   // as errors call it
	Path  func(name string) string // where a file of that name is
	// Made is told of a pair of keys that was made.
	Made func(signer, verifier string)
}

func (k Keys) signer() string   { return k.Store + ".signer" }
func (k Keys) verifier() string { return k.Store + ".verifier" }

// exists reports whether a file is there.
func (k Keys) exists(name string) (bool, error) {
	_, err := os.Stat(k.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Sealable reports whether there is a key beside the store, or says which is missing.
func (k Keys) Sealable() (missing string, err error) {
	there, err := k.exists(k.signer())
	if err != nil || there {
		return "", err
	}
	return k.signer(), nil
}

// Signer reads the key that seals. Where the store was never sealed and no key is
// named, it makes one.
func (k Keys) Signer(ctx context.Context, ledger *Ledger, key string) (note.Signer, note.Verifier, error) {
	name, unsealed := cmp.Or(key, k.signer()), false
	if key == "" {
		// The log first: whoever has sealed it since has made the key before.
		signed, err := ledger.Checkpoint(ctx)
		if err != nil {
			return nil, nil, err
		}
		unsealed = signed == nil
		missing, err := k.Sealable()
		switch {
		case err != nil:
			return nil, nil, err
		case missing != "" && !unsealed:
			return nil, nil, &settings.Problem{What: "the store was sealed with a key, and " + name + " is not there",
				Hint: "--key FILE names the file with that key"}
		case missing != "":
			if err := k.makeKey(); err != nil {
				return nil, nil, err
			}
		}
	}
	b, err := store.ReadKey(k.Path(name))
	if p := (*settings.Problem)(nil); err != nil && !errors.As(err, &p) {
		err = &settings.Problem{Where: "--key", Err: err}
	}
	if err != nil {
		return nil, nil, err
	}
	text := strings.TrimSpace(string(b))
	s, v, err := ParseSigner(text)
	switch {
	case err != nil && key == "":
		return nil, nil, fmt.Errorf("%w: %s holds no signer's key any more: bring it back from a copy",
			store.ErrDamaged, name)
	case err != nil:
		return nil, nil, &settings.Problem{Where: name, What: "it holds no signer's key",
			Hint: "it is the file that the first `memtox memory snapshot` wrote"}
	}
	if unsealed {
		err := store.WriteKey(k.Path(k.verifier()), verifierKey(s, text), 0o644)
		// One that is there already was made by another process with the same key, or
		// before a crash.
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, nil, fmt.Errorf("writing a key: %w", err)
		}
	}
	return s, v, nil
}

// makeKey draws the key of a store. Of processes that do so at the same time one is
// first, and all seal with its key.
func (k Keys) makeKey() error {
	var id [4]byte
	rand.Read(id[:])
	key, _, err := GenerateKey(rand.Reader, "memtox-memory-"+hex.EncodeToString(id[:]))
	if err != nil {
		return fmt.Errorf("drawing a key: %w", err)
	}
	switch old, err := k.exists(k.verifier()); {
	case err != nil:
		return err
	case old:
		// A signer's key is there before its verifier's.
		if there, err := k.exists(k.signer()); err != nil || there {
			return err
		}
		return &settings.Problem{What: k.verifier() + " is there, and the signer's key that belongs to it is not",
			Hint: "--key FILE names it; or move the verifier's key away, to have a new pair made"}
	}
	switch err := store.WriteKey(k.Path(k.signer()), key, 0o600); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("writing a key: %w", err)
	}
	k.Made(k.signer(), k.verifier())
	return nil
}

// Verifier reads the key that checks signatures: STORE.verifier where no file is named.
func (k Keys) Verifier(name string) (note.Verifier, error) {
	if name == "" {
		name = k.verifier()
		if there, err := k.exists(name); err != nil || !there {
			return nil, errors.Join(err, &settings.Problem{What: "without the verifier's key nothing can be said of " +
				"signatures, and " + name + " is not there", Hint: "--verifier FILE names it"})
		}
	}
	b, err := os.ReadFile(k.Path(name))
	if err != nil {
		return nil, &settings.Problem{Where: "--verifier", Err: err}
	}
	v, err := note.NewVerifier(strings.TrimSpace(string(b)))
	switch {
	case err != nil && name == k.verifier():
		return nil, fmt.Errorf("%w: %s holds no verifier's key any more: bring it back from a copy",
			store.ErrDamaged, name)
	case err != nil:
		return nil, &settings.Problem{Where: name, What: "it holds no verifier's key",
			Hint: "it is a file like the STORE.verifier that the first `memtox memory snapshot` wrote"}
	}
	return v, nil
}
