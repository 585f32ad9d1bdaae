package guard

import (
	"fmt"
	"strings"

	"github.com/memtox/memtox/internal/settings"
)

// Schema returns the JSON Schema of a policy file, for editors. It accepts what
// [ParsePolicy] accepts; what a schema cannot say (a bad glob, a rule's name that
// stands twice) the parser alone refuses.
func Schema() []byte {
	return keysOfPolicy().Schema("memtox guard policy",
		"What the defense guard:FILE.yaml looks for and what it does about it.", nil)
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
	b.WriteString("### Keys\n\n| key | values | in a file without it | " + strings.Join(Presets(), " | ") +
		" | meaning |\n" + strings.Repeat("|---", len(Presets())+4) + "|\n")
	show := func(k settings.Key, p *Policy) string {
		switch k.Name {
		case "extends":
			return "–"
		case "rules":
			return shown(fmt.Sprintf("%d rules", len(p.Rules)))
		}
		return shown(strings.Join(k.Of(&policyFile{Policy: *p}).Items(), ", "))
	}
	for _, k := range keysOfPolicy().Keys {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |", k.Name, cell(k.Takes), show(k, none))
		for _, p := range of {
			fmt.Fprintf(&b, " %s |", show(k, p))
		}
		fmt.Fprintf(&b, " %s |\n", cell(k.Help))
	}
	b.WriteString("\n### Checks\n\nWhat `on` may name: a check, or one of its families, or `*` for all.\n\n| check | " +
		"gate | families | finds |\n|---|---|---|---|\n")
	for _, c := range Checks() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Check, c.Gates, shown(strings.Join(c.Families, ", ")), cell(c.Doc))
	}
	b.WriteString("\n### What the presets do with findings\n\n| check | " + strings.Join(Presets(), " | ") +
		" |\n" + strings.Repeat("|---", len(Presets())+1) + "|\n")
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
