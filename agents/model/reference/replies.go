package reference

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"

	"github.com/memtox/memtox/agents/model"
)

// replies keeps the newest exchanges: the arms of one case ask the same until a
// defense makes a difference. An exchange is taken again only where the whole
// request is the same, so that it changes how long an answer takes and nothing
// else.
type replies struct {
	seed maphash.Seed
	mu   sync.Mutex
	// An exchange that is used again moves to the young generation; what was not
	// used while the young one filled up is dropped.
	young, old map[uint64]*exchange
	bytes      int
}

// repliesBytes bounds a generation: what the cases ask that are worked on at once.
// Every text counts, although an exchange may share it with others or with its
// case: a server's requests share nothing.
var repliesBytes = runtime.GOMAXPROCS(0) << 20

type exchange struct {
	msgs  []model.Message
	tools []model.Tool
	reply model.Reply
	size  int
	// depends says that the reply hangs on what the setting makes of an attribution.
	depends bool
}

func newReplies() *replies {
	return &replies{seed: maphash.MakeSeed(), young: map[uint64]*exchange{}}
}

// key is equal for equal requests, and hardly ever for others.
func (r *replies) key(req *model.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for i := range req.Messages {
		n := len(req.Messages[i].Content)
		h.WriteByte(byte(n))
		h.WriteByte(byte(n >> 8))
	}
	if n := len(req.Messages); n > 0 {
		h.WriteString(req.Messages[n-1].Content)
		h.WriteString(req.Messages[0].Content)
	}
	return h.Sum64()
}

// find returns the reply to a request that was kept. Its calls are a copy: whoever
// asked gives them ids.
func (r *replies) find(key uint64, req *model.Request) (reply model.Reply, depends, ok bool) {
	r.mu.Lock()
	e, ok := r.young[key]
	if !ok {
		if e, ok = r.old[key]; ok {
			r.add(key, e)
		}
	}
	r.mu.Unlock()
	if !ok || !e.answers(req) {
		return model.Reply{}, false, false
	}
	reply = e.reply
	reply.Calls = slices.Clone(reply.Calls)
	return reply, e.depends, true
}

func (r *replies) keep(key uint64, req *model.Request, reply model.Reply, depends bool) {
	size := weigh(req, &reply)
	if size > repliesBytes/8 {
		return // it would push out everything else
	}
	e := &exchange{msgs: slices.Clone(req.Messages), tools: req.Tools, reply: reply, size: size, depends: depends}
	e.reply.Calls = slices.Clone(reply.Calls)
	r.mu.Lock()
	r.add(key, e)
	r.mu.Unlock()
}

// weigh is about how many bytes an exchange keeps from being freed.
func weigh(req *model.Request, reply *model.Reply) int {
	n := 400 + len(reply.Text) + callsSize(reply.Calls)
	for i := range req.Messages {
		m := &req.Messages[i]
		n += 112 + len(m.Content) + callsSize(m.Calls)
	}
	for i := range req.Tools {
		t := &req.Tools[i]
		n += 64 + len(t.Name) + len(t.Description) + 128*len(t.Params)
		for j := range t.Params {
			p := &t.Params[j]
			n += len(p.Description)
			for _, s := range p.Enum {
				n += 16 + len(s)
			}
		}
	}
	return n
}

func callsSize(calls []model.Call) int {
	n := 64 * len(calls)
	for i := range calls {
		for _, a := range calls[i].Args {
			n += 32 + len(a.Name) + len(a.Value)
		}
	}
	return n
}

func (r *replies) add(key uint64, e *exchange) {
	if r.bytes+e.size > repliesBytes && len(r.young) > 0 {
		r.old, r.young, r.bytes = r.young, make(map[uint64]*exchange, len(r.young)), 0
	}
	r.young[key] = e
	r.bytes += e.size
}

// answers reports whether the exchange is that of this request. Tools are compared
// by where they stand: a loop offers the same ones again and again.
func (e *exchange) answers(req *model.Request) bool {
	if len(e.msgs) != len(req.Messages) || len(e.tools) != len(req.Tools) ||
		len(e.tools) > 0 && &e.tools[0] != &req.Tools[0] {
		return false
	}
	for i := range e.msgs {
		a, b := &e.msgs[i], &req.Messages[i]
		if a.Role != b.Role || a.Content != b.Content || a.CallID != b.CallID || a.Name != b.Name ||
			!slices.EqualFunc(a.Calls, b.Calls, func(x, y model.Call) bool {
				return x.ID == y.ID && x.Name == y.Name && slices.Equal(x.Args, y.Args)
			}) {
			return false
		}
	}
	return true
}
