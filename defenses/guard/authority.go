package guard

import (
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/provenance"
	"github.com/memtox/memtox/internal/text"
)

// Leave says what external content may do beyond being told, where the user had
// a hand in it.
type Leave string

// The leaves.
const (
	// Told: nothing more. It is context, shown with its source.
	Told Leave = "told"
	// LowRisk: it may fill the destination, the recipient or the amount of a call
	// that shows no high-risk intent; never a command or a credential.
	LowRisk Leave = "low_risk"
)

// Authority is what records of little trust may do, and what raises them.
type Authority struct {
	// Held keeps staged records from every session until somebody decides;
	// without it they are usable as context.
	Held Held `key:"staged"`
	// Asked is for content that the user asked to keep. It is still the source's:
	// an attack may stand in it as well as anywhere.
	Asked Leave `key:"asked"`
	// Named is for calls for which the user names the source in so many words.
	Named Leave `key:"named"`
	// Corroboration is how many trusted principals must say the same before an
	// external record may do what a trusted one may; 0 is never. What came from
	// outside corroborates nothing, however often it comes.
	Corroboration int `key:"corroboration"`
}

// Why a record's authority is not that of its class.
const (
	raisedApproved     = "approved"     // a person decided
	raisedCorroborated = "corroborated" // trusted principals say the same
	loweredStaged      = "staged"       // nobody has decided yet
	loweredShared      = "shared"       // everybody's, and not written by the operator
)

// standing is what a record may do.
type standing struct {
	class memory.Class // the least trusted that it derives from
	scope memory.Scope // never unset
	why   string       // why the scope is not that of the class
}

// raised reports whether the record may do more than its class.
func (s *standing) raised() bool { return s.why == raisedApproved || s.why == raisedCorroborated }

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
	if s.scope < memory.ToolActionAllowed && r.Principal != everybody &&
		g.claims.corroborated(r.ID, g.policy.Authority.Corroboration) {
		s.scope, s.why = memory.ToolActionAllowed, raisedCorroborated
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

// fills reports whether a record may fill an argument of this role, given the
// high-risk intents of the call and the user's words.
func (g *gate) fills(r *memory.Record, s *standing, role memory.Role, high []provenance.Intent, words string) bool {
	if s.scope >= memory.ToolActionAllowed {
		return len(high) == 0 || s.raised() || !g.policy.low(r, g.policy.HighRisk.TrustFloor) && governs(r, high)
	}
	if len(high) > 0 || role == memory.Command || role == memory.Credential || r.State != memory.Live ||
		s.why == loweredShared {
		return false
	}
	a := &g.policy.Authority
	return a.Asked == LowRisk && r.Asked || a.Named == LowRisk && names(words, r.Origin.Source)
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

// told reports whether a record is shown with its source rather than as the
// agent's own knowledge.
func (g *gate) told(r *memory.Record, s *standing, high []provenance.Intent) bool {
	if s.scope > memory.ContextOnly {
		return false
	}
	return !(g.policy.Authority.Asked == LowRisk && r.Asked && len(high) == 0 && r.State == memory.Live &&
		s.why != loweredShared)
}

// shortestSource is the least length of a source that words can name, in bytes.
const shortestSource = 6

// names reports whether words name a source as it is written, or the host of its
// address.
func names(words, source string) bool {
	source = text.Fold(source)
	words = text.Fold(words)
	if len(source) >= shortestSource && holdsWord(words, source) {
		return true
	}
	_, rest, ok := strings.Cut(source, "://")
	if !ok {
		return false
	}
	host, _, _ := strings.Cut(rest, "/")
	return len(host) >= shortestSource && holdsWord(words, host)
}

// holdsWord reports whether s holds w and it is no part of a longer name there.
func holdsWord(s, w string) bool {
	const other = `[^a-z0-9\x{80}-\x{10FFFF}._@/:#-]`
	return regexp.MustCompile(`(?:^|` + other + `)` + regexp.QuoteMeta(w) + `(?:\.?$|\. |` + other + `)`).MatchString(s)
}
