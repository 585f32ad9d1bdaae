package inert

import (
	"fmt"
	"regexp"
	"text/template"
	"text/template/parse"
)

// A line that holds a control and nothing else.
var controlLine = regexp.MustCompile(`(?m)^(\{\{(?:if|else|end|range|with|define|template|\$)[^}\n]*\}\})\n`)

// Template parses templates that are part of the program. Whatever an action prints is
// what show makes of it, [Text] where that is nil: no value adds a line. A line with a
// control and nothing else leaves none.
func Template(text string, show func(any) string, funcs template.FuncMap) *template.Template {
	if show == nil {
		show = func(v any) string { return Text(fmt.Sprint(v)) }
	}
	t := template.Must(template.New("").Funcs(template.FuncMap{"inert": show}).Funcs(funcs).
		Parse(controlLine.ReplaceAllString(text, "$1")))
	for _, x := range t.Templates() {
		if x.Tree != nil {
			pipe(x.Tree, x.Root)
		}
	}
	return t
}

// pipe sends whatever a node prints through the function inert.
func pipe(t *parse.Tree, node parse.Node) {
	branch := func(b *parse.BranchNode) {
		pipe(t, b.List)
		if b.ElseList != nil {
			pipe(t, b.ElseList)
		}
	}
	switch n := node.(type) {
	case *parse.ListNode:
		for _, x := range n.Nodes {
			pipe(t, x)
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			last := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos,
				Args: []parse.Node{parse.NewIdentifier("inert").SetPos(n.Pos).SetTree(t)}}
			n.Pipe.Cmds = append(n.Pipe.Cmds, last)
		}
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	}
}
