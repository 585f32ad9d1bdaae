package remote

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"
)

type Phase uint8

const (
	Queued     Phase = iota // waits for a place in flight or for a rate limit
	Waiting                 // sent, no answer yet
	Receiving               // the answer is coming in
	BackingOff              // waits before another attempt
)

func (p Phase) String() string {
	return [...]string{"queued", "waiting for an answer", "receiving", "backing off"}[p]
}

// Pending is one request that is not answered yet.
type Pending struct {
	Trial   string // "" outside a trial
	Model   string
	Op      string
	Host    string
	Phase   Phase
	Attempt int           // from 1; 0 is not sent yet
	For     time.Duration // since the call began
	InPhase time.Duration // since the phase began
}

type inFlight struct {
	p     *pending
	info  Pending
	start time.Time
	since time.Time
}

func (f *inFlight) set(ph Phase, attempt int) {
	f.p.mu.Lock()
	f.info.Phase, f.info.Attempt, f.since = ph, attempt, time.Now()
	f.p.mu.Unlock()
}

type pending struct {
	mu  sync.Mutex
	all map[*inFlight]struct{}
}

func (p *pending) add(req *http.Request, c *Call) *inFlight {
	now := time.Now()
	f := &inFlight{p: p, start: now, since: now, info: Pending{Model: c.Model, Op: req.Method + " " + req.URL.Path,
		Host: req.URL.Host}}
	if t := TrialOf(req.Context()); t != nil {
		f.info.Trial = t.ID
	}
	p.mu.Lock()
	if p.all == nil {
		p.all = map[*inFlight]struct{}{}
	}
	p.all[f] = struct{}{}
	p.mu.Unlock()
	return f
}

func (p *pending) remove(f *inFlight) {
	p.mu.Lock()
	delete(p.all, f)
	p.mu.Unlock()
}

// Pending lists the requests that have been under way for at least d, longest
// first: what a run that seems stuck is waiting for.
func (c *Client) Pending(d time.Duration) []Pending {
	now := time.Now()
	c.pending.mu.Lock()
	var out []Pending
	for f := range c.pending.all {
		if now.Sub(f.start) >= d {
			i := f.info
			i.For, i.InPhase = now.Sub(f.start), now.Sub(f.since)
			out = append(out, i)
		}
	}
	c.pending.mu.Unlock()
	slices.SortFunc(out, func(a, b Pending) int {
		return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Trial, b.Trial))
	})
	return out
}
