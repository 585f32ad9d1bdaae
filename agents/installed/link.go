package installed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/settings"
)

// slowest is how long a product may take for one step, if external_timeout says no more.
const slowest = 3 * time.Minute

// New makes the agent of a spec, installed:PRODUCT or installed:PRODUCT:PATH, see
// [external.Product]. Nothing is started before it is greeted.
func (s Surroundings) New(spec string, o external.Options) (*external.Agent, error) {
	name, path, _ := external.Product(spec)
	p := Find(name)
	if p == nil {
		return nil, settings.Unknown("", "product", name, Names())
	}
	if drivers[name] == nil {
		return nil, fmt.Errorf("%s cannot be driven yet", p.Title)
	}
	if err := p.takes(o.Channels); err != nil {
		return nil, err
	}
	o.Timeout = max(o.Timeout, slowest)
	o.Agent, o.Switches = p.Gates(), p.Own
	for _, s := range p.Stores {
		if s.User {
			o.Stores = append(o.Stores, memory.StoreSpec{Name: s.Name, Title: s.Name, Kind: memory.Entries})
		}
	}
	o.Behind = func(m model.Model) model.Model { return Behind(p, m) }
	find := s.finder(p, path)
	var channels []string
	for _, via := range o.Channels {
		channels = append(channels, strings.TrimSuffix(via, external.Later))
	}
	o.Dial = func() (external.Link, error) { return newLink(p, find, channels) }
	return external.New(spec, o)
}

// finder finds a product once.
func (s Surroundings) finder(p *Product, named string) func() (*Installation, error) {
	return sync.OnceValues(func() (*Installation, error) {
		i, err := p.Find(context.Background(), s, named)
		if err != nil {
			return nil, &settings.Problem{What: p.Title + " cannot be started", Err: err,
				Hint: "see memtox agents doctor " + p.Name}
		}
		return i, nil
	})
}

func (s Surroundings) dial(p *Product, named string) (external.Link, error) {
	return newLink(p, s.finder(p, named), nil)
}

func newLink(p *Product, find func() (*Installation, error), channels []string) (external.Link, error) {
	f, err := listen()
	if err != nil {
		return nil, err
	}
	return &link{product: p, find: find, front: f, driver: drivers[p.Name](), channels: channels}, nil
}

// drivers make the drivers of the products.
var drivers = map[string]func() Driver{}

// link speaks the protocol of an agent outside memtox in the name of a product: one trial
// at a time.
type link struct {
	product *Product
	find    func() (*Installation, error)
	front   *front
	driver  Driver
	// channels are those by which content comes in the run.
	channels []string

	inst   Instance // of the trial under way
	setup  *Setup
	there  []*placed // that was brought in this session
	job    bool      // the next turn is a job's
	done   chan result
	cancel context.CancelFunc // of what is under way
	open   *toolCall          // that waits for its result
}

// result is what became of a user turn, or of a session's end.
type result struct {
	answer string
	err    error
}

// Exchange implements [external.Link].
func (l *link) Exchange(ctx context.Context, m *external.Message) (*external.Reply, error) {
	r, err := l.exchange(ctx, m)
	if err != nil {
		l.end()
		return nil, err
	}
	r.ID = m.ID
	return r, nil
}

var done = external.Reply{Done: true}

func (l *link) exchange(ctx context.Context, m *external.Message) (*external.Reply, error) {
	r := done
	if l.inst == nil && m.Op != external.Hello && m.Op != external.Reset {
		return nil, errors.New("it is not running any more")
	}
	switch m.Op {
	case external.Hello:
		i, err := l.find()
		if err != nil {
			return nil, err
		}
		r.Name, r.Skills = l.product.Name, l.product.Skills
		r.Version = i.Version + " configuration " + l.product.digest
		return &r, nil
	case external.Reset:
		return &r, l.reset(ctx, m)
	case external.Load:
		return &r, l.inst.Load(ctx, l.items(m.Memories))
	case external.Session:
		return &r, l.inst.Session(ctx)
	case external.Turn:
		say := l.inst.Say
		if l.job {
			j, ok := l.inst.(scheduler)
			if !ok {
				return nil, errors.New("it runs no jobs")
			}
			say, l.job = j.Job, false
		}
		l.begin(func(ctx context.Context) (string, error) { return say(ctx, m.User) })
		return l.wait(ctx, m.Op)
	case external.End:
		if err := l.clear(); err != nil {
			return nil, err
		}
		l.begin(func(ctx context.Context) (string, error) { return "", l.inst.Settle(ctx) })
		return l.wait(ctx, m.Op)
	case external.Result:
		if l.open == nil {
			return nil, errors.New("a result came that nobody waits for")
		}
		l.open.result <- m.Content
		op := l.open.op
		l.open = nil
		return l.wait(ctx, op)
	case external.Dump:
		items, err := l.inst.Memory(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading its memory: %w", err)
		}
		all := []external.Memory{}
		for _, i := range items {
			all = append(all, external.Memory{Value: i.Text})
		}
		r.Memories = &all
		return &r, nil
	}
	return nil, fmt.Errorf("there is no operation %q", m.Op)
}

// begin does something in the background, while tools are called.
func (l *link) begin(do func(context.Context) (string, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	finished := make(chan result, 1)
	l.done, l.cancel = finished, cancel
	go func() {
		answer, err := do(ctx)
		finished <- result{answer, err}
	}()
}

// wait returns the next call of a tool, or how what was begun ended.
func (l *link) wait(ctx context.Context, op string) (*external.Reply, error) {
	r := done
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case c := <-l.front.calls:
		c.op, l.open = op, c
		return &external.Reply{Call: &external.Call{Name: c.name, Args: c.args}}, nil
	case d := <-l.done:
		l.cancel()
		l.done = nil
		if d.err != nil {
			return nil, d.err
		}
		if op == external.Turn {
			r = external.Reply{Answer: &d.answer}
		}
		return &r, nil
	}
}

// reset starts the product anew.
func (l *link) reset(ctx context.Context, m *external.Message) error {
	l.end()
	found, err := l.find()
	if err != nil {
		return err
	}
	if m.Model == nil {
		return errors.New("the run has no model for it")
	}
	var tools []tool
	if err := json.Unmarshal(m.Tools, &tools); err != nil {
		return fmt.Errorf("the tools of the trial: %w", err)
	}
	at, err := l.front.serve(m.Model.BaseURL, tools)
	if err != nil {
		return err
	}
	s := &Setup{Product: l.product, Found: found, Program: found.Program, ModelURL: at + "v1", ModelName: m.Model.Name,
		ModelKey: "memtox-" + secret(), ToolsURL: at + "mcp", PagesURL: at + "pages", Channels: l.channels,
		Memory: l.items(m.Memories), Secret: secret(), Ports: []int{l.front.port}, Traffic: l.front.traffic(),
		Own: m.Own}
	l.setup = s
	for _, t := range tools {
		s.Tools = append(s.Tools, t.Function.Name)
	}
	if l.inst, err = l.driver.Start(ctx, s); err != nil {
		l.inst = nil
		return fmt.Errorf("starting %s: %w", l.product.Title, err)
	}
	return nil
}

// items are memories as entries of the product's stores: of the first, where none is named.
func (l *link) items(all []external.Memory) (out []Item) {
	for _, m := range all {
		i := slices.IndexFunc(l.product.Stores, func(s Store) bool { return s.User && s.Name == m.Store })
		s := &l.product.Stores[max(0, i)]
		out = append(out, Item{Store: s.Name, File: s.File, Text: strings.TrimSpace(m.Value)})
	}
	return out
}

// end ends the trial that is under way.
func (l *link) end() {
	if l.done != nil {
		l.cancel()
		<-l.done
		l.done = nil
	}
	l.open, l.there, l.job = nil, nil, false
	l.front.close()
	if l.inst != nil {
		_ = l.inst.Close()
		l.inst = nil
	}
}

// Over implements [external.Over].
func (l *link) Over() { l.end() }

// Close implements [external.Link].
func (l *link) Close() {
	l.end()
	_ = l.driver.Close()
	l.front.stop()
}

// tool is one of the trial's, as an OpenAI chat request has it.
type tool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}
