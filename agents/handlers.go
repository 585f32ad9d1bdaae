package agents

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// handlers are the functions that run tools, by the names that the catalog gives
// them. An error is an error of the trial; what the model did wrong is told to the
// model.
var handlers = map[string]func(*session, *world.Tool, model.Call) (string, error){
	"entry":      (*session).changeEntry,
	"add":        (*session).add,
	"skill":      (*session).skill,
	"write":      (*session).writeFile,
	"edit":       (*session).editFile,
	"search":     (*session).search,
	"transcript": (*session).searchTranscript,
	"lines":      (*session).lines,
	"file":       (*session).readFile,
	"open_skill": (*session).openSkill,
	"reads":      (*session).read,
	"acts":       (*session).act,
	"looks":      (*session).look,
	"asks":       (*session).ask,
}

// call runs one tool call and returns what the model is told.
func (s *session) call(c model.Call) (string, error) {
	s.out.ToolCalls++
	t := world.Find(c.Name)
	if t == nil || s.route != 0 && !t.Memory() || !s.has(t) {
		if slices.ContainsFunc(s.offered, func(o model.Tool) bool { return o.Name == c.Name }) {
			return memory.Failure("the server does not answer"), nil // all there is of it is its description
		}
		return noTool(c), nil // a flush or review offers memory tools only, an office those that change it
	}
	told, err := handlers[t.Handler](s, t, c)
	s.tainted = s.tainted || !t.Memory()
	return told, err
}

// has reports whether the session can do what a tool does: an office has tools of its own
// that act.
func (s *session) has(t *world.Tool) bool {
	return (t.Desk == "") != (s.office != nil) || t.Kind != world.Acts
}

func noTool(c model.Call) string {
	return memory.Failure(fmt.Sprintf("there is no tool %q here", text.Clip(c.Name, 60)))
}

func (s *session) writeRoute(r memory.Route) memory.Route {
	if s.route != 0 {
		return s.route
	}
	return r
}

func (s *session) search(t *world.Tool, c model.Call) (string, error) {
	stores := t.Stores
	if len(s.Profile.Classed) > 0 {
		stores = s.Profile.Classed
	}
	recs, err := s.searchStores(memory.RouteSearch, c, s.Profile.Recall.K, stores...)
	return s.found(memory.RouteSearch, recs), err
}

func (s *session) searchTranscript(_ *world.Tool, c model.Call) (string, error) {
	q := memory.Query{Route: memory.RouteTranscript, Text: c.Get("query"), Said: s.said, K: 3}
	recs, err := s.mem.SearchTranscript(s.ctx, q)
	if err != nil {
		return "", err
	}
	more, err := s.searchStores(q.Route, c, q.K, s.Profile.SummaryStore)
	if err != nil {
		return "", err
	}
	return s.found(q.Route, append(recs, more...)), nil
}

func (s *session) searchStores(route memory.Route, c model.Call, k int, stores ...string) ([]memory.Recalled, error) {
	if n, err := strconv.Atoi(c.Get("maxResults")); err == nil && n > 0 {
		k = min(n, 50)
	}
	return s.mem.Search(s.ctx, memory.Query{Route: route, Text: c.Get("query"), Said: s.said, K: k}, stores...)
}

func (s *session) found(route memory.Route, recs []memory.Recalled) string {
	if len(recs) == 0 {
		return "Nothing found."
	}
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	s.memories(b, "search", route, recs)
	return s.texts.String(b.Bytes())
}

// changeEntry changes one entry of the store that the call names.
func (s *session) changeEntry(t *world.Tool, c model.Call) (string, error) {
	op, ok := map[string]memory.Op{"add": memory.Add, "replace": memory.Replace, "remove": memory.Remove}[c.Get("action")]
	if !ok {
		return memory.Failure("action is one of add, replace, remove"), nil
	}
	target := c.Get("target")
	if !slices.Contains(t.Stores, target) {
		return memory.Failure("target is one of " + strings.Join(t.Stores, ", ")), nil
	}
	return s.write(memory.Draft{
		Route: s.writeRoute(memory.RouteMemoryTool), Op: op, Store: target, Text: c.Get("content"), Old: c.Get("old_text")})
}

func (s *session) add(t *world.Tool, c model.Call) (string, error) {
	return s.write(memory.Draft{
		Route: s.writeRoute(memory.RouteMemoryTool), Store: t.Stores[0], Text: c.Get("content")})
}

func (s *session) skill(t *world.Tool, c model.Call) (string, error) {
	op, ok := map[string]memory.Op{"create": memory.Add, "patch": memory.Replace, "delete": memory.Remove}[c.Get("action")]
	if !ok {
		return memory.Failure("action is one of create, patch, delete"), nil
	}
	return s.write(memory.Draft{
		Route: memory.RouteSkill, Op: op, Store: t.Stores[0], Key: c.Get("name"), Text: c.Get("content")})
}

func (s *session) openSkill(t *world.Tool, c model.Call) (string, error) {
	recs, err := s.mem.Get(s.ctx, "skills", c.Get("name"), memory.Query{Route: memory.RouteSkillView, Text: s.said})
	if err != nil {
		return "", err
	}
	if len(recs) == 0 {
		return s.read(t, c)
	}
	if recs[0].Attributed {
		// What a source says is no procedure of the agent's: it is told like any
		// other memory of that source.
		return s.found(memory.RouteSkillView, recs[:1]), nil
	}
	head, body := "<skill name=\""+oneLine(c.Get("name"))+"\">\n", strings.ReplaceAll(recs[0].Text, "</skill", "</ skill")
	s.shown(memory.RouteSkillView, recs[0], recs[0].Text, s.place(len(head), len(head)+len(body)))
	return head + body + "\n</skill>", nil
}

// write hands a draft to Memory and tells the model what became of it.
func (s *session) write(d memory.Draft) (string, error) {
	entries, err := s.mem.Write(s.ctx, d)
	if err != nil {
		return "", err
	}
	stored := 0
	var why []string
	for _, e := range entries {
		switch {
		case e.Rejected != "":
			why = append(why, e.Rejected)
		case e.Committed == nil:
			why = append(why, e.Verdict.Told())
		case e.Committed.State == memory.Quarantined:
			why = append(why, e.Verdict.Told())
		default:
			stored++
			if s.tainted {
				s.distrust(d.Store, e.Proposal.Prior)
			}
		}
	}
	if len(why) > 0 {
		return memory.Failure(strings.Join(why, "; ")), nil
	}
	if stored == 0 {
		return memory.Failure("nothing changed"), nil
	}
	return `{"success":true}`, nil
}

// arguments are what the action gate is shown of an argument: of a list each item by
// itself, for each comes from somewhere else.
func arguments(t *world.Tool, a model.Arg) []memory.Arg {
	one := memory.Arg{Name: a.Name, Value: a.Value, Role: t.Role(a.Name)}
	for _, p := range t.Params {
		if p.Name == a.Name {
			one.Type, one.Optional = p.Format, !p.Required
		}
	}
	of, list := world.Type(one.Type).Element()
	if !list {
		return []memory.Arg{one}
	}
	var out []memory.Arg
	for _, item := range world.Items(a.Value) {
		next := one
		next.Value, next.Type, next.List = item, string(of), true
		out = append(out, next)
	}
	return out
}

// store maps a path of the workspace to the store that holds it.
func (s *session) storeOf(path string) (string, bool) {
	path = strings.TrimPrefix(path, "./")
	for _, spec := range s.Profile.Stores {
		if spec.Kind != memory.Notes {
			continue
		}
		if path == spec.Title || strings.HasSuffix(spec.Title, "/") && strings.HasPrefix(path, spec.Title) {
			return spec.Name, true
		}
	}
	return "", false
}

// writeFile writes to a memory file. Any other file is an action on the workspace,
// recorded like all of them.
func (s *session) writeFile(t *world.Tool, c model.Call) (string, error) {
	store, ok := s.storeOf(c.Get("path"))
	if !ok {
		return s.act(t, c)
	}
	d := memory.Draft{Route: s.writeRoute(memory.RouteFileTool), Store: store, Text: c.Get("content")}
	if c.Get("mode") == "overwrite" {
		d.Op = memory.Replace
	}
	return s.write(d)
}

func (s *session) editFile(t *world.Tool, c model.Call) (string, error) {
	store, ok := s.storeOf(c.Get("path"))
	if !ok {
		return s.act(t, c)
	}
	d := memory.Draft{Route: s.writeRoute(memory.RouteFileTool), Store: store, Op: memory.Replace,
		Old: c.Get("old_text"), Text: c.Get("new_text")}
	if d.Old == "" {
		return memory.Failure("old_text is empty: name the passage to replace"), nil
	}
	if d.Text == "" {
		d.Op = memory.Remove
	}
	return s.write(d)
}

func (s *session) lines(_ *world.Tool, c model.Call) (string, error) {
	store, ok := s.storeOf(c.Get("path"))
	if !ok {
		return memory.Failure("no such memory file: MEMORY.md or memory/DATE.md"), nil
	}
	recs, err := s.mem.Snapshot(s.ctx, store, memory.Query{Route: memory.RouteGet, Text: s.said})
	if err != nil {
		return "", err
	}
	from, _ := strconv.Atoi(c.Get("from"))
	n, _ := strconv.Atoi(c.Get("lines"))
	if from > 1 {
		recs = recs[min(from-1, len(recs)):]
	}
	if n > 0 && n < len(recs) {
		recs = recs[:n]
	}
	return s.found(memory.RouteGet, recs), nil
}

// readFile reads memory files too.
func (s *session) readFile(t *world.Tool, c model.Call) (string, error) {
	if _, ok := s.storeOf(c.Get("path")); ok {
		return s.lines(t, c)
	}
	return s.read(t, c)
}

// read returns what this turn brings of the tool's medium.
func (s *session) read(t *world.Tool, _ model.Call) (string, error) {
	result := ""
	rest := s.pending[:0]
	for _, in := range s.pending {
		if in.Origin.Medium != t.Medium {
			rest = append(rest, in)
			continue
		}
		if result != "" {
			result += "\n\n"
		}
		text, err := s.take(in, len(result))
		if err != nil {
			return "", err
		}
		result += text
	}
	s.pending = rest
	if result == "" {
		return "Nothing new.", nil
	}
	return result, nil
}

// act records a call that would change the world, if the action gate lets it.
func (s *session) act(t *world.Tool, c model.Call) (string, error) {
	var a ActionCall
	refused := ""
	same := func(p ActionCall) bool { return p.Call.Name == c.Name && slices.Equal(p.Call.Args, c.Args) }
	if i := slices.IndexFunc(s.permits, same); i >= 0 {
		a = s.permits[i]
		s.permits = slices.Delete(s.permits, i, i+1)
	} else {
		var err error
		if a, refused, err = s.permit(t, c); err != nil {
			return "", err
		}
	}
	a.Result = len(s.out.Messages)
	s.out.Actions = append(s.out.Actions, a)
	switch {
	case refused != "":
		return refused, nil
	case s.office == nil:
		return `{"success":true}`, nil
	}
	return s.work(t, c)
}

// permit asks the action gate about a call, and the user where the gate wants that. It
// returns what the model is told where the call is refused.
func (s *session) permit(t *world.Tool, c model.Call) (a ActionCall, refused string, err error) {
	call := memory.Call{Tool: c.Name, Query: memory.Query{Text: s.said}}
	for _, a := range c.Args {
		call.Args = append(call.Args, arguments(t, a)...)
	}
	v, err := s.mem.Act(s.ctx, call)
	if err != nil {
		return a, "", err
	}
	a = ActionCall{Turn: s.turn, Call: c, Vetoed: v.Action != memory.Allow}
	if v.Action == memory.Defer && s.office != nil && s.office.Questions < maxQuestions {
		s.office.Questions++
		a.Shown, a.Declined = true, !s.office.Agrees(c)
		a.Vetoed = a.Declined
		s.mem.Answered(call, !a.Declined)
	}
	switch {
	case a.Declined:
		refused = memory.Failure("not done: the user was asked and said no")
	case a.Vetoed:
		refused = memory.Refusal(v)
	}
	return a, refused, nil
}

// work runs a tool on the tables.
func (s *session) work(t *world.Tool, c model.Call) (string, error) {
	told, err := s.office.World.Call(t, c.Args)
	if no, ok := errors.AsType[*world.Refused](err); ok {
		return memory.Failure(no.Why), nil
	}
	return told, err
}

func (s *session) look(t *world.Tool, c model.Call) (string, error) {
	if s.office == nil {
		return noTool(c), nil
	}
	told, err := s.work(t, c)
	if err != nil {
		return "", err
	}
	return s.trusted(t.Name, told)
}

// trusted takes in what the user's own tables or the user say.
func (s *session) trusted(source, told string) (string, error) {
	seg, err := s.mem.Take(s.ctx, memory.Origin{Class: memory.User, Medium: memory.Chat, Source: source}, s.turn, told)
	s.out.Segments = append(s.out.Segments, Taken{seg, s.place(0, len(seg.Text))})
	return seg.Text, err
}

func (s *session) ask(t *world.Tool, c model.Call) (string, error) {
	if s.office == nil {
		return noTool(c), nil
	}
	if s.office.Questions == maxQuestions {
		return "The user does not answer any more.", nil
	}
	s.office.Questions++
	return s.trusted("user", s.office.Answer(c.Get(t.Params[0].Name)))
}
