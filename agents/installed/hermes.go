package installed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

func init() { drivers["hermes"] = func() Driver { return hermes{} } }

// hermes starts a gateway for every trial: it is up in a second or two, and shares
// nothing with another.
type hermes struct{}

func (hermes) Close() error { return nil }

func (hermes) Start(ctx context.Context, s *Setup) (Instance, error) {
	g, err := startGateway(ctx, s, nil, answers("/health"))
	if err != nil {
		return nil, err
	}
	t := &hermesTrial{gateway: g}
	if t.begun, err = s.Product.Look(g.box.Dir, nil); err != nil {
		_ = g.Close()
		return nil, err
	}
	return t, nil
}

// hermesTrial is a gateway in its trial.
type hermesTrial struct {
	*gateway
	begun *Picture // what it remembered, and what its files said, when it began

	session string
	turns   int // of the session
	asked   int // by the model in the last turn
}

func (g *hermesTrial) Session(context.Context) error {
	g.session, g.turns = secret(), 0
	return nil
}

func (g *hermesTrial) Say(ctx context.Context, said string) (string, error) {
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

// A review follows a turn after so many user turns of a session, or rounds of tool calls in
// one turn. It begins half a second later, and what it calls is up to a second apart.
const (
	reviewed     = 10
	reviewBegins = 5 * time.Second
	reviewRests  = 2 * time.Second
)

func (g *hermesTrial) Settle(ctx context.Context) error {
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
func (g *hermesTrial) Job(ctx context.Context, prompt string) (string, error) {
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
	if _, err := g.run(ctx, "cron", "tick"); err != nil {
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

func (g *hermesTrial) Memory(context.Context) ([]Item, error) {
	p, err := g.Product.Look(g.box.Dir, g.begun)
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}

func (g *hermesTrial) Load(_ context.Context, items []Item) error {
	return g.Product.Remember(g.box.Dir, items)
}

// Dir implements [Folder].
func (g *hermesTrial) Dir() string { return g.box.Dir }
