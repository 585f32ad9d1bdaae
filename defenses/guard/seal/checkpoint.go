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
	verifier, err := note.NewVerifier(verifierKey(signer, key))
	if err != nil {
		return nil, nil, fmt.Errorf("reading a signer's key: %w", err)
	}
	return signer, verifier, nil
}

// verifierKey derives the verifier's key from the text of the signer's, which is
// PRIVATE+KEY+name+hash+base64 of the kind of key, which is Ed25519, and the seed.
func verifierKey(signer note.Signer, key string) string {
	raw, _ := base64.StdEncoding.DecodeString(strings.SplitN(key, "+", 5)[4])
	public := ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey)
	text, _ := note.NewEd25519VerifierKey(signer.Name(), public) // fails for a key of another size alone
	return text
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
	// Whatever cannot be read leaves a field that is written in another way below.
	lines := append(strings.Split(n.Text, "\n"), "", "", "")
	c := Checkpoint{Origin: lines[0]}
	c.Size, _ = strconv.ParseInt(lines[1], 10, 64)
	root, _ := base64.StdEncoding.DecodeString(lines[2])
	copy(c.Root[:], root)
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
		return Checkpoint{}, errors.New("reading a checkpoint: it is not origin, size and root, a line each, and a " +
			"signature, in their one form")
	}
	return c, nil
}
