package report

import (
	"context"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

// Options of a report. The zero value is usable.
type Options struct {
	// Summary says at which level intervals are made and in which order classes
	// stand.
	Summary summary.Options
}

// Report is what the page says, ready to be written in either format.
type Report struct {
	run      *results.Run
	summary  *summary.Summary
	finished bool
	times    map[armGate]*histogram
}

type armGate struct{ agent, defense, gate string }

// Read makes the report of a run, of one that goes on or was killed too.
func Read(ctx context.Context, r *results.Reader, o Options) (*Report, error) {
	figures := summary.New(r.Run(), o.Summary)
	times := map[armGate]*histogram{}
	for e, err := range r.Entries(results.Everything) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		figures.Add(e)
		if e.Trial.Status != results.Scored {
			continue
		}
		for i := range e.Decisions {
			d := &e.Decisions[i]
			if d.Gate == results.GateRead && d.Record != "" {
				continue // the call's own row has the time
			}
			k := armGate{e.Trial.Agent, e.Trial.Defense, d.Gate}
			h := times[k]
			if h == nil {
				h = new(histogram)
				times[k] = h
			}
			h.add(float64(d.LatencyNS) / 1000)
		}
	}
	return &Report{run: r.Run(), summary: figures.Summary(), finished: r.Finished(), times: times}, nil
}
