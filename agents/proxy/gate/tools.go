package gate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
)

// Does is what a tool does.
type Does string

// What tools do. One that writes changes memory where its path is that of a memory file,
// and acts elsewhere. One that runs hands a command to a shell or code to an interpreter.
// One that calls hands a call on to another tool. A tool that nothing is known of acts.
const (
	Stores  Does = "stores"
	Writes  Does = "writes"
	Recalls Does = "recalls"
	Reads   Does = "reads"
	Runs    Does = "runs"
	Acts    Does = "acts"
	Asks    Does = "asks"
	Calls   Does = "calls"
)

// Agent is what a gate knows of an agent: data of its product.
type Agent struct {
	// Own are the tools that it has by itself.
	Own []Tool
	// File is the store of a path that such a tool writes to; "" is no memory. nil knows none.
	File func(path string) string
	// Prefix is what the agent puts in front of the names of the harness's tools.
	Prefix string
	// User is what the user said in a message of the user's role; own reports that it is the
	// agent's own, and route is then that of writes which come about by it, such as a
	// review's. nil takes each for the user's.
	User func(content string) (said string, own bool, route memory.Route)
	// Answers is the tool by which it stores the reply to a message of its own, see
	// [Tool.Answers]; nil knows of none.
	Answers func(content string) *Tool
	// Stamps are what it puts around the user's words and changes later.
	Stamps []*regexp.Regexp
}

// Gate is a gate for the agent.
func (a *Agent) Gate(j Judge) *Gate {
	g := &Gate{Judge: j, Stamps: a.Stamps, Answers: a.Answers}
	if a.User != nil {
		g.Own = func(content string) bool { _, own, _ := a.User(content); return own }
	}
	return g
}

// Extracts reports whether a prompt asks for what the agent then stores.
func (a *Agent) Extracts(prompt []model.Message) bool {
	for _, m := range slices.Backward(prompt) {
		if m.Role == model.User {
			return a.Answers != nil && a.Answers(m.Content) != nil
		}
	}
	return false
}

// Says is what the user said last in a prompt, and the route of writes where the last
// message of the user's role is the agent's own.
func (a *Agent) Says(prompt []model.Message) (said string, route memory.Route) {
	for i := range prompt {
		if prompt[i].Role != model.User {
			continue
		}
		words, own, r := prompt[i].Content, false, memory.RouteNone
		if a.User != nil {
			words, own, r = a.User(words)
		}
		if route = r; !own {
			said = words
		}
	}
	return said, route
}

// Does is what a call of the agent's own tools does: to read a memory file is to recall.
func (a *Agent) Does(c model.Call) Does {
	i := slices.IndexFunc(a.Own, func(t Tool) bool { return t.Name == c.Name })
	switch {
	case i < 0:
		return Acts
	case a.Own[i].Does == Calls:
		if to, ok := a.Own[i].inner(&c); ok && to.Name != c.Name {
			return a.Does(to)
		}
	case a.Own[i].Does == Reads && a.File != nil && a.File(a.Own[i].get(&c, "path")) != "":
		return Recalls
	}
	return a.Own[i].Does
}

// inner is the call that is handed on to another tool.
func (t *Tool) inner(c *model.Call) (model.Call, bool) {
	args, err := model.ParseArgs(nil, "", []byte(t.get(c, "args")))
	return model.Call{Name: t.get(c, "name"), Args: args}, err == nil
}

// Tool is what is known of a tool of an agent.
type Tool struct {
	Name string
	Does Does
	// Args names arguments by what they mean: op (add, replace or remove), store (the name
	// of one), text, old (a part of the entry that is meant), path, query, name, args (of a
	// call that is handed on), patch (one of many files), and for what acts a [memory.Role],
	// such as command. LIST[].NAME is a member of the objects of a list.
	Args map[string]string
	// Also are further arguments by what they mean, where what a call does decides which of
	// them counts: each text that a call has is judged. Of add, replace and remove it has
	// further values of op.
	Also map[string][]string
	// Each names an argument that may be a list of objects with such arguments.
	Each string
	// Answers is the list of a reply in JSON whose objects are such calls: the agent has no
	// such tool, but asks its model what to store and stores what it answers.
	Answers string
	// Ops are the values of op where they are others: by add, replace and remove.
	Ops map[string]string
	// Fixed are arguments that a call has in any case, by what they mean.
	Fixed map[string]string
}

// Check finds what a file says wrongly of a tool.
func (t *Tool) Check() error {
	known := []Does{Stores, Writes, Recalls, Reads, Runs, Acts, Asks, Calls}
	if !slices.Contains(known, t.Does) {
		return fmt.Errorf("tool %s: does is one of %v", t.Name, known)
	}
	return nil
}

// arg is the name of an argument, in an object of the list where there is one.
func (t *Tool) arg(means string) string {
	name := t.Args[means]
	if _, member, ok := strings.Cut(name, "[]."); ok {
		return member
	}
	return name
}

// each is the argument that is a list; "" is none.
func (t *Tool) each() string {
	for _, name := range t.Args {
		if list, _, ok := strings.Cut(name, "[]."); ok {
			return list
		}
	}
	return t.Each
}

// names are those of all arguments that mean something.
func (t *Tool) names(means string) []string {
	if name := t.arg(means); name != "" {
		return append([]string{name}, t.Also[means]...)
	}
	return slices.Clone(t.Also[means])
}

// the is the name of the argument of a call that means something; "" where it has none.
func (t *Tool) the(c *model.Call, means string) string {
	for _, name := range t.names(means) {
		if c.Get(name) != "" {
			return name
		}
	}
	return ""
}

// get is the argument of a call that means something.
func (t *Tool) get(c *model.Call, means string) string {
	if name := t.the(c, means); name != "" {
		return c.Get(name)
	}
	return t.Fixed[means]
}

// op is what a call that stores does.
func (t *Tool) op(c *model.Call) memory.Op {
	said := t.get(c, "op")
	for _, op := range []memory.Op{memory.Add, memory.Replace, memory.Remove} {
		if v, ok := t.Ops[op.String()]; ok && v == said || said == op.String() || slices.Contains(t.Also[op.String()], said) {
			return op
		}
	}
	if t.get(c, "old") != "" {
		return memory.Replace
	}
	return memory.Add
}

// call is what the action gate is asked about.
func (t *Tool) call(c *model.Call, said string) memory.Call {
	out := memory.Call{Tool: c.Name, Query: memory.Query{Text: said}}
	for _, a := range c.Args {
		role := memory.Other
		if t.Args == nil {
			role = memory.Destination // nothing is known of it: any may decide what it does
		}
		for means, name := range t.Args {
			if strings.TrimSuffix(name, "[]") == a.Name && slices.Contains(roles, memory.Role(means)) {
				role = memory.Role(means)
			} else if name == a.Name && means == "text" {
				role = memory.Content
			}
		}
		out.Args = append(out.Args, memory.Arg{Name: a.Name, Value: a.Value, Role: role})
	}
	return out
}

var roles = []memory.Role{memory.Destination, memory.Recipient, memory.Command, memory.Credential, memory.Grant,
	memory.Amount, memory.Content}
