package seal

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is the state of a log: what a verifier keeps outside the store.
type Checkpoint struct {
	Origin string // which log; one line
	Size   int64  // entries
	Root   Hash   // of those entries
}

// ErrSignature is in the error of a checkpoint without a right signature.
var ErrSignature = errors.New("the checkpoint is not signed by the expected key")

// GenerateKey draws a pair of Ed25519 keys under a name: the signer's, which
// must be kept from whoever can write the store, and the verifier's, which can
// be told to anybody.
func GenerateKey(random io.Reader, name string) (signer, verifier string, err error) {
	return note.GenerateKey(random, name)
}

// ParseSigner reads a signer's key and derives the verifier's from it.
func ParseSigner(key string) (note.Signer, note.Verifier, error) {
	signer, err := note.NewSigner(key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a signer's key: %w", err)
	}
	text, err := VerifierKey(key)
	if err != nil {
		return nil, nil, err
	}
	verifier, err := note.NewVerifier(text)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a signer's key: %w", err)
	}
	if verifier.KeyHash() != signer.KeyHash() {
		return nil, nil, errors.New("reading a signer's key: its hash is of another key")
	}
	return signer, verifier, nil
}

// VerifierKey derives the verifier's key from the signer's.
func VerifierKey(signer string) (string, error) {
	s, err := note.NewSigner(signer)
	if err != nil {
		return "", fmt.Errorf("reading a signer's key: %w", err)
	}
	// The form is PRIVATE+KEY+name+hash+base64 of the kind of key and the seed.
	fields := strings.SplitN(signer, "+", 5)
	raw, err := base64.StdEncoding.DecodeString(fields[len(fields)-1])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return "", errors.New("reading a signer's key: it holds no Ed25519 seed")
	}
	text, err := note.NewEd25519VerifierKey(s.Name(), ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey))
	if err != nil {
		return "", fmt.Errorf("reading a signer's key: %w", err)
	}
	return text, nil
}

// Sign returns the checkpoint as a signed note: origin, size and root a line
// each, and a signature.
func (c Checkpoint) Sign(signer note.Signer) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("signing a checkpoint: %w", err)
	}
	return note.Sign(&note.Note{Text: c.text()}, signer)
}

func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

func (c Checkpoint) check() error {
	if c.Origin == "" || strings.ContainsAny(c.Origin, "\n") || c.Size < 0 {
		return fmt.Errorf("origin %q and size %d: an origin is one line, and a size at least 0", c.Origin, c.Size)
	}
	return nil
}

// OpenCheckpoint reads a signed checkpoint. A signature that is missing, of
// another key or wrong is [ErrSignature]; so is one signature more, for nothing
// but what Sign wrote is read.
func OpenCheckpoint(signed []byte, verifier note.Verifier) (Checkpoint, error) {
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w (%s): %w", ErrSignature, verifier.Name(), err)
	}
	if len(n.Sigs) != 1 || len(n.UnverifiedSigs) > 0 {
		return Checkpoint{}, fmt.Errorf("%w (%s): it has %d signatures", ErrSignature, verifier.Name(),
			len(n.Sigs)+len(n.UnverifiedSigs))
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: %d lines, not origin, size and root", len(lines)-1)
	}
	c := Checkpoint{Origin: lines[0]}
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: the size %q is no number", lines[1])
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: the root %q is no hash in base64", lines[2])
	}
	c.Root = Hash(root)
	if err := c.check(); err != nil {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: %w", err)
	}
	// Base64 has spare bits at its end, which note does not look at.
	sig, err := base64.StdEncoding.DecodeString(n.Sigs[0].Base64)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: its signature: %w", err)
	}
	if own := fmt.Sprintf("%s\n— %s %s\n", c.text(), n.Sigs[0].Name,
		base64.StdEncoding.EncodeToString(sig)); own != string(signed) {
		return Checkpoint{}, errors.New("reading a checkpoint: it is not in canonical form")
	}
	return c, nil
}
