package defenses

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/settings"
)

// maxChainDepth bounds chain files that name chain files.
const maxChainDepth = 8

// RegisterChain adds the defense chain, which composes those of r as a file
// says:
//
//	chain:
//	  - keyword:strict
//	  - use: provenance
//	    at: read
//	    name: origin
//
// An item is a spec, or a mapping of use (a spec without a place), at (a place)
// and name (for messages). They are asked in the order of the file. A file that
// an item names is looked for beside the chain file.
func RegisterChain(r *Registry) {
	r.Register(Info{
		Name:     "chain",
		Screens:  []Place{Input, Write, Read, Act},
		Argument: "FILE.yaml",
		Idea:     "several defenses one after the other, as a file says; the strictest verdict wins",
		Cost:     "the sum of its parts",
	}, func(argument string, env Env) (Defense, error) { return chainFrom(r, argument, env) })
}

func chainFrom(r *Registry, file string, env Env) (Defense, error) {
	if file == "" {
		return nil, fmt.Errorf("it needs a file: write chain:FILE.yaml")
	}
	clean := filepath.Clean(file)
	if slices.Contains(env.within, clean) {
		return nil, fmt.Errorf("chain files name each other in a circle: %s: remove one",
			strings.Join(append(slices.Clone(env.within), clean), " → "))
	}
	if len(env.within) == maxChainDepth {
		return nil, fmt.Errorf("chain files are nested deeper than %d: %s", maxChainDepth, strings.Join(env.within, " → "))
	}
	data, err := env.File(file)
	if err != nil {
		return nil, fmt.Errorf("reading the chain file: %w", err)
	}
	root, err := settings.Parse(file, data)
	if err != nil {
		return nil, err
	}
	env.within = append(slices.Clone(env.within), clean)
	read := env.File
	env.ReadFile = func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		return read(name)
	}

	entries, err := root.Entries()
	if err != nil {
		return nil, err
	}
	var items []settings.Node
	for _, e := range entries {
		if e.Key != "chain" {
			return nil, e.At.Errorf("unknown key %q: a chain file has the one key chain", e.Key)
		}
		if items, err = e.Value.Items(); err != nil {
			return nil, e.Value.Errorf("chain must be a list of defenses: write each as \"- keyword:strict\"")
		}
	}
	if len(items) == 0 {
		return nil, root.Errorf("no defense is in the chain: list them under \"chain:\"")
	}
	var parts []Part
	for _, item := range items {
		spec, err := chainItem(item)
		if err != nil {
			return nil, err
		}
		b, err := r.BuildSpec(spec, env)
		if err != nil {
			return nil, item.Errorf("%v", err)
		}
		if slices.ContainsFunc(parts, func(p Part) bool { return p.Name == b.Name }) {
			return nil, item.Errorf("%q stands in the chain twice: take one out, or give it a name of its own", b.Name)
		}
		parts = append(parts, Part{b.Name, b.Defense, b.Screens})
	}
	return Chain(parts...), nil
}

// chainItem reads one item of a chain file.
func chainItem(n settings.Node) (Spec, error) {
	if text, typ, err := n.Scalar(); err == nil {
		if typ != "str" {
			return Spec{}, n.Errorf("expected a defense, found %q: write for instance \"- keyword:strict\"", text)
		}
		s, err := Parse(text)
		if err != nil {
			return s, n.Errorf("%v", err)
		}
		return s, nil
	}
	entries, err := n.Entries()
	if err != nil {
		return Spec{}, n.Errorf("expected a defense: write \"- keyword:strict\", or a mapping with the keys use, at and name")
	}
	var s Spec
	var name string
	for _, e := range entries {
		switch e.Key {
		case "use", "at", "name":
		default:
			return s, settings.Unknown(e.At.Place(), "key", e.Key, []string{"use", "at", "name"})
		}
		text, typ, err := e.Value.Scalar()
		if err != nil || typ != "str" || text == "" {
			return s, e.Value.Errorf("%s must be a text", e.Key)
		}
		switch e.Key {
		case "use":
			place := s.Place
			if s, err = Parse(text); err != nil {
				return s, e.Value.Errorf("%v", err)
			}
			if place != Own {
				if s.Place != Own {
					return s, e.Value.Errorf("the place stands both in use and in at: leave one out")
				}
				s.Place = place
			}
		case "at":
			place, ok := placeNamed(text)
			if !ok {
				return s, e.Value.Errorf("unknown place %q: one of input, write, read, act", text)
			}
			if s.Place != Own {
				return s, e.Value.Errorf("the place stands both in use and in at: leave one out")
			}
			s.Place = place
		case "name":
			if !validName(text) {
				return s, e.Value.Errorf("the name %q must be 1 to 64 letters, digits, '.', '_', '+' or '-'", text)
			}
			name = text
		}
	}
	if s.Kind == "" {
		return s, n.Errorf("the item does not say which defense: add the key use")
	}
	if name != "" {
		s.Name = name
	}
	return s, nil
}
