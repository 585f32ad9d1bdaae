package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// Bounds of what an agent may do.
const (
	maxSteps    = 200     // messages of one turn
	maxMemories = 10_000  // entries of a dump
	maxValue    = 1 << 20 // bytes of one entry
	maxSaid     = 4 << 20 // bytes of all that it says in one turn
	maxFailures = 8       // trials that it failed in a row, before it is given up
	maxGreets   = 2       // handshakes that failed in a row
)

// Options say what an agent is handed.
type Options struct {
	// Timeout bounds one reply; 0 is 10 seconds.
	Timeout time.Duration
	// Lookup reads the environment, PassEnv names what a program is handed of it.
	Lookup  func(string) (string, bool)
	PassEnv []string
	Dir     string // where a program runs
	// Window is the context window that rows name.
	Window int
	// Model is what the relay offers.
	Model model.Model
	// Behind is the model as the agent gets it; nil changes nothing.
	Behind func(model.Model) model.Model
	// Dial makes a conversation with an installed product.
	Dial func() (Link, error)
	// Stores are those of its memory beside the first.
	Stores []memory.StoreSpec
	// Switches are the arms of its own defenses, by name.
	Switches map[string]agents.Switch
	// Channels are those by which content is to come to an installed product.
	Channels []string
	// Links are shared with the same agent behind other models; nil are its own.
	Links *Links
	// Agent is what is known of the agent's own tools. Without it the agent asks about its
	// writes.
	gate.Agent
}

// Agent is an agent under test. It serves any number of trials at once: a program
// is started for each that is under way, and used again, see [Links].
type Agent struct {
	loop   *agents.Loop
	opts   Options
	dial   func() (Link, error)
	shared bool // one link serves all trials
	trials atomic.Uint64
	relay  *proxy.Relay
	client *remote.Client

	mu       sync.Mutex
	failures int // trials in a row
	greets   int // handshakes in a row
	dead     error
}

// IsSpec reports whether the name of an agent means one outside this process:
// [NAME=]exec:COMMAND, an address, or [NAME=]installed:PRODUCT.
func IsSpec(name string) bool {
	_, rest := label(name)
	kind, _, ok := strings.Cut(rest, ":")
	return ok && (kind == "exec" || kind == "http" || kind == "https" || kind == Installed)
}

// Installed is the kind of an agent that is a product on this machine:
// installed:PRODUCT, or installed:PRODUCT:PATH with where it is.
const Installed = "installed"

// Product is what the spec of an installed product names; ok is false for any other.
func Product(spec string) (name, path string, ok bool) {
	_, rest := label(spec)
	if rest, ok = strings.CutPrefix(rest, Installed+":"); ok {
		name, path, _ = strings.Cut(rest, ":")
	}
	return name, path, ok
}

// label takes the name off a spec.
func label(spec string) (name, rest string) {
	if i := strings.IndexAny(spec, "=:"); i > 0 && spec[i] == '=' {
		return spec[:i], spec[i+1:]
	}
	return spec, spec
}

// New makes the agent of a spec. Nothing is started before it is greeted.
func New(spec string, o Options) (*Agent, error) {
	name, rest := label(spec)
	kind, argument, _ := strings.Cut(rest, ":")
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Links == nil {
		o.Links = new(Links)
	}
	a := &Agent{opts: o}
	switch kind {
	case "exec":
		if _, err := remote.Words(argument); err != nil {
			return nil, err
		}
		env, redact, err := remote.Environment(o.Lookup, o.PassEnv)
		if err != nil {
			return nil, err
		}
		po := remote.ProcessOptions{Command: argument, Dir: o.Dir, Env: env, Redact: redact}
		a.dial = func() (Link, error) { return startProgram(po) }
	case "http", "https":
		if strings.HasPrefix(argument, "//") {
			argument = kind + ":" + argument
		}
		u, err := remote.BaseURL(argument)
		if err != nil {
			return nil, fmt.Errorf("the address of the agent: %w", err)
		}
		a.client = remote.New(remote.Options{Attempts: 1, InFlight: 64, Timeout: 2*o.Timeout + time.Second})
		s := service{u.String(), remote.HTTP(a.client)}
		a.shared, a.dial = true, func() (Link, error) { return s, nil }
	case Installed:
		if product, path, _ := Product(spec); name == spec && path != "" {
			name = Installed + ":" + product // where it is stands in no row
		}
		a.dial = o.Dial
	default:
		return nil, fmt.Errorf("%q is no agent outside memtox: write exec:COMMAND, http://HOST/PATH or installed:PRODUCT", spec)
	}
	a.loop = &agents.Loop{Settings: agents.Settings{Window: o.Window}, Profile: &agents.Profile{
		Name: name, Version: "unknown", About: "an agent under test",
		Stores: append([]memory.StoreSpec{{Name: "memory", Title: "memory", Kind: memory.Entries},
			{Name: "skills", Title: "skills", Kind: memory.Skills}}, o.Stores...),
		Recall: memory.RecallSpec{BM25: 1}, WritesSkills: true, Own: o.Switches, Installed: kind == Installed,
	}}
	return a, nil
}

// Profile describes the agent to the harness. Greet fills its version.
func (a *Agent) Profile() *agents.Profile { return a.loop.Profile }

func (a *Agent) Scaled() agents.Scaled { return a.loop.Scaled() }

// Greet starts the agent and asks who it is.
func (a *Agent) Greet(ctx context.Context) error {
	if a.opts.Model != nil && a.relay == nil {
		var err error
		if a.relay, err = proxy.NewRelay(a.behind(a.opts.Model)); err != nil {
			return err
		}
	}
	l, r, err := a.connect(ctx)
	if err != nil {
		return err
	}
	p := a.loop.Profile
	p.Version, p.WritesSkills = strings.TrimSpace(text.Clip(r.Name, 100)+" "+text.Clip(r.Version, 100)), r.Skills
	a.opts.Links.keep(l, a.shared)
	return nil
}

// Offer has the relay offer another model from now on: no trial is under way.
func (a *Agent) Offer(m model.Model) {
	if a.opts.Model = m; a.relay != nil {
		a.relay.Offer(a.behind(m))
	}
}

func (a *Agent) behind(m model.Model) model.Model {
	if a.opts.Behind == nil {
		return m
	}
	return a.opts.Behind(m)
}

func (a *Agent) connect(ctx context.Context) (Link, *Reply, error) {
	l, err := a.dial()
	if err != nil {
		return nil, nil, a.failed(err, &a.greets, maxGreets)
	}
	r, err := a.exchange(ctx, l, &Message{Op: Hello, Protocol: 1})
	if err == nil && r.Name == "" {
		err = errors.New(`its answer to hello has no name: answer {"id":…,"name":…,"version":…}`)
	}
	if err != nil {
		l.Close()
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		return nil, nil, a.failed(fmt.Errorf("the handshake failed: %w", err), &a.greets, maxGreets)
	}
	a.mu.Lock()
	a.greets = 0
	a.mu.Unlock()
	return l, r, nil
}

// failed counts a failure; too many in a row, and the agent is given up.
func (a *Agent) failed(err error, count *int, most int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *count++; *count >= most && a.dead == nil {
		a.dead = remote.Spoilt(remote.GivenUp, "the agent failed %d times in a row: %w", *count, err)
	}
	return fmt.Errorf("the agent: %w", err)
}

func (a *Agent) exchange(ctx context.Context, l Link, m *Message) (*Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.Timeout,
		fmt.Errorf("no reply to %s within %s (setting external_timeout)", m.Op, a.opts.Timeout))
	defer cancel()
	return l.Exchange(ctx, m)
}

// Close ends the agent's programs and the relay.
func (a *Agent) Close() error {
	a.opts.Links.close()
	if a.client != nil {
		a.client.Close()
	}
	if a.relay != nil {
		a.relay.Close()
	}
	return nil
}

type Trial struct {
	a       *Agent
	link    Link
	id      uint64
	mem     *memory.Memory
	tools   []model.Tool
	session int
	tape    *proxy.Tape
	gate    *gate.Gate
	release func()

	// The harness has the memory for itself but while it waits for the agent: then the
	// relay may judge what goes between the agent and its model.
	mu     sync.Mutex
	box    *agents.Sandbox // of the session under way; nil between sessions
	reader gate.Reader
	own    *gate.Own // nil asks about its writes
	said   string    // the user's words of this turn
	closed bool

	brought []*brought        // in this session, by channels of the agent's own
	seen    map[string]string // what the model sees of a message, where a gate changed what was brought
	pieceNo int               // of pieces that were brought

	known  []string // the agent's memory, as it was last read
	holds  bool     // it asked the run's model, or about what it recalls
	failed bool
}

// Open begins a trial: the agent forgets everything and is given the memories that
// mem holds, and the tools of the office in which it will work, if it is one. defense is
// the kind of the arm's.
func (a *Agent) Open(ctx context.Context, mem *memory.Memory, o *agents.Office, defense string) (*Trial, error) {
	t := &Trial{a: a, mem: mem, id: a.trials.Add(1), tools: a.loop.Sandbox(ctx, mem, o).Tools(), release: func() {}}
	t.mu.Lock()
	a.mu.Lock()
	if a.dead != nil {
		defer a.mu.Unlock()
		return nil, a.dead
	}
	a.mu.Unlock()
	if t.link = a.opts.Links.take(a.shared); t.link == nil {
		var err error
		if t.link, _, err = a.connect(ctx); err != nil {
			return nil, err
		}
	}
	m := &Message{Op: Reset, Tools: model.EncodeTools(t.tools)}
	if _, ok := a.opts.Switches[defense]; ok {
		m.Own = defense
	}
	if a.relay != nil {
		m.Model = &Server{Name: proxy.RelayName}
		t.gate = a.opts.Gate(judge{t})
		t.reader = gate.Reader{Mem: mem, Shown: t.shown}
		if a.opts.Own != nil {
			t.own = &gate.Own{Mem: mem, Tools: a.opts.Own, File: a.opts.File, Store: "memory"}
		}
		t.tape, m.Model.BaseURL, t.release = a.relay.Begin(ctx, t.gate)
	}
	var err error
	if m.Memories, err = t.visible(ctx); err == nil {
		_, err = t.say(ctx, m)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Trial) visible(ctx context.Context) ([]Memory, error) {
	rs, err := t.mem.Visible(ctx)
	t.known = t.known[:0]
	var out []Memory
	for _, r := range rs {
		out = append(out, Memory{r.ID, r.Key, r.Text, r.Store})
		t.known = append(t.known, r.Text)
	}
	return out, err
}

// Close ends the trial. An agent that failed in it is not used again.
func (t *Trial) Close() {
	t.release()
	t.closed = true
	t.mu.Unlock()
	if t.failed && !t.a.shared {
		t.link.Close()
		return
	}
	if o, ok := t.link.(Over); ok {
		o.Over()
	}
	if !t.a.shared {
		t.a.opts.Links.keep(t.link, false)
	}
}

// Holds reports whether gates over reads and actions had anything to hold on to so far:
// prompts for the run's model, or memories that the agent asked about.
func (t *Trial) Holds() bool { return t.holds }

func (t *Trial) say(ctx context.Context, m *Message) (*Reply, error) {
	m.Trial = t.id
	t.mu.Unlock()
	r, err := t.a.exchange(ctx, t.link, m)
	t.mu.Lock()
	if err != nil {
		return nil, t.fail(ctx, err)
	}
	return r, nil
}

func (t *Trial) fail(ctx context.Context, err error) error {
	t.failed = true
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.tape != nil {
		// A model that failed is the cause of what the agent says of it.
		if cause := t.tape.Err(); cause != nil {
			if _, model := errors.AsType[*agents.ModelError](of(cause)); !model {
				return cause // nor is a defense's failure the agent's
			}
			err = fmt.Errorf("%w (%w)", err, cause)
		}
	}
	return t.a.failed(err, &t.a.failures, maxFailures)
}

// Run runs one session, like [agents.Loop.Run].
func (t *Trial) Run(ctx context.Context, mem *memory.Memory, turns []agents.Turn, end agents.End) (*agents.Outcome,
	error) {
	box := t.a.loop.Sandbox(ctx, mem, end.Office)
	t.box = box
	err := t.run(ctx, box, turns)
	t.box = nil
	if t.tape != nil {
		prompts, usage, cause := t.tape.Take()
		t.holds = t.holds || len(prompts) > 0
		out := box.Outcome()
		out.ModelCalls, out.Usage = len(prompts), usage
		t.exposed(box, prompts)
		if err == nil && cause != nil {
			t.failed = true
			err = of(cause)
		}
	}
	if err == nil {
		t.a.mu.Lock()
		t.a.failures = 0
		t.a.mu.Unlock()
	}
	return box.Outcome(), err
}

func (t *Trial) run(ctx context.Context, box *agents.Sandbox, turns []agents.Turn) error {
	if len(turns) > 0 {
		turns[0].Opens(t.mem)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	for i, turn := range turns {
		if i > 0 && turn.Fresh {
			if err := t.end(ctx, box); err != nil {
				return err
			}
			t.mem.NextSession()
			turn.Opens(t.mem)
			if err := t.begin(ctx); err != nil {
				return err
			}
		}
		if turn, err := t.bring(ctx, box, i, turns); err != nil {
			return fmt.Errorf("turn %d: %w", i+1, err)
		} else if answer, err := t.turn(ctx, box, i+1, turn); err != nil {
			return err
		} else {
			box.Answer(answer)
		}
		t.mem.Tick(time.Minute)
	}
	return t.end(ctx, box)
}

// turn has the user say something, and returns the answer.
func (t *Trial) turn(ctx context.Context, box *agents.Sandbox, n int, turn agents.Turn) (string, error) {
	said, err := box.Begin(n, turn)
	if err != nil {
		return "", err
	}
	t.said = turn.User
	r, err := t.converse(ctx, box, &Message{Op: Turn, User: said}, memory.RouteMemoryTool)
	if err != nil {
		return "", fmt.Errorf("turn %d: %w", n, err)
	}
	if r.Answer == nil {
		return "", t.fail(ctx, fmt.Errorf("turn %d: its reply is none of call, write, recall and answer", n))
	}
	if strings.TrimSpace(*r.Answer) == "" {
		box.Outcome().EmptyAnswers++
	}
	return *r.Answer, nil
}

// begin begins a session. What came into the memory beside the agent since the
// last one is handed to it, and its memory must be what it was.
func (t *Trial) begin(ctx context.Context) error {
	t.brought, t.seen = nil, map[string]string{}
	if t.session++; t.gate != nil {
		t.gate.Session(fmt.Sprint(t.session))
		t.reader = gate.Reader{Mem: t.mem, Shown: t.shown}
	}
	if t.session > 1 {
		before := slices.Clone(t.known)
		have, err := t.visible(ctx)
		if err != nil {
			return err
		}
		var fresh []Memory
		for _, m := range have {
			if i := slices.Index(before, m.Value); i >= 0 {
				before = slices.Delete(before, i, i+1)
				continue
			}
			fresh = append(fresh, m)
		}
		if len(fresh) > 0 {
			if _, err := t.say(ctx, &Message{Op: Load, Memories: fresh}); err != nil {
				return err
			}
		}
	}
	if _, err := t.say(ctx, &Message{Op: Session, Number: t.session,
		Today: t.mem.Now().Format(time.DateOnly)}); err != nil {
		return err
	}
	if t.session == 1 {
		return nil
	}
	now, err := t.dump(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(sorted(now), sorted(t.known)) {
		return t.fail(ctx, fmt.Errorf("its memory changed between two sessions: it had %d entries and has %d, or others: "+
			"what it says of its memory cannot be trusted", len(t.known), len(now)))
	}
	return nil
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// end lets the agent store what it still wants to, and takes its memory over.
func (t *Trial) end(ctx context.Context, box *agents.Sandbox) error {
	r, err := t.converse(ctx, box, &Message{Op: End}, memory.RouteReview)
	if err != nil {
		return fmt.Errorf("end of the session: %w", err)
	}
	if !r.Done {
		return t.fail(ctx, errors.New("its last reply to end is not done: answer {\"id\":…,\"done\":true}"))
	}
	entries, err := t.dump(ctx)
	if err != nil {
		return err
	}
	if err := t.mem.Reconcile(ctx, "memory", entries); err != nil {
		return err
	}
	t.known = entries
	return nil
}

func (t *Trial) dump(ctx context.Context) ([]string, error) {
	r, err := t.say(ctx, &Message{Op: Dump})
	if err != nil {
		return nil, err
	}
	if r.Memories == nil {
		return nil, t.fail(ctx, errors.New(`its reply to dump has no memories: answer {"id":…,"memories":[{"value":…}]}`))
	}
	if len(*r.Memories) > maxMemories {
		return nil, t.fail(ctx, fmt.Errorf("its memory has %d entries, more than %d", len(*r.Memories), maxMemories))
	}
	out := make([]string, 0, len(*r.Memories))
	for _, m := range *r.Memories {
		if len(m.Value) > maxValue {
			return nil, t.fail(ctx, fmt.Errorf("an entry of its memory has %d bytes, more than %d", len(m.Value), maxValue))
		}
		out = append(out, m.Value)
	}
	return out, nil
}

// converse answers the agent until its reply ends the turn.
func (t *Trial) converse(ctx context.Context, box *agents.Sandbox, m *Message, route memory.Route) (*Reply, error) {
	said := 0
	for range maxSteps {
		r, err := t.say(ctx, m)
		if err != nil {
			return nil, err
		}
		if said += r.size; said > maxSaid {
			return nil, t.fail(ctx, fmt.Errorf("it said more than %d bytes in one turn", maxSaid))
		}
		asks := 0
		for _, set := range []bool{r.Call != nil, r.Write != nil, r.Recall != nil, r.Answer != nil || r.Done} {
			if set {
				asks++
			}
		}
		if asks != 1 {
			return nil, t.fail(ctx, fmt.Errorf("its reply to %s has %d of call, write, recall, answer and done: it must be one",
				m.Op, asks))
		}
		t.mem.Tick(2 * time.Second)
		switch {
		case r.Call != nil:
			result, err := t.call(box, r.Call)
			if err != nil {
				return nil, err
			}
			m = &Message{Op: Result, Content: result}
		case r.Write != nil:
			if m, err = t.write(ctx, r.Write, route); err != nil {
				return nil, err
			}
		case r.Recall != nil:
			if m, err = t.recall(ctx, box, r.Recall); err != nil {
				return nil, err
			}
		default:
			return r, nil
		}
	}
	return nil, t.fail(ctx, fmt.Errorf("it took more than %d steps in one turn", maxSteps))
}

// call reads a tool call. Arguments that cannot be read are the agent's mistake,
// which it is told of as a model is.
func (t *Trial) call(box *agents.Sandbox, c *Call) (string, error) {
	args, err := model.ParseArgs(t.tools, c.Name, c.Args)
	if err != nil {
		return "the arguments of the call cannot be read: " + text.Clip(err.Error(), 200), nil
	}
	return box.Call(model.Call{Name: c.Name, Args: args})
}

func (t *Trial) write(ctx context.Context, w *Write, route memory.Route) (*Message, error) {
	d := memory.Draft{Route: route, Store: "memory", Text: w.Value, Old: w.Old, Key: w.Key}
	if w.Change != "" {
		if err := d.Op.UnmarshalText([]byte(text.Clip(w.Change, 40))); err != nil {
			return nil, t.fail(ctx, fmt.Errorf("the write that it proposes: %w", err))
		}
	}
	if w.Route != "" {
		if err := d.Route.UnmarshalText([]byte(text.Clip(w.Route, 40))); err != nil ||
			!slices.Contains(memory.WriteRoutes(), d.Route) {
			return nil, t.fail(ctx, fmt.Errorf("the write that it proposes has the route %q: one of %v", text.Clip(w.Route, 40),
				memory.WriteRoutes()))
		}
	}
	if d.Route == memory.RouteSkill {
		d.Store = "skills"
	}
	entries, err := t.mem.Write(ctx, d)
	if err != nil {
		return nil, err
	}
	// A flush or a compaction may hold several entries: the strictest verdict
	// speaks, and what may be stored are the entries that were let through.
	m := &Message{Op: Verdict}
	strictest := memory.Allow
	var stored []string
	for _, e := range entries {
		strictest = max(strictest, e.Verdict.Action)
		if e.Rejected != "" {
			strictest = memory.Block
			m.Reasons = append(m.Reasons, e.Rejected)
		}
		for _, f := range e.Verdict.Findings {
			m.Reasons = append(m.Reasons, f.Check)
		}
		if e.Committed != nil && e.Committed.State.Visible() {
			stored = append(stored, e.Committed.Text)
			m.Record = e.Committed.ID
		}
	}
	m.Action, m.Value = strictest.String(), strings.Join(stored, "\n")
	return m, nil
}

// recall asks the defense which memories may enter the prompt.
func (t *Trial) recall(ctx context.Context, box *agents.Sandbox, r *Recall) (*Message, error) {
	t.holds = true
	shown, unknown, err := t.mem.Screen(ctx, memory.Query{Route: memory.RouteSearch, Text: r.Query}, r.Records)
	switch {
	case err != nil:
		return nil, err
	case unknown != "":
		return nil, t.fail(ctx, fmt.Errorf("it recalls the record %s, which its memory does not hold", remote.Quote(unknown)))
	}
	m := &Message{Op: Shown}
	for _, s := range shown {
		m.Memories = append(m.Memories, Memory{ID: s.Record.ID, Key: s.Record.Key, Value: s.Text})
		box.Shown(memory.RouteSearch, s, s.Text)
	}
	return m, nil
}

// exposed notes what of each prompt did not come from this session: what is left
// once its segments and the agent's own answers are taken out was in the memory.
func (t *Trial) exposed(box *agents.Sandbox, prompts [][]model.Message) {
	out := box.Outcome()
	for _, p := range prompts {
		if t.a.opts.Extracts(p) {
			continue // nothing is answered or done by what it shows
		}
		var b strings.Builder
		for _, m := range p {
			if m.Role != model.Assistant {
				b.WriteString(m.Content)
				b.WriteByte('\n')
			}
		}
		text := b.String()
		for _, s := range out.Segments {
			if s.Text != "" {
				text = strings.ReplaceAll(text, s.Text, " ")
			}
		}
		box.Shown(memory.RouteInject, memory.Recalled{Record: &memory.Record{}, Text: text}, text)
	}
}
