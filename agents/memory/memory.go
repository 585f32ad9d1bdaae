package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memtox/memtox/internal/text"
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
	// Meter is that of the contexts of the trial, see [WithMeter]; nil meters
	// nothing.
	Meter *Meter
	// Cache shares text analysis between trials; nil gives the Memory one of its
	// own.
	Cache *Cache
	// Embed makes the vectors that recall compares; nil is [Hashed], kept in the Cache.
	Embed Embed
	// Start is the trial's clock at the first session.
	Start     time.Time
	Seed      uint64
	Trial     uint64
	Principal string
	Lineage   LineageMode // "" is Overlap
	// Truth is the oracle of Exact: the true lineage of a text, if it knows it.
	Truth func(string) (Lineage, bool)
	// WholeTurns takes a request to keep something for one to keep all that the turn
	// brought, as the sets without a world were measured.
	WholeTurns bool
	// Transcripts keeps past turns, for profiles that can search them.
	Transcripts bool
	// Store keeps the records; nil is a new one in memory. A store that is not
	// empty is taken up with Resume.
	Store Store
	// After is a Memory that nobody uses any more, nor anything that it handed out by
	// reference; this one takes over its room. nil is none.
	After *Memory
	// Clock tells the time; nil is the trial's own clock, which begins at Start
	// and moves with Tick and NextSession.
	Clock func() time.Time
}

// Memory is a store behind a gate: the one chokepoint that every write and every
// recall of a trial passes. It belongs to one goroutine; [Shared] gives many
// goroutines a Memory each, over one store and one gate.
type Memory struct {
	opts Options
	*core
	now time.Time

	messages int // of the session, as Mark was told
	session  int
	heard
	indexes   []*index  // of window, as far as sources were asked for
	said      []Segment // what the user said in this session
	recalled  []entered // what recall brought into the context in this session
	distinct  int       // of recalled, when repetitions were last left out
	made      []string  // records of this session, by id
	srcs      []source  // of the window and of what was recalled, as sources last found them
	inWindow  int       // how many of srcs are the window's
	past      []Record  // past turns of earlier sessions, as far as somebody searched them
	ended     []ended   // sessions since
	inbox     []Segment
	principal string
	desk      Desk
	untrusted []string // files, see Distrust

	risk  string // a snapshot is due before the next commit, and why
	batch Batch  // used again by every commit
	event Event  // used again for every observation
	seeds []Record

	cands []Candidate // of all reads, one behind the other; where it is full another takes its place
}

// core is what the Memories of a [Shared] have in common.
type core struct {
	store   Store
	journal Journal // the store, where others write to it too; else nil
	gate    Gate
	seen    uint64      // the last entry of the journal that the gate knows of, but for
	gaps    [][2]uint64 // what others wrote between two entries of ours
	later   bool        // commits need not last yet when they return

	commits int
	nextSeg int
	err     error // the first error of the store
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
	after := opts.After
	opts.After = nil
	if opts.Store == nil && after != nil {
		if s, ok := after.store.(*inMemory); ok {
			s.empty()
			opts.Store = s
		}
	}
	if opts.Store == nil {
		opts.Store = NewStore()
	}
	journal, _ := opts.Store.(Journal)
	m := newMemory(opts, &core{store: opts.Store, journal: journal, gate: Open{}})
	if a := after; a != nil {
		m.window, m.said, m.inbox, m.recalled = again(a.window), again(a.said), again(a.inbox), again(a.recalled)
		m.srcs, m.past, m.ended, m.batch.Records = again(a.srcs), again(a.past), again(a.ended), again(a.batch.Records)
		m.cands, m.indexes, m.seeds = again(a.cands), again(a.indexes), again(a.seeds)
	}
	return m
}

// again is an empty list in the place of one that is done with. One huge session
// should not be remembered.
func again[T any](s []T) []T {
	if cap(s) > 1<<10 {
		return nil
	}
	clear(s)
	return s[:0]
}

func newMemory(opts Options, c *core) *Memory {
	return &Memory{opts: opts, core: c, desk: Nowhere{}, now: opts.Start, session: 1, heard: heard{asked: make(map[int][]*wish)}, principal: opts.Principal}
}

// Err is the first error of the store that a method without an error of its own
// (Records, Inject, the View of a defense) met. Every later call returns it too.
func (m *Memory) Err() error { return m.err }

// failed notes an error of the store and returns it as what it is.
func (m *Memory) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	err = &StoreError{Doing: doing, Err: err}
	if m.err == nil {
		m.err = err
	}
	return err
}

// Guard puts a defense in front of the store. It is called once, before Seed.
func (m *Memory) Guard(g Gate) { m.gate = g }

// View is what a defense may know of the trial.
func (m *Memory) View() View { return view{m} }

// Reach says where the session works, as far as a defense may look there.
func (m *Memory) Reach(d Desk) { m.desk = d }

// Distrust notes that the agent's product takes a file of its memory for what came from
// outside, and Distrusts reports that. No gate is told.
func (m *Memory) Distrust(file string) {
	if !m.Distrusts(file) {
		m.untrusted = append(m.untrusted, file)
	}
}

// Distrusts reports whether the product distrusts a file of the memory.
func (m *Memory) Distrusts(file string) bool { return slices.Contains(m.untrusted, file) }

// Tick advances the trial's clock.
func (m *Memory) Tick(d time.Duration) { m.now = m.now.Add(d) }

// Until moves the trial's clock on to a time; it never goes back.
func (m *Memory) Until(t time.Time) {
	if t.After(m.now) {
		m.now = t
	}
}

// As says whose session it is from now on; "" is that of the options.
func (m *Memory) As(principal string) { m.principal = cmp.Or(principal, m.opts.Principal) }

// Now is the time: Options.Clock, or the trial's clock.
func (m *Memory) Now() time.Time {
	if m.opts.Clock != nil {
		return m.opts.Clock()
	}
	return m.now
}

// Session is the number of the session, from 1.
func (m *Memory) Session() int { return m.session }

// Window is what entered the context in this session.
func (m *Memory) Window() []Segment { return m.window }

// Context is how many contents the session's context holds, segments and recalled
// records, of how many bytes, and where the least trusted of them comes from;
// AGENT_AUTHORED for none.
func (m *Memory) Context() (contents, bytes int, least Origin) {
	least = Origin{Class: Agent, Medium: Chat}
	for i := range m.window {
		bytes += len(m.window[i].Text)
		if o := m.window[i].Origin; i == 0 || o.Less(least) {
			least = o
		}
	}
	for i := range m.recalled {
		bytes += len(m.recalled[i].text)
		if o := m.recalled[i].origin; len(m.window) == 0 && i == 0 || o.Less(least) {
			least = o
		}
	}
	return len(m.window) + len(m.recalled), bytes, least
}

// Records visits every record in every state in the order of commits. An error of
// the store ends it early: see Err.
func (m *Memory) Records(yield func(Record) bool) {
	m.Each(func(r *Record) bool { return yield(*r) })
}

// Each is Records without a copy of each: a record is the store's own, and stands until
// yield returns.
func (m *Memory) Each(yield func(*Record) bool) {
	m.failed("reading every record", m.store.Each(context.Background(), yield))
}

// NextSession ends the session: the context is gone, the memory stays. The
// clock moves on by a day.
func (m *Memory) NextSession() {
	if m.opts.Transcripts {
		m.ended = append(m.ended, m.end())
	}
	m.session++
	m.window, m.said, m.recalled, m.inbox = again(m.window), again(m.said), again(m.recalled), again(m.inbox)
	m.srcs, m.indexes, m.inWindow, m.distinct = again(m.srcs), again(m.indexes), 0, 0
	m.risk = "session start"
	clear(m.asked)
	m.made = again(m.made)
	m.Tick(24 * time.Hour)
}

// Seed fills the memory with background records before the first session. The
// defense signs them and learns from them; it cannot refuse them.
func (m *Memory) Seed(ctx context.Context, records []Record) error {
	own, err := m.backup(ctx, m.seeds[:0], records)
	if err != nil {
		return err
	}
	m.seeds = own
	for i := range own {
		m.begin(CauseSeed, RouteSeed)
		if err := m.put(ctx, "seeding", own[i]); err != nil {
			return err
		}
		m.gate.Committed(Change{Op: Add, Route: RouteSeed, Record: own[i]})
	}
	m.Tick(24 * time.Hour)
	return m.err
}

// Backup has the defense sign and learn records as Seed does, and returns them
// without storing them: the copy of an earlier memory. Inject restores what it
// returned.
func (m *Memory) Backup(ctx context.Context, records []Record) ([]Record, error) {
	return m.backup(ctx, nil, records)
}

func (m *Memory) backup(ctx context.Context, own, records []Record) ([]Record, error) {
	own = slices.Grow(own, len(records))
	for i := range records {
		own = append(own, records[i])
		m.fresh(ctx, &own[i])
		m.Tick(time.Minute)
	}
	if m.err != nil {
		return nil, m.err
	}
	amended, err := m.gate.Seed(ctx, own)
	if err != nil {
		return nil, &GateError{AtWrite, err}
	}
	if len(amended) != len(own) {
		return nil, &GateError{AtWrite, fmt.Errorf("seeding: %d records went in, %d came back", len(own), len(amended))}
	}
	for i := range own {
		own[i].Signature, own[i].SignedBy, own[i].Scope = amended[i].Signature, amended[i].SignedBy, amended[i].Scope
	}
	return own, nil
}

// fresh fills in what a new record that no session wrote leaves open.
func (m *Memory) fresh(ctx context.Context, r *Record) {
	r.ID = m.recordID(ctx)
	r.Created, r.Version = m.Now(), 1
	r.ValidFrom = r.Created
	if r.Principal == "" {
		r.Principal = m.principal
	}
	if r.Key == "" {
		r.Key = r.Store + "/" + r.ID
	}
}

// Resume tells the gate of what the store holds already, as if it were seeded: for
// a store that was opened with records in it. It is called once, after Guard.
func (m *Memory) Resume(ctx context.Context) error {
	var last uint64
	if m.journal != nil {
		var err error
		if last, err = m.journal.Last(ctx); err != nil {
			return m.failed("taking it up", err)
		}
	}
	err := m.store.Each(ctx, func(r *Record) bool {
		for _, l := range r.Lineage {
			m.nextSeg = max(m.nextSeg, l.Segment) // segments of this process get numbers of their own
		}
		if r.State != Retired {
			m.gate.Committed(Change{Op: Add, Route: RouteSeed, Record: *r})
		}
		return true
	})
	m.seen, m.gaps = last, nil
	return m.failed("taking it up", err)
}

// begin starts a batch.
func (m *Memory) begin(cause Cause, route Route) {
	clear(m.batch.Records)
	m.batch = Batch{At: m.Now(), Cause: cause, Route: route, By: m.principal, Records: m.batch.Records[:0]}
}

// put adds records to the batch and commits it.
func (m *Memory) put(ctx context.Context, doing string, rs ...Record) error {
	m.batch.Records = append(m.batch.Records, rs...)
	return m.failed(doing, m.core.commit(ctx, &m.batch))
}

func (c *core) commit(ctx context.Context, b *Batch) error {
	var done Committed
	var err error
	if c.later && c.journal != nil {
		done, err = c.journal.CommitLater(ctx, b)
	} else {
		done, err = c.store.Commit(ctx, b)
	}
	if err != nil {
		return err
	}
	c.commits++
	first := done.First
	if done.Snapshot != "" {
		first-- // the batch's snapshot is ours too
	}
	c.saw(first, done.Last)
	return nil
}

// saw notes that the gate knows of entries of the journal.
func (c *core) saw(first, last uint64) {
	if first > c.seen+1 {
		c.gaps = append(c.gaps, [2]uint64{c.seen + 1, first - 1})
	}
	c.seen = max(c.seen, last)
}

// Withdraw retires a record at its owner's word. The gate is not asked, but told; a
// store with a history takes a snapshot before.
func (m *Memory) Withdraw(ctx context.Context, id, why string) error {
	prior, ok, err := m.store.Get(ctx, id)
	if err != nil || !ok {
		return m.failed("withdrawing a record", cmp.Or(err, fmt.Errorf("record %q: %w", id, ErrNotFound)))
	}
	gone := prior
	gone.State, gone.ValidTo = Retired, m.Now()
	m.begin(CauseRetire, RouteOperator)
	m.batch.Why, m.batch.Snapshot = why, &SnapshotName{Reason: CauseRetire.String()}
	if err := m.put(ctx, "withdrawing a record", gone); err != nil {
		return err
	}
	m.gate.Committed(Change{Op: Remove, Route: RouteOperator, Record: gone, Prior: &prior})
	return nil
}

// Inject puts a record into the store around the gate, as a process beside the
// agent would: the out-of-band case. A record that Backup returned keeps its id,
// times and signature; any other is new.
func (m *Memory) Inject(r Record) Record {
	ctx := context.Background()
	if r.ID == "" {
		m.fresh(ctx, &r)
	}
	if m.err == nil {
		m.begin(CauseInject, RouteNone)
		m.put(ctx, "injecting", r)
	}
	return r
}

func (m *Memory) recordID(ctx context.Context) string {
	id, err := m.store.NextID(ctx)
	m.failed("drawing an id", err)
	return id
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
	took, wire := m.opts.Meter.split(time.Since(began))
	if err := m.after(AtInput, err); err != nil {
		return Segment{}, err
	}
	m.observe(Event{Moment: AtInput, Took: took, Wire: wire, Segment: &seg, Verdict: v})
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
		switch {
		case m.opts.WholeTurns && text.AsksToKeep(seg.Text):
			m.asked[turn] = []*wish{{turn: turn}}
		case !m.opts.WholeTurns:
			for _, k := range m.opts.Cache.index(seg.Text).keeping() {
				m.asked[turn] = append(m.asked[turn], &wish{keeping: k, turn: turn})
			}
			if m.asked[turn] != nil {
				return seg, m.askedLater(ctx)
			}
		}
	}
	return seg, nil
}

// askedLater notes of records of this session that the user asks to keep them now.
func (m *Memory) askedLater(ctx context.Context) error {
	for _, id := range m.made {
		r, ok, err := m.store.Get(ctx, id)
		if err != nil {
			return m.failed("reading a record that is to be kept", err)
		}
		if !ok || r.Asked || r.Origin.Class != External || !m.askedFor(r.Lineage, r.Text) {
			continue
		}
		prior := r
		r.Asked = true
		s, signs := m.gate.(interface {
			Sign(Record) (signature []byte, by string)
		})
		switch {
		case len(r.Signature) == 0:
		case signs:
			r.Signature, r.SignedBy = s.Sign(r)
		default: // a guard elsewhere signs what it is shown
			v, err := m.gate.Write(ctx, Proposal{Op: Replace, Route: RouteMemoryTool, Record: r, Prior: &prior})
			if err := m.after(AtWrite, err); err != nil {
				return err
			}
			if v.Action != Allow {
				continue
			}
			r.Scope, r.Signature, r.SignedBy = v.Scope, v.Signature, v.SignedBy
		}
		m.begin(CauseApprove, RouteOperator)
		m.batch.Why = "the user asked to keep it"
		if err := m.put(ctx, "noting that the user asked to keep a record", r); err != nil {
			return err
		}
		m.gate.Committed(Change{Op: Replace, Route: RouteOperator, Record: r, Prior: &prior})
	}
	return nil
}

// Said notes what the agent said, so that transcript search can find it.
func (m *Memory) Said(turn int, content string) {
	if m.opts.Transcripts && content != "" {
		m.inbox = append(m.inbox, Segment{Turn: turn, Text: content, Origin: Origin{Class: Agent, Medium: Chat}})
	}
}

// Mark says how many messages the session has, for those who watch.
func (m *Memory) Mark(messages int) { m.messages = messages }

func (m *Memory) observe(e Event) {
	if m.opts.Observer != nil {
		m.event = e
		m.event.Message = m.messages
		m.opts.Observer(&m.event)
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
	spec, ok := m.Spec(d.Store)
	if !ok {
		return nil, fmt.Errorf("writing by %s: the profile has no store %q", d.Route, d.Store)
	}
	if err := m.catchUp(ctx); err != nil {
		return nil, err
	}
	out, rejected := m.entries(ctx, d, spec)
	if m.err != nil {
		return nil, m.err
	}
	if rejected != "" {
		return []Entry{{Proposal: Proposal{Op: d.Op, Route: d.Route}, Rejected: rejected}}, nil
	}
	if why := risk(d, out); why != "" && m.risk == "" {
		m.risk = why
	}
	for i := range out {
		if err := m.propose(ctx, &out[i], spec); err != nil {
			return out[:i], err
		}
	}
	return out, nil
}

// risk says before what a snapshot is due, if a draft is such a thing. It is taken
// with the first commit: a draft that is blocked costs none.
func risk(d Draft, all []Entry) string {
	if d.Route == RouteCompaction {
		return "compaction"
	}
	if len(all) > 1 {
		for i := range all {
			if all[i].Proposal.Record.Origin.Class == External {
				return "external batch"
			}
		}
	}
	return ""
}

// after is what follows every call of the gate: an error of the gate, or of the
// store that the gate looked into.
func (m *Memory) after(at Moment, err error) error {
	if m.err != nil {
		return m.err
	}
	if err != nil {
		return &GateError{at, err}
	}
	return nil
}

// catchUp tells the gate of what others have changed in the store.
func (m *Memory) catchUp(ctx context.Context) error {
	if m.err != nil || m.journal == nil {
		return m.err
	}
	last, err := m.journal.Last(ctx)
	if err != nil {
		return m.failed("looking for changes", err)
	}
	if last > m.seen {
		m.saw(last+1, last)
	}
	for ; len(m.gaps) > 0; m.gaps = m.gaps[1:] {
		for c, err := range m.journal.Changes(ctx, m.gaps[0][0], m.gaps[0][1]) {
			if err != nil {
				return m.failed("reading the changes of others", err)
			}
			m.gate.Committed(c)
		}
	}
	return nil
}

// Spec is the store of a name, if the profile has it.
func (m *Memory) Spec(name string) (StoreSpec, bool) {
	for _, s := range m.opts.Stores {
		if s.Name == name {
			return s, true
		}
	}
	return StoreSpec{}, false
}

// entries turns a draft into proposals, of which nothing has become yet.
func (m *Memory) entries(ctx context.Context, d Draft, spec StoreSpec) ([]Entry, string) {
	var prior *Record
	switch {
	case d.Record != "" && d.Op != Add:
		r, ok, err := m.store.Get(ctx, d.Record)
		m.failed("reading a record", err)
		if !ok || r.Store != d.Store || r.State == Retired {
			return nil, fmt.Sprintf("%s has no entry %q", spec.Title, text.Clip(d.Record, 80))
		}
		prior = &r
	case spec.Kind == Skills:
		r, exists := m.byKey(ctx, d.Store, d.Key)
		switch {
		case d.Key == "":
			return nil, "a skill needs a name"
		case exists:
			d.Op, prior = max(d.Op, Replace), &r
		case d.Op == Remove:
			return nil, fmt.Sprintf("there is no skill %q", text.Clip(d.Key, 80))
		default:
			d.Op = Add
		}
	case d.Op == Replace && d.Old == "" && spec.Kind == Notes:
		return m.difference(ctx, d), ""
	case d.Op == Replace || d.Op == Remove:
		r, ok := m.find(ctx, d.Store, d.Old)
		if !ok {
			return nil, fmt.Sprintf("no entry of %s contains %q", spec.Title, text.Clip(d.Old, 80))
		}
		prior = &r
	case d.Route == RouteCompaction || d.Route == RouteFlush || spec.Kind == Notes:
		d.Key = ""
		items := Items(d.Text)
		out := make([]Entry, len(items))
		for i := range items {
			d.Text = items[i]
			m.proposal(ctx, &out[i].Proposal, &d, nil)
		}
		return out, ""
	case strings.TrimSpace(d.Text) == "":
		return nil, "nothing to store: the content is empty"
	}
	out := make([]Entry, 1)
	m.proposal(ctx, &out[0].Proposal, &d, prior)
	return out, ""
}

// difference compares a file's new content with its entries, line by line.
func (m *Memory) difference(ctx context.Context, d Draft) []Entry {
	var out []Entry
	propose := func(d *Draft, prior *Record) {
		out = append(out, Entry{})
		m.proposal(ctx, &out[len(out)-1].Proposal, d, prior)
	}
	add, remove := d, d
	add.Op, add.Key, remove.Op = Add, "", Remove
	old := m.visible(ctx, d.Store)
	kept := make([]bool, len(old))
next:
	for _, add.Text = range Items(d.Text) {
		for i, r := range old {
			if !kept[i] && r.Text == add.Text {
				kept[i] = true
				continue next
			}
		}
		propose(&add, nil)
	}
	for i := range old {
		if !kept[i] {
			propose(&remove, &old[i])
		}
	}
	return out
}

func (m *Memory) find(ctx context.Context, storeName, part string) (Record, bool) {
	if part == "" {
		return Record{}, false
	}
	for _, r := range m.visible(ctx, storeName) {
		if strings.Contains(r.Text, part) {
			return r, true
		}
	}
	return Record{}, false
}

func (m *Memory) byKey(ctx context.Context, storeName, key string) (Record, bool) {
	r, ok, err := m.store.ByKey(ctx, storeName, key)
	m.failed("reading a key", err)
	return r, ok
}

// visible is empty where the store fails: see Err.
func (m *Memory) visible(ctx context.Context, stores ...string) []Record {
	rs, err := m.store.Visible(ctx, stores...)
	m.failed("reading what is visible", err)
	return rs
}

// proposal says what a draft of one entry changes: prior, if that is not nil.
func (m *Memory) proposal(ctx context.Context, p *Proposal, d *Draft, prior *Record) {
	now := m.Now()
	p.Op, p.Route, p.Prior = d.Op, d.Route, prior
	r := &p.Record
	r.ID, r.Store, r.Key, r.Text, r.Principal = m.recordID(ctx), d.Store, d.Key, d.Text, m.principal
	r.Created, r.ValidFrom, r.Version = now, now, 1
	if prior != nil {
		r.Key, r.Version, r.Parent = prior.Key, prior.Version+1, prior.ID
	} else if r.Key == "" {
		r.Key = d.Store + "/" + r.ID
	}
	if d.Op == Remove {
		r.Text, r.Origin = prior.Text, m.leastLink().Least(Origin{Class: Agent, Medium: Chat})
	} else {
		m.derive(r, d.From)
	}
}

// propose asks the gate about an entry and does what it says.
func (m *Memory) propose(ctx context.Context, e *Entry, spec StoreSpec) error {
	p := &e.Proposal
	began := time.Now()
	v, err := m.gate.Write(ctx, *p)
	took, wire := m.opts.Meter.split(time.Since(began))
	if err := m.after(AtWrite, err); err != nil {
		return err
	}
	e.Verdict = v
	if e.Committed, e.Rejected, err = m.commit(ctx, p, v, spec); err != nil {
		return err
	}
	m.observe(Event{Moment: AtWrite, Route: p.Route, Op: p.Op, Took: took, Wire: wire, Proposal: p, Verdict: v,
		Committed: e.Committed})
	return nil
}

// commit applies a verdict. Nothing but what stands in Verdict changes.
func (m *Memory) commit(ctx context.Context, p *Proposal, v Verdict, spec StoreSpec) (*Record, string, error) {
	if v.Action == Block {
		return nil, "", nil
	}
	if p.Op == Remove {
		if why := spec.refuses(""); why != "" {
			return nil, why, nil
		}
		if v.Action == Quarantine || v.Action == Defer {
			return nil, "", nil
		}
		gone, err := m.retired(ctx, p.Prior.ID, m.Now())
		if err != nil {
			return nil, "", err
		}
		m.open(p, v)
		if err := m.put(ctx, "removing a record", gone); err != nil {
			return nil, "", err
		}
		m.gate.Committed(Change{Op: Remove, Route: p.Route, Record: gone, Prior: p.Prior})
		return &gone, "", nil
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
		if why := spec.refuses(r.Text); why != "" {
			return nil, why, nil
		}
		if why, err := m.full(ctx, spec, r, p.Prior); why != "" || err != nil {
			return nil, why, err
		}
	}
	m.open(p, v)
	var prior *Record
	// A record that is staged, held or quarantined supersedes nothing.
	if p.Prior != nil && r.State == Live {
		gone, err := m.retired(ctx, p.Prior.ID, r.ValidFrom)
		if err != nil {
			return nil, "", err
		}
		m.batch.Records = append(m.batch.Records, gone)
		prior = &gone
	}
	if err := m.put(ctx, "storing a record", r); err != nil {
		return nil, "", err
	}
	m.made = append(m.made, r.ID)
	m.gate.Committed(Change{Op: p.Op, Route: p.Route, Record: r, Prior: prior})
	return &r, "", nil
}

// open starts the batch of a proposal that will be committed, with the snapshot
// that is due.
func (m *Memory) open(p *Proposal, v Verdict) {
	m.begin(CauseWrite, p.Route)
	if v.Action != Allow {
		m.batch.Why = v.Action.String() + ": " + checks(v.Findings)
	}
	if m.risk != "" {
		m.batch.Snapshot = &SnapshotName{Reason: m.risk}
		m.risk = ""
	}
}

// checks names the checks of findings, each once.
func checks(fs []Finding) string {
	var names []string
	for _, f := range fs {
		if !slices.Contains(names, f.Check) {
			names = append(names, f.Check)
		}
	}
	if len(names) == 0 {
		return "no reason given"
	}
	return strings.Join(names, ", ")
}

// retired is the record as it is once it no longer holds.
func (m *Memory) retired(ctx context.Context, id string, until time.Time) (Record, error) {
	r, ok, err := m.store.Get(ctx, id)
	if err == nil && !ok {
		err = fmt.Errorf("record %q: %w", id, ErrNotFound)
	}
	r.State, r.ValidTo = Retired, until
	return r, m.failed("retiring a record", err)
}

func (m *Memory) full(ctx context.Context, spec StoreSpec, r Record, prior *Record) (string, error) {
	if spec.Limit == 0 {
		return "", nil
	}
	used, err := m.store.Used(ctx, spec.Name)
	used += len(r.Text)
	if prior != nil && prior.Store == spec.Name && prior.State.Visible() {
		used -= len(prior.Text)
	}
	if spec.Between > 0 {
		used = utf8.RuneCountInString(r.Text)
		for _, old := range m.visible(ctx, spec.Name) {
			if prior == nil || old.ID != prior.ID {
				used += utf8.RuneCountInString(old.Text) + spec.Between
			}
		}
	}
	if err != nil || used <= spec.Limit {
		return "", m.failed("measuring a store", err)
	}
	var entries strings.Builder
	for _, old := range m.visible(ctx, spec.Name) {
		entries.WriteString("\n- " + old.Text)
	}
	return fmt.Sprintf("%s would hold %d of %d characters; shorten, replace or remove an entry first:%s",
		spec.Title, used, spec.Limit, entries.String()), m.err
}

// Act asks the gate about a tool call and returns whether it may go ahead.
func (m *Memory) Act(ctx context.Context, c Call) (Verdict, error) {
	if err := m.catchUp(ctx); err != nil {
		return Verdict{}, err
	}
	for i := range c.Args {
		if c.Args[i].Lineage == nil {
			c.Args[i].Lineage = m.argumentLineage(&c.Args[i])
		}
	}
	began := time.Now()
	v, err := m.gate.Act(ctx, c)
	took, wire := m.opts.Meter.split(time.Since(began))
	if err := m.after(AtAct, err); err != nil {
		return v, err
	}
	m.observe(Event{Moment: AtAct, Took: took, Wire: wire, Query: c.Query, Call: &c, Verdict: v})
	return v, nil
}

// Answered tells the gate whether the user agreed to a call that it deferred.
func (m *Memory) Answered(c Call, agreed bool) { m.gate.Answered(c, agreed) }

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

type view struct{ m *Memory }

func (v view) Readers() []Reader { return v.m.desk.Readers() }
func (v view) Look(ctx context.Context, tool, name string) ([]Row, error) {
	return v.m.desk.Look(ctx, tool, name)
}

func (v view) Now() time.Time    { return v.m.Now() }
func (v view) Seed() uint64      { return v.m.opts.Seed }
func (v view) Trial() uint64     { return v.m.opts.Trial }
func (v view) Principal() string { return v.m.principal }
func (v view) ByKey(store, key string) (Record, bool) {
	return v.m.byKey(context.Background(), store, key)
}
func (v view) Each(yield func(Record) bool) { v.m.Records(yield) }

func (v view) Len() int {
	n, err := v.m.store.Len(context.Background())
	v.m.failed("counting", err)
	return n
}

func (v view) Get(id string) (Record, bool) {
	r, ok, err := v.m.store.Get(context.Background(), id)
	v.m.failed("reading a record", err)
	return r, ok
}
