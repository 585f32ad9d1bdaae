package view

import (
	"slices"
	"strings"

	"github.com/memtox/memtox/results"
)

// Session is one session turn by turn.
type Session struct {
	Turns []*Turn `json:"turns"`
	// Rest are decisions that no message could be found for.
	Rest []*Decision `json:"rest,omitempty"`
}

// Turn is one message of a session.
type Turn struct {
	Role string `json:"role"`
	Tool string `json:"tool,omitempty"`
	// Aside: asked by the profile (flush, compaction, review), not by the user,
	// or part of what followed.
	Aside     bool        `json:"aside,omitempty"`
	Origin    string      `json:"origin"` // of what no part says otherwise
	Parts     []Part      `json:"parts"`
	Calls     []Call      `json:"calls,omitempty"`
	Decisions []*Decision `json:"decisions,omitempty"`

	content string
	call    *Call // that a tool's message answers
	genuine bool  // a user's own turn
}

// Part is a stretch of a message with one origin.
type Part struct {
	Text   string  `json:"text"`
	Origin *Origin `json:"origin,omitempty"` // nil: the message's
	Record string  `json:"record,omitempty"` // the memory that it is
	Poison bool    `json:"poison,omitempty"`
}

// Call is a tool call.
type Call struct {
	Name   string `json:"name"`
	Args   []Arg  `json:"args"`
	Vetoed bool   `json:"vetoed,omitempty"`
}

// Decision is one gate call: its row, and what the transcript adds.
type Decision struct {
	Seq        int      `json:"seq"`
	Session    int      `json:"session"`
	Gate       string   `json:"gate"`
	Route      string   `json:"route,omitempty"`
	Op         string   `json:"op,omitempty"`
	Action     string   `json:"action"`
	Record     string   `json:"record,omitempty"`
	Store      string   `json:"store,omitempty"`
	Origin     string   `json:"origin,omitempty"`
	State      string   `json:"state,omitempty"`
	Poison     bool     `json:"poison,omitempty"`
	Legit      bool     `json:"legit,omitempty"`
	Unsure     bool     `json:"unsure,omitempty"`
	Reasons    []string `json:"reasons,omitempty"`
	Score      *float64 `json:"score,omitempty"`
	Candidates int      `json:"candidates,omitempty"`
	LatencyNS  int64    `json:"latency_ns"`

	Subject  string    `json:"subject,omitempty"` // segment or tool that was judged
	Text     string    `json:"text,omitempty"`
	Shown    string    `json:"shown,omitempty"`
	Findings []Finding `json:"findings,omitempty"`

	message int // place of its message, or -1
}

// decisionsOf joins the rows of a trial with what its transcript says of them.
// Both are in the order in which the gates were called; a transcript leaves out
// reads in which nothing happened.
func decisionsOf(rows []results.Decision, t *transcript) []*Decision {
	type lane struct {
		session int
		gate    string
	}
	said := map[lane][]moment{}
	if t != nil {
		for _, m := range t.Decisions {
			k := lane{m.Session, m.Gate}
			said[k] = append(said[k], m)
		}
	}
	var out []*Decision
	for i := range rows {
		r := &rows[i]
		d := &Decision{Seq: int(r.Seq), Session: int(r.Session), Gate: r.Gate, Route: r.Route, Op: r.Op, Action: r.Action, Record: r.Record,
			Store: r.Store, Origin: r.Origin, State: r.State, Poison: r.Poison, Legit: r.Legit, Unsure: r.Unsure,
			Score: r.Score, Candidates: int(r.Candidates), LatencyNS: r.LatencyNS, message: -1}
		for reason := range strings.SplitSeq(r.Reasons, ";") {
			if reason != "" {
				d.Reasons = append(d.Reasons, reason)
			}
		}
		out = append(out, d)
		k := lane{d.Session, d.Gate}
		at := 0
		if d.Gate == results.GateRead {
			if d.Record == "" {
				continue // the call as a whole
			}
			at = slices.IndexFunc(said[k], func(m moment) bool { return m.Record == d.Record })
		}
		if at < 0 || at >= len(said[k]) {
			continue
		}
		m := said[k][at]
		if at == 0 {
			said[k] = said[k][1:]
		} else {
			said[k] = slices.Delete(said[k], at, at+1)
		}
		d.Text, d.Shown, d.Findings = m.Text, m.Shown, m.Findings
		if m.Message != nil {
			d.message = *m.Message
		}
		if d.Gate == results.GateInput || d.Gate == results.GateAct {
			d.Subject = m.Record
		}
	}
	return out
}

// sessionsOf puts every decision at the message where it was made, and gives
// every piece of text its origin. A transcript says at which message a gate was
// called, but for reads in which nothing happened, which it leaves out, and but for
// transcripts of older versions: there the order of the calls and what they were
// about do. Such a decision goes to the first message, at or behind that of the
// decision before, that it fits; one that fits none stays with the one before it.
func sessionsOf(t *transcript, ds []*Decision) []Session {
	records := map[string]*Record{}
	for _, list := range [][]Record{t.Memory.Before, t.Memory.Between, t.Memory.After} {
		for i := range list {
			records[list[i].ID] = &list[i]
		}
	}
	var out []Session
	for i := range t.Sessions {
		in := &t.Sessions[i]
		s := Session{Turns: turnsOf(in.Messages, countUser(in.Segments))}
		vetoed := 0
		for _, turn := range s.Turns {
			for k := range turn.Calls {
				if c := &turn.Calls[k]; vetoed < len(in.Actions) && in.Actions[vetoed].Tool == c.Name {
					c.Vetoed = in.Actions[vetoed].Vetoed
					vetoed++
				}
			}
		}
		marks := make([][]mark, len(s.Turns))
		holders := placeSegments(s.Turns, in.Segments, marks)
		placeRecalled(s.Turns, in.Recalled, records, marks)
		for k, turn := range s.Turns {
			turn.Parts = split(turn.content, marks[k])
		}
		placeDecisions(&s, i+1, ds, holders)
		out = append(out, s)
	}
	return out
}

func countUser(segs []segment) int {
	n := 0
	for _, s := range segs {
		if s.Class == "USER" {
			n++
		}
	}
	return n
}

// turnsOf makes turns of messages and tells the user's own turns from what the
// profile asked. users is how many the user said. A message of the user that
// comes before the last one was answered is the profile's; so is one behind the
// user's last.
func turnsOf(messages []message, users int) []*Turn {
	var out []*Turn
	var calls []*Call // not yet answered
	aside, answered := false, true
	for _, m := range messages {
		t := &Turn{Role: m.Role, Tool: m.Name, content: m.Content}
		switch m.Role {
		case "system":
			t.Origin = "SYSTEM"
		case "user":
			if answered && users > 0 {
				users--
				t.genuine, aside, answered = true, false, false
				t.Origin = "USER"
			} else {
				aside = true
				t.Origin = "SYSTEM"
			}
		case "assistant":
			t.Origin = "AGENT_AUTHORED"
			calls = calls[:0]
			t.Aside = aside
			for _, c := range m.Calls {
				t.Calls = append(t.Calls, Call{Name: c.Name, Args: append([]Arg{}, c.Args...)})
			}
			for k := range t.Calls {
				calls = append(calls, &t.Calls[k])
			}
			if len(m.Calls) == 0 {
				if !aside {
					answered = true
				}
				aside = false
			}
		default:
			t.Origin = "SYSTEM" // what a tool says for itself
			if len(calls) > 0 {
				t.call, calls = calls[0], calls[1:]
			}
		}
		if m.Role != "assistant" {
			t.Aside = aside
		}
		out = append(out, t)
	}
	return out
}

// mark is a stretch of a message that has an origin of its own.
type mark struct {
	from, to int
	part     Part
}

// split cuts a content at its marks. Marks that overlap an earlier one are left
// out.
func split(content string, marks []mark) []Part {
	slices.SortStableFunc(marks, func(a, b mark) int { return a.from - b.from })
	parts := []Part{}
	at := 0
	for _, m := range marks {
		if m.from < at || m.to > len(content) || m.from >= m.to {
			continue
		}
		if m.from > at {
			parts = append(parts, Part{Text: content[at:m.from]})
		}
		p := m.part
		p.Text = content[m.from:m.to]
		parts = append(parts, p)
		at = m.to
	}
	if at < len(content) {
		parts = append(parts, Part{Text: content[at:]})
	}
	return parts
}

// placeSegments finds the message that brought each segment, and marks the
// stretch that it takes. holders gives the place of each segment by its id.
func placeSegments(turns []*Turn, segs []segment, marks [][]mark) (holders map[int]int) {
	holders = map[int]int{}
	user := -1 // the user's turn that segments belong to now
	taken := map[int]int{}
	for _, s := range segs {
		if s.Class == "USER" {
			for k := user + 1; k < len(turns); k++ {
				if turns[k].genuine {
					user = k
					break
				}
			}
			holders[s.ID] = user
			continue
		}
		best := -1
		for k := max(user, 0); k < len(turns); k++ {
			if turns[k].genuine && k > user {
				break // the next turn of the user
			}
			if turns[k].Role != "user" && turns[k].Role != "tool" || turns[k].Aside {
				continue
			}
			if s.Source != "" && strings.Contains(turns[k].content[min(taken[k], len(turns[k].content)):], s.Source) {
				best = k
				break
			}
			if best < 0 && turns[k].Role == "tool" && s.Source == "" {
				best = k
			}
		}
		if best < 0 {
			continue
		}
		holders[s.ID] = best
		content, from := turns[best].content, taken[best]
		if i := strings.Index(content[from:], s.Source); i >= 0 {
			if i := strings.LastIndex(content[:from+i], "\n\n"); i >= from {
				from = i + 2
			} else if turns[best].Role == "user" {
				from += i // it stands in a line of the user's
			}
		}
		// It reaches to the end; a segment behind it cuts it short.
		if n := len(marks[best]); n > 0 {
			marks[best][n-1].to = from
		}
		o := s.Origin
		marks[best] = append(marks[best], mark{from, len(content), Part{Origin: &o}})
		taken[best] = min(from+len(s.Source)+1, len(content))
	}
	return holders
}

// placeRecalled marks the memories in the messages that they entered.
func placeRecalled(turns []*Turn, recalled []recall, records map[string]*Record, marks [][]mark) {
	type spot struct{ turn, at int }
	next := map[string]spot{}
	for _, r := range recalled {
		rec := records[r.Record]
		text := r.Text
		if text == "" && rec != nil {
			text = rec.Text
		}
		if text == "" {
			continue
		}
		role := map[string]string{"snapshot": "system", "inject": "user"}[r.Route]
		if role == "" {
			role = "tool"
		}
		line := text
		if i := strings.IndexAny(line, "\n\r<"); i >= 0 {
			line = line[:i] // prompts keep a memory on one line
		}
		if line == "" {
			continue
		}
		from := next[r.Route]
		for k := from.turn; k < len(turns); k++ {
			if turns[k].Role != role {
				continue
			}
			at := 0
			if k == from.turn {
				at = from.at
			}
			i := strings.Index(turns[k].content[at:], line)
			if i < 0 {
				continue
			}
			begin := at + i
			end := begin + len(line)
			if len(line) < len(text) {
				if n := strings.IndexByte(turns[k].content[end:], '\n'); n >= 0 {
					end += n
				} else {
					end = len(turns[k].content)
				}
			}
			// The bullet and the end of the line belong to the memory.
			if strings.HasSuffix(turns[k].content[:begin], "\n- ") {
				begin -= len("- ")
			}
			if strings.HasPrefix(turns[k].content[end:], "\n") {
				end++
			}
			p := Part{Record: r.Record}
			if rec != nil {
				o := rec.Origin
				p.Origin, p.Poison = &o, rec.Poison
			}
			marks[k] = append(marks[k], mark{begin, end, p})
			next[r.Route] = spot{k, 0} // records of one message stand in any order
			break
		}
	}
}

// placeDecisions puts the decisions of a session at its messages.
func placeDecisions(s *Session, session int, ds []*Decision, holders map[int]int) {
	at := 0
	used := map[int]bool{} // messages whose recall or action has its decision
	for _, d := range ds {
		if d.Session != session {
			continue
		}
		if len(s.Turns) == 0 {
			s.Rest = append(s.Rest, d)
			continue
		}
		if d.message >= 0 {
			at = max(at, min(d.message, len(s.Turns)-1))
		} else if k := s.fits(d, at, holders, used); k >= 0 {
			at = k
		}
		recalled := d.Gate == results.GateRead && d.Record == "" && d.Route != "transcript" && d.Route != "snapshot"
		if recalled || d.Gate == results.GateAct {
			used[at] = true
		}
		s.Turns[at].Decisions = append(s.Turns[at].Decisions, d)
	}
}

// writingTools are the tools of the profiles that write memory.
var writingTools = []string{"memory", "add_memory", "write_file", "edit_file", "skill_manage"}

// fits finds the first message from a place on that a decision fits, or -1.
func (s *Session) fits(d *Decision, from int, holders map[int]int, used map[int]bool) int {
	first := func(ok func(k int, t *Turn) bool) int {
		for k := from; k < len(s.Turns); k++ {
			if ok(k, s.Turns[k]) {
				return k
			}
		}
		return -1
	}
	switch d.Gate {
	case results.GateInput:
		if rest, ok := strings.CutPrefix(d.Subject, "segment "); ok {
			id := 0
			for _, c := range rest {
				if c < '0' || c > '9' || id > 1<<30 {
					return -1
				}
				id = 10*id + int(c-'0')
			}
			if k, ok := holders[id]; ok && k >= from {
				return k
			}
		}
		return -1
	case results.GateRead:
		if d.Record != "" {
			return -1 // beside its call
		}
		switch d.Route {
		case "snapshot":
			return first(func(_ int, t *Turn) bool { return t.Role == "system" })
		case "inject":
			return first(func(k int, t *Turn) bool { return t.genuine && !used[k] })
		}
		tools := map[string][]string{"search": {"memory_search", "search_memories"}, "get": {"memory_get"}, "transcript": {"session_search"}, "skill_view": {"open_skill"}}[d.Route]
		return first(func(k int, t *Turn) bool { return t.Role == "tool" && !used[k] && slices.Contains(tools, t.Tool) })
	case results.GateAct:
		return first(func(k int, t *Turn) bool { return t.Role == "tool" && t.Tool == d.Subject && !used[k] })
	case results.GateWrite:
		if d.Route == "compaction" {
			return first(func(_ int, t *Turn) bool {
				return t.Role == "assistant" && t.Aside && len(t.Calls) == 0 && holdsText(t.content, d.Text)
			})
		}
		// The routes of tools belong to the user's turns, flush and review to what
		// the profile asked.
		own := d.Route == "memory_tool" || d.Route == "file_tool"
		aside := d.Route == "flush" || d.Route == "review"
		written := func(tools []string, withText bool) int {
			return first(func(_ int, t *Turn) bool {
				if t.call == nil || own && t.Aside || aside && !t.Aside || tools != nil && !slices.Contains(tools, t.call.Name) {
					return false
				}
				return !withText || slices.ContainsFunc(t.call.Args, func(a Arg) bool { return holdsText(a.Value, d.Text) })
			})
		}
		k := written(writingTools, true)
		if k < 0 { // a removal has no text
			k = written(writingTools, false)
		}
		if k < 0 { // another agent's tool
			k = written(nil, true)
		}
		return k
	}
	return -1
}

// holdsText reports whether a text that was written holds what became of it: an
// entry is a line of a file, an item of a list, or the whole.
func holdsText(written, entry string) bool {
	if entry == "" {
		return false
	}
	if strings.Contains(written, entry) {
		return true
	}
	line, _, _ := strings.Cut(strings.TrimSpace(entry), "\n")
	return len(line) > 8 && strings.Contains(written, line)
}
