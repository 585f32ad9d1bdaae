package guard

import (
	"context"
	"fmt"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/provenance"
)

// FillsPrefix begins the id of a finding about a tool call; the argument's role
// follows.
const FillsPrefix = "external_memory_fills_"

// Act vetoes a call in which memory decides that may not: a recalled record
// without the authority fills an argument that says what the call does to the
// world. A value that the user gives in this session is the user's, whatever
// memory says.
func (g *gate) Act(ctx context.Context, c memory.Call) (memory.Verdict, error) {
	began := g.begin()
	s := &g.subject
	s.reset(memory.Proposal{})
	var high []provenance.Intent
	asked := false
	for i := range c.Args {
		a := &c.Args[i]
		if !decides(a.Role) {
			continue
		}
		for j := range a.Lineage {
			l := &a.Lineage[j]
			if l.Record == "" {
				continue
			}
			if !asked {
				asked, high = true, g.known(provenance.CallIntents(c))
			}
			if why, from := g.mayFill(l, a.Role, high, c.Query.Text); why != "" {
				f := found(FillsCheck, High, FillsPrefix+string(a.Role),
					fmt.Sprintf("argument %q of %q comes from record %q, which %s: %s", a.Name, c.Tool, l.Record, from, why))
				s.add(f)
			}
		}
	}
	g.settle(0)
	v := memory.Verdict{Action: s.action(), Findings: s.reasons()}
	if g.policy.Mode == Warn {
		v.Action = memory.Allow
	}
	if g.hook != nil {
		g.emit(ctx, Event{Gate: memory.AtAct, Route: c.Query.Route, Principal: c.Query.Principal, Content: arguments(c),
			Key: c.Tool}, v.Action, began)
	}
	return v, nil
}

// mayFill says why a record must not fill an argument, "" where it may. A record
// that is not in the store is a past turn, which has the authority of its origin
// and no more.
func (g *gate) mayFill(l *memory.Link, role memory.Role, high []provenance.Intent, words string) (why, from string) {
	r, stored := g.view.Get(l.Record)
	if !stored {
		r = memory.Record{Origin: l.Origin, Principal: g.view.Principal()}
	} else {
		if r.Scope > g.policy.classScope(leastClass(&r)) && g.signer.Verify(&r) != "" {
			r.Scope = memory.ScopeUnset // an approval that nobody signed
		}
		r.Origin.Class = min(r.Origin.Class, l.Origin.Class)
	}
	st := g.standing(&r)
	if g.fills(&r, &st, role, high, words) {
		return "", ""
	}
	from = fmt.Sprintf("%q brought", r.Origin.Source)
	if r.Origin.Source == "" {
		from = "has class " + st.class.String()
	}
	switch {
	case st.scope >= memory.ToolActionAllowed:
		return "its source may not govern a high-risk intent", from
	case st.why != "":
		return "it is " + st.why + ", and may be told, not obeyed", from
	}
	return "its scope is " + st.scope.String(), from
}

// decides reports whether an argument of this role decides what a call does to
// the world.
func decides(r memory.Role) bool {
	switch r {
	case memory.Destination, memory.Recipient, memory.Command, memory.Credential, memory.Amount:
		return true
	}
	return false
}

// arguments is a tool call as an event hashes it.
func arguments(c memory.Call) string {
	var b []byte
	for _, a := range c.Args {
		b = fmt.Appendf(b, "%q=%q ", a.Name, a.Value)
	}
	return string(b)
}
