package installed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

func init() { drivers["openclaw"] = func() Driver { return &openClaw{map[string]*openClawGateway{}} } }

// openClaw keeps one gateway for many trials: to start it takes as long as to work on
// two. Each trial has an agent of its own, with its own workspace, index and sessions.
type openClaw struct {
	gates map[string]*openClawGateway // that run, by the arm of its own defenses
}

// agentsOf is how many trials a gateway serves, whose agents are all there from its start:
// it grows with each, and to add one later takes longer.
const agentsOf = 32

// Start implements [Driver].
func (d *openClaw) Start(ctx context.Context, s *Setup) (Instance, error) {
	if g := d.gates[s.Own]; g != nil && (g.used == agentsOf || g.broken || g.over()) {
		delete(d.gates, s.Own)
		_ = g.close()
	}
	for {
		g, kept := d.gates[s.Own]
		if !kept {
			var err error
			if g, err = startOpenClaw(ctx, s); err != nil {
				return nil, err
			}
			d.gates[s.Own] = g
		}
		t, err := g.trial(ctx, s)
		if kept && errors.Is(err, errMeddled) { // an agent of a trial before
			delete(d.gates, s.Own)
			_ = g.close()
			continue
		}
		if err != nil {
			g.broken = true
			return nil, err
		}
		return t, nil
	}
}

// Close implements [Driver].
func (d *openClaw) Close() error {
	var err error
	for _, g := range d.gates {
		err = errors.Join(err, g.close())
	}
	return err
}

// openClawGateway is a gateway that serves trials.
type openClawGateway struct {
	*gateway
	front  *openClawFront
	used   int  // agents that had a trial
	broken bool // a trial failed: what it began may go on
}

func startOpenClaw(ctx context.Context, s *Setup) (*openClawGateway, error) {
	front, err := newOpenClawFront()
	if err != nil {
		return nil, err
	}
	own := *s // it outlives the trial, and remembers nothing
	own.Ports, own.ToolsURL, own.ModelURL, own.Memory = []int{front.port}, front.toolsURL(), front.url("v1"), nil
	g := &openClawGateway{front: front}
	ready := answers("/readyz")
	g.gateway, err = startGateway(ctx, &own, g.addAgents, func(ctx context.Context, of *gateway) bool {
		is := ready(ctx, of)
		if is && own.Own != memory.ProductOff { // without its memory plugin nothing can be searched
			_, err := g.search(ctx, agentName(0), "anything")
			is = err == nil
		}
		return is
	})
	if err != nil {
		front.stop()
		return nil, err
	}
	return g, nil
}

// agentName is what an agent of a gateway is called.
func agentName(n int) string { return fmt.Sprintf("a%d", n) }

// addAgents writes the agents into the configuration: each with a workspace of its own,
// and with a model of its own, so that what an agent still asks after its trial is not
// taken for another's.
func (g *openClawGateway) addAgents(of *gateway) error {
	g.gateway = of
	const path = ".openclaw/openclaw.json"
	content, err := read(g.Home, path)
	if err != nil {
		return err
	}
	var config struct {
		Models struct {
			Mode      string            `json:"mode"`
			Providers map[string]object `json:"providers"`
		} `json:"models"`
		Agents struct {
			Ownership string            `json:"ownership"`
			Defaults  object            `json:"defaults"`
			Entries   map[string]object `json:"entries"`
		} `json:"agents"`
	}
	var whole object
	for _, into := range []any{&config, &whole} {
		if err := json.Unmarshal([]byte(content), into); err != nil {
			return err
		}
	}
	for n := range agentsOf {
		name := agentName(n)
		provider := maps.Clone(config.Models.Providers["memtox"])
		provider["baseUrl"] = g.front.modelURL(n)
		config.Models.Providers[name] = provider
		config.Agents.Entries[name] = object{"workspace": filepath.Join(g.dir(n), "work"),
			"model": object{"primary": name + "/" + g.ModelName}}
		if err := os.MkdirAll(filepath.Join(g.dir(n), "work"), 0o700); err != nil {
			return err
		}
	}
	whole["models"], whole["agents"] = config.Models, config.Agents
	b, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return write(g.Home, path, string(b))
}

// dir is the folder of an agent, which to the product's file is the box.
func (g *openClawGateway) dir(n int) string { return filepath.Join(g.Work, agentName(n)) }

func (g *openClawGateway) over() bool {
	select {
	case <-g.process.Done():
		return true
	default:
		return false
	}
}

func (g *openClawGateway) close() error {
	err := g.gateway.Close()
	g.front.stop()
	return err
}

// ask sends the gateway a request and reads its answer.
func (g *openClawGateway) ask(ctx context.Context, path, session string, body, into any) error {
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + g.Secret}}
	if session != "" {
		header.Set("X-Openclaw-Session-Key", session)
	}
	for {
		said, resp, err := g.post(ctx, path, body, header)
		switch {
		case err != nil:
			return err
		case resp.StatusCode == http.StatusServiceUnavailable: // it is still coming up
			select {
			case <-ctx.Done():
				return fmt.Errorf("its gateway answers %s: %w", resp.Status, context.Cause(ctx))
			case <-time.After(100 * time.Millisecond):
			}
			continue
		case resp.StatusCode != http.StatusOK:
			return fmt.Errorf("its gateway answers %s: %s", resp.Status, remote.Quote(text.Clip(string(said), 300)))
		}
		if err := json.Unmarshal(said, into); err != nil {
			return fmt.Errorf("its gateway answers what is no JSON: %s", remote.Quote(text.Clip(string(said), 300)))
		}
		return nil
	}
}

// found is what a search of an agent's memory says.
type found struct {
	Results []struct{ Path, Snippet string }
	// Disabled and Stale say that it did not search what there is.
	Disabled, Stale bool
	Error           string
	Debug           struct{ WithheldHits int }
}

// search searches an agent's memory without its model.
func (g *openClawGateway) search(ctx context.Context, agent, query string) (*found, error) {
	f := new(found)
	if err := g.invoke(ctx, agent, "memory_search", object{"query": query, "maxResults": 50}, f); err != nil {
		return nil, fmt.Errorf("searching its memory: %w", err)
	}
	return f, nil
}

// invoke runs a tool of an agent without its model.
func (g *openClawGateway) invoke(ctx context.Context, agent, tool string, args object, into any) error {
	var answer struct {
		Result struct{ Details any }
	}
	answer.Result.Details = into
	return g.ask(ctx, "/tools/invoke", "", object{"tool": tool, "args": args, "sessionKey": "agent:" + agent + ":" + probing},
		&answer)
}

// probing is the session in which memtox itself uses tools.
const probing = "memtox"

// openClawTrial is an agent of a gateway in its trial.
type openClawTrial struct {
	*Setup
	gate    *openClawGateway
	agent   string
	dir     string
	begun   *Picture
	session string
	indexed map[string]string // contents of files that the index has, by path
}

// errMeddled says that the folder of an agent that had no trial yet is not empty.
var errMeddled = errors.New("something is in the folder of its agent before the trial begins")

// untouched finds what lies in the folder of an agent before its trial.
func (g *openClawGateway) untouched(n int) error {
	return fs.WalkDir(os.DirFS(g.dir(n)), ".", func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", errMeddled, err)
		case path != "." && path != "work":
			return fmt.Errorf("%w: %s", errMeddled, remote.Quote(text.Clip(path, 100)))
		}
		return nil
	})
}

func (g *openClawGateway) trial(ctx context.Context, s *Setup) (*openClawTrial, error) {
	n := g.used
	g.used++
	if err := g.untouched(n); err != nil {
		return nil, err
	}
	t := &openClawTrial{Setup: s, gate: g, agent: agentName(n), dir: g.dir(n), indexed: map[string]string{}}
	if err := s.Product.Remember(t.dir, s.Memory); err != nil {
		return nil, err
	}
	// What it remembers from before is older than what comes now: searches show the day.
	yesterday := time.Now().AddDate(0, 0, -1)
	for i := range s.Product.Stores {
		root, err := os.OpenRoot(t.dir)
		if err != nil {
			return nil, err
		}
		err = root.Chtimes(filepath.FromSlash(s.Product.Stores[i].File), yesterday, yesterday)
		root.Close()
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	g.front.serve(n, s)
	var err error
	if t.begun, err = s.Product.Look(t.dir, nil); err != nil {
		return nil, err
	}
	return t, t.follow(ctx)
}

// Session implements [Instance].
func (t *openClawTrial) Session(context.Context) error {
	t.session = "agent:" + t.agent + ":" + secret()
	return nil
}

// Say implements [Instance].
func (t *openClawTrial) Say(ctx context.Context, said string) (string, error) {
	return t.SayWith(ctx, said, nil)
}

// SayWith implements [lender].
func (t *openClawTrial) SayWith(ctx context.Context, said string, tools map[string]string) (string, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t.gate.front.watch(stop)
	messages := []any{object{"role": "user", "content": said}}
	body := object{"model": "openclaw/" + t.agent, "stream": false}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		list, _ := body["tools"].([]object)
		body["tools"] = append(list, object{"type": "function", "function": object{"name": name,
			"description": "Reads what is new.", "parameters": object{"type": "object", "properties": object{}}}})
	}
	for {
		var answer struct {
			Choices []struct{ Message json.RawMessage }
		}
		var message struct {
			Content string
			Calls   []struct {
				ID       string
				Function struct{ Name string }
			} `json:"tool_calls"`
		}
		body["messages"] = messages
		err := t.gate.ask(ctx, "/v1/chat/completions", t.session, body, &answer)
		switch {
		case err != nil:
		case len(answer.Choices) != 1:
			err = fmt.Errorf("its gateway answers with %d choices", len(answer.Choices))
		default:
			err = json.Unmarshal(answer.Choices[0].Message, &message)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err != nil {
			t.gate.broken = true
			return "", err
		}
		if len(message.Calls) == 0 || tools == nil {
			return message.Content, nil
		}
		messages = append(messages, answer.Choices[0].Message)
		for _, c := range message.Calls {
			messages = append(messages, object{"role": "tool", "tool_call_id": c.ID, "content": tools[c.Function.Name]})
		}
	}
}

// Job implements [scheduler]. The job is due in a year, and run at once as its user may have it.
func (t *openClawTrial) Job(ctx context.Context, prompt string) (string, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t.gate.front.watch(stop)
	cron := func(into any, args ...string) error {
		said, err := t.gate.run(ctx, append([]string{"cron"}, args...)...)
		if err == nil {
			err = json.Unmarshal([]byte(said[max(0, strings.IndexByte(said, '{')):]), into)
		}
		return err
	}
	var job struct{ ID string }
	var ran struct {
		Run struct{ Summary string }
	}
	err := cron(&job, "add", "--json", "--at=365d", "--name=news", "--agent="+t.agent, "--session=isolated", "--no-deliver",
		"--message="+prompt)
	if err == nil {
		err = cron(&ran, "run", job.ID, "--wait", "--poll-interval=200ms")
	}
	if err != nil {
		t.gate.broken = true
		return "", fmt.Errorf("having its job run: %w", cmp.Or(context.Cause(ctx), err))
	}
	return ran.Run.Summary, nil
}

// Settle implements [Instance].
func (t *openClawTrial) Settle(ctx context.Context) error {
	err := t.Traffic.Quiet(ctx, 0)
	if err == nil {
		err = t.follow(ctx)
	}
	t.gate.broken = t.gate.broken || err != nil
	return err
}

// following is how long the index may take to follow the files. A search that took the
// product more than half a minute has it answer none for another minute.
const following = 150 * time.Second

// nudging is after how long the index is shown a file again.
const nudging = 20 * time.Second

// touch makes a file of an agent's folder a second younger.
func touch(dir, file string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	st, err := root.Stat(filepath.FromSlash(file))
	if err != nil {
		return err
	}
	at := st.ModTime().Add(time.Second)
	return root.Chtimes(filepath.FromSlash(file), at, at)
}

// follow waits until the index has what stands in the files: of each that changed, its
// last entry.
func (t *openClawTrial) follow(ctx context.Context) error {
	if t.Own == memory.ProductOff {
		return nil // there is no index
	}
	now, err := t.Product.Look(t.dir, nil)
	if err != nil {
		return err
	}
	// Of each file what was written last: of what is new in it, or else of all.
	last, whole := map[string]string{}, map[string]string{}
	for _, fresh := range []bool{false, true} {
		for _, i := range now.Items {
			if !fresh {
				whole[i.File] += i.Text + "\n"
			}
			if len(words(i.Text)) > 0 && !(fresh && slices.Contains(strings.Split(t.indexed[i.File], "\n"), i.Text)) {
				last[i.File] = i.Text
			}
		}
	}
	end, nudge := time.Now().Add(following), time.Now().Add(nudging)
	for _, file := range slices.Sorted(maps.Keys(last)) {
		for whole[file] != t.indexed[file] {
			if time.Now().After(nudge) { // it misses changes at times where the machine is busy
				nudge = time.Now().Add(nudging)
				if err := touch(t.dir, file); err != nil {
					return fmt.Errorf("having its index look at %s again: %w", file, err)
				}
			}
			look := words(last[file])
			f, err := t.gate.search(ctx, t.agent, strings.Join(look, " "))
			switch {
			case err != nil:
				return err
			case f.has(strings.TrimPrefix(file, "work/"), look):
				t.indexed[file] = whole[file]
				continue
			case time.Now().After(end):
				return fmt.Errorf("its index does not follow its memory: a search for %s finds nothing in %s: %s",
					remote.Quote(strings.Join(look, " ")), file, f)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

// String says how the search ended.
func (f *found) String() string {
	var at []string
	for _, r := range f.Results {
		at = append(at, text.Clip(r.Path, 40))
	}
	out := fmt.Sprintf("%d hits in %s", len(f.Results), remote.Quote(strings.Join(at, ", ")))
	if f.Disabled || f.Stale || f.Error != "" {
		out += fmt.Sprintf(", disabled %v, stale %v: %s", f.Disabled, f.Stale, remote.Quote(text.Clip(f.Error, 200)))
	}
	return out
}

// has reports whether a search found words of an entry in a file. Of what the product
// withholds it says only how much.
func (f *found) has(file string, words []string) bool {
	if f.Disabled || f.Stale || f.Error != "" {
		return false
	}
	for _, r := range f.Results {
		lacks := func(w string) bool { return !strings.Contains(r.Snippet, w) }
		if r.Path == file && !slices.ContainsFunc(words, lacks) {
			return true
		}
	}
	return f.Debug.WithheldHits > 0
}

// words are those of an entry by which it is searched for: few, and the longest of its
// beginning, for what is found is cut.
func words(entry string) []string {
	all := strings.FieldsFunc(text.Clip(entry, 160),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all[:min(len(all), 5)]
}

// Memory implements [Instance].
func (t *openClawTrial) Memory(context.Context) ([]Item, error) {
	p, err := t.Product.Look(t.dir, t.begun)
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}

// Load implements [Instance].
func (t *openClawTrial) Load(ctx context.Context, items []Item) error {
	if err := t.Product.Remember(t.dir, items); err != nil {
		return err
	}
	return t.follow(ctx)
}

// Dir implements [Folder].
func (t *openClawTrial) Dir() string { return t.dir }

// Close implements [Instance].
func (t *openClawTrial) Close() error {
	t.gate.front.close()
	return nil
}

// openClawFront is what a gateway reaches of memtox: one port, at which the agent whose
// trial is under way has its model, and the trial's tools. Each agent's model has a path of
// its own that nobody can guess. The tools have one for all, as the product offers a server
// to all its agents: there a session of the protocol belongs to the trial in which it began.
type openClawFront struct {
	port   int
	stop   func()
	secret string   // in the path of the tools
	agents []string // in the path of each agent's model

	mu    sync.Mutex
	trial *openClawStand // that is under way; nil between trials
}

// openClawStand is what stands at the front for one trial.
type openClawStand struct {
	agent   string // in the path of its model
	session string // of the tools' protocol
	offers  bool   // the trial has tools
	paged   string // path of its pages
	pages   http.Handler
	model   http.Handler
	tools   http.Handler
	ends    context.CancelCauseFunc // the turn under way
}

func newOpenClawFront() (_ *openClawFront, err error) {
	f := &openClawFront{secret: secret()}
	for range agentsOf {
		f.agents = append(f.agents, secret())
	}
	f.port, f.stop, err = open(f)
	return f, err
}

func (f *openClawFront) url(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/%s", f.port, path)
}

// modelURL is where an agent has its model, toolsURL where each has the trial's tools.
func (f *openClawFront) modelURL(n int) string { return f.url(f.agents[n] + "/v1") }
func (f *openClawFront) toolsURL() string      { return f.url(f.secret + "/mcp") }

// serve begins the trial of an agent, and says where that has the trial's pages.
func (f *openClawFront) serve(n int, of *Setup) {
	s := &openClawStand{agent: f.agents[n], session: secret(), offers: len(of.Tools) > 0, paged: secret()}
	lead, served := leading(of.ModelURL, "/"+s.agent+"/v1"), leading(of.ToolsURL, "/"+f.secret+"/mcp")
	s.pages, of.PagesURL = leading(of.PagesURL, "/"+s.paged), f.url(s.paged)
	lead.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode >= 500 { // it would ask again for minutes
			f.fail(errors.New("its model failed"))
		}
		return nil
	}
	served.ModifyResponse = func(r *http.Response) error {
		r.Header.Set(mcpSession, s.session)
		return nil
	}
	s.model, s.tools = lead, served
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trial = s
}

// mcpSession is the header that names a session of the tools' protocol.
const mcpSession = "Mcp-Session-Id"

// watch has a turn end where its model or a search fails.
func (f *openClawFront) watch(stop context.CancelCauseFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trial != nil {
		f.trial.ends = stop
	}
}

func (f *openClawFront) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trial != nil && f.trial.ends != nil {
		f.trial.ends(err)
	}
}

// leading leads requests below a path to another address of memtox's own.
func leading(address, from string) *httputil.ReverseProxy {
	to, _ := url.Parse(address)
	return &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
			r.Out.URL.Path, r.Out.URL.RawPath = to.Path+strings.TrimPrefix(r.In.URL.Path, from), ""
		}}
}

// close ends the trial: what its agent still asks is not answered.
func (f *openClawFront) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trial = nil
}

// maxPrompt bounds a request to the model, or of a tool.
const maxPrompt = 16 << 20

// ServeHTTP implements [http.Handler].
func (f *openClawFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	t := f.trial
	f.mu.Unlock()
	if t != nil && strings.HasPrefix(r.URL.Path, "/"+t.paged+"/") {
		t.pages.ServeHTTP(w, r)
		return
	}
	model := t != nil && strings.HasPrefix(r.URL.Path, "/"+t.agent+"/v1/")
	if !model && (t == nil || r.URL.Path != "/"+f.secret+"/mcp") {
		http.NotFound(w, r)
		return
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPrompt))
	if err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	switch {
	case model:
		if err := amiss(b, t.offers); err != nil {
			f.fail(err)
		}
		t.model.ServeHTTP(w, r)
	case r.Header.Get(mcpSession) == t.session, begins(b):
		t.tools.ServeHTTP(w, r)
	default: // of an agent whose trial is over
		http.NotFound(w, r)
	}
}

// begins reports whether a request begins a session of the tools' protocol.
func begins(body []byte) bool {
	var m struct{ Method string }
	return json.Unmarshal(body, &m) == nil && m.Method == "initialize"
}

// amiss is what a prompt tells of the product that does not work: a search of memory that did
// not search all that there is, or, where the trial has tools, a user's turn without them. In
// that files are read and written.
func amiss(body []byte, offers bool) error {
	var prompt struct {
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name string }
			} `json:"tool_calls"`
		}
		Tools []struct{ Function struct{ Name string } }
	}
	if json.Unmarshal(body, &prompt) != nil {
		return nil
	}
	searches := map[string]bool{}
	for _, m := range prompt.Messages {
		for _, c := range m.ToolCalls {
			searches[c.ID] = c.Function.Name == "memory_search"
		}
		var said string
		var of found
		if m.Role == "tool" && searches[m.ToolCallID] && json.Unmarshal(m.Content, &said) == nil &&
			json.Unmarshal([]byte(said), &of) == nil && (of.Disabled || of.Stale || of.Error != "") {
			return fmt.Errorf("a search of its memory failed: %s", remote.Quote(text.Clip(said, 300)))
		}
	}
	edits, ours := false, false
	for _, t := range prompt.Tools {
		edits = edits || t.Function.Name == "edit"
		ours = ours || strings.HasPrefix(t.Function.Name, "memtox__")
	}
	if offers && edits && !ours {
		return errors.New("it offers its model none of the trial's tools: it did not wait for their server")
	}
	return nil
}
