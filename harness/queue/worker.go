package queue

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// Worker takes trials off a queue and runs them.
type Worker struct {
	Options
	// Version is that of this memtox: a worker of another does not take part.
	Version string
	// Settings lays those of this process over others. What the queue announces is
	// written by whoever can: none of it that starts programs, asks servers or opens
	// files is acted on unless they say so ([harness.Adopt]); nil says nothing.
	Settings func(base harness.Config) (harness.Config, error)
	// Prepare makes the experiment of these settings with this process's models and
	// data. The worker closes it.
	Prepare func(ctx context.Context, settings harness.Config) (*harness.Experiment, error)
	// Wait is how long to wait for a server and for a run.
	Wait time.Duration

	finished, failed, busy, unsent atomic.Int64
}

func (w *Worker) Finished() int64 { return w.finished.Load() }

// Run works until the run is over, stop is closed (the trials in flight are
// finished) or ctx ends.
func (w *Worker) Run(ctx context.Context, stop <-chan struct{}) error {
	name := workerName()
	nc, js, err := w.connect(ctx, "worker "+name, w.Wait)
	if err != nil {
		return err
	}
	defer func() {
		_ = nc.FlushTimeout(2 * time.Second) // what was given back
		nc.Close()
	}()
	note, err := w.await(ctx, js, stop)
	if err != nil || note == nil {
		return err
	}
	x, err := w.enlist(ctx, note)
	if err != nil {
		return err
	}
	defer x.Close()
	n := namesOf(w.Name)
	var large jetstream.ObjectStore
	if err := persist(ctx, patience, func() (err error) {
		large, err = js.ObjectStore(ctx, n.large)
		return err
	}); errors.Is(err, jetstream.ErrBucketNotFound) && w.ended(ctx, js, note.RunID) {
		return nil // while this worker read its data
	} else if err != nil {
		return w.told(err)
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	t := &toil{Worker: w, names: n, name: name, run: note.RunID, since: time.Now().UTC(), js: js, large: large, zip: zip,
		x: x}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go t.report(ctx, nc)
	hint := make(chan struct{}, 1)
	go t.watch(ctx, cancel, hint)
	over, err := nc.Subscribe(n.over, func(m *nats.Msg) {
		if string(m.Data) == t.run {
			select {
			case hint <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return w.told(err)
	}
	defer func() {
		_ = over.Unsubscribe()
		t.tell(nc, true)
	}()
	err = t.work(ctx, stop)
	if cause := context.Cause(ctx); errors.Is(cause, errOver) {
		return nil
	} else if err == nil && cause != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

var errOver = errors.New("the run is over")

func workerName() string {
	host, err := os.Hostname()
	if err != nil || len(host) > 100 {
		host = "host"
	}
	return fmt.Sprintf("%s-%d-%.4s", host, os.Getpid(), rand.Text())
}

func (w *Worker) await(ctx context.Context, js jetstream.JetStream, stop <-chan struct{}) (*Announcement, error) {
	for end := time.Now().Add(w.Wait); ; {
		if a, err := w.note(ctx, js); err == nil && !a.Over {
			return a, nil
		}
		if time.Now().After(end) {
			return nil, &settings.Problem{Where: "--queue",
				What: fmt.Sprintf("no run came to the queue %q at %s within %v", w.Name, w.URL, w.Wait),
				Hint: "start one with `memtox run --queue`, or wait longer with --wait"}
		}
		if closed(stop) {
			return nil, nil
		}
		if err := remote.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// enlist makes the experiment and refuses where it is not the announced one.
func (w *Worker) enlist(ctx context.Context, a *Announcement) (*harness.Experiment, error) {
	if a.Version != w.Version {
		return nil, &settings.Problem{Where: "--queue", What: fmt.Sprintf("the run %s was started by memtox %s, and this "+
			"is memtox %s", a.RunID, a.Version, w.Version), Hint: "use the same version on all machines"}
	}
	var c harness.Config
	if err := json.Unmarshal(a.Settings, &c); err != nil {
		return nil, &settings.Problem{Where: "--queue", What: "the settings of the run " + a.RunID + " cannot be read",
			Err: err}
	}
	var record results.Run
	if err := json.Unmarshal(a.Record, &record); err != nil {
		return nil, &settings.Problem{Where: "--queue", What: "the record of the run " + a.RunID + " cannot be read",
			Err: err}
	}
	own := w.Settings
	if own == nil {
		own = func(base harness.Config) (harness.Config, error) { return base, nil }
	}
	// Where this process's model is makes no other run.
	mine, err := harness.Adopt("the queue", c, own, "base_url")
	if err != nil {
		return nil, err
	}
	x, err := w.Prepare(ctx, mine)
	if err != nil {
		return nil, err
	}
	x.Config.BaseURL = c.BaseURL
	if err := x.SameRun("the queue", &record); err != nil {
		_ = x.Close()
		return nil, err
	}
	return x, nil
}

type toil struct {
	*Worker
	names
	name, run string
	since     time.Time
	js        jetstream.JetStream
	large     jetstream.ObjectStore
	zip       *zstd.Encoder
	x         *harness.Experiment

	here   chan struct{} // holds one for each span that is here and not run yet
	outbox chan finished
	gone   <-chan struct{} // closed when nothing more is sent
}

// report says every now and then how it goes.
func (t *toil) report(ctx context.Context, nc *nats.Conn) {
	for t.tell(nc, false); remote.Sleep(ctx, statusGap) == nil; t.tell(nc, false) {
	}
}

func (t *toil) tell(nc *nats.Conn, left bool) {
	b, err := json.Marshal(Status{Worker: t.name, Run: t.run, Slots: t.x.Workers(), Busy: int(t.busy.Load()),
		Finished: t.finished.Load(), Failed: t.failed.Load(), Unsent: int(t.unsent.Load()), Since: t.since, Left: left})
	if err == nil {
		_ = nc.Publish(t.status, b)
	}
}

// watch ends the work when the run is over or another one has taken its place. A
// hint makes it look at once. It is not believed, for whoever may send one need not
// be who may write what the queue says of its run; only where the server goes
// before it can be asked, as one in the coordinator's process does, a hint is all
// there is.
func (t *toil) watch(ctx context.Context, cancel context.CancelCauseFunc, hint <-chan struct{}) {
	for hinted := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-hint:
			hinted = true
		case <-time.After(statusGap / 2):
		}
		ask, end := context.WithTimeout(ctx, 5*time.Second)
		a, err := t.Worker.note(ask, t.js)
		end()
		switch {
		case err == nil && (a.Over || a.RunID != t.run), err != nil && hinted && !t.js.Conn().IsConnected():
			cancel(errOver)
			return
		case t.js.Conn().IsClosed():
			cancel(fmt.Errorf("the queue's server at %s lets this worker in no longer", t.URL))
			return
		case err == nil:
			hinted = false
		}
	}
}

func (w *Worker) note(ctx context.Context, js jetstream.JetStream) (*Announcement, error) {
	bucket, err := js.KeyValue(ctx, namesOf(w.Name).bucket)
	if err != nil {
		return nil, err
	}
	return announced(ctx, bucket)
}

// ended reports whether the queue says that the run is over, or carries another.
func (w *Worker) ended(ctx context.Context, js jetstream.JetStream, run string) bool {
	a, err := w.note(ctx, js)
	return err == nil && (a.Over || a.RunID != run)
}

// work runs one goroutine a slot; each takes a span, runs it and leaves what came
// of it to one that sends it.
func (t *toil) work(ctx context.Context, stop <-chan struct{}) error {
	// What is finished is sent even where this worker can go on with nothing else.
	send := ctx
	t.gone = send.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := t.x.Runners(t.x.Workers())
	most := len(slots) + t.ahead(len(slots))
	jobs := make(chan *task, most)
	t.outbox = make(chan finished, len(slots))
	t.here = make(chan struct{}, most)
	keep, still := context.WithCancel(send)
	defer still()
	go func() {
		defer close(jobs)
		t.fetch(ctx, stop, func(m jetstream.Msg) {
			t.here <- struct{}{}
			k := t.receive(m)
			k.letGo = t.keep(keep, m)
			jobs <- k // there is room for it
		})
	}()
	var posting sync.WaitGroup
	posting.Go(func() { t.post(send) })
	open := func(yield func(*task) bool) {
		going := true
		for job := range jobs {
			if going = going && yield(job); !going { // or nobody could have it until this worker counts as dead
				job.answer(job.Nak)
			}
		}
	}
	var failed atomic.Pointer[error]
	_ = harness.Pool(ctx, len(slots), stop, open, func(ctx context.Context, slot int, job *task) error {
		t.busy.Add(1)
		err := t.span(ctx, slots[slot], job)
		t.busy.Add(-1)
		<-t.here
		if err != nil {
			failed.CompareAndSwap(nil, &err)
			cancel() // ends fetching too
		}
		return err
	})
	close(t.outbox)
	posting.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// ahead is how many spans a worker takes beyond those that its slots work on, so
// that no slot waits for the way to the server and back. Where a server's model
// answers, a span may take minutes, and one that lies here is one that an idle
// worker cannot have: then it is few.
func (t *toil) ahead(slots int) int {
	if t.x.Unit() == 1 {
		return slots / 8
	}
	return slots + 1
}

// fetch takes spans off the queue while there is room for them.
func (t *toil) fetch(ctx context.Context, stop <-chan struct{}, take func(jetstream.Msg)) {
	room := func() int {
		select {
		case t.here <- struct{}{}: // nobody else adds to it
			<-t.here
		case <-stop:
		case <-ctx.Done():
		}
		if closed(stop) || ctx.Err() != nil {
			return 0
		}
		return cap(t.here) - len(t.here)
	}
	for !closed(stop) && ctx.Err() == nil {
		_ = pull(ctx, t.js, t.names.jobs, jetstream.ConsumerConfig{Durable: "workers", MaxAckPending: -1}, room, take)
		_ = remote.Sleep(ctx, 300*time.Millisecond)
	}
}

// task is a span that was received.
type task struct {
	jetstream.Msg
	job
	again bool // somebody may have had it before
	letGo context.CancelFunc
}

// answer tells the server what became of the span: it is not worked on any more.
func (k *task) answer(how func() error) {
	k.letGo()
	_ = how()
}

// giveBack has somebody take the span, a little later.
func (k *task) giveBack() {
	k.answer(func() error { return k.NakWithDelay(time.Second) })
}

// receive reads a span. Whether somebody had it the server counts; but one that was
// killed may come back without its last counts, and with spans that were
// acknowledged.
func (t *toil) receive(m jetstream.Msg) *task {
	k := &task{Msg: m}
	if json.Unmarshal(m.Data(), &k.job) != nil {
		k.N = 0 // no span
	}
	d, err := m.Metadata()
	k.again = err != nil || d.NumDelivered > 1 || k.Server != t.js.Conn().ConnectedServerId()
	return k
}

// keep tells the server every now and then that this worker has the span, until it is
// let go.
func (t *toil) keep(ctx context.Context, m jetstream.Msg) (letGo context.CancelFunc) {
	ctx, letGo = context.WithCancel(ctx)
	go func() {
		for remote.Sleep(ctx, heartbeat) == nil {
			_ = m.InProgress()
		}
	}()
	return letGo
}

// span runs the trials of one message. Its error is one that ends the worker.
func (t *toil) span(ctx context.Context, r *harness.Runner, m *task) error {
	if m.First < 0 || m.N < 1 || m.N > 1<<20 {
		t.logf("a message on the queue is thrown away: it is no span of the plan")
		m.answer(m.Term)
		return nil
	}
	if m.Run != t.run {
		// Another run has taken this one's place, and this worker is about to
		// notice: the span is for those of that run.
		m.giveBack()
		return nil
	}
	if m.again {
		done, err := t.finishedEarlier(ctx, m.Data())
		if err != nil {
			m.giveBack() // nobody knows until the coordinator is back
			return nil
		}
		if done {
			m.answer(m.Ack)
			return nil
		}
	}
	var out parcel
	for trial := range t.x.Plan.Span(m.First, m.N) {
		f, err := r.Run(ctx, trial)
		if remote.StopsRun(err) {
			m.giveBack()
			return fmt.Errorf("this worker stops here: %w", err)
		}
		if err != nil {
			m.answer(m.Nak)
			return nil // interrupted
		}
		if err := t.pack(ctx, &out, f); err != nil {
			return nil // the worker ends: another takes the span
		}
	}
	t.leave(finished{out, m})
	return nil
}

// finishedEarlier asks the coordinator whether it has all trials of a span.
func (t *toil) finishedEarlier(ctx context.Context, span []byte) (done bool, err error) {
	err = persist(ctx, 10*time.Second, func() error {
		ask, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		m, err := t.js.Conn().RequestWithContext(ask, t.names.done, span)
		done = err == nil && string(m.Data) == isDone
		return err
	})
	return done, err
}

// finished are trials on their way to the server. The span is acknowledged once
// they are there; nil where more of it is to come.
type finished struct {
	parcel
	span *task
}

// leave hands finished trials to the one that sends them.
func (t *toil) leave(f finished) {
	select {
	case t.outbox <- f:
	case <-t.gone:
	}
}

// post sends what the slots leave. What is finished within linger, or while a
// message was on its way, travels together: each message costs the server several
// writes to disk, and all workers wait for the same disk.
func (t *toil) post(ctx context.Context) {
	var next *finished
	for {
		if next == nil {
			f, ok := <-t.outbox
			if !ok {
				return
			}
			next = &f
		}
		out, spans := next.parcel, []*task{next.span}
		next = nil
		late := time.After(linger)
	gather:
		for {
			select {
			case f, ok := <-t.outbox:
				switch {
				case !ok:
					break gather
				case len(out.data)+len(f.data) > largest:
					next = &f
					break gather
				}
				out.join(f.parcel)
				spans = append(spans, f.span)
			case <-late:
				break gather
			case <-ctx.Done():
				return
			}
		}
		if err := t.send(ctx, &out); err != nil {
			return // the worker ends, and others take the spans
		}
		for _, m := range spans {
			if m != nil {
				m.answer(m.Ack) // if it is lost the span comes back, and whoever gets it asks
			}
		}
	}
}

// pack adds a finished trial to a parcel, and sends what no longer fits.
func (t *toil) pack(ctx context.Context, out *parcel, f results.Finished) error {
	body := results.AppendMessage(nil, f.Trial, f.Decisions)
	kind, packed := bare, []byte(nil)
	if len(f.Transcript) > 0 {
		kind, packed = inside, t.zip.EncodeAll(bytes.TrimRight(f.Transcript, "\n"), nil)
	}
	var one parcel
	one.add(kind, body, packed)
	if len(one.data) > largest {
		name := objectName(f.Trial.ID, one.data)
		if err := t.insist(ctx, "putting a trial into the object store", func() error {
			_, err := t.large.PutBytes(ctx, name, one.data)
			return err
		}); err != nil {
			return err
		}
		one = parcel{}
		one.add(object, []byte(name), nil)
	}
	if len(out.data)+len(one.data) > largest {
		t.leave(finished{parcel: *out})
		*out = parcel{}
	}
	if f.Trial.Status == results.Error {
		one.failed++
	}
	out.join(one)
	t.unsent.Add(1)
	return nil
}

// send sends a parcel until the server has it. Its error is the end of ctx.
func (t *toil) send(ctx context.Context, out *parcel) error {
	if out.n == 0 {
		return nil
	}
	defer t.unsent.Add(-out.n)
	msg := &nats.Msg{Subject: t.rowSubject, Header: nats.Header{runHeader: {t.run}, workerHeader: {t.name}},
		Data: out.data}
	err := t.insist(ctx, "publishing finished trials", func() error {
		send, end := context.WithTimeout(ctx, 5*time.Second)
		defer end()
		_, err := t.js.PublishMsg(send, msg)
		return err
	})
	if err == nil {
		t.finished.Add(out.n)
		t.failed.Add(out.failed)
	}
	return err
}

// insist tries until the server takes what is finished. Its error is the end of ctx.
func (t *toil) insist(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil && !passing(err) {
			t.logf("%s: %v", what, err)
		}
		if err := remote.Sleep(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
}
