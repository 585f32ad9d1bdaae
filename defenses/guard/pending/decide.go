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
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/text"
	"github.com/memtox/memtox/internal/wire"
)

// Entry is one thing that waits for a decision, or a source that is approved, as a person
// sees it. Its texts are hostile.
type Entry struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"` // memory: an entry of the file's own; write, call: see Call; source: an approved one
	Key   string `json:"key"`
	State string `json:"state"`
	// Content is what the entry says, or the call in a line.
	Content   string    `json:"content"`
	Class     string    `json:"source_class"`
	Source    string    `json:"source,omitempty"`
	Principal string    `json:"principal"`
	Replaces  string    `json:"replaces,omitempty"` // the record that it is to take the place of
	Prior     string    `json:"replaces_content,omitempty"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	By        string    `json:"by"`  // who wrote it, or decided
	Why       string    `json:"why"` // what the guard found, or why it was decided so

	Tool    string `json:"tool,omitempty"`
	Args    []Arg  `json:"args,omitempty"`
	Request string `json:"request,omitempty"`
	Claimed bool   `json:"claimed,omitempty"` // the request is what the agent says that it was
	In      string `json:"in,omitempty"`      // a short name of the memory or conversation that it is of
	// Rule says what approving its source would let pass, "" where it has none.
	Rule string `json:"rule,omitempty"`
}

// rule is an approved source: what it is for, and whose.
type rule struct {
	For    string        `json:"for"`
	Origin memory.Origin `json:"origin"`
}

// writes is what a rule about changes of memory is for.
const writes = "what it says is remembered"

// ruleFor is what an approved source may do, of a call: one tool, and nothing else.
func ruleFor(c *Call) string {
	if c.Write {
		return writes
	}
	return "call " + c.Tool
}

func ruleKey(principal, what string, o memory.Origin) string {
	b := []byte("memtox approved source 1\x00")
	for _, s := range []string{principal, what} {
		b = wire.AppendField(b, s)
	}
	sum := sha256.Sum256(appendOrigin(b, o))
	return hex.EncodeToString(sum[:])
}

func says(what string, o memory.Origin) string {
	if tool, ok := strings.CutPrefix(what, "call "); ok {
		return fmt.Sprintf("%s goes ahead with values from %s", quoted(tool), named(o))
	}
	return fmt.Sprintf("what %s says is remembered", named(o))
}

// covered reports whether a person has approved every source, and by which rule.
func (l *List) covered(ctx context.Context, principal, what string, from []memory.Origin) (id string, ok bool,
	err error) {
	if !nameable(from) {
		return "", false, nil
	}
	for _, o := range from {
		r, there, err := l.store.ByKey(ctx, SourceStore, ruleKey(principal, what, o))
		if there && err == nil {
			there, err = l.agreed(ctx, &r)
		}
		if err != nil || !there {
			return "", false, err
		}
		id = r.ID
	}
	return id, true, nil
}

// Remembers reports whether a person has approved all sources of an entry, so that it is
// remembered unasked, if it is [Coverable].
func (l *List) Remembers(ctx context.Context, r *memory.Record) (rule string, ok bool, err error) {
	rule, ok, err = l.covered(ctx, r.Principal, writes, r.AppendOrigins(nil))
	if ok {
		l.tell(Event{ID: rule, Tool: "memory", Answer: Passes, Why: "its source is approved"})
	}
	return rule, ok, err
}

// Version changes with everything that Entries tells, but for the time.
func (l *List) Version(ctx context.Context) (uint64, error) { return l.store.Last(ctx) }

// Room reports whether one thing more may wait to be remembered.
func (l *List) Room(ctx context.Context) (bool, error) {
	l.asks.Lock()
	defer l.asks.Unlock()
	_, n, err := l.waiting(ctx)
	return n < l.o.Most, err
}

// Entries lists what waits, oldest first, and what stands: the sources that are approved,
// calls that are approved and not made yet, and calls that were refused and are still kept.
// Each of those can be turned round.
func (l *List) Entries(ctx context.Context) (waiting, standing []Entry, err error) {
	waiting, standing = []Entry{}, []Entry{}
	add := func(f store.Filter) error {
		f.Current = true
		for v, err := range l.store.Versions(ctx, f) {
			r := &v.Record
			if err != nil {
				return fmt.Errorf("listing what is pending: %w", err)
			}
			e, b := l.entryOf(&v)
			switch {
			case r.Store == CallStore && l.late(&v, &b):
			case waitsNow(&v):
				if e.Replaces != "" {
					old, _, _ := l.store.Get(ctx, e.Replaces) // one that cannot be read any more is named
					e.Prior = old.Text
				}
				waiting = append(waiting, e)
			case r.Store == CallStore && r.State == memory.Quarantined:
				standing = append(standing, e)
			case Ours(r) && r.State == memory.Live:
				agreed, err := l.agreed(ctx, r)
				if err != nil {
					return fmt.Errorf("listing what was approved: %w", err)
				}
				if agreed {
					standing = append(standing, e)
				}
			}
		}
		return nil
	}
	err = errors.Join(add(store.Filter{States: []memory.State{memory.Staged, memory.Held, memory.Quarantined}}),
		add(store.Filter{Store: CallStore, States: []memory.State{memory.Live}}),
		add(store.Filter{Store: SourceStore, States: []memory.State{memory.Live}}))
	return waiting, standing, err
}

func (l *List) entryOf(v *store.Version) (e Entry, b body) {
	r := &v.Record
	state := r.State.String()
	if names := map[memory.State]string{memory.Live: "approved", memory.Quarantined: "refused"}; Ours(r) {
		state = cmp.Or(names[r.State], state)
	}
	e = Entry{ID: r.ID, Kind: "memory", Key: r.Key, State: state, Content: r.Text, Class: r.Origin.Class.String(),
		Source: r.Origin.Source, Principal: r.Principal, Replaces: r.Parent, Created: r.Created, By: v.By, Why: v.Why}
	switch r.Store {
	case SourceStore:
		var x rule
		_ = json.Unmarshal([]byte(r.Text), &x)
		e.Kind, e.Key, e.Content = "source", "", says(x.For, x.Origin)
	case CallStore:
		var err error
		if b, err = read(r); err != nil {
			break // it is shown as it stands
		}
		e.Kind, e.Key, e.Content, e.Tool, e.Args = kind(b.Write), "", line(&b.Call), b.Tool, b.Args
		e.Request, e.Claimed, e.In = b.Request, b.Claimed, b.In
		e.Expires = v.At.Add(b.Keep)
		e.Rule = rules(ruleFor(&b.Call), b.Sources)
		if r.State == memory.Held {
			e.Why = strings.Join(b.Why, "; ")
		}
	default:
		e.Rule = rules(writes, r.AppendOrigins(nil))
	}
	return e, b
}

// rules says what approving sources would let pass.
func rules(what string, from []memory.Origin) string {
	if !nameable(from) {
		return ""
	}
	var all []string
	for _, o := range from {
		all = append(all, says(what, o))
	}
	return strings.Join(all, "; ")
}

func nameable(from []memory.Origin) bool {
	return len(from) > 0 && !slices.ContainsFunc(from, func(o memory.Origin) bool {
		return o.Source == "" || o.Source == Forgotten.Source
	})
}

// line is a call in a line.
func line(c *Call) string {
	var b strings.Builder
	b.WriteString(quoted(c.Tool))
	for _, a := range c.Args {
		fmt.Fprintf(&b, " %s=%q", quoted(a.Name), a.Value)
	}
	return b.String()
}

// String is an argument in a line.
func (a Arg) String() string {
	as := []string{string(a.Role), a.Type}
	as = slices.DeleteFunc(as, func(s string) bool { return s == "" })
	out := fmt.Sprintf("%s = %q", quoted(a.Name), a.Value)
	if len(as) > 0 {
		out += ", as " + strings.Join(as, ", ")
	}
	if len(a.From) > 0 {
		out += ", from " + strings.Join(a.From, ", ")
	}
	return out
}

// Decision is a person's.
type Decision struct {
	By, Why string
	// Source approves where it comes from too: from now on what that says goes the same
	// way without a question.
	Source bool
	// Anyway is that of [store.Approval].
	Anyway bool
}

func (l *List) curator(d *Decision) *store.Curator { return store.NewCurator(l.store, d.By, l.o.Now) }

// Approve agrees to what waits, or was refused and is still kept: an entry of the memory
// goes live with the authority to act, a call may be made once. With its source, both are
// agreed to in one step, or neither.
func (l *List) Approve(ctx context.Context, id string, d Decision) (Entry, error) {
	r, ok, err := l.store.Get(ctx, id)
	what, from := writes, r.AppendOrigins(nil)
	switch {
	case err != nil:
		return Entry{}, err
	case !ok || r.Store == SourceStore:
		return Entry{}, fmt.Errorf("approving %q: %w", text.Clip(id, 80), memory.ErrNotFound)
	case r.Store == CallStore:
		b, err := read(&r)
		if err != nil || !l.mine(&r) {
			return Entry{}, fmt.Errorf("approving %q: %w: it is not what was held", id, store.ErrTorn)
		}
		what, from = ruleFor(&b.Call), b.Sources
	}
	a := store.Approval{Why: d.Why, Anyway: d.Anyway, Amend: func(w *memory.Record) error { return l.agree(ctx, w) }}
	if d.Source {
		if !nameable(from) {
			return Entry{}, fmt.Errorf("approving %q: %w", id, ErrNoSource)
		}
		rules, err := l.newRules(ctx, r.Principal, what, from)
		if err != nil {
			return Entry{}, fmt.Errorf("approving the source of %q: %w", id, err)
		}
		a.With = func(ctx context.Context) (out []memory.Record, err error) {
			for _, r := range rules {
				_, there, err := l.covered(ctx, r.Principal, what, []memory.Origin{r.Origin})
				if err != nil {
					return nil, err
				}
				if !there {
					out = append(out, r)
				}
			}
			return out, nil
		}
	}
	if _, err := l.curator(&d).Approve(ctx, id, a); err != nil {
		return Entry{}, err
	}
	return l.entry(ctx, id)
}

// agree signs what a person agrees to, if it still waits, or was refused and is still kept.
func (l *List) agree(ctx context.Context, r *memory.Record) error {
	n, v, err := l.versions(ctx, r.ID)
	if err != nil {
		return err
	}
	by := l.memory
	if r.Store == CallStore {
		b, err := read(&v.Record)
		switch {
		case err != nil || !l.mine(&v.Record):
			return fmt.Errorf("%w: it is not what was held", store.ErrTorn)
		case l.late(&v, &b):
			return fmt.Errorf("%s: %w", lateWhy(&v.Record), store.ErrDecided)
		}
		by, r.Version = l.signer, n+1
	} else if !waitsNow(&v) {
		return fmt.Errorf("it was withheld (%s): undo that: %w", v.Cause, store.ErrDecided)
	}
	r.State, r.Scope = memory.Live, memory.ToolActionAllowed
	l.sign(by, r)
	return nil
}

// newRules makes a rule of each source.
func (l *List) newRules(ctx context.Context, principal, what string, from []memory.Origin) (out []memory.Record, err error) {
	for _, o := range from {
		b, err := json.Marshal(rule{what, o})
		if err != nil {
			return nil, err
		}
		r := memory.Record{Store: SourceStore, Key: ruleKey(principal, what, o), Text: string(b), Origin: o,
			Principal: principal, State: memory.Live, Scope: memory.ToolActionAllowed}
		if err := l.name(ctx, &r); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Reject turns down what waits, or takes the approval of a source back. A call that was
// refused, or approved and not made yet, stays refused for as long as a call is kept. One
// that was made meanwhile is an error: it has passed.
func (l *List) Reject(ctx context.Context, id string, d Decision) (Entry, error) {
	fail := func(err error) (Entry, error) {
		return Entry{}, fmt.Errorf("rejecting %q: %w", text.Clip(id, 80), err)
	}
	for done := false; !done; {
		n, v, err := l.versions(ctx, id)
		switch r := &v.Record; {
		case err != nil:
			return fail(err)
		case n == 0:
			return fail(memory.ErrNotFound)
		case !Ours(r):
			if _, err := l.curator(&d).Reject(ctx, id, d.Why); err != nil {
				return Entry{}, err
			}
			return l.entry(ctx, id)
		case r.State == memory.Retired, r.State == memory.Quarantined:
			return fail(fmt.Errorf("it is %s: %w", r.State, store.ErrDecided))
		}
		to := memory.Quarantined
		if v.Record.Store == SourceStore {
			to = memory.Retired
		}
		if done, err = l.change(ctx, &v, memory.Batch{Cause: memory.CauseReject, By: d.By, Why: d.Why}, to); err != nil {
			return fail(err)
		}
	}
	return l.entry(ctx, id)
}

// entry is something as it stands now.
func (l *List) entry(ctx context.Context, id string) (e Entry, err error) {
	for v, failed := range l.store.Versions(ctx, store.Filter{ID: id, Current: true}) {
		if failed != nil {
			return e, failed
		}
		e, _ = l.entryOf(&v)
	}
	return e, nil
}
