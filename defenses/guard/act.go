package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// FillsPrefix begins the id of a finding about a tool call; the argument's role
// follows.
const FillsPrefix = "external_memory_fills_"

// Act weighs each value that memory from outside would fill an argument with: what the
// user's tables and his own records say of it, then whether he asked to keep it, then
// what is at risk. A value that the user gives in this session is the user's, whatever
// memory says.
func (g *gate) Act(ctx context.Context, c memory.Call) (memory.Verdict, error) {
	began := g.begin()
	s := &g.subject
	s.reset(memory.Proposal{})
	agreed := len(g.agreed) > 0 && g.agreed[agreement(&c)]
	for i := range c.Args {
		a := &c.Args[i]
		if agreed || a.Role == memory.Content || world.Type(a.Type) == world.Title || world.Type(a.Type) == world.FreeText {
			continue
		}
		why, ask, err := g.weigh(ctx, &c, a)
		if err != nil {
			return memory.Verdict{}, err
		}
		if why == "" {
			continue
		}
		f := found(FillsCheck, High, FillsPrefix+string(a.Role), why)
		f.Argument, f.Value = a.Name, a.Value
		s.add(f)
		if ask && g.policy.Authority.By == Show {
			s.findings[len(s.findings)-1].confirm = true
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

// weigh says why a value must not fill its argument, "" where it may; ask where it may
// if the user says so.
func (g *gate) weigh(ctx context.Context, c *memory.Call, a *memory.Arg) (why string, ask bool, err error) {
	from := g.sources(a, c.Query.Text)
	if len(from) == 0 {
		return "", false, nil
	}
	at := &g.policy.Authority
	said := claimOf(c, a, from)
	if g.policy.on(TablesLayer) {
		switch e, err := g.look(ctx, said); {
		case err != nil:
			return "", false, err
		case e == agrees:
			return "", false, nil
		case e == worldAgainst:
			return "the user's own tables say otherwise: look it up", false, nil
		}
	}
	if g.policy.on(KeptLayer) && at.Kept == Acts && kept(from, said) {
		return "", false, nil
	}
	if g.policy.on(RecordsLayer) {
		switch g.facts.weigh(said) {
		case agrees:
			return "", false, nil
		case memoryAgainst:
			return "the user's own memory says otherwise", false, nil
		}
	}
	if g.policy.on(AddedLayer) && added(c, a) {
		return "nobody but an outside source asks for it: leave it out", false, nil
	}
	if g.policy.on(RiskLayer) && (slices.Contains(at.Confirm, a.Role) || g.carries(a)) {
		return "only an outside source says so: ask the user which it is", true, nil
	}
	return "", false, nil
}

// maxSources bounds how many records that say one value are looked at.
const maxSources = 256

// sources are the records that may have brought a value, but for the user's own and what
// a person has approved: these are evidence.
func (g *gate) sources(a *memory.Arg, request string) (from []memory.Record) {
	for i := range a.Lineage {
		l := &a.Lineage[i]
		if l.Record == "" {
			continue
		}
		r, stored := g.view.Get(l.Record)
		if !stored { // a past turn has the authority of its origin
			r = memory.Record{ID: l.Record, Origin: l.Origin, Principal: g.view.Principal()}
		} else {
			if r.Scope > g.policy.classScope(leastClass(&r)) && g.signer.Verify(&r) != "" {
				r.Scope = memory.ScopeUnset // an approval that nobody signed
			}
			r.Origin.Class = min(r.Origin.Class, l.Origin.Class)
		}
		switch st := g.standing(&r); {
		case st.why == raisedApproved:
		case stored && st.class == memory.Agent && st.why == "": // its own words, of nothing from outside
		case st.class < memory.User, st.why != "", g.echoes(&r, a.Value, request):
			if from = append(from, r); len(from) == maxSources {
				return from
			}
		}
	}
	return from
}

// echoes reports whether a record that is no word of the user's says again what an
// outsider's record had said before: a tool that repeats a page, say. Who asked to keep the
// one asked to keep the other, if it says of the value what is asked for.
func (g *gate) echoes(r *memory.Record, value, request string) bool {
	if !g.policy.on(EchoLayer) || r.Origin.Medium == memory.Chat || r.Origin.Class >= memory.System {
		return false
	}
	first := false
	g.view.Each(func(o memory.Record) bool {
		if o.ID == r.ID {
			return false // records are visited in the order in which they came
		}
		if first = leastClass(&o) == memory.External && text.Says(o.Text, value); first {
			r.Asked = r.Asked || o.Asked && o.State == memory.Live && (o.Principal == r.Principal || o.Principal == everybody) &&
				ofOneMatter(&o, r, request)
		}
		return !first
	})
	return first
}

// ofOneMatter reports whether a record has most of the words of a request that its echo has.
func ofOneMatter(first, echo *memory.Record, request string) bool {
	asked, said := wordsOf(request), wordsOf(text.Cut(first.Text, maxRead))
	all, common := 0, 0
	for _, w := range wordsOf(text.Cut(echo.Text, maxRead)) {
		if has(asked, w) {
			if all++; has(said, w) {
				common++
			}
		}
	}
	return 2*common > all
}

// kept reports whether the user asked to keep a value. Of the records that say it the
// shortest count: he asks for one step of a procedure, not for the others.
func kept(from []memory.Record, c *claim) bool {
	least, out := 0, false
	for i := range from {
		if !c.saidIn(from[i].Text) || from[i].State != memory.Live {
			continue
		}
		n := len(text.Sentences(from[i].Text))
		if least == 0 || n < least {
			least, out = n, false
		}
		out = out || n == least && from[i].Asked
	}
	return out
}

// added reports whether a value is something that the request does not ask for: one more
// item of a list, or an argument that the tool can do without and the request does not
// speak of.
func added(c *memory.Call, a *memory.Arg) bool {
	if a.List && slices.ContainsFunc(c.Args, func(o memory.Arg) bool {
		return o.Name == a.Name && o.Value != a.Value && o.Lineage.Least(memory.Origin{Class: memory.User}).Class >= memory.User
	}) {
		return true
	}
	if !a.Optional || a.Type == "date" || a.Type == "time" {
		return false
	}
	if a.Type == "number" && withholds()[howMany].Match(c.Query.Text) {
		return false
	}
	for _, t := range text.Tokens(c.Query.Text) {
		for _, name := range []string{a.Name, a.Type} {
			if s, n := text.Stem(t.Text), text.Stem(name); s == n ||
				min(len(s), len(n)) >= 4 && (strings.HasPrefix(s, n) || strings.HasPrefix(n, s)) {
				return false
			}
		}
	}
	return true
}

// carries reports whether an address has something of the user's in it, and is a
// source's: it takes that there.
func (g *gate) carries(a *memory.Arg) bool {
	if t := world.Type(a.Type); t != "url" && t != "host" && t != "mailbox" {
		return false
	}
	return slices.ContainsFunc(a.Lineage, func(l memory.Link) bool {
		return l.Record != "" && l.Origin.Class >= memory.User
	})
}

// Answered implements [memory.Gate]: what the user agreed to is his own word.
func (g *gate) Answered(c memory.Call, yes bool) {
	if !yes {
		return
	}
	if g.agreed == nil || len(g.agreed) == maxAgreed {
		g.agreed = map[string]bool{}
	}
	g.agreed[agreement(&c)] = true
}

// maxAgreed bounds what is remembered of what the user agreed to: he is asked again then.
const maxAgreed = 1 << 12

// agreement is a call that the user has agreed to. Another payee, amount or recipient is
// another call; what it says, a text or a title, he may have changed since.
func agreement(c *memory.Call) string {
	b := fmt.Appendf(nil, "%q ", c.Tool)
	for _, a := range c.Args {
		if a.Role != memory.Content {
			b = fmt.Appendf(b, "%q=%q ", a.Name, a.Value)
		}
	}
	return string(b)
}

// arguments is a tool call as an event hashes it.
func arguments(c memory.Call) string {
	var b []byte
	for _, a := range c.Args {
		b = fmt.Appendf(b, "%q=%q ", a.Name, a.Value)
	}
	return string(b)
}
