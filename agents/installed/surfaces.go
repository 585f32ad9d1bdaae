package installed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/settings"
)

// Surfaces are the ways by which a text reaches the memory of a product and comes back: a
// file of datasets/sets/memtox-surfaces. In each scenario the user and the model say what
// the file has, so that what differs is the product's doing.
type Surfaces struct {
	// Version is that of which the outcomes are expected.
	Version string
	// Plant is the text whose way is followed.
	Plant string
	// Settings are laid over the files of the product, by path.
	Settings map[string]any
	// Stores are looked at beside those of the product's file.
	Stores []Store
	// Writes says how the answer to a write shows that it was not done, and Labels how the
	// answer to anything else marks what it holds. The first that fits counts.
	Writes, Labels []Sign
	Scenarios      []Scenario
}

// Sign is what an answer means that a pattern fits.
type Sign struct {
	Is      string
	Pattern Pattern
}

// Scenario is one way, and what is expected to come of it.
//
// In its texts {plant} is what is planted, {pages} the address of its pages, {today} the
// day, and {pad N} a text of N characters.
type Scenario struct {
	ID    string
	About string // what a person calls it
	Plant string // where it is not that of all
	// Settings come on top of those of all scenarios.
	Settings map[string]any
	Memory   []string          // what the product remembers already
	Put      map[string]string // files of its box, by path
	Pages    map[string]string // of a web server, by path
	Tools    map[string]string // what memtox's own tools return, by name
	Sessions [][]Turn
	// Own is what the model answers to what the product asks by itself: review, flush,
	// compaction, job, extraction. Wait is how long it may take to ask, in seconds. What is
	// seen by these names is whether it asked, and of an extraction whether that held the plant.
	Own  map[string][]Move
	Wait int
	// Anew has the product started anew before the last session.
	Anew bool
	// Has are other texts that are looked for in the first prompt of the last session.
	Has map[string]string
	// Expect is the outcome: what is seen by name. "prompt" says whether the first prompt of
	// the last session holds the plant, and "stored" which stores and files held it before.
	Expect map[string]string
}

// Turn is one of the user's, and the replies of the model in it.
type Turn struct {
	User  string
	Model []Move
	// Job has a job of the user's say it, with nobody there.
	Job bool
	// Lends are tools of whoever says the turn, and what they return, by name.
	Lends map[string]string
	// Shows is a name: whether the system message of this turn holds the plant.
	Shows string
}

// Move is a reply of the model: a text, or a call of a tool.
type Move struct {
	Say  string
	Call string
	Args map[string]any
	// As is a name: what the answer to the call says. One that begins with "write" says
	// whether it was done, any other whether the answer holds the plant, and its label.
	As     string
	Tokens int // of the prompt, where the product is to believe that it is long
}

// ReadSurfaces reads a file of scenarios of a product.
func (p *Product) ReadSurfaces(name string, data []byte) (*Surfaces, error) {
	s := &Surfaces{}
	if err := settings.Decode(name, data, s); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range s.Scenarios {
		c := &s.Scenarios[i]
		fail := func(format string, args ...any) error {
			return fmt.Errorf("%s: scenario %q: %w", name, c.ID, fmt.Errorf(format, args...))
		}
		c.Plant = cmp.Or(c.Plant, s.Plant)
		switch {
		case c.ID == "" || c.About == "" || c.Plant == "" || seen[c.ID]:
			return nil, fail("it needs an id of its own, what it is about, and a plant")
		case len(c.Sessions) == 0:
			return nil, fail("it has no session")
		}
		if seen[c.ID] = true; len(c.Sessions) == 1 {
			c.Sessions = append(c.Sessions, []Turn{{User: "Good morning."}})
		}
		if want := slices.Sorted(maps.Keys(c.Expect)); !slices.Equal(want, c.looks()) {
			return nil, fail("it expects %q and looks at %q", want, c.looks())
		}
		for _, over := range []map[string]any{s.Settings, c.Settings} {
			for file := range over {
				if _, ok := p.Files[file]; !ok {
					return nil, fail("%s has no file %q", p.Name, file)
				}
			}
		}
	}
	return s, nil
}

// looks are the names of what a scenario looks at, in order.
func (c *Scenario) looks() []string {
	names := map[string]bool{"prompt": true, "stored": true}
	for name := range c.Has {
		names[name] = true
	}
	moves := func(list []Move) {
		for _, m := range list {
			names[m.As] = true
		}
	}
	for name, list := range c.Own {
		names[name] = true
		moves(list)
	}
	for _, turns := range c.Sessions {
		for _, t := range turns {
			names[t.Shows] = true
			moves(t.Model)
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Surface is what came of a scenario.
type Surface struct {
	ID      string            `json:"id"`
	About   string            `json:"about"`
	Outcome map[string]string `json:"outcome,omitempty"`
	// Reason is why it could not be run; "" is that it could.
	Reason string `json:"reason,omitempty"`
}

// Try runs scenarios against an installation, one after the other, each with a memory of
// its own, and hands each on as it ends.
func (s *Surfaces) Try(ctx context.Context, p *Product, i *Installation, list []*Scenario, each func(Surface)) error {
	t := &trier{set: s, found: i}
	port, stop, err := open(http.HandlerFunc(t.page))
	if err != nil {
		return err
	}
	t.port = port
	defer stop()
	if t.relay, err = proxy.NewRelay(nil); err != nil {
		return err
	}
	defer t.relay.Close()
	if t.front, err = listen(); err != nil {
		return err
	}
	defer t.front.stop()
	defer t.end()
	for _, c := range list {
		out := Surface{ID: c.ID, About: c.About}
		if out.Outcome, err = t.try(ctx, p, c); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			out.Outcome, out.Reason = nil, err.Error()
			t.end() // what it began may go on
		}
		each(out)
	}
	return nil
}

// trier tries scenarios. Those with the same settings have a driver together.
type trier struct {
	set    *Surfaces
	found  *Installation
	front  *front
	relay  *proxy.Relay
	port   int // of the pages
	driver Driver
	over   map[string]any // its product's settings
	about  *Product       // with them

	mu    sync.Mutex
	pages map[string]string // of the scenario under way, by path
	fill  func(string) string
}

func (t *trier) end() {
	if t.driver != nil {
		_ = t.driver.Close()
		t.driver = nil
	}
}

// page answers for the pages of the scenario under way.
func (t *trier) page(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	body, ok := t.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	kind := "text/html; charset=utf-8"
	if json.Valid([]byte(body)) {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, t.fill(body))
}

var padding = regexp.MustCompile(`\{pad (\d{1,6})\}`)

// filler fills the texts of a scenario.
func (t *trier) filler(c *Scenario) func(string) string {
	words := strings.NewReplacer("{plant}", c.Plant, "{pages}", fmt.Sprintf("http://127.0.0.1:%d", t.port),
		"{today}", time.Now().UTC().Format(time.DateOnly))
	return func(s string) string {
		return padding.ReplaceAllStringFunc(words.Replace(s), func(pad string) string {
			n, _ := strconv.Atoi(padding.FindStringSubmatch(pad)[1])
			return strings.Repeat("The regatta begins at noon. ", n/28+1)[:n]
		})
	}
}

// deep fills all texts in a value of a file.
func deep(v any, fill func(string) string) any {
	switch v := v.(type) {
	case string:
		return fill(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = deep(v[i], fill)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = deep(v[k], fill)
		}
		return out
	}
	return v
}

// try runs one scenario.
func (t *trier) try(ctx context.Context, p *Product, c *Scenario) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*slowest+time.Duration(c.Wait)*time.Second)
	defer cancel()
	t.mu.Lock()
	t.pages, t.fill = c.Pages, t.filler(c)
	t.mu.Unlock()
	over, _ := deep(merge(t.set.Settings, c.Settings), t.fill).(map[string]any)
	if t.driver == nil || !reflect.DeepEqual(over, t.over) {
		t.end()
		t.driver, t.over, t.about = drivers[p.Name](), over, p.With(over, t.set.Stores)
	}
	r := &scene{trier: t, Scenario: c, out: map[string]string{}}
	defer func() { r.close() }()
	r.script = &script{scene: r, changed: make(chan struct{}), own: maps.Clone(c.Own), waits: map[string]*Move{}}
	t.relay.Offer(r.script)
	_, url, end := t.relay.Begin(ctx, &gate.Gate{Judge: &witness{}})
	defer end()
	for name := range c.Own {
		r.out[name] = "no"
	}
	if err := r.start(ctx, url, nil); err != nil {
		return nil, err
	}
	for n, turns := range c.Sessions {
		last := n == len(c.Sessions)-1
		if last {
			items, err := r.stored(ctx)
			if err == nil && c.Anew {
				r.close()
				err = r.start(ctx, url, append([]Item{}, items...))
			}
			if err != nil {
				return nil, err
			}
		}
		if err := r.session(ctx, turns, last); err != nil {
			return nil, err
		}
	}
	r.script.mu.Lock()
	defer r.script.mu.Unlock()
	return maps.Clone(r.out), r.script.err
}

// scene is a scenario under way.
type scene struct {
	*trier
	*Scenario
	script *script
	inst   Instance
	stop   context.CancelFunc // of the tools
	out    map[string]string
	places []string // where the plant was stored
}

// start starts the product with what the scenario has, and with what it remembers from
// before.
func (r *scene) start(ctx context.Context, url string, before []Item) error {
	var offers []model.Tool
	for _, name := range slices.Sorted(maps.Keys(r.Tools)) {
		o := world.Find(name)
		if o == nil {
			return fmt.Errorf("memtox has no tool %q", name)
		}
		offers = append(offers, o.Tool)
	}
	var tools []tool
	if b := model.EncodeTools(offers); b != nil {
		if err := json.Unmarshal(b, &tools); err != nil {
			return err
		}
	}
	at, err := r.front.serve(url, tools)
	if err != nil {
		return err
	}
	s := &Setup{Product: r.about, Found: r.found, Program: r.found.Program, ModelURL: at + "v1", ModelName: proxy.RelayName,
		ModelKey: "memtox-" + secret(), ToolsURL: at + "mcp", Secret: secret(), Ports: []int{r.front.port}, Pages: []int{r.port},
		Traffic: r.front.traffic()}
	for _, o := range offers {
		s.Tools = append(s.Tools, o.Name)
	}
	for _, file := range slices.Sorted(maps.Keys(r.Put)) {
		s.Memory = append(s.Memory, Item{File: file, Text: r.fill(r.Put[file])})
	}
	if s.Memory = append(s.Memory, before...); before == nil {
		for _, text := range r.Memory {
			s.Memory = append(s.Memory, Item{Store: r.about.Stores[0].Name, Text: r.fill(text)})
		}
	}
	calls, stop := context.WithCancel(ctx)
	r.stop = stop
	go func() {
		for {
			select {
			case c := <-r.front.calls:
				c.result <- r.fill(r.Tools[c.name])
			case <-calls.Done():
				return
			}
		}
	}()
	if r.inst, err = r.driver.Start(ctx, s); err != nil {
		r.inst = nil
		return fmt.Errorf("starting it: %w", err)
	}
	return nil
}

func (r *scene) close() {
	if r.front.close(); r.inst != nil {
		_ = r.inst.Close()
		r.inst = nil
	}
	if r.stop != nil {
		r.stop()
	}
}

// stored looks where the plant is, beside where it was.
func (r *scene) stored(ctx context.Context) ([]Item, error) {
	items, err := r.inst.Memory(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		_, file, _ := strings.Cut(i.File, "/")
		if name := cmp.Or(i.Store, file); r.holds(i.Text) && !slices.Contains(r.places, name) {
			r.places = append(r.places, name)
		}
	}
	slices.Sort(r.places)
	r.script.note("stored", cmp.Or(strings.Join(r.places, ", "), "nowhere"))
	return items, nil
}

// holds reports whether a text holds the plant, whatever its spaces.
func (r *scene) holds(s string) bool { return within(s, r.fill(r.Plant)) }

func within(s, part string) bool {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return strings.Contains(flat(s), flat(part))
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// session goes through a session and waits until the product has come to rest.
func (r *scene) session(ctx context.Context, turns []Turn, last bool) error {
	if err := r.inst.Session(ctx); err != nil {
		return err
	}
	for n, turn := range turns {
		r.script.begin(&turn, last)
		if err := r.say(ctx, &turn); err != nil {
			return cmp.Or(r.script.fault(), err)
		}
		first, err := r.script.end()
		if err != nil {
			return err
		}
		var system, all strings.Builder
		for _, m := range first {
			if all.WriteString(m.Content + "\n"); m.Role == model.System {
				system.WriteString(m.Content + "\n")
			}
		}
		if turn.Shows != "" {
			r.script.note(turn.Shows, yes(r.holds(system.String())))
		}
		if last && n == 0 {
			r.script.note("prompt", yes(r.holds(all.String())))
			for name, text := range r.Has {
				r.script.note(name, yes(within(all.String(), r.fill(text))))
			}
		}
	}
	if err := r.inst.Settle(ctx); err != nil {
		return cmp.Or(r.script.fault(), err)
	}
	if len(r.Own) == 0 || last {
		return r.script.fault()
	}
	if _, err := r.stored(ctx); err != nil { // a job is gone once it ran
		return err
	}
	r.script.await(ctx, time.Duration(cmp.Or(r.Wait, 20))*time.Second)
	return cmp.Or(r.script.fault(), r.front.traffic().Quiet(ctx, reviewRests), r.inst.Settle(ctx))
}

func (r *scene) say(ctx context.Context, turn *Turn) error {
	said := r.fill(turn.User)
	if turn.Job {
		j, ok := r.inst.(scheduler)
		if !ok {
			return errors.New("it runs no jobs")
		}
		_, err := j.Job(ctx, said)
		return err
	}
	if turn.Lends == nil {
		_, err := r.inst.Say(ctx, said)
		return err
	}
	l, ok := r.inst.(lender)
	if !ok {
		return errors.New("nobody can lend it tools")
	}
	lent := map[string]string{}
	for name, returns := range turn.Lends {
		lent[name] = r.fill(returns)
	}
	_, err := l.SayWith(ctx, said, lent)
	return err
}

// script is the model: it says what the scenario has.
type script struct {
	*scene

	mu      sync.Mutex
	changed chan struct{}     // is closed at a request of the product's own
	turn    []Move            // left of the turn under way
	job     bool              // which is a job's
	last    bool              // or of the last session, which shows what is stored
	first   []model.Message   // its first prompt
	own     map[string][]Move // left, by what the product asks for
	waits   map[string]*Move  // for their results, by what was asked for
	err     error
}

// Next implements [model.Model].
func (s *script) Next(_ context.Context, q model.Request) (model.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.asked(q)
	if is == job && s.job {
		is = ""
	}
	if is == "" && len(q.Tools) == 0 { // a title, or the like
		return model.Reply{Text: "A morning at the boathouse"}, nil
	}
	if m := s.waits[is]; m != nil {
		if delete(s.waits, is); m.As != "" {
			s.out[m.As] = s.said(m, q.Messages)
		}
	}
	left, facts := s.own[is], s.about.stores(is)
	if is == "" {
		if left = s.turn; s.first == nil {
			s.first = q.Messages
		}
	} else if _, ok := s.out[is]; ok {
		if facts == nil || !s.last && s.holds(q.Messages[len(q.Messages)-1].Content) {
			s.out[is] = "yes"
		}
	}
	if len(left) == 0 {
		if facts != nil {
			return model.Reply{Text: facts.answer(nil)}, nil
		}
		return model.Reply{Text: "Nothing more to do."}, nil
	}
	m := &left[0]
	if left = left[1:]; is == "" {
		s.turn = left
	} else {
		s.own[is] = left
		close(s.changed)
		s.changed = make(chan struct{})
	}
	r := model.Reply{Text: s.fill(m.Say), Usage: model.Usage{Prompt: cmp.Or(m.Tokens, 1000), Completion: 20, Calls: 1}}
	if m.Call == "" {
		return r, nil
	}
	call, err := s.call(m, q.Tools)
	if err != nil {
		s.err = cmp.Or(s.err, err)
		return model.Reply{Text: "Nothing more to do."}, nil
	}
	s.waits[is], r.Calls = m, []model.Call{call}
	return r, nil
}

// asked is what a request is for: "" is the user's turn.
func (s *script) asked(q model.Request) string {
	for _, m := range q.Messages {
		if _, is := s.about.User(m.Content); m.Role == model.System && is != "" {
			return is
		}
	}
	for _, m := range slices.Backward(q.Messages) {
		if m.Role != model.User {
			continue
		}
		if _, is := s.about.User(m.Content); is != "context" && is != "nudge" {
			return is
		}
	}
	return ""
}

// call is the call of a move, if the product offers it.
func (s *script) call(m *Move, tools []model.Tool) (model.Call, error) {
	at := slices.IndexFunc(tools, func(t model.Tool) bool { return t.Name == m.Call })
	if at < 0 {
		var names []string
		for _, t := range tools {
			names = append(names, t.Name)
		}
		return model.Call{}, fmt.Errorf("it offers its model no tool %s, only %s", m.Call, strings.Join(names, ", "))
	}
	c := model.Call{Name: m.Call}
	for _, name := range slices.Sorted(maps.Keys(m.Args)) {
		if !slices.ContainsFunc(tools[at].Params, func(p model.Param) bool { return p.Name == name }) {
			return model.Call{}, fmt.Errorf("its tool %s takes no argument %s", m.Call, name)
		}
		value := deep(m.Args[name], s.fill)
		text, ok := value.(string)
		if !ok {
			b, err := json.Marshal(value)
			if err != nil {
				return model.Call{}, err
			}
			text = string(b)
		}
		c.Args = append(c.Args, model.Arg{Name: name, Value: text})
	}
	return c, nil
}

// said is what the answer to a call says, which is the last of the prompt.
func (s *script) said(m *Move, prompt []model.Message) string {
	last := func(role model.Role) string {
		for _, p := range slices.Backward(prompt) {
			if _, is := s.about.User(p.Content); p.Role == role && is == "" {
				return p.Content
			}
		}
		return ""
	}
	answer := last(model.ToolRole)
	signs, out := s.set.Labels, ""
	switch write := strings.HasPrefix(m.As, "write"); {
	case write:
		signs, out = s.set.Writes, "done"
	case s.holds(answer):
		out = "yes"
	case s.holds(last(model.User)):
		return "yes, as the user's"
	default:
		return "no"
	}
	for _, sign := range signs {
		if sign.Pattern.MatchString(answer) {
			if out == "yes" {
				return "yes, " + sign.Is
			}
			return sign.Is
		}
	}
	return out
}

// note notes what was seen.
func (s *script) note(name, seen string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out[name] = seen
}

func (s *script) begin(t *Turn, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.job, s.last, s.first = t.Model, t.Job, last, nil
}

// end returns the first prompt of the turn, unless it did not go as the scenario says.
func (s *script) end() ([]model.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.err
	case s.first == nil:
		return nil, errors.New("it did not ask its model")
	case len(s.turn) > 0 || s.waits[""] != nil:
		return nil, errors.New("it ended the turn before the model had")
	}
	return s.first, nil
}

func (s *script) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// await returns once the product has asked for all that it asks for by itself, at the
// latest after a time.
func (s *script) await(ctx context.Context, most time.Duration) {
	end := time.After(most)
	for {
		s.mu.Lock()
		left, changed := 0, s.changed
		for _, moves := range s.own {
			left += len(moves)
		}
		s.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-changed:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Differences are what two outcomes differ in, by name in order: want is what was expected,
// or seen before.
func Differences(want, seen map[string]string) (out []string) {
	for _, name := range Looks(want, seen) {
		if want[name] != seen[name] {
			out = append(out, fmt.Sprintf("%s was %s", name, cmp.Or(want[name], "not looked at")))
		}
	}
	return out
}

// Looks are the names in outcomes, in the order in which they are shown: what stands in the
// next prompt, what is stored, and the others.
func Looks(outcomes ...map[string]string) (names []string) {
	for _, o := range outcomes {
		for name := range o {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	rank := func(name string) int { return -slices.Index([]string{"stored", "prompt"}, name) }
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	return names
}
