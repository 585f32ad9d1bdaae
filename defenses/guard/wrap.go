package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// KeyValue is a store of somebody else's: a value for a key.
type KeyValue interface {
	Get(ctx context.Context, key string) (value string, ok bool, err error)
	Set(ctx context.Context, key, value string) error
	Delete(ctx context.Context, key string) error
	Keys(ctx context.Context) ([]string, error)
	Items(ctx context.Context) (map[string]string, error)
	Has(ctx context.Context, key string) (bool, error)
}

// ErrWaits is in the error of Set, SetFrom and Delete, a [*Waiting], where the policy
// wants a person to decide: nothing was changed.
var ErrWaits = errors.New("a person must decide; nothing was changed")

// Waiting is a write or a removal that waits for a person's decision. A KeyValue has
// no place for it, so that the [Wrapped] keeps it: see Pending, Approve and Reject.
type Waiting struct {
	ID     string // for Approve and Reject
	Op     memory.Op
	Key    string
	Value  string // what would be stored, or is there and would be removed
	Origin memory.Origin
	Since  time.Time
	Checks []string // ids of the checks why it waits

	proposal memory.Proposal
}

// Error implements error. It quotes nothing of the value.
func (w *Waiting) Error() string {
	return fmt.Sprintf("%v: the change of key %q waits as %s (%s)", ErrWaits, text.Clip(w.Key, 80), w.ID,
		strings.Join(w.Checks, ", "))
}

// Unwrap makes errors.Is find ErrWaits.
func (w *Waiting) Unwrap() error { return ErrWaits }

// maxWaiting bounds what a Wrapped keeps for a person. Beyond it the oldest is let go,
// as if it had been rejected.
const maxWaiting = 1024

// Wrapped is a [KeyValue] behind the guard, and one itself. It is safe for
// concurrent use as far as the store behind it is used through it alone.
//
// It remembers what it stored, with origin and signature, as long as it lives; what
// the store held when it was wrapped is taken for right. A value that was changed
// around it, or has a threat pattern, is not handed out: Get returns a [*Rejection]
// for it, and Items leaves it out. Delete removes it.
type Wrapped struct {
	mu      sync.Mutex
	kv      KeyValue
	gate    memory.Gate
	records map[string]memory.Record // by key
	order   []string                 // keys, by when they came
	waiting []*Waiting               // oldest first
	next    int
	seed    uint64 // of the key, where the options have none
}

var _ KeyValue = (*Wrapped)(nil)

// Wrap puts the guard in front of a store. Nothing shows it what an agent does with the
// values: without a policy of its own it has the preset memory.
func (g *Guard) Wrap(ctx context.Context, kv KeyValue) (*Wrapped, error) {
	if g.opts.Policy == nil {
		o := g.opts
		p, err := Preset("memory")
		if err == nil {
			o.Policy = p
			g, err = New(o)
		}
		if err != nil {
			return nil, err
		}
	}
	w := &Wrapped{kv: kv, records: make(map[string]memory.Record), seed: rand.Uint64()}
	var err error
	if w.gate, err = g.Open(ctx, wrappedView{w: w}); err != nil {
		return nil, err
	}
	items, err := kv.Items(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading what the store holds: %w", err)
	}
	var there []memory.Record
	for key, value := range items {
		there = append(there, w.record(key, value, memory.Origin{Class: memory.Agent}))
	}
	slices.SortFunc(there, func(a, b memory.Record) int { return cmp.Compare(a.Key, b.Key) })
	if there, err = w.gate.Seed(ctx, there); err != nil {
		return nil, err
	}
	for _, r := range there {
		w.keep(memory.Change{Op: memory.Add, Route: memory.RouteSeed, Record: r})
	}
	return w, nil
}

func (w *Wrapped) record(key, value string, o memory.Origin) memory.Record {
	w.next++
	now := time.Now()
	return memory.Record{ID: "r" + strconv.Itoa(w.next), Key: key, Text: value, Origin: o,
		Lineage: memory.Lineage{{Origin: o}}, Principal: wrappedPrincipal,
		Created: now, ValidFrom: now, Version: 1}
}

// proposal proposes a change of a key, in place of what it holds.
func (w *Wrapped) proposal(key, value string, o memory.Origin) memory.Proposal {
	p := memory.Proposal{Route: memory.RouteMemoryTool, Record: w.record(key, value, o)}
	if prior, ok := w.records[key]; ok {
		p.Op, p.Prior = memory.Replace, &prior
		p.Record.Parent, p.Record.Version = prior.ID, prior.Version+1
	}
	return p
}

// commit makes a change in the store and remembers it.
func (w *Wrapped) commit(ctx context.Context, c memory.Change) error {
	if c.Op == memory.Remove {
		if err := w.kv.Delete(ctx, c.Record.Key); err != nil {
			return err
		}
		c.Record = *c.Prior
		c.Record.State, c.Record.ValidTo = memory.Retired, time.Now()
	} else if err := w.kv.Set(ctx, c.Record.Key, c.Record.Text); err != nil {
		return err
	}
	w.keep(c)
	return nil
}

func (w *Wrapped) keep(c memory.Change) {
	key := c.Record.Key
	if c.Op == memory.Remove {
		delete(w.records, key)
		w.order = slices.DeleteFunc(w.order, func(k string) bool { return k == key })
	} else {
		if _, had := w.records[key]; !had {
			w.order = append(w.order, key)
		}
		w.records[key] = c.Record
	}
	w.gate.Committed(c)
}

// Set stores what the agent itself says: [Wrapped.SetFrom] of class AGENT_AUTHORED.
func (w *Wrapped) Set(ctx context.Context, key, value string) error {
	return w.SetFrom(ctx, key, value, memory.Origin{Class: memory.Agent})
}

// SetFrom stores a value with its origin, as the guard leaves it. A refusal is a
// [*Rejection]; what a person must decide about is a [*Waiting].
func (w *Wrapped) SetFrom(ctx context.Context, key, value string, o memory.Origin) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.proposal(key, value, o)
	v, err := w.judge(ctx, p)
	if err != nil {
		return err
	}
	r := p.Record
	if v.Action == memory.Redact {
		r.Text = v.Text
	}
	r.Scope, r.Signature, r.SignedBy = v.Scope, v.Signature, v.SignedBy
	return w.commit(ctx, memory.Change{Op: p.Op, Route: p.Route, Record: r, Prior: p.Prior})
}

func (w *Wrapped) judge(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	v, err := w.gate.Write(ctx, p)
	switch {
	case err != nil:
		return v, fmt.Errorf("asking the guard: %w", err)
	case v.Action.Stops():
		return v, Rejected(&v)
	case v.Action == memory.Defer:
		return v, w.wait(p, &v)
	}
	return v, nil
}

// wait keeps a proposal for a person. What waits already is not kept twice: an agent
// that tries again and again must not push out what others wait for.
func (w *Wrapped) wait(p memory.Proposal, v *memory.Verdict) error {
	if v.Text != "" && p.Op != memory.Remove {
		p.Record.Text = v.Text
	}
	for _, x := range w.waiting {
		if x.Op == p.Op && x.Key == p.Record.Key && x.Value == p.Record.Text && x.Origin == p.Record.Origin &&
			sameRecord(x.proposal.Prior, p.Prior) {
			return x.copy()
		}
	}
	x := &Waiting{ID: p.Record.ID, Op: p.Op, Key: p.Record.Key, Value: p.Record.Text, Origin: p.Record.Origin,
		Since: p.Record.Created, proposal: p}
	for _, f := range v.Findings {
		if !slices.Contains(x.Checks, f.Check) {
			x.Checks = append(x.Checks, f.Check)
		}
	}
	if len(w.waiting) >= maxWaiting {
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
	w.waiting = append(w.waiting, x)
	return x.copy()
}

// copy is for the caller to keep.
func (w *Waiting) copy() *Waiting {
	out := *w
	out.Checks = slices.Clone(w.Checks)
	return &out
}

// sameRecord reports whether both are the same version of a record, or none.
func sameRecord(a, b *memory.Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID
}

// Pending lists what waits for a person's decision, oldest first. It is kept as long
// as the Wrapped lives.
func (w *Wrapped) Pending() []Waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Waiting, len(w.waiting))
	for i, x := range w.waiting {
		out[i] = *x.copy()
	}
	return out
}

// decided takes what waits under an id from the list.
func (w *Wrapped) decided(id string) (*Waiting, error) {
	i := slices.IndexFunc(w.waiting, func(x *Waiting) bool { return x.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%q: %w", text.Clip(id, 80), memory.ErrNotFound)
	}
	x := w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return x, nil
}

// Approve makes a change that waits, for a person who has decided so. The value's origin
// stays what it is; it has the authority to act. Where the key holds another value now
// than when the change was proposed, the error is [memory.ErrMovedOn] and the change is
// gone: it must be proposed anew.
func (w *Wrapped) Approve(ctx context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	x, err := w.decided(id)
	if err != nil {
		return fmt.Errorf("approving a change: %w", err)
	}
	p := x.proposal
	var now *memory.Record
	if r, ok := w.records[x.Key]; ok {
		now = &r
	}
	if !sameRecord(now, p.Prior) {
		return fmt.Errorf("approving the change %q: %w", id, memory.ErrMovedOn)
	}
	err = w.commit(ctx, memory.Change{Op: p.Op, Route: memory.RouteOperator, Record: w.gate.(*gate).Approve(p.Record),
		Prior: p.Prior})
	if err != nil { // it still waits
		w.waiting = append(w.waiting, x)
		slices.SortStableFunc(w.waiting, func(a, b *Waiting) int { return a.Since.Compare(b.Since) })
		return fmt.Errorf("approving the change %q: %w", id, err)
	}
	return nil
}

// Reject turns a change down that waits.
func (w *Wrapped) Reject(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.decided(id); err != nil {
		return fmt.Errorf("rejecting a change: %w", err)
	}
	return nil
}

// Get returns a value as a prompt may hold it: what came from outside is told with
// its source.
func (w *Wrapped) Get(ctx context.Context, key string) (string, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	value, ok, err := w.kv.Get(ctx, key)
	if err != nil || !ok {
		return "", ok, err
	}
	return w.shown(ctx, key, value)
}

func (w *Wrapped) shown(ctx context.Context, key, value string) (string, bool, error) {
	r, ok := w.records[key]
	if !ok {
		r = w.record(key, value, memory.Origin{}) // put there around us: nobody has signed it
	}
	r.Text = value
	ds, err := w.gate.Read(ctx, memory.Query{Route: memory.RouteSearch, Principal: wrappedPrincipal},
		[]memory.Candidate{{Record: r, Score: 1}})
	if err != nil {
		return "", false, fmt.Errorf("asking the guard: %w", err)
	}
	d := &ds[0]
	if d.Action > memory.Redact {
		return "", false, Rejected(&memory.Verdict{Action: memory.Quarantine, Findings: d.Findings})
	}
	if d.Action == memory.Redact {
		value = d.Text
	}
	if d.Attribute {
		value = memory.Attribute(r.Origin, value)
	}
	return value, true, nil
}

// Delete removes a value.
func (w *Wrapped) Delete(ctx context.Context, key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	prior, ok := w.records[key]
	if !ok {
		return w.kv.Delete(ctx, key)
	}
	p := w.proposal(key, prior.Text, memory.Origin{Class: memory.Agent})
	p.Op = memory.Remove
	if _, err := w.judge(ctx, p); err != nil {
		return err
	}
	return w.commit(ctx, memory.Change(p))
}

// Keys returns the keys of the store, those of withheld values included.
func (w *Wrapped) Keys(ctx context.Context) ([]string, error) { return w.kv.Keys(ctx) }

// Has reports whether the store has a key, be its value withheld or not.
func (w *Wrapped) Has(ctx context.Context, key string) (bool, error) { return w.kv.Has(ctx, key) }

// Items returns every value that may be handed out, as Get does.
func (w *Wrapped) Items(ctx context.Context) (map[string]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	items, err := w.kv.Items(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(items))
	for key, value := range items {
		shown, ok, err := w.shown(ctx, key, value)
		var withheld *Rejection
		switch {
		case errors.As(err, &withheld):
		case err != nil:
			return nil, err
		case ok:
			out[key] = shown
		}
	}
	return out, nil
}

const wrappedPrincipal = "user-1"

// wrappedView is what the gate may know of a wrapped store. The gate is asked with
// the lock held.
type wrappedView struct {
	memory.Nowhere
	w *Wrapped
}

func (v wrappedView) Now() time.Time    { return time.Now() }
func (v wrappedView) Seed() uint64      { return v.w.seed }
func (v wrappedView) Trial() uint64     { return 0 }
func (v wrappedView) Principal() string { return wrappedPrincipal }
func (v wrappedView) Len() int          { return len(v.w.records) }

func (v wrappedView) Get(id string) (memory.Record, bool) {
	for _, r := range v.w.records {
		if r.ID == id {
			return r, true
		}
	}
	return memory.Record{}, false
}

func (v wrappedView) ByKey(_, key string) (memory.Record, bool) {
	r, ok := v.w.records[key]
	return r, ok
}

func (v wrappedView) Each(yield func(memory.Record) bool) {
	for _, key := range v.w.order {
		if !yield(v.w.records[key]) {
			return
		}
	}
}
