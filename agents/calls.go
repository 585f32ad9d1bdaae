package agents

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// call runs one tool call and returns what the model is told. An error is an
// error of the trial; what the model did wrong is told to the model.
func (s *session) call(c model.Call) (string, error) {
	s.out.ToolCalls++
	switch c.Name {
	case "memory":
		return s.memoryTool(c)
	case "skill_manage":
		return s.skillManage(c)
	case "open_skill":
		return s.openSkill(c)
	case "session_search":
		recs, err := s.mem.SearchTranscript(s.ctx, memory.Query{Route: memory.RouteTranscript, Text: c.Get("query"), K: 3})
		if err != nil {
			return "", err
		}
		more, err := s.searchStore(memory.RouteTranscript, c, 3, s.Profile.SummaryStore)
		if err != nil {
			return "", err
		}
		return s.found(memory.RouteTranscript, append(recs, more...)), nil
	case "memory_search":
		recs, err := s.searchStore(memory.RouteSearch, c, s.Profile.Recall.K, "memory", "notes")
		return s.found(memory.RouteSearch, recs), err
	case "search_memories":
		recs, err := s.searchStore(memory.RouteSearch, c, s.Profile.Recall.K, "memory")
		return s.found(memory.RouteSearch, recs), err
	case "memory_get":
		return s.memoryGet(c)
	case "add_memory":
		return s.write(memory.Draft{Route: s.writeRoute(memory.RouteMemoryTool), Store: "memory", Text: c.Get("content")})
	case "write_file", "edit_file":
		return s.writeFile(c)
	}
	if s.route == 0 { // a flush or review offers memory tools only
		if medium, ok := s.reads[c.Name]; ok {
			return s.read(medium, c)
		}
		if roles, ok := s.acts[c.Name]; ok {
			return s.act(c, roles)
		}
	}
	return failure(fmt.Sprintf("there is no tool %q here", text.Clip(c.Name, 60))), nil
}

func (s *session) writeRoute(r memory.Route) memory.Route {
	if s.route != 0 {
		return s.route
	}
	return r
}

func (s *session) searchStore(route memory.Route, c model.Call, k int, stores ...string) ([]memory.Recalled, error) {
	if n, err := strconv.Atoi(c.Get("maxResults")); err == nil && n > 0 {
		k = min(n, 50)
	}
	return s.mem.Search(s.ctx, memory.Query{Route: route, Text: c.Get("query"), K: k}, stores...)
}

func (s *session) found(route memory.Route, recs []memory.Recalled) string {
	if len(recs) == 0 {
		return "Nothing found."
	}
	var b strings.Builder
	b.WriteString("<memory file=\"search\">\n")
	for _, r := range recs {
		s.entry(&b, route, r, r.Text)
	}
	b.WriteString("</memory>")
	return b.String()
}

func (s *session) memoryTool(c model.Call) (string, error) {
	op, ok := map[string]memory.Op{"add": memory.Add, "replace": memory.Replace, "remove": memory.Remove}[c.Get("action")]
	if !ok {
		return failure("action is one of add, replace, remove"), nil
	}
	target := c.Get("target")
	if target != "memory" && target != "user" {
		return failure("target is one of memory, user"), nil
	}
	return s.write(memory.Draft{Route: s.writeRoute(memory.RouteMemoryTool), Op: op, Store: target, Text: c.Get("content"), Old: c.Get("old_text")})
}

func (s *session) skillManage(c model.Call) (string, error) {
	op, ok := map[string]memory.Op{"create": memory.Add, "patch": memory.Replace, "delete": memory.Remove}[c.Get("action")]
	if !ok {
		return failure("action is one of create, patch, delete"), nil
	}
	return s.write(memory.Draft{Route: memory.RouteSkill, Op: op, Store: "skills", Key: c.Get("name"), Text: c.Get("content")})
}

func (s *session) openSkill(c model.Call) (string, error) {
	recs, err := s.mem.Get(s.ctx, "skills", c.Get("name"), memory.Query{Route: memory.RouteSkillView, Text: s.said})
	if err != nil {
		return "", err
	}
	if len(recs) == 0 {
		return s.read(memory.Skill, c)
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
			why = append(why, blocked(e.Verdict))
		case e.Committed.State == memory.Quarantined:
			why = append(why, blocked(e.Verdict))
		default:
			stored++
		}
	}
	if len(why) > 0 {
		return failure(strings.Join(why, "; ")), nil
	}
	if stored == 0 {
		return failure("nothing changed"), nil
	}
	return `{"success":true}`, nil
}

func blocked(v memory.Verdict) string {
	id := "policy"
	if len(v.Findings) > 0 {
		id = v.Findings[0].Check
	}
	return fmt.Sprintf("Content blocked: matched %s. Rephrase the entry.", id)
}

func failure(why string) string {
	b, _ := json.Marshal(struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}{false, why})
	return string(b)
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

func (s *session) writeFile(c model.Call) (string, error) {
	store, ok := s.storeOf(c.Get("path"))
	if !ok {
		// Not a memory file: an action on the workspace, recorded like any other.
		return s.act(c, map[string]memory.Role{"path": memory.Destination, "content": memory.Content, "old_text": memory.Content, "new_text": memory.Content})
	}
	d := memory.Draft{Route: s.writeRoute(memory.RouteFileTool), Store: store}
	switch {
	case c.Name == "edit_file" && c.Get("old_text") == "":
		return failure("old_text is empty: name the passage to replace"), nil
	case c.Name == "edit_file" && c.Get("new_text") == "":
		d.Op, d.Old = memory.Remove, c.Get("old_text")
	case c.Name == "edit_file":
		d.Op, d.Old, d.Text = memory.Replace, c.Get("old_text"), c.Get("new_text")
	case c.Get("mode") == "overwrite":
		d.Op, d.Text = memory.Replace, c.Get("content")
	default:
		d.Text = c.Get("content")
	}
	return s.write(d)
}

func (s *session) memoryGet(c model.Call) (string, error) {
	store, ok := s.storeOf(c.Get("path"))
	if !ok {
		return failure("no such memory file: MEMORY.md or memory/DATE.md"), nil
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

// read returns what this turn brings of one medium.
func (s *session) read(medium memory.Medium, c model.Call) (string, error) {
	if medium == memory.File {
		if store, ok := s.storeOf(c.Get("path")); ok && store != "" {
			return s.memoryGet(c)
		}
	}
	result := ""
	rest := s.pending[:0]
	for _, in := range s.pending {
		if in.Origin.Medium != medium {
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
func (s *session) act(c model.Call, roles map[string]memory.Role) (string, error) {
	call := memory.Call{Tool: c.Name, Query: memory.Query{Text: s.said}}
	for _, a := range c.Args {
		role := roles[a.Name]
		if role == "" {
			role = memory.Other
		}
		call.Args = append(call.Args, memory.Arg{Name: a.Name, Value: a.Value, Role: role})
	}
	v, err := s.mem.Act(s.ctx, call)
	if err != nil {
		return "", err
	}
	vetoed := v.Action != memory.Allow
	s.out.Actions = append(s.out.Actions, ActionCall{Turn: s.turn, Call: c, Result: len(s.out.Messages), Vetoed: vetoed})
	if vetoed {
		return failure("not allowed: " + blocked(v)), nil
	}
	return `{"success":true}`, nil
}
