package external

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// DefaultTimeout is how long a guard may take for one answer.
const DefaultTimeout = 10 * time.Second

// The limits of starting a guard anew (exec) or of asking one that fails (http).
const (
	// maxFailures is how often in a row a guard may fail before it is given up:
	// without one answer to a question in between. One that never said hello is
	// given up after fewer.
	maxFailures = 3
	maxGreets   = 2
	// maxStarts bounds the starts of one run, whatever it answered in between.
	maxStarts = 100
)

// peer is the other end of one connection. Its answers come in any order.
type peer interface {
	// send sends a question. The answer is had by await. It does not wait for it
	// where it can do without.
	send(ctx context.Context, q *Request) (await func(context.Context) (*Answer, error), err error)
	// lost is closed when the connection is of no more use; why says why.
	lost() <-chan struct{}
	why() error
	// close ends the connection: in good order if err is nil, else at once.
	close(err error)
}

// guard is a defense behind a connection. It is shared by all trials of an arm.
type guard struct {
	spec    string // for messages
	timeout time.Duration
	dial    func(context.Context) (peer, error)
	owner   remote.Secret // zero where the guard is somebody else's
	trials  atomic.Uint64

	turn   chan struct{} // held by whoever connects
	starts int           // theirs

	mu       sync.Mutex
	live     peer
	id       defenses.Identity
	ops      map[string]bool
	known    bool  // id and ops are those of a hello
	failures int   // in a row
	dead     error // it is given up
	closed   bool
}

func newGuard(spec string, timeout time.Duration, dial func(context.Context) (peer, error)) *guard {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return &guard{spec: spec, timeout: timeout, dial: dial, turn: make(chan struct{}, 1)}
}

func (g *guard) Greet(ctx context.Context) (defenses.Identity, error) {
	if _, err := g.connection(ctx); err != nil {
		return defenses.Identity{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.id, nil
}

func (g *guard) Close() error {
	g.mu.Lock()
	p := g.live
	g.live, g.closed = nil, true
	g.mu.Unlock()
	if p != nil {
		p.close(nil)
	}
	return nil
}

// connection returns the live connection, or starts the guard until it has said
// hello, or is given up. One caller connects, the others wait for it.
func (g *guard) connection(ctx context.Context) (peer, error) {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
	}
	for {
		g.mu.Lock()
		p, dead, closed := g.live, g.dead, g.closed
		g.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case dead != nil:
			return nil, dead
		case closed:
			if p != nil { // it said hello meanwhile
				p.close(nil)
			}
			return nil, fmt.Errorf("%s is closed", g.spec)
		case p == nil:
			if err := g.connect(ctx); err != nil && ctx.Err() == nil {
				g.fail(fmt.Errorf("the handshake failed: %w", err))
			}
			continue
		}
		select {
		case <-p.lost():
			p.close(nil)
			g.fail(p.why())
		default:
			return p, nil
		}
	}
}

func (g *guard) connect(ctx context.Context) error {
	g.starts++
	p, err := g.dial(ctx)
	if err != nil {
		return err
	}
	if err := g.greet(ctx, p); err != nil {
		p.close(err)
		return err
	}
	g.mu.Lock()
	g.live = p
	g.mu.Unlock()
	return nil
}

// fail counts a failure of the guard, and gives it up after too many. A guard
// that breaks the protocol is given up at once: what it answered before cannot
// be trusted either.
func (g *guard) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live = nil
	g.failures++
	var broken *violation
	switch {
	case errors.As(err, &broken):
		g.dead = remote.Spoilt(remote.GivenUp, "%s broke the protocol: %w", g.spec, err)
	case g.failures >= maxFailures, !g.known && g.failures >= maxGreets:
		g.dead = remote.Spoilt(remote.GivenUp, "%s failed %d times in a row: %w", g.spec, g.failures, err)
	case g.starts >= maxStarts:
		g.dead = remote.Spoilt(remote.GivenUp, "%s was started %d times: %w", g.spec, g.starts, err)
	}
}

// violation is a breach of the protocol after which no answer can be trusted.
type violation struct{ what string }

func (v *violation) Error() string { return v.what }

func (g *guard) greet(ctx context.Context, p peer) error {
	a, err := g.ask(ctx, p, &Request{Op: Hello, Protocol: Protocol})
	if err != nil {
		return err
	}
	id, ops, err := identity(a)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known && !id.Equal(g.id) {
		return &violation{fmt.Sprintf("it was %s when it said hello first, and is %s now", g.id, id)}
	}
	g.id, g.ops, g.known = id, ops, true
	return nil
}

// identity reads the answer to hello.
func identity(a *Answer) (id defenses.Identity, ops map[string]bool, err error) {
	if a.Name == "" {
		return id, nil, errors.New(`the answer to hello has no name: answer {"id":…,"name":…,"version":…,"ops":["write"]}`)
	}
	if len(a.Name) > maxCheck || len(a.Version) > maxCheck || len(a.Configuration) > maxIdentity {
		return id, nil, fmt.Errorf("the answer to hello is too long: name and version have at most %d bytes, the "+
			"configuration %d", maxCheck, maxIdentity)
	}
	id = defenses.Identity{Name: identifier(a.Name), Version: identifier(a.Version), Configuration: a.Configuration}
	if a.Version == "" {
		id.Version = ""
	}
	answers := a.Ops
	if answers == nil {
		answers = []string{Write}
	}
	ops = make(map[string]bool, len(answers))
	for _, op := range answers {
		if !slices.Contains(Ops(), op) {
			return id, nil, fmt.Errorf("the answer to hello names the operation %q: one of %s", text.Clip(op, 40),
				strings.Join(Ops(), ", "))
		}
		ops[op] = true
	}
	for _, place := range []defenses.Place{defenses.Input, defenses.Write, defenses.Read, defenses.Act} {
		if ops[place.String()] {
			id.Screens = append(id.Screens, place)
		}
	}
	if len(id.Screens) == 0 {
		return id, nil, errors.New("the answer to hello names no operation that decides: ops must have one of input, " +
			"write, read, act")
	}
	return id, ops, nil
}

// ask sends a question and waits for its answer, within the time for one.
func (g *guard) ask(ctx context.Context, p peer, q *Request) (*Answer, error) {
	ctx, cancel := g.within(ctx)
	defer cancel()
	await, err := p.send(ctx, q)
	if err != nil {
		return nil, err
	}
	return answered(await(ctx))
}

// answered holds an answer that says that there is none to be an error.
func answered(a *Answer, err error) (*Answer, error) {
	if err == nil && a.Error != "" {
		err = fmt.Errorf("it says that it failed: %s", remote.Quote(a.Error))
	}
	return a, err
}

// within bounds a context by the time for one answer.
func (g *guard) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, g.timeout, &lateError{g.timeout})
}

// lateError is the cause of a question that was not answered in time.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("no answer within %s (setting external_timeout)", e.after)
}

func (g *guard) Open(ctx context.Context, view memory.View) (memory.Gate, error) {
	p, err := g.connection(ctx)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	ops := g.ops
	g.mu.Unlock()
	t := &gate{guard: g, peer: p, ops: ops, view: view, ctx: ctx, trial: g.trials.Add(1)}
	t.pass = rand.Text()
	if ops[Committed] {
		t.told = make(map[string]bool)
	}
	t.tell(ctx, Open, &Request{Principal: view.Principal(), Seed: view.Seed(), Owner: g.owner.Reveal()})
	return t, t.err
}
