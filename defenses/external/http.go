package external

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/memtox/memtox/internal/remote"
)

// TokenVariable is the environment variable whose value is sent to services as a
// bearer token.
const TokenVariable = "MEMTOX_GUARD_TOKEN"

// service is a guard behind HTTP: each question is one POST.
type service struct {
	url    string
	client *http.Client
	wire   *remote.Client
	redact remote.Redactor

	last     atomic.Uint64
	failures atomic.Int32    // in a row
	useful   context.Context // until there were too many
	giveUp   context.CancelCauseFunc
}

// checkURL reads the address of a service.
func checkURL(s string, tokens ...remote.Secret) (*url.URL, error) {
	u, err := remote.BaseURL(s)
	if err != nil {
		return nil, err
	}
	for i, token := range tokens {
		if !token.IsZero() && u.Scheme == "http" && !remote.Loopback(u.Hostname()) {
			return nil, fmt.Errorf("%s would get the token of %s in the clear: use https, or a host of this machine",
				u.Host, []string{TokenVariable, OwnerVariable}[i])
		}
	}
	return u, nil
}

func newService(u *url.URL, token, owner remote.Secret, timeout time.Duration) *service {
	// One attempt: a service that was asked twice might count a change twice. The
	// time for an answer is that of the guard; this one is only the last resort.
	c := remote.New(remote.Options{Attempts: 1, InFlight: 64, Timeout: 2*timeout + time.Second,
		Redact: remote.Redactor{}.With(token, owner)})
	s := &service{url: u.String(), client: remote.HTTP(remote.Authorized(c, token)), wire: c, redact: c.Redactor()}
	s.useful, s.giveUp = context.WithCancelCause(context.Background())
	return s
}

func (s *service) lost() <-chan struct{} { return s.useful.Done() }
func (s *service) why() error            { return context.Cause(s.useful) }

func (s *service) close(error) { s.wire.Close() }

func (s *service) send(ctx context.Context, q *Request) (func(context.Context) (*Answer, error), error) {
	q.ID = s.last.Add(1)
	a, err := s.post(ctx, q)
	if err == nil {
		s.failures.Store(0)
	} else if ctx.Err() == nil || isLate(context.Cause(ctx)) {
		if s.failures.Add(1) >= maxFailures {
			s.giveUp(err)
		}
	}
	if err != nil {
		return nil, err
	}
	return func(context.Context) (*Answer, error) { return a, nil }, nil
}

func isLate(err error) bool {
	_, ok := err.(*lateError)
	return ok
}

func (s *service) post(ctx context.Context, q *Request) (*Answer, error) {
	b, err := remote.Post(ctx, s.client, s.url, q)
	if err != nil {
		return nil, err
	}
	a, err := readAnswer(b)
	if err != nil {
		return nil, fmt.Errorf("its answer is no JSON object of an answer: %s (%v)",
			remote.Quote(s.redact.String(string(b[:min(len(b), 300)]))), err)
	}
	if a.ID != 0 && a.ID != q.ID {
		return nil, fmt.Errorf("it was asked question %d and answers question %d", q.ID, a.ID)
	}
	return a, nil
}
