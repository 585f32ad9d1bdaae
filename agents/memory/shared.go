package memory

import (
	"context"
	"sync"
)

// Shared is one store behind one gate, for many goroutines: what a server holds.
// Each client works in a [Session] of its own, with its own context window; what
// one commits the others recall. Decisions are made one at a time, for a gate is
// called by one goroutine at a time; the wait for the disk is shared, where the
// store can do that ([Journal]).
type Shared struct {
	mu   sync.Mutex
	opts Options
	root *Memory
}

// NewShared returns a shared memory without a defense. Options.Principal is that of
// the view that the gate is opened with.
func NewShared(opts Options) *Shared {
	root := New(opts)
	root.later = true
	return &Shared{opts: root.opts, root: root}
}

// View is what the gate may know. It is for the gate alone, which is never called
// by two goroutines at once.
func (s *Shared) View() View { return s.root.View() }

// Guard puts a defense in front of the store. It is called once, before anything
// else.
func (s *Shared) Guard(g Gate) { s.root.Guard(g) }

// Do runs f with the memory that belongs to no session: for Seed and
// Resume.
func (s *Shared) Do(ctx context.Context, f func(*Memory) error) error { return s.do(ctx, s.root, f) }

// Session is one client's part of a Shared. Its methods may be called by many
// goroutines, but they are one conversation: what one brings into the context is
// what another's writes may derive from.
type Session struct {
	shared *Shared
	m      *Memory
}

// Session begins a session of a principal; "" is that of the options.
func (s *Shared) Session(principal string) *Session {
	opts := s.opts
	if principal != "" {
		opts.Principal = principal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := newMemory(opts, s.root.core)
	m.now, m.risk = s.root.now, "session start"
	return &Session{s, m}
}

// Do runs f with the session's memory while nobody else uses the store. It returns
// once everything that f committed will last. The memory must not be kept.
func (s *Session) Do(ctx context.Context, f func(*Memory) error) error {
	return s.shared.do(ctx, s.m, f)
}

func (s *Shared) do(ctx context.Context, m *Memory, f func(*Memory) error) error {
	changed, err := s.locked(m, f)
	if m.journal == nil || !changed {
		return err
	}
	if lost := m.journal.Sync(ctx); lost != nil {
		return &StoreError{Doing: "making a change last", Err: lost}
	}
	return err
}

// locked reports whether f committed something.
func (s *Shared) locked(m *Memory, f func(*Memory) error) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	commits := m.commits
	err := f(m)
	// The error of a store is the error of the call that met it, not of every
	// session from now on: a store that is broken for good says so again.
	if err == nil {
		err = m.err
	}
	m.err = nil
	return m.commits > commits, err
}
