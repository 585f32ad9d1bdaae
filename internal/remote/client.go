package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/memtox/memtox/internal/text"
)

// Options are the limits of a [Client]. The zero value of each field stands for
// the default beside it.
type Options struct {
	// InFlight is the most requests in flight; 0 is what the server is found to bear,
	// see [Client.Pace].
	InFlight int
	// Timeout bounds one attempt from its start to the last byte: 5 minutes.
	Timeout time.Duration
	// Silence bounds the time between two pieces of a stream: 2 minutes.
	Silence time.Duration
	// Attempts is the most attempts of one call: 8.
	Attempts int
	// RetryBudget bounds the time from the first attempt of a call to the start
	// of its last: 10 minutes.
	RetryBudget time.Duration
	// Backoff is the mean wait before the first retry where the server names
	// none: 500 ms. It doubles with each, up to 30 s.
	Backoff time.Duration
	// RequestsPerMinute and TokensPerMinute are limits of the provider; 0 is
	// none.
	RequestsPerMinute, TokensPerMinute int
	Caps                               Caps
	// Spent is what earlier parts of the run have used of the caps.
	Spent Caps
	// MaxBody is the longest answer in bytes: 8 MiB.
	MaxBody int64
	// Redact removes secrets from everything that servers send; [Client.Guard]
	// adds to it.
	Redact Redactor
	// Transport sends the requests: one of our own, which keeps InFlight
	// connections a host, trusts the system's roots and uses the proxy that the
	// environment names.
	Transport http.RoundTripper
}

const (
	maxBackoff = 30 * time.Second
	// noAnswers is how many attempts may end without an answer: a hiccup is over by
	// then, and some servers never answer some prompts.
	noAnswers = 3
	// maxRefused is the weight of the fatal answers in a row, whatever was asked, by
	// which a server is given up: refusal each for a wrong key or name, 1 for others. Those
	// may be of their requests: a firewall before a server refuses what looks like an
	// attack, and arms ask the same thing several times in a row.
	maxRefused = 25
	refusal    = 5
	maxHeader  = 64 << 10
)

// Client sends requests under one set of limits, whatever model or host they go
// to. It is safe for concurrent use, and meant to be the only one of a run.
type Client struct {
	opts Options
	*limiter
	perMin  *bucket // requests
	tokens  *bucket
	purse   purse
	pending pending

	refused atomic.Int64 // weight of the fatal answers in a row
	redact  atomic.Pointer[Redactor]
}

func New(o Options) *Client {
	o.InFlight = max(0, o.InFlight)
	o.Attempts = cmp.Or(max(0, o.Attempts), 8)
	o.MaxBody = cmp.Or(max(0, o.MaxBody), 8<<20)
	o.Timeout = cmp.Or(max(0, o.Timeout), 5*time.Minute)
	o.Silence = cmp.Or(max(0, o.Silence), 2*time.Minute)
	o.RetryBudget = cmp.Or(max(0, o.RetryBudget), 10*time.Minute)
	o.Backoff = cmp.Or(max(0, o.Backoff), 500*time.Millisecond)
	if o.Transport == nil {
		o.Transport = newTransport(cmp.Or(o.InFlight, MostInFlight))
	}
	c := &Client{opts: o, limiter: &limiter{pace: newPace(o.InFlight)}}
	// A tenth of a second of requests and ten seconds of tokens may come at
	// once: finer pacing would idle, coarser would trip the provider's own
	// meter.
	c.perMin = newBucket(o.RequestsPerMinute, 100*time.Millisecond)
	c.tokens = newBucket(o.TokensPerMinute, 10*time.Second)
	c.purse = purse{caps: o.Caps, tokens: o.Spent.Tokens, cost: o.Spent.Cost, calls: o.Spent.Calls}
	c.redact.Store(&o.Redact)
	return c
}

func newTransport(inFlight int) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           0,
		MaxIdleConnsPerHost:    inFlight,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        32 << 10,
	}
}

// Close drops the idle connections. Requests in flight are their contexts' care.
func (c *Client) Close() {
	if t, ok := c.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Pace is what the server was found to bear until now.
func (c *Client) Pace() Pace {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	p := c.limiter.seen
	p.Limit = c.limiter.places()
	return p
}

// Guard makes the client remove these secrets too from whatever it hands up.
func (c *Client) Guard(secrets ...Secret) {
	for {
		old := c.redact.Load()
		more := old.With(secrets...)
		if c.redact.CompareAndSwap(old, &more) {
			return
		}
	}
}

// Redactor returns what removes the client's secrets.
func (c *Client) Redactor() Redactor { return *c.redact.Load() }

// The causes by which an attempt is cut.
var (
	errTimeout = errors.New("no whole answer within the time for one attempt")
	errSilence = errors.New("the stream fell silent")
	errTooLong = errors.New("the answer is longer than allowed")
	errCut     = errors.New("the answer was cut before its end")
)

// RoundTrip implements [http.RoundTripper]: it sends a request until there is a
// whole, successful answer, or returns an [Error] that says why there is none.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	call := CallOf(ctx)
	if call == nil { // nobody else will say what it took
		call = &Call{}
		defer call.Settle(0, 0)
	}
	body, err := Body(req)
	if err != nil {
		return nil, err
	}
	run := &exchange{Client: c, req: req, call: call, body: body}
	run.seen = c.pending.add(req, call)
	defer c.pending.remove(run.seen)
	return run.send(ctx)
}

type exchange struct {
	*Client
	req   *http.Request
	call  *Call
	body  []byte
	first time.Time // when the first attempt was sent
	began time.Time // when the last attempt was sent
	took  time.Duration
	seen  *inFlight
}

// answer is the outcome of one attempt.
type answer struct {
	resp       *http.Response
	body       []byte
	err        error
	kind       Kind
	said       *Error // by the call's Judge
	ok         bool
	retryAfter time.Duration
	took       time.Duration
}

func (x *exchange) send(ctx context.Context) (resp *http.Response, err error) {
	call, expected := x.call, int64(x.call.Prompt+x.call.Reply)
	cost := call.Price.Cost(call.Prompt, call.Reply)
	if err := x.purse.hold(expected, cost); err != nil {
		return nil, x.located(err)
	}
	settle := func(prompt, completion int) {
		x.limiter.settled(x.began, x.took, prompt, completion)
		x.purse.settle(expected, cost, int64(prompt+completion), call.Price.Cost(prompt, completion))
		x.tokens.take(float64(int64(prompt+completion) - expected))
	}
	defer func() {
		if err != nil {
			// Whether a call that failed cost something, nobody says. It counts
			// as an attempt.
			x.purse.settle(expected, cost, 0, 0)
		} else {
			call.settle = settle
		}
	}()
	for {
		if err := x.purse.attempt(); err != nil {
			return nil, x.located(err)
		}
		a, err := x.attempt(ctx, expected)
		if err != nil {
			return nil, err // the context is over
		}
		call.Body = a.body
		if a.ok {
			x.refused.Store(0)
			h := http.Header{}
			for _, name := range []string{"Content-Type", "X-Request-Id"} {
				if v := a.resp.Header.Get(name); v != "" {
					h.Set(name, x.Redactor().String(v))
				}
			}
			return &http.Response{
				Status: a.resp.Status, StatusCode: a.resp.StatusCode, Proto: a.resp.Proto, ProtoMajor: a.resp.ProtoMajor,
				ProtoMinor: a.resp.ProtoMinor,
				Header:     h, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: x.req,
			}, nil
		}
		wait, more := x.again(a)
		if !more {
			return nil, x.failure(a)
		}
		x.seen.set(BackingOff, x.call.Attempts)
		begun := time.Now()
		err = Sleep(ctx, wait)
		call.Waited += time.Since(begun)
		if err != nil {
			return nil, err
		}
	}
}

// again decides on another attempt and how long to wait for it.
func (x *exchange) again(a *answer) (time.Duration, bool) {
	if most := cmp.Or(x.call.Most, x.opts.Attempts); !a.kind.Retryable() || x.call.Attempts >= most || a.kind == NoAnswer && x.call.Attempts >= noAnswers {
		return 0, false
	}
	// Full jitter around a doubling mean, so that calls that failed together do
	// not come back together.
	mean := min(maxBackoff, x.opts.Backoff<<min(x.call.Attempts-1, 16))
	wait := time.Duration(rand.Int64N(int64(2*mean) + 1))
	wait = max(wait, a.retryAfter)
	return wait, time.Since(x.first)+wait <= x.opts.RetryBudget
}

// Sleep waits. Its error is the cause of ctx, where that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempt waits for its place, sends the request once and reads the answer to
// its end. Its error is the end of ctx; all else is in the answer.
func (x *exchange) attempt(ctx context.Context, tokens int64) (*answer, error) {
	queued := time.Now()
	x.seen.set(Queued, x.call.Attempts)
	if err := Sleep(ctx, max(x.perMin.take(1), x.tokens.take(float64(tokens)))); err != nil {
		x.perMin.take(-1)
		x.tokens.take(-float64(tokens))
		return nil, err
	}
	if err := x.limiter.acquire(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	x.call.Waited += began.Sub(queued)
	if x.call.Attempts++; x.first.IsZero() {
		x.first = began
	}
	x.seen.set(Waiting, x.call.Attempts)

	a := &answer{}
	func() {
		// A place is given back even if a transport panics.
		defer func() {
			a.took = time.Since(began)
			throttled := !a.ok && (a.kind == RateLimited || errors.Is(a.err, errTimeout) ||
				a.resp != nil && a.resp.StatusCode == http.StatusServiceUnavailable)
			pause := a.retryAfter
			if pause > x.opts.RetryBudget {
				pause = 0 // no call waits that long: this one fails, and the others are not to hang
			}
			x.limiter.release(began, throttled, pause)
		}()
		x.once(ctx, began, a)
	}()
	x.call.Took += a.took
	x.began, x.took = began, a.took
	if a.err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return a, nil
}

func (x *exchange) once(ctx context.Context, began time.Time, a *answer) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(x.opts.Timeout, func() { cancel(errTimeout) })
	defer timer.Stop()
	r := x.req.Clone(ctx)
	if x.body != nil {
		r = WithBody(r, x.body)
	}
	a.resp, a.err = x.opts.Transport.RoundTrip(r)
	if a.err == nil {
		x.seen.set(Receiving, x.call.Attempts)
		a.body, a.err = x.read(a.resp, began, cancel)
	}
	if a.err != nil {
		if cause := context.Cause(ctx); cause != nil {
			a.err = cause
		}
	}
	x.judge(a)
}

// read reads a body to its end, within the bounds.
func (x *exchange) read(resp *http.Response, began time.Time, cancel context.CancelCauseFunc) ([]byte, error) {
	defer resp.Body.Close()
	kind := resp.Header.Get("Content-Type")
	stream := strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/x-ndjson")
	body := io.Reader(resp.Body)
	if stream {
		silence := time.AfterFunc(x.opts.Silence, func() { cancel(errSilence) })
		defer silence.Stop()
		x.call.Chunks = x.call.Chunks[:0]
		body = arriving{body, func(n int) {
			silence.Reset(x.opts.Silence)
			x.call.Chunks = append(x.call.Chunks, Chunk{n, time.Since(began)})
		}}
	}
	if resp.ContentLength > x.opts.MaxBody {
		return nil, errTooLong
	}
	raw, err := io.ReadAll(io.LimitReader(body, x.opts.MaxBody+1))
	clean := x.Redactor().Bytes(raw)
	switch {
	case int64(len(raw)) > x.opts.MaxBody:
		return clean, fmt.Errorf("%w: %d bytes", errTooLong, x.opts.MaxBody)
	case err != nil:
		return clean, fmt.Errorf("%w: %w", errCut, err)
	case len(clean) != len(raw) && stream:
		// The pieces no longer fit the text; its times do not matter as much as the
		// secret.
		x.call.Chunks = append(x.call.Chunks[:0], Chunk{len(clean), time.Since(began)})
	}
	return clean, whole(resp, clean, stream)
}

// arriving is told how much comes.
type arriving struct {
	io.Reader
	came func(bytes int)
}

func (a arriving) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	if n > 0 {
		a.came(n)
	}
	return n, err
}

// whole reports an answer that ended where it should not: JSON without its last
// brace, a stream without its end mark.
func whole(resp *http.Response, body []byte, stream bool) error {
	if resp.StatusCode < 200 || resp.StatusCode > 299 || resp.StatusCode == http.StatusNoContent ||
		resp.Request != nil && resp.Request.Method == http.MethodHead {
		return nil
	}
	kind := resp.Header.Get("Content-Type")
	switch {
	case stream && strings.HasPrefix(kind, "text/event-stream"):
		if !bytes.Contains(body, []byte("data: [DONE]")) && !bytes.Contains(body, []byte("data:[DONE]")) && !finished(body) {
			return errCut
		}
	case stream:
		last := bytes.TrimRight(body, " \r\n")
		last = last[bytes.LastIndexByte(last, '\n')+1:]
		var end struct {
			Done  bool            `json:"done"`
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(last, &end) != nil || !end.Done && end.Error == nil {
			return errCut
		}
	case strings.HasPrefix(kind, "application/json"), len(body) > 0 && body[0] == '{':
		var v json.RawMessage
		if e, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &v)); ok && e.Offset >= int64(len(body)) {
			return errCut
		}
	}
	return nil
}

// finished recognises a stream of events that gives its reason to finish, for
// servers that leave out the end mark.
func finished(body []byte) bool {
	i := bytes.LastIndex(body, []byte(`"finish_reason":`))
	if i < 0 {
		return false
	}
	rest := bytes.TrimLeft(body[i+len(`"finish_reason":`):], " ")
	return len(rest) > 0 && rest[0] == '"'
}

// judge says what kind of outcome an attempt had.
func (x *exchange) judge(a *answer) {
	if a.err != nil {
		a.kind = networkKind(a.err)
		return
	}
	s := a.resp.StatusCode
	if s >= 200 && s <= 299 {
		a.ok = true
	}
	if x.call.Judge != nil {
		if a.said = x.call.Judge(s, a.body); a.said != nil {
			a.kind, a.ok = a.said.Kind, false
			a.retryAfter = retryAfter(a.resp.Header, time.Now())
			return
		}
	}
	if a.ok {
		return
	}
	switch s {
	case http.StatusTooManyRequests, 529: // 529: "overloaded", as some providers say it
		a.kind = RateLimited
		if bytes.Contains(a.body, []byte("insufficient_quota")) {
			a.kind = Fatal // the account is empty: waiting does not fill it
		}
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusConflict, http.StatusInternalServerError,
		http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, 520, 521, 522, 523, 524:
		a.kind = Transient
	default:
		a.kind = Fatal
	}
	a.retryAfter = retryAfter(a.resp.Header, time.Now())
}

func networkKind(err error) Kind {
	if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound {
		return Fatal
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return Fatal
	}
	if strings.Contains(err.Error(), "unsupported protocol scheme") ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return Fatal
	}
	return Transient
}

// maxRetryAfter bounds what a server may ask for; longer waits are the budget's
// to refuse.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long the server asks to wait: seconds or a date (RFC 9110
// §10.2.3), or OpenAI's milliseconds.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if v := h.Get("Retry-After-Ms"); v != "" {
		if ms, err := strconv.ParseFloat(v, 64); err == nil && ms > 0 {
			return time.Duration(min(ms, float64(maxRetryAfter/time.Millisecond)) * float64(time.Millisecond))
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if !(s > 0) {
			return 0
		}
		return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(0, t.Sub(now)), maxRetryAfter)
	}
	return 0
}

// failure is the error of a call whose attempts are over.
func (x *exchange) failure(a *answer) error {
	e := &Error{Kind: a.kind}
	if a.err != nil {
		e.Err = a.err
		if s := x.Redactor().String(a.err.Error()); s != a.err.Error() {
			e.Err = errors.New(s)
		}
	} else {
		e.Status, e.After = a.resp.StatusCode, a.retryAfter
		// Once more: decoding may have brought out what escapes had hidden.
		e.Text = text.Clip(x.Redactor().String(message(a.body)), MaxErrorText)
	}
	if e.Hint = hint(e, a); a.said != nil && a.said.Err != nil {
		e.Err, e.Hint = errors.New(x.Redactor().String(a.said.Err.Error())), a.said.Hint
	}
	if e.Kind == Fatal && e.Status != 0 {
		weight := int64(1)
		if Refused(e.Status) {
			weight = refusal
		}
		if x.refused.Add(weight) >= maxRefused {
			e.Kind = GivenUp
		}
	}
	return x.located(e)
}

// Refused reports whether a status says that the key, what it may use, or the name is
// wrong, which no other request to the same server mends.
func Refused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound
}

// Origin is the scheme and the host of an address, without what may be a secret.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (x *exchange) located(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	e.Op = x.req.Method + " " + x.Redactor().String(Inert(x.req.URL.Path, 200))
	e.Server = Origin(x.req.URL)
	e.Attempts, e.Waited = x.call.Attempts, x.call.Waited
	return e
}

func hint(e *Error, a *answer) string {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check the API key (environment variable or key file) and what it may use"
	case http.StatusNotFound:
		return "check the model's name and the base URL (for an OpenAI-compatible server it usually ends in /v1)"
	case http.StatusTooManyRequests:
		if e.Kind == Fatal {
			return "the account's quota is used up"
		}
		return "lower the requests in flight or a minute, or give the retries more time"
	}
	if e.Status >= 300 && e.Status < 400 {
		to, _ := url.Parse(a.resp.Header.Get("Location"))
		if to != nil && to.Host != "" {
			return "redirects are not followed; if " + Inert(to.Host, 100) + " is right, make it the base URL"
		}
		return "redirects are not followed; correct the base URL"
	}
	if e.Err != nil {
		switch s := e.Err.Error(); {
		case strings.Contains(s, "connection refused"):
			return "is a server listening there?"
		case errors.Is(e.Err, errTimeout):
			return "raise the time for one request if the model is only slow"
		case strings.Contains(s, "HTTP response to HTTPS client"):
			return "the server speaks http, not https: correct the base URL"
		}
	}
	return ""
}

// message finds the server's own words in the body of an error: OpenAI's
// {"error":{"message":…}}, Ollama's {"error":…}, either as the last line of a
// stream, or the body itself.
func message(body []byte) string {
	last := bytes.TrimSpace(body)
	last = bytes.TrimPrefix(last[bytes.LastIndexByte(last, '\n')+1:], []byte("data: "))
	for _, b := range [][]byte{body, last} {
		var e struct {
			Error   json.RawMessage `json:"error"`
			Message string          `json:"message"`
		}
		if json.Unmarshal(b, &e) != nil {
			continue
		}
		var inner struct {
			Message string `json:"message"`
		}
		var s string
		switch {
		case json.Unmarshal(e.Error, &inner) == nil && inner.Message != "":
			return inner.Message
		case json.Unmarshal(e.Error, &s) == nil && s != "":
			return s
		case e.Message != "":
			return e.Message
		}
	}
	return string(body)
}
