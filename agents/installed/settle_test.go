package installed

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A review begins after the answer, and asks more than once: its writes are waited for.
func TestAReviewIsWaitedFor(t *testing.T) {
	traffic := &Traffic{changed: make(chan struct{})}
	g := &hermesTrial{gateway: &gateway{Setup: &Setup{Traffic: traffic}}, turns: reviewed}
	wrote := make(chan struct{})
	go func() {
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			end := traffic.begin()
			time.Sleep(100 * time.Millisecond)
			end()
		}
		close(wrote)
	}()
	if err := g.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-wrote:
	default:
		t.Error("the session was over before its review")
	}
}

// After a short session only what is under way is waited for, and not for ever.
func TestAShortSessionSettlesAtOnce(t *testing.T) {
	traffic := &Traffic{changed: make(chan struct{})}
	g := &hermesTrial{gateway: &gateway{Setup: &Setup{Traffic: traffic}}, turns: 1}
	if err := g.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := traffic.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := g.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it settled while something was asked: %v", err)
	}
	end()
	if err := g.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}
