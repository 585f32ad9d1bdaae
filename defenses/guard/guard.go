// Package guard is the full guard: one gate with many checks, and a policy that
// says what becomes of what they find.
//
// A check goes from a proposal, and what is known of the trial, to findings with
// a severity. It decides nothing. The [Policy] maps findings to actions in one
// place: the first rule that covers a finding says what becomes of it, and the
// strictest action over all findings is the verdict. So a preset, or a file of
// one's own, changes what the guard does without touching what it sees.
//
// The gates:
//
//   - At the write gate a proposal is held against the rules for its key, its size
//     and its rate; scanned for threat patterns, hidden text, secrets and decoys,
//     also where they are wrapped; held against what was stored a short time ago
//     and against what trusted records say. What is stored is signed last, as it is
//     stored.
//   - At the read gate a record must be the caller's or everybody's, its signature
//     right, and its content is scanned again. The most relevant come first; external
//     ones are bounded in number. What no call would show is withheld.
//   - At the action gate each value is weighed that memory from outside would fill an
//     argument with: by the user's tables, by what he asked to keep, by his own records,
//     by whether he asks for it at all, and by what is at risk.
//
// The rule of authority: what came from outside may be told, and decides only what these
// let it. A record has the class of the least trusted thing that it derives from, and
// nothing in its content raises it: a person's approval does. See docs/guard.md.
package guard

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/contradiction"
	"github.com/memtox/memtox/defenses/keyword"
	"github.com/memtox/memtox/defenses/provenance"
	"github.com/memtox/memtox/defenses/signed"
	"github.com/memtox/memtox/internal/settings"
)

// Register adds the defense guard.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:     "guard",
		Screens:  []defenses.Place{defenses.Write, defenses.Read, defenses.Act},
		Argument: strings.Join(Presets(), "|") + "|FILE.yaml",
		Layers:   layerNames(),
		Without:  func(argument, layer string) string { return argument + without + layer },
		Idea: "what memory from outside would decide is held against the user's tables and records, then what he asked " +
			"to keep and what is at risk; scan, limits and signatures under one policy",
		Cost: "no model calls; look-ups of values from outside; some 15 µs a write, 1 µs a recalled record and 50 µs a " +
			"value from outside; state: one key, and the known facts",
	}, func(argument string, env defenses.Env) (defenses.Defense, error) {
		p, err := load(argument, env)
		if err != nil {
			return nil, err
		}
		return New(Options{Policy: p})
	})
}

// without stands between a spec's argument and a layer that is left out.
const without = "-without-"

func layerNames() (out []string) {
	for _, l := range Layers() {
		out = append(out, string(l))
	}
	return out
}

// load reads the policy that a spec names: a preset or a file. "" is standard.
func load(argument string, env defenses.Env) (*Policy, error) {
	if base, layer, ok := strings.Cut(argument, without); ok && slices.Contains(layerNames(), layer) {
		p, err := load(base, env)
		if err == nil {
			p.Off = append(p.Off, Layer(layer))
		}
		return p, err
	}
	switch {
	case argument == "":
		return Preset("standard")
	case slices.Contains(Presets(), argument):
		return Preset(argument)
	case path.Ext(argument) == "":
		p := settings.Unknown("", "preset", argument, Presets())
		p.Hint += "; the name of a policy file ends in .yaml"
		return nil, p
	}
	data, err := env.File(argument)
	if err != nil {
		return nil, fmt.Errorf("reading the policy file: %w", err)
	}
	return ParsePolicy(argument, data)
}

// Options configure a guard. The zero value is the preset standard.
type Options struct {
	Policy *Policy // nil is the preset standard
	// Keys sign what is stored. nil derives one key from each trial's seed, which
	// is for benchmarks: their trials are reproducible. Agent is the name whose
	// key signs; empty is the principal of the view.
	//
	// A view that names its memory, as that of a client does which keeps its own
	// store, gets keys of that memory, from a key of this guard alone where Keys is
	// nil: a client knows the seed.
	Keys  *signed.Keyring
	Agent string
	// Hook is told of every decision; nil is nobody. Reveal lets it see contents,
	// keys and what findings quote.
	Hook   Hook
	Reveal bool
}

// Guard is a [defenses.Defense] with a policy. It never changes and is shared by
// all trials.
type Guard struct {
	policy  *Policy
	opts    Options
	secrets *finder
	// conflicts finds at a write what a rule may want; nil where none does.
	conflicts defenses.Defense
	scanned   *scanned
	fresh     *signed.Keyring // for views that name their memory
}

// New returns a guard.
func New(o Options) (*Guard, error) {
	g := &Guard{policy: o.Policy, opts: o, scanned: newScanned(), fresh: signed.Fresh()}
	var err error
	if g.policy == nil {
		if g.policy, err = Preset("standard"); err != nil {
			return nil, err
		}
	}
	if g.policy.wanted == nil { // one that was made by hand
		g.policy.ready()
	}
	g.secrets = newFinder(g.policy.DecoyEndpoints)
	if g.policy.wants(ContradictionCheck) {
		if g.conflicts, err = contradiction.New(); err != nil {
			return nil, fmt.Errorf("making its part contradiction: %w", err)
		}
	}
	return g, nil
}

// Policy is the guard's policy. It must not be changed.
func (g *Guard) Policy() *Policy { return g.policy }

// Open implements [defenses.Defense].
func (g *Guard) Open(ctx context.Context, v memory.View) (memory.Gate, error) {
	keys := g.opts.Keys
	if m, ok := v.(interface{ Memory() string }); ok {
		if keys == nil {
			keys = g.fresh
		}
		keys = keys.Memory(m.Memory())
	}
	signer := signed.NewSigner(v.Seed())
	if keys != nil {
		signer = keys.Signer(cmp.Or(g.opts.Agent, v.Principal()))
	}
	gt := &gate{policy: g.policy, hook: g.opts.Hook, reveal: g.opts.Reveal, secrets: g.secrets, view: v,
		signer:  signer,
		scanner: keyword.Scanner{Scope: g.policy.Scan}, scanned: g.scanned, trial: trial{policy: g.policy}}
	if g.conflicts != nil {
		var err error
		if gt.conflicts, err = g.conflicts.Open(ctx, readableView{v, signer}); err != nil {
			return nil, err
		}
	}
	v.Each(func(r memory.Record) bool {
		if signer.Verify(&r) == "" && gt.bears(&r) {
			gt.facts.learn(&r)
		}
		return ctx.Err() == nil
	})
	return gt, ctx.Err()
}

// gate is one trial's guard.
type gate struct {
	memory.Open
	policy    *Policy
	secrets   *finder
	hook      Hook
	reveal    bool
	view      memory.View
	facts     facts
	conflicts memory.Gate // nil where no rule wants it
	signer    *signed.Signer
	scanner   keyword.Scanner
	scanned   *scanned
	terms     provenance.Reader
	trial     trial
	agreed    map[string]bool

	// The question at hand.
	ctx     context.Context
	now     time.Time
	err     error
	subject subject
}

func (s *subject) reset(p memory.Proposal) {
	s.Proposal = p
	s.isSeen, s.isAbout = false, false
	s.key = keys{raw: p.Record.Key}
	s.class = leastClass(&p.Record)
	s.findings = s.findings[:0]
}

// settle decides the findings from the nth on and reports whether the rest of
// the checks can be left out: one of them blocks.
func (g *gate) settle(from int) (blocked bool) {
	s := &g.subject
	for i := range s.findings[from:] {
		f := &s.findings[from+i]
		f.Class = s.class
		f.Action, f.Rule = g.policy.decide(f, &s.key)
		if f.key && f.Action == memory.Redact {
			f.Action = memory.Quarantine // nothing can be taken out of a key
		}
		if f.confirm && f.Action == memory.Block {
			f.Action = memory.Defer
		}
		blocked = blocked || f.Action == memory.Block
	}
	return blocked && g.policy.Mode == Enforce
}

// action is the strictest action over the findings.
func (s *subject) action() memory.Action {
	a := memory.Allow
	for i := range s.findings {
		a = max(a, s.findings[i].Action)
	}
	return a
}

// reasons are the findings as a verdict reports them.
func (s *subject) reasons() []memory.Finding {
	if len(s.findings) == 0 {
		return nil
	}
	out := make([]memory.Finding, len(s.findings))
	for i := range s.findings {
		out[i] = s.findings[i].Finding
	}
	return out
}

func (g *gate) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return memory.Verdict{}, err
	}
	began := g.begin()
	g.ctx, g.now = ctx, g.view.Now()
	s := &g.subject
	if err := g.judge(p); err != nil {
		return memory.Verdict{}, err
	}
	v := memory.Verdict{Action: s.action(), Findings: s.reasons()}
	final := p.Record
	switch {
	case g.policy.Mode == Warn:
		v.Action = memory.Allow
	case g.policy.Mode == Strip && v.Action.Stops():
		clean, left, err := g.strip(p)
		if err != nil {
			return memory.Verdict{}, err
		}
		if left < v.Action {
			v.Action, v.Text = left, clean
			final.Text = clean
		}
	case v.Action == memory.Redact || v.Action == memory.Defer:
		if clean, changed := g.redact(final.Text, s.findings); changed {
			final.Text, v.Text = clean, clean
		}
	}
	if v.Action < memory.Block && p.Op != memory.Remove {
		v.Held = v.Action == memory.Defer && bool(g.policy.Authority.Held)
		if g.policy.Mode != Warn {
			v.Scope = g.policy.label(&final)
		}
		final.Scope = v.Scope
		v.Signature, v.SignedBy = g.signer.Sign(final)
	}
	g.emit(ctx, Event{Gate: memory.AtWrite, Route: p.Route, Op: p.Op}, v.Action, began)
	return v, nil
}

// judge asks the checks about a proposal. Their findings are the subject's.
func (g *gate) judge(p memory.Proposal) error {
	s := &g.subject
	s.reset(p)
	g.err = nil
	for _, check := range writeChecks {
		n := len(s.findings)
		if check(g, s); g.err != nil {
			return g.err
		}
		if g.settle(n) {
			break
		}
	}
	return nil
}

// scanRead scans a recalled record as when it was written. A record that already
// reads like a placeholder is scanned like any other. What the rules stop it for
// is replaced by a placeholder; a key cannot be replaced, so that a record whose
// key has a pattern is not shown.
func (g *gate) scanRead(r *memory.Record) (placeholder string) {
	s := &g.subject
	n := len(s.findings)
	s.findings = append(s.findings, remembered(g.scanned.keys, r.Key, func() []Finding { return g.scanKey(nil, r.Key) })...)
	g.settle(n)
	for i := range s.findings[n:] {
		switch f := &s.findings[n+i]; {
		case f.Action == memory.Defer:
			f.Action = memory.Allow
		case f.Action > memory.Allow:
			f.Action = memory.Quarantine
		}
	}
	if s.action() > memory.Allow {
		return ""
	}
	n = len(s.findings)
	s.Record = *r
	s.isSeen = false
	s.findings = append(s.findings, remembered(g.scanned.contents, r.Text, func() []Finding { return g.scan(nil, s.layers()) })...)
	g.settle(n)
	var ids []string
	for i := range s.findings[n:] {
		f := &s.findings[n+i]
		if f.Action == memory.Defer { // it waits for a decision, and is shown as what waits
			f.Action = memory.Allow
		}
		if f.Action > memory.Allow && (f.On != HiddenTextCheck || f.Action > memory.Redact) {
			ids = append(ids, f.Check)
		}
		f.Action = min(f.Action, memory.Redact)
	}
	switch {
	case len(ids) > 0:
		return keyword.Placeholder(ids)
	case s.action() == memory.Redact:
		clean, _ := g.redact(r.Text, s.findings[n:])
		return clean
	}
	return ""
}

func (g *gate) Sign(r memory.Record) ([]byte, string) { return g.signer.Sign(r) }

// Seed implements [memory.Gate]: the background is signed.
func (g *gate) Seed(_ context.Context, rs []memory.Record) ([]memory.Record, error) {
	out := slices.Clone(rs)
	for i := range out {
		out[i].Signature, out[i].SignedBy = g.signer.Sign(out[i])
	}
	return out, nil
}

func (g *gate) Committed(c memory.Change) {
	g.trial.committed(c, g.view.Now())
	if c.Op != memory.Remove && g.signer.Verify(&c.Record) != "" {
		// Nobody learns from what was written around. What it replaced is gone all the same.
		if c.Prior == nil {
			return
		}
		c.Op = memory.Remove
	}
	if c.Prior != nil {
		g.facts.forget(c.Prior.ID)
	}
	if g.facts.forget(c.Record.ID); c.Op != memory.Remove && g.bears(&c.Record) {
		g.facts.learn(&c.Record)
	}
	if g.conflicts == nil {
		return
	}
	read := c
	read.Record.Text = readable(c.Record.Text)
	if c.Prior != nil {
		prior := *c.Prior
		prior.Text = readable(prior.Text)
		read.Prior = &prior
	}
	g.conflicts.Committed(read)
}
