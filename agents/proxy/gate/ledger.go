package gate

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
)

// record is what the agent does not know of: exchanges that were refused whole, or one
// reply of whose calls it got some.
type record struct {
	session string
	behind  anchor
	ids     []string  // of the calls that the agent got with the reply in the end
	refused []Message // whole exchanges: what the model said, and what it was told
	said    Message   // of a split reply: all of it
	results []Message // of a split reply: what the model was told of the refused calls
}

// refused notes a refused exchange at once, so that a request that fails and comes again
// finds it.
func (g *Gate) refused(r *record, session string, behind anchor, exchange []Message) *record {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.Refused += len(exchange) - 1
	if r == nil {
		r = &record{session: session, behind: behind}
		g.add(r)
	}
	r.refused = append(r.refused, exchange...)
	g.trim()
	return r
}

// split notes a reply of which the agent gets only some calls.
func (g *Gate) split(said Message, passed []model.Call, results []Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.Refused += len(results)
	g.add(&record{ids: idsOf(passed), said: said, results: results})
}

// longest bounds the ledger of an agent that runs on, and heaviest the bytes of what was
// refused: the oldest goes.
const (
	longest  = 4096
	heaviest = 64 << 20
)

// add notes a record, once all of it is known.
func (g *Gate) add(r *record) {
	g.ledger = append(g.ledger, r)
	g.trim()
}

func (g *Gate) trim() {
	bytes := 0
	for i := len(g.ledger) - 1; i >= 0; i-- {
		if bytes += g.ledger[i].bytes(); i < len(g.ledger)-1 && (bytes > heaviest || len(g.ledger)-i > longest) {
			g.ledger = slices.Delete(g.ledger, 0, i+1)
			return
		}
	}
}

func (r *record) bytes() (n int) {
	for _, list := range [][]Message{r.refused, r.results, {r.said}} {
		for i := range list {
			m := &list[i]
			n += len(m.Raw) + len(m.Content)
			for _, c := range m.Calls {
				for _, a := range c.Args {
					n += len(a.Value)
				}
			}
		}
	}
	return n
}

// closes notes with which calls the agent was answered in the end.
func (g *Gate) closes(r *record, passed []model.Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.ids = idsOf(passed)
}

func idsOf(calls []model.Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.ID)
	}
	return out
}

// put returns the list with every refused exchange back in its place, each once. The lock
// is held.
func (g *Gate) put(session string, list []Message) []Message {
	before, behind := make([][]Message, len(list)), make([][]Message, len(list))
	anchors := g.anchors(list)
	g.follow(session, list, anchors)
	splits := map[int]*record{}
	for _, r := range g.ledger {
		at := called(list, r.ids)
		switch {
		case at >= 0 && r.results != nil:
			splits[at] = r
			continue
		case at >= 0:
			before[at] = append(before[at], r.refused...)
			continue
		case r.behind.call != "" || r.session == session:
			at = r.behind.find(list, anchors)
		}
		if at >= 0 {
			behind[at] = append(behind[at], r.refused...)
		}
	}
	out := make([]Message, 0, len(list)+8)
	for i := 0; i < len(list); i++ {
		out = append(out, before[i]...)
		if r := splits[i]; r != nil {
			end := i + 1
			for end < len(list) && list[end].Role == model.ToolRole {
				end++
			}
			out = append(out, r.whole(list[i], list[i+1:end])...)
			for ; i < end-1; i++ {
				out = append(out, behind[i]...)
			}
		} else {
			out = append(out, list[i])
		}
		out = append(out, behind[i]...)
	}
	return out
}

// called is the place of the assistant's message that has one of the calls, or -1.
func called(list []Message, ids []string) int {
	return slices.IndexFunc(list, func(m Message) bool {
		return m.Role == model.Assistant && slices.ContainsFunc(m.Calls, func(c model.Call) bool {
			return slices.Contains(ids, c.ID)
		})
	})
}

// whole is a reply with all its calls, of which the agent has some with their results, in
// the order in which the model made them. The agent's own version of what it has stays.
func (r *record) whole(has Message, results []Message) []Message {
	m := r.said
	m.Content, m.Changed = has.Content, true
	m.Calls = slices.Clone(r.said.Calls)
	results = append(slices.Clone(results), r.results...)
	place := func(id string) int {
		return slices.IndexFunc(r.said.Calls, func(c model.Call) bool { return c.ID == id })
	}
	for _, c := range has.Calls {
		if i := place(c.ID); i >= 0 {
			m.Calls[i] = c
		} else {
			m.Calls = append(m.Calls, c)
		}
	}
	slices.SortStableFunc(results, func(a, b Message) int {
		return cmp.Compare(uint(place(a.CallID)), uint(place(b.CallID))) // what is not found, -1, comes last
	})
	return append([]Message{m}, results...)
}

// anchor is what a refused exchange stands behind in an agent's list: the result of a call,
// or what the user said, which is told from other times that he said it by what is next
// in front of it.
type anchor struct {
	call  string // of a tool's result
	role  model.Role
	text  string // as [Gate.plain] leaves it
	front string // the id of a call, or the user's words before
	nth   int    // of those with equal text and front, from 1
}

// anchor finds what a list ends with. Messages of the user's role that an agent adds behind
// the user's words, a tool's result or an empty reply move on, or go.
func (g *Gate) anchor(list []Message) anchor {
	if at := lasting(list); at > 0 {
		return g.anchors(list)[at-1]
	}
	return anchor{}
}

// lasting is how many messages of a list stay where they are.
func lasting(list []Message) int {
	at := len(list) - 1
	empty := func(m Message) bool {
		return m.Role == model.Assistant && len(m.Calls) == 0 && strings.TrimSpace(m.Content) == ""
	}
	for at > 0 && (empty(list[at]) || list[at].Role == model.User &&
		(list[at-1].Role == model.User || list[at-1].Role == model.ToolRole || empty(list[at-1]))) {
		at--
	}
	return at + 1
}

// find is the place in a list that the anchor stands for, or -1.
func (a anchor) find(list []Message, anchors []anchor) int {
	for i, b := range anchors {
		switch {
		case a.call != "" && b.call == a.call:
			for i+1 < len(list) && list[i+1].Role == model.ToolRole {
				i++
			}
			return i
		case a == b && a != anchor{}:
			return i
		}
	}
	return -1
}

// anchors are those of each message of a list.
func (g *Gate) anchors(list []Message) []anchor {
	out := make([]anchor, len(list))
	seen := map[anchor]int{}
	front := ""
	for i := range list {
		m := &list[i]
		a := anchor{call: m.CallID}
		if m.Role != model.ToolRole || m.CallID == "" {
			a = anchor{role: m.Role, text: g.plain(m.Content), front: front}
			if m.Role == model.Assistant {
				a.text = "" // agents write them anew
			}
			seen[a]++
			if a.nth = seen[a]; m.Role == model.User {
				front = a.text
			}
		}
		for _, c := range m.Calls {
			front = c.ID
		}
		out[i] = a
	}
	return out
}

// plain is what the user said, as it stays: white space folded, without the agent's stamps.
// Of a long text it is the hash: it is kept for each message of each session.
func (g *Gate) plain(s string) string {
	for _, r := range g.Stamps {
		s = r.ReplaceAllString(s, "")
	}
	if s = strings.Join(strings.Fields(s), " "); len(s) > sha256.Size {
		sum := sha256.Sum256([]byte(s))
		s = string(sum[:])
	}
	return s
}
