package defenses

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/settings"
)

// Info describes a defense to the person who chooses one.
type Info struct {
	Name string
	// Screens lists the gates that it screens without a placement.
	Screens []Place
	// Argument is what may follow the name and a colon, for instance
	// "strict|relaxed"; empty if nothing may.
	Argument string
	Idea     string // one line
	Cost     string // extra model calls, latency, state kept
	Control  bool   // a control: there to be compared with, not to be used
	// Within says that it works within the agent: no gate acts, and an agent without it
	// refuses it. It stands alone.
	Within bool
	// Tunables are the thresholds that a sweep may vary.
	Tunables []Tunable
	// Layers are the parts that an ablation leaves out one at a time, and Without is what
	// stands behind the colon of the spec then, made of what stands there otherwise.
	Layers  []string
	Without func(argument, layer string) string
}

// Tunable is a threshold of a defense that a sweep may vary.
type Tunable struct {
	Key   string
	About string // one line, with the range of values
	// Argument is what stands behind the colon of the spec for a value.
	Argument func(value string) string
}

// Factory makes a defense from what follows the colon of its spec.
type Factory func(argument string, env Env) (Defense, error)

// Registry knows defenses by name. The zero value knows none. It is a value that
// the program makes and fills, not a package-level variable, so two runs in one
// process cannot disturb each other.
type Registry struct {
	entries map[string]entry
	names   []string // in the order of registration
}

type entry struct {
	info    Info
	factory Factory
}

// Register adds a defense. A name that is registered twice, or that the grammar
// could not read back, is a mistake of the program and panics.
func (r *Registry) Register(info Info, f Factory) {
	if err := checkName(info.Name); err != nil {
		panic("defenses: cannot register a defense: " + err.Error())
	}
	if _, twice := r.entries[info.Name]; twice {
		panic(fmt.Sprintf("defenses: %q is registered twice", info.Name))
	}
	if r.entries == nil {
		r.entries = make(map[string]entry)
	}
	r.entries[info.Name] = entry{info, f}
	r.names = append(r.names, info.Name)
}

// Names lists the defenses in the order of registration.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// Info describes the defense of that name.
func (r *Registry) Info(name string) (Info, bool) {
	e, ok := r.entries[name]
	return e.info, ok
}

// Infos describes all defenses in the order of registration.
func (r *Registry) Infos() []Info {
	out := make([]Info, 0, len(r.names))
	for _, n := range r.names {
		out = append(out, r.entries[n].info)
	}
	return out
}

// Built is a defense that was made from a spec: what an arm of a run needs.
type Built struct {
	Name    string // what tables call it: the spec's own name, or the spec without one
	Spec    Spec
	Info    Info
	Screens []Place // with the placement applied
	Defense Defense
	// Canonical is the spec without its name, and the SHA-256 of every file that
	// it was made from. Two defenses with the same text decide alike.
	Canonical string
}

// Build makes a defense from a spec: see [Parse] for the grammar.
func (r *Registry) Build(spec string, env Env) (Built, error) {
	s, err := Parse(spec)
	if err != nil {
		return Built{}, err
	}
	return r.BuildSpec(s, env)
}

// BuildSpec makes a defense from a parsed spec.
func (r *Registry) BuildSpec(s Spec, env Env) (Built, error) {
	e, ok := r.entries[s.Kind]
	if !ok {
		return Built{}, r.unknown(s.Kind)
	}
	if s.Name != s.Kind && s.Name != "" {
		if r.entries[s.Name].info.Control { // which tables take for what its name says
			return Built{}, fmt.Errorf("defense %q: the name %q is that of a control: choose another", s.shown(), s.Name)
		}
	}
	if s.Argument != "" && e.info.Argument == "" {
		return Built{}, fmt.Errorf("defense %q: %s takes no argument: leave out %q", s.String(), s.Kind, ":"+s.Argument)
	}

	// What the factory reads from files belongs to the settings of the run.
	canonical := Spec{Kind: s.Kind, Argument: s.Argument, Place: s.Place}.String()
	read := env.File
	env.ReadFile = func(name string) ([]byte, error) {
		data, err := read(name)
		if err == nil {
			sum := sha256.Sum256(data)
			canonical += " sha256:" + hex.EncodeToString(sum[:])
		}
		return data, err
	}
	d, err := e.factory(s.Argument, env)
	if err != nil {
		return Built{}, fmt.Errorf("defense %q: %w", s.shown(), err)
	}
	b := Built{Name: s.Label(), Spec: s, Info: e.info, Screens: e.info.Screens, Defense: d}
	if c, ok := d.(*chain); ok {
		b.Screens = c.screens()
	}
	if s.Place != Own {
		if b.Defense, err = At(d, s.Place, e.info.Screens); err != nil {
			return Built{}, fmt.Errorf("defense %q: %w", s.shown(), err)
		}
		b.Screens = []Place{s.Place}
	}
	b.Canonical = canonical
	return b, nil
}

func (r *Registry) unknown(name string) error {
	hint := ""
	if n := settings.Nearest(name, r.names); n != "" {
		hint = fmt.Sprintf(": did you mean %q?", n)
	}
	return fmt.Errorf("unknown defense %q%s (known: %s)", name, hint, strings.Join(r.names, ", "))
}
