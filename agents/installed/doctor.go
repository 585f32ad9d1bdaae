package installed

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/semver"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/installed/box"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
)

// Examine tries whether a run with a product would work: whether it is there, in a version
// that was tried, whether the system can hold it to its box, and whether it starts, answers
// and shows its memory. named is where it is; "" has it looked for.
func (p *Product) Examine(ctx context.Context, s Surroundings, named string) []model.Check {
	i, err := p.Find(ctx, s, named)
	checks := []model.Check{p.found(i, err, s)}
	add := func(name string, state model.State, detail, hint string) {
		checks = append(checks, model.Check{Name: name, State: state, Detail: detail, Hint: hint})
	}
	install := "memtox agents install " + p.Name
	switch {
	case i != nil && i.Version != "" && !slices.Contains(p.Tried, i.Version):
		add("version", model.Failed, fmt.Sprintf("%s; tried: %s", i.Version, strings.Join(p.Tried, ", ")),
			"what memtox knows of it need not hold; "+install+" puts "+p.newest()+" beside it")
	case i != nil && i.Version != "":
		add("version", model.Passed, i.Version, "")
	}
	if err != nil {
		checks = append(checks, p.needed(ctx, s)...)
	}
	if why := box.Enforced(); why != nil {
		add("contained", model.Warned, "only folders and processes of its own: "+why.Error(),
			"run memtox in a container: docs/installed.md has a recipe")
	} else {
		add("contained", model.Passed, "a network without other machines, processes and files of its own", "")
	}
	if err == nil {
		checks = append(checks, p.tryOut(ctx, s, named))
	}
	return append(checks, p.facts()...)
}

// facts are what memtox knows of the product's memory, and the arms of its own defenses.
func (p *Product) facts() (out []model.Check) {
	for _, r := range p.Reach {
		out = append(out, model.Check{Name: r.How, Detail: r.What + ": " + r.About})
	}
	for _, name := range []string{memory.ProductOn, memory.ProductOff} {
		switch s, ok := p.Own[name]; {
		case s.Nothing != "":
			out = append(out, model.Check{Name: name, Detail: "no such arm: " + s.Nothing})
		case ok:
			out = append(out, model.Check{Name: name, Detail: s.About})
		}
	}
	return out
}

// Cautions are what whoever starts a run with a product should know: version is what the
// product said of itself.
func (p *Product) Cautions(version string) (out []string) {
	if !slices.ContainsFunc(p.Tried, func(v string) bool { return slices.Contains(strings.Fields(version), v) }) {
		out = append(out, fmt.Sprintf("%s was never tried (%s was): what memtox knows of it need not hold", version,
			strings.Join(p.Tried, ", ")))
	}
	if why := box.Enforced(); why != nil {
		out = append(out, fmt.Sprintf("%s is not held to folders and a network of its own: %v; it obeys texts that are "+
			"meant to mislead it, so use a container (docs/installed.md)", p.Title, why))
	}
	return out
}

// found says where the product is, or how to get it.
func (p *Product) found(i *Installation, err error, s Surroundings) model.Check {
	c := model.Check{Name: "installed"}
	if err == nil {
		c.Detail = i.Program
		return c
	}
	c.State, c.Detail = model.Failed, err.Error()
	var lines []string
	for _, words := range p.Commands(s.Home(p.Name)) {
		lines = append(lines, Shell(words))
	}
	c.Hint = "memtox agents install " + p.Name + " runs " + strings.Join(lines, " && ")
	return c
}

// Commands are those that install the product into a folder.
func (p *Product) Commands(dir string) (out [][]string) {
	for _, line := range p.Install {
		var words []string
		for _, w := range strings.Fields(line) {
			words = append(words, strings.NewReplacer("{dir}", dir, "{version}", p.newest()).Replace(w))
		}
		out = append(out, words)
	}
	return out
}

// Shell is a command as it is typed.
func Shell(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = inert.Shell(w)
	}
	return strings.Join(out, " ")
}

// needed are the programs that an installation needs.
func (p *Product) needed(ctx context.Context, s Surroundings) (checks []model.Check) {
	for _, n := range p.Needs {
		c := model.Check{Name: n.Program, State: model.Failed, Hint: "install it: " + n.For + " needs it"}
		if n.Least != "" {
			c.Hint = fmt.Sprintf("install %s or newer: %s needs it", n.Least, n.For)
		}
		path := s.onPath(n.Program)
		if path == "" {
			c.Detail = "no folder of PATH has it"
			checks = append(checks, c)
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, versionTime)
		out, err := exec.CommandContext(ctx, path, n.Args...).CombinedOutput() // the user's own, and no agent
		cancel()
		m := n.Pattern.FindSubmatch(out)
		switch {
		case len(m) < 2:
			c.Detail = fmt.Sprintf("%s does not say its version: %v", path, err)
		case n.Least != "" && semver.Compare("v"+string(m[1]), "v"+n.Least) < 0:
			c.Detail = path + " is " + remote.Inert(string(m[1]), 40)
		default:
			c.State, c.Detail, c.Hint = model.Passed, remote.Inert(string(m[1]), 40), ""
		}
		checks = append(checks, c)
	}
	return checks
}

// canary is what the memory of a product holds that is tried out.
const canary = "The spare key of the boathouse hangs behind the third oar."

// tryOut starts the product, says a word to it, and looks whether its prompt shows its
// memory and its tools.
func (p *Product) tryOut(ctx context.Context, s Surroundings, named string) model.Check {
	c := model.Check{Name: "starts", State: model.Failed, Hint: "docs/installed.md says what it needs"}
	fail := func(err error) model.Check {
		c.Detail = remote.Inert(err.Error(), 400)
		return c
	}
	if drivers[p.Name] == nil {
		return fail(fmt.Errorf("it cannot be driven yet"))
	}
	ctx, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	w := &witness{}
	relay, err := proxy.NewRelay(w)
	if err != nil {
		return fail(err)
	}
	defer relay.Close()
	agent := p.Gates()
	_, url, end := relay.Begin(ctx, agent.Gate(w))
	defer end()
	l, err := s.dial(p, named)
	if err != nil {
		return fail(err)
	}
	defer l.Close()
	began := time.Now()
	var up time.Duration
	tools := []model.Tool{world.Find("read_mail").Tool}
	for _, m := range []*external.Message{
		{Op: external.Reset, Tools: model.EncodeTools(tools), Memories: []external.Memory{{Value: canary}},
			Model: &external.Server{BaseURL: url, Name: proxy.RelayName}},
		{Op: external.Session, Number: 1}, {Op: external.Turn, User: "Good morning."}, {Op: external.End}} {
		if _, err := l.Exchange(ctx, m); err != nil {
			return fail(err)
		}
		if m.Op == external.Reset {
			up = time.Since(began)
		}
	}
	r, err := l.Exchange(ctx, &external.Message{Op: external.Dump})
	if err != nil {
		return fail(err)
	}
	shown, offered := w.saw(canary, p.MCPPrefix+tools[0].Name)
	switch {
	case !shown:
		return fail(fmt.Errorf("its prompt does not show what its memory holds"))
	case !offered:
		return fail(fmt.Errorf("it does not offer its model the tools of the trial"))
	case !slices.ContainsFunc(*r.Memories, func(m external.Memory) bool { return m.Value == canary }):
		return fail(fmt.Errorf("its memory was not found again: %d entries", len(*r.Memories)))
	}
	return model.Check{Name: "starts", Detail: fmt.Sprintf("up in %.1f s, answers after %.1f s; its prompt shows its "+
		"memory", up.Seconds(), time.Since(began).Seconds())}
}

// witness is a model that says one word and remembers what it saw, and a judge of
// everything that lets all pass.
type witness struct {
	mu   sync.Mutex
	seen []model.Request
}

func (w *witness) Next(_ context.Context, r model.Request) (model.Reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, r)
	return model.Reply{Text: "Good morning to you."}, nil
}

func (w *witness) Look(context.Context, string, []model.Message) (gate.Rule, error) {
	return func(context.Context, model.Call) (gate.Ruling, error) { return gate.Ruling{}, nil }, nil
}

// saw reports whether some prompt held a text, and offered a tool.
func (w *witness) saw(text, tool string) (held, offered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.seen {
		holds := func(m model.Message) bool { return strings.Contains(m.Content, text) }
		held = held || slices.ContainsFunc(r.Messages, holds)
		offered = offered || slices.ContainsFunc(r.Tools, func(t model.Tool) bool { return t.Name == tool })
	}
	return held, offered
}
