package remote

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// pace finds out how many requests at once a server bears. It goes window by window:
// as many answers as the limit, all to requests that were sent at this limit. It tries
// another limit for a window, and keeps it or goes back.
//
// A server that is not busy answers as fast as before, however many more ask. One that is
// busy makes them wait: with twice as many requests each takes twice as long, and no more
// is answered a second. What a window says is therefore its slowdown, the median of how
// much longer its answers took than those of about as many tokens used to take: lengths
// differ by far more than load does. With a limit that is g times as great and a slowdown
// of s, g ÷ s times as many answers come. A limit is kept where s is at most √g: growth
// that brings at least half of what it could, on a scale of factors, or a cut that costs
// less than half of what it saves. Netflix's concurrency-limits goes by the same gradient;
// Brakmo and Peterson (1995), "TCP Vegas", say why delay tells before refusals do.
//
// Where the server refuses, with 429 or 503, or lets a request run out of its time, the
// limit goes back to what was borne before, or to half. After growth that failed come
// smaller steps, and twice as many windows until the next, so that a limit that was found
// costs little to keep.
type pace struct {
	limit float64 // requests in flight
	most  float64
	fixed bool // the user has named the limit: only a server that refuses lowers it

	before float64   // the limit before the one that is on trial; 0 where none is
	step   float64   // factor of the next trial
	wait   int       // windows between trials
	rest   int       // windows until the next
	since  time.Time // of the last change: what was sent before says nothing of it
	full   bool      // all places were taken at once since
	window []sample
	usual  map[size]float64 // seconds that answers of a size take

	seen Pace
}

// Pace is what a server was found to bear.
type Pace struct {
	Limit    int `json:"limit"`             // requests at once, at the end
	Greatest int `json:"greatest"`          // the greatest limit of all
	Slowed   int `json:"slowed,omitempty"`  // how often more requests at once brought too little
	Refused  int `json:"refused,omitempty"` // answers that asked for fewer requests
}

// size is of answers that should take about as long: octaves of the tokens of the
// prompt, half octaves of those of the answer.
type size struct{ prompt, reply int }

// sample is how long one answer took.
type sample struct {
	of      size
	seconds float64
}

const (
	// StartInFlight and MostInFlight bound a limit that nobody has named.
	StartInFlight, MostInFlight = 16, 128
	firstStep, laterStep, cut   = 4, 1.5, 0.5
	longestWait                 = 64 // windows
	// weight of an answer in the usual time of its size.
	weight = 1. / 8
	// tooSlow is a slowdown that lowers a limit which is not on trial.
	tooSlow = 2
)

func newPace(limit int) pace {
	p := pace{limit: float64(limit), most: float64(limit), fixed: true, step: firstStep, wait: 1, usual: map[size]float64{}}
	if limit == 0 {
		p.limit, p.most, p.fixed = StartInFlight, MostInFlight, false
	}
	p.seen.Greatest = p.places()
	return p
}

func (p *pace) places() int { return max(1, int(p.limit)) }

func (p *pace) set(limit float64, now time.Time) {
	p.limit = min(p.most, max(1, limit))
	p.since, p.full, p.window = now, false, p.window[:0]
	p.seen.Greatest = max(p.seen.Greatest, p.places())
}

// refused lowers the limit, once for all requests that were under way at the time.
func (p *pace) refused(began, now time.Time) {
	p.seen.Refused++
	if !began.After(p.since) {
		return
	}
	back := p.limit / 2
	if p.before > 0 && p.before < p.limit {
		back = p.before
	}
	p.set(back, now)
	p.before = 0
	p.later()
}

// later makes the next trial a small growth, and lets it wait.
func (p *pace) later() {
	p.step, p.wait = laterStep, min(2*p.wait, longestWait)
	p.rest = p.wait
}

// answered counts an answer to a request that was sent at began, and decides at the end of
// a window.
func (p *pace) answered(began, now time.Time, took time.Duration, prompt, reply int) {
	if began.Before(p.since) {
		return
	}
	p.window = append(p.window, sample{size{bits.Len(uint(max(0, prompt))), int(2 * math.Log2(float64(1+max(0, reply))))},
		took.Seconds()})
	if len(p.window) < p.places() {
		return
	}
	slowdown := p.slowdown()
	switch tried := p.limit / p.before; {
	case p.before == 0 && slowdown > tooSlow && !p.fixed:
		p.seen.Slowed++
		p.learn(slowdown)
		p.set(p.limit/slowdown, now)
		p.later()
		return
	case p.before == 0:
		p.learn(1)
	case slowdown <= math.Sqrt(tried):
		p.learn(slowdown)
		p.before = 0
		if tried > 1 {
			p.wait = 1
		}
	case tried > 1: // perhaps fewer than before are enough, too
		p.seen.Slowed++
		p.set(p.before, now)
		p.before, p.step, p.rest = 0, cut, 0
		return
	default:
		p.set(p.before, now)
		p.before = 0
		p.later()
		return
	}
	p.rest--
	next := p.limit * p.step
	switch {
	case p.rest > 0:
	case p.step < 1 && p.places() == 1:
		p.later()
	case p.step < 1, p.full && p.limit < p.most: // growth without use would say nothing
		if p.step > 1 {
			next = max(next, p.limit+1)
		}
		before := p.limit
		p.set(next, now)
		p.before = before
		return
	}
	p.full, p.window = false, p.window[:0]
}

// slowdown is 1 where too little is known.
func (p *pace) slowdown() float64 {
	var times []float64
	for _, s := range p.window {
		if usual := p.usual[s.of]; usual > 0 {
			times = append(times, s.seconds/usual)
		}
	}
	if len(times) < max(1, len(p.window)/4) {
		return 1
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// learn takes the window into what is usual, which its limit has slowed by so much.
func (p *pace) learn(slowdown float64) {
	for of := range p.usual {
		p.usual[of] *= slowdown
	}
	for _, s := range p.window {
		if usual, ok := p.usual[s.of]; ok {
			p.usual[s.of] = usual + weight*(s.seconds-usual)
		} else {
			p.usual[s.of] = s.seconds
		}
	}
}
