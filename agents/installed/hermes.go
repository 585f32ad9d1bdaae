package installed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/installed/box"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

func init() { drivers["hermes"] = func() Driver { return hermes{} } }

// hermes starts a gateway for every trial: it is up in a second or two, and shares
// nothing with another.
type hermes struct{}

func (hermes) Close() error { return nil }

func (hermes) Start(ctx context.Context, s *Setup) (Instance, error) {
	g, err := startGateway(ctx, s, "/health")
	if err != nil {
		return nil, err
	}
	if g.begun, err = s.Product.Look(g.box.Dir, nil); err != nil {
		_ = g.Close()
		return nil, err
	}
	return g, nil
}

// startGateway starts the program of a setup in a box of its own, where it finds the
// memory of the setup, and returns when it answers at a path.
func startGateway(ctx context.Context, s *Setup, path string) (_ *gateway, err error) {
	b, err := s.Box()
	if err != nil {
		return nil, err
	}
	g := &gateway{Setup: s, box: b}
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
	args, env, err := s.Command()
	if err != nil {
		return nil, err
	}
	if g.process, err = b.Start(box.Command{Args: args, Env: env}); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx, s.Port) }
	g.client = &http.Client{Transport: &http.Transport{DialContext: dial}}
	return g, g.up(ctx, path)
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

// run runs the program in the box beside what runs there, and returns what it printed.
func (s *Setup) run(ctx context.Context, b *box.Box, args ...string) (string, error) {
	_, env, err := s.Command()
	if err != nil {
		return "", err
	}
	return b.Run(ctx, box.Command{Args: append([]string{s.Program}, args...), Env: env})
}

// gateway is a program in a box that answers over HTTP: that of HERMES, or of mem0.
type gateway struct {
	*Setup
	box     *box.Box
	process *box.Process
	client  *http.Client
	begun   *Picture // what it remembered, and what its files said, when it began

	session string
	turns   int // of the session
	asked   int // by the model in the last turn
}

// up waits until the gateway answers.
func (g *gateway) up(ctx context.Context, path string) error {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url(path), nil)
		if err != nil {
			return err
		}
		if resp, err := g.client.Do(r); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-g.process.Done():
			return fmt.Errorf("its gateway did not start: %w; its last words: %s", g.process.Err(), g.process.LastWords())
		case <-ctx.Done():
			return fmt.Errorf("its gateway does not answer: %w; its last words: %s", context.Cause(ctx), g.process.LastWords())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func (g *gateway) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", g.Port, path) }

func (g *gateway) Session(context.Context) error {
	g.session, g.turns = secret(), 0
	return nil
}

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

func (g *gateway) Say(ctx context.Context, said string) (string, error) {
	begun := g.Traffic.Begun()
	b, resp, err := g.post(ctx, "/v1/chat/completions",
		object{"model": g.ModelName, "stream": false, "messages": []object{{"role": "user", "content": said}}},
		http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + g.Secret},
			"X-Hermes-Session-Id": {g.session}})
	if err != nil {
		return "", err
	}
	var answer struct {
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(b, &answer); err != nil || resp.StatusCode != http.StatusOK || len(answer.Choices) != 1 {
		return "", fmt.Errorf("its gateway answers %s: %s", resp.Status, remote.Quote(text.Clip(string(b), 300)))
	}
	if why := answer.Choices[0].FinishReason; why == "error" {
		return "", fmt.Errorf("its gateway says that the turn failed: %s",
			remote.Quote(text.Clip(answer.Choices[0].Message.Content, 300)))
	}
	g.turns++
	g.asked = g.Traffic.Begun() - begun
	return answer.Choices[0].Message.Content, nil
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

// A review follows a turn after so many user turns of a session, or rounds of tool calls in
// one turn. It begins half a second later, and what it calls is up to a second apart.
const (
	reviewed     = 10
	reviewBegins = 5 * time.Second
	reviewRests  = 2 * time.Second
)

func (g *gateway) Settle(ctx context.Context) error {
	if g.turns < reviewed && g.asked < reviewed {
		return g.Traffic.Quiet(ctx, 0)
	}
	if err := g.Traffic.Await(ctx, g.Traffic.Begun(), reviewBegins); err != nil {
		return err
	}
	return g.Traffic.Quiet(ctx, reviewRests)
}

// Where the product has its jobs, and what came of them, in folders by their ids.
const (
	jobs    = "home/.hermes/cron/jobs.json"
	results = "home/.hermes/cron/output/"
)

// Job implements [scheduler]. Its gateway looks once a minute for what is due: a process of
// its own does so at once.
func (g *gateway) Job(ctx context.Context, prompt string) (string, error) {
	now := time.Now().UTC()
	id, at := fmt.Sprintf("%012x", now.UnixMilli()), now.Format(time.RFC3339)
	b, err := json.Marshal(object{"jobs": []object{{"id": id, "name": "news", "prompt": prompt, "script": "news.sh",
		"schedule": object{"kind": "once", "run_at": at, "display": "once"}, "repeat": object{"times": 1, "completed": 0},
		"enabled": true, "state": "scheduled", "created_at": at, "next_run_at": at, "deliver": "local"}}})
	if err == nil {
		err = write(g.box.Dir, jobs, string(b))
	}
	if err != nil {
		return "", err
	}
	if _, err := g.run(ctx, g.box, "cron", "tick"); err != nil {
		return "", err
	}
	for left := id; strings.Contains(left, id); { // its gateway may have been first
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("its job did not end: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
		if left, err = read(g.box.Dir, jobs); err != nil {
			return "", err
		}
	}
	files, err := match(g.box.Dir, results+id+"/*.md")
	if err != nil || len(files) != 1 {
		return "", cmp.Or(err, fmt.Errorf("its job left %d results", len(files)))
	}
	said, err := read(g.box.Dir, files[0])
	if title, _, _ := strings.Cut(said, "\n"); strings.Contains(title, "(FAILED)") {
		_, why, _ := strings.Cut(said, "\n## Error\n")
		err = fmt.Errorf("its job failed: %s", remote.Quote(text.Clip(strings.TrimSpace(why), 300)))
	}
	if err == nil {
		err = remove(g.box.Dir, jobs) // that the user had one is nothing that it remembers
	}
	_, answer, _ := strings.Cut(said, "\n## Response\n\n")
	return strings.TrimSpace(answer), err
}

func (g *gateway) Memory(context.Context) ([]Item, error) {
	p, err := g.Product.Look(g.box.Dir, g.begun)
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}

func (g *gateway) Load(_ context.Context, items []Item) error {
	return g.Product.Remember(g.box.Dir, items)
}

// Dir implements [Folder].
func (g *gateway) Dir() string { return g.box.Dir }

func (g *gateway) Close() error {
	if g.client != nil {
		g.client.CloseIdleConnections()
	}
	return g.box.Close()
}
