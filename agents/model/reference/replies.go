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
	young, old map[request]exchange
	bytes      int
	tools      *model.Tool // of the exchange that was kept last
}

// repliesBytes bounds a generation: what the cases ask that are worked on at once.
var repliesBytes = runtime.GOMAXPROCS(0) << 18

// request stands for one. Its texts would be most of what a run keeps alive: a hash of
// 64 bits with a seed of this process stands for them, which two of a million requests
// have in common once in some ten million runs.
type request struct {
	setting Setting // "" is both naive and cautious, of an answer that hangs on no attribution
	hash    uint64
	bytes   int
	// Tools are compared by where they stand: a loop offers the same ones again and again.
	tools *model.Tool
	count int
}

type exchange struct {
	reply model.Reply
	size  int
	// depends says that the reply hangs on what the setting makes of an attribution.
	depends bool
}

func newReplies() *replies {
	return &replies{seed: maphash.MakeSeed(), young: map[request]exchange{}}
}

func (r *replies) key(s Setting, req *model.Request) request {
	k := request{setting: s, count: len(req.Tools)}
	if k.count > 0 {
		k.tools = &req.Tools[0]
	}
	mix := func(n uint64) {
		k.hash = (k.hash ^ n) * 0x9E3779B97F4A7C15
		k.hash ^= k.hash >> 32
	}
	add := func(s string) {
		k.bytes += len(s)
		mix(maphash.String(r.seed, s))
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		mix(uint64(len(m.Calls)))
		add(string(m.Role))
		add(m.Content)
		add(m.CallID)
		add(m.Name)
		for j := range m.Calls {
			c := &m.Calls[j]
			mix(uint64(len(c.Args)))
			add(c.ID)
			add(c.Name)
			for _, a := range c.Args {
				add(a.Name)
				add(a.Value)
			}
		}
	}
	return k
}

// shared is the key under which an answer is kept that hangs on no attribution.
func (k request) shared() request {
	if k.setting == Naive || k.setting == Cautious {
		k.setting = ""
	}
	return k
}

// find returns the reply to a request that was kept. Its calls are a copy: whoever
// asked gives them ids.
func (r *replies) find(key request) (reply model.Reply, depends, ok bool) {
	r.mu.Lock()
	e, ok := r.newest(key.shared())
	if !ok {
		e, ok = r.newest(key)
	}
	r.mu.Unlock()
	reply = e.reply
	reply.Calls = slices.Clone(reply.Calls)
	return reply, e.depends, ok
}

func (r *replies) newest(key request) (exchange, bool) {
	e, ok := r.young[key]
	if !ok {
		if e, ok = r.old[key]; ok {
			r.add(key, e)
		}
	}
	return e, ok
}

func (r *replies) keep(key request, req *model.Request, reply model.Reply, depends bool) {
	e := exchange{reply: reply, size: 400 + len(reply.Text), depends: depends}
	if r.offers(key.tools) {
		for i := range req.Tools {
			e.size += 64 + len(req.Tools[i].Description) + 256*len(req.Tools[i].Params)
		}
	}
	for i := range reply.Calls {
		e.size += 64
		for _, a := range reply.Calls[i].Args {
			e.size += 32 + len(a.Name) + len(a.Value)
		}
	}
	if e.size > repliesBytes/8 {
		return // it would push out everything else
	}
	e.reply.Calls = slices.Clone(reply.Calls)
	if !depends {
		key = key.shared()
	}
	r.mu.Lock()
	r.add(key, e)
	r.mu.Unlock()
}

// offers reports whether an exchange keeps tools alive that the one before did not.
func (r *replies) offers(tools *model.Tool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.tools
	r.tools = tools
	return tools != nil && tools != was
}

func (r *replies) add(key request, e exchange) {
	if r.bytes+e.size > repliesBytes && len(r.young) > 0 {
		r.old, r.young, r.bytes = r.young, make(map[request]exchange, len(r.young)), 0
	}
	r.young[key] = e
	r.bytes += e.size
}
