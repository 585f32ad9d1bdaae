package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/text"
	"github.com/memtox/memtox/internal/wire"
)

// signing is a gate that signs what is stored, and what a person agreed to.
type signing interface {
	memory.Gate
	approver
	Sign(memory.Record) ([]byte, string)
}

// confirmed is the gate of a memory with a list of what waits for a person. An entry that
// waits is in the memory itself, staged, held or quarantined; a deletion that waits is a
// held call.
type confirmed struct {
	signing
	list pending.Asker
	view memory.View
	// known are entries that wait, were approved or were refused, by what they say: the
	// same again has the same answer.
	known map[[32]byte]string
}

// maxKnown bounds what is remembered of entries that waited.
const maxKnown = 1 << 16

// confirm puts a list of what waits before a gate.
func confirm(ctx context.Context, g memory.Gate, v memory.View, list pending.Asker,
	s memory.Store) (memory.Gate, error) {
	inner, ok := g.(signing)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign what a person agreed to", g)
	}
	c := &confirmed{signing: inner, list: list, view: v, known: map[[32]byte]string{}}
	if h, ok := s.(*store.History); ok { // what was refused is retired, and not taken up with the rest
		for v, err := range h.Versions(ctx, store.Filter{Store: StoreName, Causes: []memory.Cause{memory.CauseReject},
			Current: true}) {
			if err != nil {
				return nil, fmt.Errorf("reading what was refused: %w", err)
			}
			c.remember(&v.Record)
		}
	}
	return c, nil
}

// saying names what an entry says, where from and in whose place.
func saying(r *memory.Record) [32]byte {
	key := r.Key
	if key == r.Store+"/"+r.ID {
		key = "" // the name that an entry without one gets
	}
	var b []byte
	for _, s := range []string{r.Store, key, r.Principal, r.Parent, r.Origin.Class.String(), string(r.Origin.Medium),
		r.Origin.Source, strings.Join(strings.Fields(r.Text), " ")} {
		b = wire.AppendField(b, s)
	}
	return sha256.Sum256(b)
}

func (c *confirmed) remember(r *memory.Record) {
	if len(c.known) >= maxKnown {
		for one := range c.known { // any one: who floods it makes no room for a certain one
			delete(c.known, one)
			break
		}
	}
	c.known[saying(r)] = r.ID
}

// Committed implements [memory.Gate]. What the list keeps beside the memory teaches the
// guard nothing.
func (c *confirmed) Committed(ch memory.Change) {
	r := &ch.Record
	if pending.Ours(r) {
		return
	}
	c.signing.Committed(ch)
	waits := r.State != memory.Live && r.State != memory.Retired
	if waits || r.Scope == memory.ToolActionAllowed && r.Origin.Class < memory.User {
		c.remember(r)
	}
}

// Write implements [memory.Gate].
func (c *confirmed) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	v, err := c.signing.Write(ctx, p)
	if err != nil || v.Action != memory.Defer && v.Action != memory.Quarantine {
		return v, err
	}
	if p.Op == memory.Remove {
		v, held, err := c.list.Write(ctx, "memory", &p, v, c.Approve)
		if err == nil && held.State != pending.Passes {
			v = told(held.State, held.ID, "Not deleted: "+held.Why+".")
		}
		return v, err
	}
	r := p.Record
	r.Text = cmp.Or(v.Text, r.Text)
	if id := c.known[saying(&r)]; id != "" {
		switch old, ok := c.view.Get(id); {
		case !ok || old.State == memory.Retired && !old.ValidTo.Equal(old.ValidFrom):
		case old.State == memory.Live:
			return told(pending.Passes, id, "A person has approved it, and it is stored."), nil
		case old.State == memory.Retired:
			return told(pending.Refused, id, fmt.Sprintf("A person has refused it, as %s.", id)), nil
		default:
			return told(pending.Waits, id, fmt.Sprintf("It waits for a person's decision already, as %s.", id)), nil
		}
	}
	if prior := p.Prior; prior != nil && prior.State == memory.Live && prior.Scope == memory.ToolActionAllowed &&
		prior.Text == r.Text && prior.Origin == r.Origin {
		return told(pending.Passes, prior.ID, "A person has approved it, and it is stored."), nil
	}
	ok := false
	if pending.Coverable(&p, v) {
		if _, ok, err = c.list.Remembers(ctx, &r); err != nil {
			return v, err
		}
	}
	if ok {
		r = c.Approve(r)
		out := memory.Verdict{Scope: r.Scope, Signature: r.Signature, SignedBy: r.SignedBy}
		if r.Text != p.Record.Text {
			out.Action, out.Text = memory.Redact, r.Text
		}
		return out, nil
	}
	if room, err := c.list.Room(ctx); err != nil || !room {
		return told(pending.Full, "", "Not stored: too much waits for a person's decision."), err
	}
	return v, nil
}

// Act implements [memory.Gate]. What came into the conversation from outside counts like a
// record of it: no other turn of the agent's own is seen here.
func (c *confirmed) Act(ctx context.Context, call memory.Call) (memory.Verdict, error) {
	for i := range call.Args {
		for j := range call.Args[i].Lineage {
			if l := &call.Args[i].Lineage[j]; l.Record == "" && l.Origin.Class < memory.User {
				l.Record = fmt.Sprintf("content %d", l.Segment)
			}
		}
	}
	v, err := c.signing.Act(ctx, call)
	if err != nil {
		return v, err
	}
	v, held, err := c.list.Act(ctx, "memory", &call, v)
	if n := len(v.Findings); held.State != "" && held.State != pending.Passes && n > 0 {
		v.Findings[n-1].Value = held.ID
	}
	return v, err
}

// CallArg is an argument of a call that an agent asks about.
type CallArg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Role  string `json:"role,omitempty" jsonschema:"content for a text that is only carried; left out for everything that decides what the call does"`
}

// Check says whether a call of another tool may go ahead, as far as its arguments come from
// this memory and this conversation. What needs the user's word is held until a person
// decides; then the same call is allowed once. A refusal is a [*guard.Rejection].
func (c *Client) Check(ctx context.Context, tool, request string, args []CallArg) error {
	call := memory.Call{Tool: tool, Query: memory.Query{Text: request, Principal: c.memory.principal}}
	for _, a := range args {
		arg := memory.Arg{Name: a.Name, Value: a.Value, Role: memory.Destination}
		switch a.Role {
		case "":
		case string(memory.Content):
			arg.Role = memory.Content
		default:
			return &guard.Rejection{Message: fmt.Sprintf("Argument %q: its role is content or left out.", text.Clip(a.Name, 80))}
		}
		call.Args = append(call.Args, arg)
	}
	return c.do(ctx, memory.Origin{Class: memory.Agent}, func(m *memory.Memory, o memory.Origin) error {
		if o.Class == memory.External { // nobody can tell any more where a value comes from
			for i := range call.Args {
				call.Args[i].Lineage = memory.Lineage{{Record: o.Source, Origin: o}}
			}
		}
		v, err := m.Act(pending.Claims(ctx), call)
		if err != nil || v.Action == memory.Allow {
			return err
		}
		r := &guard.Rejection{Message: "Not allowed:"}
		for i, f := range v.Findings {
			r.Checks = append(r.Checks, f.Check)
			if f.Check == pending.Check {
				r.Held = f.Value
			}
			if f.Argument != "" {
				f.Note = f.Argument + ": " + f.Note
			}
			if r.Message += " " + f.Note; i < len(v.Findings)-1 {
				r.Message += ";"
			}
		}
		return r
	})
}

// told refuses a write that needs a person, and says how it stands.
func told(s pending.State, id, note string) memory.Verdict {
	return memory.Verdict{Action: memory.Block, Findings: []memory.Finding{{Check: pending.Check, Note: note,
		Argument: string(s), Value: id}}}
}

// standing is how an entry stands that a person decides or has decided about; none is the
// answer where the gate alone has decided.
func (c *Client) standing(m *memory.Memory, e *memory.Entry) (out Stored, refused *guard.Rejection) {
	for _, f := range e.Verdict.Findings {
		if f.Check != pending.Check {
			continue
		}
		r, ok := m.View().Get(f.Value)
		if ok && r.State.Visible() && r.Store == StoreName {
			return Stored{Success: true, ID: r.ID, State: r.State.String(), Content: r.Text, Note: f.Note}, nil
		}
		return Stored{}, &guard.Rejection{Message: f.Note, Held: f.Value}
	}
	if e.Committed != nil && e.Committed.State == memory.Quarantined && c.memory.decided {
		refused = guard.Rejected(&e.Verdict)
		refused.Held = e.Committed.ID
		refused.Message = fmt.Sprintf("Not stored yet: it is held as %s until a person decides.", refused.Held)
	}
	return Stored{}, refused
}
