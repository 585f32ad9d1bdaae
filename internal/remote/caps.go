package remote

import "sync"

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Prompt, Completion float64
}

func (p Price) Cost(prompt, completion int) float64 {
	return (float64(prompt)*p.Prompt + float64(completion)*p.Completion) / 1e6
}

// Caps bound what a run may spend in all; 0 is no bound. A request is sent only
// if its expected cost and that of all requests in flight still fit.
type Caps struct {
	Tokens int64   // prompt and completion
	Cost   float64 // US dollars
	Calls  int64   // attempts, retries included
}

type purse struct {
	caps   Caps
	mu     sync.Mutex
	tokens int64
	cost   float64
	calls  int64
	held   int64 // tokens of requests in flight
	heldUS float64
}

// hold reserves the expected cost of a request, or says which cap is in the way.
func (p *purse) hold(tokens int64, cost float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.caps
	switch err := p.exhausted(); {
	case err != nil:
		return err
	case c.Tokens > 0 && p.tokens+p.held+tokens > c.Tokens:
		return capped("%d tokens were used and %d are in flight, of %d allowed; the next request is expected to take %d",
			p.tokens, p.held, c.Tokens, tokens)
	case c.Cost > 0 && p.cost+p.heldUS+cost > c.Cost:
		return capped("$%.4f were spent and $%.4f are in flight, of $%.4f allowed", p.cost, p.heldUS, c.Cost)
	}
	p.held += tokens
	p.heldUS += cost
	return nil
}

func (p *purse) exhausted() error {
	if c := p.caps.Calls; c > 0 && p.calls >= c {
		return capped("%d requests were sent of %d allowed", p.calls, c)
	}
	return nil
}

func capped(format string, args ...any) error {
	return Spoilt(CapReached, "the run's cap is reached: "+format, args...)
}

// attempt counts one request, if the cap on them allows it.
func (p *purse) attempt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.exhausted()
	if err == nil {
		p.calls++
	}
	return err
}

// settle puts what was really spent in the place of what was held.
func (p *purse) settle(heldTokens int64, heldUS float64, tokens int64, cost float64) {
	p.mu.Lock()
	p.held -= heldTokens
	p.heldUS -= heldUS
	p.tokens += tokens
	p.cost += cost
	p.mu.Unlock()
}
