// Package world is what an agent under test can reach: the catalog of its tools,
// each of them a value with everything that is known of it. A tool is data
// (tools.yaml); whoever runs, offers, judges or understands a call asks the
// tool's kind, handler or medium, never its name.
package world

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/settings"
)

// Kind says what a tool does for the agent.
type Kind string

// The kinds.
const (
	Remembers Kind = "remembers" // writes memory
	Recalls   Kind = "recalls"   // reads memory
	Reads     Kind = "reads"     // returns what the session brings
	Acts      Kind = "acts"      // changes the world
)

// Tool is one tool of an agent.
type Tool struct {
	model.Tool `yaml:",inline"` // all that a model is shown
	Kind       Kind
	// Handler names the function that runs the tool; that of the kind where the
	// file has none.
	Handler string
	// Phases are where it is on offer beside the conversation.
	Phases []string
	Stores []string // that it searches or adds to

	// Medium is of what it reads. Heading stands over such content in a prompt,
	// and over its title; Called is what a person would call it.
	Medium  memory.Medium
	Heading [2]string
	Called  string
	// Words and Values are how a request names what the tool reads: a word of it,
	// or a kind of value.
	Words, Values []string

	// Roles say what an argument decides.
	Roles map[string]memory.Role
}

// The phases beside the conversation.
const (
	Flush  = "flush"
	Review = "review"
)

// Memory reports whether the tool belongs to a profile's memory. The others are
// on offer to every profile.
func (t *Tool) Memory() bool { return t.Kind == Remembers || t.Kind == Recalls }

// Role is what an argument decides.
func (t *Tool) Role(arg string) memory.Role {
	if r, ok := t.Roles[arg]; ok {
		return r
	}
	return memory.Other
}

//go:embed tools.yaml
var toolsYAML []byte

type catalog struct {
	tools    []*Tool
	byName   map[string]*Tool
	byMedium map[memory.Medium]*Tool
	byHead   map[string]*Tool
	byWord   map[string]*Tool
	byValue  map[string]*Tool
}

var known = sync.OnceValue(func() *catalog {
	c, err := read("agents/world/tools.yaml", toolsYAML)
	if err != nil {
		panic(err) // it is part of the program
	}
	return c
})

func read(file string, data []byte) (*catalog, error) {
	var in struct{ Tools []*Tool }
	if err := settings.Decode(file, data, &in); err != nil {
		return nil, err
	}
	c := &catalog{in.Tools, map[string]*Tool{}, map[memory.Medium]*Tool{},
		map[string]*Tool{}, map[string]*Tool{}, map[string]*Tool{}}
	for _, t := range in.Tools {
		if err := c.add(t); err != nil {
			return nil, fmt.Errorf("%s: tool %q: %w", file, t.Name, err)
		}
	}
	return c, nil
}

func (c *catalog) add(t *Tool) error {
	kinds := []Kind{Remembers, Recalls, Reads, Acts}
	roles := []memory.Role{
		memory.Destination, memory.Recipient, memory.Command, memory.Credential, memory.Amount, memory.Content}
	shown := t.Medium != "" && t.Called != "" && t.Heading[0] != "" && t.Heading[1] != ""
	switch {
	case t.Name == "" || t.Description == "":
		return errors.New("it needs a name and a description")
	case c.byName[t.Name] != nil:
		return errors.New("the name stands there twice")
	case !slices.Contains(kinds, t.Kind):
		return fmt.Errorf("there is no kind %q: one of %q", t.Kind, kinds)
	case t.Memory() && t.Handler == "":
		return errors.New("a memory tool needs a handler")
	case (t.Kind == Reads) != shown || shown && c.byMedium[t.Medium] != nil:
		return errors.New("a tool that reads, and no other, has a medium of its own, called what, and two headings")
	}
	for _, p := range t.Phases {
		if p != Flush && p != Review || !t.Memory() {
			return fmt.Errorf("phase %q: memory tools are on offer in flush and review", p)
		}
	}
	for arg, r := range t.Roles {
		param := func(p model.Param) bool { return p.Name == arg }
		if !slices.Contains(roles, r) || !slices.ContainsFunc(t.Params, param) {
			return fmt.Errorf("role %q of %q: a parameter has one of the roles %q", r, arg, roles)
		}
	}
	t.Handler = cmp.Or(t.Handler, string(t.Kind))
	c.byName[t.Name] = t
	if shown {
		c.byMedium[t.Medium], c.byHead[t.Heading[0]] = t, t
	}
	return errors.Join(index(c.byWord, t.Words, t), index(c.byValue, t.Values, t))
}

func index(by map[string]*Tool, names []string, t *Tool) error {
	for _, n := range names {
		if o := by[n]; o != nil {
			return fmt.Errorf("%q names what %s reads already", n, o.Name)
		}
		by[n] = t
	}
	return nil
}

// Tools are all tools in the order of the file. They are shared: nobody changes
// one.
func Tools() []*Tool { return known().tools }

// Find returns the tool of a name, or nil.
func Find(name string) *Tool { return known().byName[name] }

// Reader returns the tool that reads a medium, or nil.
func Reader(m memory.Medium) *Tool { return known().byMedium[m] }

// Unlabelled stands over content of a medium that no tool reads.
const Unlabelled = "Content from"

// Headed returns the tool that reads what stands under a heading, or nil.
func Headed(heading string) *Tool { return known().byHead[heading] }

// Named returns the tool that reads what a word of a request means, or nil.
func Named(word string) *Tool { return known().byWord[word] }

// Holding returns the tool that reads what a kind of value in a request names, or
// nil.
func Holding(kind string) *Tool { return known().byValue[kind] }
