package installed

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memtox/memtox/internal/remote"
)

// front is what a product reaches of memtox: a port of this machine, at which the trial
// under way has its model and its tools.
type front struct {
	port  int
	stop  func()
	calls chan *toolCall

	mu    sync.Mutex
	trial *stand // nil between trials
}

// stand is what stands at the port for one trial.
type stand struct {
	token string
	model http.Handler
	tools http.Handler
	pages pages
	over  chan struct{}
	Traffic
}

// toolCall is a call of one of the trial's tools.
type toolCall struct {
	name   string
	args   json.RawMessage
	op     string // during which it came
	result chan string
}

func secret() string { return strings.ToLower(rand.Text()) }

// open serves a handler at a port of this machine, until it is stopped.
func open(h http.Handler) (port int, stop func(), err error) {
	ctx, end := context.WithCancel(context.Background())
	l, err := remote.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		end()
		return 0, nil, fmt.Errorf("making a port for the product: %w", err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = remote.Serve(ctx, l, &http.Server{Handler: h}, 0)
	}()
	return l.Addr().(*net.TCPAddr).Port, func() { end(); <-served }, nil
}

// listen opens a port.
func listen() (*front, error) {
	f := &front{calls: make(chan *toolCall)}
	port, stop, err := open(f)
	f.port, f.stop = port, func() { f.close(); stop() }
	return f, err
}

// ServeHTTP implements [http.Handler]. What asks for anything else than its trial's model
// and tools is told that there is nothing: products ask who answers here.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	t := f.trial
	f.mu.Unlock()
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case t == nil || token != t.token:
	case (rest == "v1/chat/completions" || rest == "v1/embeddings") && r.Method == http.MethodPost:
		defer t.begin()()
		t.model.ServeHTTP(w, r)
		return
	case rest == "mcp":
		t.tools.ServeHTTP(w, r)
		return
	case strings.HasPrefix(rest, "pages/"):
		defer t.begin()()
		t.pages.serve(w, r, strings.TrimPrefix(rest, "pages/"))
		return
	}
	http.NotFound(w, r)
}

// serve begins a trial, whose model answers at an address, and returns the address at this
// port below which its model (v1), its tools (mcp) and its pages (pages) are.
func (f *front) serve(base string, tools []tool) (string, error) {
	to, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("the address of the model: %w", err)
	}
	t := &stand{token: secret(), over: make(chan struct{}), Traffic: Traffic{changed: make(chan struct{})}}
	t.model = &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			_, what, _ := strings.Cut(r.In.URL.Path, "/v1")
			r.Out.URL.Path, r.Out.URL.RawPath = to.Path+what, ""
			r.Out.Host = to.Host
			r.Out.Header.Del("Authorization") // the product's own, and the relay needs none
		}}
	t.tools = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return f.server(t, tools) },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	f.mu.Lock()
	f.trial = t
	f.mu.Unlock()
	return fmt.Sprintf("http://127.0.0.1:%d/%s/", f.port, t.token), nil
}

// traffic is that of the trial under way.
func (f *front) traffic() *Traffic { return &f.trial.Traffic }

// close ends the trial under way: nothing answers any more.
func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trial != nil {
		close(f.trial.over)
		f.trial = nil
	}
}

// server offers the trial's tools.
func (f *front) server(t *stand, tools []tool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "memtox", Version: "1"}, nil)
	for _, o := range tools {
		name := o.Function.Name
		s.AddTool(&mcp.Tool{Name: name, Description: o.Function.Description, InputSchema: o.Function.Parameters},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				c := &toolCall{name: name, args: r.Params.Arguments, result: make(chan string, 1)}
				if len(c.args) == 0 {
					c.args = json.RawMessage("{}")
				}
				defer t.begin()()
				select {
				case f.calls <- c:
				case <-t.over:
					return nil, errOver
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				select {
				case said := <-c.result:
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
				case <-t.over:
					return nil, errOver
				}
			})
	}
	return s
}

var errOver = fmt.Errorf("the trial is over")

// Traffic counts what a product asks of its model and of the trial's tools.
type Traffic struct {
	mu      sync.Mutex
	begun   int
	open    int
	last    time.Time     // when something began or ended
	changed chan struct{} // is closed then
}

// begin notes that something begins, and returns what notes that it ended.
func (t *Traffic) begin() (end func()) {
	note := func(begun, open int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.begun, t.open, t.last = t.begun+begun, t.open+open, time.Now()
		close(t.changed)
		t.changed = make(chan struct{})
	}
	note(1, 1)
	return func() { note(0, -1) }
}

// Begun is how many requests have begun.
func (t *Traffic) Begun() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun
}

// Quiet returns once nothing is asked and nothing was for so long.
func (t *Traffic) Quiet(ctx context.Context, long time.Duration) error {
	return t.until(ctx, func() (bool, time.Duration) {
		return t.open == 0 && time.Since(t.last) >= long, long - time.Since(t.last)
	})
}

// Await returns once more requests have begun than so many, at the latest after a time.
func (t *Traffic) Await(ctx context.Context, begun int, most time.Duration) error {
	end := time.Now().Add(most)
	return t.until(ctx, func() (bool, time.Duration) {
		return t.begun > begun || time.Now().After(end), time.Until(end)
	})
}

// until waits for a condition, which also says when it may hold without a change.
func (t *Traffic) until(ctx context.Context, holds func() (bool, time.Duration)) error {
	for {
		t.mu.Lock()
		ok, after := holds()
		changed := t.changed
		t.mu.Unlock()
		if ok {
			return nil
		}
		timer := time.NewTimer(max(after, time.Millisecond))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}
