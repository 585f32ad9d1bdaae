package defenses

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

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
			return nil, settings.Unknown(e.At.Place(), "key", e.Key, []string{"chain"})
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
		var of chainItem
		if err := of.ReadSetting(item); err != nil {
			return nil, err
		}
		b, err := r.BuildSpec(of.Use, env)
		if err != nil {
			return nil, item.Errorf("%v", err)
		}
		if b.Info.Within {
			return nil, item.Errorf("%s is the agent's own, and no part of a chain: name it as a defense of the run", b.Spec.Kind)
		}
		if slices.ContainsFunc(parts, func(p Part) bool { return p.Name == b.Name }) {
			return nil, item.Errorf("%q stands in the chain twice: take one out, or give it a name of its own", b.Name)
		}
		parts = append(parts, Part{b.Name, b.Defense, b.Screens})
	}
	return Chain(parts...), nil
}

// chainItem is one item of a chain file.
type chainItem struct {
	Use  Spec   `key:"use"`
	At   Place  `key:"at"`
	Name string `key:"name"`
}

var keysOfItem = sync.OnceValue(func() *settings.Table {
	return settings.New(chainItem{}, []byte("use: {required: true, takes: DEFENSE}\nat: {}\nname: {}"), true,
		map[string]settings.Special{"name": {Check: func(s string) (string, error) { return s, checkName(s) }}})
})

func (c *chainItem) ReadSetting(n settings.Node) error {
	text, typ, err := n.Scalar()
	switch {
	case err == nil && typ != "str":
		return n.Errorf("expected a defense, found %q: write for instance \"- keyword:strict\"", text)
	case err == nil:
		return settings.Placed(n.Place(), c.Use.UnmarshalText([]byte(text)))
	case n.IsSequence():
		return n.Errorf("expected a defense: write \"- keyword:strict\", or a mapping with the keys use, at and name")
	}
	if err := keysOfItem().Read(n, c); err != nil {
		return err
	}
	if c.At != Own && c.Use.Place != Own {
		return n.Errorf("the place stands both in use and in at: leave one out")
	}
	c.Use.Place = max(c.Use.Place, c.At) // one of them is Own
	c.Use.Name = cmp.Or(c.Name, c.Use.Name)
	return nil
}
