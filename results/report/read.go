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
	// Viewer is where a trial can be read: an address to which its id is added. Empty
	// where that is not known; then examples are named without a link.
	Viewer string
}

// Report is what the page says, ready to be written in either format.
type Report struct {
	run      *results.Run
	summary  *summary.Summary
	finished bool
	examples examples
	viewer   string
}

// Read makes the report of a run, of one that goes on or was killed too.
func Read(ctx context.Context, r *results.Reader, o Options) (*Report, error) {
	figures, rep := summary.New(r.Run(), o.Summary), &Report{run: r.Run(), finished: r.Finished(), viewer: o.Viewer}
	for e, err := range r.Entries(results.Everything) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		figures.Add(e)
		rep.examples.add(rep.run, &e.Trial)
	}
	rep.summary = figures.Summary()
	return rep, nil
}
