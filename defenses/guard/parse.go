package guard

import (
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/settings"
)

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
	p := base()
	for _, e := range entries {
		if e.Key != "extends" {
			continue
		}
		name, err := choice(e.Value, Presets())
		if err != nil {
			return nil, err
		}
		if p, err = Preset(name); err != nil {
			return nil, err
		}
	}
	p.Name = file
	if err := parseEntries(p, policySettings(), "", entries); err != nil {
		return nil, err
	}
	return p, nil
}

// parseEntries reads the keys below prefix.
func parseEntries(p *Policy, known []setting, prefix string, entries []settings.Entry) error {
	for _, e := range entries {
		key := prefix + e.Key
		if i := slices.IndexFunc(known, func(s setting) bool { return s.key == key }); i >= 0 {
			if err := known[i].parse(p, e.Value); err != nil {
				return err
			}
			continue
		}
		below := slices.ContainsFunc(known, func(s setting) bool { return strings.HasPrefix(s.key, key+".") })
		if !below {
			return e.At.Errorf("unknown key %q: one of %s", key, strings.Join(siblings(known, prefix), ", "))
		}
		inner, err := e.Value.Entries()
		if err != nil {
			return err
		}
		if err := parseEntries(p, known, key+".", inner); err != nil {
			return err
		}
	}
	return nil
}

// siblings are the keys below prefix, each once.
func siblings(known []setting, prefix string) []string {
	var out []string
	for _, s := range known {
		if rest, ok := strings.CutPrefix(s.key, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}
