package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/external"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/internal/remote"
)

const (
	// maxQuestion is the longest question in bytes: a read may bring a store.
	maxQuestion = 64 << 20
	// DefaultIdle is how long an open trial may go without a question.
	DefaultIdle = 24 * time.Hour
	// DefaultTrials bounds the trials that are open at once.
	DefaultTrials = 1024
	// DefaultMemory bounds what is kept of the records of all open trials, in bytes.
	DefaultMemory = 256 << 20
	// maxWaiting bounds the questions that were read and not yet answered. A long one
	// counts as one more for each perPlace bytes.
	maxWaiting = 256
)

var perPlace = 1 << 20

// Server answers for a gate of ours in the words of the protocol. It keeps for
// each open trial what a [memory.View] shows: a mirror of the store, made of what
// it is told.
type Server struct {
	// Identity is what it says to hello.
	Identity defenses.Identity
	// Open opens a gate for a trial, as a defense does.
	//
	// The view has a method Memory() string, which names the memory that the trial is
	// about: what a gate signs with must hang on it and on a secret that no client
	// has, never on the view's seed, which is the client's.
	Open func(context.Context, memory.View) (memory.Gate, error)
	// Idle, Trials and Memory bound what clients that never close leave behind:
	// DefaultIdle, DefaultTrials and DefaultMemory where they are 0. Where one is
	// reached the trials that were idle longest expire.
	Idle   time.Duration
	Trials int
	Memory int
	// Owner is the token that makes a client the owner; "" lets nobody be it. Another
	// client's seeds are screened like writes, and nothing that it says is trusted
	// more than Most; nil is User. Most of System makes everybody the owner.
	Owner string
	Most  *memory.Class
	// Pending holds what a person must confirm until somebody has; nil tells the client
	// that it is deferred, and no more.
	Pending pending.Asker
	// Panicked is told of a panic of the gate, with its stack, which is nobody's but the
	// operator's; nil is nobody.
	Panicked func(value any, stack []byte)

	mu      sync.Mutex
	trials  map[uint64]*trial
	idle    *list.List // of *trial without a question under way, the longest idle first
	bytes   int        // that the mirrors keep
	expired map[uint64]string
	gone    uint64 // trials that have expired
	timer   *time.Timer
}

// trial is an open trial. Its questions are answered one after another.
type trial struct {
	number uint64
	// Guarded by the server's lock.
	under int           // questions under way
	place *list.Element // in the server's list while there are none
	since time.Time     // when the last was answered
	bytes int           // of the mirror, as the server has counted them

	last chan struct{} // closed once the last question so far is answered

	view *mirror
	gate memory.Gate
	err  error // the gate could not be opened
	pass string
	// token says that it was opened with the owner's token.
	token bool
	most  memory.Class // that its client can claim
}

// turn is the turn of a question in its trial.
type turn struct {
	*trial
	before <-chan struct{} // closed when it has come
	done   chan<- struct{} // to be closed when it is over
}

// Serve answers the guard protocol (docs/external-guards.md) on a pair of streams, a
// line for a line, until r ends or ctx is over: then what was read is still answered.
// A line that is no question ends it with an error. Trials are answered side by side,
// the questions of one trial in their order.
func (s *Server) Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	in, read := io.Pipe()
	go func() {
		_, err := io.Copy(read, r)
		read.CloseWithError(err) // nil is the end
	}()
	stop := context.AfterFunc(ctx, func() { read.Close() })
	defer stop()
	defer in.Close()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	var out sync.Mutex
	var failed error // of w
	reply := func(a *external.Answer) {
		line, err := remote.Line(a)
		if err != nil {
			line, _ = remote.Line(&external.Answer{ID: a.ID, Error: err.Error()})
		}
		out.Lock()
		defer out.Unlock()
		if _, err := w.Write(append(line, '\n')); err != nil && failed == nil {
			failed = fmt.Errorf("answering: %w", err)
			cancel()
		}
	}
	places := make(chan struct{}, maxWaiting)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxQuestion)
reading:
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		q, err := external.ReadRequest(lines.Bytes())
		switch {
		case q == nil:
			return fmt.Errorf("reading a question: %w", err)
		case ctx.Err() != nil:
			break reading
		case err != nil:
			reply(&external.Answer{ID: q.ID, Error: err.Error()})
			continue
		}
		t, direct := s.find(q)
		if direct != nil {
			reply(direct)
			continue
		}
		size := 1 + len(lines.Bytes())/perPlace
		for range size { // nobody else takes any
			places <- struct{}{}
		}
		group.Go(func() {
			defer func() {
				close(t.done)
				for range size {
					<-places
				}
			}()
			reply(s.answer(ctx, t, q))
		})
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading a question: %w", err)
	}
	group.Wait()
	return failed
}

// Answer answers one question. The questions of one trial must come in their
// order; trials may be asked about side by side.
func (s *Server) Answer(ctx context.Context, q *external.Request) *external.Answer {
	t, direct := s.find(q)
	if direct != nil {
		return direct
	}
	defer close(t.done)
	return s.answer(ctx, t, q)
}

// find returns the next turn of a question's trial, or the answer to one that has none.
func (s *Server) find(q *external.Request) (*turn, *external.Answer) {
	refuse := func(format string, args ...any) (*turn, *external.Answer) {
		return nil, &external.Answer{ID: q.ID, Error: fmt.Sprintf(format, args...)}
	}
	if q.Op == external.Hello {
		if q.Protocol > external.Protocol {
			return refuse("protocol %d is not spoken here, but %d", q.Protocol, external.Protocol)
		}
		return nil, &external.Answer{ID: q.ID, Name: s.Identity.Name, Version: s.Identity.Version,
			Configuration: s.Identity.Configuration, Ops: external.Ops()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(time.Now())
	most := cmp.Or(s.Trials, DefaultTrials)
	t := s.trials[q.Trial]
	switch why := s.expired[q.Trial]; {
	case q.Op == external.Open && t != nil:
		return refuse("trial %d is open already", q.Trial)
	case q.Op == external.Open:
		if s.trials == nil {
			s.trials, s.idle, s.expired = make(map[uint64]*trial), list.New(), make(map[uint64]string)
		}
		why = fmt.Sprintf("%d trials were open and it was idle longest", most)
		if len(s.trials) >= most && !s.end(s.idle.Front(), why) {
			return refuse("%d trials are open, each with a question under way: ask again", most)
		}
		t = s.newTrial(q)
		s.trials[q.Trial] = t
		delete(s.expired, q.Trial)
	case t == nil && why != "":
		return refuse("trial %d has expired: %s; open it again and tell it what is stored", q.Trial, why)
	case t == nil:
		return refuse("trial %d is not open", q.Trial)
	case !same(q.Pass, t.pass):
		return refuse("trial %d was opened with another pass", q.Trial)
	case t.token && t.pass == "" && !same(q.Owner, s.Owner): // its number is no secret
		return refuse("trial %d is the owner's: show the owner's token with each message, or open it with a pass", q.Trial)
	}
	if t.under++; t.place != nil {
		s.idle.Remove(t.place)
		t.place = nil
	}
	done := make(chan struct{})
	next := &turn{t, t.last, done}
	t.last = done
	return next, nil
}

// answered counts what a question has left in a trial.
func (s *Server) answered(t *trial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trials[t.number] != t { // closed
		s.bytes -= t.bytes
		t.bytes = 0
		return
	}
	s.bytes += t.view.bytes - t.bytes
	t.bytes = t.view.bytes
	if t.under--; t.under == 0 {
		t.since, t.place = time.Now(), s.idle.PushBack(t)
	}
	most := cmp.Or(s.Memory, DefaultMemory)
	for s.bytes > most && s.end(s.idle.Front(), fmt.Sprintf("the records of all trials had more than %d bytes", most)) {
	}
	s.expire(time.Now())
}

// expire ends the trials that have been idle too long, and comes back for the next.
func (s *Server) expire(now time.Time) {
	if s.idle == nil {
		return
	}
	most := cmp.Or(s.Idle, DefaultIdle)
	for e := s.idle.Front(); e != nil; e = s.idle.Front() {
		if left := most - now.Sub(e.Value.(*trial).since); left > 0 {
			if s.timer == nil {
				s.timer = time.AfterFunc(left, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.timer = nil
					s.expire(time.Now())
				})
			}
			return
		}
		s.end(e, fmt.Sprintf("nothing was asked for %s", most))
	}
}

// end ends an idle trial and notes why, for a client that comes back. It reports
// whether there was one.
func (s *Server) end(e *list.Element, why string) bool {
	if e == nil {
		return false
	}
	t := s.idle.Remove(e).(*trial)
	t.place = nil
	delete(s.trials, t.number)
	s.bytes -= t.bytes
	s.gone++
	if len(s.expired) >= 16*DefaultTrials { // who comes later is told that it is not open
		clear(s.expired)
	}
	s.expired[t.number] = why
	if c, ok := t.gate.(io.Closer); ok {
		_ = c.Close() // nobody is there to be told
	}
	return true
}

// Load is how many trials are open, what is kept of their records in bytes, and how
// many have expired.
func (s *Server) Load() (open, bytes int, expired uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.trials), s.bytes, s.gone
}

func (s *Server) newTrial(q *external.Request) *trial {
	t := &trial{number: q.Trial, view: newMirror(q), pass: q.Pass, most: memory.User, last: make(chan struct{})}
	close(t.last)
	switch {
	case s.Owner != "" && same(q.Owner, s.Owner):
		t.most, t.token = memory.System, true
	case s.Most != nil:
		t.most = *s.Most
	}
	return t
}

// owner reports whether the trial's client speaks for the operator.
func (t *trial) owner() bool { return t.most == memory.System }

// same compares secrets.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// claimed is a record as the trial's client may claim it to be; nil is none.
func (t *trial) claimed(r *external.Record) (*memory.Record, error) {
	if r == nil {
		return nil, nil
	}
	out, err := r.Memory()
	out.Origin.Class = min(out.Origin.Class, t.most)
	t.lower(out.Lineage)
	out.Asked = out.Asked && t.most >= memory.User // it is the user who asks
	return &out, err
}

// lower takes from a lineage what the trial's client cannot claim.
func (t *trial) lower(l memory.Lineage) {
	for i := range l {
		l[i].Origin.Class = min(l[i].Origin.Class, t.most)
	}
}

func (s *Server) answer(ctx context.Context, t *turn, q *external.Request) (a *external.Answer) {
	<-t.before
	defer s.answered(t.trial)
	a = &external.Answer{ID: q.ID}
	defer func() {
		if p := recover(); p != nil {
			if s.Panicked != nil {
				s.Panicked(p, debug.Stack())
			}
			a = &external.Answer{ID: q.ID, Error: "the guard failed: its log says how"}
		}
	}()
	if q.Now != nil {
		t.view.now = *q.Now
	}
	began := time.Now()
	err := s.do(ctx, t.trial, q, a)
	a.TookUS = float64(time.Since(began).Nanoseconds()) / 1000
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

func (s *Server) do(ctx context.Context, t *trial, q *external.Request, a *external.Answer) error {
	switch q.Op {
	case external.Open:
		t.gate, t.err = s.Open(ctx, t.view)
		return t.err
	case external.Close:
		s.mu.Lock()
		if s.trials[q.Trial] == t { // it may be closed already, and another open
			delete(s.trials, q.Trial)
		}
		s.mu.Unlock()
		if c, ok := t.gate.(io.Closer); ok {
			return c.Close()
		}
		return nil
	}
	if t.err != nil {
		return fmt.Errorf("the trial could not be opened: %w", t.err)
	}
	switch q.Op {
	case external.Write, external.Read, external.Act:
		if q.Principal = cmp.Or(q.Principal, t.view.principal); q.Principal != t.view.principal && !t.owner() {
			return fmt.Errorf("principal %q: the trial is that of %q", q.Principal, t.view.principal)
		}
	}
	if q.Record == nil {
		q.Record = new(external.Record)
	}
	if q.Op != external.Input {
		q.Record.Principal = q.Principal
	}
	subject, err := t.claimed(q.Record)
	if err != nil {
		return err
	}
	prior, err := t.claimed(q.Prior)
	if err != nil {
		return err
	}
	var op memory.Op
	if q.Op == external.Write || q.Op == external.Committed {
		if err := op.UnmarshalText([]byte(q.Change)); err != nil {
			return fmt.Errorf("change: %w", err)
		}
	}
	switch q.Op {
	case external.Seed:
		return seed(ctx, t, q, a)
	case external.Input:
		v, err := t.gate.Input(ctx, memory.Segment{ID: q.Segment, Turn: q.Turn, Origin: subject.Origin, Text: subject.Text})
		a.Judgement = external.JudgementOf(&v)
		return err
	case external.Write:
		p := memory.Proposal{Op: op, Route: q.Route, Record: *subject, Prior: prior}
		v, err := t.gate.Write(ctx, p)
		var held pending.Held
		if by, ok := t.gate.(approver); ok && err == nil && s.Pending != nil {
			v, held, err = s.Pending.Write(ctx, t.view.memory, &p, v, by.Approve)
		}
		a.Judgement = external.JudgementOf(&v)
		a.Pending = held.ID
		return err
	case external.Read:
		return read(ctx, t, q, a)
	case external.Act:
		c := memory.Call{Tool: q.Tool, Query: memory.Query{Route: q.QueryRoute, Text: q.Query, Principal: q.Principal,
			K: q.K}}
		for _, arg := range q.Args {
			t.lower(arg.Lineage)
			c.Args = append(c.Args, memory.Arg(arg))
		}
		v, err := t.gate.Act(ctx, c)
		var held pending.Held
		if err == nil && s.Pending != nil {
			v, held, err = s.Pending.Act(ctx, t.view.memory, &c, v)
		}
		a.Judgement = external.JudgementOf(&v)
		a.Pending = held.ID
		return err
	case external.Committed:
		if prior != nil && op == memory.Replace {
			t.view.put(*prior)
		}
		t.view.put(*subject)
		if !q.Around {
			t.gate.Committed(memory.Change{Op: op, Route: q.Route, Record: *subject, Prior: prior})
		}
		return nil
	}
	return fmt.Errorf("unknown operation %q", q.Op)
}

// approver is a gate that signs what a person agreed to.
type approver interface {
	Approve(memory.Record) memory.Record
}

func seed(ctx context.Context, t *trial, q *external.Request, a *external.Answer) error {
	var rs []memory.Record
	var at []int
	a.Records = make([]external.Judgement, len(q.Records))
	for i := range q.Records {
		r, err := t.claimed(&q.Records[i])
		if err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
		if !t.owner() {
			r.Scope = memory.ScopeUnset // what it may do is not its own to say
			v, err := t.gate.Write(ctx, memory.Proposal{Op: memory.Add, Route: memory.RouteSeed, Record: *r})
			if err != nil {
				return fmt.Errorf("record %d: %w", i+1, err)
			}
			if v.Action != memory.Allow {
				v.Signature, v.SignedBy = nil, ""
				a.Records[i] = external.JudgementOf(&v)
				continue
			}
		}
		rs, at = append(rs, *r), append(at, i)
	}
	out, err := t.gate.Seed(ctx, rs)
	if err != nil {
		return err
	}
	if len(out) != len(rs) {
		return errors.New("the gate did not answer about every record")
	}
	for i, r := range out {
		t.view.bytes += sizeOf(&rs[i]) // the gate has learned of it
		a.Records[at[i]] = external.Judgement{Scope: r.Scope, Signature: r.Signature, SignedBy: r.SignedBy}
	}
	return nil
}

func read(ctx context.Context, t *trial, q *external.Request, a *external.Answer) error {
	cs := make([]memory.Candidate, len(q.Candidates))
	for i := range q.Candidates {
		r, err := t.claimed(&q.Candidates[i].Record)
		if err != nil {
			return fmt.Errorf("candidate %d: %w", i+1, err)
		}
		cs[i] = memory.Candidate{Record: *r, Score: q.Candidates[i].Relevance}
	}
	ds, err := t.gate.Read(ctx, memory.Query{Route: q.Route, Text: q.Query, Said: q.Said, Principal: q.Principal, K: q.K}, cs)
	if err != nil {
		return err
	}
	if len(ds) != len(cs) {
		return errors.New("the gate did not decide about every candidate")
	}
	a.Decisions = make([]external.Judgement, len(ds))
	for i := range ds {
		a.Decisions[i] = external.JudgementOfDecision(&ds[i])
	}
	return nil
}

// mirror is a trial's [memory.View]: its store as the guard was told of it.
type mirror struct {
	memory.Picture
	memory.Nowhere
	now       time.Time
	seed      uint64
	trial     uint64
	principal string
	memory    string
	bytes     int // about what the records take
}

func newMirror(q *external.Request) *mirror {
	m := &mirror{seed: q.Seed, trial: q.Trial, principal: q.Principal, bytes: len(q.Principal) + 2*len(q.Pass)}
	if m.memory = "pass " + q.Pass; q.Pass == "" {
		m.memory = fmt.Sprintf("trial %d", q.Trial)
	}
	return m
}

func (m *mirror) put(r memory.Record) {
	m.bytes += sizeOf(&r)
	if old, replaced := m.Put(r); replaced {
		m.bytes -= sizeOf(&old)
	}
}

func (m *mirror) Now() time.Time    { return m.now }
func (m *mirror) Seed() uint64      { return m.seed }
func (m *mirror) Trial() uint64     { return m.trial }
func (m *mirror) Principal() string { return m.principal }

// Memory names the memory that the trial is about.
func (m *mirror) Memory() string { return m.memory }

// sizeOf is about what a record takes, in bytes.
func sizeOf(r *memory.Record) int {
	n := 512 + len(r.ID) + len(r.Key) + len(r.Store) + len(r.Text) + len(r.Parent) + len(r.Origin.Source) +
		len(r.Origin.Medium) + len(r.Signature) + len(r.SignedBy)
	for i := range r.Lineage {
		o := &r.Lineage[i].Origin
		n += 128 + len(r.Lineage[i].Record) + len(o.Source) + len(o.Medium)
	}
	for _, in := range r.Intents {
		n += 16 + len(in)
	}
	return n
}
