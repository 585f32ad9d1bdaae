package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// Catalog is what names in the settings stand for. A program that embeds memtox
// can bring its own profiles, defenses and models.
type Catalog struct {
	Profiles []*agents.Profile
	Defenses *defenses.Registry
	// Models makes the model that the settings name. A model that has a Close
	// method is closed with the experiment.
	Models func(ctx context.Context, c Config) (model.Model, error)
	// Datasets opens a set by name or file.
	Datasets func(ctx context.Context, nameOrFile string) (*datasets.Set, error)
	// ReadFile reads the files that defenses name; nil is os.ReadFile.
	ReadFile func(string) ([]byte, error)
	// Lookup reads the environment, for what programs and services outside memtox
	// are handed of it; nil knows no variable.
	Lookup func(string) (string, bool)
	// Dir is where such programs run; "" is our own working directory.
	Dir string
}

// Builtin is the catalog of memtox itself.
func Builtin() Catalog {
	return Catalog{Profiles: agents.Profiles(), Defenses: builtin.New(), Models: ModelOptions{}.Model,
		Datasets: attacks.Open}
}

// cacheBytes bounds the analysed texts that trials share: enough for the cases
// that are being worked on and for the background memories.
const cacheBytes = 8 << 20

// AgentNames lists the names of the profiles.
func (c Catalog) AgentNames() []string {
	var names []string
	for _, p := range c.Profiles {
		names = append(names, p.Name)
	}
	return names
}

func (c Catalog) profile(where, name string) (*agents.Profile, error) {
	for _, p := range c.Profiles {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, settings.Unknown(where, "agent", name, c.AgentNames())
}

// Experiment is a run that is ready to go: every name resolved, every file read,
// nothing written yet.
type Experiment struct {
	Config Config
	Plan   *Plan
	Models []Model // of its arms, by their place

	// Reader judges what the deterministic judge leaves open; nil where the setting
	// judge names no model.
	Reader *score.ModelJudge

	// Warnings say what the person who starts the run should know before it
	// begins.
	Warnings []string

	far        []*server    // that answer for the agents, guards, or embed
	embed      memory.Embed // of the server that the setting embeddings names; nil is hashed
	embeddings string       // its name
	embedding  bool         // a defense embeds

	drivers map[drives]driver
	closers []io.Closer // of agents and defenses outside this process
	way     way
	sweeps  []swept
	greeted map[string]defenses.Identity // by the name of the defense
	own     map[string]any               // what the arms of products' own defenses switch, by agent and arm

	judged string // the name of the language model that judges; "" where there is none
	// of a plan that is made from a run.json
	unasked map[*agents.Profile]bool // profiles of agents that nobody greeted
}

type Model struct {
	model.Model
	Name string
	LLM  bool
}

// drives names what takes an agent through its sessions with one of the models.
type drives struct {
	profile *agents.Profile
	model   int
}

// Name is what the experiment's models are called together.
func (x *Experiment) Name() string {
	if len(x.Models) > 1 {
		return x.Config.Model
	}
	return x.Models[0].Name
}

func (x *Experiment) LLM() bool { return x.Models[0].LLM }

func (x *Experiment) modelNames() (names []string) {
	for _, m := range x.Models {
		names = append(names, m.Name)
	}
	return names
}

// bothEnds is the setting that names the reference model at both ends of compliance:
// where outcomes are states, one that ignores every attribution and one that honours
// each to the letter. Elsewhere it is the cautious one.
const bothEnds = "reference"

// models are the models that the setting model names for a set.
func (c *Config) models(set *datasets.Set) []string {
	if c.Model == bothEnds && set.States() {
		return []string{"reference:" + string(reference.Naive), "reference:" + string(reference.Cautious)}
	}
	return []string{c.Model}
}

// way is how a profile makes a trial: by the sessions of an agent, or by showing texts.
type way interface {
	// stage makes a case ready, once for its trials.
	stage(*datasets.Case) *stage
	// trial runs one. The error is that of an interruption; what goes wrong within the
	// trial stands in its row.
	trial(context.Context, *Runner, *stage, Trial) (results.Finished, error)
}

// Prepare resolves the settings. Whatever is wrong with them is found here, as a
// [Problem], before anything runs.
func Prepare(ctx context.Context, c Config, cat Catalog) (*Experiment, error) {
	x := &Experiment{Config: c, drivers: map[drives]driver{}}
	x.way = x
	if err := x.prepare(ctx, cat); err != nil {
		_ = x.Close()
		return nil, err
	}
	return x, nil
}

func (x *Experiment) prepare(ctx context.Context, cat Catalog) (err error) {
	c := x.Config
	set, err := cat.open(ctx, c.Dataset)
	if err != nil {
		return err
	}
	for _, name := range c.models(set) {
		if err := x.load(ctx, cat, name); err != nil {
			return err
		}
	}
	if x.Reader, err = c.Reader(ctx, cat); err != nil {
		return err
	}
	if x.Reader != nil {
		x.judged = x.Reader.Name()
	}
	var profiles []*agents.Profile
	if len(c.Agents) == 0 {
		return &settings.Problem{Where: "--agent", What: "no agent is named", Hint: "see `memtox agents list`"}
	}
	for _, name := range c.Agents {
		find := func() (*agents.Profile, error) { return cat.profile("--agent", name) }
		if external.IsSpec(name) {
			find = func() (*agents.Profile, error) { return x.connect(ctx, cat, name) }
		}
		p, err := find()
		if err != nil {
			return err
		}
		profiles = append(profiles, p)
	}
	if err := c.ownChannels(profiles); err != nil {
		return err
	}
	if x.sweeps, err = c.swept(cat.Defenses); err != nil {
		return err
	}
	built, err := x.build(ctx, cat, set)
	if err != nil {
		return err
	}
	return x.cross(set, profiles, built)
}

func (x *Experiment) load(ctx context.Context, cat Catalog, name string) error {
	c := x.Config
	c.Model = name
	m, err := cat.Models(ctx, c)
	if err != nil {
		return settings.Placed("--model", err)
	}
	x.reaches(m)
	x.Models = append(x.Models, Model{m, name, true})
	if err := Ask(ctx, m, world.Find("read_mail").Tool); err != nil {
		return settings.Placed("--model", err)
	}
	if err := fits(c, m); err != nil {
		return err
	}
	if n, ok := m.(model.Namer); ok {
		x.Models[len(x.Models)-1] = Model{m, n.Name(), n.IsLLM()}
		if c.Epochs > 1 && n.Deterministic() {
			return &settings.Problem{Where: "--epochs", What: fmt.Sprintf("%s is deterministic: %d epochs would count each "+
				"trial %d times", n.Name(), c.Epochs, c.Epochs), Hint: "use --epochs 1"}
		}
	}
	return nil
}

// cross makes the plan of the agents under the defenses. The arms of one profile share
// what drives it: a loop of ours, if nothing else does.
func (x *Experiment) cross(set *datasets.Set, profiles []*agents.Profile, built []defenses.Built) error {
	c := x.Config
	var arms []Arm
	for _, p := range profiles {
		in := make([]*agents.Profile, len(built))
		for i, d := range built {
			in[i] = p
			if !d.Info.Within {
				continue
			}
			about, err := p.Switches(d.Spec.Kind)
			if err != nil {
				return &settings.Problem{Where: "--defense", What: fmt.Sprintf("%s has no arm %s: %v", p.Name, d.Spec.Kind, err),
					Hint: "see memtox agents doctor for what a product's own defenses are, and leave the arm out"}
			}
			if x.own == nil {
				x.own = map[string]any{}
			}
			x.own[p.Name+" "+d.Name] = about
			in[i] = p.In(d.Spec.Kind)
		}
		for _, l := range c.lives() {
			for i, d := range built {
				for m := range x.Models {
					arms = append(arms, Arm{Profile: in[i], Defense: d, Life: l, Model: m})
				}
			}
		}
	}
	var err error
	if x.Plan, err = NewPlan(c, set, x.modelNames(), arms); err != nil {
		return err
	}
	x.unused()
	// That of the whole set: which of its cases are run changes no trial.
	book := x.Plan.Set.Book()
	for i := range x.Models {
		m := &x.Models[i]
		x.understands(m.Model, x.Plan.Set)
		if ref, ok := m.Model.(*reference.Model); ok && book != nil {
			m.Model = ref.WithBook(book)
		}
	}
	for _, arm := range arms {
		by, m := drives{arm.Profile, arm.Model}, x.Models[arm.Model].Model
		if a, ok := x.drivers[by].(*external.Agent); ok {
			a.Offer(c.bounded(m))
		} else if x.drivers[by] == nil {
			x.drivers[by] = &agents.Loop{Profile: arm.Profile, Model: c.bounded(m),
				Settings: agents.Settings{Window: c.Window, Policy: c.Policy, Seed: int64(c.Seed >> 1)}}
		}
	}
	return nil
}

// driver is what takes an agent through its sessions: a loop of ours, or an agent
// outside this process.
type driver interface{ Scaled() agents.Scaled }

// connect makes an agent outside this process, and asks it who it is.
func (x *Experiment) connect(ctx context.Context, cat Catalog, spec string) (*agents.Profile, error) {
	c := x.Config
	var p *agents.Profile
	var all []*external.Agent // one a model, each with a relay of its own
	shared := new(external.Links)
	for i := range x.Models {
		o := external.Options{Timeout: c.ExternalTimeout, Lookup: cat.Lookup, PassEnv: c.PassEnv, Dir: cat.Dir,
			Window: c.Window, Model: c.bounded(x.Models[i].Model), Channels: c.Via}
		make := external.New
		if _, _, ok := external.Product(spec); ok {
			make, o.Links = installed.Surroundings{Lookup: cat.Lookup, Dir: cat.Dir}.New, shared
		}
		a, err := make(spec, o)
		if err != nil {
			return nil, settings.Placed("--agent", err)
		}
		if p == nil {
			p = a.Profile()
		}
		all = append(all, a)
		x.closers, x.drivers[drives{p, i}] = append(x.closers, a), a
	}
	if slices.ContainsFunc(cat.Profiles, func(o *agents.Profile) bool { return o.Name == p.Name }) {
		return nil, &settings.Problem{Where: "--agent", What: fmt.Sprintf("the name %q is that of a profile", p.Name),
			Hint: "choose one that is not taken"}
	}
	for _, a := range all {
		if err := a.Greet(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if own, ok := errors.AsType[*settings.Problem](err); ok { // a product's, which says what to do
				return nil, settings.Placed("--agent", own)
			}
			return nil, absent("--agent", "agent "+p.Name, strings.HasPrefix(strings.TrimPrefix(spec, p.Name+"="), "exec:"), err)
		}
	}
	if product, _, ok := external.Product(spec); ok {
		x.Warnings = append(x.Warnings, installed.Find(product).Cautions(p.Version)...)
	}
	return p, nil
}

// greet asks the defenses outside this process who they are.
func (x *Experiment) greet(ctx context.Context, built []defenses.Built) error {
	x.greeted = map[string]defenses.Identity{}
	for _, b := range built {
		for i, r := range defenses.Remotes(b.Defense) {
			id, err := r.Greet(ctx)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				return absent("--defense", "defense "+b.Name, b.Spec.Kind == "exec", err)
			}
			name := b.Name
			if i > 0 {
				name = fmt.Sprintf("%s part %d", b.Name, i+1)
			}
			x.greeted[name] = id
		}
	}
	return nil
}

// Close lets go of what the model and the defenses hold: connections, programs,
// an open cassette.
func (x *Experiment) Close() error {
	var errs []error
	for _, c := range x.closers {
		errs = append(errs, c.Close())
	}
	if x.Reader != nil {
		errs = append(errs, x.Reader.Close())
	}
	for _, m := range x.Models {
		if c, ok := m.Model.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// open opens a set. Where that fails its name is wrong, or its data is; an interruption
// is neither.
func (c Catalog) open(ctx context.Context, name string) (*datasets.Set, error) {
	set, err := c.Datasets(ctx, name)
	var e *datasets.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return set, err
	case errors.As(err, &e) && e.File == "":
		return nil, &settings.Problem{Where: "--dataset", Err: err}
	}
	return nil, settings.Placed("", err)
}

// build makes the defenses and, once all are made, asks those outside this process who
// they are.
func (x *Experiment) build(ctx context.Context, cat Catalog, set *datasets.Set) (built []defenses.Built, err error) {
	c := x.Config
	if len(c.Defenses) == 0 {
		return nil, &settings.Problem{Where: "--defense", What: "no defense is named",
			Hint: "none is the name of the undefended arm"}
	}
	if err := x.embedder(ctx, cat); err != nil {
		return nil, err
	}
	env := defenses.Env{Knowledge: knowledge(set), Vector: x.embed, Embeds: func() { x.embedding = true },
		ReadFile: cat.ReadFile,
		Lookup:   cat.Lookup, PassEnv: c.PassEnv, Dir: cat.Dir, Timeout: c.ExternalTimeout,
		Model: func(name string) (model.Model, error) {
			m, err := judgeModel(ctx, c, cat, name)
			x.reaches(m)
			return m, err
		}}
	specs := slices.Clone(c.Defenses)
	for _, s := range x.sweeps {
		for _, spec := range s.Specs {
			if !slices.Contains(specs, spec) {
				specs = append(specs, spec)
			}
		}
	}
	for i, spec := range specs {
		b, err := cat.Defenses.Build(spec, env)
		for _, r := range defenses.Remotes(b.Defense) {
			x.closers = append(x.closers, r)
		}
		switch {
		case err != nil && i >= len(c.Defenses):
			return built, settings.Placed("--sweep", err)
		case err != nil:
			return built, settings.Placed("--defense", err)
		}
		if slices.ContainsFunc(built, func(o defenses.Built) bool { return o.Name == b.Name }) {
			return built, &settings.Problem{Where: "--defense", What: fmt.Sprintf("two defenses are called %q", b.Name),
				Hint: "name one, as in other=" + b.Spec.Kind}
		}
		built = append(built, b)
	}
	return built, x.greet(ctx, built)
}

// knowledge is what defenses may fit baselines on: the ordinary background
// memories and the legitimate memories of the set's tune split. Nothing of the
// report split is in it, and no operative value of an attack.
func knowledge(set *datasets.Set) []memory.Record {
	var out []memory.Record
	add := func(s string, o memory.Origin) {
		out = append(out, memory.Record{ID: fmt.Sprintf("k%d", len(out)+1), Text: s, Origin: o})
	}
	for _, n := range datasets.Background(0, datasets.MaxBackground()) {
		add(n.Text, backgroundOrigin(n))
	}
	for i := range set.Cases {
		if k := &set.Cases[i]; k.Split == datasets.Tune && k.Writes() {
			o := memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}
			if k.Kind != datasets.KindUser {
				o = memory.Origin{Class: memory.External}
			}
			add(k.Memory, o)
		}
	}
	return out
}

// backgroundOrigin: what is known of the person was said by them, what is known
// of the work was noted by the agent.
func backgroundOrigin(n datasets.Note) memory.Origin {
	if n.Store == "user" {
		return memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}
	}
	return memory.Origin{Class: memory.Agent, Medium: memory.Chat}
}
