package guard

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/settings"
)

//go:embed policy.keys.yaml
var policyKeys []byte

// policyFile is a policy as a file has it.
type policyFile struct {
	Version formatVersion `key:"version"`
	Extends string        `key:"extends"`
	Policy
}

// keysOfPolicy are the keys of a policy file. The reader, the JSON Schema and the table
// in the documentation are made of them.
var keysOfPolicy = sync.OnceValue(func() *settings.Table {
	return settings.New(policyFile{}, policyKeys, true, map[string]settings.Special{
		"rules.on": {Choices: append([]string{"*"}, onNames()...)}})
})

// ParsePolicy reads a policy file. A key that is not known, a value of the wrong
// type and a bad glob are errors with file, line and column. A policy of the
// OWASP Agent Memory Guard is one of ours: what it does not set has the defaults,
// and what its rules do not cover has its default action.
func ParsePolicy(file string, data []byte) (*Policy, error) {
	root, err := settings.Parse(file, data)
	if err != nil {
		return nil, err
	}
	entries, err := root.Entries()
	if err != nil {
		return nil, err
	}
	f := policyFile{Policy: *base()}
	for _, e := range entries {
		// Any other name is refused below.
		if name, _, _ := e.Value.Scalar(); e.Key == "extends" && slices.Contains(Presets(), name) {
			p, err := Preset(name)
			if err != nil {
				return nil, err
			}
			f.Policy = *p
		}
	}
	inherited := f.Rules
	f.Rules, f.Name = nil, file
	if err := keysOfPolicy().Read(root, &f); err != nil {
		return nil, err
	}
	for _, r := range f.Rules {
		if len(r.On) == 0 {
			return nil, &settings.Problem{Where: file, What: fmt.Sprintf("on of the rule %q names no check", r.Name),
				Hint: "write * for all of them"}
		}
	}
	f.Rules = append(f.Rules, inherited...)
	f.ready()
	return &f.Policy, nil
}

// SettingDefaults is what a rule that names neither is about.
func (r *Rule) SettingDefaults() { r.On, r.MinSeverity = []string{"*"}, Low }

// formatVersion is the version of the format of policies: 1, quoted or not.
type formatVersion struct{}

// ReadSetting implements [settings.Reader].
func (formatVersion) ReadSetting(n settings.Node) error {
	if s, _, err := n.Scalar(); err != nil {
		return err
	} else if s != "1" {
		return n.Errorf("version %q is unknown: write version: 1", s)
	}
	return nil
}

// SettingSchema implements [settings.Schemer].
func (formatVersion) SettingSchema() map[string]any { return map[string]any{"enum": []any{1, "1"}} }

// String is the version as tables show it.
func (formatVersion) String() string { return "1" }

// Held says whether staged records are kept from every session: usable or held.
type Held bool

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Held) UnmarshalText(b []byte) error { *h = string(b) == "held"; return nil }

// String gives the word of policies.
func (h Held) String() string {
	if h {
		return "held"
	}
	return "usable"
}

// Scopes is the authority of records by the class of their origin.
type Scopes [memory.System + 1]memory.Scope

// ReadSetting implements [settings.Reader].
func (s *Scopes) ReadSetting(n settings.Node) error {
	entries, err := n.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		var c memory.Class
		if err := c.UnmarshalText([]byte(e.Key)); err != nil {
			return e.At.Errorf("%v", err)
		}
		name, _, err := e.Value.Scalar()
		if err == nil {
			err = s[c].UnmarshalText([]byte(name))
		}
		if err != nil || s[c] == memory.ScopeUnset {
			return settings.Unknown(e.Value.Place(), "scope", name, scopeNames())
		}
	}
	return nil
}

// SettingSchema implements [settings.Schemer].
func (s *Scopes) SettingSchema() map[string]any {
	props := map[string]any{}
	for c := range s {
		props[memory.Class(c).String()] = map[string]any{"enum": scopeNames()}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": props}
}

// String lists the classes with a scope, the most trusted first.
func (s Scopes) String() string {
	var out []string
	for c := memory.System + 1; c > 0; c-- {
		if scope := s[c-1]; scope != memory.ScopeUnset {
			out = append(out, (c-1).String()+": "+scope.String())
		}
	}
	return strings.Join(out, ", ")
}

func scopeNames() []string {
	return []string{memory.ContextOnly.String(), memory.PlanningAllowed.String(), memory.ToolActionAllowed.String()}
}
