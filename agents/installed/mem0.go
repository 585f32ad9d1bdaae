package installed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

func init() { drivers["mem0"] = func() Driver { return &mem0{} } }

// mem0 keeps one process for all trials: to load the library takes longer than a trial.
// Each trial has a store of its own, and nothing that the model calls runs in the process.
type mem0 struct {
	gate *gateway // nil before the first trial, and where one failed
}

func (d *mem0) Start(ctx context.Context, s *Setup) (_ Instance, err error) {
	if d.gate == nil {
		own := *s // it outlives the trial, and remembers nothing
		own.Memory = nil
		if d.gate, err = startGateway(ctx, &own, nil, answers("/")); err != nil {
			d.gate = nil
			return nil, err
		}
	}
	t := &mem0Trial{driver: d, setup: s}
	err = t.ask(ctx, object{"do": "begin", "url": s.ModelURL, "key": s.ModelKey, "model": s.ModelName,
		"tools": s.ToolsURL, "memories": texts(s.Memory)}, nil)
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

func (d *mem0) Close() error {
	if d.gate == nil {
		return nil
	}
	g := d.gate
	d.gate = nil
	return g.Close()
}

type object = map[string]any

// mem0Trial is a trial of the program.
type mem0Trial struct {
	driver *mem0
	setup  *Setup
	failed bool
}

// ask has the program do something. After an error it serves no other trial.
func (t *mem0Trial) ask(ctx context.Context, what object, into any) (err error) {
	defer func() { t.failed = t.failed || err != nil }()
	b, resp, err := t.driver.gate.post(ctx, "/", what, http.Header{})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it says %s", remote.Quote(text.Clip(string(b), 300)))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

func (t *mem0Trial) Session(ctx context.Context) error {
	return t.ask(ctx, object{"do": "session"}, nil)
}

func (t *mem0Trial) Say(ctx context.Context, said string) (answer string, err error) {
	err = t.ask(ctx, object{"do": "say", "message": said}, &answer)
	return answer, err
}

// Settle has nothing to wait for: all is stored before an answer comes.
func (t *mem0Trial) Settle(ctx context.Context) error { return t.setup.Traffic.Quiet(ctx, 0) }

func (t *mem0Trial) Memory(ctx context.Context) (out []Item, err error) {
	var all []string
	err = t.ask(ctx, object{"do": "memories"}, &all)
	for _, m := range all {
		out = append(out, Item{Store: t.setup.Product.Stores[0].Name, Text: m})
	}
	return out, err
}

func (t *mem0Trial) Load(ctx context.Context, items []Item) error {
	return t.ask(ctx, object{"do": "load", "memories": texts(items)}, nil)
}

func texts(items []Item) []string {
	out := []string{}
	for _, i := range items {
		out = append(out, i.Text)
	}
	return out
}

func (t *mem0Trial) Close() error {
	if !t.failed {
		return nil
	}
	return t.driver.Close()
}
