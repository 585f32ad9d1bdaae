package gate

import (
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
)

// past is the last list of a session: what each message is known by, and its anchor.
type past struct {
	keys    []string
	anchors []anchor
}

// preamble is how many messages an agent may put in the place of what it compacts.
const preamble = 3

// follow compares a list with the last one of its session. Where the agent has compacted
// that, what is anchored to the user's words gets the anchor that these have now, and what
// was anchored to words that are gone stays out: the user may say the same again. A list of
// another purpose shares nothing with the last one, or its beginning, and changes nothing.
func (g *Gate) follow(session string, list []Message, anchors []anchor) {
	stays := list[:lasting(list)]
	if i := lastUser(stays); i >= 0 && g.Own != nil && g.Own(stays[i].Content) {
		return // what the agent asks in between is not kept
	}
	was, now := g.lists[session], g.past(stays, anchors)
	first := 0 // that differs
	for first < len(was.keys) && first < len(now.keys) && was.keys[first] == now.keys[first] {
		first++
	}
	if from, to, run := was.kept(now, first); run > 0 {
		moved := map[anchor]anchor{}
		for i, a := range was.anchors {
			switch {
			case i < first:
				moved[a] = now.anchors[i]
			case i >= from && i < from+run:
				moved[a] = now.anchors[to+i-from]
			}
		}
		for _, r := range g.ledger {
			if r.session == session && r.behind.role != "" {
				if r.behind = moved[r.behind]; r.behind.role == "" {
					g.counts.Compacted++
				}
			}
		}
	} else if first == 0 && len(was.keys) > 0 {
		return
	}
	if g.lists == nil {
		g.lists = map[string]past{}
	}
	g.lists[session] = now
	g.order = append(slices.DeleteFunc(g.order, func(s string) bool { return s == session }), session)
	messages := 0
	for _, p := range g.lists {
		messages += len(p.keys)
	}
	for len(g.order) > 1 && (len(g.order) > longest || messages > manyMessages) { // of an agent that runs on
		messages -= len(g.lists[g.order[0]].keys)
		delete(g.lists, g.order[0])
		g.order = g.order[1:]
	}
}

// manyMessages bounds what is kept of lists: the session not asked about for longest goes.
const manyMessages = 1 << 18

// kept finds the stretch of the last list that a compaction has left, behind what stands in
// the place of the rest: from, to and of how many messages. There is none where the list
// only went on.
func (p past) kept(now past, first int) (from, to, run int) {
	ends := false // with the end of the last list, and the reply behind it, as it should
	for j := first; j <= first+preamble && first < len(p.keys)-1; j++ {
		for i := first + 1; i < len(p.keys); i++ {
			n := 0
			for i+n < len(p.keys) && j+n < len(now.keys) && p.keys[i+n] == now.keys[j+n] {
				n++
			}
			if end := i+n == len(p.keys) && j+n < len(now.keys); n > 0 && (end && !ends || end == ends && n > run) {
				from, to, run, ends = i, j, n, end
			}
		}
	}
	return from, to, run
}

// lastUser is the place of the last message of the user's role, or -1.
func lastUser(list []Message) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role == model.User {
			return i
		}
	}
	return -1
}

// past is a list without the system's messages, which an agent makes anew each time.
func (g *Gate) past(list []Message, anchors []anchor) past {
	var out past
	for i := range list {
		if list[i].Role != model.System {
			out.keys, out.anchors = append(out.keys, g.key(&list[i])), append(out.anchors, anchors[i])
		}
	}
	return out
}

// key is what a message is known by, whatever an agent does to texts that are not the
// user's.
func (g *Gate) key(m *Message) string {
	switch m.Role {
	case model.Assistant:
		return "a " + strings.Join(idsOf(m.Calls), " ")
	case model.ToolRole:
		return "t " + m.CallID
	}
	return "u " + g.plain(m.Content)
}
