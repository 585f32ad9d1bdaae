// Package world is what an agent under test can reach: the catalog of its tools,
// each of them a value with everything that is known of it. A tool is data
// (tools.yaml); whoever runs, offers, judges or understands a call asks the
// tool's kind, handler or medium, never its name.
package world

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

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
	Looks     Kind = "looks"     // finds rows of the world
	Asks      Kind = "asks"      // asks the user
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

	// Desk is the place of work that a tool of the world of tables belongs to.
	Desk    string
	Table   string   // that it looks into
	Effects []Effect // what it does to the tables
}

// The phases beside the conversation.
const (
	Flush  = "flush"
	Review = "review"
)

// Memory reports whether the tool belongs to a profile's memory. The others are
// on offer to every profile.
func (t *Tool) Memory() bool { return t.Kind == Remembers || t.Kind == Recalls }

// Risky reports whether an argument of a role decides something of high risk:
// money, where something goes, access or code.
func Risky(r memory.Role) bool { return r != memory.Content && r != memory.Other }

// Risky reports whether an argument decides something of high risk.
func (t *Tool) Risky(arg string) bool { return Risky(t.Role(arg)) }

// Role is what an argument decides.
func (t *Tool) Role(arg string) memory.Role {
	if r, ok := t.Roles[arg]; ok {
		return r
	}
	return memory.Other
}

//go:embed tools.yaml office.yaml
var files embed.FS

type catalog struct {
	tools    []*Tool
	tables   map[string]*Table
	byName   map[string]*Tool
	byMedium map[memory.Medium]*Tool
	byHead   map[string]*Tool
	byWord   map[string]*Tool
	byValue  map[string]*Tool
}

var known = sync.OnceValue(func() *catalog {
	c := newCatalog()
	for _, file := range []string{"tools.yaml", "office.yaml"} {
		data, err := files.ReadFile(file)
		if err == nil {
			err = c.read("agents/world/"+file, data)
		}
		if err != nil {
			panic(err) // it is part of the program
		}
	}
	return c
})

func newCatalog() *catalog {
	return &catalog{nil, map[string]*Table{}, map[string]*Tool{}, map[memory.Medium]*Tool{},
		map[string]*Tool{}, map[string]*Tool{}, map[string]*Tool{}}
}

// columns are a table's in the order of the file.
type columns []Column

// UnmarshalYAML reads a mapping of names to types.
func (cs *columns) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		c := Column{Name: n.Content[i].Value, Type: Type(n.Content[i+1].Value)}
		if !c.Type.known() {
			return fmt.Errorf("column %s: there is no type %q: one of %q", c.Name, c.Type, Types())
		}
		*cs = append(*cs, c)
	}
	if len(*cs) == 0 || (*cs)[0].Type == FreeText {
		return errors.New("a table has a column, and the first is no free text")
	}
	return nil
}

func (c *catalog) read(file string, data []byte) error {
	var in struct {
		Tables map[string]columns
		Tools  []*Tool
	}
	if err := settings.Decode(file, data, &in); err != nil {
		return err
	}
	for name, cs := range in.Tables {
		c.tables[name] = &Table{Name: name, Columns: cs}
	}
	for _, t := range in.Tools {
		if err := c.add(t); err != nil {
			return fmt.Errorf("%s: tool %q: %w", file, t.Name, err)
		}
	}
	return nil
}

func (c *catalog) add(t *Tool) error {
	kinds := []Kind{Remembers, Recalls, Reads, Acts, Looks, Asks}
	roles := []memory.Role{
		memory.Destination, memory.Recipient, memory.Command, memory.Credential, memory.Grant, memory.Amount,
		memory.Content, memory.Other}
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
	if t.Desk != "" {
		if err := c.checkDesk(t); err != nil {
			return err
		}
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
	c.tools = append(c.tools, t)
	c.byName[t.Name] = t
	if shown {
		c.byMedium[t.Medium], c.byHead[t.Heading[0]] = t, t
	}
	return errors.Join(index(c.byWord, t.Words, t), index(c.byValue, t.Values, t))
}

// checkDesk holds a tool of the world of tables to them.
func (c *catalog) checkDesk(t *Tool) error {
	high := false
	for _, p := range t.Params {
		if p.Format != "" && !Type(p.Format).known() {
			return fmt.Errorf("argument %s: there is no type %q: one of %q", p.Name, p.Format, Types())
		}
		high = high || t.Risky(p.Name)
	}
	if t.Kind == Looks && (c.tables[t.Table] == nil || len(t.Params) != 1) || t.Kind == Acts && len(t.Effects) == 0 {
		return errors.New("it looks into a table by one argument, or has effects")
	}
	for _, e := range t.Effects {
		table := c.tables[e.Changes()]
		switch {
		case table == nil, e.Move != "" && c.tables[e.To] == nil:
			return fmt.Errorf("an effect changes the table %q, which is none", e.Changes())
		case (e.Append == "") != slices.ContainsFunc(t.Params, func(p model.Param) bool { return p.Name == e.Where }):
			return fmt.Errorf("an effect finds its row by the argument %q, which is none", e.Where)
		}
		for _, p := range t.Params {
			if col, ok := table.Column(p.Name); !ok && p.Name != e.Where || ok && col.Type != FreeText && string(col.Type) != p.Format {
				return fmt.Errorf("argument %s is no column of %s, or of another type", p.Name, table.Name)
			} else if ok && t.Risky(p.Name) {
				i := slices.Index(table.Columns, col)
				table.Columns[i].High = true
			}
		}
		table.High = table.High || high
	}
	return nil
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

// Tools are all tools in the order of the files. They are shared: nobody changes
// one.
func Tools() []*Tool { return known().tools }

// Offer returns the tools beside a profile's own that a case offers: those of
// the desks that it touches and those that read content, or without a desk those
// of the sandbox that only records what it is asked to do.
func Offer(desks []string) []*Tool {
	var out []*Tool
	for _, t := range Tools() {
		desk := t.Desk == "all" || slices.Contains(desks, t.Desk)
		if !t.Memory() && (t.Kind == Reads || (len(desks) == 0) == (t.Desk == "") && (t.Desk == "" || desk)) {
			out = append(out, t)
		}
	}
	return out
}

// Own reports whether a tool finds rows of a table that only the user's own hand fills:
// what stands there is true.
func (t *Tool) Own() bool {
	return t.Kind == Looks && (strings.HasPrefix(t.Name, "look_up_") || t.Name == "find_file")
}

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
