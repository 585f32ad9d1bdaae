package main

import (
	"cmp"
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

// ticking calls f every so often until the returned function is called.
func ticking(every time.Duration, f func()) (done func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				f()
			}
		}
	}()
	return func() { close(end); <-ended }
}

// showProgress shows how a run goes on until the returned function is called: a
// bar on a terminal, elsewhere a line now and then.
//
// waiting lists the requests that have been under way for long; the oldest is
// named, so that nobody wonders what a run is waiting for.
func showProgress(env *Env, p *harness.Progress, waiting func(time.Duration) []remote.Pending) (done func()) {
	if env.StderrTerminal {
		return bar(env.Stderr, p, waiting)
	}
	began := env.Now()
	return ticking(every, func() {
		fmt.Fprintln(env.Stderr, progressLine(p, env.Now().Sub(began))+stuck(waiting(stuckAfter)))
	})
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

// pace is how many trials end a second, and how long the others will take: "" as long as
// none has ended.
func pace(p *harness.Progress, elapsed time.Duration) (rate float64, left string) {
	finished := p.Finished.Load()
	rate = float64(finished) / max(elapsed.Seconds(), 1e-3)
	if finished > 0 {
		seconds := float64(p.Planned.Load()-p.Done()) / rate
		left = time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	}
	return rate, left
}

// progressLine is the state of a run as one line of key=value pairs.
func progressLine(p *harness.Progress, elapsed time.Duration) string {
	rate, left := pace(p, elapsed)
	return fmt.Sprintf("memtox: progress done=%d planned=%d rate=%.0f/s left=%s not_scored=%d writing=%d retrieving=%d",
		p.Done(), p.Planned.Load(), rate, cmp.Or(left, "unknown"), p.NotScored.Load(), p.Writing.Load(), p.Retrieving.Load())
}

// bar draws a progress bar until the returned function is called.
func bar(w io.Writer, p *harness.Progress, waiting func(time.Duration) []remote.Pending) (done func()) {
	const refresh = 150 * time.Millisecond
	bars := mpb.New(mpb.WithOutput(w), mpb.WithWidth(48), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh())
	var b *mpb.Bar
	began := time.Now()
	stop := ticking(refresh, func() {
		planned := p.Planned.Load()
		if planned == 0 {
			return
		}
		if b == nil {
			b = bars.AddBar(planned, mpb.BarRemoveOnComplete(),
				mpb.PrependDecorators(decor.CountersNoUnit("%d/%d trials ")),
				mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
					rate, left := pace(p, time.Since(began))
					s := fmt.Sprintf(" %.0f/s, %d writing, %d retrieving", rate, p.Writing.Load(), p.Retrieving.Load())
					if left != "" {
						s += ", " + left + " left"
					}
					if n := p.NotScored.Load(); n > 0 {
						s += fmt.Sprintf(", %d not scored", n)
					}
					return s + stuck(waiting(stuckAfter))
				})))
		}
		b.SetCurrent(p.Done())
	})
	return func() {
		stop()
		if b != nil {
			b.Abort(true)
		}
		bars.Wait()
	}
}
