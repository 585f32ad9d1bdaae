package signed

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
)

// Key is a secret of a deployment with the id by which records name it.
type Key struct {
	ID     string
	Secret []byte // at least 16 bytes, drawn at random
}

// Keyring holds the keys of a deployment. The first signs; all of them verify, so
// that a key is replaced by putting a new one before it, and is retired by taking
// it out: then what it signed no longer verifies.
//
// Every agent signs with a key of its own, derived from the deployment's key and
// the agent's name, so that an agent whose key is lost cannot sign as another.
type Keyring struct{ keys []Key }

// minSecret is the least length of a secret, in bytes.
const minSecret = 16

// NewKeyring returns a ring of keys, the signing one first.
func NewKeyring(keys ...Key) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("a keyring needs a key")
	}
	r := new(Keyring)
	for _, k := range keys {
		switch {
		case k.ID == "" || strings.ContainsAny(k.ID, "/ \n"):
			return nil, fmt.Errorf("key id %q: an id is a word without slash and white space", k.ID)
		case len(k.Secret) < minSecret:
			return nil, fmt.Errorf("the secret of key %q has %d bytes: draw at least %d at random", k.ID, len(k.Secret),
				minSecret)
		}
		if slices.ContainsFunc(r.keys, func(o Key) bool { return o.ID == k.ID }) {
			return nil, fmt.Errorf("two keys have the id %q: give each one of its own", k.ID)
		}
		r.keys = append(r.keys, Key{k.ID, slices.Clone(k.Secret)})
	}
	return r, nil
}

// Fresh returns a ring with one key, drawn at random, that is nowhere else.
func Fresh() *Keyring {
	b := make([]byte, 4+sha256.Size)
	_, _ = rand.Read(b) // never fails
	return &Keyring{[]Key{{"fresh-" + hex.EncodeToString(b[:4]), b[4:]}}}
}

// Memory returns the ring of one memory of the deployment. What is signed with it is
// wrong for every other memory.
func (r *Keyring) Memory(name string) *Keyring {
	out := &Keyring{make([]Key, len(r.keys))}
	for i := range r.keys {
		derive := hmac.New(sha256.New, r.keys[i].Secret)
		derive.Write([]byte("memtox memory key 1\x00" + name))
		out.keys[i] = Key{r.keys[i].ID, derive.Sum(nil)}
	}
	return out
}

// Signer returns the signer of an agent. It verifies what every agent of the ring
// signed.
func (r *Keyring) Signer(agent string) *Signer {
	return &Signer{mac: r.keys[0].of(agent), id: r.keys[0].ID + "/" + agent, ring: r}
}

// of derives an agent's key.
func (k *Key) of(agent string) hash.Hash {
	derive := hmac.New(sha256.New, k.Secret)
	derive.Write([]byte("memtox agent key 1\x00" + agent))
	return hmac.New(sha256.New, derive.Sum(nil))
}

// maxOthers bounds how many keys of others a signer keeps derived.
const maxOthers = 64

// other returns the key that a record names, or nil where the ring has none of
// that id.
func (s *Signer) other(by string) hash.Hash {
	if s.ring == nil {
		return nil
	}
	if mac, ok := s.others[by]; ok {
		return mac
	}
	id, agent, ok := strings.Cut(by, "/")
	if !ok {
		return nil
	}
	for i := range s.ring.keys {
		if k := &s.ring.keys[i]; k.ID == id {
			if s.others == nil || len(s.others) >= maxOthers {
				s.others = make(map[string]hash.Hash)
			}
			mac := k.of(agent)
			s.others[by] = mac
			return mac
		}
	}
	return nil
}
