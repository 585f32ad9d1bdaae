package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// Coordinator hands out the trials of one run and collects their rows.
type Coordinator struct {
	Options
	Experiment *harness.Experiment
	Record     *results.Run

	mu      sync.Mutex
	workers map[string]seen
	rows    *harness.Rows // of the one that collects
}

type seen struct {
	Status
	at time.Time
}

// Workers lists the workers that have said something lately, by name.
func (c *Coordinator) Workers() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Status
	for id, w := range c.workers {
		if time.Since(w.at) > 5*statusGap {
			delete(c.workers, id)
			continue
		}
		out = append(out, w.Status)
	}
	slices.SortFunc(out, func(a, b Status) int { return strings.Compare(a.Worker, b.Worker) })
	return out
}

// idle reports whether there are workers, and none has anything to do.
func (c *Coordinator) idle() bool {
	all := c.Workers()
	return len(all) > 0 && !slices.ContainsFunc(all, func(w Status) bool { return w.Busy+w.Unsent > 0 })
}

// Run hands out every trial that the sink does not hold, until the sink holds
// all of them. When stop is closed it takes the work queue back, waits for the
// rows of trials in flight for a moment, and returns nil; so it does when ctx
// ends, without waiting.
func (c *Coordinator) Run(ctx context.Context, sink harness.Sink, progress *harness.Progress,
	stop <-chan struct{}) error {
	x := c.Experiment
	progress.Planned.Store(x.Plan.Len())
	nc, js, err := c.connect(ctx, "coordinator", 20*time.Second)
	if err != nil {
		return err
	}
	defer nc.Close()
	var q *queue
	// On a cluster the queue is on three servers, so that one may be lost.
	copies := 1
	if nc.ConnectedClusterName() != "" {
		copies = 3
	}
	if err := persist(ctx, patience, func() (err error) {
		if q, err = c.open(ctx, js, copies); copies > 1 && tooFew(err) {
			c.logf("the cluster has not three servers with JetStream and room: the queue is on one of them alone")
			copies = 1
			q, err = c.open(ctx, js, copies)
		}
		return err
	}); err != nil && ctx.Err() != nil {
		return err
	} else if err != nil {
		return c.told(err)
	}
	sub, err := nc.Subscribe(namesOf(c.Name).status, c.hear)
	if err != nil {
		return fmt.Errorf("listening for workers: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var resumed int64
	for t := range x.Plan.Trials() {
		if sink.Done(x.Plan.ID(t)) {
			resumed++
		}
	}
	progress.Resumed.Store(resumed)
	collected := make(chan struct{})
	var failed error
	go func() {
		defer close(collected)
		if err := c.collect(ctx, q, sink, progress); err != nil {
			failed = err
			cancel(err)
		}
	}()
	// What waits from an earlier coordinator is taken before anything is handed
	// out anew, or finished trials would be run again.
	err = q.settled(ctx, collected)
	if err == nil {
		var asked *nats.Subscription
		if asked, err = nc.Subscribe(q.done, func(m *nats.Msg) { c.answer(q, sink, m) }); err == nil {
			defer func() { _ = asked.Unsubscribe() }()
			err = c.handOut(ctx, q, sink, stop)
		}
	}
	if err != nil && ctx.Err() == nil {
		cancel(err)
		<-collected
		return c.told(err)
	}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		var idle, stuck int
		for had := progress.Done(); remote.Sleep(ctx, statusGap) == nil; had = progress.Done() {
			if a, err := announced(ctx, q.bucket); err == nil && (a.Over || a.RunID != q.run) {
				return
			}
			jobs, _, err := load(ctx, q.jobs, "workers")
			rows, _, err2 := load(ctx, q.rows, "coordinator")
			known := err == nil && err2 == nil
			// Spans that somebody took off the queue and threw away would be
			// missed for ever.
			if idle++; !known || jobs+rows > 0 {
				idle = 0
			}
			// So would spans that the server has and gives to none of the workers that ask.
			if stuck++; !known || jobs == 0 || rows > 0 || progress.Done() != had || !c.idle() {
				stuck = 0
			}
			missing := x.Plan.Len() - progress.Done()
			switch {
			case missing == 0 || closed(stop):
				continue
			case stuck == 5: // the workers make it anew, and the spans stay
				c.logf("the queue holds %d spans and gives them to no worker that asks: its consumer is made anew", jobs)
				if err := q.jobs.DeleteConsumer(ctx, "workers"); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) &&
					ctx.Err() == nil {
					c.logf("making it anew: %v", err)
				}
				continue
			case stuck == 15:
				c.logf("it still does: they are handed out again")
			case idle == 3:
				c.logf("the queue is empty and %d trials are missing: they are handed out again", missing)
			default:
				continue
			}
			idle, stuck = 0, 0
			if err := c.handOut(ctx, q, sink, stop); err != nil && ctx.Err() == nil {
				c.logf("handing trials out again: %v", err)
			}
		}
	}()
	select {
	case <-collected:
	case <-ctx.Done():
	case <-taken:
		if ctx.Err() == nil {
			c.logf("the queue was drained: the run stops here")
		}
	case <-stop:
		back, end := context.WithTimeout(ctx, 10*time.Second)
		_ = q.jobs.Purge(back)
		// With no worker there nothing is in flight.
		for len(c.Workers()) > 0 && !closed(collected) && remote.Sleep(back, 200*time.Millisecond) == nil {
		}
		end()
	}
	cancel(nil)
	<-collected
	if failed != nil {
		return failed
	}
	if progress.Done() == x.Plan.Len() {
		last, end := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer end()
		// All trials are here: that a server went away with the last of them takes
		// nothing from the run.
		if err := c.dismiss(last, q); err != nil {
			c.logf("all trials are here, but the queue %s could not be taken down: %v", c.Name, err)
		}
	}
	return nil
}

// told turns an error of the queue into one that says what was being done.
func (o *Options) told(err error) error {
	if _, ok := errors.AsType[*settings.Problem](err); ok {
		return err
	}
	return fmt.Errorf("using the queue %s at %s: %w", o.Name, o.URL, err)
}

type queue struct {
	names
	run    string
	js     jetstream.JetStream
	bucket jetstream.KeyValue
	jobs   jetstream.Stream
	rows   jetstream.Stream
	large  jetstream.ObjectStore
	note   Announcement
}

// open makes the queue on the server, or goes on with that of this run.
func (c *Coordinator) open(ctx context.Context, js jetstream.JetStream, copies int) (*queue, error) {
	config, err := json.Marshal(c.Experiment.Config)
	if err != nil {
		return nil, err
	}
	record, err := json.Marshal(c.Record)
	if err != nil {
		return nil, err
	}
	q := &queue{names: namesOf(c.Name), run: c.Record.ID, js: js,
		note: Announcement{RunID: c.Record.ID, Version: c.Record.Version, Settings: config, Record: record,
			Planned: c.Experiment.Plan.Len()}}
	if q.bucket, err = js.CreateOrUpdateKeyValue(ctx,
		jetstream.KeyValueConfig{Bucket: q.names.bucket, Replicas: copies}); err != nil {
		return nil, err
	}
	if old, err := announced(ctx, q.bucket); err == nil && !old.Over && old.RunID != q.run {
		return nil, &settings.Problem{Where: "--queue", What: fmt.Sprintf("the queue %q carries the run %s already", c.Name,
			old.RunID),
			Hint: "wait for it, give it up with `memtox queue drain`, or choose another --set queue_name"}
	}
	work := jetstream.StreamConfig{Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: copies}
	jobs, rows := work, work
	jobs.Name, jobs.Subjects = q.names.jobs, []string{q.jobSubject}
	// Rows are on disk before the server takes them. A span that is lost with the
	// server is handed out again, and so need not wait for the disk.
	if copies == 1 { // the servers of a cluster do not offer it
		jobs.PersistMode = jetstream.AsyncPersistMode
	}
	rows.Name, rows.Subjects = q.names.rows, []string{q.rowSubject}
	if q.jobs, err = js.CreateOrUpdateStream(ctx, jobs); errors.As(err, new(*jetstream.APIError)) && !passing(err) {
		// One that was made in another way cannot be changed. What it holds would
		// be taken back anyway.
		if err = js.DeleteStream(ctx, q.names.jobs); err == nil {
			q.jobs, err = js.CreateOrUpdateStream(ctx, jobs)
		}
	}
	if err != nil {
		return nil, err
	}
	if q.rows, err = js.CreateOrUpdateStream(ctx, rows); err != nil {
		return nil, err
	}
	if q.large, err = js.CreateOrUpdateObjectStore(ctx,
		jetstream.ObjectStoreConfig{Bucket: q.names.large, Replicas: copies}); err != nil {
		return nil, err
	}
	return q, q.announce(ctx)
}

func (q *queue) announce(ctx context.Context) error {
	b, err := json.Marshal(q.note)
	if err != nil {
		return err
	}
	_, err = q.bucket.Put(ctx, runKey, b)
	return err
}

func announced(ctx context.Context, bucket jetstream.KeyValue) (*Announcement, error) {
	e, err := bucket.Get(ctx, runKey)
	if err != nil {
		return nil, err
	}
	var a Announcement
	if err := json.Unmarshal(e.Value(), &a); err != nil {
		return nil, fmt.Errorf("what the queue says of its run cannot be read: %w", err)
	}
	return &a, nil
}

// settled waits until no finished trial waits on the server, or all are here.
func (q *queue) settled(ctx context.Context, all <-chan struct{}) error {
	for {
		waiting, _, err := load(ctx, q.rows, "coordinator")
		if err == nil && waiting == 0 || err != nil && !passing(err) {
			return err
		}
		if closed(all) {
			return nil
		}
		if err := remote.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// load is how many messages a stream has for its consumer, and how many of these are
// taken. What a stream holds is no measure: a server that was killed may come back with
// messages whose acknowledgement it knows of, and gives those to nobody.
func load(ctx context.Context, s jetstream.Stream, consumer string) (all, taken uint64, err error) {
	cons, err := s.Consumer(ctx, consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		info, err := s.Info(ctx)
		if err != nil {
			return 0, 0, err
		}
		return info.State.Msgs, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	taken = uint64(cons.CachedInfo().NumAckPending)
	return cons.CachedInfo().NumPending + taken, taken, nil
}

// handOut fills the work queue with what the sink lacks, unless it is stopped.
func (c *Coordinator) handOut(ctx context.Context, q *queue, sink harness.Sink, stop <-chan struct{}) error {
	if err := persist(ctx, forever, func() error {
		if closed(stop) {
			return nil
		}
		// The consumer goes too. A server that was killed may have kept it and lost
		// the last of the spans; then it would take new ones for those.
		if err := q.jobs.DeleteConsumer(ctx, "workers"); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		return q.jobs.Purge(ctx)
	}); err != nil {
		return err
	}
	x := c.Experiment
	unit := x.Unit()
	open := func(yield func(first int64) bool) {
		for first := int64(0); first < x.Plan.Whole(); first += unit {
			for t := range x.Plan.Span(first, unit) {
				if !sink.Done(x.Plan.ID(t)) {
					if !yield(first) {
						return
					}
					break
				}
			}
		}
	}
	return harness.Pool(ctx, inFlight, stop, open, func(ctx context.Context, _ int, first int64) error {
		b, err := json.Marshal(job{q.run, first, unit, q.js.Conn().ConnectedServerId()})
		if err != nil {
			return err
		}
		// Where it arrived and nobody says so, it is handed out twice: that costs work,
		// not a row.
		return persist(ctx, forever, func() error {
			_, err := q.js.Publish(ctx, q.jobSubject, b)
			return err
		})
	})
}

// pull gives take the messages of a consumer, until room says that there is none for
// them or ctx ends. Its error is one that does not pass.
func pull(ctx context.Context, js jetstream.JetStream, stream string, c jetstream.ConsumerConfig, room func() int,
	take func(jetstream.Msg)) error {
	c.AckPolicy, c.AckWait = jetstream.AckExplicitPolicy, ackWait
	for room() > 0 { // also where the server does not come back
		cons, err := js.CreateOrUpdateConsumer(ctx, stream, c)
		if err != nil && !passing(err) {
			return err
		}
		for err == nil { // else the server may be another one: the consumer is asked for again
			n := room()
			if n == 0 || ctx.Err() != nil {
				return nil
			}
			err = fetch(ctx, cons, n, take)
		}
		if remote.Sleep(ctx, 200*time.Millisecond) != nil {
			return nil
		}
	}
	return nil
}

func fetch(ctx context.Context, cons jetstream.Consumer, n int, take func(jetstream.Msg)) error {
	wait, end := context.WithTimeout(ctx, 1100*time.Millisecond) // the server is asked for a tenth less
	defer end()
	batch, err := cons.Fetch(n, jetstream.FetchContext(wait))
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		take(m)
	}
	if err := batch.Error(); !errors.Is(err, nats.ErrTimeout) {
		return err
	}
	return nil
}

// collect journals finished trials until all are there or ctx ends.
func (c *Coordinator) collect(ctx context.Context, q *queue, sink harness.Sink, progress *harness.Progress) error {
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return err
	}
	defer unzip.Close()
	c.rows = c.Experiment.Rows()
	var failed error
	err = pull(ctx, q.js, q.names.rows, jetstream.ConsumerConfig{Durable: "coordinator", MaxAckPending: 4096}, func() int {
		if failed != nil || progress.Done() >= c.Experiment.Plan.Len() {
			return 0
		}
		return 256
	}, func(m jetstream.Msg) {
		if failed == nil {
			failed = c.take(ctx, q, m, sink, progress, unzip)
		}
	})
	if failed != nil || err == nil || ctx.Err() != nil {
		return failed
	}
	return c.told(err)
}

// take journals the trials of one message, and throws away what is none of this
// run's. Its error is one of the sink.
func (c *Coordinator) take(ctx context.Context, q *queue, m jetstream.Msg, sink harness.Sink,
	progress *harness.Progress, unzip *zstd.Decoder) error {
	refuse := func(err error) {
		c.logf("a message on the queue is thrown away: the worker %.100q sent it, and %v", m.Headers().Get(workerHeader), err)
	}
	if run := m.Headers().Get(runHeader); run != q.run {
		refuse(fmt.Errorf("it belongs to the run %.60q", run))
		_ = m.Term()
		return nil
	}
	var failed, later error
	var large []string
	var batch []results.Finished
	var transcripts int
	hand := func() error {
		if failed == nil {
			failed = harness.Hand(sink, batch, progress)
		}
		batch, transcripts = batch[:0], 0
		return failed
	}
	known := func(id string) bool {
		return sink.Done(id) || slices.ContainsFunc(batch, func(f results.Finished) bool { return f.Trial.ID == id })
	}
	one := func(kind byte, row, packed []byte) error {
		e, transcript, err := c.read(kind, row, packed, unzip)
		if err != nil {
			refuse(err)
			return nil // the others may be whole
		}
		if known(e.Trial.ID) {
			return nil
		}
		batch = append(batch, results.Finished{Trial: &e.Trial, Decisions: e.Decisions, Transcript: transcript})
		if transcripts += len(transcript); transcripts >= mostUnpacked {
			return hand()
		}
		return nil
	}
	if err := unpack(m.Data(), func(kind byte, row, packed []byte) error {
		if kind != object {
			return one(kind, row, packed)
		}
		name := string(row)
		if id, _, _ := strings.Cut(name, "."); known(id) {
			large = append(large, name)
			return nil // and the object may be gone
		}
		data, err := c.fetch(ctx, q, name)
		switch {
		case err != nil && passing(err):
			later = err
			return err
		case err != nil:
			refuse(err)
			return nil
		}
		large = append(large, name)
		return unpack(data, func(kind byte, row, packed []byte) error {
			if kind == object {
				return errParcel
			}
			return one(kind, row, packed)
		})
	}); errors.Is(err, errParcel) {
		refuse(err)
	}
	switch {
	case hand() != nil:
		return failed
	case later != nil:
		_ = m.NakWithDelay(time.Second)
		return nil
	}
	_ = m.Ack() // if that is lost it comes again, and is known
	for _, name := range large {
		_ = q.large.Delete(ctx, name)
	}
	return nil
}

// The headers of a message of finished trials: their run, and the worker that sent it.
const runHeader, workerHeader = "Memtox-Run", "Memtox-Worker"

// mostUnpacked is from how many bytes of transcripts on a message is journalled in
// parts.
const mostUnpacked = 1 << 20

// read checks that a row is one that the plan asks for, and that it is whole. Of a
// trial that is there already it reads no transcript.
func (c *Coordinator) read(kind byte, row, packed []byte, unzip *zstd.Decoder) (*results.Entry, []byte, error) {
	e := new(results.Entry)
	if err := results.ParseMessage(row, e); err != nil {
		return nil, nil, err
	}
	t := &e.Trial
	if err := c.rows.Check(t); err != nil {
		return nil, nil, err
	}
	if results.OutcomeDigest(t, e.Decisions) != t.Digest {
		return nil, nil, fmt.Errorf("trial %s: what happened does not fit its digest", t.ID)
	}
	if kind == bare {
		return e, nil, nil
	}
	transcript, err := unzip.DecodeAll(packed, nil)
	if err != nil || !json.Valid(transcript) || bytes.IndexByte(bytes.TrimRight(transcript, "\n"), '\n') >= 0 {
		return nil, nil, fmt.Errorf("trial %s: its transcript is damaged", t.ID)
	}
	return e, transcript, nil
}

// fetch gets an object that holds a trial.
func (c *Coordinator) fetch(ctx context.Context, q *queue, name string) ([]byte, error) {
	if len(name) > 64 {
		return nil, fmt.Errorf("the name of an object, %.80q, is none that a worker gives", name)
	}
	o, err := q.large.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("fetching the object %q: %w", name, err)
	}
	data, err := io.ReadAll(io.LimitReader(o, maxLarge))
	if err = errors.Join(err, o.Close()); err != nil {
		return nil, fmt.Errorf("fetching the object %q: %w", name, err)
	}
	if id, _, _ := strings.Cut(name, "."); objectName(id, data) != name {
		return nil, fmt.Errorf("the object %q does not hold what its name says", name)
	}
	return data, nil
}

// dismiss sends the workers home, waits a moment for them to hear of it, for the
// server may end with this process, and takes the queue down.
func (c *Coordinator) dismiss(ctx context.Context, q *queue) error {
	q.note.Over = true
	if err := persist(ctx, patience, func() error {
		once, end := context.WithTimeout(ctx, 2*time.Second)
		defer end()
		return q.announce(once)
	}); err != nil {
		return err
	}
	_ = q.js.Conn().Publish(q.over, []byte(q.run))
	for end := time.Now().Add(farewell); len(c.Workers()) > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		_ = remote.Sleep(ctx, 5*time.Millisecond)
	}
	return errors.Join(q.js.DeleteStream(ctx, q.names.jobs), q.js.DeleteStream(ctx, q.names.rows),
		q.js.DeleteObjectStore(ctx, q.names.large))
}

// isDone answers a worker that asks about a span that somebody had before it: all
// its trials are here.
const isDone = "done"

func (c *Coordinator) answer(q *queue, sink harness.Sink, m *nats.Msg) {
	var j job
	if json.Unmarshal(m.Data, &j) != nil || j.Run != q.run || j.First < 0 || j.N != c.Experiment.Unit() {
		c.logf("a question about a span is thrown away: it is none of this run's")
		return
	}
	for t := range c.Experiment.Plan.Span(j.First, j.N) {
		if !sink.Done(c.Experiment.Plan.ID(t)) {
			_ = m.Respond(nil)
			return
		}
	}
	_ = m.Respond([]byte(isDone))
}

// hear notes what a worker says of itself.
func (c *Coordinator) hear(m *nats.Msg) {
	var s Status
	if len(m.Data) > 4096 || json.Unmarshal(m.Data, &s) != nil || s.Worker == "" || len(s.Worker) > 200 {
		c.logf("a worker's status is thrown away: it is malformed")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers == nil {
		c.workers = map[string]seen{}
	}
	if s.Left {
		delete(c.workers, s.Worker)
		return
	}
	if _, known := c.workers[s.Worker]; known || len(c.workers) < 10_000 {
		c.workers[s.Worker] = seen{s, time.Now()}
	}
}

// passing reports an error that goes away when the server is back.
func passing(err error) bool {
	for _, e := range []error{nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrNoServers,
		nats.ErrReconnectBufExceeded, context.DeadlineExceeded, jetstream.ErrNoStreamResponse,
		jetstream.ErrAsyncPublishTimeout, jetstream.ErrJetStreamNotEnabled, jetstream.ErrTooManyStalledMsgs} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code >= 500
}

// tooFew reports that a cluster has not as many servers as there are to be copies: no
// suitable peers, no room on them, or no cluster for JetStream.
func tooFew(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains([]jetstream.ErrorCode{10005, 10023, 10074}, api.ErrorCode)
}

// How long a server that went away is waited for.
const (
	patience               = 30 * time.Second
	forever  time.Duration = math.MaxInt64
)

// persist tries again what goes away when the server is back.
func persist(ctx context.Context, most time.Duration, try func() error) error {
	for end := time.Now().Add(most); ; {
		err := try()
		if err == nil || !passing(err) || time.Now().After(end) {
			return err
		}
		if err := remote.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
