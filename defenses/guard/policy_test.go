package guard_test

import (
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard"
)

func TestEveryPresetParses(t *testing.T) {
	for _, name := range guard.Presets() {
		p, err := guard.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != name || len(p.Rules) == 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// The quickstart policy of OWASP Agent Memory Guard, as its README prints it.
const amgQuickstart = `version: 1
default_action: allow

protected_keys: [system.*, identity.role]
immutable_keys: [identity.user_id]

rules:
  - { name: block_prompt_injection, on: prompt_injection, action: block }
  - { name: redact_secrets,        on: sensitive_data,    action: redact }
  - { name: block_protected_keys,  on: protected_key,     action: block }
  - { name: quarantine_size,       on: size_anomaly,      action: quarantine }
`

// mistakes are policies with one mistake, and what the parser says.
var mistakes = map[string]string{
	"version: 2\n":                                   `p.yaml:1:10: version "2" is unknown: write version: 1`,
	"version: 1\nmdoe: warn\n":                       `p.yaml:2:1: unknown key "mdoe" (did you mean "mode"?)`,
	"mode: loud\n":                                   `p.yaml:1:7: mode: unknown mode "loud" (one of block, warn, strip)`,
	"high_risk:\n  flor: 1\n":                        `p.yaml:2:3: unknown key "high_risk.flor" (one of intents, trusted_sources, trust_floor, write_floor)`,
	"high_risk: 3\n":                                 "p.yaml:1:12: expected `key: value` lines",
	"high_risk:\n  trust_floor: much\n":              `p.yaml:2:16: high_risk.trust_floor: "much" is not a number`,
	"high_risk:\n  trust_floor: 2\n":                 `p.yaml:2:16: high_risk.trust_floor: 2 is out of range (at least 0, at most 1)`,
	"protected_keys: [a, 'b[c']\n":                   `p.yaml:1:21: protected_keys: bad glob "b[c": the bracket [ is never closed`,
	"protected_keys: ['']\n":                         `p.yaml:1:18: protected_keys: an empty name stands in the list`,
	"protected_keys: [1]\n":                          `p.yaml:1:18: protected_keys: expected a text, found "1": put it in quotes`,
	"scopes: {NOBODY: CONTEXT_ONLY}\n":               `p.yaml:1:10: scopes: unknown source class "NOBODY": one of ["EXTERNAL_TOOL" "AGENT_AUTHORED" "USER" "SYSTEM"]`,
	"rules: {}\n":                                    `p.yaml:1:8: expected a list, found a mapping`,
	"rules:\n  - {name: a}\n":                        `p.yaml:2:5: action is missing: write action: allow|redact|defer|quarantine|block`,
	"rules:\n  - {action: block}\n":                  `p.yaml:2:5: name is missing: write name: TEXT`,
	"rules:\n  - {name: a, on: x, action: block}\n":  `p.yaml:2:19: on: unknown on "x" (one of *, protected_key, immutable_key, source_class, size_anomaly, size_limit, size_against_history, write_burst, rapid_change, repetition, self_reinforcement, decoy_endpoint, prompt_injection, prompt-injection, exfiltration, memory_persistence_injection, hidden_text, invisible-unicode, bidirectional-unicode, terminal-escape, sensitive_data, secret, personal_data, high_risk_intent, standing_rule, contradiction, override, foreign_principal, external_cap, signature, signature_missing, signature_wrong, low_trust_source, withheld, leaves_out, users_liking, contradicted, external_argument)`,
	"rules:\n  - {name: a, action: kill}\n":          `p.yaml:2:23: action: unknown action "kill" (one of allow, redact, defer, quarantine, block)`,
	"rules:\n  - {name: a, action: block, sev: 1}\n": `p.yaml:2:30: unknown key "sev" (one of name, on, action, min_severity, keys, classes)`,
	"rules:\n  - {name: a, action: block}\n  - {name: a, action: allow}\n": `p.yaml:3:5: two rules have the name "a": give each its own`,
	"rules:\n  - {name: a, action: block, min_severity: huge}\n":           `p.yaml:2:44: min_severity: unknown min_severity "huge" (did you mean "high"?)`,
	"extends: lax\n":           `p.yaml:1:10: extends: unknown extends "lax" (one of strict, standard, permissive, memory)`,
	"version: 1\nversion: 1\n": `p.yaml:2:1: key "version" stands here again`,
	"- a\n":                    "p.yaml:1:1: expected `key: value` lines",
	"rules:\n\t- x\n":          "p.yaml:2:",
}

func TestAMistakeInAPolicyHasItsPlace(t *testing.T) {
	for src, want := range mistakes {
		_, err := guard.ParsePolicy("p.yaml", []byte(src))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", src, err, want)
		}
	}
}

func TestTheFirstRuleThatCoversAFindingWins(t *testing.T) {
	p, err := guard.ParsePolicy("p.yaml", []byte(`
default_action: redact
rules:
  - {name: trusted keys, on: prompt_injection, keys: notes.*, action: allow}
  - {name: exfil, on: exfiltration, action: quarantine}
  - {name: loud, on: prompt_injection, action: block, min_severity: high}
  - {name: by id, on: [signature_wrong, contradiction], action: defer}
`))
	if err != nil {
		t.Fatal(err)
	}
	f := func(on guard.Check, family string, s guard.Severity) *guard.Finding {
		return &guard.Finding{On: on, Family: family, Severity: s}
	}
	for _, c := range []struct {
		f      *guard.Finding
		key    string
		action memory.Action
		rule   string
	}{
		{f(guard.InjectionCheck, "exfiltration", guard.High), "a", memory.Quarantine, "exfil"},
		{f(guard.InjectionCheck, "exfiltration", guard.High), "Notes.a", memory.Allow, "trusted keys"},
		{f(guard.InjectionCheck, "", guard.High), "a", memory.Block, "loud"},
		{f(guard.InjectionCheck, "", guard.Medium), "a", memory.Redact, ""},
		{f(guard.InjectionCheck, "", guard.Info), "a", memory.Allow, ""},
		{f(guard.ContradictionCheck, "", guard.Low), "a", memory.Defer, "by id"},
		{f(guard.SignatureCheck, "", guard.Critical), "a", memory.Quarantine, ""},
	} {
		if a, rule := p.Decide(c.f, c.key); a != c.action || rule != c.rule {
			t.Errorf("%+v of %s: %s by %q, want %s by %q", c.f, c.key, a, rule, c.action, c.rule)
		}
	}
}

func TestGlobs(t *testing.T) {
	for pattern, want := range map[string][2]string{ // keys that match, keys that do not
		"system.*":      {"system.prompt system. System.Prompt ｓｙｓｔｅｍ.x sys\u200btem.x", "system xsystem.prompt ecosystem.a"},
		"identity.role": {"identity.role IDENTITY.ROLE", "identity.roles a.identity.role identity"},
		"*":             {"a a.b.c ключ", ""},
		"*.key":         {"a.key .key a.b.key", "key a.keys"},
		"a*b*c":         {"abc axxbyyc abbc ababcc", "ab acb abcx"},
		"a*bc*c":        {"abcc abc.c", "abc"},
		"?.[a-c]":       {"x.a y.b é.c", "x.d xx.a x.ab"},
		"[!x]y":         {"ay", "xy y"},
		"[]]":           {"]", "a"},
	} {
		g, err := guard.ParseGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range strings.Fields(want[0]) {
			if !g.Match(k) {
				t.Errorf("%s does not match %q", pattern, k)
			}
		}
		for _, k := range strings.Fields(want[1]) {
			if g.Match(k) {
				t.Errorf("%s matches %q", pattern, k)
			}
		}
	}
}
