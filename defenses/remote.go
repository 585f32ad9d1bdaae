package defenses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/memtox/memtox/agents/memory"
)

// Remote is a defense that decides outside this process. It is greeted before a
// run and closed after it.
type Remote interface {
	Defense
	// Greet asks it who it is; asking again costs nothing.
	Greet(context.Context) (Identity, error)
	// Close lets go of it: programs end, connections close.
	Close() error
}

// Identity is what a defense outside this process says of itself.
type Identity struct {
	Name          string          `json:"name"`
	Version       string          `json:"version,omitempty"`
	Configuration json.RawMessage `json:"configuration,omitempty"` // whatever it says decides how it decides
	Screens       []Place         `json:"-"`                       // the gates that it answers for
}

// String is the name and the version.
func (i Identity) String() string {
	if i.Version == "" {
		return i.Name
	}
	return i.Name + " " + i.Version
}

// Equal reports whether both are the same guard in the same configuration.
func (i Identity) Equal(j Identity) bool {
	return i.Name == j.Name && i.Version == j.Version && bytes.Equal(i.Configuration, j.Configuration) &&
		slices.Equal(i.Screens, j.Screens)
}

// Remotes are the defenses outside this process that d is made of.
func Remotes(d Defense) []Remote {
	switch d := d.(type) {
	case Remote:
		return []Remote{d}
	case *placed:
		return Remotes(d.inner)
	case *chain:
		var out []Remote
		for _, p := range d.parts {
			out = append(out, Remotes(p.Defense)...)
		}
		return out
	}
	return nil
}

// closeGate ends the trial of a gate that has something to end.
func closeGate(g memory.Gate) error {
	if c, ok := g.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// Close ends the trial of every part.
func (g *chainGate) Close() error {
	var errs []error
	for i := range g.parts {
		errs = append(errs, closeGate(g.parts[i].gate))
	}
	return errors.Join(errs...)
}

// Close ends the trial.
func (g *placedGate) Close() error { return closeGate(g.Gate) }
