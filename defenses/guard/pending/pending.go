// Package pending is what waits for a person: writes and tool calls that a policy wants
// confirmed, until somebody has decided, in the file of a durable store.
//
// The side of the agent asks ([Asker]): the answer is that the call may go ahead, that it
// is held and under which number, or that a person has refused it. A person decides
// ([List.Approve], [List.Reject]), by the command line or the page of `memtox guard
// serve`. Nothing that the agent's side can reach may be given more than an Asker.
//
//	v, err := gate.Act(ctx, call)
//	if err == nil {
//		v, held, err = list.Act(ctx, conversation, &call, v) // Allow once a person has agreed
//	}
//
// A gate of the guard defers a call, rather than refusing it, where its policy shows calls
// to the user (authority.by: call).
//
// A held call is a record of the store like those of a memory. So it survives a kill, the
// journal says who decided and why, and `memtox memory timeline` shows it. What a person
// agreed to is signed: whoever can write the file and has no key cannot agree to anything.
package pending

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/defenses/signed"
	"github.com/memtox/memtox/internal/text"
	"github.com/memtox/memtox/internal/wire"
)

// The stores of the file that calls and approved sources are kept in, beside those of a
// memory.
const (
	CallStore   = "held calls"
	SourceStore = "approved sources"
)

// Ours reports whether a record is one of this package's and no memory.
func Ours(r *memory.Record) bool { return r.Store == CallStore || r.Store == SourceStore }

// The defaults of [Options].
const (
	DefaultKeep  = 24 * time.Hour
	DefaultMost  = 1000
	DefaultBytes = 32 << 10
)

// Options configure a [List].
type Options struct {
	// Keys sign what is held and what a person agreed to.
	Keys *signed.Keyring
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Keep is how long a call waits, how long it may be made once it is approved, and how
	// long a refusal stands; 0 is DefaultKeep.
	Keep time.Duration
	// Most bounds what waits, and Bytes a call with its arguments; 0 is DefaultMost and
	// DefaultBytes. What is beyond them is not held, and may not go ahead.
	Most, Bytes int
	// Told is told of what became of every call that was asked about; nil is nobody.
	Told func(Event)
}

// Event is what became of a call.
type Event struct {
	ID, Tool string
	Answer   State
	Why      string
}

// List is what waits for a person in a store. It is safe for concurrent use, and several
// processes may have one store.
type List struct {
	store  *store.History
	o      Options
	memory *signed.Signer // of the records of a memory

	mu     sync.Mutex
	signer *signed.Signer
}

// Agent is the name whose key signs the records of a memory that is served.
const Agent = "guard-serve"

// New returns the list of a store, which is the caller's to close.
func New(s *store.History, o Options) *List {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Keep, o.Most, o.Bytes = cmp.Or(o.Keep, DefaultKeep), cmp.Or(o.Most, DefaultMost), cmp.Or(o.Bytes, DefaultBytes)
	// Keys of its own: what stands in a held call is nothing that a memory has learned.
	return &List{store: s, o: o, memory: o.Keys.Signer(Agent), signer: o.Keys.Memory("pending").Signer("person")}
}

// Asker is the side of the agent, which can ask and decide nothing.
type Asker interface {
	Ask(ctx context.Context, c Call) (Answer, error)
}

// Call is what an agent wants to do and a policy wants confirmed.
type Call struct {
	// Of names the memory or conversation. What is agreed to there is not agreed to
	// elsewhere. It is kept as a hash.
	Of        string `json:"-"`
	Principal string `json:"principal,omitempty"`
	// Write says that it is a change of memory and no call of a tool; Tool is then add,
	// replace or remove.
	Write bool   `json:"write,omitempty"`
	Tool  string `json:"tool"`
	Args  []Arg  `json:"args,omitempty"`
	// Request is what the user asked for, in his words or the agent's.
	Request string `json:"request,omitempty"`
	// Sources are where that comes from which has to be confirmed.
	Sources []memory.Origin `json:"sources,omitempty"`
	Why     []string        `json:"why,omitempty"` // a line each, for the person
}

// Arg is an argument of a call as a person sees it.
type Arg struct {
	Name  string      `json:"name"`
	Value string      `json:"value"`
	Role  memory.Role `json:"role,omitempty"`
	Type  string      `json:"type,omitempty"`
	// From are the sources of a value that has to be confirmed.
	From []string `json:"from,omitempty"`
}

// State is what became of a call.
type State string

// The states. Only Passes lets a call go ahead.
const (
	Passes  State = "passes"  // a person agreed to it, or to its source
	Waits   State = "waits"   // nobody has decided
	Refused State = "refused" // a person said no
	Full    State = "full"    // too much waits, or the call is too long to be shown
)

// Answer says whether a call may go ahead.
type Answer struct {
	State State
	// ID is the number under which it is held; of a call that passes by its source, that
	// of the rule.
	ID  string
	Why string // for the agent, in a sentence
}

// body is what the record of a call says.
type body struct {
	Call
	Keep time.Duration `json:"keep"`
}

// kept are the types whose values have one spelling; every other value is compared as it
// stands, for it may mean something else in another spelling.
var kept = []world.Type{"account", "mailbox", "phone", "host"}

// form is a value in the form in which calls are compared.
func (a *Arg) form() string {
	switch t := world.Type(a.Type); {
	case a.Role == memory.Content || t == world.Title || t == world.FreeText:
		return lines(a.Value)
	case slices.Contains(kept, t):
		if c, err := t.Canonical(a.Value); err == nil {
			return c
		}
	}
	return strings.TrimSpace(a.Value)
}

// lines is a text without what nobody sees of its spaces. A line break or an indent may
// mean something.
func lines(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")), "\n") {
		b.WriteString(line[:len(line)-len(strings.TrimLeft(line, " \t"))])
		b.WriteString(strings.Join(strings.Fields(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// key names a call: calls that are the same have the same.
func (c *Call) key() string {
	args := make([][4]string, len(c.Args))
	for i := range c.Args {
		args[i] = [4]string{c.Args[i].Name, c.Args[i].Type, string(c.Args[i].Role), c.Args[i].form()}
	}
	slices.SortStableFunc(args, func(a, b [4]string) int { return slices.Compare(a[:], b[:]) })
	b := []byte("memtox held call 2\x00")
	for _, s := range []string{c.Of, c.Principal, kind(c.Write), c.Tool} {
		b = wire.AppendField(b, s)
	}
	for _, a := range args {
		for _, s := range a {
			b = wire.AppendField(b, s)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func kind(write bool) string {
	if write {
		return "write"
	}
	return "call"
}

func (c *Call) size() int {
	n := len(c.Tool) + len(c.Principal) + len(c.Request)
	for _, a := range c.Args {
		n += len(a.Name) + len(a.Value) + len(a.Type)
	}
	return n
}

// Ask implements [Asker]. A call that a person agreed to passes once.
func (l *List) Ask(ctx context.Context, c Call) (Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.ask(ctx, &c)
	if err != nil {
		return Answer{}, fmt.Errorf("asking whether a person has agreed to %s: %w", text.Clip(c.Tool, 80), err)
	}
	if l.o.Told != nil {
		l.o.Told(Event{ID: a.ID, Tool: c.Tool, Answer: a.State, Why: a.Why})
	}
	return a, nil
}

func (l *List) ask(ctx context.Context, c *Call) (Answer, error) {
	if c.size() > l.o.Bytes {
		return Answer{State: Full, Why: fmt.Sprintf("it has %d bytes, more than the %d that a person is shown", c.size(),
			l.o.Bytes)}, nil
	}
	key := c.key()
	rule, covered, err := l.covered(ctx, c.Principal, ruleFor(c), c.Sources)
	if err != nil {
		return Answer{}, err
	}
	if covered {
		_, err := l.put(ctx, c, key, memory.Retired, "passed: its source is approved by "+rule)
		return Answer{State: Passes, ID: rule, Why: "its source is approved"}, err
	}
	var all []store.Version // more than one where two processes were asked at once
	for v, err := range l.store.Versions(ctx, store.Filter{Store: CallStore, Key: key, Current: true,
		States: []memory.State{memory.Live, memory.Held, memory.Quarantined}}) {
		if err != nil {
			return Answer{}, err
		}
		all = append(all, v)
	}
	slices.SortStableFunc(all, func(a, b store.Version) int { return cmp.Compare(a.Record.State, b.Record.State) })
	for _, v := range all {
		why := ""
		switch {
		case l.signer.Verify(&v.Record) != "":
			why = "it is not what was held"
		case l.late(&v):
			why = lateWhy(&v.Record)
		case v.Record.State == memory.Held:
			return Answer{State: Waits, ID: v.Record.ID, Why: waits(v.Record.ID)}, nil
		case v.Record.State == memory.Quarantined:
			return Answer{State: Refused, ID: v.Record.ID, Why: fmt.Sprintf("a person refused it as %s: %s", v.Record.ID,
				text.Clip(v.Why, 200))}, nil
		case v.Record.Scope == memory.ToolActionAllowed:
			mine, err := l.take(ctx, v.Record)
			if err != nil {
				return Answer{}, err
			}
			if mine {
				return Answer{State: Passes, ID: v.Record.ID, Why: "a person agreed to it as " + v.Record.ID}, nil
			}
			continue // another process was quicker
		}
		if err := l.end(ctx, v.Record, cmp.Or(why, "it is not what was held")); err != nil {
			return Answer{}, err
		}
	}
	n, err := l.waiting(ctx)
	if err != nil {
		return Answer{}, err
	}
	if n >= l.o.Most {
		return Answer{State: Full, Why: fmt.Sprintf("%d wait for a person already", n)}, nil
	}
	id, err := l.put(ctx, c, key, memory.Held, "held: the policy wants it confirmed")
	return Answer{State: Waits, ID: id, Why: waits(id)}, err
}

func waits(id string) string {
	return "it is held as " + id + " until a person decides; ask again once they have"
}

// waiting counts what waits for a decision, and ends calls that have waited too long.
// Where too much waits, entries of a memory that no session sees give way as well once
// they have waited as long as a call may: somebody who floods it shuts nobody out for ever.
func (l *List) waiting(ctx context.Context) (n int, err error) {
	var late, unseen []memory.Record
	for v, err := range l.store.Versions(ctx, store.Filter{Current: true,
		States: []memory.State{memory.Staged, memory.Held, memory.Quarantined}}) {
		switch r := &v.Record; {
		case err != nil:
			return 0, err
		case r.Store == CallStore && l.late(&v):
			late = append(late, *r)
		case waitsNow(&v):
			n++
			if r.Store != CallStore && !r.State.Visible() && !l.o.Now().Before(v.At.Add(l.o.Keep)) {
				unseen = append(unseen, *r)
			}
		}
	}
	if n >= l.o.Most {
		late = append(late, unseen...)
		n -= len(unseen)
	}
	for _, r := range late {
		if err := l.end(ctx, r, lateWhy(&r)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// waitsNow reports whether a version is one that somebody should decide about: not what
// was refused, nor what an incident response has withheld.
func waitsNow(v *store.Version) bool {
	switch v.Record.State {
	case memory.Staged, memory.Held:
		return true
	case memory.Quarantined:
		return v.Record.Store != CallStore && v.Cause == memory.CauseWrite
	}
	return false
}

// late reports whether a call has been as it is for longer than it is kept.
func (l *List) late(v *store.Version) bool {
	b, err := read(&v.Record)
	return err == nil && !l.o.Now().Before(v.At.Add(b.Keep))
}

func lateWhy(r *memory.Record) string {
	switch {
	case r.State == memory.Live:
		return "expired: it was approved and not made"
	case r.State == memory.Quarantined && r.Store == CallStore:
		return "expired: the refusal stood long enough"
	}
	return "expired: nobody decided"
}

func read(r *memory.Record) (b body, err error) {
	err = json.Unmarshal([]byte(r.Text), &b)
	return b, err
}

// put stores a call.
func (l *List) put(ctx context.Context, c *Call, key string, as memory.State, why string) (id string, err error) {
	b, err := json.Marshal(body{*c, l.o.Keep})
	if err != nil {
		return "", err
	}
	r := memory.Record{Store: CallStore, Key: key, Text: string(b), Principal: c.Principal, State: as,
		Scope: memory.ContextOnly}
	if len(c.Sources) > 0 {
		r.Origin = c.Sources[0]
		for _, o := range c.Sources {
			r.Lineage = append(r.Lineage, memory.Link{Origin: o})
		}
	}
	return l.add(ctx, r, memory.CauseWrite, "memtox", why)
}

func (l *List) add(ctx context.Context, r memory.Record, cause memory.Cause, by, why string) (id string, err error) {
	if r.ID, err = l.store.NextID(ctx); err != nil {
		return "", err
	}
	r.Created, r.Version = l.o.Now(), 1
	r.ValidFrom = r.Created
	r.Signature, r.SignedBy = l.signer.Sign(r)
	_, err = l.store.Commit(ctx, &memory.Batch{At: r.Created, Cause: cause, Route: memory.RouteOperator, By: by, Why: why,
		Records: []memory.Record{r}})
	return r.ID, err
}

// end retires a call.
func (l *List) end(ctx context.Context, r memory.Record, why string) error {
	r.State, r.ValidTo = memory.Retired, l.o.Now()
	_, err := l.store.Commit(ctx, &memory.Batch{At: r.ValidTo, Cause: memory.CauseRetire, Route: memory.RouteOperator,
		By: "memtox", Why: why, Records: []memory.Record{r}})
	return err
}

// take uses an approval up. It is mine if this is what ended it: where two processes ask
// at once, the log has put one of them first.
func (l *List) take(ctx context.Context, r memory.Record) (mine bool, err error) {
	r.State, r.ValidTo = memory.Retired, l.o.Now()
	done, err := l.store.Commit(ctx, &memory.Batch{At: r.ValidTo, Cause: memory.CauseWrite, Route: memory.RouteOperator,
		By: "memtox", Why: "passed: a person agreed to it", Records: []memory.Record{r}})
	if err != nil {
		return false, err
	}
	for v, err := range l.store.Versions(ctx, store.Filter{ID: r.ID, To: done.First - 1}) {
		if err != nil {
			return false, err
		}
		mine = v.Record.State == memory.Live
	}
	return mine, nil
}

// Held is a call as the agent is told of it; the zero value is one that the policy wanted
// nobody to confirm.
type Held = Answer

// Act is a verdict on a tool call as it is once a person was asked: what the gate defers
// goes ahead if somebody agreed to it, and is else refused with the number under which it
// is held. of is that of [Call].
func (l *List) Act(ctx context.Context, of string, c *memory.Call, v memory.Verdict) (memory.Verdict, Held, error) {
	if v.Action != memory.Defer {
		return v, Held{}, nil
	}
	call := Call{Of: of, Principal: c.Query.Principal, Tool: c.Tool, Request: c.Query.Text}
	for _, a := range c.Args {
		arg := Arg{Name: a.Name, Value: a.Value, Role: a.Role, Type: a.Type}
		asked := func(f memory.Finding) bool { return f.Argument == a.Name && f.Value == a.Value }
		if slices.ContainsFunc(v.Findings, asked) {
			if a.Lineage.Least(memory.Origin{Class: memory.User}).Class >= memory.User {
				call.Sources = append(call.Sources, memory.Origin{}) // it has no source that could be approved
			}
			for _, k := range a.Lineage {
				if k.Origin.Class >= memory.User {
					continue
				}
				if !slices.Contains(call.Sources, k.Origin) {
					call.Sources = append(call.Sources, k.Origin)
				}
				if name := named(k.Origin); !slices.Contains(arg.From, name) {
					arg.From = append(arg.From, name)
				}
			}
		}
		call.Args = append(call.Args, arg)
	}
	return l.confirm(ctx, call, v)
}

// named is a source as a person is told of it.
func named(o memory.Origin) string {
	name := cmp.Or(o.Source, o.Class.String())
	if o.Medium != "" {
		name += " (" + string(o.Medium) + ")"
	}
	return name
}

// Write is a verdict on a proposal to a memory that somebody else keeps, as it is once a
// person was asked. What somebody agreed to is allowed as approve leaves the record.
func (l *List) Write(ctx context.Context, of string, p *memory.Proposal, v memory.Verdict,
	approve func(memory.Record) memory.Record) (memory.Verdict, Held, error) {
	if v.Action != memory.Defer && v.Action != memory.Quarantine {
		return v, Held{}, nil
	}
	r := p.Record
	if v.Text != "" && p.Op != memory.Remove {
		r.Text = v.Text
	}
	key := r.Key
	if key == r.Store+"/"+r.ID {
		key = "" // the name that an entry without one gets
	}
	call := Call{Of: of, Principal: r.Principal, Write: true, Tool: p.Op.String(), Sources: r.AppendOrigins(nil),
		Args: []Arg{{Name: "store", Value: r.Store}, {Name: "key", Value: key},
			{Name: "content", Value: r.Text, Role: memory.Content}}}
	switch {
	case p.Op == memory.Remove:
		call.Args = append(call.Args, Arg{Name: "record", Value: r.ID})
		if p.Prior != nil {
			call.Args[3].Value = p.Prior.ID
		}
	case p.Prior != nil:
		call.Args = append(call.Args, Arg{Name: "in place of", Value: p.Prior.Text, Role: memory.Content})
	}
	out, held, err := l.confirm(ctx, call, v)
	if err == nil && held.State == Passes && p.Op != memory.Remove {
		r = approve(r)
		out.Scope, out.Signature, out.SignedBy = r.Scope, r.Signature, r.SignedBy
		if r.Text != p.Record.Text {
			out.Action, out.Text = memory.Redact, r.Text
		}
	}
	return out, held, err
}

// Check is that of the finding which says what became of a call.
const Check = "confirmation"

func (l *List) confirm(ctx context.Context, c Call, v memory.Verdict) (memory.Verdict, Held, error) {
	for _, f := range v.Findings {
		line := f.Note
		if f.Argument != "" {
			line = f.Argument + ": " + line
		}
		if line = text.Clip(cmp.Or(line, f.Check), 400); !slices.Contains(c.Why, line) {
			c.Why = append(c.Why, line)
		}
	}
	a, err := l.Ask(ctx, c)
	switch {
	case err != nil:
		return v, Held{}, err
	case a.State == Passes:
		return memory.Verdict{}, a, nil
	case a.State != Waits:
		v.Action = memory.Block
	}
	v.Findings = append(slices.Clone(v.Findings), memory.Finding{Check: Check, Note: a.Why})
	return v, a, nil
}

// ErrNoSource is in the error where the source of something is to be approved that has
// none with a name.
var ErrNoSource = errors.New("it has no source that could be approved")
