package harness

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results"
)

// Sink takes finished trials. [results.Journal] is one. It is safe for
// concurrent use.
type Sink interface {
	// Done reports whether the trial was finished earlier.
	Done(id string) bool
	// Append takes a finished trial; once it returns nil the trial survives the
	// death of the process. It keeps neither the decisions nor the transcript.
	Append(t *results.Trial, ds []results.Decision, transcript []byte) error
}

// Grouped is a Sink that can take several trials at once, which costs less: the
// arms of a case are much alike. AppendAll keeps Append's promise for all of them
// once it returns nil.
type Grouped interface {
	Sink
	AppendAll([]results.Finished) error
}

// Trials of one case that were run by one worker wait for each other on the way to
// a Grouped sink. What waits is lost with the process, so that it is never more than
// about groupWait of work: one that took long does not wait. Quick ones may wait as
// long as the slow one behind them takes.
const (
	groupWait  = time.Second
	groupSlow  = 50 * time.Millisecond
	groupBytes = 1 << 20
)

// group is what a worker has finished and not yet handed on.
type group struct {
	rows      []results.Trial
	decisions []results.Decision
	ends      []int // of each trial's decisions
	lines     []byte
	marks     []int // ends of each trial's transcript in lines
	began     time.Time
	batch     []results.Finished
}

func (g *group) add(f *finished) {
	if len(g.rows) == 0 {
		g.began = time.Now()
	}
	g.rows = append(g.rows, f.row)
	g.decisions = append(g.decisions, f.decisions...)
	g.ends = append(g.ends, len(g.decisions))
	g.lines = append(g.lines, f.transcript...)
	g.marks = append(g.marks, len(g.lines))
}

// full reports whether what add was given has waited long enough.
func (g *group) full() bool {
	last := &g.rows[len(g.rows)-1]
	return len(g.lines) >= groupBytes || time.Since(g.began) >= groupWait || last.WallUS >= groupSlow.Microseconds()
}

// hand gives everything to the sink and counts it. What a sink could not take is not
// handed to it again: its error ends the run.
func (g *group) hand(sink Grouped, progress *Progress) error {
	if len(g.rows) == 0 {
		return nil
	}
	g.batch = g.batch[:0]
	d, l := 0, 0
	for i := range g.rows {
		g.batch = append(g.batch, results.Finished{Trial: &g.rows[i], Decisions: g.decisions[d:g.ends[i]:g.ends[i]], Transcript: g.lines[l:g.marks[i]:g.marks[i]]})
		d, l = g.ends[i], g.marks[i]
	}
	err := Hand(sink, g.batch, progress)
	clear(g.rows)
	clear(g.decisions)
	clear(g.batch)
	g.rows, g.decisions, g.ends, g.lines, g.marks = g.rows[:0], g.decisions[:0], g.ends[:0], g.lines[:0], g.marks[:0]
	if cap(g.lines) > 2*groupBytes { // one huge trial should not be remembered
		g.lines = nil
	}
	return err
}

// Runner runs single trials, for whoever hands them out in another way than Run
// does. Runners of one process share a cache; each belongs to one goroutine.
type Runner struct {
	x     *Experiment
	cache *memory.Cache
	own   *scratch
	of    int // case of the stage
	stage *stage
}

// Runners returns n runners that share a cache.
func (x *Experiment) Runners(n int) []*Runner {
	cache := memory.NewCache(cacheBytes)
	out := make([]*Runner, n)
	for i := range out {
		out[i] = &Runner{x: x, cache: cache, own: new(scratch), of: -1}
	}
	return out
}

// Run runs one trial. What it returns is valid until the next. An error means
// that there is no row: the trial was interrupted, or the model's caps are used
// up ([remote.StopsRun]).
func (r *Runner) Run(ctx context.Context, t Trial) (row *results.Trial, ds []results.Decision, transcript []byte, err error) {
	if r.of != t.Case || r.stage == nil {
		r.stage, r.of = r.x.stageFor(&r.x.Plan.Set.Cases[t.Case]), t.Case
	}
	f, err := r.x.runTrial(ctx, r.cache, r.own, r.stage, t)
	if err != nil {
		return nil, nil, nil, err
	}
	return &f.row, f.decisions, f.transcript, nil
}

// Workers is how many cases, or trials of a server's model, are worked on at
// once where the settings name no number.
func (x *Experiment) Workers() int {
	if n := x.Config.Concurrency; n > 0 {
		return n
	}
	_, far := x.Model.(*server)
	if far || slices.ContainsFunc(x.Plan.Arms, func(a Arm) bool { return waits(&a.Defense) }) {
		return remoteWorkers // they wait more than they work
	}
	return runtime.GOMAXPROCS(0)
}

// Unit is how many trials that are next to each other in the plan are best
// handed out together. Arms of one case share most of their texts, so a worker
// takes them all. A server's answers take so long that this matters less than
// keeping every place in flight filled: then a worker takes one trial.
func (x *Experiment) Unit() int64 {
	if _, ok := x.Model.(*server); ok {
		return 1
	}
	return int64(len(x.Plan.Arms))
}

// Progress counts while a run goes on. Anybody may read it at any time.
type Progress struct {
	Planned   atomic.Int64 // trials of the plan
	Resumed   atomic.Int64 // taken from the journal
	Finished  atomic.Int64 // run now
	NotScored atomic.Int64 // of Finished: trials that ended in an error
	Excluded  atomic.Int64 // of Finished: trials that do not apply
}

// Done is how many trials of the plan are done.
func (p *Progress) Done() int64 { return p.Resumed.Load() + p.Finished.Load() }

// Hand gives finished trials to a sink, together where it takes them so, and counts
// them.
func Hand(sink Sink, batch []results.Finished, progress *Progress) error {
	together, ok := sink.(Grouped)
	if ok {
		if err := together.AppendAll(batch); err != nil {
			return err
		}
	}
	for _, f := range batch {
		if !ok {
			if err := sink.Append(f.Trial, f.Decisions, f.Transcript); err != nil {
				return err
			}
		}
		progress.finished(f.Trial)
	}
	return nil
}

func (p *Progress) finished(row *results.Trial) {
	p.Finished.Add(1)
	switch row.Status {
	case results.Error:
		p.NotScored.Add(1)
	case results.Excluded:
		p.Excluded.Add(1)
	}
}

// Run runs every trial of the plan that the sink does not hold yet. When stop is
// closed it begins no further trial and waits for those in flight; when ctx ends
// it abandons them. Either way it returns nil, and the sink holds what was
// finished: compare Progress.Done with Plan.Len. An error is one of the sink.
func (x *Experiment) Run(ctx context.Context, sink Sink, progress *Progress, stop <-chan struct{}) error {
	workers := x.Workers()
	progress.Planned.Store(x.Plan.Len())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	halted := func() bool {
		select {
		case <-stop:
			return true
		case <-ctx.Done():
			return true
		default:
			return false
		}
	}
	cache := memory.NewCache(cacheBytes)
	unit := x.Unit()
	units := x.Plan.Whole() / unit
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range min(int64(workers), max(1, units)) {
		group.Go(func() {
			own := new(scratch)
			for !halted() {
				n := next.Add(1) - 1
				if n >= units {
					return
				}
				if err := x.runTrials(ctx, cache, own, x.Plan.Span(n*unit, unit), sink, progress, halted); err != nil {
					failed.CompareAndSwap(nil, &err)
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// runTrials runs trials of one case. It prepares the case only if there is
// something left to run. What was finished reaches the sink, however it ends.
func (x *Experiment) runTrials(ctx context.Context, cache *memory.Cache, own *scratch, trials iter.Seq[Trial], sink Sink, progress *Progress, halted func() bool) (err error) {
	var st *stage
	grouped, together := sink.(Grouped)
	together = together && x.Unit() > 1
	defer func() {
		if together {
			err = cmp.Or(err, own.group.hand(grouped, progress))
		}
	}()
	for t := range trials {
		if halted() {
			return nil
		}
		if sink.Done(x.Plan.ID(t)) {
			progress.Resumed.Add(1)
			continue
		}
		if st == nil {
			if x.texts != nil {
				st = x.textStage(&x.Plan.Set.Cases[t.Case])
			} else {
				st = x.stageFor(&x.Plan.Set.Cases[t.Case])
			}
		}
		f, err := x.runTrial(ctx, cache, own, st, t)
		if remote.StopsRun(err) {
			return fmt.Errorf("the run stops here: %w", err)
		}
		if err != nil {
			return nil // interrupted: the trial is abandoned and will be run again
		}
		if together {
			if own.group.add(f); own.group.full() {
				if err := own.group.hand(grouped, progress); err != nil {
					return err
				}
			}
			continue
		}
		if err := Hand(sink, []results.Finished{{Trial: &f.row, Decisions: f.decisions, Transcript: f.transcript}}, progress); err != nil {
			return err
		}
	}
	return nil
}
