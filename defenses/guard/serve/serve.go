package serve

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/defenses/external"
	"github.com/memtox/memtox/internal/remote"
)

// Limits bound what one client can take of a server.
type Limits struct {
	Body       int64         // bytes of a request; 0 is 8 MiB
	Concurrent int           // requests at once; more are told to come back; 0 is 64
	Time       time.Duration // of one request, its body included; 0 is 30 seconds
	// Connections that are open at once; 0 is 256. Where there are more, the one that
	// has brought no whole request for longest is closed.
	Connections int
}

func (l Limits) filled() Limits {
	l.Body, l.Concurrent = cmp.Or(l.Body, 8<<20), cmp.Or(l.Concurrent, 64)
	l.Time, l.Connections = cmp.Or(l.Time, 30*time.Second), cmp.Or(l.Connections, 256)
	return l
}

// HandlerOptions configure [Handler].
type HandlerOptions struct {
	Limits Limits
	// Token is what a client must show (Authorization: Bearer TOKEN). Empty asks for
	// none: for addresses that no other machine reaches, where a request must then
	// name a loopback host and come from no web page.
	Token   string
	Metrics *Metrics // nil counts nothing
}

// Handler answers the guard protocol (POST /), /healthz and /metrics.
func Handler(s *Server, o HandlerOptions) http.Handler {
	o.Limits = o.Limits.filled()
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	o.Metrics.load = s.Load
	places := make(chan struct{}, o.Limits.Concurrent)
	// What a place is taken for is neither the wait for a body nor that for a client to
	// take the answer, which TimeoutHandler buffers: slow ones keep nobody out.
	questions := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, o.Limits.Body))
		var long *http.MaxBytesError
		switch {
		case errors.As(err, &long):
			refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a question has at most %d bytes", o.Limits.Body))
			return
		case err != nil:
			refuse(w, http.StatusBadRequest, "the body did not come whole")
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "too many questions at once")
			return
		}
		if f, ok := r.Context().Value(wholeKey{}).(func()); ok {
			f()
		}
		q, err := external.ReadRequest(b)
		if q == nil {
			refuse(w, http.StatusBadRequest, "the body is no question")
			return
		}
		if err != nil {
			send(w, http.StatusBadRequest, &external.Answer{ID: q.ID, Error: err.Error()})
			return
		}
		send(w, http.StatusOK, s.Answer(r.Context(), q))
	}), o.Limits.Time, `{"error":"it took too long"}`)
	guarded := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch why := refused(r, o.Token); {
			case why == "":
				h.ServeHTTP(w, r)
			case o.Token != "":
				w.Header().Set("WWW-Authenticate", "Bearer")
				refuse(w, http.StatusUnauthorized, why)
			default:
				refuse(w, http.StatusForbidden, why)
			}
		})
	}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, map[string]string{"status": "ok"})
	}))
	mux.Handle("GET /metrics", guarded(o.Metrics))
	mux.Handle("/{$}", guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodPost:
			refuse(w, http.StatusMethodNotAllowed, "a question is a POST")
			return
		case r.ContentLength > o.Limits.Body:
			refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a question has at most %d bytes", o.Limits.Body))
			return
		}
		questions.ServeHTTP(w, r)
	})))
	return o.Metrics.count(mux)
}

func refuse(w http.ResponseWriter, code int, why string) {
	send(w, code, map[string]string{"error": why})
}

func send(w http.ResponseWriter, code int, v any) {
	line, err := remote.Line(v)
	if err != nil {
		code, line = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(line, '\n'))
}

// refused says why a request is not let in, or "".
func refused(r *http.Request, token string) string {
	if token != "" {
		got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !same(got, token) {
			return "a token is needed: Authorization: Bearer …"
		}
		return ""
	}
	// Without a token a web page that the user visits must not reach it: neither
	// directly nor under a name that its owner makes lead here.
	if r.Header.Get("Origin") != "" {
		return "web pages are not served"
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if !remote.Loopback(host) {
		return "the request names another host"
	}
	return ""
}

// crowd bounds the connections of a server. Where there are too many, the one gives
// way that has brought no whole request for longest, of those first that never have.
type crowd struct {
	most int

	mu      sync.Mutex
	waiting [2]list.List // of net.Conn, the longest first: those that never brought one, and others
	conns   map[net.Conn]*member
}

type member struct {
	trusted int           // 1 once it has brought a whole request, in which list it waits
	place   *list.Element // nil while it is answered
}

// wholeKey finds in a request's context what to call once the request is whole.
type wholeKey struct{}

func (c *crowd) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, wholeKey{}, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if m := c.leave(conn); m != nil {
			m.trusted = 1
		}
	})
}

func (c *crowd) leave(conn net.Conn) *member {
	m := c.conns[conn]
	if m != nil && m.place != nil {
		c.waiting[m.trusted].Remove(m.place)
		m.place = nil
	}
	return m
}

func (c *crowd) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.leave(conn)
	if s == http.StateClosed || s == http.StateHijacked {
		delete(c.conns, conn)
		return
	}
	if m == nil {
		m = new(member)
		c.conns[conn] = m
	}
	m.place = c.waiting[m.trusted].PushBack(conn)
	if s != http.StateNew || len(c.conns) <= c.most {
		return
	}
	slow := c.waiting[0].Front() // there is one: this
	if next := c.waiting[1].Front(); slow.Value == conn && next != nil {
		slow = next
	}
	gone := slow.Value.(net.Conn)
	c.leave(gone)
	delete(c.conns, gone)
	go gone.Close() // TLS says good-bye, which can take a while
}

// ServeHTTP answers on a listener until ctx is over, then lets requests in flight
// finish for at most grace.
func ServeHTTP(ctx context.Context, l net.Listener, h http.Handler, limits Limits, grace time.Duration) error {
	limits = limits.filled()
	c := &crowd{most: limits.Connections, conns: map[net.Conn]*member{}}
	return remote.Serve(ctx, l, &http.Server{Handler: h, ReadHeaderTimeout: min(limits.Time, 10*time.Second),
		ReadTimeout: limits.Time, WriteTimeout: 3 * limits.Time, ConnContext: c.context, ConnState: c.state}, grace)
}
