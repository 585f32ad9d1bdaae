package memory

import (
	"slices"
	"time"
)

// State says which sessions can see a record.
type State uint8

// The states of a record.
const (
	Live        State = iota // every later session can see it
	Staged                   // deferred, yet usable as context until somebody decides
	Held                     // deferred, and no session sees it until it is approved
	Quarantined              // kept for review, never shown
	Retired                  // superseded, removed or expired
)

// Visible reports whether some later session can see a record in this state.
func (s State) Visible() bool { return s == Live || s == Staged }

// Scope is the authority that a record has once it is recalled.
type Scope uint8

// The execution scopes. The zero value leaves the scope to the reader.
const (
	ScopeUnset Scope = iota
	ContextOnly
	PlanningAllowed
	ToolActionAllowed
)

// Record is one memory entry.
type Record struct {
	ID    string `json:"id"`              // counts up within a trial
	Key   string `json:"key,omitempty"`   // slot name, file path with line, or skill name
	Store string `json:"store,omitempty"` // the profile's store that holds it
	Text  string `json:"text"`            // content

	Origin    Origin  `json:"origin"` // least trusted origin of Lineage
	Lineage   Lineage `json:"lineage,omitempty"`
	Principal string  `json:"principal,omitempty"` // whose memory it is; "*" is everybody's
	// Asked says that the user asked, in their own words, to keep the content
	// that this record derives from. The harness sets it.
	Asked bool `json:"asked,omitempty"`

	Created   time.Time `json:"created"`             // system time: when it was committed
	ValidFrom time.Time `json:"valid_from"`          // fact time
	ValidTo   time.Time `json:"valid_to,omitzero"`   // zero while current
	Version   int       `json:"version"`             // 1 for a new key, then counting up
	Parent    string    `json:"parent,omitempty"`    // the record that this one supersedes
	State     State     `json:"state"`               //
	Scope     Scope     `json:"scope,omitempty"`     // set by a defense
	Signature []byte    `json:"signature,omitempty"` // set by a defense
	SignedBy  string    `json:"signed_by,omitempty"` // key id of Signature
	// Intents are the intents that a structured record may govern, and Trust its
	// own trust score, where a foreign store keeps them. Neither is set for
	// records that an agent writes.
	Intents []string `json:"intents,omitempty"`
	Trust   *float64 `json:"trust,omitempty"`
}

// AppendOrigins appends where the record may come from: its origin, or what that
// stands for, the external sources of its lineage, where it names several.
func (r *Record) AppendOrigins(dst []Origin) []Origin {
	n := len(dst)
	for _, l := range r.Lineage {
		if l.Origin == r.Origin {
			return append(dst[:n], r.Origin)
		}
		if l.Origin.Class == External && !slices.Contains(dst[n:], l.Origin) {
			dst = append(dst, l.Origin)
		}
	}
	if len(dst) == n || r.Origin.Class != External {
		return append(dst[:n], r.Origin)
	}
	return dst
}

// From reports whether a source is that of the record, or of anything that it derives
// from.
func (r *Record) From(source string) bool {
	return r.Origin.Source == source || slices.ContainsFunc(r.Lineage,
		func(l Link) bool { return l.Origin.Source == source })
}
