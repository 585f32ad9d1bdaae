package defenses

import (
	"encoding/json"
	"strings"

	"github.com/memtox/memtox/agents/memory"
)

// signature is what one part of a chain signed.
type signature struct {
	Part int
	By   string
	Sig  []byte
}

// joined marks the key id of a record that several parts of a chain signed.
const joined = "chain:"

// joinSignatures puts the signatures of several parts into one record field, as JSON;
// a lone one stays as it is.
func joinSignatures(list []signature) (sig []byte, by string) {
	switch len(list) {
	case 0:
		return nil, ""
	case 1:
		return list[0].Sig, list[0].By
	}
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.By
	}
	sig, _ = json.Marshal(list) // numbers, texts and bytes always encode
	return sig, joined + strings.Join(ids, "+")
}

// own returns the record with the signature that part i of the chain gave it,
// or with none if it gave none. A record whose joined signatures are malformed
// (only a store that was tampered with holds such) has none.
func own(r memory.Record, i int) memory.Record {
	if !strings.HasPrefix(r.SignedBy, joined) {
		return r
	}
	var list []signature
	err := json.Unmarshal(r.Signature, &list)
	r.Signature, r.SignedBy = nil, ""
	for _, s := range list {
		if err == nil && s.Part == i {
			r.Signature, r.SignedBy = s.Sig, s.By
		}
	}
	return r
}

// owned is own of a record that there may be.
func owned(r *memory.Record, i int) *memory.Record {
	if r == nil {
		return nil
	}
	out := own(*r, i)
	return &out
}
