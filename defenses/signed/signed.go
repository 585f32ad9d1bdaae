// Package signed is the negative control of the defenses: every write is signed
// with HMAC-SHA256, and every recalled record without a right signature is
// quarantined.
//
// It stops everything that is written around the agent and nothing that the
// agent itself writes. A poisoned memory that the agent was talked into is signed
// like any other. Signatures are integrity, not provenance; a measure that
// credits this arm with more measures something else.
//
// Past turns of the conversation are not memory writes and have never been
// signed, so a transcript search is not verified.
package signed

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
)

// Register adds the defense signed.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:    "signed",
		Screens: []defenses.Place{defenses.Write, defenses.Read},
		Idea:    "HMAC-SHA256 over every write, verified at read: the negative control",
		Cost: "no model calls; about 1 µs a write and a recalled record; state: one key, and 32 bytes and a key id in " +
			"each record",
		Control: true,
	}, func(string, defenses.Env) (defenses.Defense, error) { return New(), nil })
}

// The checks in findings.
const (
	Missing = "signature_missing"
	Wrong   = "signature_wrong"
)

// New returns the defense.
func New() defenses.Defense {
	return defenses.Func(func(_ context.Context, v memory.View) (memory.Gate, error) {
		return &gate{signer: NewSigner(v.Seed())}, nil
	})
}

// Signer signs and verifies records with one key. It belongs to one goroutine.
type Signer struct {
	mac hash.Hash
	id  string
	buf []byte
	sum [sha256.Size]byte

	ring   *Keyring // nil for the one key of a trial
	others map[string]hash.Hash
}

// NewSigner derives the key from a trial's seed: trials are reproducible, and
// each has a key of its own. A deployment would draw the key at random and keep
// it away from the agent.
func NewSigner(seed uint64) *Signer {
	derive := hmac.New(sha256.New, []byte("memtox signing key 1"))
	derive.Write(binary.BigEndian.AppendUint64(nil, seed))
	key := derive.Sum(nil)
	id := sha256.Sum256(key)
	return &Signer{mac: hmac.New(sha256.New, key), id: "hmac-sha256:" + hex.EncodeToString(id[:4])}
}

// Sign returns the record's signature and the id of the key.
func (s *Signer) Sign(r memory.Record) ([]byte, string) {
	return s.mac256(s.mac, &r, nil), s.id
}

// Verify returns "" for a right signature, else [Missing] or [Wrong]. A signature
// by a key that the signer does not know is wrong. Signatures are compared in
// constant time.
func (s *Signer) Verify(r *memory.Record) string {
	if len(r.Signature) == 0 {
		return Missing
	}
	mac := s.mac
	if r.SignedBy != s.id {
		mac = s.other(r.SignedBy)
	}
	if mac == nil || !hmac.Equal(r.Signature, s.mac256(mac, r, s.sum[:0])) {
		return Wrong
	}
	return ""
}

func (s *Signer) mac256(mac hash.Hash, r *memory.Record, dst []byte) []byte {
	s.buf = r.AppendSigned(s.buf[:0])
	mac.Reset()
	mac.Write(s.buf)
	return mac.Sum(dst)
}

type gate struct {
	memory.Open
	signer *Signer
}

func (g *gate) Sign(r memory.Record) ([]byte, string) { return g.signer.Sign(r) }

func (g *gate) Write(_ context.Context, p memory.Proposal) (memory.Verdict, error) {
	var v memory.Verdict
	if p.Op != memory.Remove {
		p.Record.Scope = memory.ScopeUnset // the verdict sets none
		v.Signature, v.SignedBy = g.signer.Sign(p.Record)
	}
	return v, nil
}

func (g *gate) Read(_ context.Context, q memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	if q.Route == memory.RouteTranscript {
		return out, nil
	}
	for i := range cs {
		if why := g.signer.Verify(&cs[i].Record); why != "" {
			out[i].Action = memory.Quarantine
			out[i].Findings = []memory.Finding{{Check: why, Note: Note(why)}}
		}
	}
	return out, nil
}

func (g *gate) Seed(_ context.Context, rs []memory.Record) ([]memory.Record, error) {
	out := slices.Clone(rs)
	for i := range out {
		out[i].Signature, out[i].SignedBy = g.signer.Sign(out[i])
	}
	return out, nil
}

// Note says in words why a record was not verified.
func Note(why string) string {
	if why == Missing {
		return "the record has no signature: it was not written through the gate"
	}
	return "the record is not what was signed: it was changed after the write, or signed with another key"
}
