package guard

import (
	"slices"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/provenance"
)

// Authority is what a value from outside may decide.
type Authority struct {
	// Held keeps staged records from every session until somebody decides;
	// without it they are usable as context.
	Held Held `key:"staged"`
	// Confirm are the roles of arguments for which a source's word alone is not enough:
	// the user says which value it is.
	Confirm []memory.Role `key:"confirm"`
	// Attribute is which records are shown with their source.
	Attribute Attributes `key:"attribute"`
	// By is how the user is asked.
	By Asking `key:"by"`
	// Kept is what content may do that the user asked to keep.
	Kept KeptMay `key:"kept"`
	// Looks is how often the user's tables may be asked about one value, a table.
	Looks int `key:"looks"`
}

// Attributes says which records are shown with their source.
type Attributes string

// Which records.
const (
	// Undecided: those that wait for a decision, and those for everybody.
	Undecided Attributes = "waiting"
	// Outside: all from outside that no person has approved. A model that honours
	// attributions does then without what the guard would have let act.
	Outside Attributes = "outside"
)

// Asking is how the user is asked about a value that only a source has.
type Asking string

// The ways.
const (
	// Ask refuses the call and tells the model to ask the user which value it is. He is
	// not shown the source's, so that he cannot nod it through.
	Ask Asking = "question"
	// Show has the user shown the call, which he agrees to or not.
	Show Asking = "call"
)

// KeptMay is what content may do that the user asked to keep.
type KeptMay string

// What it may do.
const (
	// Acts: it decides like the user's own word, unless his tables contradict it.
	Acts KeptMay = "acts"
	// Confirmed: as if he had not asked to keep it.
	Confirmed KeptMay = "confirmed"
)

// Why a record's authority is not that of its class.
const (
	raisedApproved = "approved" // a person decided
	loweredStaged  = "staged"   // nobody has decided yet
	loweredShared  = "shared"   // everybody's, and not written by the operator
)

// standing is what a record may do.
type standing struct {
	class memory.Class // the least trusted that it derives from
	scope memory.Scope // never unset
	why   string       // why the scope is not that of the class
}

// leastClass is the class of the least trusted thing that a record derives from:
// the origin that the harness gave it, and every link of its lineage. Nothing
// that the record says counts.
func leastClass(r *memory.Record) memory.Class {
	c := r.Origin.Class
	for i := range r.Lineage {
		c = min(c, r.Lineage[i].Origin.Class)
	}
	return min(c, memory.System)
}

// classScope is the authority that the policy gives a class. What it does not
// name is left to the reader, and so not bound here.
func (p *Policy) classScope(c memory.Class) memory.Scope {
	if s := p.Scopes[c]; s != memory.ScopeUnset {
		return s
	}
	return memory.ToolActionAllowed
}

// label is the scope that a record is stored with. It is set here, once, and
// signed with the record.
func (p *Policy) label(r *memory.Record) memory.Scope {
	return p.Scopes[leastClass(r)]
}

// standing says what a record may do, whose signature was found right.
func (g *gate) standing(r *memory.Record) standing {
	s := standing{class: leastClass(r)}
	s.scope = g.policy.classScope(s.class)
	switch {
	case r.Principal == everybody && s.class < memory.System:
		s.lower(loweredShared)
	case r.State == memory.Staged:
		s.lower(loweredStaged)
	case r.Scope > s.scope:
		s.scope, s.why = r.Scope, raisedApproved
	}
	return s
}

func (s *standing) lower(why string) {
	if s.scope > memory.ContextOnly {
		s.scope = memory.ContextOnly
	}
	s.why = why
}

// everybody is the principal of records that all may read.
const everybody = "*"

// trust is the trust in a record: its own score if it has one, but never more
// than its class has. A score that came with a text is the text's own claim.
func trust(r *memory.Record) float64 {
	of := provenance.Trust(&memory.Record{Origin: memory.Origin{Class: leastClass(r)}})
	if r.Trust != nil && !(*r.Trust >= of) {
		return *r.Trust
	}
	return of
}

// low reports whether a record is trusted less than floor. A record that brings
// its own score must also name a trusted source: a score alone is anybody's
// claim.
func (p *Policy) low(r *memory.Record, floor float64) bool {
	return !(trust(r) >= floor) || r.Trust != nil && !slices.Contains(p.HighRisk.TrustedSources, r.Origin.Source)
}

// acts reports whether a record may govern high-risk intents by itself.
func (g *gate) acts(r *memory.Record, s *standing, high []provenance.Intent) bool {
	return s.why == raisedApproved ||
		s.scope >= memory.ToolActionAllowed && !g.policy.low(r, g.policy.HighRisk.TrustFloor) && governs(r, high)
}

// governs reports whether a structured record may govern these intents. A record
// without a list of its own may govern what its trust allows.
func governs(r *memory.Record, high []provenance.Intent) bool {
	for _, in := range high {
		if r.Intents != nil && !slices.Contains(r.Intents, string(in)) {
			return false
		}
	}
	return true
}
