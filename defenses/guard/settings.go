package guard

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/keyword"
	"github.com/memtox/memtox/defenses/provenance"
	"github.com/memtox/memtox/internal/settings"
)

// setting is one key of a policy file. The parser, the JSON Schema and the table
// in the documentation are made of the same list.
type setting struct {
	key    string // with dots where it stands in a mapping: size.max_bytes
	values string // what it takes, for a person
	doc    string
	schema map[string]any
	parse  func(*Policy, settings.Node) error
	show   func(*Policy) string
}

// settings lists the keys of a policy file in the order of the documentation.
func policySettings() []setting {
	return []setting{
		{"version", "1", "Version of the format.", map[string]any{"enum": []any{1, "1"}},
			func(_ *Policy, n settings.Node) error {
				if s, _, err := n.Scalar(); err != nil {
					return err
				} else if s != "1" {
					return n.Errorf("version %q is unknown: write version: 1", s)
				}
				return nil
			}, func(*Policy) string { return "1" }},
		oneOf("extends", "The preset that the file starts from. Its keys take the place of the preset's; its rules come before them.", Presets(), (func(*Policy) *string)(nil)),
		oneOf("mode", "What happens to findings: block does what the rules say; warn allows everything and records; strip takes out what a content would be stopped for and keeps the rest.",
			[]string{string(Enforce), string(Warn), string(Strip)}, func(p *Policy) *Mode { return &p.Mode }),
		{"default_action", strings.Join(actionNames(), "|"), "What becomes of a finding that no rule covers.", enum(actionNames()),
			func(p *Policy, n settings.Node) (err error) { p.DefaultAction, err = action(n); return err },
			func(p *Policy) string { return p.DefaultAction.String() }},
		globList("protected_keys", "Keys that only the operator (class SYSTEM) may write or remove.", func(p *Policy) *[]Glob { return &p.ProtectedKeys }),
		globList("immutable_keys", "Keys that keep their first value.", func(p *Policy) *[]Glob { return &p.ImmutableKeys }),
		{"rules", "LIST", "What becomes of findings: a list of name, on, action, min_severity, keys, classes. The first rule that covers a finding wins; the strictest action over the findings is the verdict.",
			ruleSchema(), parseRules, func(p *Policy) string { return fmt.Sprintf("%d rules", len(p.Rules)) }},
		oneOf("scan", "How broad the threat scan is.", []string{string(keyword.Strict), string(keyword.Relaxed)}, func(p *Policy) *keyword.Scope { return &p.Scan }),
		{"scopes", "CLASS: SCOPE", "The authority of records by the class of their origin.", scopeSchema(), parseScopes, showScopes},
		count("size.max_bytes", "The longest content with its key, in bytes; 0 is no limit.", 1<<30, func(p *Policy) *int { return &p.Size.MaxBytes }),
		number("size.growth", "How many times as long as the median of its key's last eight contents a content may be; 0 does not look.", 0, 1e6, func(p *Policy) *float64 { return &p.Size.Growth }),
		count("size.floor", "Contents up to so many bytes are never too long for their key.", 1<<30, func(p *Policy) *int { return &p.Size.Floor }),
		count("rate.writes", "Most writes within the window; 0 is no limit.", maxRate, func(p *Policy) *int { return &p.Rate.Writes }),
		duration("rate.window", "The window of the rate.", func(p *Policy) *time.Duration { return &p.Rate.Window }),
		count("rapid_change.writes", "Most changes of one key within the window; 0 is no limit.", maxRate, func(p *Policy) *int { return &p.RapidChange.Writes }),
		duration("rapid_change.window", "The window of rapid_change.", func(p *Policy) *time.Duration { return &p.RapidChange.Window }),
		duration("cooldown.window", "How long an external content must not come again; 0 does not look.", func(p *Policy) *time.Duration { return &p.Cooldown.Window }),
		number("cooldown.similarity", "From which share of common words on two contents are the same.", 0.3, 1, func(p *Policy) *float64 { return &p.Cooldown.Similarity }),
		duration("self_reinforcement.window", "The window of self_reinforcement.", func(p *Policy) *time.Duration { return &p.SelfReinforcement.Window }),
		count("self_reinforcement.writes", "With which of the agent's writes that say nearly the same the check speaks; 0 does not look.", 100, func(p *Policy) *int { return &p.SelfReinforcement.Writes }),
		number("self_reinforcement.similarity", "From which share of common words on they say nearly the same.", 0.3, 1, func(p *Policy) *float64 { return &p.SelfReinforcement.Similarity }),
		stringList("decoy_endpoints", "Names that stand nowhere but in a trap; a content that holds one is a finding.", nil, func(p *Policy) *[]string { return &p.DecoyEndpoints }),
		oneOf("authority.staged", "What sessions see of a record that waits for a decision: usable shows it as context, with its source; held hides it.", []string{"usable", "held"}, (func(*Policy) *string)(nil)).into(
			func(p *Policy, s string) { p.Authority.Held = s == "held" },
			func(p *Policy) string {
				if p.Authority.Held {
					return "held"
				}
				return "usable"
			}),
		oneOf("authority.asked", "What content that the user asked to keep may do: told is shown with its source; low_risk may also fill the destination, recipient or amount of a call without a high-risk intent.", leaves(), func(p *Policy) *Leave { return &p.Authority.Asked }),
		oneOf("authority.named", "The same for content whose source the user names with the request.", leaves(), func(p *Policy) *Leave { return &p.Authority.Named }),
		count("authority.corroboration", "How many trusted principals must say the same before an external record may do what theirs may; 0 is never.", maxClaims, func(p *Policy) *int { return &p.Authority.Corroboration }),
		count("retrieval.max_external", "Most external records in the top k of a recall; 0 is no limit.", 1<<20, func(p *Policy) *int { return &p.Retrieval.MaxExternal }),
		duration("retrieval.stale_after", "The age from which on an external record ranks behind all younger ones; 0 is never.", func(p *Policy) *time.Duration { return &p.Retrieval.StaleAfter }),
		stringList("high_risk.intents", "The intents that records of little trust must not govern.", intentNames(), func(p *Policy) *[]string { return &p.HighRisk.Intents }),
		stringList("high_risk.trusted_sources", "Sources that a structured record with a trust of its own must name to govern one.", nil, func(p *Policy) *[]string { return &p.HighRisk.TrustedSources }),
		number("high_risk.trust_floor", "The trust from which on a record governs a high-risk intent.", 0, 1, func(p *Policy) *float64 { return &p.HighRisk.TrustFloor }),
		number("high_risk.write_floor", "The trust below which a record that bears on a high-risk intent or states a standing rule is a finding when it is written.", 0, 1, func(p *Policy) *float64 { return &p.HighRisk.WriteFloor }),
	}
}

func actionNames() []string {
	var out []string
	for a := memory.Allow; a <= memory.Block; a++ {
		out = append(out, a.String())
	}
	return out
}

func intentNames() []string {
	return []string{string(provenance.Payment), string(provenance.Identity), string(provenance.Deployment), string(provenance.Security)}
}

func enum(names []string) map[string]any { return map[string]any{"enum": names} }

// choice reads one of several words.
func choice(n settings.Node, choices []string) (string, error) {
	s, _, err := n.Scalar()
	if err != nil {
		return "", err
	}
	if !slices.Contains(choices, s) {
		return "", n.Errorf("%q is not known here: one of %s", s, strings.Join(choices, ", "))
	}
	return s, nil
}

func action(n settings.Node) (memory.Action, error) {
	s, err := choice(n, actionNames())
	return memory.Action(slices.Index(actionNames(), s)), err
}

func oneOf[T ~string](key, doc string, choices []string, at func(*Policy) *T) setting {
	return setting{key, strings.Join(choices, "|"), doc, enum(choices), func(p *Policy, n settings.Node) error {
		s, err := choice(n, choices)
		if err == nil && at != nil {
			*at(p) = T(s)
		}
		return err
	}, func(p *Policy) string {
		if at == nil {
			return ""
		}
		return string(*at(p))
	}}
}

// into puts what was read where it belongs, for settings that are not kept as
// they are written.
func (s setting) into(put func(*Policy, string), show func(*Policy) string) setting {
	check := s.parse
	s.parse = func(p *Policy, n settings.Node) error {
		if err := check(p, n); err != nil {
			return err
		}
		word, _, err := n.Scalar()
		put(p, word)
		return err
	}
	s.show = show
	return s
}

func leaves() []string { return []string{string(Told), string(LowRisk)} }

// list reads a list of texts; one alone may stand without brackets.
func list(n settings.Node, each func(settings.Node, string) error) error {
	items := []settings.Node{n}
	if n.IsSequence() {
		var err error
		if items, err = n.Items(); err != nil {
			return err
		}
	} else if _, typ, err := n.Scalar(); err == nil && typ == "null" {
		return nil
	}
	for _, it := range items {
		s, typ, err := it.Scalar()
		if err != nil {
			return err
		}
		if typ != "str" {
			return it.Errorf("expected a text, found %q: put it in quotes", s)
		}
		if err := each(it, s); err != nil {
			return err
		}
	}
	return nil
}

func listSchema(item map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": item}, item, map[string]any{"type": "null"}}}
}

func globList(key, doc string, at func(*Policy) *[]Glob) setting {
	return setting{key, "GLOB,...", doc, listSchema(map[string]any{"type": "string", "minLength": 1, "maxLength": maxGlob}), func(p *Policy, n settings.Node) error {
		gs, err := parseGlobs(n)
		*at(p) = gs
		return err
	}, func(p *Policy) string {
		var out []string
		for _, g := range *at(p) {
			out = append(out, g.String())
		}
		return strings.Join(out, ", ")
	}}
}

func parseGlobs(n settings.Node) ([]Glob, error) {
	var out []Glob
	err := list(n, func(it settings.Node, s string) error {
		g, err := ParseGlob(s)
		if err != nil {
			return it.Errorf("bad glob %q: %v", s, err)
		}
		out = append(out, g)
		return nil
	})
	return out, err
}

func stringList(key, doc string, choices []string, at func(*Policy) *[]string) setting {
	values, item := "TEXT,...", map[string]any{"type": "string", "minLength": 1}
	if choices != nil {
		values, item = strings.Join(choices, "|")+",...", enum(choices)
	}
	return setting{key, values, doc, listSchema(item), func(p *Policy, n settings.Node) error {
		out := []string{}
		err := list(n, func(it settings.Node, s string) error {
			if s == "" {
				return it.Errorf("an empty text stands in the list: leave it out")
			}
			if choices != nil && !slices.Contains(choices, s) {
				return it.Errorf("%q is not known here: one of %s", s, strings.Join(choices, ", "))
			}
			out = append(out, s)
			return nil
		})
		*at(p) = out
		return err
	}, func(p *Policy) string { return strings.Join(*at(p), ", ") }}
}

func number(key, doc string, least, most float64, at func(*Policy) *float64) setting {
	return setting{key, "NUMBER", doc, map[string]any{"type": "number", "minimum": least, "maximum": most}, func(p *Policy, n settings.Node) error {
		s, typ, err := n.Scalar()
		if err != nil {
			return err
		}
		v, bad := strconv.ParseFloat(s, 64)
		if bad != nil || typ != "float" && typ != "int" || math.IsNaN(v) {
			return n.Errorf("expected a number, found %q", s)
		}
		if v < least || v > most {
			return n.Errorf("%s is out of range: from %v to %v", s, least, most)
		}
		*at(p) = v
		return nil
	}, func(p *Policy) string { return strconv.FormatFloat(*at(p), 'g', -1, 64) }}
}

func count(key, doc string, most int, at func(*Policy) *int) setting {
	return setting{key, "N", doc, map[string]any{"type": "integer", "minimum": 0, "maximum": most}, func(p *Policy, n settings.Node) error {
		s, typ, err := n.Scalar()
		if err != nil {
			return err
		}
		v, bad := strconv.Atoi(s)
		if bad != nil || typ != "int" {
			return n.Errorf("expected a whole number, found %q", s)
		}
		if v < 0 || v > most {
			return n.Errorf("%d is out of range: from 0 to %d", v, most)
		}
		*at(p) = v
		return nil
	}, func(p *Policy) string { return strconv.Itoa(*at(p)) }}
}

// maxRate bounds what a rate has to remember.
const maxRate = 10_000

// maxWindow bounds durations: what is longer is no rate.
const maxWindow = 365 * 24 * time.Hour

func duration(key, doc string, at func(*Policy) *time.Duration) setting {
	return setting{key, "DURATION", doc, map[string]any{"anyOf": []any{map[string]any{"type": "string", "pattern": durationPattern}, map[string]any{"const": 0}}}, func(p *Policy, n settings.Node) error {
		s, _, err := n.Scalar()
		if err != nil {
			return err
		}
		v, bad := time.ParseDuration(s)
		if bad != nil {
			return n.Errorf("expected a duration such as 60s or 5m, found %q", s)
		}
		if v < 0 || v > maxWindow {
			return n.Errorf("%s is out of range: from 0 to %s", s, maxWindow)
		}
		*at(p) = v
		return nil
	}, func(p *Policy) string { return at(p).String() }}
}

const durationPattern = `^(([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0)$`

func classNames() []string {
	var out []string
	for c := memory.System + 1; c > 0; c-- {
		out = append(out, (c - 1).String())
	}
	return out
}

func scopeNames() []string {
	return []string{memory.ContextOnly.String(), memory.PlanningAllowed.String(), memory.ToolActionAllowed.String()}
}

func scopeSchema() map[string]any {
	props := map[string]any{}
	for _, c := range classNames() {
		props[c] = enum(scopeNames())
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": props}
}

func parseScopes(p *Policy, n settings.Node) error {
	entries, err := n.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		var c memory.Class
		if err := c.UnmarshalText([]byte(e.Key)); err != nil {
			return e.At.Errorf("unknown source class %q: one of %s", e.Key, strings.Join(classNames(), ", "))
		}
		s, err := choice(e.Value, scopeNames())
		if err != nil {
			return err
		}
		p.Scopes[c] = memory.ScopeUnset
		if err := p.Scopes[c].UnmarshalText([]byte(s)); err != nil {
			return e.Value.Errorf("%v", err)
		}
	}
	return nil
}

func showScopes(p *Policy) string {
	var out []string
	for c := memory.System + 1; c > 0; c-- {
		if s := p.Scopes[c-1]; s != memory.ScopeUnset {
			out = append(out, (c-1).String()+": "+s.String())
		}
	}
	return strings.Join(out, ", ")
}

func ruleSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "null"}, map[string]any{"type": "array", "items": map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"name", "action"},
		"properties": map[string]any{
			"name":         map[string]any{"type": "string", "minLength": 1},
			"on":           listSchema(enum(append([]string{"*"}, onNames()...))),
			"action":       enum(actionNames()),
			"min_severity": enum(severityNames),
			"classes":      listSchema(enum(classNames())),
			"keys":         listSchema(map[string]any{"type": "string", "minLength": 1, "maxLength": maxGlob}),
		}}}}}
}

func parseRules(p *Policy, n settings.Node) error {
	if _, typ, err := n.Scalar(); err == nil && typ == "null" {
		return nil
	}
	items, err := n.Items()
	if err != nil {
		return n.Errorf("rules must be a list: write each as \"- { name: …, on: …, action: … }\"")
	}
	var out []Rule
	for _, it := range items {
		r, err := parseRule(it)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(out, func(o Rule) bool { return o.Name == r.Name }) {
			return it.Errorf("two rules are called %q: give each a name of its own", r.Name)
		}
		out = append(out, r)
	}
	p.Rules = append(out, p.Rules...)
	return nil
}

func parseRule(n settings.Node) (Rule, error) {
	r := Rule{On: []string{"*"}, MinSeverity: Low}
	entries, err := n.Entries()
	if err != nil {
		return r, err
	}
	acts := false
	for _, e := range entries {
		var err error
		switch e.Key {
		case "name":
			var typ string
			if r.Name, typ, err = e.Value.Scalar(); err == nil && (r.Name == "" || typ != "str") {
				err = e.Value.Errorf("a rule's name is a text: put it in quotes")
			}
		case "on":
			r.On = nil
			err = list(e.Value, func(it settings.Node, s string) error {
				if s != "*" && !slices.Contains(onNames(), s) {
					return it.Errorf("no check is called %q: one of *, %s", s, strings.Join(onNames(), ", "))
				}
				r.On = append(r.On, s)
				return nil
			})
			if err == nil && len(r.On) == 0 {
				err = e.Value.Errorf("on names no check: write * for all of them")
			}
		case "action":
			acts = true
			r.Action, err = action(e.Value)
		case "min_severity":
			var s string
			s, err = choice(e.Value, severityNames)
			r.MinSeverity = Severity(max(slices.Index(severityNames, s), 0))
		case "keys":
			r.Keys, err = parseGlobs(e.Value)
		case "classes":
			err = list(e.Value, func(it settings.Node, s string) error {
				var c memory.Class
				if err := c.UnmarshalText([]byte(s)); err != nil {
					return it.Errorf("unknown source class %q: one of %s", s, strings.Join(classNames(), ", "))
				}
				r.Classes = append(r.Classes, c)
				return nil
			})
		default:
			err = e.At.Errorf("unknown key %q: a rule has name, on, action, min_severity, keys, classes", e.Key)
		}
		if err != nil {
			return r, err
		}
	}
	switch {
	case r.Name == "":
		return r, n.Errorf("the rule has no name: findings name the rule that decided")
	case !acts:
		return r, n.Errorf("the rule %q has no action: one of %s", r.Name, strings.Join(actionNames(), ", "))
	}
	return r, nil
}
