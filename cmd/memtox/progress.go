package main

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
)

// every is how often a plain progress line is printed.
const every = 10 * time.Second

// showProgress shows how a run goes on until the returned function is called: a
// bar on a terminal, elsewhere a line now and then.
//
// waiting lists the requests that have been under way for long; the oldest is
// named, so that nobody wonders what a run is waiting for.
func showProgress(env *Env, p *harness.Progress, waiting func(time.Duration) []remote.Pending) (done func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	began := env.Now()
	go func() {
		defer close(ended)
		if env.StderrTerminal {
			bar(env.Stderr, p, waiting, end)
			return
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				fmt.Fprintln(env.Stderr, progressLine(p, env.Now().Sub(began))+stuck(waiting(stuckAfter)))
			}
		}
	}()
	return func() { close(end); <-ended }
}

// stuckAfter is from when a request is named.
const stuckAfter = 30 * time.Second

// stuck names the request that has been under way longest.
func stuck(waiting []remote.Pending) string {
	if len(waiting) == 0 {
		return ""
	}
	w := waiting[0]
	return inert.Text(fmt.Sprintf(" waiting=%q", fmt.Sprintf("%v for %s, trial %s: attempt %d, %s; %d more",
		w.For.Round(time.Second), w.Host, w.Trial, w.Attempt, w.Phase, len(waiting)-1)))
}

// progressLine is the state of a run as one line of key=value pairs.
func progressLine(p *harness.Progress, elapsed time.Duration) string {
	planned, done, now := p.Planned.Load(), p.Done(), p.Finished.Load()
	rate := float64(now) / max(elapsed.Seconds(), 1e-3)
	left := "unknown"
	if now > 0 {
		left = time.Duration(float64(planned-done) / rate * float64(time.Second)).Round(time.Second).String()
	}
	return fmt.Sprintf("memtox: progress done=%d planned=%d rate=%.0f/s left=%s not_scored=%d", done, planned, rate, left,
		p.NotScored.Load())
}

// bar draws a progress bar until end is closed.
func bar(w io.Writer, p *harness.Progress, waiting func(time.Duration) []remote.Pending, end <-chan struct{}) {
	const refresh = 150 * time.Millisecond
	bars := mpb.New(mpb.WithOutput(w), mpb.WithWidth(48), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh())
	var b *mpb.Bar
	began := time.Now()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		if planned := p.Planned.Load(); b == nil && planned > 0 {
			b = bars.AddBar(planned,
				mpb.BarRemoveOnComplete(),
				mpb.PrependDecorators(decor.CountersNoUnit("%d/%d trials ")),
				mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
					rate := float64(p.Finished.Load()) / max(time.Since(began).Seconds(), 1e-3)
					left := time.Duration(float64(planned-p.Done()) / max(rate, 1e-9) * float64(time.Second)).Round(time.Second)
					s := fmt.Sprintf(" %.0f/s", rate)
					if p.Finished.Load() > 0 {
						s += ", " + left.String() + " left"
					}
					if n := p.NotScored.Load(); n > 0 {
						s += fmt.Sprintf(", %d not scored", n)
					}
					return s + stuck(waiting(stuckAfter))
				})))
		}
		select {
		case <-end:
			if b != nil {
				b.Abort(true)
			}
			bars.Wait()
			return
		case <-tick.C:
			if b != nil {
				b.SetCurrent(p.Done())
			}
		}
	}
}
