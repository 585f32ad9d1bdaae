package remote

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

// A place that is granted to a call that was cancelled just before, and has not
// noticed yet, is given back.
func TestGrantedAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{pace: newPace(1)}
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := l.acquire(ctx); err == nil {
				t.Error("a cancelled call was let through")
			}
		})
		synctest.Wait()
		l.mu.Lock() // so that the waiting call cannot leave the queue
		cancel()
		l.inFlight--
		l.dispatch()
		l.mu.Unlock()
		wg.Wait()
		if inFlight, waiting, _ := l.state(); inFlight != 0 || waiting != 0 {
			t.Errorf("%d in flight and %d waiting after all are done", inFlight, waiting)
		}
	})
}
