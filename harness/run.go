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

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results"
)

// Sink takes finished trials. [results.Journal] is one. It is safe for
// concurrent use.
type Sink interface {
	// Done reports whether the trial was finished earlier.
	Done(id string) bool
	// AppendAll takes finished trials; once it returns nil they survive the death of
	// the process. It keeps neither the decisions nor the transcripts. Several at once
	// cost less: the arms of a case are much alike.
	AppendAll([]results.Finished) error
}

// SinkOf returns a Sink that has nothing yet and hands each trial to take, one at a
// time.
func SinkOf(take func(results.Finished) error) Sink { return &taker{take: take} }

type taker struct {
	mu   sync.Mutex
	take func(results.Finished) error
}

func (s *taker) Done(string) bool { return false }

func (s *taker) AppendAll(batch []results.Finished) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range batch {
		if err := s.take(f); err != nil {
			return err
		}
	}
	return nil
}

// Pool hands out jobs in their order to so many workers, which are numbered from 0.
// Once stop is closed, ctx has ended or a job has failed it hands out no further one,
// and it returns when those in flight are over. The first failure ends the context of
// the others and is what Pool returns; an error after the end of ctx is an
// interruption, and none.
func Pool[J any](ctx context.Context, workers int, stop <-chan struct{}, jobs iter.Seq[J],
	do func(ctx context.Context, worker int, job J) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	handed := make(chan J)
	for worker := range workers {
		group.Go(func() {
			for job := range handed {
				if err := do(ctx, worker, job); err != nil && ctx.Err() == nil && failed.CompareAndSwap(nil, &err) {
					cancel()
				}
			}
		})
	}
	for job := range jobs {
		if Halted(ctx, stop) {
			break
		}
		select {
		case handed <- job:
			continue
		case <-stop:
		case <-ctx.Done():
		}
		break
	}
	close(handed)
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Halted reports whether nothing more is to be begun.
func Halted(ctx context.Context, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return ctx.Err() != nil
	}
}

// Trials that were run by one worker wait for each other on the way to the sink: those
// of a case, and those of the next ones where a case has few. What waits is lost with
// the process, so that it is never more than about groupWait of work: one that took
// long does not wait. Quick ones may wait as long as the slow one behind them takes.
const (
	groupWait  = time.Second
	groupSlow  = 50 * time.Millisecond
	groupBytes = 1 << 20
	groupWorth = groupBytes / 4 // is not kept waiting for the next case
	mostSpare  = 64             // lists of decisions that are kept for later trials
)

// group is what a worker has finished and not yet handed on, and the lists of what it
// has, which the next trials use again.
type group struct {
	batch []results.Finished
	bytes int // of transcripts
	began time.Time
	rows  [][]results.Decision
	lines []byte
	older []byte // lines that were handed on, of which a trial may share the last
}

// spare is a list of decisions that is done with; an empty one where there is none.
func (g *group) spare() (list []results.Decision) {
	if n := len(g.rows); n > 0 {
		list, g.rows = g.rows[n-1], g.rows[:n-1]
	}
	return list
}

// line writes a transcript behind those of the group. Whoever runs single trials hands
// no group on, and keeps what he gets.
func (g *group) line(write func([]byte) []byte) []byte {
	if len(g.lines) >= groupBytes {
		g.lines = nil
	}
	from := len(g.lines)
	g.lines = write(g.lines)
	return g.lines[from:len(g.lines):len(g.lines)]
}

// add reports whether what was added before has waited long enough.
func (g *group) add(f results.Finished) (full bool) {
	if len(g.batch) == 0 {
		g.began = time.Now()
	}
	g.batch = append(g.batch, f)
	g.bytes += len(f.Transcript)
	return g.bytes >= groupBytes || time.Since(g.began) >= groupWait || f.Trial.WallUS >= groupSlow.Microseconds()
}

// hand gives everything to the sink and counts it. What a sink could not take is not
// handed to it again: its error ends the run.
func (g *group) hand(sink Sink, progress *Progress) error {
	if len(g.batch) == 0 {
		return nil
	}
	err := Hand(sink, g.batch, progress)
	for _, f := range g.batch {
		if cap(f.Decisions) > 0 && len(g.rows) < mostSpare {
			g.rows = append(g.rows, f.Decisions[:0])
		}
	}
	if g.lines, g.older = g.older[:0], g.lines; cap(g.lines) > 4*groupBytes { // one huge trial should not be remembered
		g.lines = nil
	}
	clear(g.batch)
	g.batch, g.bytes = g.batch[:0], 0
	return err
}

// productWorkers is how many instances of an installed product a run starts where the
// settings name no number: some take gigabytes each.
const productWorkers = 4

// Workers is how many cases, or trials of a server's model, are worked on at
// once where the settings name no number.
func (x *Experiment) Workers() int {
	if n := x.Config.Concurrency; n > 0 {
		return n
	}
	for _, name := range x.Config.Agents {
		if _, _, ok := external.Product(name); ok {
			return min(runtime.GOMAXPROCS(0), productWorkers)
		}
	}
	_, far := x.Models[0].Model.(*server)
	if far || x.embed != nil || slices.ContainsFunc(x.Plan.Arms, func(a Arm) bool {
		return slices.Contains([]string{"judge", "http", "https"}, a.Defense.Spec.Kind)
	}) {
		return remoteWorkers // they wait more than they work
	}
	return runtime.GOMAXPROCS(0)
}

// paced is what says how many trials there may be at once, where the settings name no
// number and a server's model answers. An agent outside memtox may start a program a trial.
func (x *Experiment) paced() *remote.Client {
	far, ok := x.Models[0].Model.(*server)
	for _, d := range x.drivers {
		if _, loop := d.(*agents.Loop); !loop {
			return nil
		}
	}
	if !ok || x.Config.Concurrency > 0 {
		return nil
	}
	return far.client
}

// Unit is how many trials that are next to each other in the plan are best
// handed out together. Arms of one case share most of their texts, so a worker
// takes them all. A server's answers take so long that this matters less than
// keeping every place in flight filled: then a worker takes one trial.
func (x *Experiment) Unit() int64 {
	if _, ok := x.Models[0].Model.(*server); ok {
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
	// Trials that are in their write session now, and behind it.
	Writing, Retrieving atomic.Int64
}

// Done is how many trials of the plan are done.
func (p *Progress) Done() int64 { return p.Resumed.Load() + p.Finished.Load() }

// Hand gives finished trials to a sink and counts them.
func Hand(sink Sink, batch []results.Finished, progress *Progress) error {
	if err := sink.AppendAll(batch); err != nil {
		return err
	}
	for _, f := range batch {
		progress.Finished.Add(1)
		if f.Trial.Status == results.Error {
			progress.NotScored.Add(1)
		}
	}
	return nil
}

// Runner runs single trials, for whoever hands them out in another way than Run
// does. Runners of one process share a cache; each belongs to one goroutine.
type Runner struct {
	x        *Experiment
	cache    *memory.Cache
	of       *datasets.Case // of the stage
	stage    *stage
	script   script
	done     *memory.Memory    // of the trial before
	rooms    [3]agents.Outcome // of its sessions
	progress *Progress         // that its trials are counted in; nil counts them nowhere
	kept     []*textMemory     // by arm, of texts
	group    group
	last     held // that the next trial may share
}

// Runners returns n runners that share a cache.
func (x *Experiment) Runners(n int) []*Runner {
	cache := memory.NewCache(cacheBytes)
	out := make([]*Runner, n)
	for i := range out {
		out[i] = &Runner{x: x, cache: cache}
	}
	return out
}

// Run runs one trial. An error means that there is no row: the trial was interrupted, or the model's caps are used
// up ([remote.StopsRun]).
func (r *Runner) Run(ctx context.Context, t Trial) (results.Finished, error) {
	return r.RunCase(ctx, &r.x.Plan.Set.Cases[t.Case], t)
}

// RunCase is Run with a case that need not be in the plan.
func (r *Runner) RunCase(ctx context.Context, k *datasets.Case, t Trial) (results.Finished, error) {
	if r.of != k { // prepared only once there is something to run
		r.of, r.stage = k, r.x.way.stage(k)
	}
	return r.x.way.trial(ctx, r, r.stage, t)
}

// Run runs every trial of the plan that the sink does not hold yet. When stop is
// closed it begins no further trial and waits for those in flight; when ctx ends
// it abandons them. Either way it returns nil, and the sink holds what was
// finished: compare Progress.Done with Plan.Len. An error is one of the sink.
func (x *Experiment) Run(ctx context.Context, sink Sink, progress *Progress, stop <-chan struct{}) error {
	progress.Planned.Store(x.Plan.Len())
	unit := x.Unit()
	units := x.Plan.Whole() / unit
	begin, end, workers := func() bool { return true }, func() {}, x.Workers()
	if far := x.paced(); far != nil {
		begin, end, workers = func() bool { return far.Begin(ctx, stop) }, far.End, remote.MostInFlight
	}
	spans := func(yield func(iter.Seq[Trial]) bool) {
		for n := range units {
			if !begin() || !yield(x.Plan.Span(n*unit, unit)) {
				return
			}
		}
	}
	runners := x.Runners(int(min(int64(workers), max(1, units))))
	run := func(ctx context.Context, worker int, span iter.Seq[Trial]) error {
		defer end()
		return runners[worker].span(ctx, span, sink, progress, stop)
	}
	err := Pool(ctx, len(runners), stop, spans, run)
	for _, r := range runners {
		err = cmp.Or(err, r.group.hand(sink, progress))
	}
	return err
}

// span runs trials of one case. What was finished reaches the sink, however it ends, at
// the latest when the run does.
func (r *Runner) span(ctx context.Context, trials iter.Seq[Trial], sink Sink, progress *Progress,
	stop <-chan struct{}) (err error) {
	defer func() {
		if r.group.bytes >= groupWorth || len(r.group.batch) >= mostSpare || err != nil || Halted(ctx, stop) {
			err = cmp.Or(err, r.group.hand(sink, progress))
		}
	}()
	r.progress = progress
	for t := range trials {
		if Halted(ctx, stop) {
			return nil
		}
		if sink.Done(r.x.Plan.ID(t)) {
			progress.Resumed.Add(1)
			continue
		}
		f, err := r.Run(ctx, t)
		if remote.StopsRun(err) {
			return fmt.Errorf("the run stops here: %w", err)
		}
		if err != nil {
			return nil // interrupted: the trial is abandoned and will be run again
		}
		if r.group.add(f) {
			if err := r.group.hand(sink, progress); err != nil {
				return err
			}
		}
	}
	return nil
}
