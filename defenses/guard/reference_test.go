package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Schema returns the JSON Schema of a policy file, for editors. It accepts what
// [ParsePolicy] accepts; what a schema cannot say (a bad glob, a rule's name that
// stands twice) the parser alone refuses.
func Schema() []byte {
	root := map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "memtox guard policy",
		"description":          "What the defense guard:FILE.yaml looks for and what it does about it.",
		"type":                 []string{"object", "null"},
		"additionalProperties": false,
		"properties":           map[string]any{},
	}
	for _, s := range policySettings() {
		at := root
		parts := strings.Split(s.key, ".")
		for _, part := range parts[:len(parts)-1] {
			props := at["properties"].(map[string]any)
			if props[part] == nil {
				props[part] = map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
			}
			at = props[part].(map[string]any)
		}
		leaf := map[string]any{"description": s.doc}
		for k, v := range s.schema {
			leaf[k] = v
		}
		at["properties"].(map[string]any)[parts[len(parts)-1]] = leaf
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(root) // maps, lists, texts and numbers always encode
	return b.Bytes()
}

// Reference returns the tables of the documentation as Markdown: the keys of a
// policy file with what each preset says, the checks, and the rules of each
// preset.
func Reference() (string, error) {
	var b strings.Builder
	var of []*Policy
	for _, name := range Presets() {
		p, err := Preset(name)
		if err != nil {
			return "", err
		}
		of = append(of, p)
	}
	none := base()
	b.WriteString("### Keys\n\n| key | values | in a file without it | " + strings.Join(Presets(), " | ") + " | meaning |\n|---|---|---|---|---|---|---|\n")
	for _, s := range policySettings() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |", s.key, cell(s.values), shown(s.show(none)))
		for _, p := range of {
			fmt.Fprintf(&b, " %s |", shown(s.show(p)))
		}
		fmt.Fprintf(&b, " %s |\n", cell(s.doc))
	}
	b.WriteString("\n### Checks\n\nWhat `on` may name: a check, or one of its families, or `*` for all.\n\n| check | gate | families | finds |\n|---|---|---|---|\n")
	for _, c := range Checks() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Check, c.Gates, shown(strings.Join(c.Families, ", ")), cell(c.Doc))
	}
	b.WriteString("\n### What the presets do with findings\n\n| check | " + strings.Join(Presets(), " | ") + " |\n|---|---|---|---|\n")
	for _, c := range Checks() {
		fmt.Fprintf(&b, "| `%s` |", c.Check)
		for _, p := range of {
			fmt.Fprintf(&b, " %s |", p.does(c.Check))
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// does says what a policy makes of a check's findings, by severity where that
// matters.
func (p *Policy) does(c Check) string {
	var parts []string
	for _, r := range p.Rules {
		for _, on := range r.On {
			if on != "*" && on != string(c) {
				continue
			}
			s := r.Action.String()
			if r.MinSeverity > Low {
				s += " (from " + r.MinSeverity.String() + " on)"
			}
			if len(r.Classes) > 0 {
				var of []string
				for _, c := range r.Classes {
					of = append(of, c.String())
				}
				s += " (" + strings.Join(of, ", ") + ")"
			}
			if len(r.Keys) > 0 {
				s += " (some keys)"
			}
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		a, _ := p.Decide(&Finding{On: c, Severity: High}, "")
		return a.String()
	}
	return strings.Join(parts, ", else ")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func shown(s string) string {
	if s == "" {
		return "–"
	}
	return "`" + cell(s) + "`"
}
