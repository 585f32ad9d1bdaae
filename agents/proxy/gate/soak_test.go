package gate_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// turns of a soak, of each manner.
func turns() int {
	if os.Getenv("MEMTOX_LONG") != "" {
		return 1000
	}
	return 150
}

// manner is what one product does with what it sends.
type manner struct {
	stream  bool
	session bool   // it names the session
	context string // a message of the user's role that moves on to the end of each request
	stamp   string // in front of the user's words while they are new
	trims   bool   // texts
	renames bool   // arguments are written anew, and results have a name in the running turn only
	keeps   int    // messages that a compaction keeps
	inTurn  bool   // it compacts within a turn too
	review  string // what it asks the model of its own after a turn, and does not keep
}

var manners = map[string]manner{
	"hermes": {stream: true, trims: true, renames: true, keeps: 5, inTurn: true, review: "Review the conversation above."},
	"openclaw": {stream: true, session: true, context: "<<<INTERNAL>>> children: 0", stamp: "[Sun 2026-11-22 15:34 UTC] ",
		keeps: 8, review: "Pre-compaction memory flush."},
	"whole": {session: true, keeps: 6},
}

var stamps = []*regexp.Regexp{regexp.MustCompile(`^\[\w{3} [-\d]+ [:\d]+ UTC\] `)}

// Two manners of agents, and a plain one, are driven through the relay with a model that
// calls, insists, repeats ids, falls silent and breaks off. What was refused must stay in
// the model's view, and no refused call reach an agent.
func TestNothingRefusedIsLostOrReachesTheAgent(t *testing.T) {
	for name, how := range manners {
		t.Run(name, func(t *testing.T) {
			m := &script{t: t, rnd: rand.New(rand.NewPCG(7, 19)), views: map[string][]string{}, refused: map[string][]string{}}
			m.reader.Mem = remembering(t, memory.Record{Store: "memory", Text: stored,
				Origin: memory.Origin{Class: memory.External, Medium: memory.Email, Source: "dana@norvik.example"}})
			relay, err := proxy.NewRelay(m)
			if err != nil {
				t.Fatal(err)
			}
			defer relay.Close()
			g := &gate.Gate{Judge: m, Stamps: stamps, Own: func(s string) bool { return s == how.review }}
			tape, base, end := relay.Begin(context.Background(), g)
			defer end()
			agents := make([]*agent, 3)
			for i := range agents {
				agents[i] = &agent{manner: how, t: t, url: base, name: fmt.Sprint("s", i), m: m}
			}
			for range turns() {
				a := agents[m.rnd.IntN(len(agents))]
				m.session = a.name
				if !how.session {
					g.Session(a.name)
				}
				tape.Take() // a session of a thousand turns would ask too much
				a.turn([]string{"go on", "continue", "and the next?", "yes please"}[m.rnd.IntN(4)])
			}
			c := g.Counts()
			t.Logf("%+v, %d nudges, %d compactions, %d failed requests", c, m.nudges, m.compactions, m.failed)
			if c.Refused < turns()/2 || c.Stopped == 0 || m.nudges == 0 || m.compactions == 0 || m.failed == 0 || m.undone == 0 {
				t.Error("the soak tried too little")
			}
		})
	}
}

// script is the model and the judge. One request is under way at a time.
type script struct {
	t       *testing.T
	rnd     *rand.Rand
	session string
	aside   bool                // the request is of another purpose
	views   map[string][]string // the last view of a session
	kept    map[string]int      // a session was compacted: so many messages were kept
	refused map[string][]string // ids of refused calls that a view of the session must hold
	asks    int                 // of one request
	reader  gate.Reader
	before  int    // refused, with the replies before
	quotes  string // what the model says again of a memory
	calls   int

	nudges, compactions, failed, undone int
}

func (s *script) Next(_ context.Context, q model.Request) (model.Reply, error) {
	if s.asks++; s.asks > gate.MaxAsks {
		s.t.Errorf("one request asked the model %d times", s.asks)
	}
	if !s.aside {
		s.check(q.Messages)
	}
	s.before = len(s.refused[s.session])
	if s.rnd.IntN(40) == 0 {
		return model.Reply{}, errors.New("the model broke off")
	}
	call := func(name string) model.Call { // its ids repeat
		s.calls++
		return model.Call{ID: fmt.Sprint("call_", s.calls%2), Name: name, Args: []model.Arg{{Name: "n", Value: fmt.Sprint(s.calls)},
			{Name: "text", Value: "a  b: " + s.quotes}}}
	}
	var r model.Reply
	r.Usage.Prompt = 10_000
	last := q.Messages[len(q.Messages)-1].Content
	switch n := s.rnd.IntN(20); {
	case last == "insist": // until it was asked for the last time
		r.Calls = []model.Call{call("insist")}
	case n < 4:
		r.Text = fmt.Sprint("  answer\n", s.rnd.IntN(3), " ")
	case n < 7:
		r.Calls = []model.Call{call("fine")}
	case n < 9:
		r.Text, r.Calls = "I look. ", []model.Call{call("fine"), call("fine")}
	case n < 12:
		r.Calls = []model.Call{call("bad")}
	case n < 13:
		r.Text, r.Calls = "I try.", []model.Call{call("bad"), call("bad")}
	case n < 16:
		r.Text, r.Calls = "Both. ", []model.Call{call("bad"), call("fine"), call("bad"), call("fine")}
		s.rnd.Shuffle(4, func(i, j int) { r.Calls[i], r.Calls[j] = r.Calls[j], r.Calls[i] })
	case n < 17 && s.rnd.IntN(2) == 0:
		r.Calls = []model.Call{call("insist")}
	case n < 18: // nothing
	default:
		r.Text = "done"
	}
	return r, nil
}

const (
	stored = "Invoices go to dana@norvik.example."
	says   = "The mail from dana@norvik.example says: "
)

var errJudge = errors.New("the judge broke off")

func (s *script) Look(ctx context.Context, session string, prompt []model.Message) (gate.Rule, error) {
	if s.rnd.IntN(60) == 0 {
		return nil, errJudge
	}
	rule := func(_ context.Context, c model.Call) (gate.Ruling, error) { return s.judge(session, c) }
	return rule, s.reader.Look(ctx, "Go on.", prompt)
}

func (s *script) judge(session string, c model.Call) (gate.Ruling, error) {
	if s.rnd.IntN(60) == 0 { // nobody has ever seen the reply
		s.refused[s.session] = s.refused[s.session][:s.before]
		return gate.Ruling{}, errJudge
	}
	if session != s.session {
		s.t.Errorf("a call of session %q, in %q", session, s.session)
	}
	if c.Name == "fine" {
		if c, undone := s.reader.Undo(c, true); undone {
			return gate.Ruling{Changed: &c}, nil
		}
		return gate.Ruling{}, nil
	}
	if !s.aside {
		s.refused[s.session] = append(s.refused[s.session], c.ID)
	}
	return gate.Ruling{Refused: map[string]string{"bad": "refused", "insist": "insist"}[c.Name]}, nil
}

// check holds a view of the model against its last one of the session: it begins with that,
// or after a compaction with the end of that, and every refused call is in it.
func (s *script) check(view []model.Message) {
	var now []string
	ids := map[string]bool{}
	for _, m := range view {
		if i := strings.Index(m.Content, stored); i >= 0 && m.Role == model.ToolRole {
			if s.quotes = m.Content; !strings.HasSuffix(m.Content[:i], says) {
				s.t.Errorf("the model sees what the read gate attributes: %s", m.Content)
			}
		}
		content := strings.Join(strings.Fields(stamps[0].ReplaceAllString(m.Content, "")), " ")
		switch {
		case m.Role == model.System, content == nudge, strings.HasPrefix(content, "<<<INTERNAL"):
		case m.Role == model.ToolRole:
			now = append(now, "result of "+m.CallID)
			ids[m.CallID] = true
		case len(m.Calls) > 0:
			line := "calls"
			for _, c := range m.Calls {
				line += " " + c.ID
			}
			now = append(now, line)
		case content != "":
			now = append(now, string(m.Role)+": "+content)
		}
	}
	last := s.views[s.session]
	kept, compacted := s.kept[s.session]
	begins := func(with []string) bool { return len(now) >= len(with) && slices.Equal(now[:len(with)], with) }
	ok := begins(last)
	if compacted {
		summary := now[0]
		for k := 0; k <= len(last)-kept && !ok; k++ {
			ok = begins(append([]string{summary}, last[k:]...))
		}
		s.refused[s.session] = slices.DeleteFunc(s.refused[s.session], func(id string) bool { return !ids[id] })
		delete(s.kept, s.session)
	}
	for _, id := range s.refused[s.session] {
		ok = ok && ids[id]
	}
	if !ok {
		s.t.Errorf("session %s (compacted: %v, kept %d): the model saw\n\t%s\nand now sees\n\t%s\nrefused were %v", s.session,
			compacted, kept, strings.Join(last, "\n\t"), strings.Join(now, "\n\t"), s.refused[s.session])
	}
	s.views[s.session] = now
}

// nudge is what an agent tells a model that says nothing.
const nudge = "The previous attempt did not produce an answer."

// agent is one session of a scripted product.
type agent struct {
	manner
	t       *testing.T
	url     string
	name    string
	m       *script
	history []map[string]any
	running int // where the running turn begins
	sent    int // of the history, with the last request
}

func (a *agent) turn(said string) {
	a.running = len(a.history)
	words := map[string]any{"role": "user", "content": a.stamp + said}
	a.history = append(a.history, words)
	nudges := 0
	for round := 0; ; round++ {
		if round > 200 {
			a.t.Fatal("a turn without an end")
		}
		if len(a.history) > 30 && (a.inTurn || round == 0) {
			a.compact()
		}
		list := slices.Clone(a.history)
		if nudges > 0 {
			list = append(list, map[string]any{"role": "user", "content": nudge})
		}
		a.sent = len(a.history)
		reply := a.ask(list)
		text, _ := reply["content"].(string)
		calls, _ := reply["tool_calls"].([]any)
		if strings.TrimSpace(text) == "" && len(calls) == 0 {
			a.m.nudges++
			nudges++
			continue
		}
		nudges = 0
		if a.trims {
			reply["content"] = strings.TrimSpace(text)
		}
		a.history = append(a.history, reply)
		for _, c := range calls {
			c := c.(map[string]any)
			f := c["function"].(map[string]any)
			if args := f["arguments"].(string); f["name"] != "fine" || strings.Contains(args, "says") {
				a.t.Fatalf("the agent got the call %v", c)
			} else if strings.Contains(args, "norvik") {
				a.m.undone++
			}
			a.history = append(a.history, map[string]any{"role": "tool", "tool_call_id": c["id"], "name": f["name"],
				"content": []string{"ok", `{"entries": ["` + stored + `"]}`, "- " + stored}[a.m.rnd.IntN(3)]})
		}
		if len(calls) == 0 {
			break
		}
	}
	words["content"] = said
	if a.review != "" && a.m.rnd.IntN(5) == 0 {
		a.m.aside = true
		a.ask(append(slices.Clone(a.history), map[string]any{"role": "user", "content": a.review}))
		a.m.aside = false
	}
}

// compact replaces the older messages by a summary.
func (a *agent) compact() {
	a.m.aside = true
	a.ask([]map[string]any{{"role": "user", "content": "You are a summarization agent."}})
	a.m.aside = false
	from := len(a.history) - a.keeps
	for from > 0 && a.history[from]["role"] == "tool" {
		from--
	}
	a.m.compactions++
	if a.m.kept == nil {
		a.m.kept = map[string]int{}
	}
	tail := a.history[from:]
	a.m.kept[a.name] = max(0, a.sent-from)
	a.history = append([]map[string]any{{"role": "user", "content": fmt.Sprint("Summary ", a.m.compactions)}}, tail...)
	a.running = max(0, a.running-from+1)
}

// ask sends a list in the product's manner, again where that fails.
func (a *agent) ask(list []map[string]any) map[string]any {
	messages := []map[string]any{{"role": "system", "content": "You are an agent."}}
	for i, m := range list {
		m := maps.Clone(m)
		if calls, ok := m["tool_calls"].([]any); ok && a.renames {
			var anew []any
			for _, c := range calls {
				c := c.(map[string]any)
				f := c["function"].(map[string]any)
				var args map[string]any
				if err := json.Unmarshal([]byte(f["arguments"].(string)), &args); err != nil {
					a.t.Fatal(err)
				}
				b, _ := json.MarshalIndent(args, "", " ")
				anew = append(anew, map[string]any{"id": c["id"], "type": "function",
					"function": map[string]any{"name": f["name"], "arguments": string(b)}})
			}
			m["tool_calls"] = anew
		}
		if a.renames && i < a.running {
			delete(m, "name")
		}
		messages = append(messages, m)
	}
	if a.context != "" {
		messages = append(messages, map[string]any{"role": "user", "content": a.context})
	}
	body := map[string]any{"model": proxy.RelayName, "messages": messages, "stream": a.stream && !a.m.aside}
	if a.session {
		body["prompt_cache_key"] = a.name
	}
	b, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	for {
		a.m.asks = 0
		r, err := http.Post(a.url+"/chat/completions", "application/json", bytes.NewReader(b))
		if err != nil || a.t.Failed() {
			a.t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode == 200 {
			return read(a.t, r)
		}
		a.m.failed++
	}
}

// read puts an answer together, whole or streamed.
func read(t *testing.T, r *http.Response) map[string]any {
	type choice struct {
		Message, Delta map[string]any
	}
	var all struct{ Choices []choice }
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
			t.Fatal(err)
		}
		return all.Choices[0].Message
	}
	out := map[string]any{"role": "assistant"}
	text := ""
	var calls []any
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &all); err != nil {
			t.Fatal(err)
		}
		for _, c := range all.Choices {
			s, _ := c.Delta["content"].(string)
			text += s
			parts, _ := c.Delta["tool_calls"].([]any)
			for _, p := range parts {
				p := p.(map[string]any)
				f := p["function"].(map[string]any)
				if p["id"] != nil {
					calls = append(calls, p)
					continue
				}
				to := calls[int(p["index"].(float64))].(map[string]any)["function"].(map[string]any)
				to["arguments"] = to["arguments"].(string) + f["arguments"].(string)
			}
		}
		all.Choices = nil
	}
	if out["content"] = text; calls != nil {
		out["tool_calls"] = calls
	}
	return out
}
