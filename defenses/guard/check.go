package guard

import (
	_ "embed"
	"fmt"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// Check names one thing that the guard looks for: what the key on of a rule
// names.
type Check string

// The checks. Those of OWASP Agent Memory Guard have its names.
const (
	ProtectedKeyCheck      Check = "protected_key"      // a key that only the operator may write
	ImmutableKeyCheck      Check = "immutable_key"      // a key that keeps its first value
	SourceClassCheck       Check = "source_class"       // a class that the writer cannot have
	SizeCheck              Check = "size_anomaly"       // a content that is too long, in all or for its key
	BurstCheck             Check = "write_burst"        // writes that come too fast
	RapidChangeCheck       Check = "rapid_change"       // a key that changes too often
	RepetitionCheck        Check = "repetition"         // an external content that was stored a short time ago
	SelfReinforcementCheck Check = "self_reinforcement" // the agent says nearly the same again and again
	DecoyCheck             Check = "decoy_endpoint"     // a decoy that nobody honest knows
	InjectionCheck         Check = "prompt_injection"   // threat patterns in a content or a key
	HiddenTextCheck        Check = "hidden_text"        // characters that no reader sees
	SensitiveDataCheck     Check = "sensitive_data"     // secrets and personal data
	// a record of little trust that bears on a high-risk intent, at the write
	HighRiskCheck      Check = "high_risk_intent"
	StandingRuleCheck  Check = "standing_rule"     // a record of little trust that says how to behave
	ContradictionCheck Check = "contradiction"     // an external claim against a trusted fact
	OverrideCheck      Check = "override"          // a write that would replace or remove a record of more trust
	PrincipalCheck     Check = "foreign_principal" // a recalled record of somebody else
	CapCheck           Check = "external_cap"      // an external record more than a recall may hold
	SignatureCheck     Check = "signature"         // a recalled record that is not what was signed
	LowTrustCheck      Check = "low_trust_source"  // a recalled record that must not govern the intent of the query
	WithheldCheck      Check = "withheld"          // a sentence of a recalled record in which its source has no say
	FillsCheck         Check = "external_argument" // a tool call in which external memory decides
)

// CheckInfo describes a check to the person who writes a policy.
type CheckInfo struct {
	Check Check
	Gates string // write, read, act
	Doc   string
	// Families are the parts of the check that a rule may name instead of it.
	Families []string
}

//go:embed checks.yaml
var checksYAML []byte

var allChecks = text.Lists[[]CheckInfo]("guard: checks.yaml", checksYAML)

// Checks lists what a rule can name.
func Checks() []CheckInfo { return *allChecks() }

// onNames is every name that a rule may be for.
func onNames() []string {
	var out []string
	for _, c := range Checks() {
		out = append(out, string(c.Check))
		out = append(out, c.Families...)
	}
	return out
}

// Finding is what a check found, and what the policy made of it.
type Finding struct {
	memory.Finding
	On       Check
	Family   string // part of the check, where it has parts
	Severity Severity
	Class    memory.Class // of the record: the least trusted that it derives from
	Action   memory.Action
	Rule     string // the rule that decided; "" is the default action

	key     bool // it is about the key, which nothing can be taken out of
	confirm bool // the user may be shown the call instead
}

// found starts a finding.
func found(on Check, s Severity, id, note string) Finding {
	return Finding{On: on, Severity: s, Finding: memory.Finding{Check: id, Note: note}}
}

// note is a finding that stops nothing: why something was let pass.
func note(on Check, id, why string) Finding { return found(on, Info, id, why) }

// writeCheck is one check of the write gate: from a proposal and what is known of
// the trial to findings. It changes no state; state follows Committed.
type writeCheck func(*gate, *subject)

// subject is the proposal that is being judged: what every check of one write
// shares.
type subject struct {
	memory.Proposal
	seen     analysis // of the content; made when the first check asks
	isSeen   bool
	about    sketch // likewise
	isAbout  bool
	key      keys
	class    memory.Class // the least trusted that the record derives from
	findings []Finding
}

// layers are the ways to read the content.
func (s *subject) layers() []layer {
	if !s.isSeen {
		s.seen.of(s.Record.Text)
		s.isSeen = true
	}
	return s.seen.layers
}

// sketch is what the content is about.
func (s *subject) sketch() *sketch {
	if !s.isAbout {
		s.about.read(s.layers()[0].Folded())
		s.isAbout = true
	}
	return &s.about
}

func (s *subject) add(f Finding) { s.findings = append(s.findings, f) }

// find notes what a check found in the content as a whole.
func (s *subject) find(on Check, severity Severity, note string, args ...any) {
	s.add(found(on, severity, string(on), fmt.Sprintf(note, args...)))
}

// findKey notes what a check found out about the record besides its content, out of
// which nothing can be taken then.
func (s *subject) findKey(on Check, severity Severity, note string, args ...any) {
	s.find(on, severity, note, args...)
	s.findings[len(s.findings)-1].key = true
}

// writeChecks lists the checks of the write gate, cheap ones first: the first
// block ends the questions.
var writeChecks = [...]writeCheck{
	protectedKeys,
	immutableKeys,
	sourceClass,
	size,
	burst,
	rapidChange,
	sensitiveData,
	threats,
	repetition,
	selfReinforcement,
	lowTrustWrite,
	contradictions,
	overrides,
}
