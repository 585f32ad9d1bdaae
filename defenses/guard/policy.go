package guard

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/keyword"
	"github.com/memtox/memtox/internal/settings"
)

// Mode says what the guard does with what its checks find.
type Mode string

// The modes.
const (
	// Enforce does what the rules say. In a policy file it is called block.
	Enforce Mode = "block"
	// Warn is shadow operation: everything is allowed and stays as it is, and the
	// findings are recorded.
	Warn Mode = "warn"
	// Strip takes out of a content what the rules would stop it for, where that
	// has a place in the content, and lets the rest be stored.
	Strip Mode = "strip"
)

// Severity grades a finding.
type Severity uint8

// The severities. Info is a note: rules meet it only where they ask for it, and
// the default action never.
const (
	Info Severity = iota
	Low
	Medium
	High
	Critical
)

var severityNames = []string{"info", "low", "medium", "high", "critical"}

// String returns the severity's name as policies spell it.
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("unknown(%d)", s)
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Severity) UnmarshalText(b []byte) error {
	i := slices.Index(severityNames, string(b))
	if i < 0 {
		return fmt.Errorf("unknown severity %q: one of %s", b, strings.Join(severityNames, ", "))
	}
	*s = Severity(i)
	return nil
}

// Rule maps findings to an action.
type Rule struct {
	Name string `key:"name"`
	// On names checks, families or ids of findings; "*" is every one of them.
	On          []string      `key:"on"`
	Action      memory.Action `key:"action"`
	MinSeverity Severity      `key:"min_severity"`
	// Keys are the record keys that the rule is for; none is every key.
	Keys []Glob `key:"keys"`
	// Classes are the source classes of the records that the rule is for: of what a
	// record derives from, the least trusted. None is every class.
	Classes []memory.Class `key:"classes"`
}

// covers reports whether the rule speaks to a finding about a record of that key.
func (r *Rule) covers(f *Finding, k *keys) bool {
	if f.Severity < r.MinSeverity || len(r.Classes) > 0 && !slices.Contains(r.Classes, f.Class) ||
		len(r.Keys) > 0 && !k.match(r.Keys) {
		return false
	}
	for _, on := range r.On {
		if on == "*" || on == string(f.On) || on == f.Family || on == f.Check {
			return true
		}
	}
	return false
}

// Size bounds contents.
type Size struct {
	MaxBytes int `key:"max_bytes"` // of one content; 0 is no limit
	// Growth is how many times as long as the median of the key's own history a
	// content may be; 0 does not look. Contents up to Floor bytes are never too
	// long for their history.
	Growth float64 `key:"growth"`
	Floor  int     `key:"floor"`
}

// Rate bounds writes in time.
type Rate struct {
	Writes int           `key:"writes"` // 0 is no limit
	Window time.Duration `key:"window"`
}

// Cooldown is the time in which a content must not come again, in other words
// or under another key.
type Cooldown struct {
	Window     time.Duration `key:"window"`     // 0 does not look
	Similarity float64       `key:"similarity"` // 0 to 1: from where on two contents are the same
}

// SelfReinforcement is how often the agent may say nearly the same before
// somebody else does.
type SelfReinforcement struct {
	Window     time.Duration `key:"window"`
	Writes     int           `key:"writes"` // 0 does not look
	Similarity float64       `key:"similarity"`
}

// HighRisk says who may govern the intents in which a false memory does lasting
// harm.
type HighRisk struct {
	Intents        []string `key:"intents"`
	TrustedSources []string `key:"trusted_sources"` // that a structured record with a trust of its own must name
	TrustFloor     float64  `key:"trust_floor"`     // below it a record governs none of the intents
	WriteFloor     float64  `key:"write_floor"`     // below it a record that bears on one is a finding when it is written
}

// Retrieval bounds what external records may take of a recall.
type Retrieval struct {
	MaxExternal int           `key:"max_external"` // in the top k; 0 is no limit
	StaleAfter  time.Duration `key:"stale_after"`  // from when on one ranks behind all others; 0 is never
}

// Policy says what the guard looks for and what it does about it. A Policy that
// a guard was made of must not be changed.
type Policy struct {
	Name          string        // of the preset or the file
	Mode          Mode          `key:"mode"`
	DefaultAction memory.Action `key:"default_action"`
	ProtectedKeys []Glob        `key:"protected_keys"`
	ImmutableKeys []Glob        `key:"immutable_keys"`
	Rules         []Rule        `key:"rules"`
	Scan          keyword.Scope `key:"scan"`
	// Scopes is the authority of records by the class of their origin; unset
	// leaves it to the reader.
	Scopes            Scopes            `key:"scopes"`
	Size              Size              `key:"size"`
	Rate              Rate              `key:"rate"`
	Cooldown          Cooldown          `key:"cooldown"`
	RapidChange       Rate              `key:"rapid_change"` // of one key
	SelfReinforcement SelfReinforcement `key:"self_reinforcement"`
	DecoyEndpoints    []string          `key:"decoy_endpoints"`
	HighRisk          HighRisk          `key:"high_risk"`
	Authority         Authority         `key:"authority"`
	Retrieval         Retrieval         `key:"retrieval"`
	// Off are the layers that are left out, to measure what each is worth.
	Off []Layer `key:"off"`

	wanted map[Check]bool // checks that may come to something; made by ready
}

// Layer is a part of what the guard does that can be left out.
type Layer string

// The layers.
const (
	ScanLayer       Layer = "scan"       // threat patterns, hidden text and decoys
	RepetitionLayer Layer = "repetition" // repetition and self-reinforcement
	OverrideLayer   Layer = "override"   // an outsider's write in place of the user's
	LimitsLayer     Layer = "limits"     // sizes and rates
	SecretsLayer    Layer = "secrets"    // sensitive data
	SignatureLayer  Layer = "signature"  // signatures of recalled records
	PrincipalLayer  Layer = "principal"  // whose record it is
	WithheldLayer   Layer = "withheld"   // what an outsider has no say in
	CapLayer        Layer = "cap"        // how many external records a recall holds
	TablesLayer     Layer = "tables"     // evidence from the user's tables
	RecordsLayer    Layer = "records"    // evidence from his records
	KeptLayer       Layer = "kept"       // that he asked to keep it
	AddedLayer      Layer = "added"      // that nobody asked for it
	EchoLayer       Layer = "echo"       // that a tool says again what an outsider said
	RiskLayer       Layer = "risk"       // what is at stake
)

// Layers are those that there are, in the order of the gates.
func Layers() []Layer {
	return []Layer{LimitsLayer, SecretsLayer, ScanLayer, RepetitionLayer, OverrideLayer, SignatureLayer, PrincipalLayer,
		WithheldLayer, CapLayer, TablesLayer, KeptLayer, RecordsLayer, AddedLayer, EchoLayer, RiskLayer}
}

// layerOf is the layer that a check belongs to.
var layerOf = map[Check]Layer{InjectionCheck: ScanLayer, HiddenTextCheck: ScanLayer, DecoyCheck: ScanLayer,
	RepetitionCheck: RepetitionLayer, SelfReinforcementCheck: RepetitionLayer, OverrideCheck: OverrideLayer,
	SizeCheck: LimitsLayer, BurstCheck: LimitsLayer, RapidChangeCheck: LimitsLayer, SensitiveDataCheck: SecretsLayer,
	SignatureCheck: SignatureLayer, PrincipalCheck: PrincipalLayer, WithheldCheck: WithheldLayer, CapCheck: CapLayer}

func (p *Policy) on(l Layer) bool { return !slices.Contains(p.Off, l) }

// wants reports whether a rule may make something of what a check finds.
func (p *Policy) wants(c Check) bool { return p.wanted[c] }

// ready finds out which checks may come to something.
func (p *Policy) ready() {
	p.wanted = map[Check]bool{}
	for _, info := range Checks() {
		p.wanted[info.Check] = p.DefaultAction != memory.Allow || slices.ContainsFunc(p.Rules, func(r Rule) bool {
			return slices.ContainsFunc(r.On, func(on string) bool {
				known := slices.Contains(onNames(), on) && on != string(info.Check)
				return on == "*" || on == string(info.Check) || slices.Contains(info.Families, on) || !known
			})
		})
	}
}

// Decide says what becomes of a finding about a record of that key, and the name
// of the rule that says so; "" is the default action. The first rule that covers
// the finding wins.
func (p *Policy) Decide(f *Finding, key string) (memory.Action, string) {
	k := keys{raw: key}
	return p.decide(f, &k)
}

func (p *Policy) decide(f *Finding, k *keys) (memory.Action, string) {
	if l := layerOf[f.On]; l != "" && !p.on(l) {
		return memory.Allow, ""
	}
	for i := range p.Rules {
		if r := &p.Rules[i]; r.covers(f, k) {
			return r.Action, r.Name
		}
	}
	switch {
	case f.Severity == Info:
		return memory.Allow, ""
	case f.On == SignatureCheck, f.On == PrincipalCheck: // a failure, never a pass, unless a rule says so
		return memory.Quarantine, ""
	case f.On == CapCheck:
		return memory.Defer, ""
	}
	return p.DefaultAction, ""
}

//go:embed presets/*.yaml
var presets embed.FS

// Presets names the policies that come with the guard.
func Presets() []string { return []string{"strict", "standard", "permissive", "memory"} }

// Preset returns a policy that comes with the guard.
func Preset(name string) (*Policy, error) {
	if !slices.Contains(Presets(), name) {
		return nil, settings.Unknown("", "preset", name, Presets())
	}
	data, err := presets.ReadFile(path.Join("presets", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the preset %s: %w", name, err)
	}
	p, err := ParsePolicy(name+".yaml", data)
	if err != nil {
		return nil, fmt.Errorf("the preset %s: %w", name, err)
	}
	p.Name = name
	return p, nil
}

// base is what a policy file that sets nothing gets: limits for the checks, and
// no rule.
func base() *Policy {
	data, err := presets.ReadFile("presets/base.yaml")
	f := new(policyFile)
	if err == nil {
		err = keysOfPolicy().Load("base.yaml", data, f)
	}
	if err != nil {
		panic("guard: " + err.Error()) // it is part of the program
	}
	return &f.Policy
}
