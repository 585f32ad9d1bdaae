package remote

import (
	"context"
	"slices"
	"sync"
	"time"
)

// limiter bounds the requests in flight by what its [pace] finds the server to bear.
// Waiting calls are served in the order in which they came.
type limiter struct {
	mu sync.Mutex
	pace
	inFlight int
	queue    []chan struct{} // of the waiting; closed when they may start
	pause    time.Time       // nothing starts before
	timer    *time.Timer
	trials   int           // under way
	room     chan struct{} // closed when another trial may find room; nil if nobody waits
}

// Begin waits until fewer than twice as many trials are under way as there may be
// requests: enough to keep every place in flight filled, and not so many that each takes
// ever longer. It reports false where stop is closed, or ctx over, before.
func (l *limiter) Begin(ctx context.Context, stop <-chan struct{}) bool {
	for {
		l.mu.Lock()
		if l.trials < 2*l.places() {
			l.trials++
			l.mu.Unlock()
			return true
		}
		if l.room == nil {
			l.room = make(chan struct{})
		}
		room := l.room
		l.mu.Unlock()
		select {
		case <-room:
		case <-stop:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// End is the end of a trial that began.
func (l *limiter) End() {
	l.mu.Lock()
	l.trials--
	l.wake()
	l.mu.Unlock()
}

// wake tells those who wait to begin a trial that there may be room. The lock is held.
func (l *limiter) wake() {
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}

func (l *limiter) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	turn := make(chan struct{})
	l.mu.Lock()
	l.queue = append(l.queue, turn)
	l.dispatch()
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, turn); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	} else { // it was granted meanwhile
		l.inFlight--
		l.dispatch()
	}
	return context.Cause(ctx)
}

func (l *limiter) free(now time.Time) bool {
	return l.inFlight < l.places() && !now.Before(l.pause)
}

// dispatch starts waiting calls. The lock is held.
func (l *limiter) dispatch() {
	now := time.Now()
	for len(l.queue) > 0 && l.free(now) {
		close(l.queue[0])
		l.queue = l.queue[1:]
		l.inFlight++
		l.full = l.full || l.inFlight >= l.places()
	}
	if len(l.queue) > 0 && now.Before(l.pause) && l.timer == nil {
		l.timer = time.AfterFunc(l.pause.Sub(now), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.timer = nil
			l.dispatch()
		})
	}
}

// release gives a place back. began is when the attempt was sent; throttled says
// that the server asked to slow down, and for how long, if it said so.
func (l *limiter) release(began time.Time, throttled bool, retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if throttled {
		l.refused(began, now)
		if until := now.Add(retryAfter); retryAfter > 0 && until.After(l.pause) {
			l.pause = until
			if l.timer != nil {
				l.timer.Stop()
				l.timer = nil
			}
		}
	}
	l.inFlight--
	l.dispatch()
}

// settled counts an answer, of which it is known by now how long it was.
func (l *limiter) settled(began time.Time, took time.Duration, prompt, reply int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered(began, time.Now(), took, prompt, reply)
	l.wake()
	l.dispatch()
}

// bucket is a rate limit. It goes into debt, so that a request larger than the
// bucket waits long instead of forever, and a guess can be put right later.
type bucket struct {
	mu     sync.Mutex
	rate   float64 // a second
	size   float64
	level  float64
	filled time.Time
}

// newBucket limits to so many a minute, and to what comes together in burst (or
// one) at once. nil is no limit.
func newBucket(perMinute int, burst time.Duration) *bucket {
	if perMinute <= 0 {
		return nil
	}
	rate := float64(perMinute) / 60
	size := max(1, rate*burst.Seconds())
	return &bucket{rate: rate, size: size, level: size, filled: time.Now()}
}

// take books n, negative to give back, and returns how long to wait until they
// are covered.
func (b *bucket) take(n float64) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.level = min(b.size, b.level+b.rate*now.Sub(b.filled).Seconds())
	b.filled = now
	b.level = min(b.size, b.level-n)
	if b.level >= 0 {
		return 0
	}
	return time.Duration(-b.level / b.rate * float64(time.Second))
}
