package cassette

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// Cassette records or replays. It is safe for concurrent use.
type Cassette struct {
	path   string
	redact func() remote.Redactor // may be nil
	replay bool
	pace   bool
	known  map[key]*exchange // to be served
	alone  remote.Trial      // counts requests outside of trials

	torn bool // the file ended within a line, which was dropped

	mu     sync.Mutex
	tape   *tape // nil while replaying
	broken error // of the tape
	missed int   // requests that were not there
}

// key finds an exchange.
type key struct {
	trial string
	hash  [32]byte
	n     int
}

// Record starts a new file; one that exists is not touched, and is an error.
// redact gives what removes secrets from every line, nil for nothing.
func Record(path string, redact func() remote.Redactor) (*Cassette, error) {
	t, err := startTape(path)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("recording to %s: the file exists; name another, or resume the run that it belongs to", path)
	}
	if err != nil {
		return nil, fmt.Errorf("recording to %s: %w", path, err)
	}
	return &Cassette{path: path, redact: redact, tape: t}, nil
}

// Resume goes on with a recording that was interrupted, or starts one: what was
// answered before is served, not asked again; all else is asked and recorded.
// Requests that failed are asked again.
func Resume(path string, redact func() remote.Redactor) (*Cassette, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Record(path, redact)
	}
	c := &Cassette{path: path, redact: redact}
	err := c.load(func(x *exchange) bool { return x.Error == nil })
	if err == nil && c.torn {
		err = c.mend()
	}
	if err == nil {
		c.tape, err = openTape(path, os.O_APPEND)
	}
	if err != nil {
		return nil, fmt.Errorf("going on with the recording %s: %w", path, err)
	}
	return c, nil
}

// mend writes the whole lines of a torn file to a new one and puts that in its place.
func (c *Cassette) mend() error {
	mended := c.path + ".tmp"
	_ = os.Remove(mended) // of a process that was killed over it
	t, err := startTape(mended)
	if err != nil {
		return err
	}
	_, err = scan(c.path, func(line []byte) error { _, err := t.z.Write(append(line, '\n')); return err })
	if err = errors.Join(err, t.close()); err == nil {
		err = os.Rename(mended, c.path)
	}
	if err != nil {
		_ = os.Remove(mended)
	}
	return err
}

// Options are settings of a replay.
type Options struct {
	// Pace lets answers take as long as they took, and streams come in the
	// pieces in which they came.
	Pace bool
}

// Replay answers from a file and never sends anything.
func Replay(path string, o Options) (*Cassette, error) {
	c := &Cassette{path: path, replay: true, pace: o.Pace}
	if err := c.load(func(*exchange) bool { return true }); err != nil {
		return nil, fmt.Errorf("replaying %s: %w", path, err)
	}
	return c, nil
}

// load reads the answers, without the requests: those are only read again to
// explain a miss.
func (c *Cassette) load(keep func(*exchange) bool) error {
	c.known = map[key]*exchange{}
	var err error
	c.torn, err = scan(c.path, func(line []byte) error {
		x := &exchange{}
		if err := json.Unmarshal(line, x); err != nil {
			return err
		}
		k, err := x.key()
		if err != nil {
			return err
		}
		x.Body, x.Hash = nil, ""
		if keep(x) {
			c.known[k] = x // a trial that was started again has newer answers
		} else {
			delete(c.known, k)
		}
		return nil
	})
	return err
}

func (x *exchange) key() (key, error) {
	k := key{trial: x.Trial, n: x.N}
	b, err := hex.DecodeString(x.Hash)
	if copy(k.hash[:], b); err != nil || len(b) != len(k.hash) {
		return k, fmt.Errorf("the hash %q is not 64 hexadecimal digits", text.Clip(x.Hash, 70))
	}
	return k, nil
}

// Wrap returns a RoundTripper over next, which is not used, and may be nil, in a
// replay. base is the path of the server's address: it is no part of a request,
// so a replay does not depend on where the server was.
func (c *Cassette) Wrap(base string, next http.RoundTripper) http.RoundTripper {
	return remote.RoundTripper(func(r *http.Request) (*http.Response, error) { return c.roundTrip(r, base, next) })
}

func (c *Cassette) roundTrip(r *http.Request, base string, next http.RoundTripper) (*http.Response, error) {
	body, err := remote.Body(r)
	if err != nil {
		return nil, err
	}
	op, canon := operation(r, base), canonical(body)
	trial := remote.TrialOf(r.Context())
	if trial == nil {
		trial = &c.alone
	}
	k := key{trial: trial.ID, hash: hashOf(op, canon)}
	k.n = trial.Nth(k.hash)
	call := remote.CallOf(r.Context())
	if call == nil {
		call = &remote.Call{}
		r = r.WithContext(remote.WithCall(r.Context(), call))
	}
	if x, ok := c.known[k]; ok {
		return c.serve(r, x, call)
	}
	if c.replay {
		return nil, c.miss(r, k, op, canon)
	}
	x := &exchange{Trial: k.trial, Hash: hex.EncodeToString(k.hash[:]), N: k.n, Op: op}
	switch {
	case json.Valid(canon):
		x.Body = canon
	case len(canon) > 0:
		x.Body, _ = json.Marshal(string(canon))
	}
	return c.live(remote.WithBody(r, body), next, x, call)
}

// live asks, records and answers.
func (c *Cassette) live(r *http.Request, next http.RoundTripper, x *exchange, call *remote.Call) (*http.Response,
	error) {
	began := time.Now()
	resp, err := next.RoundTrip(r)
	if err == nil {
		var body []byte
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxLine/2))
		_ = resp.Body.Close()
		if err == nil {
			x.Status, x.Type = resp.StatusCode, resp.Header.Get("Content-Type")
			if utf8.Valid(body) {
				x.Answer = string(body)
			} else {
				x.Binary = body
			}
			for _, ch := range call.Chunks {
				x.Chunks = append(x.Chunks, [2]int64{int64(ch.Bytes), ch.At.Microseconds()})
			}
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
	}
	if err != nil {
		e, ok := errors.AsType[*remote.Error](err)
		if !ok || e.Kind == remote.CapReached || e.Kind == remote.NotRecorded || e.Kind == remote.GivenUp {
			return nil, err // says nothing about the model
		}
		x.Error = &failure{Kind: e.Kind.String(), Status: e.Status, Text: e.Text, Hint: e.Hint}
		if e.Err != nil {
			x.Error.Cause = e.Err.Error()
		}
	}
	x.Attempts, x.Took, x.Waited = max(1, call.Attempts), cmp.Or(call.Took, time.Since(began)).Microseconds(),
		call.Waited.Microseconds()
	// What is replayed has microseconds: so has what is recorded.
	call.Took = time.Duration(x.Took) * time.Microsecond
	if werr := c.write(x); werr != nil {
		return nil, &remote.Error{Kind: remote.Fatal, Op: x.Op, Server: remote.Origin(r.URL),
			Err: fmt.Errorf("recording to %s: %w", c.path, werr)}
	}
	return resp, err
}

func (c *Cassette) write(x *exchange) error {
	line, err := remote.Line(x)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if c.redact != nil {
		line = c.redact().Bytes(line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil && c.tape == nil {
		c.broken = errors.New("the cassette is closed")
	}
	if c.broken == nil {
		c.broken = c.tape.append(line)
	}
	return c.broken
}

// serve answers from the file.
func (c *Cassette) serve(r *http.Request, x *exchange, call *remote.Call) (*http.Response, error) {
	began := time.Now()
	call.Attempts = x.Attempts
	call.Took, call.Waited = time.Duration(x.Took)*time.Microsecond, time.Duration(x.Waited)*time.Microsecond
	call.Chunks = nil
	for _, ch := range x.Chunks {
		call.Chunks = append(call.Chunks, remote.Chunk{Bytes: int(ch[0]), At: time.Duration(ch[1]) * time.Microsecond})
	}
	if err := r.Context().Err(); err != nil {
		return nil, context.Cause(r.Context())
	}
	if c.pace && len(x.Chunks) == 0 {
		if err := remote.Sleep(r.Context(), call.Took-time.Since(began)); err != nil {
			return nil, err
		}
	}
	if e := x.Error; e != nil {
		kind, ok := remote.ParseKind(e.Kind)
		if !ok {
			return nil, fmt.Errorf("replaying %s: there is no kind of error %q", c.path, e.Kind)
		}
		out := &remote.Error{Kind: kind, Op: r.Method + " " + r.URL.Path, Server: remote.Origin(r.URL), Status: e.Status, Text: e.Text,
			Hint: e.Hint, Attempts: x.Attempts, Waited: call.Waited}
		if e.Cause != "" {
			out.Err = errors.New(e.Cause)
		}
		return nil, out
	}
	body := []byte(x.Answer)
	if x.Binary != nil {
		body = x.Binary
	}
	call.Body = body
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status)), StatusCode: x.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: int64(len(body)), Request: r,
		Body: io.NopCloser(bytes.NewReader(body)),
	}
	if x.Type != "" {
		resp.Header.Set("Content-Type", x.Type)
	}
	if c.pace && len(call.Chunks) > 0 {
		resp.Body = &paced{ctx: r.Context(), began: began, rest: body, chunks: call.Chunks}
	}
	return resp, nil
}

// paced is a body whose pieces come when they came.
type paced struct {
	ctx    context.Context
	began  time.Time
	rest   []byte
	chunks []remote.Chunk
	left   int // of the piece that is being read
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if p.left == 0 && len(p.chunks) > 0 {
		if err := remote.Sleep(p.ctx, time.Until(p.began.Add(p.chunks[0].At))); err != nil {
			return 0, err
		}
		p.left = max(0, p.chunks[0].Bytes)
		p.chunks = p.chunks[1:]
	}
	if len(p.chunks) == 0 {
		p.left = len(p.rest)
	}
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.left, len(p.rest))])
	p.rest, p.left = p.rest[n:], p.left-n
	return n, nil
}

// Close implements io.Closer.
func (p *paced) Close() error { return nil }

// Close ends the file of a recording.
func (c *Cassette) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tape == nil {
		return nil
	}
	err := c.tape.close()
	c.tape = nil
	if err != nil {
		return fmt.Errorf("closing the recording %s: %w", c.path, err)
	}
	return nil
}

// explained is how many misses are explained: each takes reading the whole file,
// and the first ones say it all.
const explained = 3

// miss is the error of a request that is not on the cassette.
func (c *Cassette) miss(r *http.Request, k key, op string, canon []byte) error {
	c.mu.Lock()
	c.missed++
	tell := c.missed <= explained
	c.mu.Unlock()
	trial := "outside of any trial"
	if k.trial != "" {
		trial = "of trial " + k.trial
	}
	why := "the differences of earlier requests say why"
	if tell {
		var err error
		if why, err = c.nearest(k, op, canon); err != nil {
			why = "reading the file again: " + err.Error()
		}
	}
	e := remote.Spoilt(remote.NotRecorded, "a request %s is not on the cassette %s: %s", trial, filepath.Base(c.path), why)
	e.Op, e.Server = op, remote.Origin(r.URL)
	return e
}

// nearest finds the recorded request that is most like one and says where the
// two first differ.
func (c *Cassette) nearest(k key, op string, canon []byte) (string, error) {
	want := hex.EncodeToString(k.hash[:])
	times, others, sameOp := 0, 0, 0
	var best []byte
	bestTrial, bestLen := false, -1
	var bestName string
	_, err := scan(c.path, func(line []byte) error {
		var x exchange
		if err := json.Unmarshal(line, &x); err != nil {
			return err
		}
		own := x.Trial == k.trial
		if x.Hash == want {
			if own {
				times = max(times, x.N)
			} else {
				others++
			}
		}
		if x.Op != op {
			return nil
		}
		sameOp++
		if n := common(x.Body, canon); own && !bestTrial || own == bestTrial && n > bestLen {
			best, bestTrial, bestLen, bestName = bytes.Clone(x.Body), own, n, x.Trial
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case times > 0:
		return fmt.Sprintf("the recorded trial made it %d times, this is time %d", times, k.n), nil
	case others > 0:
		return "the same request is there, but only for other trials: the dataset, the arm or the epoch is another", nil
	case sameOp == 0:
		return "it holds no request to " + op, nil
	}
	where := "the nearest one of this trial"
	if !bestTrial {
		where = "nothing of this trial is there; the nearest request, of trial " + bestName + ","
	}
	return where + " differs " + difference(best, canon), nil
}

func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// difference describes the first difference of two canonical bodies, as a JSON
// pointer (RFC 6901) and the two values there.
func difference(recorded, asked []byte) string {
	a, b := jsontext.NewDecoder(bytes.NewReader(recorded)), jsontext.NewDecoder(bytes.NewReader(asked))
	for {
		within, n := a.StackIndex(a.StackDepth())
		fromA, fromB := a.InputOffset(), b.InputOffset()
		x, errA := a.ReadToken()
		y, errB := b.ReadToken()
		switch {
		case errA == io.EOF && errB == io.EOF:
			return "only in how it is spelled (escapes)"
		case errA != nil || errB != nil:
			return "from " + parting(string(recorded), string(asked))
		case x.Kind() == y.Kind() && x.String() == y.String():
			continue
		case within == '{' && n%2 == 0: // members are sorted: the name that comes first is missing in the other
			if fromA, fromB = a.InputOffset(), b.InputOffset(); y.Kind() == '}' || x.Kind() != '}' && x.String() < y.String() {
				return fmt.Sprintf("at %s: recorded %s, asked nothing", a.StackPointer(), show(recorded, fromA))
			}
			return fmt.Sprintf("at %s: recorded nothing, asked %s", b.StackPointer(), show(asked, fromB))
		case x.Kind() == ']':
			return fmt.Sprintf("at %s: recorded nothing, asked %s", b.StackPointer(), show(asked, fromB))
		case y.Kind() == ']':
			return fmt.Sprintf("at %s: recorded %s, asked nothing", a.StackPointer(), show(recorded, fromA))
		case x.Kind() == '"' && y.Kind() == '"':
			return fmt.Sprintf("at %s from %s", a.StackPointer(), parting(x.String(), y.String()))
		}
		return fmt.Sprintf("at %s: recorded %s, asked %s", a.StackPointer(), show(recorded, fromA), show(asked, fromB))
	}
}

// parting says where two texts part, and how they go on.
func parting(recorded, asked string) string {
	i := common([]byte(recorded), []byte(asked))
	return fmt.Sprintf("byte %d on: recorded %q, asked %q", i, excerpt(recorded, i), excerpt(asked, i))
}

// show is the value that begins at an offset of canonical JSON, behind what parts it
// from the last.
func show(body []byte, from int64) string {
	v, _ := jsontext.NewDecoder(bytes.NewReader(bytes.TrimLeft(body[from:], ",:"))).ReadValue()
	return text.Clip(string(v), 80)
}

// excerpt is what stands around a byte of a text.
func excerpt(s string, i int) string {
	from := max(0, i-10)
	for from > 0 && s[from]&0xC0 == 0x80 {
		from--
	}
	return text.Clip(s[from:], 50)
}
