package guard

import (
	"encoding/json"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/keyword"
)

// Rejection is what somebody is told whose write was refused. In JSON it is
//
//	{"success":false,"error":"Content blocked: matched … Rephrase the entry."}
type Rejection struct {
	Message string   // one line, for the model or the person
	Checks  []string // ids of the checks that refused, for programs
	Held    string   // the number under which it waits for a person, or was decided about
}

// Error implements error.
func (r *Rejection) Error() string { return r.Message }

// MarshalJSON implements [json.Marshaler].
func (r *Rejection) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Success bool     `json:"success"`
		Error   string   `json:"error"`
		Checks  []string `json:"checks,omitempty"`
		Held    string   `json:"held,omitempty"`
	}{false, r.Message, r.Checks, r.Held})
}

// Rejected returns what to tell somebody whose write got a verdict, nil where the
// verdict does not refuse it. The first pattern that was matched is named, or else
// the first finding: nothing in it quotes the content.
func Rejected(v *memory.Verdict) *Rejection {
	if !v.Action.Stops() {
		return nil
	}
	r := &Rejection{Message: "Content blocked by the policy. Rephrase the entry."}
	for i, f := range v.Findings {
		if i == 0 {
			r.Message = "Content blocked: matched check '" + f.Check + "'. Rephrase the entry."
		}
		r.Checks = append(r.Checks, f.Check)
	}
	for _, f := range v.Findings {
		for _, t := range keyword.Threats(keyword.Strict) {
			if t.ID == f.Check {
				r.Message = t.Message()
				return r
			}
		}
	}
	return r
}

// Inspector looks at contents that nobody proposes: files of memory that are
// there. It belongs to one goroutine.
type Inspector struct{ g gate }

// Inspector returns an inspector with the guard's policy.
func (g *Guard) Inspector() *Inspector {
	return &Inspector{gate{policy: g.policy, secrets: g.secrets, scanner: keyword.Scanner{Scope: g.policy.Scan}}}
}

// Inspect returns what the checks of the content (threats, hidden text, secrets and
// personal data, decoys) find in an entry of unknown origin and what the policy
// would do about it. Findings that it allows are left out. The result is good until
// the next call.
func (in *Inspector) Inspect(key, content string) []Finding {
	s := &in.g.subject
	s.reset(memory.Proposal{Record: memory.Record{Key: key, Text: content}})
	sensitiveData(&in.g, s)
	s.findings = in.g.scan(s.findings, s.layers())
	s.findings = in.g.scanKey(s.findings, key)
	in.g.settle(0)
	kept := s.findings[:0]
	for _, f := range s.findings {
		if f.Action > memory.Allow {
			kept = append(kept, f)
		}
	}
	return kept
}
