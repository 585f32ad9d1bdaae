package installed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/memtox/memtox/agents/installed/box"
)

// gateway is a program in a box that answers over HTTP.
type gateway struct {
	*Setup
	box     *box.Box
	process *box.Process
	client  *http.Client
}

// startGateway starts the program of a setup in a box of its own, where it finds the
// memory of the setup and what is prepared, and returns when it is ready.
func startGateway(ctx context.Context, s *Setup, prepare func(*gateway) error,
	ready func(context.Context, *gateway) bool) (_ *gateway, err error) {
	b, err := s.Box()
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx, s.Port) }
	g := &gateway{Setup: s, box: b, client: &http.Client{Transport: &http.Transport{DialContext: dial}}}
	defer func() {
		if err != nil {
			_ = g.Close()
		}
	}()
	if err := s.Write(b.Dir); err != nil {
		return nil, err
	}
	if err := s.Product.Remember(b.Dir, s.Memory); err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := prepare(g); err != nil {
			return nil, err
		}
	}
	args, env, err := s.Command()
	if err != nil {
		return nil, err
	}
	if g.process, err = b.Start(box.Command{Args: args, Env: env}); err != nil {
		return nil, err
	}
	for !ready(ctx, g) {
		select {
		case <-g.process.Done():
			return nil, fmt.Errorf("its gateway did not start: %w; its last words: %s", g.process.Err(), g.process.LastWords())
		case <-ctx.Done():
			return nil, fmt.Errorf("its gateway does not answer: %w; its last words: %s", context.Cause(ctx),
				g.process.LastWords())
		case <-time.After(25 * time.Millisecond):
		}
	}
	return g, nil
}

// answers reports whether a gateway answers at a path.
func answers(path string) func(context.Context, *gateway) bool {
	return func(ctx context.Context, g *gateway) bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url(path), nil)
		if err != nil {
			return false
		}
		resp, err := g.client.Do(r)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}

// Box makes a box for the product, and tells the setup where it is.
func (s *Setup) Box() (*box.Box, error) {
	b, err := box.New(box.Options{Ports: slices.Concat(s.Ports, s.Pages), Keep: s.Found.keep()})
	if err != nil {
		return nil, err
	}
	s.Home, s.Work, s.Tmp = b.Home, b.Work, b.Tmp
	if s.Port, err = b.Port(); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// run runs the program in the box beside the gateway, and returns what it printed.
func (g *gateway) run(ctx context.Context, args ...string) (string, error) {
	_, env, err := g.Command()
	if err != nil {
		return "", err
	}
	return g.box.Run(ctx, box.Command{Args: append([]string{g.Program}, args...), Env: env})
}

func (g *gateway) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", g.Port, path) }

// maxAnswer bounds the answer of a gateway.
const maxAnswer = 8 << 20

// post sends the program a body and returns its answer.
func (g *gateway) post(ctx context.Context, path string, what any, header http.Header) ([]byte, *http.Response, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url(path), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header = header
	resp, err := g.client.Do(r)
	if err != nil {
		return nil, nil, g.gone(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, g.gone(err)
	}
	return b, resp, nil
}

// gone says how the gateway ended where that is why it does not answer.
func (g *gateway) gone(err error) error {
	select {
	case <-g.process.Done():
		return fmt.Errorf("its gateway is gone: %w; its last words: %s", g.process.Err(), g.process.LastWords())
	case <-time.After(farewell):
		return fmt.Errorf("its gateway: %w", err)
	}
}

// farewell is how long is waited for how a gateway ended that broke a connection off.
const farewell = 2 * time.Second

func (g *gateway) Close() error {
	if g.client != nil {
		g.client.CloseIdleConnections()
	}
	return g.box.Close()
}
