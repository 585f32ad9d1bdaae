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
// An agreement says which of its record's versions it is, so that one that was used or
// taken back does not come back by setting its state: not by a new version, nor by another
// state of an old one. Who goes further and takes versions out of the journal can bring one
// back; the journal is then not what its head says, and `memtox memory verify` finds it.
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
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

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
	// Most bounds the calls that wait, and what waits to be remembered, each for itself;
	// Bytes bounds what is kept of one, in JSON. 0 is DefaultMost and DefaultBytes. What is
	// beyond them is not held, and may not go ahead.
	Most, Bytes int
	// Told is told of what became of every call that was asked about; nil is nobody. It may
	// take its time: it holds up whoever asked, and nobody else.
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
	store *store.History
	o     Options
	asks  sync.Mutex // one question at a time

	signing sync.Mutex     // of both signers; nothing else is waited for under it
	memory  *signed.Signer // of the records of a memory
	signer  *signed.Signer
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

// Asker is the side of the agent, which can ask and decide nothing. A [List] says what its
// methods do.
type Asker interface {
	Ask(ctx context.Context, c Call) (Answer, error)
	Act(ctx context.Context, of string, c *memory.Call, v memory.Verdict) (memory.Verdict, Held, error)
	Write(ctx context.Context, of string, p *memory.Proposal, v memory.Verdict,
		approve func(memory.Record) memory.Record) (memory.Verdict, Held, error)
	Remembers(ctx context.Context, r *memory.Record) (rule string, ok bool, err error)
	Room(ctx context.Context) (bool, error)
}

var _ Asker = (*List)(nil)

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
	// Request is what the user asked for. Claimed says that the agent alone says so.
	Request string `json:"request,omitempty"`
	Claimed bool   `json:"claimed,omitempty"`
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

// Claims is a context in which what the user asked for is the agent's word alone.
func Claims(ctx context.Context) context.Context { return context.WithValue(ctx, claimsKey{}, true) }

type claimsKey struct{}

// Forgotten is where words come from of which nobody can tell any more where from. It is
// no source that could be approved.
var Forgotten = memory.Origin{Class: memory.External, Medium: memory.MCP, Source: "earlier in the conversation"}

// maxSources bounds the sources of a call that is held.
const maxSources = 64

// body is what the record of a call says.
type body struct {
	Call
	In   string        `json:"in,omitempty"` // a short name for Of
	Keep time.Duration `json:"keep"`
}

// within is a short name for a memory or conversation, by which a person tells it from
// others.
func within(of string) string {
	sum := sha256.Sum256([]byte("memtox conversation 1\x00" + of))
	return hex.EncodeToString(sum[:4])
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
	// Arguments of one name stay in their order, which may mean something.
	slices.SortStableFunc(args, func(a, b [4]string) int { return cmp.Compare(a[0], b[0]) })
	b := []byte("memtox held call 3\x00")
	for _, s := range []string{c.Of, c.Principal, kind(c.Write), c.Tool} {
		b = wire.AppendField(b, s)
	}
	for _, a := range args {
		for _, s := range a {
			b = wire.AppendField(b, s)
		}
	}
	if c.Write { // what a person agreed to was from there
		for _, o := range c.Sources {
			b = appendOrigin(b, o)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func appendOrigin(b []byte, o memory.Origin) []byte {
	for _, s := range []string{o.Class.String(), string(o.Medium), o.Source} {
		b = wire.AppendField(b, s)
	}
	return b
}

func kind(write bool) string {
	if write {
		return "write"
	}
	return "call"
}

// Ask implements [Asker]. A call that a person agreed to passes once.
func (l *List) Ask(ctx context.Context, c Call) (Answer, error) {
	l.asks.Lock()
	a, err := l.ask(ctx, &c)
	l.asks.Unlock()
	if err != nil {
		return Answer{}, fmt.Errorf("asking whether a person has agreed to %s: %w", text.Clip(c.Tool, 80), err)
	}
	l.tell(Event{ID: a.ID, Tool: c.Tool, Answer: a.State, Why: a.Why})
	return a, nil
}

func (l *List) tell(e Event) {
	if l.o.Told != nil {
		l.o.Told(e)
	}
}

func (l *List) ask(ctx context.Context, c *Call) (Answer, error) {
	full := func(format string, args ...any) (Answer, error) {
		return Answer{State: Full, Why: fmt.Sprintf(format, args...)}, nil
	}
	if len(c.Sources) > maxSources {
		return full("it comes from more than %d sources", maxSources)
	}
	said, err := json.Marshal(body{*c, within(c.Of), l.o.Keep})
	if err != nil {
		return Answer{}, err
	}
	if len(said) > l.o.Bytes {
		return full("it has %d bytes, more than the %d that a person is shown", len(said), l.o.Bytes)
	}
	key := c.key()
	rule, covered, err := l.covered(ctx, c.Principal, ruleFor(c), c.Sources)
	if err != nil {
		return Answer{}, err
	}
	if covered {
		short, err := json.Marshal(body{c.brief(), within(c.Of), l.o.Keep})
		if err != nil {
			return Answer{}, err
		}
		_, err = l.put(ctx, c, key, string(short), memory.Retired, "passed: its source is approved by "+rule)
		return Answer{State: Passes, ID: rule, Why: "its source is approved"}, err
	}
	for changed := true; changed; {
		var a Answer
		if a, changed, err = l.stands(ctx, key); err != nil || a.State != "" {
			return a, err
		}
	}
	calls, entries, err := l.waiting(ctx)
	if err != nil {
		return Answer{}, err
	}
	if n := map[bool]int{false: calls, true: entries}[c.Write]; n >= l.o.Most {
		return full("%d wait for a person already", n)
	}
	id, err := l.put(ctx, c, key, string(said), memory.Held, "held: the policy wants it confirmed")
	return Answer{State: Waits, ID: id, Why: waits(id)}, err
}

// brief is what is kept of a call that passes unasked, of which nobody bounds how many
// there are. Its key still tells it from every other.
func (c *Call) brief() Call {
	out := *c
	out.Request, out.Why, out.Args = "", nil, nil
	for _, a := range c.Args[:min(len(c.Args), 16)] {
		out.Args = append(out.Args, Arg{Name: text.Clip(a.Name, 80), Value: text.Clip(a.Value, 200), Role: a.Role})
	}
	return out
}

// stands is what was decided about a call, or that it waits; no answer where nothing is
// there. changed says that somebody decided meanwhile, and that it is to be asked again.
func (l *List) stands(ctx context.Context, key string) (a Answer, changed bool, err error) {
	var all []store.Version // more than one where two processes were asked at once
	for v, err := range l.store.Versions(ctx, store.Filter{Store: CallStore, Key: key, Current: true,
		States: []memory.State{memory.Live, memory.Held, memory.Quarantined}}) {
		if err != nil {
			return a, false, err
		}
		all = append(all, v)
	}
	slices.SortStableFunc(all, func(a, b store.Version) int { return cmp.Compare(a.Record.State, b.Record.State) })
	for _, v := range all {
		id, why := v.Record.ID, "it is not what was held"
		b, _ := read(&v.Record)
		switch {
		case !l.mine(&v.Record):
		case l.late(&v, &b):
			why = lateWhy(&v.Record)
		case v.Record.State == memory.Held:
			return Answer{State: Waits, ID: id, Why: waits(id)}, false, nil
		case v.Record.State == memory.Quarantined:
			return Answer{State: Refused, ID: id, Why: fmt.Sprintf("a person refused it as %s: %s", id, text.Clip(v.Why, 200))},
				false, nil
		default:
			agreed, err := l.agreed(ctx, &v.Record)
			if err != nil {
				return a, false, err
			}
			if agreed {
				mine, err := l.retire(ctx, &v, memory.CauseWrite, "passed: a person agreed to it")
				if mine {
					a = Answer{State: Passes, ID: id, Why: "a person agreed to it as " + id}
				}
				return a, !mine, err
			}
		}
		if done, err := l.retire(ctx, &v, memory.CauseRetire, why); err != nil || !done {
			return a, true, err
		}
	}
	return a, false, nil
}

func waits(id string) string {
	return "it is held as " + id + " until a person decides; ask again once they have"
}

// waiting counts the calls that wait for a decision, and what waits to be remembered, and
// ends calls that have waited too long. Neither can fill the other's room. Where too much
// waits, entries of a memory that no session sees give way as well once they have waited as
// long as a call may: somebody who floods it shuts nobody out for ever.
func (l *List) waiting(ctx context.Context) (calls, entries int, err error) {
	type ending struct {
		store.Version
		why string
	}
	var late, unseen []ending
	for v, err := range l.store.Versions(ctx, store.Filter{Current: true,
		States: []memory.State{memory.Staged, memory.Held, memory.Quarantined}}) {
		if err != nil {
			return 0, 0, err
		}
		r, b := &v.Record, body{}
		if r.Store == CallStore {
			b, _ = read(r)
		}
		switch {
		case r.Store == CallStore && l.late(&v, &b):
			late = append(late, ending{v, lateWhy(r)})
		case !waitsNow(&v):
		case r.Store == CallStore && !b.Write:
			calls++
		default:
			entries++
			if r.Store != CallStore && !r.State.Visible() && !l.o.Now().Before(v.At.Add(l.o.Keep)) {
				unseen = append(unseen, ending{v, lateWhy(r)})
			}
		}
	}
	if entries >= l.o.Most {
		late = append(late, unseen...)
		entries -= len(unseen)
	}
	for _, e := range late {
		if _, err := l.retire(ctx, &e.Version, memory.CauseRetire, e.why); err != nil { // or somebody has decided meanwhile
			return 0, 0, err
		}
	}
	return calls, entries, nil
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
func (l *List) late(v *store.Version, b *body) bool {
	return b.Keep > 0 && !l.o.Now().Before(v.At.Add(b.Keep))
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
func (l *List) put(ctx context.Context, c *Call, key, said string, as memory.State, why string) (id string, err error) {
	r := memory.Record{Store: CallStore, Key: key, Text: said, Principal: c.Principal, State: as, Scope: memory.ContextOnly}
	if len(c.Sources) > 0 {
		r.Origin = c.Sources[0]
		for _, o := range c.Sources {
			r.Lineage = append(r.Lineage, memory.Link{Origin: o})
		}
	}
	if err := l.name(ctx, &r); err != nil {
		return "", err
	}
	_, err = l.store.Commit(ctx, &memory.Batch{At: r.Created, Cause: memory.CauseWrite, Route: memory.RouteOperator,
		By: "memtox", Why: why, Records: []memory.Record{r}})
	return r.ID, err
}

// name gives a record of this package its number, times and signature.
func (l *List) name(ctx context.Context, r *memory.Record) (err error) {
	if r.ID, err = l.store.NextID(ctx); err != nil {
		return err
	}
	r.Created, r.Version = l.o.Now(), 1
	r.ValidFrom = r.Created
	l.sign(l.signer, r)
	return nil
}

func (l *List) sign(by *signed.Signer, r *memory.Record) {
	l.signing.Lock()
	defer l.signing.Unlock()
	r.Signature, r.SignedBy = by.Sign(*r)
}

// mine reports whether a record of this package's is what was signed.
func (l *List) mine(r *memory.Record) bool {
	l.signing.Lock()
	defer l.signing.Unlock()
	return l.signer.Verify(r) == ""
}

// agreed reports whether a live record of this package's is what a person agreed to, and
// was neither used nor taken back since: an agreement is signed with the number that it has
// among the versions of its record, and none came after it.
func (l *List) agreed(ctx context.Context, r *memory.Record) (bool, error) {
	n, _, err := l.versions(ctx, r.ID)
	return n == r.Version && r.State == memory.Live && r.Scope == memory.ToolActionAllowed && l.mine(r), err
}

// versions counts the versions of a record, and returns the last; 0 is no such record.
func (l *List) versions(ctx context.Context, id string) (n int, last store.Version, err error) {
	for v, err := range l.store.Versions(ctx, store.Filter{ID: id}) {
		if err != nil {
			return n, last, err
		}
		n, last = n+1, v
	}
	return n, last, nil
}

// retire ends what stands as v, unless it has changed since: then done is false.
func (l *List) retire(ctx context.Context, v *store.Version, cause memory.Cause, why string) (done bool, err error) {
	return l.change(ctx, v, memory.Batch{Cause: cause, By: "memtox", Why: why}, memory.Retired)
}

func (l *List) change(ctx context.Context, v *store.Version, b memory.Batch, to memory.State) (done bool, err error) {
	_, err = l.store.Decide(ctx, func(ctx context.Context) (*memory.Batch, error) {
		_, now, err := l.versions(ctx, v.Record.ID)
		if done = now.Seq == v.Seq; !done || err != nil {
			return nil, err
		}
		r := now.Record
		b.At, b.Route = l.o.Now(), memory.RouteOperator
		if r.State, r.ValidTo = to, (time.Time{}); to == memory.Retired {
			r.ValidTo = b.At
		}
		b.Records = []memory.Record{r}
		return &b, nil
	})
	return done && err == nil, err
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
	call := Call{Of: of, Principal: c.Query.Principal, Tool: c.Tool, Request: c.Query.Text,
		Claimed: ctx.Value(claimsKey{}) != nil}
	type asked struct{ name, value string }
	about := map[asked]bool{}
	for _, f := range v.Findings {
		about[asked{f.Argument, f.Value}] = true
	}
	sources := map[memory.Origin]bool{}
	source := func(o memory.Origin) {
		if !sources[o] && len(sources) <= maxSources { // one more is too many
			sources[o] = true
			call.Sources = append(call.Sources, o)
		}
	}
	for _, a := range c.Args {
		arg := Arg{Name: a.Name, Value: a.Value, Role: a.Role, Type: a.Type}
		if about[asked{a.Name, a.Value}] {
			if a.Lineage.Least(memory.Origin{Class: memory.User}).Class >= memory.User {
				source(memory.Origin{}) // it has no source that could be approved
			}
			for _, k := range a.Lineage {
				if k.Origin.Class >= memory.User || len(arg.From) > maxSources {
					continue
				}
				source(k.Origin)
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
	var about []string
	if o.Medium != "" {
		about = append(about, string(o.Medium))
	}
	if o.Class != memory.External {
		about = append(about, o.Class.String())
	}
	switch name := quoted(o.Source); {
	case name == "":
		return strings.Join(append([]string{"a source without a name"}, about...), ", ")
	case len(about) > 0:
		return name + " (" + strings.Join(about, ", ") + ")"
	default:
		return name
	}
}

// quoted is a name that somebody else chose, in quotation marks where it has anything in it
// that would read as ours.
func quoted(name string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./:@+", r)
	}
	if strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
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
	call := Call{Of: of, Principal: r.Principal, Write: true, Tool: p.Op.String(), Sources: originsOf(&r),
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
	if !Coverable(p, v) {
		call.Sources = append(call.Sources, memory.Origin{}) // no approved source is enough
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

// originsOf is all that a record may come from, as far as it is not the user's own: its
// lineage is what a client says, and nothing tells which part of it the content is from.
func originsOf(r *memory.Record) []memory.Origin {
	out := []memory.Origin{r.Origin}
	seen := map[memory.Origin]bool{r.Origin: true}
	for _, l := range r.Lineage {
		if !seen[l.Origin] && l.Origin.Class < memory.User && len(out) <= maxSources {
			seen[l.Origin] = true
			out = append(out, l.Origin)
		}
	}
	return out
}

// Coverable reports whether an approved source is enough for a write that the policy wants
// confirmed: it adds something, or replaces what came from there too. What is held back for
// what it says, and what would take the place of somebody else's, is decided one by one.
func Coverable(p *memory.Proposal, v memory.Verdict) bool {
	return v.Action == memory.Defer && (p.Op == memory.Add && p.Prior == nil ||
		p.Op == memory.Replace && p.Prior != nil && p.Prior.Origin == p.Record.Origin)
}

// Check is that of the finding which says what became of a call.
const Check = "confirmation"

func (l *List) confirm(ctx context.Context, c Call, v memory.Verdict) (memory.Verdict, Held, error) {
	for _, f := range v.Findings {
		if len(c.Why) > maxSources { // who reads more reads none; the arguments say it too
			break
		}
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
