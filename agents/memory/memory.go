package memory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// GateError is an error of the defense. The trial that meets it is not scored:
// it is neither a detection nor an allow.
type GateError struct {
	Moment Moment
	Err    error
}

// Error implements error.
func (e *GateError) Error() string {
	return fmt.Sprintf("the defense failed at the %s gate: %v", e.Moment, e.Err)
}

// Unwrap returns the defense's own error.
func (e *GateError) Unwrap() error { return e.Err }

// LineageMode says how Memory finds out what a record derives from.
type LineageMode string

// The lineage modes.
const (
	// Overlap gives each content span (value, name, word pair) of a record the
	// least trusted segment that contains it; a span found nowhere takes the
	// least trusted segment in the window.
	Overlap LineageMode = "overlap"
	// Window takes the least trusted segment in the window, whatever it says.
	Window LineageMode = "window"
	// Exact asks Options.Truth first: an oracle that only a benchmark has.
	Exact LineageMode = "exact"
)

// Options configure a Memory.
type Options struct {
	Stores []StoreSpec
	Recall RecallSpec
	// Observer is told of every gate call; nil is nobody.
	Observer Observer
	// Cache shares text analysis between trials; nil gives the Memory one of its
	// own.
	Cache *Cache
	// Start is the trial's clock at the first session.
	Start     time.Time
	Seed      uint64
	Trial     uint64
	Principal string
	Lineage   LineageMode // "" is Overlap
	// Truth is the oracle of Exact: the true lineage of a text, if it knows it.
	Truth func(string) (Lineage, bool)
	// Transcripts keeps past turns, for profiles that can search them.
	Transcripts bool
}

// Memory is a store behind a gate: the one chokepoint that every write and every
// recall of a trial passes. It belongs to one goroutine.
type Memory struct {
	opts  Options
	gate  Gate
	store *store
	now   time.Time

	session   int
	nextSeg   int
	nextRec   int
	window    []Segment // what entered the context in this session
	said      []Segment // what the user said in this session
	asked     map[int]bool
	recalled  []Record // what recall brought into the context in this session
	past      []Record // past turns of earlier sessions
	inbox     []Segment
	principal string
}

// New returns an empty Memory without a defense.
func New(opts Options) *Memory {
	if opts.Cache == nil {
		opts.Cache = NewCache(4 << 20)
	}
	if opts.Principal == "" {
		opts.Principal = "user-1"
	}
	if opts.Lineage == "" {
		opts.Lineage = Overlap
	}
	return &Memory{opts: opts, gate: Open{}, store: newStore(), now: opts.Start, session: 1,
		asked: make(map[int]bool), principal: opts.Principal}
}

// Guard puts a defense in front of the store. It is called once, before Seed.
func (m *Memory) Guard(g Gate) { m.gate = g }

// View is what a defense may know of the trial.
func (m *Memory) View() View { return view{m} }

// Tick advances the trial's clock.
func (m *Memory) Tick(d time.Duration) { m.now = m.now.Add(d) }

// Now is the trial's clock.
func (m *Memory) Now() time.Time { return m.now }

// Session is the number of the session, from 1.
func (m *Memory) Session() int { return m.session }

// Window is what entered the context in this session.
func (m *Memory) Window() []Segment { return m.window }

// Records visits every record in every state in the order of commits.
func (m *Memory) Records(yield func(Record) bool) {
	for _, r := range m.store.records {
		if !yield(r) {
			return
		}
	}
}

// NextSession ends the session: the context is gone, the memory stays. The
// clock moves on by a day.
func (m *Memory) NextSession() {
	if m.opts.Transcripts {
		for _, s := range m.inbox {
			for _, part := range chunks(s.Text, m.opts.Recall.ChunkTokens) {
				m.past = append(m.past, m.pastTurn(s, part))
			}
		}
	}
	m.session++
	m.window, m.said, m.recalled, m.inbox = nil, nil, nil, nil
	clear(m.asked)
	m.Tick(24 * time.Hour)
}

// Seed fills the memory with background records before the first session. The
// defense signs them and learns from them; it cannot refuse them.
func (m *Memory) Seed(ctx context.Context, records []Record) error {
	own := make([]Record, len(records))
	for i, r := range records {
		r.ID = m.recordID()
		r.Created, r.ValidFrom, r.Version = m.now, m.now, 1
		if r.Principal == "" {
			r.Principal = m.principal
		}
		if r.Key == "" {
			r.Key = r.Store + "/" + r.ID
		}
		own[i] = r
		m.Tick(time.Minute)
	}
	amended, err := m.gate.Seed(ctx, own)
	if err != nil {
		return &GateError{AtWrite, err}
	}
	if len(amended) != len(own) {
		return &GateError{AtWrite, fmt.Errorf("seeding: %d records went in, %d came back", len(own), len(amended))}
	}
	for i, r := range own {
		r.Signature, r.SignedBy, r.Scope = amended[i].Signature, amended[i].SignedBy, amended[i].Scope
		m.store.put(r)
		m.gate.Committed(Change{Op: Add, Route: RouteSeed, Record: r})
	}
	m.Tick(24 * time.Hour)
	return nil
}

// Inject puts a record into the store around the gate, as a process beside the
// agent would: the out-of-band case.
func (m *Memory) Inject(r Record) Record {
	r.ID = m.recordID()
	r.Created, r.ValidFrom, r.Version = m.now, m.now, 1
	if r.Principal == "" {
		r.Principal = m.principal
	}
	if r.Key == "" {
		r.Key = r.Store + "/" + r.ID
	}
	m.store.put(r)
	return r
}

func (m *Memory) recordID() string {
	m.nextRec++
	return "r" + strconv.Itoa(m.nextRec)
}

// Withheld stands in the context for a segment that the input gate stopped.
const Withheld = "[content withheld by the input gate]"

// Take brings a segment into the context through the input gate and returns it
// as the model may see it.
func (m *Memory) Take(ctx context.Context, o Origin, turn int, content string) (Segment, error) {
	m.nextSeg++
	seg := Segment{ID: m.nextSeg, Turn: turn, Origin: o, Text: content}
	began := time.Now()
	v, err := m.gate.Input(ctx, seg)
	took := time.Since(began)
	if err != nil {
		return Segment{}, &GateError{AtInput, err}
	}
	m.observe(&Event{Moment: AtInput, Took: took, Segment: &seg, Verdict: v})
	switch {
	case v.Action == Redact:
		seg.Text = v.Text
	case v.Action != Allow:
		seg.Text = Withheld
		return seg, nil
	}
	m.window = append(m.window, seg)
	m.inbox = append(m.inbox, seg)
	if o.Class == User {
		m.said = append(m.said, seg)
		if AsksToKeep(seg.Text) {
			m.asked[turn] = true
		}
	}
	return seg, nil
}

// Said notes what the agent said, so that transcript search can find it.
func (m *Memory) Said(turn int, content string) {
	if m.opts.Transcripts && content != "" {
		m.inbox = append(m.inbox, Segment{Turn: turn, Text: content, Origin: Origin{Class: Agent, Medium: Chat}})
	}
}

func (m *Memory) observe(e *Event) {
	if m.opts.Observer != nil {
		m.opts.Observer(e)
	}
}

// Entry is what became of one proposal.
type Entry struct {
	Proposal  Proposal
	Verdict   Verdict
	Committed *Record // nil when it was blocked or rejected
	Rejected  string  // why the store itself refused: it is full, or there is no such entry
}

// Write hands a draft to the gate, entry by entry, and commits what the verdicts
// allow. It returns one Entry a proposal.
func (m *Memory) Write(ctx context.Context, d Draft) ([]Entry, error) {
	spec, ok := m.spec(d.Store)
	if !ok {
		return nil, fmt.Errorf("writing by %s: the profile has no store %q", d.Route, d.Store)
	}
	props, rejected := m.entries(d, spec)
	if rejected != "" {
		return []Entry{{Proposal: Proposal{Op: d.Op, Route: d.Route}, Rejected: rejected}}, nil
	}
	out := make([]Entry, 0, len(props))
	for _, p := range props {
		e, err := m.propose(ctx, p, spec)
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (m *Memory) spec(name string) (StoreSpec, bool) {
	for _, s := range m.opts.Stores {
		if s.Name == name {
			return s, true
		}
	}
	return StoreSpec{}, false
}

// entries turns a draft into proposals.
func (m *Memory) entries(d Draft, spec StoreSpec) ([]Proposal, string) {
	switch {
	case spec.Kind == Skills:
		return m.skill(d)
	case d.Op == Replace && d.Old == "" && spec.Kind == Notes:
		return m.difference(d), ""
	case d.Op == Replace || d.Op == Remove:
		prior, ok := m.find(d.Store, d.Old)
		if !ok {
			return nil, fmt.Sprintf("no entry of %s contains %q", spec.Title, Clip(d.Old, 80))
		}
		return []Proposal{m.proposal(d.Op, d.Route, d.Store, prior.Key, d.Text, &prior)}, ""
	case d.Route == RouteCompaction || d.Route == RouteFlush || spec.Kind == Notes:
		var out []Proposal
		for _, item := range Items(d.Text) {
			out = append(out, m.proposal(Add, d.Route, d.Store, "", item, nil))
		}
		return out, ""
	}
	if strings.TrimSpace(d.Text) == "" {
		return nil, "nothing to store: the content is empty"
	}
	return []Proposal{m.proposal(Add, d.Route, d.Store, d.Key, d.Text, nil)}, ""
}

func (m *Memory) skill(d Draft) ([]Proposal, string) {
	prior, exists := m.byKey(d.Store, d.Key)
	switch {
	case d.Key == "":
		return nil, "a skill needs a name"
	case d.Op == Remove && !exists:
		return nil, fmt.Sprintf("there is no skill %q", Clip(d.Key, 80))
	case exists && d.Op == Remove:
		return []Proposal{m.proposal(Remove, d.Route, d.Store, d.Key, "", &prior)}, ""
	case exists:
		return []Proposal{m.proposal(Replace, d.Route, d.Store, d.Key, d.Text, &prior)}, ""
	}
	return []Proposal{m.proposal(Add, d.Route, d.Store, d.Key, d.Text, nil)}, ""
}

// difference compares a file's new content with its entries, line by line.
func (m *Memory) difference(d Draft) []Proposal {
	var out []Proposal
	old := m.store.visible(d.Store)
	kept := make([]bool, len(old))
next:
	for _, item := range Items(d.Text) {
		for i, r := range old {
			if !kept[i] && r.Text == item {
				kept[i] = true
				continue next
			}
		}
		out = append(out, m.proposal(Add, d.Route, d.Store, "", item, nil))
	}
	for i := range old {
		if !kept[i] {
			out = append(out, m.proposal(Remove, d.Route, d.Store, old[i].Key, "", &old[i]))
		}
	}
	return out
}

func (m *Memory) find(storeName, part string) (Record, bool) {
	if part == "" {
		return Record{}, false
	}
	for _, r := range m.store.visible(storeName) {
		if strings.Contains(r.Text, part) {
			return r, true
		}
	}
	return Record{}, false
}

func (m *Memory) byKey(storeName, key string) (Record, bool) {
	i, ok := m.store.byKey[storeKey{storeName, key}]
	if !ok {
		return Record{}, false
	}
	return m.store.records[i], true
}

func (m *Memory) proposal(op Op, route Route, storeName, key, content string, prior *Record) Proposal {
	r := Record{ID: m.recordID(), Store: storeName, Key: key, Text: content, Principal: m.principal,
		Created: m.now, ValidFrom: m.now, Version: 1}
	if r.Key == "" {
		r.Key = storeName + "/" + r.ID
	}
	if prior != nil {
		r.Version, r.Parent = prior.Version+1, prior.ID
	}
	if op == Remove {
		r.Text = prior.Text
		r.Origin = m.leastInWindow()
		return Proposal{Op: op, Route: route, Record: r, Prior: prior}
	}
	r.Lineage = m.lineage(content)
	r.Origin = r.Lineage.Least(Origin{Class: Agent, Medium: Chat})
	r.Asked = m.askedFor(r.Lineage)
	return Proposal{Op: op, Route: route, Record: r, Prior: prior}
}

func (m *Memory) propose(ctx context.Context, p Proposal, spec StoreSpec) (Entry, error) {
	began := time.Now()
	v, err := m.gate.Write(ctx, p)
	took := time.Since(began)
	if err != nil {
		return Entry{}, &GateError{AtWrite, err}
	}
	e := Entry{Proposal: p, Verdict: v}
	e.Committed, e.Rejected = m.commit(p, v, spec)
	m.observe(&Event{Moment: AtWrite, Route: p.Route, Op: p.Op, Took: took, Proposal: &p, Verdict: v, Committed: e.Committed})
	return e, nil
}

// commit applies a verdict. Nothing but what stands in Verdict changes.
func (m *Memory) commit(p Proposal, v Verdict, spec StoreSpec) (*Record, string) {
	if v.Action == Block {
		return nil, ""
	}
	if p.Op == Remove {
		if v.Action == Quarantine || v.Action == Defer {
			return nil, ""
		}
		m.store.retire(p.Prior.ID, func(r *Record) { r.ValidTo = m.now })
		gone, _ := m.store.get(p.Prior.ID)
		m.gate.Committed(Change{Op: Remove, Route: p.Route, Record: gone, Prior: p.Prior})
		return &gone, ""
	}
	r := p.Record
	r.Scope, r.Signature, r.SignedBy = v.Scope, v.Signature, v.SignedBy
	switch v.Action {
	case Redact:
		r.Text = v.Text
	case Defer:
		r.State = Staged
		if v.Held {
			r.State = Held
		}
		if v.Text != "" {
			r.Text = v.Text
		}
	case Quarantine:
		r.State = Quarantined
	}
	if r.State.Visible() {
		if why := m.full(spec, r, p.Prior); why != "" {
			return nil, why
		}
	}
	var prior *Record
	// A record that is staged, held or quarantined supersedes nothing.
	if p.Prior != nil && r.State == Live {
		m.store.retire(p.Prior.ID, func(old *Record) { old.ValidTo = r.ValidFrom })
		gone, _ := m.store.get(p.Prior.ID)
		prior = &gone
	}
	m.store.put(r)
	m.gate.Committed(Change{Op: p.Op, Route: p.Route, Record: r, Prior: prior})
	return &r, ""
}

func (m *Memory) full(spec StoreSpec, r Record, prior *Record) string {
	if spec.Limit == 0 {
		return ""
	}
	used := len(r.Text)
	var b strings.Builder
	for i := range m.store.records {
		old := &m.store.records[i]
		if old.Store != spec.Name || !old.State.Visible() || prior != nil && old.ID == prior.ID {
			continue
		}
		used += len(old.Text)
	}
	if used <= spec.Limit {
		return ""
	}
	for _, old := range m.store.visible(spec.Name) {
		b.WriteString("\n- ")
		b.WriteString(old.Text)
	}
	return fmt.Sprintf("%s would hold %d of %d characters; shorten, replace or remove an entry first:%s",
		spec.Title, used, spec.Limit, b.String())
}

// Act asks the gate about a tool call and returns whether it may go ahead.
func (m *Memory) Act(ctx context.Context, c Call) (Verdict, error) {
	for i := range c.Args {
		if c.Args[i].Lineage == nil {
			c.Args[i].Lineage = m.argumentLineage(c.Args[i].Value)
		}
	}
	began := time.Now()
	v, err := m.gate.Act(ctx, c)
	took := time.Since(began)
	if err != nil {
		return v, &GateError{AtAct, err}
	}
	m.observe(&Event{Moment: AtAct, Took: took, Query: c.Query, Call: &c, Verdict: v})
	return v, nil
}

// Items cuts a file or a summary into its entries: one a line, without bullets
// and headings.
func Items(content string) []string {
	var out []string
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(strings.TrimLeft(line, "-*•"))
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// Clip shortens a text for a message, at a rune.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// IsGateError reports whether err came from the defense.
func IsGateError(err error) bool {
	var g *GateError
	return errors.As(err, &g)
}

type view struct{ m *Memory }

func (v view) Now() time.Time                         { return v.m.now }
func (v view) Seed() uint64                           { return v.m.opts.Seed }
func (v view) Trial() uint64                          { return v.m.opts.Trial }
func (v view) Principal() string                      { return v.m.principal }
func (v view) Len() int                               { return len(v.m.store.records) }
func (v view) Get(id string) (Record, bool)           { return v.m.store.get(id) }
func (v view) ByKey(store, key string) (Record, bool) { return v.m.byKey(store, key) }
func (v view) Each(yield func(Record) bool)           { v.m.Records(yield) }
