package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/memtox/memtox/internal/remote"
)

// Link is one conversation with an agent: a message each way, in turn. It is closed
// once, when no message is under way.
type Link interface {
	Exchange(ctx context.Context, m *Message) (*Reply, error)
	Close()
}

// Over is implemented by a link that wants to know when a trial is over.
type Over interface{ Over() }

// closeGrace is how long an agent may take to end once its input is closed.
const closeGrace = 2 * time.Second

// maxID keeps ids within the integers that every JSON library reads exactly.
const maxID = 1 << 53

// program is an agent on standard input and output.
type program struct {
	child *remote.Child
	lines chan []byte
}

func startProgram(o remote.ProcessOptions) (*program, error) {
	p := &program{lines: make(chan []byte, 1)}
	o.Line = func(b []byte) error {
		select {
		case p.lines <- bytes.Clone(b):
			return nil
		default:
			return errors.New("it spoke out of turn: it wrote a second line before it was answered")
		}
	}
	var err error
	p.child, err = remote.Start(o)
	return p, err
}

func (p *program) Close() { p.child.Close(closeGrace) }

func (p *program) Exchange(ctx context.Context, m *Message) (*Reply, error) {
	select {
	case <-p.lines:
		err := errors.New("it spoke out of turn")
		p.child.Fail(err)
		return nil, err
	default:
	}
	m.ID = 1 + rand.Uint64N(maxID)
	line, err := remote.Line(m)
	if err != nil {
		return nil, err
	}
	if err := p.child.Send(ctx, line); err != nil {
		return nil, err
	}
	var b []byte
	select {
	case b = <-p.lines:
	case <-p.child.Done():
		select {
		case b = <-p.lines:
		default:
			return nil, p.child.Err()
		}
	case <-ctx.Done():
		p.child.Fail(context.Cause(ctx)) // what it still says would be taken for the answer to something else
		return nil, context.Cause(ctx)
	}
	return parse(b, m.ID, true)
}

func parse(b []byte, id uint64, strict bool) (*Reply, error) {
	var r Reply
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("it wrote what is no reply: %s (%v)", remote.Quote(string(b[:min(len(b), 300)])), err)
	}
	if err := remote.Once(b, replyFields, replyParts); err != nil {
		return nil, fmt.Errorf("its reply says something twice: %w", err)
	}
	if r.ID != id && (strict || r.ID != 0) {
		return nil, fmt.Errorf("it was sent message %d and replies to message %d", id, r.ID)
	}
	if r.Error != "" {
		return nil, fmt.Errorf("it says that it failed: %s", remote.Quote(r.Error))
	}
	r.size = len(b)
	return &r, nil
}

// replyFields are the fields of [Reply] and its parts, and replyParts those that
// hold parts. A call's arguments are the agent's own words.
var (
	replyFields = remote.Fields(reflect.TypeFor[Reply]())
	replyParts  = []string{"call", "write", "recall", "memories"}
)

// service is an agent behind HTTP. One serves all trials.
type service struct {
	url    string
	client *http.Client
}

func (s service) Close() {}

func (s service) Exchange(ctx context.Context, m *Message) (*Reply, error) {
	m.ID = 1 + rand.Uint64N(maxID)
	b, err := remote.Post(ctx, s.client, s.url, m)
	if err != nil {
		return nil, err
	}
	return parse(b, m.ID, false)
}

// Links are conversations that wait for a trial.
type Links struct {
	mu     sync.Mutex
	idle   []Link
	closed bool
}

// take returns one, or nil. One that serves all trials stays.
func (s *Links) take(shared bool) (l Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		if l = s.idle[n-1]; !shared {
			s.idle = s.idle[:n-1]
		}
	}
	return l
}

// keep has one wait for the next trial, if it may.
func (s *Links) keep(l Link, shared bool) {
	s.mu.Lock()
	may := !s.closed && (!shared || len(s.idle) == 0)
	if may {
		s.idle = append(s.idle, l)
	}
	s.mu.Unlock()
	if !may {
		l.Close()
	}
}

func (s *Links) close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, l := range idle {
		l.Close()
	}
}
